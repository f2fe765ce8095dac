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

using Bytes = std::vector<std::byte>;

/// m elements of the result at that place, one after the other.
Bytes column(const ReductionCell& cell, const std::byte* x, std::size_t at, std::size_t m) {
  if (x == nullptr) return {};
  const Layout all = cell.layout();
  const std::size_t bytes = cell.input->bytes, first = all.first(at / cell.inner) + at % cell.inner;
  Bytes found(m * bytes);
  for (std::size_t k = 0; k < m; ++k)
    std::memcpy(&found[k * bytes], x + (first + k * all.stride) * bytes, bytes);
  return found;
}

/// The result of one vector (of softmax the row); of two, if y has elements.
Bytes result_of(const ReductionMethod& m, const FormatInfo& input, const Bytes& x, const Bytes& y,
                int threads) {
  const std::size_t n = x.size() / input.bytes;
  Bytes result(m.softmax ? x.size() : m.reduction->result_bytes());
  if (m.softmax)
    m.softmax->run(
        {&input, x.data(), result.data(), 1, n, n, n, m.softmax->accumulator, m.softmax->log, threads});
  else
    m.reduction->run[input.index](
        {x.data(), y.empty() ? nullptr : y.data(), Layout::vector(n), result.data(), {threads, 0}});
  return result;
}

/// The whole array, into `out`.
void run(const ReductionMethod& m, const Arrays& a) {
  const ReductionCell& cell = a.cell;
  if (m.softmax)
    m.softmax->run({cell.input, a.x.data(), a.out.data(), cell.outer, cell.n, cell.n, cell.n,
                    m.softmax->accumulator, m.softmax->log, cell.threads});
  else
    m.reduction->run[cell.input->index](
        {a.x.data(), a.second(), cell.layout(), a.out.data(), {cell.threads, 0}});
}

/// The same method of that backend.
ReductionMethod on(const std::string& backend, const ReductionMethod& m) {
  const std::string name = m.name.substr(0, m.name.find('@')) + "@" + backend;
  if (!m.softmax) return {name, &find_reduction(name)};
  return {name, nullptr, &*std::ranges::find(softmax_variants(), name, &SoftmaxVariant::name)};
}

/// The bits of the first and the last result.
bool has_right_bits(const ReductionMethod& method, const Arrays& a) {
  const ReductionCell& cell = a.cell;
  run(method, a);
  for (const std::size_t at : std::set{std::size_t{0}, cell.layout().results() - 1}) {
    const std::size_t m = std::min(cell.n, longest_reading);
    const Bytes x = column(cell, a.x.data(), at, m), y = column(cell, a.second(), at, m);
    const Bytes expected = result_of(on("reference", method), *cell.input, x, y, 1);
    const std::byte* whole = a.out.data() + at * expected.size();
    if (expected != (m == cell.n ? Bytes(whole, whole + expected.size())
                                 : result_of(method, *cell.input, x, y, cell.threads)))
      return false;
  }
  return true;
}

template <class F> const F* elements(const Pages& pages) { return reinterpret_cast<const F*>(pages.data()); }

/// What Eigen computes of fp32 or fp64; nothing where it has no such thing, or was not found.
template <class F> std::function<void()> eigen(const Arrays& a) {
#ifdef SAMESUM_EIGEN
  const ReductionCell& cell = a.cell;
  const F *x = elements<F>(a.x), *y = elements<F>(a.y);
  const std::size_t n = cell.n, rows = cell.outer;
  if (cell.inner != 1) return nullptr;
  F* out = reinterpret_cast<F*>(a.out.data());
  if (cell.operation == "dot" && rows == 1) return [=] { *out = peer::eigen_dot(x, y, n); };
  if (cell.operation == "norm" && rows == 1) return [=] { *out = peer::eigen_norm(x, n); };
  if (cell.operation == "sum") return [=] { peer::eigen_row_sums(x, rows, n, out); };
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

Arrays arrays_of(const ReductionCell& cell, std::uint64_t seed) {
  const std::size_t bytes = cell.elements() * cell.input->bytes;
  const auto filled = [&](std::size_t size, std::uint64_t with) {
    const std::size_t block = std::min(cell.elements(), std::size_t{1} << log2_speed_block);
    return Pages{size, datasets_matching("normal").front()->make(*cell.input, block, with).bytes};
  };
  return {cell, filled(bytes, seed), cell.operation == "dot" ? filled(bytes, seed + 1) : Pages{0},
          Pages{cell.operation == "softmax" ? bytes : cell.layout().results() * 2 * sizeof(double)}};
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

std::vector<ReductionMethod> methods_of(const ReductionCell& cell) {
  const std::string backend = cell.threads == 0 ? "cuda" : "cpu";
  std::vector<ReductionMethod> all;
  for (const Reduction& r : reductions())
    if (r.operation == cell.operation && r.backend == backend && r.takes(*cell.input))
      all.push_back({r.name, &r});
  for (const SoftmaxVariant& v : softmax_variants())
    if (cell.operation == (v.log ? "log_softmax" : "softmax") && v.backend == backend &&
        cell.input->name != "fp64")
      all.push_back({v.name, nullptr, &v});
  return all;
}

std::vector<double> results_of_peer(const ReductionCell& cell, const std::string& name, std::uint64_t seed) {
  const Arrays a = arrays_of(cell, seed);
  const std::vector<Turn> turns = peers_of(a);
  std::ranges::find(turns, name, &Turn::name)->run();
  const std::size_t results = cell.operation == "softmax" ? cell.elements() : cell.layout().results();
  std::vector<double> found;
  for (std::size_t i = 0; i < results; ++i)
    found.push_back(cell.input->bytes == 4 ? elements<float>(a.out)[i] : elements<double>(a.out)[i]);
  return found;
}

std::vector<Speed> cpu_reduction_speeds(const ReductionCell& cell,
                                        const std::vector<ReductionMethod>& methods, std::uint64_t seed,
                                        int repeats) {
  const Arrays a = arrays_of(cell, seed);
  const std::size_t bytes = a.x.bytes();
  std::vector<Turn> turns;
  for (const ReductionMethod& m : methods)
    turns.push_back({m.name, has_right_bits(m, a), [&] { run(m, a); }});
  std::ranges::move(peers_of(a), std::back_inserter(turns));
  turns.push_back({cell.ceiling(), std::nullopt, [&] {
                     if (cell.operation == "softmax")
                       copy_all(a.x.data(), a.out.data(), bytes, cell.threads);
                     else
                       read_all(a.x.data(), bytes, cell.threads);
                     if (a.second()) read_all(a.second(), bytes, cell.threads);
                   }});
  return in_turns(turns, repeats, cell.threads, cell.bytes());
}

}  // namespace samesum::harness
