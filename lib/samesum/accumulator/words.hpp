/// Vectors of words, as integers of any size have them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace samesum {

/// A vector of words of 64 bits. Few of them are part of the object, so that most integers allocate no
/// memory.
class Words {
 public:
  Words() {}
  explicit Words(std::size_t size) { resize(size); }
  template <class Iterator> Words(Iterator first, Iterator last) { assign(first, last); }
  Words(const Words& other) { assign(other.begin(), other.end()); }
  Words& operator=(const Words& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::uint64_t* begin() { return data_; }
  const std::uint64_t* begin() const { return data_; }
  std::uint64_t* end() { return data_ + size_; }
  const std::uint64_t* end() const { return data_ + size_; }
  std::uint64_t& operator[](std::size_t i) { return data_[i]; }
  const std::uint64_t& operator[](std::size_t i) const { return data_[i]; }
  const std::uint64_t& back() const { return data_[size_ - 1]; }

  /// Drops the last words, or adds words that are 0.
  void resize(std::size_t size) {
    reserve(size);
    while (size_ < size) data_[size_++] = 0;
    size_ = size;
  }
  void drop_first(std::size_t count) {
    if (count == 0) return;
    std::copy(begin() + count, end(), begin());
    size_ -= count;
  }
  /// Moves each word to the place of the next one, the last word out, and 0 in.
  void shift_up() {
    std::copy_backward(begin(), end() - 1, end());
    data_[0] = 0;
  }

 private:
  static constexpr std::size_t few = 16;

  void reserve(std::size_t size) {
    if (size <= std::max(few, many_.size())) return;
    std::vector<std::uint64_t> more(2 * size);
    std::copy(begin(), end(), more.begin());
    many_.swap(more);
    data_ = many_.data();
  }
  template <class Iterator> void assign(Iterator first, Iterator last) {
    reserve(static_cast<std::size_t>(last - first));
    size_ = 0;
    while (first != last) data_[size_++] = *first++;
  }

  std::size_t size_ = 0;
  std::uint64_t* data_ = few_;
  std::uint64_t few_[few];           ///< of which the first `size_` have values
  std::vector<std::uint64_t> many_;  ///< in place of `few_`, unless it is empty
};

}  // namespace samesum
