#include "harness/input_text.hpp"

#include <utility>

#include "harness/text.hpp"

namespace samesum::harness {

namespace {

bool is_separator(char c) { return c == ',' || c == ';'; }
bool ends_a_number(char c) { return is_blank(c) || is_separator(c) || is_line_end(c); }

bool is_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a word may be what precedes the first comma of a number with commas between thousands.
bool begins_groups(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return word.size() <= 3 && !word.starts_with('0') && is_digits(word);
}

/// Whether a word may be what follows such a comma.
bool continues_groups(std::string_view word) {
  return word.size() >= 3 && is_digits(word.substr(0, 3)) &&
         (word.size() == 3 || (word[3] == '.' && is_digits(word.substr(4))));
}

/// Reads all numbers of a text. A number may begin in one block of the file and end in a later one.
class TextReader : public LineReader {
 public:
  using LineReader::LineReader;

  std::vector<std::string> notes() const override {
    std::vector<std::string> all = LineReader::notes();
    if (!has_columns_) append_note(all, thousands_);
    return all;
  }

 private:
  std::uint64_t take_numbers(std::uint64_t n, bool keep) override {
    std::uint64_t taken = 0;
    while (taken < n && has(1)) {
      const char c = text_[at_];
      if (is_line_end(c)) {
        finish_line();
        end_line();
      } else if (is_at_comment()) {
        skip_comment();
      } else if (is_separator(c)) {
        take_separator();
      } else if (is_blank(c)) {
        is_spaced_ = true;
        ++at_;
      } else {
        take_number(keep);
        ++taken;
      }
    }
    if (taken < n) finish_line();
    return taken;
  }

  enum class After { line_start, number, separator };

  void finish_line() {
    if (after_ == After::separator)
      refuse("empty field at the end of the line; remove the separator before it");
    if (numbers_ > 1 && groups_.empty()) has_columns_ = true;
    if (numbers_ > 1 && !groups_.empty() && thousands_.count++ == 0)
      thousands_.first = place(groups_at_ - before_) + shown(groups_) + " was read as " +
                         std::to_string(numbers_) + " numbers; if ',' separates thousands, remove it";
    after_ = After::line_start;
    separator_ = 0;
    numbers_ = 0;
  }

  void take_separator() {
    if (after_ != After::number) refuse("empty field before " + shown(text_.substr(at_, 1)));
    if (separator_ != 0 && separator_ != text_[at_])
      refuse("the line has both ',' and ';'; if ',' is a decimal comma, write a point instead");
    separator_ = text_[at_];
    after_ = After::separator;
    ++at_;
  }

  void skip_comment() {
    do {
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    } while (at_ == text_.size() && read_block());
  }

  void take_number(bool keep) {
    const std::string_view word = next_word();
    if (keep && !store_number(word, at_)) {
      const bool header = header_line_ == 0 || header_line_ == line_;
      refuse(shown(word) + " is not a number" +
             (is_special(word)              ? use_instead
              : word.find('#') != word.npos ? "; put a blank before # to begin a comment"
              : header                      ? "; if this line is a header, pass --header"
                                            : ""));
    }
    if (header_line_ == 0) header_line_ = line_;
    follow_groups(word);
    after_ = After::number;
    at_ += word.size();
  }

  /// Follows whether the line may be one number with commas between thousands, such as 1,234.50.
  void follow_groups(std::string_view word) {
    if (numbers_++ == 0) {
      groups_ = begins_groups(word) ? word : "";
      groups_at_ = before_ + at_;
    } else if (!groups_.empty()) {
      constexpr std::size_t longest = 30;
      const bool goes_on = separator_ == ',' && !is_spaced_ && groups_.find('.') == groups_.npos &&
                           groups_.size() < longest && continues_groups(word);
      if (goes_on)
        groups_.append(",").append(word);
      else
        groups_.clear();
    }
    is_spaced_ = false;
  }

  std::uint64_t header_line_ = 0;  ///< the first line with more than a comment; 0 before that line
  After after_ = After::line_start;
  char separator_ = 0;           ///< the separator of this line; 0 before the first one
  std::uint64_t numbers_ = 0;    ///< in this line
  bool is_spaced_ = false;       ///< there are blanks behind the last number
  std::string groups_;           ///< the line so far if it may be one number; else empty
  std::uint64_t groups_at_ = 0;  ///< where it begins in the text
  Remark thousands_;
  bool has_columns_ = false;  ///< a line has several numbers in any case
};

}  // namespace

bool is_special(std::string_view word) {
  const auto is_capital = [](char c) {
    return (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 128;
  };
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  if (!word.starts_with('#')) return word.find("1.#") != word.npos;
  return word == "#N/A" ||
         (word.size() > 2 && is_capital(word[1]) && (word.back() == '!' || word.back() == '?') &&
          std::ranges::none_of(word, is_small));
}

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

std::string LineReader::place(std::size_t at) const {
  return "line " + std::to_string(line_) + ", column " + std::to_string(before_ + at - line_start_ + 1) +
         ": ";
}

void LineReader::refuse(const std::string& problem) const {
  throw InputError{source_.name, place(at_) + problem};
}

std::vector<std::string> LineReader::notes() const {
  std::vector<std::string> all;
  append_note(all, overflows_);
  append_note(all, rounded_);
  return all;
}

void LineReader::append_note(std::vector<std::string>& notes, const Remark& remark) const {
  if (remark.count > 0)
    notes.push_back(printable(name()) + ": " + remark.first +
                    (remark.count > 1 ? " (the first of " + std::to_string(remark.count) + ")" : ""));
}

void LineReader::end_line() {
  const bool is_pair = text_[at_] == '\r' && has(2) && text_[at_ + 1] == '\n';
  at_ += is_pair ? 2 : 1;
  ++line_;
  line_start_ = before_ + at_;
}

std::string_view LineReader::next_word() {
  std::size_t size = 0;
  do {
    const auto first = text_.begin() + static_cast<std::ptrdiff_t>(at_);
    size = static_cast<std::size_t>(
        std::find_if(first + static_cast<std::ptrdiff_t>(size), text_.end(), ends_a_number) - first);
  } while (at_ + size == text_.size() && read_block());
  return std::string_view{text_}.substr(at_, size);
}

bool LineReader::store_number(std::string_view word, std::size_t at) {
  const std::optional<Number> number = parse_number(word, format());
  if (!number) return false;
  const std::size_t n = portion_.size();
  portion_.bytes.resize(portion_.bytes.size() + format().bytes);
  with_format(format(), [&]<class F>() { store<F>(portion_, n, static_cast<BitsOf<F>>(number->bits)); });
  const auto note = [&](Remark& remark, const std::string& text) {
    if (remark.count++ == 0) remark.first = place(at) + shown(word) + text;
  };
  if ((number->bits & ~format().sign_bit) == format().infinity && word.find_first_of("iI") == word.npos)
    note(overflows_, " is beyond the largest " + std::string{format().name} + " and was read as inf");
  constexpr std::size_t exact_digits = 15;  // 10^15 < 2^53
  if (source_.format || word.size() <= exact_digits) return true;
  const std::size_t point = word.find('.');
  const bool has_point = point != word.npos;
  if (has_point && word.find_first_not_of('0', point + 1) != word.npos) return true;
  const std::vector<double> terms = terms_lost(word.substr(0, point), number->to_double());
  if (terms.empty()) return true;
  if (has_point) {
    note(rounded_,
         " was rounded to fp64; without the point, samesum sum with the method exact adds it unrounded");
  } else {
    set_lost(portion_, n, terms.front());
    portion_.further_lost.insert(portion_.further_lost.end(), terms.begin() + 1, terms.end());
  }
  return true;
}

std::unique_ptr<ElementReader> open_text(Source source) {
  return std::make_unique<TextReader>(std::move(source));
}

}  // namespace samesum::harness
