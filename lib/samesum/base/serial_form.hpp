/// Byte format of a serialised state: "SSUM", a version, the name of the state, then its fields,
/// little-endian. A checksum may follow.
#pragma once

#include <array>
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

/// CRC-32 of ISO 3309 (polynomial 0x04c11db7, reflected), as in zip and png. Takes eight bytes at once: table
/// k has the effect of a byte that k bytes follow.
inline std::uint32_t crc32(std::span<const std::byte> bytes) {
  static constexpr auto table = [] {
    std::array<std::array<std::uint32_t, 256>, 8> of{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
      of[0][i] = crc;
    }
    for (std::size_t k = 1; k < of.size(); ++k)
      for (std::size_t i = 0; i < 256; ++i) of[k][i] = of[k - 1][i] >> 8 ^ of[0][of[k - 1][i] & 0xff];
    return of;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  std::size_t at = 0;
  for (; bytes.size() - at >= table.size(); at += table.size()) {
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < table.size(); ++k) {
      const auto b = std::to_integer<std::uint32_t>(bytes[at + k]);
      next ^= table[7 - k][b ^ (k < 4 ? crc >> (8 * k) & 0xff : 0)];
    }
    crc = next;
  }
  for (; at < bytes.size(); ++at)
    crc = crc >> 8 ^ table[0][(crc ^ std::to_integer<std::uint32_t>(bytes[at])) & 0xff];
  return ~crc;
}

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
    std::array<std::byte, sizeof(Word)> little_endian;
    for (std::size_t i = 0; i < sizeof(Word); ++i) little_endian[i] = std::byte(word >> (8 * i));
    put_bytes(little_endian);
  }
  /// Puts bytes as they are.
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Puts the checksum of all bytes so far.
  void put_checksum() { put(crc32(bytes_)); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span{text})); }
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
  /// Reads `count` items of `size` bytes as they are.
  std::span<const std::byte> get_bytes(std::uint64_t count, std::size_t size) {
    const std::size_t left = bytes_.size() - at_;
    need(count > left / size ? left + 1 : 0);
    const auto read = bytes_.subspan(at_, static_cast<std::size_t>(count) * size);
    at_ += read.size();
    return read;
  }
  /// Checks that the last bytes are the checksum of all others, and leaves them out.
  void check_checksum() {
    constexpr std::size_t size = sizeof(std::uint32_t);
    need(size);
    SerialReader last = *this;
    last.at_ = bytes_.size() - size;
    if (last.get<std::uint32_t>() != crc32(bytes_.first(last.at_ - size)))
      refuse("it is damaged: its checksum does not match");
    bytes_ = bytes_.first(bytes_.size() - size);
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
