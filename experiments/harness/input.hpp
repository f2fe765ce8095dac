/// Readers of the user's data: NumPy files and archives, raw little-endian arrays, text and tables of text;
/// and Parquet and Arrow files, which a Python package turns into tables of text.
///
/// Each format has one reader, which delivers the elements in portions, so that a file of any length needs
/// little memory. `read_column` and the functions `parse_…` collect the portions.
///
/// The readers use integer arithmetic only and round each number once, to nearest, ties to even. Results do
/// not depend on the locale, the rounding mode or flush-to-zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "samesum/call/values.hpp"

namespace samesum::harness {

/// Elements read from a file, in one of the library's formats.
struct Column {
  const FormatInfo* format;
  std::vector<std::byte> bytes;  ///< aligned for every format, because operator new is
  /// What rounding took from each element: the integer minus its value in fp64, rounded if it has more than
  /// 53 bits. Empty if rounding took nothing from any. Filled for integers whose format the user did not
  /// choose.
  std::vector<double> lost = {};
  /// What `lost` lacks to be exact: further terms, any number per element. Only texts have integers so long.
  std::vector<double> further_lost = {};
  /// The texts in the column TableOptions::by, one for each element.
  std::vector<std::string> keys = {};
  /// For TableOptions::pairs: the record of each element, counted from 0 with those that were left out. Empty
  /// if element i is record i.
  std::vector<std::uint64_t> places = {};
  std::uint64_t records = 0;  ///< number of records up to here, if `places` is filled
  /// The notes of the reader, if it has read all elements.
  std::vector<std::string> notes = {};

  std::size_t size() const { return bytes.size() / format->bytes; }
  Values values() const { return {*format, bytes.data(), size()}; }
  /// The terms that the sum of `values` lacks to be the exact sum.
  std::array<Values, 2> lost_values() const;
  /// Number of integers that were rounded.
  std::size_t rounded() const;
};

/// Keeps the elements with these indices, which increase, and what belongs to each of them.
void keep_elements(Column& column, std::span<const std::size_t> indices);

/// How to read a table: text with a record per line, of one field per column.
struct TableOptions {
  std::string column = {};    ///< a name, or a number from 1 on; empty: the only one
  bool header = false;        ///< the file has names of columns; it must have if `column` or `by` is a name
  std::string by = {};        ///< the column whose texts are kept as keys, as `column`; empty: none
  bool counts = false;        ///< no column holds elements: each record is the element 0
  bool by_is_number = false;  ///< the texts of `by` are numbers, which may be missing, too
  bool skip_missing = false;  ///< records whose element is missing, or NaN in any file, are left out
  std::string where = {};     ///< a condition, "column op number"; records that do not meet it are left out
  bool pairs = false;         ///< the elements are one side of pairs, and need their places

  bool needs_table() const { return header || !column.empty() || !by.empty() || !where.empty(); }
  bool is_set() const { return needs_table() || skip_missing; }
};

/// A number as it is written: rounded to fp64, and what rounding took from it if it is an integer.
struct WrittenNumber {
  double rounded;
  std::vector<double> lost;  ///< terms, the largest first; empty for other numbers, and if nothing was lost
};
/// Reads one number, as `parse_number` does.
std::optional<WrittenNumber> parse_written(std::string_view text);

/// A condition on the fields of a column. Integers are compared exactly, other numbers as those of fp64.
struct Condition {
  std::string column, op;  ///< one of < <= > >= == !=
  WrittenNumber number;
  bool holds(const WrittenNumber& x) const;
};
/// Parses "price >= 10"; empty for other text.
std::optional<Condition> parse_condition(std::string_view text);

/// Bad input. what() is one printable line with the file, the place in it, and, if there is one, the remedy.
class InputError : public std::runtime_error {
 public:
  /// `problem` must be printable. The name of the file may be any text.
  InputError(std::string_view name, const std::string& problem);
};

/// The extensions of files that can be read, of those that gzip may have compressed: ".npy .f16 …".
std::string known_extensions();
/// The extensions of the others.
std::string extensions_without_gzip();

/// The file of an argument such as "x.npz:member".
std::string file_of(const std::string& path);

/// Reads the elements of a file from the first to the last. All functions throw InputError for a bad file.
class ElementReader {
 public:
  explicit ElementReader(const FormatInfo& format) : portion_{&format, {}} {}
  virtual ~ElementReader() = default;

  const FormatInfo& format() const { return *portion_.format; }
  /// Reads the next portion, which replaces the last one. Returns false at the end of the file.
  bool next() {
    fill_portion();
    return portion_.size() > 0;
  }
  const Column& portion() const { return portion_; }
  /// Returns the lengths of the axes of an array whose last axis varies fastest, with the elements that are
  /// left out; empty if the file has none, as a text.
  virtual std::vector<std::uint64_t> shape() const { return {}; }
  /// Returns the number of elements left; empty if only reading tells it, as for a text.
  virtual std::optional<std::uint64_t> left() { return {}; }
  /// Passes over the next n elements, or over all if fewer are left, and returns their number.
  virtual std::uint64_t skip(std::uint64_t n) = 0;
  /// Returns what the user may not expect of the elements read so far, one printable line each: numbers of a
  /// text that became infinite, or whose digits got lost, and commas that may separate thousands.
  virtual std::vector<std::string> notes() const { return {}; }

 protected:
  virtual void fill_portion() = 0;
  Column portion_;
};

/// Bytes of the file per portion. Such a portion fits the caches of a processor, and is long enough to make
/// the cost of a call negligible.
inline constexpr std::size_t portion_bytes = std::size_t{1} << 20;

/// Opens a file according to its extension, one of `known_extensions`, which .gz may follow if gzip
/// compressed the file; "-" is standard input, with text, a .npy or a .npz file, compressed or not.
/// "x.npz:member" is a member of an archive. If `format` is nullptr, keeps the format of the elements; text
/// and integers become fp64. Otherwise rounds each element once to `format`. With `table`, any text is a
/// table; .csv, .tsv, Parquet and Arrow files always are.
///
/// An array in Fortran order, and a .npy or .npz file that is a pipe or compressed, are read into memory as a
/// whole.
std::unique_ptr<ElementReader> open_elements(const std::string& path, const FormatInfo* format = nullptr,
                                             const TableOptions& table = {});

/// Opens several files as one vector. Throws InputError if their elements differ in format.
std::unique_ptr<ElementReader> open_elements(const std::vector<std::string>& paths, const FormatInfo* format,
                                             const TableOptions& table = {});

/// Reads all elements that are left, without their keys. Calls `visit`, if there is one, with each portion.
Column read_all(ElementReader& elements, const std::function<void(const Column&)>& visit = {});

/// Reads all elements of a file, opened as by `open_elements`.
Column read_column(const std::string& path, const FormatInfo* format = nullptr,
                   const TableOptions& table = {});

// These read bytes in memory. The name appears in messages only.
Column parse_npy(std::span<const std::byte> file, std::string_view name, const FormatInfo* format = nullptr,
                 std::size_t portion = portion_bytes);
Column parse_text(std::string_view text, std::string_view name, const FormatInfo* format = nullptr,
                  std::size_t portion = portion_bytes);
/// A table as in a file with this extension: .csv, .tsv or .txt.
Column parse_table(std::string_view text, std::string_view name, std::string_view extension,
                   const TableOptions& table, const FormatInfo* format = nullptr,
                   std::size_t portion = portion_bytes);
/// `member` may be empty if the archive has only one.
Column parse_npz(std::span<const std::byte> file, std::string_view name, const std::string& member,
                 const FormatInfo* format = nullptr, std::size_t portion = portion_bytes);
/// Standard input: text, a .npy or a .npz file.
Column parse_pipe(std::span<const std::byte> bytes, std::string_view name, const FormatInfo* format = nullptr,
                  std::size_t portion = portion_bytes);
Column parse_raw(std::span<const std::byte> file, std::string_view name, const FormatInfo& stored,
                 const FormatInfo* format = nullptr, std::size_t portion = portion_bytes);

/// Reads one decimal or hexadecimal number, inf, infinity or nan, and rounds it once. Empty if the text is
/// none of these.
std::optional<Number> parse_number(std::string_view text, const FormatInfo& format);

}  // namespace samesum::harness
