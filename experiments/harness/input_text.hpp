/// What the readers of text share.
#pragma once

#include "harness/input_parts.hpp"

namespace samesum::harness {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
inline bool is_line_end(char c) { return c == '\n' || c == '\r'; }

/// Whether a word is what another program writes instead of a number: a spreadsheet's #N/A, or capitals
/// between # and ! or ?, such as #DIV/0!, or infinity and NaN as MSVC spells them, such as 1.#INF.
bool is_special(std::string_view word);
inline constexpr char use_instead[] = "; write nan or inf instead";

/// Numbers of a kind that deserves a note.
struct Remark {
  std::string first = {};  ///< what the note says of the first one
  std::uint64_t count = 0;
};

/// Holds a part of the text, and tracks the line and the column for messages.
class LineReader : public ElementReader {
 public:
  explicit LineReader(Source source);
  std::uint64_t skip(std::uint64_t n) override { return take_numbers(n, false); }
  std::vector<std::string> notes() const override;

 protected:
  /// Reads the next n numbers, or all if fewer are left, and returns their number. Only parses and stores
  /// them if `keep` is true.
  virtual std::uint64_t take_numbers(std::uint64_t n, bool keep) = 0;

  /// Returns whether n characters are left, and reads blocks until the part has them.
  bool has(std::size_t n) {
    while (text_.size() - at_ < n && read_block()) {
    }
    return text_.size() - at_ >= n;
  }
  /// Drops the characters that have been parsed from the part, and appends the next block. Returns false at
  /// the end of the file.
  bool read_block();
  /// Describes a character of the part for messages: "line 1, column 2: ".
  virtual std::string place(std::size_t at) const;
  [[noreturn]] void refuse(const std::string& problem) const;
  void end_line();
  /// Returns the characters up to the one that ends a number, and reads blocks until the part has them.
  std::string_view next_word();
  /// Whether a comment begins here, if one may: # does so unless it begins an error of a spreadsheet.
  bool is_at_comment() { return text_[at_] == '#' && !is_special(next_word()); }
  /// Appends the number that the word represents to the portion; returns false if it represents none. The
  /// word begins at this index of the part.
  bool store_number(std::string_view word, std::size_t at);
  void append_note(std::vector<std::string>& notes, const Remark& remark) const;
  const std::string& name() const { return source_.name; }
  const TableOptions& table() const { return source_.table; }
  bool has_lines() const { return source_.has_lines; }

  std::string text_;          ///< a part of the file
  std::size_t at_ = 0;        ///< index of the next character in the part
  std::uint64_t before_ = 0;  ///< number of characters before the part
  std::uint64_t line_ = 1, line_start_ = 0;

 private:
  void fill_portion() override;
  Source source_;
  Remark overflows_, rounded_;
};

}  // namespace samesum::harness
