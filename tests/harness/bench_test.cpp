/// Tests of the bench for scans and for operations by key: memory for results, bits, keys, and peers.
#include "harness/bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "harness/digest.hpp"
#include "harness/key_sets.hpp"
#include "harness/peers.hpp"
#include "harness/result_arrays.hpp"
#include "samesum/samesum.hpp"

namespace samesum::harness {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

std::vector<int> processors() {
  return absent().empty() ? std::vector{1, 0} : std::vector{1};  // number of threads; 0 is the GPU
}

Cell scan_cell(std::size_t n, int threads = 1) {
  return {.input = &format_info<fp32>(), .n = n, .threads = threads, .operation = "cumsum"};
}

Cell key_cell(std::size_t n, std::size_t bins, std::size_t inner = 1, int threads = 1) {
  return {.input = &format_info<fp32>(),
          .n = n,
          .threads = threads,
          .operation = "scatter_add",
          .inner = inner,
          .keys = "uniform",
          .bins = bins,
          .grid = -30};
}

std::string named(const std::string& method, const Cell& cell) {
  return method + (cell.on_gpu() ? "@cuda" : "@cpu");
}

std::vector<double> numbers(const std::vector<std::byte>& bytes) {
  std::vector<float> x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return {x.begin(), x.end()};
}

/// Whether the bench finds the bits of a method right in which `run` replaces the code.
std::optional<bool> verified_with(const Cell& c, const std::string& name, Functions<HostRun>::Run run) {
  Method m = find(name);
  Code code = Code::of(m);
  code.host.any.fill(run);
  code.host.vector.fill(run);
  code.run_by(m);
  return Bench{c, 3, c.elements()}.measure(c, {&m}, 1).at(0).verified;
}

template <const char* name> void run_code_of(HostRun& work) {
  HostRun other = work;
  other.call.method = &find(name);
  Code::of(*other.call.method).host.run(other.call, other);
}

// --- scans ----------------------------------------------------------------------------------------------

TEST(ABench, HasRoomForResultsThatAreWiderThanTheElements) {
  for (const int threads : processors()) {
    const Cell c = scan_cell(100'000, threads);
    const Method& m = find(named("cumsum/prefix/plain/fp64", c));
    Bench bench{c, 1, c.n};
    EXPECT_EQ(bench.results(c, m).size(), c.n * sizeof(double));
    const std::vector<Speed> speeds = bench.measure(c, {&m}, 1);
    EXPECT_EQ(speeds.at(0).verified, true);
    EXPECT_EQ(speeds.at(1).method, "copy");
  }
}

constexpr char prefix_scan[] = "cumsum/prefix/plain/fp32@cpu", serial_scan[] = "cumsum/serial/plain/fp32@cpu";

TEST(TimedScans, MustHaveTheBitsOfTheOrder) {
  EXPECT_EQ(verified_with(scan_cell(5'000), prefix_scan, run_code_of<prefix_scan>), true);
  EXPECT_EQ(verified_with(scan_cell(5'000), prefix_scan, run_code_of<serial_scan>), false);
}

TEST(PeersOfScans, ComputeTheSameResults) {
  for (const int threads : processors()) {
    const Cell c = scan_cell(10'000, threads);
    Bench bench{c, 9, c.n};
    const std::vector<double> expected = numbers(bench.results(c, find(named("cumsum/exact/fp32", c))));
    const std::vector<const Method*> peers = peers_of(c).methods;
    EXPECT_THAT(peers, SizeIs(threads == 0 ? 1 : 2));
    for (const Method* peer : peers) {
      const std::vector<double> found = numbers(bench.results(c, *peer));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-2) << peer->name << ' ' << i;
    }
  }
}

// --- by key ---------------------------------------------------------------------------------------------

TEST(ACellByKey, CountsElementsAndKeys) {
  const Cell c = key_cell(1'000, 7, 8);
  EXPECT_EQ(c.bytes(), 1'000u * (8 * 4 + 4));
  EXPECT_EQ(c.ceiling(), "read");
  Cell count = key_cell(1'000, 7);
  count.operation = "scatter_count";
  EXPECT_EQ(count.bytes(), 1'000u * 4) << "it reads no elements";
}

TEST(PeersByKey, ComputeTheSameResults) {
  for (const int threads : processors())
    for (const auto& [bins, inner] : {std::pair{1u, 1u}, {300u, 1u}, {20'000u, 1u}, {50u, 8u}}) {
      const Cell c = key_cell(10'000, bins, inner, threads);
      Bench bench{c, 9, c.elements()};
      const std::vector<double> expected =
          numbers(bench.results(c, find(named("scatter_add/exact/fp32", c))));
      ASSERT_EQ(expected.size(), bins * inner);
      const std::vector<const Method*> peers = peers_of(c).methods;
      EXPECT_THAT(peers, SizeIs(threads == 0 && inner > 1 ? 0 : 1));
      for (const Method* peer : peers) {
        const std::vector<double> found = numbers(bench.results(c, *peer));
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], expected[i], 1e-2) << peer->name << ' ' << i;
      }
    }
}

TEST(ABench, MeasuresFixedPointWithAndWithoutAGrid) {
  for (const int threads : processors()) {
    const Cell c = key_cell(3'000, 11, 1, threads);
    const std::vector<Speed> speeds =
        Bench{c, 1, c.n}.measure(c, {&find(named("scatter_add/fixed_point/fp32", c))}, 1);
    ASSERT_THAT(speeds, SizeIs(3));
    EXPECT_EQ(speeds[0].grid, std::nullopt);
    EXPECT_EQ(speeds[1].grid, -30);
    EXPECT_EQ(speeds[0].verified, true);
    EXPECT_EQ(speeds[1].verified, true);
    EXPECT_EQ(speeds[2].method, "read");
  }
}

constexpr char serial_by_key[] = "scatter_add/serial/plain/fp32@cpu",
               exact_by_key[] = "scatter_add/exact/fp32@cpu";

void exact_but_for_the_last(HostRun& work) {
  run_code_of<exact_by_key>(work);
  static_cast<float*>(work.call.out.data)[work.call.out.size - 1] += 1;
}

TEST(TimedBitsByKey, AreComparedForAllResults) {
  for (const Cell& c : {key_cell(5'000, 13), key_cell(700, 13, 9), key_cell(2'000, 5'000)}) {
    EXPECT_EQ(verified_with(c, exact_by_key, run_code_of<exact_by_key>), true);
    EXPECT_EQ(verified_with(c, exact_by_key, exact_but_for_the_last), false);
  }
  EXPECT_EQ(verified_with(key_cell(5'000, 13), exact_by_key, run_code_of<serial_by_key>), false);
}

TEST(ABench, RunsEveryOperationByKey) {
  for (const FormatInfo& format : formats)
    for (const int threads : processors()) {
      Cell c = key_cell(500, 17, 1, threads);
      c.input = &format;
      Bench bench{c, 1, c.n};  // for all methods, since its elements take long to make
      for (const Method& m : methods()) {
        c.operation = m.operation;
        if (!m.takes_keys || m.backend == "reference" || m.format != &format || !fits(m, c)) continue;
        const std::optional<bool> verified = bench.measure(c, {&m}, 1).at(0).verified;
        EXPECT_NE(verified, false) << m.name;
        EXPECT_EQ(verified.has_value(), m.promise >= Promise::everywhere) << m.name;
      }
    }
}

// --- peers ----------------------------------------------------------------------------------------------

/// Whether the bench finds the results of a peer right in which `run` replaces the code.
template <void (*run)(HostRun&)>
std::optional<bool> verified_peer(const Cell& c, std::string_view peer = "boost/mean/fp32@peer") {
  Method m = *std::ranges::find(peers_of_batches(), peer, &Method::name);
  Code code = Code::of(m);
  code.host.any.fill(run);
  code.host.vector.fill(run);
  code.run_by(m);
  return Bench{c, 3, c.elements()}.measure(c, {&m}, 1).at(0).verified;
}

template <int error_in_percent> void means(HostRun& work) {
  HostRun other = work;
  other.call.method = &find("mean/exact/fp32@cpu");
  Code::of(*other.call.method).host.run(other.call, other);
  static_cast<float*>(work.call.out.data)[work.call.out.size - 1] *= 1 + error_in_percent / 100.0f;
}

void means_of_the_first_row(HostRun& work) {
  work.call.layout.outer = 1;
  means<0>(work);
}

TEST(TimedPeers, MustComputeAllResults) {
  const Cell vector{.input = &format_info<fp32>(), .n = 1'000, .operation = "mean"};
  Cell rows = vector;
  rows.outer = 50;
  for (const Cell& c : {vector, rows}) {
    EXPECT_EQ(verified_peer<means<0>>(c), true);
    EXPECT_EQ(verified_peer<means<5>>(c), false);
  }
  EXPECT_EQ(verified_peer<means_of_the_first_row>(vector), true);
  EXPECT_EQ(verified_peer<means_of_the_first_row>(rows), false);
}

void moments_with_another_divisor(HostRun& work) {
  HostRun other = work;
  other.call.method = &find("moments/tree/fp32@cpu");
  Code::of(*other.call.method).host.run(other.call, other);
  const auto n = static_cast<float>(work.call.layout.n);
  static_cast<float*>(work.call.out.data)[1] *= n / (n - 1);
}

void moments_of_samesum(HostRun& work) {
  work.call.method = &find("moments/tree/fp32@cpu");
  Code::of(*work.call.method).host.run(work.call, work);
}

TEST(TimedPeers, AreAlsoVerifiedOnFewElementsWhereAFaultIsNoticed) {
  const Cell c{.input = &format_info<fp32>(), .n = std::size_t{1} << 20, .operation = "moments"};
  EXPECT_EQ(verified_peer<moments_of_samesum>(c, "boost/moments/fp32@peer"), true);
  EXPECT_EQ(verified_peer<moments_with_another_divisor>(c, "boost/moments/fp32@peer"), false);
}

TEST(PeersOfOneThread, DeclineCellsOfSeveralThreads) {
  const Cell one{.input = &format_info<fp32>(), .n = 1'000};
  Cell two = one;
  two.threads = 2;
  int in_parallel = 0;
  for (const std::span<const Method> all : {peers(), peers_of_batches()})
    for (const Method& m : all) {
      if (runs_on_gpu(m)) continue;
      EXPECT_EQ(refusal(m, one), "") << m.name;
      EXPECT_EQ(refusal(m, two), is_parallel(m) ? "" : "it computes with one thread") << m.name;
      in_parallel += is_parallel(m);
    }
  const auto absent = static_cast<int>(std::ranges::count_if(absent_peers(), [](const Absent& a) {
    return a.backend == "tbb" || a.backend == "std_par" || a.backend == "openmp";
  }));
  EXPECT_EQ(in_parallel, 2 * (3 - absent)) << "in fp32 and fp64";
}

// --- data -----------------------------------------------------------------------------------------------

TEST(ALongArray, RepeatsABlock) {
  const std::size_t block = two_to(log2_speed_block), n = 3 * block + 5;
  Cell rows{.input = &format_info<fp32>(), .n = 1, .data = "uniform", .outer = n};
  for (const int threads : processors()) {
    rows.threads = threads;
    const Method& sum = find_on(threads == 0 ? "cuda" : "cpu", find("sum/exact/fp32"));
    const std::vector<std::byte> found = Bench{rows, 1, n}.results(rows, sum);
    const auto expected = speed_block(*rows.input, *datasets_matching(rows.data).front(), 1);
    for (const std::size_t at : {std::size_t{0}, block - 1, block, 2 * block, n - 1})
      EXPECT_EQ(std::memcmp(found.data() + 4 * at, expected.data() + 4 * (at % block), 4), 0) << at;
  }
}

// --- CUDA graphs ----------------------------------------------------------------------------------------

TEST(CellsInGraphs, FollowTheShortCellsOfAGpuOnAnyData) {
  const Cell on_gpu{.input = &format_info<fp32>(), .n = 1'000, .threads = 0};
  std::vector<Cell> cells(5, on_gpu);
  cells[1].threads = 1;
  cells[2].n = most_bytes_in_graph / 4 + 1;  // fp32
  cells[3].cold = true;
  cells[4].data = "60 binades";
  add_cells_in_graphs(cells);
  ASSERT_THAT(cells, SizeIs(7));
  EXPECT_EQ(cells[0], on_gpu);
  EXPECT_NE(cells[1], on_gpu);
  EXPECT_TRUE(cells[1].in_graph);
  EXPECT_FALSE(cells[2].in_graph);
  EXPECT_TRUE(cells[6].in_graph);
  EXPECT_EQ(cells[6].data, "60 binades");
}

TEST(CellsInGraphs, CountTheBytesOfAllInputs) {
  std::vector<Cell> cells{{.input = &format_info<fp32>(), .n = most_bytes_in_graph / 4, .threads = 0}};
  cells.push_back(cells.front());
  cells.back().operation = "dot";
  add_cells_in_graphs(cells);
  ASSERT_THAT(cells, SizeIs(3));
  EXPECT_TRUE(cells[1].in_graph);
  EXPECT_EQ(cells[2].operation, "dot");
}

std::vector<const Method*> methods_and_peers(const Cell& cell) {
  std::vector<const Method*> all;
  for (const std::span<const Method> some : {methods(), peers(), peers_of_batches()})
    for (const Method& m : some)
      if (m.backend != "reference" && fits(m, cell)) all.push_back(&m);
  return all;
}

TEST(CallsInGraphs, AreVerifiedForEveryMethodThatDoesNotDeclineThem) {
  if (!absent().empty()) GTEST_SKIP() << absent()[0].reason;
  for (const char* operation :
       {"sum", "mean", "dot", "norm", "max", "argmax", "prod", "moments", "logsumexp", "softmax", "cumsum"}) {
    Cell c{.input = &format_info<fp32>(), .n = 3'000, .threads = 0, .operation = operation};
    c.data = c.operation == "prod" ? "near 1" : "normal";
    c.in_graph = true;
    Bench bench{c, 1, c.n};
    for (const Method* m : methods_and_peers(c)) {
      SCOPED_TRACE(m->name);
      if (is_peer(*m) && !refusal(*m, c).empty()) {
        EXPECT_ANY_THROW(bench.measure(c, {m}, 1)) << "it could be recorded";
        continue;
      }
      const Speed found = bench.measure(c, {m}, 1).at(0);
      EXPECT_NE(found.verified, false);
      EXPECT_EQ(found.verified.has_value(), is_peer(*m) || m->promise >= Promise::everywhere);
      EXPECT_GT(found.seconds, 0);
    }
  }
}

// --- keys -----------------------------------------------------------------------------------------------

TEST(KeySets, StayBelowTheNumberOfKeys) {
  for (const KeySet& set : key_sets())
    for (const std::size_t bins : {std::size_t{1}, std::size_t{2}, std::size_t{1000}, std::size_t{1} << 26}) {
      const std::vector<std::uint32_t> keys = set.make(4'000, bins, 5);
      EXPECT_THAT(keys, Each(::testing::Lt(bins))) << set.name;
    }
}

TEST(KeySets, HaveTheDistributionsOfTheirNames) {
  constexpr std::size_t n = 200'000, bins = 100;
  const auto share_of_first = [&](const char* name) {
    const std::vector<std::uint32_t> keys = key_set(name).make(n, bins, 5);
    return static_cast<double>(std::ranges::count(keys, 0u)) / n;
  };
  EXPECT_NEAR(share_of_first("uniform"), 0.01, 0.002);
  EXPECT_NEAR(share_of_first("skewed"), std::cbrt(0.01), 0.005);
  const double range = 1 - std::pow(bins + 1.0, -0.1);
  EXPECT_NEAR(share_of_first("zipf"), (1 - std::pow(2, -0.1)) / range, 0.005);
  const std::vector<std::uint32_t> sorted = key_set("sorted").make(n, bins, 5);
  EXPECT_TRUE(std::ranges::is_sorted(sorted));
  EXPECT_EQ(std::ranges::count(sorted, 99u), n / bins);
}

TEST(KeySets, DependOnTheSeedAloneOnEveryMachine) {
  std::map<std::string, std::uint64_t> digests;
  for (const KeySet& set : key_sets()) {
    const std::vector<std::uint32_t> keys = set.make(10'000, 12'345, 7);
    digests[set.name] = digest(std::as_bytes(std::span{keys}));
  }
  const std::map<std::string, std::uint64_t> expected{{"uniform", 0xa7e624776af8b81f},
                                                      {"skewed", 0x417fb93aa09fbe92},
                                                      {"zipf", 0x10a19cfa0aa73bc0},
                                                      {"sorted", 0x69b6f8f744129405}};
  EXPECT_EQ(digests, expected);
  EXPECT_NE(key_set("uniform").make(10, 100, 1), key_set("uniform").make(10, 100, 2));
  EXPECT_THROW(key_set("even"), std::out_of_range);
}

// --- results ----------------------------------------------------------------------------------------------

TEST(DistinctResults, CountArraysThatDifferInABit) {
  const Method& exact = find("scatter_add/exact/fp32");
  std::vector<std::byte> results(13);
  DistinctResults distinct;
  distinct.add(results);
  distinct.add(results);
  EXPECT_EQ(distinct.values(exact, Promise::order_free),
            (Json{{"runs", 2}, {"distinct_bits", 1}, {"broken", false}}));
  results.back() = std::byte{1};
  distinct.add(results);
  EXPECT_EQ(distinct.values(exact, Promise::order_free),
            (Json{{"runs", 3}, {"distinct_bits", 2}, {"broken", true}}));
  EXPECT_EQ(distinct.values(find("scatter_add/serial/plain/fp32"), Promise::order_free)["broken"], false);
}

TEST(ErrorsOfResults, AreThoseFarthestFromTheTruth) {
  const Method& m = find("cumsum/exact/fp32");
  const std::vector<float> x{1, 0x1p-24f, 3};
  ErrorsOfResults errors;
  for (const float result : {4.0f, 4.0f, 5.0f})
    errors.add(judge(m, format_info<fp32>(), Truth{Values{x}}, Number::of(result)));
  const Json found = errors.values();
  EXPECT_EQ(found["results"], 3);
  EXPECT_EQ(found["correct"], 2);
  EXPECT_NEAR(found["largest_ulps"].get<double>(), 0x1p21, 1);
  EXPECT_LE(found["median_ulps"], 0.5);
  EXPECT_GT(found["largest_share"], 1);
  EXPECT_EQ(found["within_bound"], false);
  EXPECT_THAT(complaint_about_errors(m, found), ::testing::HasSubstr("exceeds its bound"));
}

}  // namespace
}  // namespace samesum::harness
