#include "harness/input_parts.hpp"

namespace samesum::harness {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
bool is_separator(char c) { return c == ',' || c == ';'; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }
bool ends_a_number(char c) { return is_space(c) || is_separator(c) || is_line_end(c) || c == '#'; }

/// Parses the text and tracks the line and the column for messages.
class TextReader {
 public:
  TextReader(std::string_view text, std::string_view name, const FormatInfo& format)
      : text_{text}, name_{name}, column_{&format, {}} {}

  Column read() && {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_line_end(c))
        end_line();
      else if (c == '#')
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      else if (is_separator(c))
        take_separator();
      else if (is_space(c))
        ++at_;
      else
        take_number();
    }
    refuse_empty_field_at_the_end();
    return std::move(column_);
  }

 private:
  enum class After { line_start, number, separator };

  [[noreturn]] void refuse(const std::string& problem) const {
    throw InputError{name_, "line " + std::to_string(line_) + ", column " +
                                std::to_string(at_ - line_start_ + 1) + ": " + problem};
  }

  void refuse_empty_field_at_the_end() const {
    if (after_ == After::separator)
      refuse("empty field at the end of the line; remove the separator before it");
  }

  void end_line() {
    refuse_empty_field_at_the_end();
    at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
    ++line_;
    line_start_ = at_;
    after_ = After::line_start;
    separator_ = 0;
  }

  void take_separator() {
    if (after_ != After::number) refuse("empty field before " + shown(text_.substr(at_, 1)));
    if (separator_ != 0 && separator_ != text_[at_])
      refuse("the line has both ',' and ';'; if ',' is a decimal comma, write a point instead");
    separator_ = text_[at_];
    after_ = After::separator;
    ++at_;
  }

  void take_number() {
    const char* const first = text_.data() + at_;
    const char* const last = std::find_if(first, text_.data() + text_.size(), ends_a_number);
    const std::string_view word{first, last};
    const std::optional<Number> number = parse_number(word, *column_.format);
    if (!number) {
      const bool header = header_line_ == 0 || header_line_ == line_;
      refuse(shown(word) + " is not a number" +
             (header ? "; if this line is a header, put # before it" : ""));
    }
    if (header_line_ == 0) header_line_ = line_;
    append(*number);
    after_ = After::number;
    at_ += word.size();
  }

  void append(const Number& number) {
    const std::size_t n = column_.size();
    column_.bytes.resize(column_.bytes.size() + column_.format->bytes);
    with_format(*column_.format,
                [&]<class F>() { store<F>(column_, n, static_cast<BitsOf<F>>(number.bits)); });
  }

  std::string_view text_, name_;
  Column column_;
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
  std::size_t header_line_ = 0;  ///< the first line with more than a comment; 0 before that line
  After after_ = After::line_start;
  char separator_ = 0;  ///< the separator of this line; 0 before the first one
};

}  // namespace

Column parse_text(std::string_view text, std::string_view name, const FormatInfo* format) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw InputError{name, "line 1, column 1: the text is UTF-16; save it as UTF-8"};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of UTF-8
  return TextReader{text, name, format ? *format : format_info<fp64>()}.read();
}

}  // namespace samesum::harness
