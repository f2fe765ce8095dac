#include "harness/reveal.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "harness/dataset.hpp"
#include "samesum/order/orders.hpp"

namespace samesum::harness {

// --- trees -----------------------------------------------------------------------------------------

std::size_t SumTree::root() const {
  std::size_t node = 0;
  while (parent_[node] != none) node = parent_[node];
  return node;
}

std::size_t SumTree::join(std::size_t a, std::size_t b) {
  const std::size_t node = parent_.size();
  parent_[a] = parent_[b] = node;
  parent_.push_back(none);
  children_.push_back({a, b});
  return node;
}

void SumTree::insert(std::size_t leaf, std::size_t node) {
  const std::size_t before = parent_[node], sum = join(node, leaf);
  parent_[sum] = before;
  if (before == none) return;
  auto& below = children_[before - leaves_];
  below[below[0] == node ? 0 : 1] = sum;
}

std::size_t SumTree::height() const {
  std::size_t most = 0;
  std::vector<std::pair<std::size_t, std::size_t>> waiting{{root(), 0}};  // nodes with their depth
  while (!waiting.empty()) {
    const auto [node, depth] = waiting.back();
    waiting.pop_back();
    most = std::max(most, depth);
    if (!is_leaf(node))
      for (const std::size_t child : children(node)) waiting.emplace_back(child, depth + 1);
  }
  return most;
}

std::vector<std::size_t> SumTree::leaves_below(std::size_t node) const {
  std::vector<std::size_t> found, waiting{node};
  while (!waiting.empty()) {
    const std::size_t next = waiting.back();
    waiting.pop_back();
    if (is_leaf(next)) {
      found.push_back(next);
    } else {
      const auto [a, b] = children(next);
      waiting.insert(waiting.end(), {a, b});
    }
  }
  return found;
}

std::vector<std::size_t> SumTree::leaves_met_at(std::size_t ancestor, std::size_t leaf) const {
  std::size_t node = leaf;
  while (parent_[node] != ancestor) node = parent_[node];
  const auto [a, b] = children(ancestor);
  return leaves_below(a == node ? b : a);
}

std::string SumTree::spelled() const {
  struct Part {
    std::size_t first;
    std::string text;
  };
  const std::function<Part(std::size_t)> spell = [&](std::size_t node) -> Part {
    if (is_leaf(node)) return {node, std::to_string(node)};
    Part a = spell(children(node)[0]), b = spell(children(node)[1]);
    if (b.first < a.first) std::swap(a, b);
    return {a.first, "(" + a.text + "+" + b.text + ")"};
  };
  return spell(root()).text;
}

std::optional<SumTree> declared_tree(const Method& method, std::size_t n) {
  std::optional<SumTree> tree;
  Orders::for_each([&]<class Order>() {
    if (Order::name == method.order && Order::promise >= Promise::everywhere)
      tree = declared_tree(typename Order::Shape{}, n);
  });
  return tree;
}

// --- masks -----------------------------------------------------------------------------------------

namespace {

/// M, which is far larger than the sum of all ones. The exponents of fp16 do not reach that far; there, a one
/// is the smallest subnormal number.
double large(const FormatInfo& format) { return power_of_two(format.max_exponent); }
double one_of(const FormatInfo& format) {
  return format.max_exponent > 2 * format.precision ? 1 : format.smallest_subnormal;
}

std::string words(std::initializer_list<std::size_t> places) {
  std::string text;
  for (const std::size_t place : places) text += (text.empty() ? "" : ", ") + std::to_string(place);
  return text;
}

}  // namespace

std::span<const char* const> BlackBox::operations() {
  static constexpr const char* all[] = {"sum", "mean", "dot"};
  return all;
}

BlackBox::BlackBox(const FormatInfo& format, Sum sum)
    : format_{format}, sum_{std::move(sum)}, unit_{one_of(format)} {}

BlackBox::BlackBox(const Method& method, int threads) : BlackBox{*method.format, {}} {
  const Options options{.threads = threads};
  if (method.operation == "sum")
    sum_ = [&method, options](Values x) { return method(x, options); };
  else if (method.operation == "dot")
    sum_ = [&method, options](Values x) {
      const Column ones = column_of(*x.format, std::vector<double>(x.size, 1));
      return method(x, ones.values(), options);
    };
  else if (method.operation == "mean") {
    // A mean of ones times n is nearer to their number than to any other, if that is not too large and the
    // mean is not too small.
    most_units_ /= 4;
    if (unit_ < 1) unit_ = power_of_two(-9);
    sum_ = [&method, options, unit = unit_](Values x) {
      const double n = static_cast<double>(x.size);
      return Number::of(unit * std::nearbyint(method(x, options).to_double() * n / unit));
    };
  } else
    throw std::invalid_argument{"samesum: masks reveal nothing about " + method.operation};
}

double BlackBox::sum(std::size_t n, std::span<const Entry> entries) const {
  ++asked_;
  constexpr std::size_t cache_line = 64;  // some orders depend on the alignment of the elements
  memory_.assign(n * format_.bytes + cache_line, std::byte{});
  std::byte* const x = memory_.data() + -reinterpret_cast<std::uintptr_t>(memory_.data()) % cache_line;
  with_format(format_, [&]<class F>() {
    for (const Entry& e : entries) {
      const F element = convert<F>(e.value);
      std::memcpy(x + e.i * sizeof(F), &element, sizeof(F));
    }
  });
  return sum_({format_, x, n}).to_double();
}

std::optional<Masks> BlackBox::seen_by() const {
  constexpr std::size_t places[3][3] = {{0, 1, 2}, {0, 2, 1}, {1, 2, 0}};
  bool keeps_units = false, misses_overflow = false;
  // Neighbours may be added one after another, and elements that are far apart be merged.
  for (const std::size_t apart : {1, 21}) {
    const std::size_t n = 2 * apart + 1;
    int kept = 0, overflown = 0;
    for (const auto& [i, j, k] : places) {
      const std::size_t unit = apart * k;
      kept += surviving(n, apart * i, apart * j, {&unit, 1}) == 1;
      overflown += meet_first(n, apart * i, apart * j, unit);
    }
    keeps_units = keeps_units || kept != 1;
    misses_overflow = misses_overflow || overflown != 1;
  }
  if (!keeps_units) return Masks::units;
  if (!misses_overflow) return Masks::overflow;
  return std::nullopt;
}

std::size_t BlackBox::surviving(std::size_t n, std::size_t i, std::size_t j,
                                std::span<const std::size_t> units) const {
  std::vector<Entry> entries;
  for (const std::size_t unit : units) entries.push_back({unit, unit_});
  entries.push_back({i, large(format_)});
  entries.push_back({j, -large(format_)});
  const double count = sum(n, entries) / unit_;
  if (!(count >= 0 && count <= static_cast<double>(units.size()) && count == std::floor(count)))
    throw Contradiction{std::to_string(units.size()) + " ones with M and -M at " + words({i, j}) + " give " +
                        std::to_string(count)};
  return static_cast<std::size_t>(count);
}

std::size_t BlackBox::size_of_common_ancestor(std::size_t n, std::size_t i, std::size_t j) const {
  std::vector<std::size_t> others(n);
  std::iota(others.begin(), others.end(), std::size_t{0});
  std::erase_if(others, [&](std::size_t k) { return k == i || k == j; });
  std::size_t size = n;  // minus the ones that survive, of which each mask can count only a part
  for (std::size_t done = 0; done < others.size(); done += most_units())
    size -= surviving(n, i, j, std::span{others}.subspan(done, std::min(most_units(), others.size() - done)));
  return size;
}

bool BlackBox::meet_first(std::size_t n, std::size_t i, std::size_t j, std::size_t k) const {
  const double most = format_.max_finite;
  return std::isinf(sum(n, std::vector<Entry>{{i, most}, {j, most}, {k, -most}}));
}

std::string blindness(std::optional<Masks> seen_by) {
  if (seen_by == Masks::units) return "";
  const std::string kept =
      "these accumulators keep the ones that M absorbs, so every order gives the same sum";
  return seen_by ? kept : kept + ", and no intermediate sum overflows";
}

// --- trees from masks ------------------------------------------------------------------------------

namespace {

/// Adds to the tree the node above exactly these leaves, and returns it.
std::size_t reveal_by_units(const BlackBox& box, SumTree& tree, const std::vector<std::size_t>& leaves) {
  const std::size_t first = leaves.front();
  std::map<std::size_t, std::vector<std::size_t>> by_size;  // size of the common ancestor with the first leaf
  for (const std::size_t other : std::span{leaves}.subspan(1))
    by_size[box.size_of_common_ancestor(tree.leaves(), first, other)].push_back(other);
  std::size_t node = first, size = 1;
  for (const auto& [ancestor_size, others] : by_size) {
    size += others.size();
    if (size != ancestor_size)
      throw Contradiction{"an ancestor of " + std::to_string(first) + " has " +
                          std::to_string(ancestor_size) + " leaves, of which " + std::to_string(size) +
                          " were found"};
    node = tree.join(node, reveal_by_units(box, tree, others));
  }
  return node;
}

void insert_by_overflow(const BlackBox& box, SumTree& tree, std::size_t root, std::size_t x) {
  const auto some_leaf = [&](std::size_t node) {
    while (!tree.is_leaf(node)) node = tree.children(node)[0];
    return node;
  };
  std::size_t node = root;
  while (!tree.is_leaf(node)) {
    const auto [a, b] = tree.children(node);
    const std::size_t in_a = some_leaf(a), in_b = some_leaf(b);
    if (box.meet_first(tree.leaves(), in_a, in_b, x)) break;
    const bool to_a = box.meet_first(tree.leaves(), in_a, x, in_b);
    if (!to_a && !box.meet_first(tree.leaves(), in_b, x, in_a))
      throw Contradiction{"of " + words({in_a, in_b, x}) + " no two meet first"};
    node = to_a ? a : b;
  }
  tree.insert(x, node);
}

}  // namespace

SumTree reveal(const BlackBox& box, std::size_t n, Masks masks) {
  SumTree tree{n};
  if (masks == Masks::units) {
    std::vector<std::size_t> all(n);
    std::iota(all.begin(), all.end(), std::size_t{0});
    reveal_by_units(box, tree, all);
  } else {
    for (std::size_t x = 1; x < n; ++x) insert_by_overflow(box, tree, tree.root(), x);
  }
  return tree;
}

std::string first_difference(const BlackBox& box, const SumTree& tree, Masks masks, std::size_t samples,
                             std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto shuffle = [&](std::span<std::size_t> x) {
    for (std::size_t k = x.size(); k > 1; --k) std::swap(x[k - 1], x[below(k)]);
  };
  const std::size_t n = tree.leaves();
  for (std::size_t sample = 0; sample < samples && n > 2; ++sample) {
    // A random element, and one that it meets at a random height.
    const std::size_t i = below(n);
    std::vector<std::size_t> ancestors;
    for (std::size_t node = i; tree.above(node) != node;) ancestors.push_back(node = tree.above(node));
    const std::size_t ancestor = ancestors[below(ancestors.size())];
    const std::vector<std::size_t> partners = tree.leaves_met_at(ancestor, i);
    const std::size_t j = partners[below(partners.size())];
    std::vector<bool> absorbed(n), close(n);
    for (const std::size_t k : tree.leaves_below(ancestor)) absorbed[k] = true;
    for (const std::size_t k : tree.leaves_below(tree.above(ancestor))) close[k] = true;
    // The elements that meet i and j just before or just after these meet are the most informative.
    std::vector<std::size_t> others(n);
    std::iota(others.begin(), others.end(), std::size_t{0});
    std::erase_if(others, [&](std::size_t k) { return k == i || k == j; });
    const auto far = std::partition(others.begin(), others.end(), [&](std::size_t k) { return close[k]; });
    shuffle({others.begin(), far});
    shuffle({far, others.end()});
    if (masks == Masks::overflow) {
      const std::size_t k = others.front();
      if (box.meet_first(n, i, j, k) == absorbed[k])
        return words({i, j}) + (absorbed[k] ? " meet before they meet " : " do not meet before they meet ") +
               std::to_string(k);
    } else {
      others.resize(std::min(others.size(), box.most_units()));
      const auto expected = static_cast<std::size_t>(
          std::ranges::count_if(others, [&](std::size_t k) { return !absorbed[k]; }));
      if (const std::size_t found = box.surviving(n, i, j, others); found != expected)
        return "with M and -M at " + words({i, j}) + " of " + std::to_string(others.size()) + " ones " +
               std::to_string(found) + " survive instead of " + std::to_string(expected);
    }
  }
  return "";
}

Finding find_out(const BlackBox& box, std::size_t n, const std::optional<SumTree>& declared,
                 std::size_t samples, std::uint64_t seed) {
  Finding found;
  if (declared) found.matches = false;
  try {
    found.masks = box.seen_by();
    found.blind = blindness(found.masks);
    if (!found.masks) return found;
    if (samples > 0) {
      found.difference = first_difference(box, *declared, *found.masks, samples, seed);
      found.matches = found.difference.empty();
      found.tree = declared;
    } else {
      found.tree = reveal(box, n, *found.masks);
      if (declared) found.matches = *found.tree == *declared;
    }
  } catch (const Contradiction& contradiction) {
    found.difference = contradiction.what();
  }
  return found;
}

}  // namespace samesum::harness
