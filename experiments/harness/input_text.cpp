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

std::string_view without_sign(std::string_view word) {
  return word.substr(word.starts_with('-') || word.starts_with('+') ? 1 : 0);
}

/// Whether words, joined by commas, may be one number with commas between thousands, as 1,234.50.
bool has_thousands(std::string_view words) {
  const std::size_t point = std::min(words.find('.'), words.size() - 1);
  if (!is_digits(words.substr(point + 1))) return false;
  words = without_sign(words.substr(0, words[point] == '.' ? point : words.npos));
  const std::size_t first = words.find(',');
  if (first > 3 || words.starts_with('0') || !is_digits(words.substr(0, first))) return false;
  for (words.remove_prefix(first); !words.empty(); words.remove_prefix(4))
    if (words.size() < 4 || words[0] != ',' || !is_digits(words.substr(1, 3))) return false;
  return true;
}

/// Whether words, joined by commas, may be one number with a decimal comma, as 1,5 or 1,5e3.
bool has_decimal_comma(std::string_view words) {
  words = without_sign(words);
  const std::size_t comma = words.find(','), end = words.find_first_of("eE");
  return is_digits(words.substr(0, comma)) && is_digits(words.substr(comma + 1, end - comma - 1));
}

/// Reads all numbers of a text. A number may begin in one block of the file and end in a later one.
class TextReader : public LineReader {
 public:
  using LineReader::LineReader;

  std::vector<std::string> notes() const override {
    std::vector<std::string> all = LineReader::notes();
    if (!has_columns_) append_note(all, decimals_.count > 0 ? decimals_ : thousands_);
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
    if (numbers_ > 1) remark_commas();
    after_ = After::line_start;
    separator_ = 0;
    numbers_ = 0;
  }

  void remark_commas() {
    const bool thousands = !words_.empty() && has_thousands(words_);
    if (words_.empty() || (!thousands && !has_decimal_comma(words_))) {
      has_columns_ = true;
    } else if (Remark& remark = thousands ? thousands_ : decimals_; remark.count++ == 0) {
      remark.first =
          place(words_at_ - before_) + shown(words_) + " was read as " + std::to_string(numbers_) +
          " numbers; if ',' " +
          (thousands ? "separates thousands, remove it" : "is a decimal comma, write a point instead");
    }
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
    join(word);
    after_ = After::number;
    at_ += word.size();
  }

  /// Joins the words of a line in which commas may belong to one number: those of 1,234.50 and 1,5.
  void join(std::string_view word) {
    constexpr std::size_t longest = 30;
    if (numbers_++ == 0) {
      words_ = word.size() < longest ? word : "";
      words_at_ = before_ + at_;
    } else if (separator_ == ',' && !is_spaced_ && words_.find('.') == words_.npos && !words_.empty() &&
               words_.size() < longest) {
      words_.append(",").append(word);
    } else {
      words_.clear();
    }
    is_spaced_ = false;
  }

  std::uint64_t header_line_ = 0;  ///< the first line with more than a comment; 0 before that line
  After after_ = After::line_start;
  char separator_ = 0;          ///< the separator of this line; 0 before the first one
  std::uint64_t numbers_ = 0;   ///< in this line
  bool is_spaced_ = false;      ///< there are blanks behind the last number
  std::string words_;           ///< the line so far if it may be one number; else empty
  std::uint64_t words_at_ = 0;  ///< where it begins in the text
  Remark thousands_, decimals_;
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
  portion_.places.clear();
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
  if (source_.format) return true;
  const std::vector<double> terms = terms_lost(word, number->to_double());
  if (terms.empty()) return true;
  if (word.find('.') != word.npos) {
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
