#include "harness/reduction_speed.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "harness/cpu_turns.hpp"
#include "harness/dataset.hpp"
#include "harness/peers/reductions.hpp"

namespace samesum::harness {
namespace {

/// So many elements are read literally.
constexpr std::size_t longest_reading = std::size_t{1} << 20;

struct Arrays {
  const ReductionCell& cell;
  Pages x, y, out;

  const std::byte* second() const { return y.bytes() > 0 ? y.data() : nullptr; }
};

/// m elements of the result at that place, one after the other.
std::vector<std::byte> column(const ReductionCell& cell, const std::byte* x, std::size_t at, std::size_t m) {
  if (x == nullptr) return {};
  const Layout all = cell.layout();
  const std::size_t bytes = cell.input->bytes, first = all.first(at / cell.inner) + at % cell.inner;
  std::vector<std::byte> found(m * bytes);
  for (std::size_t k = 0; k < m; ++k)
    std::memcpy(&found[k * bytes], x + (first + k * all.stride) * bytes, bytes);
  return found;
}

/// The result of one vector; of two, if y has elements.
std::vector<std::byte> result_of(const Reduction& r, const FormatInfo& input, const std::vector<std::byte>& x,
                                 const std::vector<std::byte>& y, int threads) {
  std::vector<std::byte> result(r.result_bytes());
  r.run[input.index]({x.data(),
                      y.empty() ? nullptr : y.data(),
                      Layout::vector(x.size() / input.bytes),
                      result.data(),
                      {threads, 0}});
  return result;
}

/// The bits of the first and the last result.
bool has_right_bits(const Reduction& r, const Arrays& a) {
  const ReductionCell& cell = a.cell;
  const Reduction& literal = find_reduction(r.name.substr(0, r.name.find('@')) + "@reference");
  r.run[cell.input->index]({a.x.data(), a.second(), cell.layout(), a.out.data(), {cell.threads, 0}});
  for (const std::size_t at : std::set{std::size_t{0}, cell.layout().results() - 1}) {
    const std::size_t m = std::min(cell.n, longest_reading), each = r.result_bytes();
    const std::vector<std::byte> x = column(cell, a.x.data(), at, m), y = column(cell, a.second(), at, m);
    const std::byte* whole = a.out.data() + at * each;
    const std::vector<std::byte> got =
        m == cell.n ? std::vector(whole, whole + each) : result_of(r, *cell.input, x, y, cell.threads);
    if (got != result_of(literal, *cell.input, x, y, 1)) return false;
  }
  return true;
}

template <class F> const F* elements(const Pages& pages) { return reinterpret_cast<const F*>(pages.data()); }

volatile double sink = 0;

/// What Eigen computes of fp32 or fp64; nothing where it has no such thing, or was not found.
template <class F> std::function<void()> eigen(const Arrays& a) {
#ifdef SAMESUM_EIGEN
  const ReductionCell& cell = a.cell;
  const F *x = elements<F>(a.x), *y = elements<F>(a.y);
  const std::size_t n = cell.n, rows = cell.outer;
  if (cell.inner != 1) return nullptr;
  if (cell.operation == "dot" && rows == 1) return [=] { sink = peer::eigen_dot(x, y, n); };
  if (cell.operation == "norm" && rows == 1) return [=] { sink = peer::eigen_norm(x, n); };
  F* sums = reinterpret_cast<F*>(a.out.data());
  if (cell.operation == "sum") return [=] { peer::eigen_row_sums(x, rows, n, sums); };
#else
  static_cast<void>(a);
#endif
  return nullptr;
}

/// Those of other libraries: one thread each.
std::vector<Turn> peers_of(const Arrays& a) {
  const ReductionCell& cell = a.cell;
  if (cell.threads != 1 || cell.input->bytes < 4) return {};
  std::vector<Turn> turns;
  const auto add = [&](const std::string& library, const std::function<void()>& run) {
    const std::string name = library + "/" + cell.operation + "/" + std::string{cell.input->name} + "@peer";
    if (run) turns.push_back({name, std::nullopt, run});
  };
  add("eigen", cell.input->bytes == 4 ? eigen<float>(a) : eigen<double>(a));
  if (cell.operation == "softmax" && cell.input->name == "fp32")
    add("loop", [x = elements<float>(a.x), out = reinterpret_cast<float*>(a.out.data()), rows = cell.outer,
                 n = cell.n] { peer::softmax_in_three_passes(x, rows, n, out); });
  return turns;
}

}  // namespace

std::vector<std::string> others_of(const ReductionCell& cell) {
  std::vector<std::string> names;
  if (cell.threads > 0)
    for (const Turn& t : peers_of({cell, Pages{0}, Pages{0}, Pages{0}})) names.push_back(t.name);
  else if (cell.operation == "sum" && cell.inner == 1)
    names.push_back("cub/segmented/" + std::string{cell.input->bytes == 8 ? "fp64" : "fp32"} + "@peer");
  names.push_back(cell.ceiling());
  return names;
}

std::vector<Speed> cpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<const Reduction*>& methods, std::uint64_t seed,
                                        int repeats) {
  const Dataset& normal = *datasets_matching("normal").front();
  const std::size_t bytes = cell.elements() * cell.input->bytes;
  const bool two = cell.operation == "dot";
  const Arrays a{cell, Pages{bytes, speed_block(*cell.input, normal, seed)},
                 Pages{two ? bytes : 0, speed_block(*cell.input, normal, seed + 1)},
                 Pages{cell.layout().results() * 2 * sizeof(double)}};
  std::vector<Turn> turns;
  for (const Reduction* r : methods)
    turns.push_back(
        {r->name, has_right_bits(*r, a), [=, &a, layout = cell.layout()] {
           r->run[a.cell.input->index]({a.x.data(), a.second(), layout, a.out.data(), {a.cell.threads, 0}});
         }});
  std::ranges::move(peers_of(a), std::back_inserter(turns));
  turns.push_back({"read", std::nullopt, [&] {
                     read_all(a.x.data(), bytes, cell.threads);
                     if (two) read_all(a.second(), bytes, cell.threads);
                   }});
  return in_turns(turns, repeats, cell.threads, cell.bytes());
}

}  // namespace samesum::harness
