/// What the readers of input.hpp share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/input.hpp"

namespace samesum::harness {

/// Formats a piece of the file for a message: quoted, printable, on one line, and shortened.
std::string shown(std::string_view text);

/// Appends a name to a list for a message, or "..." if the list is long already.
void append_shown(std::string& list, std::string_view name);

/// Loads an unsigned integer in either byte order, from any alignment.
template <class Bits> Bits load(const std::byte* from, bool big_endian) {
  std::byte bytes[sizeof(Bits)];
  std::memcpy(bytes, from, sizeof(Bits));
  if (big_endian != (std::endian::native == std::endian::big)) std::reverse(bytes, bytes + sizeof(Bits));
  return std::bit_cast<Bits>(bytes);
}

template <class F> void store(Column& to, std::size_t i, BitsOf<F> bits) {
  std::memcpy(&to.bytes[i * sizeof(F)], &bits, sizeof bits);
}

/// The bytes of a file, a pipe or memory, from the first to the last.
class Bytes {
 public:
  virtual ~Bytes() = default;
  /// Copies the next bytes to `to`, and returns their number, which is less than the size of `to` only at the
  /// end.
  virtual std::size_t read(std::span<std::byte> to) = 0;
  /// Passes over the next n bytes, or over all if fewer are left, and returns their number.
  virtual std::uint64_t skip(std::uint64_t n);
  /// Returns the number of bytes left; empty if it is unknown, as for a pipe.
  virtual std::optional<std::uint64_t> left() = 0;
  /// Moves to a byte, counted from the first one. Returns false if that is impossible, as in a pipe.
  virtual bool move_to(std::uint64_t) { return false; }
};

/// The bytes from here to the end.
std::vector<std::byte> read_rest(Bytes& file);

class MemoryBytes : public Bytes {
 public:
  explicit MemoryBytes(std::vector<std::byte> bytes) : bytes_{std::move(bytes)} {}
  std::size_t read(std::span<std::byte> to) override;
  std::optional<std::uint64_t> left() override { return bytes_.size() - at_; }
  bool move_to(std::uint64_t place) override;

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

/// What a reader is made of.
struct Source {
  std::unique_ptr<Bytes> bytes;
  std::string name;          ///< for messages
  const FormatInfo* format;  ///< of the elements after reading; nullptr for the stored one
  std::size_t portion;       ///< bytes of the file per portion
  TableOptions table = {};
  std::string member = {};  ///< of an archive; empty: the only one
  bool has_lines = true;    ///< for a table; false if its text was made from another file
};

inline constexpr std::string_view npy_magic = "\x93NUMPY", npz_magic = "PK\3\4", gzip_magic = "\x1f\x8b";

std::unique_ptr<ElementReader> open_npy(Source source);
std::unique_ptr<ElementReader> open_npz(Source source);
std::unique_ptr<ElementReader> open_raw(Source source, const FormatInfo& stored);
std::unique_ptr<ElementReader> open_text(Source source);
/// These read the file with the name of the source.
std::unique_ptr<ElementReader> open_parquet(Source source);
std::unique_ptr<ElementReader> open_feather(Source source);
/// @param separators the characters that may separate fields, by rank. The first one that the first two
/// records have does, or else the first one that the first record has. A blank stands for any number of
/// blanks.
std::unique_ptr<ElementReader> open_table(Source source, std::string_view separators);

/// The elements of a reader that are not NaN, with their places if `has_places`. Its notes tell how
/// many are left out.
std::unique_ptr<ElementReader> without_nans(std::unique_ptr<ElementReader> all, const std::string& name,
                                            bool has_places);

/// The bytes of a raw deflate stream (RFC 1951), decompressed. Throws InputError, with this name, for a
/// damaged stream, and for any stream if the tool was built without zlib.
std::unique_ptr<Bytes> open_deflated(std::unique_ptr<Bytes> compressed, const std::string& name);
/// The bytes of a file that gzip compressed (RFC 1952), decompressed. Throws like open_deflated.
std::unique_ptr<Bytes> open_gzip(std::unique_ptr<Bytes> compressed, const std::string& name);

/// Terms whose sum is an integer, decimal or hexadecimal, minus the double to which it was rounded, the
/// largest first. A point and zeros may follow the integer. Empty for another word, and if the double is
/// infinite.
std::vector<double> terms_lost(std::string_view word, double rounded);

/// Records what element i of the column lost.
void set_lost(Column& column, std::size_t i, double lost);

/// Reads elements of the same number of bytes each.
class BinaryReader : public ElementReader {
 public:
  /// @param natural format of the elements after reading, unless the source names one.
  /// @param element bytes of an element in the file.
  /// @param size bytes of all elements; the largest number if they end where the file ends.
  BinaryReader(Source source, const FormatInfo& natural, std::size_t element, std::uint64_t size);
  std::optional<std::uint64_t> left() override;
  std::uint64_t skip(std::uint64_t n) override;

 protected:
  /// Throws InputError if a file cannot have this number of bytes, apart from a header.
  virtual void check_size(std::uint64_t bytes) const = 0;
  /// Converts the stored bytes of a portion, whose first element has this index, to portion_.
  virtual void convert(std::vector<std::byte>& stored, std::uint64_t first) = 0;
  const std::string& name() const { return source_.name; }
  std::uint64_t size() const { return size_; }

 private:
  void fill_portion() override;
  Source source_;
  std::size_t element_;
  std::uint64_t size_, done_ = 0;
  std::vector<std::byte> stored_;
};

/// Converts elements from the stored format to that of the column. May swap the two arrays of bytes.
void convert_elements(std::vector<std::byte>& elements, bool big_endian, const FormatInfo& stored,
                      Column& column);

}  // namespace samesum::harness
