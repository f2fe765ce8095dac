/// Headers of NumPy's .npy files, versions 1.0 to 3.0, as specified in numpy.lib.format.
#include "harness/input_npy_header.hpp"

namespace samesum::harness {

namespace {

constexpr std::size_t longest_header = 65536, most_dimensions = 64;  // as many as NumPy allows

/// Parses the Python dict of the header. `start` is its offset in the file, for messages.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::size_t start, std::string_view name)
      : text_{text}, start_{start}, name_{name} {}

  NpyHeader read() && {
    NpyHeader header;
    bool seen[3] = {};
    const auto first_time = [&](bool& key) {
      if (key) refuse("duplicate key");
      key = true;
    };
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        first_time(seen[0]);
        header.descr = element_type();
      } else if (key == "fortran_order") {
        first_time(seen[1]);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        first_time(seen[2]);
        header.shape = shape();
      } else {
        refuse("unknown key " + shown(key));
      }
      if (!take(',') && !next_is('}')) refuse("',' or '}' expected");
    }
    skip_space();
    if (at_ != text_.size()) refuse("text after the dict");
    if (!seen[0] || !seen[1] || !seen[2]) refuse("the dict lacks 'descr', 'fortran_order' or 'shape'");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw InputError{name_, "bad header at offset " + std::to_string(start_ + at_) + ": " + problem};
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }

  bool take(char c) {
    const bool here = next_is(c);
    at_ += here;
    return here;
  }

  void expect(char c) {
    if (!take(c)) refuse(std::string{"'"} + c + "' expected");
  }

  std::string_view string() {
    const char quote = next_is('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) refuse("unterminated string");
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  std::string element_type() {
    if (next_is('[') || next_is('(') || next_is('{'))
      refuse("'descr' is a structured type; save one field of it: numpy.save(path, x['field'])");
    return std::string{string()};
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return word == "True";
      }
    refuse("'fortran_order' is neither True nor False");
  }

  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> dimensions;
    expect('(');
    while (!take(')')) {
      if (dimensions.size() == most_dimensions) refuse("'shape' has too many dimensions");
      dimensions.push_back(dimension());
      const bool comma = take(',');
      if (!comma && (dimensions.size() == 1 || !next_is(')'))) refuse("',' expected in 'shape'");
    }
    return dimensions;
  }

  std::uint64_t dimension() {
    if (next_is('-')) refuse("'shape' has a negative dimension");
    const std::size_t first = at_;
    std::uint64_t n = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (n >= std::uint64_t{1} << 59) refuse("'shape' has a dimension that is too large");
      n = 10 * n + static_cast<std::uint64_t>(text_[at_] - '0');
    }
    if (at_ == first) refuse("'shape' has a dimension that is not a number");
    take('L');  // suffix of long integers in Python 2
    return n;
  }

  std::string_view text_;
  std::size_t start_, at_ = 0;
  std::string_view name_;
};

}  // namespace

NpyHeader read_npy_header(Bytes& file, std::string_view name) {
  std::string head;
  const auto read = [&](std::size_t size) {  // until the head has this size, or the file ends
    const std::size_t before = head.size();
    head.resize(size);
    head.resize(before + file.read(std::as_writable_bytes(std::span{head}).subspan(before)));
  };
  const auto need = [&](std::size_t size) {
    if (head.size() < size) read(size);
    if (head.size() < size)
      throw InputError{name, "cut short: the header needs " + std::to_string(size) +
                                 " bytes, and the file has " + std::to_string(head.size())};
  };
  read(npy_magic.size());
  if (!npy_magic.starts_with(head))
    throw InputError{name, "offset 0: not a .npy file, which begins with \\x93NUMPY"};
  need(npy_magic.size() + 2);
  const int major = static_cast<unsigned char>(head[6]), minor = static_cast<unsigned char>(head[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw InputError{name, "offset 6: version " + std::to_string(major) + "." + std::to_string(minor) +
                               " of .npy is not supported; supported are 1.0, 2.0 and 3.0"};
  const std::size_t offset = major == 1 ? 10 : 12;
  need(offset);
  const std::byte* const length = std::as_bytes(std::span{head}).data() + 8;
  const std::size_t size =
      major == 1 ? load<std::uint16_t>(length, false) : load<std::uint32_t>(length, false);
  if (size > longest_header)
    throw InputError{name, "offset 8: a header of " + std::to_string(size) + " bytes is too long; " +
                               "an array of numbers needs no more than " + std::to_string(longest_header)};
  need(offset + size);
  return HeaderReader{std::string_view{head}.substr(offset), offset, name}.read();
}

}  // namespace samesum::harness
