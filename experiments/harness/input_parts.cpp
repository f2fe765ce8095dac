/// What the readers share: errors, bytes in memory, and elements of one size.
#include "harness/input_parts.hpp"

#include <limits>

#include "harness/text.hpp"

namespace samesum::harness {

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= alignof(double), "Column::bytes would be misaligned");

InputError::InputError(std::string_view name, const std::string& problem)
    : runtime_error{printable(name) + ": " + problem} {}

std::array<Values, 2> Column::lost_values() const { return {Values{lost}, Values{further_lost}}; }

std::size_t Column::rounded() const {
  return static_cast<std::size_t>(std::ranges::count_if(lost, [](double x) { return x != 0; }));
}

void set_lost(Column& column, std::size_t i, double lost) {
  if (lost == 0) return;
  column.lost.resize(column.size());
  column.lost[i] = lost;
}

void keep_elements(Column& column, std::span<const std::size_t> indices) {
  const std::size_t size = column.format->bytes, before = column.size();
  const auto keep = [&](auto& of_each) {
    if (of_each.size() != before) return;
    for (std::size_t to = 0; to < indices.size(); ++to) of_each[to] = std::move(of_each[indices[to]]);
    of_each.resize(indices.size());
  };
  keep(column.lost);
  keep(column.keys);
  keep(column.places);
  for (std::size_t to = 0; to < indices.size(); ++to)
    std::memmove(&column.bytes[to * size], &column.bytes[indices[to] * size], size);
  column.bytes.resize(indices.size() * size);
}

std::vector<std::byte> read_rest(Bytes& file) {
  std::vector<std::byte> all, block(std::size_t{1} << 16);
  while (const std::size_t n = file.read(block)) all.insert(all.end(), block.data(), block.data() + n);
  return all;
}

std::string shown(std::string_view text) {
  constexpr std::size_t limit = 40;
  return "'" + printable(text.substr(0, limit), false) + (text.size() > limit ? "...'" : "'");
}

void append_shown(std::string& list, std::string_view name) {
  constexpr std::size_t longest = 120;
  if (list.ends_with("...")) return;
  if (!list.empty()) list += ", ";
  list += list.size() < longest ? shown(name) : "...";
}

std::uint64_t Bytes::skip(std::uint64_t n) {
  std::vector<std::byte> passed(static_cast<std::size_t>(std::min<std::uint64_t>(n, 1 << 16)));
  std::uint64_t done = 0;
  while (const std::size_t now = read(std::span{passed}.first(
             static_cast<std::size_t>(std::min<std::uint64_t>(n - done, passed.size())))))
    done += now;
  return done;
}

std::size_t MemoryBytes::read(std::span<std::byte> to) {
  const std::size_t n = std::min(to.size(), bytes_.size() - at_);
  std::copy_n(bytes_.data() + at_, n, to.data());
  at_ += n;
  return n;
}

bool MemoryBytes::move_to(std::uint64_t place) {
  at_ = static_cast<std::size_t>(std::min<std::uint64_t>(place, bytes_.size()));
  return true;
}

BinaryReader::BinaryReader(Source source, const FormatInfo& natural, std::size_t element, std::uint64_t size)
    : ElementReader{source.format ? *source.format : natural},
      source_{std::move(source)},
      element_{element},
      size_{size} {
  source_.portion = std::max(source_.portion / element, std::size_t{1}) * element;
}

void BinaryReader::fill_portion() {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(source_.portion, size_ - done_));
  stored_.resize(wanted);
  stored_.resize(source_.bytes->read(stored_));
  const std::uint64_t first = done_ / element_;
  done_ += stored_.size();
  if (stored_.size() < wanted) check_size(done_);
  convert(stored_, first);
}

std::optional<std::uint64_t> BinaryReader::left() {
  if (size_ != std::numeric_limits<std::uint64_t>::max()) return (size_ - done_) / element_;
  const std::optional<std::uint64_t> bytes = source_.bytes->left();
  return bytes ? std::optional{*bytes / element_} : std::nullopt;
}

std::uint64_t BinaryReader::skip(std::uint64_t n) {
  const std::uint64_t skipped = source_.bytes->skip(std::min(n, (size_ - done_) / element_) * element_);
  done_ += skipped;
  return skipped / element_;
}

void convert_elements(std::vector<std::byte>& elements, bool big_endian, const FormatInfo& stored,
                      Column& column) {
  if (column.format == &stored && big_endian == (std::endian::native == std::endian::big))
    return std::swap(column.bytes, elements);
  const std::size_t n = elements.size() / stored.bytes;
  column.bytes.resize(n * column.format->bytes);
  with_format(stored, [&]<class From>() {
    with_format(*column.format, [&]<class To>() {
      for (std::size_t i = 0; i < n; ++i) {
        const From x = from_bits<From>(load<BitsOf<From>>(&elements[i * sizeof(From)], big_endian));
        store<To>(column, i, to_bits(convert<To>(x)));
      }
    });
  });
}

}  // namespace samesum::harness
