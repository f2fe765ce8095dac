#include "harness/input_text.hpp"

#include <utility>

namespace samesum::harness {

namespace {

bool is_separator(char c) { return c == ',' || c == ';'; }
bool ends_a_number(char c) { return is_blank(c) || is_separator(c) || is_line_end(c) || c == '#'; }

/// Reads all numbers of a text. A number may begin in one block of the file and end in a later one.
class TextReader : public LineReader {
 public:
  using LineReader::LineReader;

 private:
  std::uint64_t take_numbers(std::uint64_t n, bool keep) override {
    std::uint64_t taken = 0;
    while (taken < n && has(1)) {
      const char c = text_[at_];
      if (is_line_end(c)) {
        refuse_empty_field_at_the_end();
        end_line();
        after_ = After::line_start;
        separator_ = 0;
      } else if (c == '#') {
        skip_comment();
      } else if (is_separator(c)) {
        take_separator();
      } else if (is_blank(c)) {
        ++at_;
      } else {
        take_number(keep);
        ++taken;
      }
    }
    if (taken < n) refuse_empty_field_at_the_end();
    return taken;
  }

  enum class After { line_start, number, separator };

  void refuse_empty_field_at_the_end() const {
    if (after_ == After::separator)
      refuse("empty field at the end of the line; remove the separator before it");
  }

  void take_separator() {
    if (after_ != After::number) refuse("empty field before " + shown(text_.substr(at_, 1)));
    if (separator_ != 0 && separator_ != text_[at_])
      refuse("the line has both ',' and ';'; if ',' is a decimal comma, write a point instead");
    separator_ = text_[at_];
    after_ = After::separator;
    ++at_;
  }

  /// Returns the characters up to the one that ends the number, and reads blocks until the part has them.
  std::string_view next_word() {
    std::size_t size = 0;
    do {
      const auto first = text_.begin() + static_cast<std::ptrdiff_t>(at_);
      size = static_cast<std::size_t>(
          std::find_if(first + static_cast<std::ptrdiff_t>(size), text_.end(), ends_a_number) - first);
    } while (at_ + size == text_.size() && read_block());
    return std::string_view{text_}.substr(at_, size);
  }

  void take_number(bool keep) {
    const std::string_view word = next_word();
    if (keep && !store_number(word)) {
      const bool header = header_line_ == 0 || header_line_ == line_;
      refuse(shown(word) + " is not a number" + (header ? "; if this line is a header, pass --header" : ""));
    }
    if (header_line_ == 0) header_line_ = line_;
    after_ = After::number;
    at_ += word.size();
  }

  std::uint64_t header_line_ = 0;  ///< the first line with more than a comment; 0 before that line
  After after_ = After::line_start;
  char separator_ = 0;  ///< the separator of this line; 0 before the first one
};

}  // namespace

LineReader::LineReader(Source source)
    : ElementReader{source.format ? *source.format : format_info<fp64>()}, source_{std::move(source)} {
  has(3);
  if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff"))
    throw InputError{source_.name, "line 1, column 1: the text is UTF-16; save it as UTF-8"};
  if (text_.starts_with("\xef\xbb\xbf")) line_start_ = at_ = 3;  // the byte order mark of UTF-8
}

void LineReader::fill_portion() {
  portion_.bytes.clear();
  portion_.lost.clear();
  portion_.further_lost.clear();
  portion_.keys.clear();
  take_numbers(std::max(source_.portion / sizeof(double), std::size_t{1}), true);
}

bool LineReader::read_block() {
  text_.erase(0, at_);
  before_ += std::exchange(at_, 0);
  const std::size_t kept = text_.size();
  text_.resize(kept + std::max(kept, source_.portion));  // doubles, so that long numbers take linear time
  text_.resize(kept + source_.bytes->read(std::as_writable_bytes(std::span{text_}).subspan(kept)));
  return text_.size() > kept;
}

void LineReader::refuse(const std::string& problem) const {
  throw InputError{source_.name, "line " + std::to_string(line_) + ", column " +
                                     std::to_string(before_ + at_ - line_start_ + 1) + ": " + problem};
}

void LineReader::end_line() {
  const bool is_pair = text_[at_] == '\r' && has(2) && text_[at_ + 1] == '\n';
  at_ += is_pair ? 2 : 1;
  ++line_;
  line_start_ = before_ + at_;
}

void LineReader::skip_comment() {
  do {
    at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
  } while (at_ == text_.size() && read_block());
}

bool LineReader::store_number(std::string_view word) {
  const std::optional<Number> number = parse_number(word, format());
  if (!number) return false;
  const std::size_t n = portion_.size();
  portion_.bytes.resize(portion_.bytes.size() + format().bytes);
  with_format(format(), [&]<class F>() { store<F>(portion_, n, static_cast<BitsOf<F>>(number->bits)); });
  constexpr std::size_t exact_digits = 15;  // 10^15 < 2^53
  if (source_.format || word.size() <= exact_digits) return true;
  if (const std::vector<double> terms = terms_lost(word, number->to_double()); !terms.empty()) {
    set_lost(portion_, n, terms.front());
    portion_.further_lost.insert(portion_.further_lost.end(), terms.begin() + 1, terms.end());
  }
  return true;
}

std::unique_ptr<ElementReader> open_text(Source source) {
  return std::make_unique<TextReader>(std::move(source));
}

}  // namespace samesum::harness
