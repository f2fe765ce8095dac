/// Byte format of a serialised state: "SSUM", a version, the name of the state, then its fields,
/// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace samesum {

inline constexpr std::string_view serial_magic = "SSUM";
inline constexpr std::uint8_t serial_version = 1;

/// Writes the header, then one field after the other.
class SerialWriter {
 public:
  explicit SerialWriter(std::string_view name) {
    put_text(serial_magic);
    put(serial_version);
    put(static_cast<std::uint8_t>(name.size()));
    put_text(name);
  }
  template <class Word> void put(Word word) {
    for (std::size_t i = 0; i < sizeof(Word); ++i) bytes_.push_back(std::byte(word >> (8 * i)));
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void put_text(std::string_view text) {
    for (const char c : text) bytes_.push_back(std::byte(c));
  }
  std::vector<std::byte> bytes_;
};

/// Reads the header, then one field after the other. Throws std::invalid_argument if the bytes do not fit.
class SerialReader {
 public:
  /// Reads the header. If `expected` is empty, every name is accepted.
  SerialReader(std::span<const std::byte> bytes, std::string_view expected = {}) : bytes_{bytes} {
    if (get_text(serial_magic.size()) != serial_magic) refuse("it does not begin with \"SSUM\"");
    if (const int version = get<std::uint8_t>(); version != serial_version)
      refuse("it has version " + std::to_string(version) + "; this library reads version " +
             std::to_string(serial_version));
    name_ = get_text(get<std::uint8_t>());
    if (!expected.empty() && name_ != expected)
      refuse("it holds " + name_ + ", not " + std::string{expected});
  }
  const std::string& name() const { return name_; }
  template <class Word> Word get() {
    need(sizeof(Word));
    Word word = 0;
    for (std::size_t i = 0; i < sizeof(Word); ++i)
      word = Word(word | Word(std::to_integer<Word>(bytes_[at_ + i]) << (8 * i)));
    at_ += sizeof(Word);
    return word;
  }
  /// Checks that all bytes have been read.
  void finish() const {
    if (at_ != bytes_.size()) refuse(std::to_string(bytes_.size() - at_) + " bytes follow its last field");
  }
  [[noreturn]] static void refuse(const std::string& why) {
    throw std::invalid_argument("samesum: not a serialised state: " + why);
  }

 private:
  void need(std::size_t count) const {
    if (bytes_.size() - at_ < count) refuse("it ends after " + std::to_string(bytes_.size()) + " bytes");
  }
  std::string get_text(std::size_t size) {
    need(size);
    std::string text(size, '\0');
    std::memcpy(text.data(), bytes_.data() + at_, size);
    at_ += size;
    return text;
  }
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string name_;
};

}  // namespace samesum
