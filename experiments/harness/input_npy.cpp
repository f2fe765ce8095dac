#include <cmath>

#include "harness/input_npy_header.hpp"
#include "samesum/base/text.hpp"

namespace samesum::harness {

namespace {

struct ElementType {
  char kind;  ///< in NumPy's notation: f, i, u or b
  std::size_t bytes;
  bool big_endian;
};

/// Names an unsupported type and the remedy.
std::string_view remedy(std::string_view type) {
  switch (type.front()) {
    case 'f':
      return "longdouble; save it with astype('<f8') if fp64 is precise enough";
    case 'c':
      return "complex; save its real and imaginary parts as two files";
    case 'O':
      return "Python objects; save it with astype('<f8')";
    case 'S':
    case 'a':
    case 'U':
      return "strings; save it with astype('<f8'), or as text";
    case 'M':
    case 'm':
      return "dates or times; save it with astype('<i8')";
    case 'V':
      return "structured or opaque; bfloat16 can be saved as raw data: x.tofile('name.bf16')";
    default:
      return "unknown; known are f2 f4 f8, i1 to i8, u1 to u8 and b1";
  }
}

ElementType element_type(std::string_view descr, std::string_view name) {
  const auto refuse = [&](std::string_view problem) {
    throw InputError{name, "the element type " + shown(descr) + " is " + std::string{problem}};
  };
  if (descr.size() < 2 || std::string_view{"<>|="}.find(descr[0]) == std::string_view::npos)
    refuse("not a byte order and a type, such as '<f8'");
  const std::string_view type = descr.substr(1);
  constexpr std::string_view known[] = {"f2", "f4", "f8", "i1", "i2", "i4",
                                        "i8", "u1", "u2", "u4", "u8", "b1"};
  if (std::find(std::begin(known), std::end(known), type) == std::end(known)) refuse(remedy(type));
  const auto bytes = static_cast<std::size_t>(type[1] - '0');
  if (bytes > 1 && descr[0] != '<' && descr[0] != '>') refuse("without a byte order; '<' or '>' is needed");
  return {type[0], bytes, descr[0] == '>'};
}

/// Number of bytes of the elements according to the header.
std::uint64_t size_of_elements(const NpyHeader& header, std::size_t element, std::string_view name) {
  std::uint64_t bytes = element;
  bool none = false;
  for (const std::uint64_t n : header.shape) {
    none |= n == 0;
    if (n == 0) continue;
    if (bytes > (std::uint64_t{1} << 63) / n)
      throw InputError{name, "the header's shape is too large: its product overflows"};
    bytes *= n;
  }
  return none ? 0 : bytes;
}

void check_size_of_elements(std::uint64_t needed, std::uint64_t available, std::string_view name) {
  if (needed != available)
    throw InputError{name, std::string{available < needed ? "cut short" : "too long"} +
                               ": the header's shape needs " + std::to_string(needed) +
                               " bytes of data, and the file has " + std::to_string(available)};
}

/// Converts the place of an element in C order, in which the last axis varies fastest, to an index per axis.
std::vector<std::uint64_t> index_of(std::uint64_t place, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; place /= shape[axis]) index[axis] = place % shape[axis];
  return index;
}

/// Copies an array in Fortran order, in which the first axis varies fastest, to C order.
std::vector<std::byte> to_c_order(std::span<const std::byte> data, std::size_t element,
                                  const std::vector<std::uint64_t>& shape) {
  std::vector<std::byte> result(data.size());
  std::vector<std::size_t> stride(shape.size()), index(shape.size());
  for (std::size_t axis = 0, bytes = element; axis < shape.size(); bytes *= shape[axis++])
    stride[axis] = bytes;
  for (std::size_t to = 0, from = 0; to < data.size(); to += element) {
    std::memcpy(&result[to], &data[from], element);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) break;
      from -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

__extension__ using Int128 = __int128;

struct Integer {
  bool negative;
  std::uint64_t magnitude;
};

Integer load_integer(const std::byte* from, const ElementType& type) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < type.bytes; ++i)
    bits = bits << 8 | std::to_integer<std::uint64_t>(from[type.big_endian ? i : type.bytes - 1 - i]);
  const std::uint64_t sign = std::uint64_t{1} << (8 * type.bytes - 1);
  const bool negative = type.kind == 'i' && (bits & sign) != 0;
  return {negative, negative ? (sign - bits) + sign : bits};
}

const FormatInfo& float_format(std::size_t bytes) {
  return bytes == 2 ? format_info<fp16>() : bytes == 4 ? format_info<fp32>() : format_info<fp64>();
}

class NpyReader : public BinaryReader {
 public:
  NpyReader(Source source, NpyHeader header, ElementType type, std::uint64_t size, bool chosen_format)
      : BinaryReader{std::move(source), type.kind == 'f' ? float_format(type.bytes) : format_info<fp64>(),
                     type.bytes, size},
        header_{std::move(header)},
        type_{type},
        chosen_format_{chosen_format} {}

  std::vector<std::uint64_t> shape() const override { return header_.shape; }

 private:
  void check_size(std::uint64_t bytes) const override { check_size_of_elements(size(), bytes, name()); }

  void convert(std::vector<std::byte>& stored, std::uint64_t first) override {
    if (type_.kind == 'f')
      convert_elements(stored, type_.big_endian, float_format(type_.bytes), portion_);
    else
      convert_integers(stored, first);
  }

  void convert_integers(std::span<const std::byte> stored, std::uint64_t first) {
    const std::size_t n = stored.size() / type_.bytes;
    portion_.bytes.resize(n * format().bytes);
    portion_.lost.clear();
    with_format(format(), [&]<class F>() {
      for (std::size_t i = 0; i < n; ++i) {
        const Integer x = load_integer(&stored[i * type_.bytes], type_);
        if (type_.kind == 'b' && x.magnitude > 1) refuse(first + i, x, "which is not a bool");
        const BitsOf<F> bits = round_to_bits<F>(x.negative, x.magnitude, 0);
        store<F>(portion_, i, bits);
        if (!chosen_format_ && std::bit_width(x.magnitude) > Format<F>::precision)
          keep_lost(i, x, Number{&format(), bits});
      }
    });
  }

  void keep_lost(std::size_t i, const Integer& x, Number rounded) {
    const auto lost = static_cast<double>(static_cast<Int128>(x.magnitude) -
                                          static_cast<Int128>(std::abs(rounded.to_double())));
    set_lost(portion_, i, x.negative ? -lost : lost);
  }

  [[noreturn]] void refuse(std::uint64_t place, const Integer& x, const std::string& problem) const {
    const std::string index =
        listed(index_of(place, header_.shape), ", ", [](std::uint64_t i) { return std::to_string(i); });
    throw InputError{name(), "element [" + index + "] is " + (x.negative ? "-" : "") +
                                 std::to_string(x.magnitude) + ", " + problem};
  }

  NpyHeader header_;
  ElementType type_;
  bool chosen_format_;  ///< by the user, who then wants the elements rounded
};

}  // namespace

std::unique_ptr<ElementReader> open_npy(Source source) {
  NpyHeader header = read_npy_header(*source.bytes, source.name);
  const ElementType type = element_type(header.descr, source.name);
  const std::uint64_t size = size_of_elements(header, type.bytes, source.name);
  const bool reorder = header.fortran_order && header.shape.size() > 1;
  if (const auto available = source.bytes->left(); available && !reorder) {
    check_size_of_elements(size, *available, source.name);
  } else {
    std::vector<std::byte> data = read_rest(*source.bytes);
    check_size_of_elements(size, data.size(), source.name);
    if (reorder) data = to_c_order(data, type.bytes, header.shape);
    source.bytes = std::make_unique<MemoryBytes>(std::move(data));
  }
  const bool chosen_format = source.format != nullptr;
  return std::make_unique<NpyReader>(std::move(source), std::move(header), type, size, chosen_format);
}

}  // namespace samesum::harness
