/// Tables: text with a record per line, of one field per column, as RFC 4180 describes comma-separated
/// values.
#include <algorithm>
#include <charconv>
#include <compare>
#include <utility>

#include "harness/input_text.hpp"
#include "harness/text.hpp"

namespace samesum::harness {

namespace {

constexpr char skip_missing[] = "; pass --skip-missing to leave out such records";
constexpr char no_comment[] = "; # begins a comment only at the start of a line before the first record";

std::string_view trimmed(std::string_view field) {
  while (!field.empty() && is_blank(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_blank(field.back())) field.remove_suffix(1);
  return field;
}

/// The text of a field without its blanks and quotes.
std::string unquoted(std::string_view field) {
  std::string text{trimmed(field)};
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  text = text.substr(1, text.size() - 2);
  for (std::size_t at = 0; (at = text.find("\"\"", at)) != text.npos; ++at) text.erase(at, 1);
  return text;
}

/// Whether a field says that there is no number: it is empty, or one of the words that spreadsheets, R, SQL
/// and pandas write.
bool is_missing(std::string_view word) {
  std::string lower{word};
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  for (const std::string_view missing : {"", "na", "n/a", "#n/a", "nan", "null"})
    if (lower == missing) return true;
  return false;
}

/// The whole number that a text represents; empty for other text.
std::optional<std::size_t> column_number(std::string_view text) {
  std::size_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, n);
  return error == std::errc{} && stop == end ? std::optional{n} : std::nullopt;
}

class TableReader : public LineReader {
 public:
  TableReader(Source source, std::string_view separators)
      : LineReader{std::move(source)}, may_be_plain_text_{separators.back() == ' '} {
    if (!table().where.empty()) condition_ = parse_condition(table().where).value();
    if (!next_record(separators)) {
      for (const std::string& wanted : {table().column, table().by, condition_.column})
        if (!wanted.empty()) throw InputError{name(), "has no record, and no column " + shown(wanted)};
      return;
    }
    choose_separator(separators);
    const bool names =
        table().header || is_name(table().column) || is_name(table().by) || is_name(condition_.column);
    const bool commented = names && names_are_in_comment();
    const std::string_view first = commented ? comment_ : record();
    if (!table().counts) column_ = chosen_column(first, trimmed(table().column), "--column", names);
    if (!table().by.empty())
      by_ = chosen_column(first, trimmed(table().by), table().by_is_number ? "--weights" : "--by", names);
    if (!condition_.column.empty()) where_ = chosen_column(first, condition_.column, "--where", names);
    if (names && !commented) end_record();
    is_first_ = !names;
  }

 private:
  std::string place(std::size_t at) const override {
    return has_lines() ? LineReader::place(at) : "record " + std::to_string(records_ + 1) + ": ";
  }

  std::uint64_t take_numbers(std::uint64_t n, bool keep) override {
    std::uint64_t taken = 0;
    while (taken < n && next_record({&separator_, 1})) {
      records_ += std::exchange(empty_lines_, 0);
      taken += take_field(keep);
      end_record();
      ++records_;
      is_first_ = false;
    }
    portion_.records = records_;
    return taken;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> all = LineReader::notes();
    const auto note = [&](std::uint64_t count, const std::string& why) {
      if (count > 0)
        all.push_back(printable(name()) + ": " + std::to_string(count) +
                      (count == 1 ? " record was" : " records were") + " left out: " + why);
    };
    note(missing_, "the number is missing");
    note(unmet_, "--where does not hold");
    return all;
  }

  /// Whether a column is chosen by its name.
  static bool is_name(std::string_view wanted) { return !wanted.empty() && !column_number(wanted); }

  std::string_view record() const { return std::string_view{text_}.substr(at_, size_); }

  /// Moves to the next record, unless it is at one, and reads all of it. Empty lines are no records, and
  /// before the first record comments. Returns false at the end of the file.
  bool next_record(std::string_view separators) {
    while (size_ == 0 && has(1)) {
      if (is_line_end(text_[at_])) {
        if (before_ + at_ == line_start_) count_empty_line();
        end_line();
        comment_.clear();
      } else if (is_first_ && is_at_comment()) {
        take_comment();
      } else {
        measure_record(separators);
        if (trimmed(record()).empty() && separators != "\t") {
          count_empty_line();
          end_record();
        }
      }
    }
    return size_ > 0;
  }

  /// An empty line between the records of a table of one column is how programs write a missing number: it
  /// is no record, but has a place.
  void count_empty_line() { empty_lines_ += columns_ == 1 && !is_first_; }

  /// Passes over a comment and the end of its line, and keeps its text.
  void take_comment() {
    std::size_t size = 1;
    while (has(size + 1) && !is_line_end(text_[at_ + size])) ++size;
    comment_ = text_.substr(at_ + 1, size - 1);
    at_ += size;
    if (has(1)) end_line();
  }

  /// Whether the comment directly before the first record holds the names of the columns, as numpy.savetxt
  /// writes them: it has a field per column, and the record holds numbers instead of the names.
  bool names_are_in_comment() const {
    if (trimmed(comment_).empty()) return false;
    bool has_number = false, has_name = false;
    const auto ignore = [](std::size_t, std::string_view) {};
    const std::size_t count = for_each_field(record(), [&](std::size_t, std::string_view field) {
      const std::string text = unquoted(field);
      const bool is_number = parse_number(text, format()).has_value();
      has_number |= is_number;
      for (const std::string_view wanted : {table().column, table().by, condition_.column})
        has_name |= !is_number && trimmed(text) == trimmed(wanted);
    });
    return has_number && !has_name && for_each_field(comment_, ignore) == count;
  }

  /// Sets the size of the record that begins here. It ends with the line, outside of quotes.
  void measure_record(std::string_view separators) {
    bool quoted = false, at_start = true;
    for (size_ = 0; has(size_ + 1); ++size_) {
      const char c = text_[at_ + size_];
      if (quoted) {
        if (c != '"') continue;
        const bool is_pair = has(size_ + 2) && text_[at_ + size_ + 1] == '"';
        size_ += is_pair;
        quoted = is_pair;
      } else {
        if (is_line_end(c)) return;
        quoted = at_start && c == '"';
        at_start = separators.find(c) != separators.npos || (at_start && is_blank(c));
      }
    }
    if (quoted) refuse("a quote in this record is not closed; add '\"'");
  }

  /// Calls visit(character, index) for each character of a record that is outside of quotes.
  template <class Visit>
  static void for_each_unquoted(std::string_view all, std::string_view separators, Visit visit) {
    bool at_start = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (at_start && all[i] == '"') {
        for (++i; i < all.size() && (all[i] != '"' || (i + 1 < all.size() && all[i + 1] == '"')); ++i)
          if (all[i] == '"') ++i;
        at_start = false;
        continue;
      }
      at_start = separators.find(all[i]) != separators.npos || (at_start && is_blank(all[i]));
      visit(all[i], i);
    }
  }

  /// Sets the separator: the first one that this record and the next one have. A name of a column may hold
  /// others, as in "price (EUR; net),quantity". If they have none in common, the first one of this record.
  void choose_separator(std::string_view separators) {
    const std::string_view next = next_line(), ranked = separators.substr(0, separators.find(' '));
    const auto has_it = [&](std::string_view line, char separator) {
      bool found = false;
      for_each_unquoted(line, separators, [&](char c, std::size_t) { found |= c == separator; });
      return found;
    };
    separator_ = separators.back() == ' ' ? ' ' : separators.front();
    for (const bool in_both : {true, false})
      for (const char c : ranked)
        if (has_it(record(), c) && (!in_both || has_it(next, c))) {
          separator_ = c;
          return;
        }
  }

  /// The first line after this record that is not empty.
  std::string_view next_line() {
    const auto at_line_end = [&](std::size_t i) { return is_line_end(text_[at_ + i]); };
    for (std::size_t start = size_, end = 0; has(start + 1); start = end) {
      while (has(start + 1) && at_line_end(start)) ++start;
      for (end = start; has(end + 1) && !at_line_end(end);) ++end;
      if (end > start) return std::string_view{text_}.substr(at_ + start, end - start);
    }
    return {};
  }

  /// Calls visit(index, field) for each field of a record, and returns their number.
  template <class Visit> std::size_t for_each_field(std::string_view all, Visit visit) const {
    std::size_t count = 0, start = 0;
    const auto end_at = [&](std::size_t end) {
      const std::string_view field = all.substr(start, end - start);
      start = end + 1;
      if (separator_ != ' ' || !trimmed(field).empty()) visit(count++, field);
    };
    for_each_unquoted(all, {&separator_, 1}, [&](char c, std::size_t i) {
      if (c == separator_ || (separator_ == ' ' && is_blank(c))) end_at(i);
    });
    end_at(all.size());
    return count;
  }

  /// Returns the index of the column that the user named with `option`, and sets the number of columns. The
  /// first line holds names if `names` is true.
  std::size_t chosen_column(std::string_view line, std::string_view wanted, const std::string& option,
                            bool names) {
    const std::optional<std::size_t> number = column_number(wanted);
    std::size_t same_name = 0, numbers = 0, found = 0;
    std::string listing;
    columns_ = for_each_field(line, [&](std::size_t i, std::string_view field) {
      const std::string text = unquoted(field);
      numbers += text.empty() || parse_number(text, format());
      if (!wanted.empty() && trimmed(text) == wanted) {
        found = i;
        ++same_name;
      }
      append_shown(listing, text);
    });
    listing.insert(0, ": ");
    const bool has_names = names || numbers == 0 || same_name > 0;
    const std::string count = std::to_string(columns_) + (columns_ == 1 ? " column" : " columns"),
                      by_number = "choose one with " + option + " N, counted from 1";
    if (wanted.empty() && columns_ == 1) return 0;
    if (wanted.empty())
      throw InputError{name(), "has " + count +
                                   (has_names ? listing + "; choose one with " + option + " NAME"
                                              : "; " + by_number + ", or " + to_read_all())};
    if (names && same_name == 1) return found;
    if (names && same_name > 1)
      throw InputError{name(), "several columns are named " + shown(wanted) + "; " + by_number};
    if (!number || *number == 0 || *number > columns_)
      throw InputError{
          name(), "no column " + shown(wanted) + "; it has " + count + (number ? ", counted from 1" : "") +
                      (has_names ? listing : "") +
                      (!names && same_name > 0 ? "; to choose one by its name, pass --header" : "")};
    return *number - 1;
  }

  /// How to read the file as a text of numbers instead.
  std::string to_read_all() const {
    if (!may_be_plain_text_) return "name the file .txt";
    std::vector<std::string> options;
    for (const auto& [is_given, option] : {std::pair{table().header, "--header"},
                                           {table().skip_missing, "--skip-missing"},
                                           {!table().column.empty(), "--column"},
                                           {!table().where.empty(), "--where"}})
      if (is_given) options.push_back(option);
    return "leave out " + listed(options, " and ") + " to read all numbers";
  }

  /// Whether the condition holds for a field. For one that is missing it does not.
  bool is_met(std::string_view field) {
    const std::string word = unquoted(field);
    if (is_missing(trimmed(word))) return false;
    const std::optional<WrittenNumber> number = parse_written(trimmed(word));
    if (!number) refuse(shown(word) + " in the column of --where is not a number");
    return condition_.holds(*number);
  }

  /// Reads the record; returns whether its element takes part.
  bool take_field(bool keep) {
    std::string_view chosen, key, tested;
    const std::size_t count = for_each_field(record(), [&](std::size_t i, std::string_view field) {
      if (i == column_) chosen = field;
      if (i == by_) key = field;
      if (i == where_) tested = field;
    });
    if (count != columns_)
      refuse("this record has " + std::to_string(count) + (count == 1 ? " field" : " fields") +
             ", and the first one " + std::to_string(columns_) +
             (record().starts_with('#') ? no_comment : ""));
    if (!condition_.column.empty() && !is_met(tested)) {
      ++unmet_;
      return false;
    }
    const std::string word = table().counts ? "0" : unquoted(chosen);
    const bool lacks_weight = table().by_is_number && is_missing(trimmed(unquoted(key)));
    if (table().skip_missing && (lacks_weight || is_missing(trimmed(word)))) {
      ++missing_;
      return false;
    }
    if (!keep) return true;
    if (!table().by.empty()) portion_.keys.push_back(unquoted(key));
    if (table().pairs) portion_.places.push_back(records_);
    const std::string_view shortest = trimmed(chosen).empty() ? chosen : trimmed(chosen);
    const auto at = static_cast<std::size_t>(shortest.data() - text_.data());
    if (store_number(word, at)) return true;
    const bool has_hash = record().starts_with('#') || word.find('#') != word.npos;
    at_ = at;
    if (word.empty())
      refuse((has_lines() ? "the field is empty" : "the number is null") + std::string{skip_missing} +
             ", or give it a number");
    refuse(shown(word) + " is not a number" +
           (is_special(word)   ? use_instead
            : has_hash         ? no_comment
            : is_missing(word) ? skip_missing
            : is_list(word)    ? "; to read several numbers per line, " + to_read_all()
            : is_first_        ? "; if this line is a header, pass --header"
            : word.find(',') != word.npos
                ? "; if ',' is a decimal comma, write a point instead; if it separates thousands, remove it"
                : ""));
  }

  /// Whether blanks separate numbers in a field.
  bool is_list(std::string_view field) const {
    const std::size_t first = field.find(' '), last = field.rfind(' ');
    return first != field.npos && parse_number(field.substr(0, first), format()) &&
           parse_number(field.substr(last + 1), format());
  }

  void end_record() {
    for (; size_ > 0; --size_)
      if (is_line_end(text_[at_])) {
        const bool is_pair = size_ > 1 && text_[at_] == '\r' && text_[at_ + 1] == '\n';
        end_line();
        size_ -= is_pair;
      } else {
        ++at_;
      }
  }

  bool may_be_plain_text_;  ///< all its numbers would be read without the options of tables
  char separator_ = ',';
  std::size_t size_ = 0;  ///< of the record that begins here; 0 before it has been measured
  std::size_t columns_ = 1, column_ = 0, by_ = 0, where_ = 0;
  Condition condition_{};                  ///< without a column if there is none
  std::uint64_t missing_ = 0, unmet_ = 0;  ///< records that are left out
  std::uint64_t records_ = 0;              ///< that have ended, with empty lines before them
  std::uint64_t empty_lines_ = 0;          ///< behind the last record
  bool is_first_ = true;                   ///< no record or header has ended
  std::string comment_;                    ///< text of the comment directly before the first record
};

}  // namespace

namespace {

/// Rounding keeps the order, so what it took decides only between numbers with the same double, and each of
/// its terms only between those with the same terms before it.
std::partial_ordering compare(const WrittenNumber& x, const WrittenNumber& y) {
  std::partial_ordering order = x.rounded <=> y.rounded;
  const auto term = [](const WrittenNumber& z, std::size_t i) { return i < z.lost.size() ? z.lost[i] : 0; };
  for (std::size_t i = 0; order == 0 && i < std::max(x.lost.size(), y.lost.size()); ++i)
    order = term(x, i) <=> term(y, i);
  return order;
}

}  // namespace

bool Condition::holds(const WrittenNumber& x) const {
  const std::partial_ordering order = compare(x, number);
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  if (op == ">=") return order >= 0;
  return op == "==" ? order == 0 : order != 0;
}

std::optional<Condition> parse_condition(std::string_view text) {
  const std::size_t at = text.find_first_of("<>=!");
  if (at == text.npos) return {};
  const std::size_t end = text.find_first_not_of("<>=!", at);
  if (end == text.npos) return {};
  std::string op{text.substr(at, end - at)};
  if (op == "=") op = "==";
  for (const std::string_view known : {"<", "<=", ">", ">=", "==", "!="})
    if (op == known) {
      const std::string_view column = trimmed(text.substr(0, at));
      const std::optional<WrittenNumber> number = parse_written(trimmed(text.substr(end)));
      if (column.empty() || !number) return {};
      return Condition{std::string{column}, op, *number};
    }
  return {};
}

std::unique_ptr<ElementReader> open_table(Source source, std::string_view separators) {
  return std::make_unique<TableReader>(std::move(source), separators);
}

}  // namespace samesum::harness
