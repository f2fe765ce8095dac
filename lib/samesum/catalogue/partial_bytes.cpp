/// The bytes of partials: a version, the name of the method, the range, open leaves, states and a checksum.
#include <cstring>

#include "samesum/base/environment.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/partial.hpp"
#include "samesum/catalogue/partial_range.hpp"

namespace samesum {
namespace {

/// Puts elements; any NaN as the canonical one.
void put_elements(SerialWriter& out, const FormatInfo& format, std::span<const std::byte> elements) {
  with_format(format, [&]<class F>() {
    for (std::size_t i = 0; i < elements.size(); i += sizeof(F)) {
      F x;
      std::memcpy(&x, &elements[i], sizeof x);
      put_field(out, x);
    }
  });
}

}  // namespace

std::vector<std::byte> Partial::serialise() const {
  const FloatingPointEnvironment environment;
  SerialWriter out{name()};
  out.put(begin_);
  out.put(end_);
  if (grid_) out.put(static_cast<std::uint16_t>(*grid_));
  for (const Elements* leaf : {&head_, &tail_}) {
    put_elements(out, *method_->format, leaf->x);
    put_elements(out, *method_->format, leaf->y);
  }
  for (std::size_t i = 0; i < subtrees_.size() * form_->lanes; ++i)
    form_->write(states_.data() + i * form_->state_bytes, out);
  out.put_checksum();
  return out.bytes();
}

Partial Partial::deserialise(std::span<const std::byte> bytes, const Method& method) {
  Partial partial = deserialise(bytes, method.backend);
  if (partial.method_->name != method.name)
    SerialReader::refuse("it holds a partial of " + partial.name() + ", not of " + Partial{method}.name());
  return partial;
}

Partial Partial::deserialise(std::span<const std::byte> bytes, std::string_view backend) {
  const FloatingPointEnvironment environment;
  SerialReader in{bytes};
  in.check_checksum();
  const std::string name = in.name() + "@" + std::string{backend};
  const auto method = std::ranges::find(methods(), name, &Method::name);
  if (method == methods().end())
    throw std::invalid_argument("samesum: Partial: this process has no method '" + name + "'");
  const auto begin = in.get<std::uint64_t>(), end = in.get<std::uint64_t>();
  if (begin > end || end >= most_elements) SerialReader::refuse("its range contradicts itself");
  std::optional<int> grid;
  if (method->takes_grid) grid = static_cast<std::int16_t>(in.get<std::uint16_t>());
  if (!validation_error(*method, {.grid = grid}).empty())
    SerialReader::refuse("its grid is beyond the limits");
  Partial partial{*method, begin, grid};
  const PartialForm& form = *partial.form_;
  const auto get = [&](Elements& leaf, std::uint64_t count) {
    leaf.count = count;
    for (std::vector<std::byte>* input : {&leaf.x, &leaf.y}) {
      if (input == &leaf.y && method->inputs == 1) break;
      const auto read = in.get_bytes(count, method->format->bytes);
      input->assign(read.begin(), read.end());
    }
  };
  // The range determines the leaves that it holds in part, and the subtrees that it holds whole.
  std::uint64_t first = begin, last = end;
  if (form.leaf != 0 && !(form.extend && begin == 0)) {
    first += std::min(distance_to_leaf(begin, form.leaf), end - begin);
    last = std::max(first, end - end % form.leaf);
    get(partial.head_, first - begin);
    get(partial.tail_, end - last);
  }
  while (first < last) {
    const bool is_one_state = form.leaf == 0 || form.extend;
    const std::uint64_t count = is_one_state ? last - first : subtree_size(first, last, form.leaf);
    partial.subtrees_.push_back({first, count});
    for (std::size_t lane = 0; lane < form.lanes; ++lane) {
      partial.states_.resize(partial.states_.size() + form.state_bytes);
      std::byte* const state = partial.states_.data() + partial.states_.size() - form.state_bytes;
      if (!form.read(in, first, count / form.lanes, state))
        SerialReader::refuse("its states are not those of any elements");
    }
    first += count;
  }
  partial.end_ = end;
  in.finish();
  if (!std::ranges::equal(partial.serialise(), bytes))
    SerialReader::refuse("it has numbers that are not canonical");
  return partial;
}

}  // namespace samesum
