/// Tests the experiment on the speeds of reductions: its bars on invented speeds, the results of peers, and
/// the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "harness/bars.hpp"
#include "harness/dataset.hpp"
#include "harness/peers.hpp"
#include "harness/schema.hpp"
#include "harness/timed_row.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing_support::lines;
using testing_support::Outcome;
using testing_support::read;
using testing_support::write;

Cell cell(const std::string& operation, std::size_t outer, std::size_t n, std::size_t inner = 1,
          int threads = 1) {
  return {.input = &format_info<fp32>(),
          .n = n,
          .threads = threads,
          .operation = operation,
          .outer = outer,
          .inner = inner};
}

Speed speed(const std::string& method, double seconds) { return {method, seconds, std::nullopt, {seconds}}; }

/// Returns a text such as "0.5 of 0.9 x read" for each verdict.
std::vector<std::string> judged(const Cell& c, const Speed& s, const std::vector<Speed>& all) {
  std::vector<std::string> found;
  std::vector<SpeedRow> measured;
  for (const Speed& other : all) measured.push_back({c, other.method, other.seconds, {other.rounds}});
  for (const Verdict& v : verdicts({c, s.method, s.seconds, {s.rounds}}, measured)) {
    std::ostringstream text;
    text << v.reached << " of " << v.factor << " x " << v.against << (v.holds() ? "" : ": missed");
    found.push_back(text.str());
  }
  return found;
}

// --- bars -------------------------------------------------------------------------------------------

const std::size_t mebi = std::size_t{1} << 20;

TEST(ABarOfReductions, HoldsIfTheRatioOfSpeedsReachesItsFactor) {
  const std::vector<Speed> all{speed("eigen/dot/fp32@peer", 2), speed("read", 1)};
  const Cell c = cell("dot", 1, 64 * mebi);
  EXPECT_THAT(judged(c, speed("dot/tree/plain/fp32@cpu", 2), all),
              ElementsAre("1 of 1 x eigen/dot/fp32@peer"));
  EXPECT_THAT(judged(c, speed("dot/tree/plain/fp32@cpu", 2.5), all),
              ElementsAre("0.8 of 1 x eigen/dot/fp32@peer: missed"));
  EXPECT_THAT(judged(c, speed("dot/exact/fp32@cpu", 2), all), IsEmpty());
  EXPECT_THAT(judged(c, speed("dot/tree/plain/fp32@cpu", 2), {speed("read", 1)}), IsEmpty());
}

TEST(ABarOfReductions, OnACpuIsForOneThreadAndDependsOnTheShape) {
  const std::vector<Speed> all{speed("eigen/sum/fp32@peer", 2)};
  const Speed s = speed("sum/tree/plain/fp32@cpu", 1), exact = speed("sum/exact/fp32@cpu", 4);
  EXPECT_THAT(judged(cell("sum", 65536, 1024), s, all), ElementsAre("2 of 1 x eigen/sum/fp32@peer"));
  EXPECT_THAT(judged(cell("sum", 100, 32), exact, all),
              ElementsAre("0.5 of 0.7 x eigen/sum/fp32@peer: missed"));
  EXPECT_THAT(judged(cell("sum", 65536, 1024), speed("sum/tree/plain/fp16@cpu", 9), all), IsEmpty());
  EXPECT_THAT(judged(cell("sum", 65536, 1024, 1, 2), s, all), IsEmpty());
  EXPECT_THAT(judged(cell("sum", 1, 1024, 65536), s, all), ElementsAre("2 of 0.5 x eigen/sum/fp32@peer"));
  EXPECT_THAT(judged(cell("sum", 1, 1024, 32), exact, all), ElementsAre("0.5 of 0.35 x eigen/sum/fp32@peer"));
  const Speed pairwise = speed("sum/pairwise/plain/fp32@cpu", 1);
  EXPECT_THAT(judged(cell("sum", 65536, 1024), pairwise, all), SizeIs(1));
  EXPECT_THAT(judged(cell("sum", 65535, 1024), pairwise, all), IsEmpty()) << "less than 256 MiB";
  EXPECT_THAT(judged(cell("sum", 1, 64 * mebi), s, all), ElementsAre("2 of 1.2 x eigen/sum/fp32@peer"))
      << "the bar for vectors";
}

TEST(ABarOfReductions, ForRowsOnAGpuIsAgainstCubAndForLongOnesAgainstReading) {
  const std::vector<Speed> all{speed("cub/segmented/fp32@peer", 2), speed("read", 0.5)};
  const Speed s = speed("sum/pairwise/plain/fp32@cuda", 1);
  EXPECT_THAT(judged(cell("sum", 1000, 1000, 1, 0), s, all), ElementsAre("2 of 1 x cub/segmented/fp32@peer"));
  EXPECT_THAT(judged(cell("sum", 64'000, 1000, 1, 0), s, all),
              ElementsAre("2 of 1 x cub/segmented/fp32@peer", "0.5 of 0.9 x read: missed"));
  EXPECT_THAT(judged(cell("sum", 63'999, 1000, 1, 0), s, all), SizeIs(1));
  EXPECT_THAT(judged(cell("sum", 1, 4096, 131072, 0), s, all), ElementsAre("0.5 of 0.9 x read: missed"));
  Cell fp16 = cell("sum", 64'000, 1000, 1, 0);
  fp16.input = &format_info<samesum::fp16>();
  EXPECT_THAT(judged(fp16, s, all), IsEmpty());
}

TEST(ABarOfReductions, ForVectorsOnAGpuIsForLongOnes) {
  const std::vector<Speed> all{speed("read", 0.96)};
  for (const auto& [operation, method, factor] :
       {std::tuple{"dot", "dot/tree/plain/fp32@cuda", "0.97"},
        std::tuple{"dot", "dot/exact/fp32@cuda", "0.85"},
        std::tuple{"norm", "norm/pairwise/fp32@cuda", "0.97"}, std::tuple{"max", "max/fp32@cuda", "0.97"},
        std::tuple{"argmax", "argmax/fp32@cuda", "0.97"},
        std::tuple{"mean", "mean/tree/plain/fp32@cuda", "0.97"},
        std::tuple{"moments", "moments/tree/fp32@cuda", "0.97"}}) {
    const std::string missed = std::string{factor} == "0.97" ? ": missed" : "";
    EXPECT_THAT(judged(cell(operation, 1, 256 * mebi, 1, 0), speed(method, 1), all),
                ElementsAre("0.96 of " + std::string{factor} + " x read" + missed));
    EXPECT_THAT(judged(cell(operation, 1, 255 * mebi, 1, 0), speed(method, 1), all), IsEmpty());
  }
}

TEST(ABarOfReductions, ForSoftmaxDependsOnTheColumns) {
  const std::vector<Speed> all{speed("copy", 0.7), speed("loop/softmax/fp32@peer", 2)};
  const Speed gpu = speed("softmax/tree/plain/fp32@cuda", 1);
  EXPECT_THAT(judged(cell("softmax", 8192, 32768, 1, 0), gpu, all), ElementsAre("0.7 of 0.9 x copy: missed"));
  EXPECT_THAT(judged(cell("softmax", 4096, 131072, 1, 0), gpu, all), ElementsAre("0.7 of 0.6 x copy"));
  EXPECT_THAT(judged(cell("softmax", 65536, 1024), speed("softmax/tree/plain/fp32@cpu", 1), all),
              ElementsAre("2 of 1 x loop/softmax/fp32@peer"));
}

TEST(ABarOfReductions, ComparesRoundByRoundAndWithTheFastest) {
  // The second round was disturbed.
  const Speed ours{"norm/tree/fp32@cpu", 1, std::nullopt, {1, 4, 1}};
  const std::vector<Speed> all{{"eigen/norm/fp32@peer", 2, std::nullopt, {2, 8, 2}},
                               {"eigen/other/fp32@peer", 3, std::nullopt, {3, 3, 3}}};
  EXPECT_THAT(judged(cell("norm", 1, 64 * mebi), ours, all), ElementsAre("2 of 1 x eigen/norm/fp32@peer"));
}

/// Verdicts on a method whose time on some data is `times` that on normal data, in the form of `judged`.
std::vector<std::string> judged_on(const std::string& data, Cell c, const std::string& method, double times,
                                   std::optional<int> grid_of_normal = {}) {
  Cell normal = c;
  normal.grid = grid_of_normal;
  c.data = data;
  std::vector<std::string> found;
  for (const Verdict& v :
       verdicts({c, method, times}, {{normal, method, 1}, {normal, "other/fp32@cuda", 1}})) {
    std::ostringstream text;
    text << v.reached << " of " << v.factor << " x " << v.against << (v.holds() ? "" : ": missed");
    found.push_back(text.str());
  }
  return found;
}

TEST(ABarOnAwkwardData, ComparesWithTheSameMethodOnNormalData) {
  const Cell rows = cell("sum", 49152, 1024, 1, 0), columns = cell("sum", 1, 4096, 131072, 0);
  const std::string exact = "sum/exact/fp32@cuda", on_grid = "sum/fixed_point/fp32@cuda";
  for (const Cell& c : {rows, columns}) {
    for (const char* data : {"outliers", "log-normal", "60 binades"}) {
      EXPECT_THAT(judged_on(data, c, exact, 1.25), ElementsAre("0.8 of 0.666667 x " + exact + ", normal"));
      EXPECT_THAT(judged_on(data, c, exact, 2),
                  ElementsAre("0.5 of 0.666667 x " + exact + ", normal: missed"));
    }
    EXPECT_THAT(judged_on("arbitrary bits", c, on_grid, 2),
                ElementsAre("0.5 of 0.833333 x " + on_grid + ", normal: missed"));
    EXPECT_THAT(judged_on("outliers", c, "sum/tree/plain/fp32@cuda", 2), IsEmpty());
    EXPECT_THAT(judged_on("normal", c, exact, 2), IsEmpty());
  }
  EXPECT_THAT(judged_on("60 binades", cell("sum", 1024, 256, 1, 0), exact, 2), IsEmpty()) << "too short";
  EXPECT_THAT(judged_on("60 binades", cell("cumsum", 1, two_to(24), 1, 0), "cumsum/exact/fp32@cuda", 5),
              ElementsAre("0.2 of 0.25 x cumsum/exact/fp32@cuda, normal: missed"));
}

TEST(ABarOnAwkwardData, ByKeyComparesSumsOnAGridThatIsFound) {
  for (const std::size_t inner : {1, 128}) {
    Cell c = cell("scatter_add", 1, two_to(26) / inner, inner, 0);
    c.keys = "uniform";
    c.bins = 4096;
    // On normal data, the cell has a second row with a given grid.
    EXPECT_THAT(judged_on("outliers", c, "scatter_add/exact/fp32@cuda", 4, -30),
                ElementsAre("0.25 of 0.333333 x scatter_add/exact/fp32@cuda, normal: missed"));
    EXPECT_THAT(judged_on("arbitrary bits", c, "scatter_add/fixed_point/fp32@cuda", 1.25, -30),
                ElementsAre("0.8 of 0.666667 x scatter_add/fixed_point/fp32@cuda, normal"));
  }
}

TEST(TheAxisData, HasDataSetsThatEveryElementFormatOfACellHolds) {
  for (const std::string& name : awkward_data())
    for (const FormatInfo* format : {&format_info<bf16>(), &format_info<fp32>(), &format_info<fp64>()})
      EXPECT_TRUE(datasets_matching(name).at(0)->fits(*format)) << name;
  std::vector<Cell> cells;
  append_awkward_data(cells, cell("sum", 3, 100));
  EXPECT_THAT(cells, SizeIs(awkward_data().size()));
  EXPECT_TRUE(may_depend_on_data(find("dot/exact/fp32@cpu")) &&
              may_depend_on_data(find("fixed_point/fp32@cpu")));
  EXPECT_FALSE(may_depend_on_data(find("tree/kahan/fp32@cpu")) || may_depend_on_data(find("max/fp32@cpu")));
}

// --- bits -------------------------------------------------------------------------------------------

/// Replaces the code of a method by `run`, and returns whether the bench finds its bits correct.
std::optional<bool> verified(const Cell& c, const std::string& name, Functions<HostRun>::Run run) {
  Method m = find(name);
  Code code = Code::of(m);
  code.sum.fill(nullptr);
  code.host.vector.fill(run);
  code.host.any.fill(run);
  code.run_by(m);
  // With seed 1 the two orders round to the same number.
  return Bench{c, 2, c.elements()}.measure(c, {&m}, 1).at(0).verified;
}

/// Computes the results of another method.
template <const char* name> void run_as(HostRun& work) {
  HostRun other = work;
  other.call.method = &find(name);
  Code::of(*other.call.method).host.run(other.call, other);
}
constexpr char tree[] = "sum/tree/plain/fp32@cpu", pairwise[] = "sum/pairwise/plain/fp32@cpu",
               max[] = "max/fp32@cpu", exact_softmax[] = "softmax/exact/fp32@cpu",
               narrow_softmax[] = "softmax/tree/plain/bf16@cpu";

TEST(TimedBits, MustBeThoseOfTheOrder) {
  for (const Cell& c : {cell("sum", 3, 1000), cell("sum", 1, 2 * mebi), cell("sum", 1, 1000, 3)}) {
    EXPECT_EQ(verified(c, tree, run_as<tree>), true);
    EXPECT_EQ(verified(c, tree, run_as<pairwise>), false);
  }
}

TEST(TimedBits, AreCheckedInTheFirstAndTheLastResult) {
  const auto wrong_at = []<bool last>() -> Functions<HostRun>::Run {
    return [](HostRun& work) {
      run_as<max>(work);
      static_cast<float*>(work.call.out.data)[last ? work.call.layout.results() - 1 : 0] += 1;
    };
  };
  EXPECT_EQ(verified(cell("max", 3, 100), max, wrong_at.operator()<true>()), false);
  EXPECT_EQ(verified(cell("max", 3, 100), max, wrong_at.operator()<false>()), false);
}

TEST(TimedBits, OfSoftmaxAreCheckedInWholeRows) {
  const Cell c = cell("softmax", 3, 100);
  EXPECT_EQ(verified(c, exact_softmax, run_as<exact_softmax>), true);
  EXPECT_EQ(verified(c, exact_softmax, run_as<narrow_softmax>), false);
}

// --- peers ------------------------------------------------------------------------------------------

std::vector<double> made(std::size_t n, std::uint64_t seed) {
  std::vector<float> x(n);
  const auto bytes = datasets_matching("normal").front()->make(format_info<fp32>(), n, seed).bytes;
  std::memcpy(x.data(), bytes.data(), n * sizeof(float));
  return {x.begin(), x.end()};
}

TEST(PeersOfReductions, ComputeTheSameResults) {
  const std::size_t rows = 3, n = 100;
  const std::vector<double> x = made(rows * n, 9), y = made(rows * n, 10);
  double dot = 0, squares = 0;
  std::vector<double> sums(rows), columns(n), softmax(rows * n);
  for (std::size_t i = 0; i < rows * n; ++i)
    dot += x[i] * y[i], squares += x[i] * x[i], sums[i / n] += x[i], columns[i % n] += x[i];
  for (std::size_t i = 0; i < rows * n; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += std::exp(x[i / n * n + k] - x[i]);
    softmax[i] = 1 / sum;
  }
  std::size_t peers = 0;
  for (const auto& [c, expected] :
       {std::pair{cell("dot", 1, rows * n), std::vector{dot}},
        std::pair{cell("norm", 1, rows * n), std::vector{std::sqrt(squares)}},
        std::pair{cell("sum", rows, n), sums}, std::pair{cell("sum", 1, rows, n), columns},
        std::pair{cell("softmax", rows, n), softmax}})
    for (const Method* peer : peers_of(c).methods) {
      const std::vector<std::byte> bytes = Bench{c, 9, c.elements()}.results(c, *peer);
      std::vector<float> found(bytes.size() / sizeof(float));
      std::memcpy(found.data(), bytes.data(), bytes.size());
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << peer->name;
      ++peers;
    }
  EXPECT_GE(peers, 1u) << "softmax needs no library";
}

std::vector<std::string> names_of_peers(const Cell& c) {
  std::vector<std::string> names;
  for (const Method* m : peers_of(c).methods) names.push_back(m->name);
  return names;
}

std::vector<std::string> reasons_of_peers(const Cell& c) {
  std::vector<std::string> reasons;
  for (const auto& [peer, reason] : peers_of(c).declined) reasons.push_back(peer->name + ": " + reason);
  return reasons;
}

TEST(PeersOfReductions, DeclineWhatTheyDoNotComputeWithAReason) {
  EXPECT_THAT(reasons_of_peers(cell("mean", 3, 100)), IsEmpty());
  EXPECT_THAT(reasons_of_peers(cell("mean", 1, 100, 3)),
              ElementsAre("boost/mean/fp32@peer: it reduces contiguous elements: vectors and rows"));
  EXPECT_THAT(reasons_of_peers(cell("mean", 3, 100, 1, 2)),
              ElementsAre("boost/mean/fp32@peer: it computes with one thread"));
}

TEST(PeersOfReductions, AreListedForTheirOwnOperationOnly) {
  EXPECT_THAT(names_of_peers(cell("max", 1, 100)), IsEmpty());
  const auto sums = ::testing::AnyOf("eigen/sum/fp32@peer", "blas/gemv/fp32@peer");
  EXPECT_THAT(names_of_peers(cell("sum", 1, 100, 100)), Each(sums));
  EXPECT_THAT(names_of_peers(cell("sum", 2, 100, 100)), Each(sums));
  EXPECT_THAT(names_of_peers(cell("mean", 3, 100)), ElementsAre("boost/mean/fp32@peer"));
  EXPECT_THAT(names_of_peers(cell("softmax", 3, 100)), ElementsAre("loop/softmax/fp32@peer"));
  EXPECT_THAT(names_of_peers(cell("softmax", 3, 100, 1, 2)), IsEmpty()) << "these peers have one thread";
  EXPECT_THAT(names_of_peers(cell("dot", 1, 100, 1, 0)), IsEmpty());
  if (absent().empty()) {
    EXPECT_THAT(names_of_peers(cell("sum", 3, 100, 1, 0)), ElementsAre("cub/segmented/fp32@peer"));
  }
}

TEST(ACell, HasACeilingAndCountsTheBytesReadAndWritten) {
  EXPECT_EQ(cell("sum", 3, 100).ceiling(), "read");
  EXPECT_EQ(cell("softmax", 3, 100).ceiling(), "copy");
  EXPECT_EQ(cell("sum", 3, 100, 5).bytes(), 6000u);
  EXPECT_EQ(cell("dot", 1, 100).bytes(), 800u);
  EXPECT_EQ(cell("softmax", 3, 100).bytes(), 2400u);
}

// --- the program ------------------------------------------------------------------------------------

class TheProgramOfReductions : public ::testing::Test {
 protected:
  Outcome run(const std::string& arguments) const {
    return shell_.run(SAMESUM_PROGRAMS "/speed_of_reductions " + arguments);
  }
  std::filesystem::path file() const { return shell_.work() / "out/speed_of_reductions.jsonl"; }

  testing_support::Shell shell_;
  const std::string some_ =
      "--longest 18 --filter 'dot/tree/plain/fp32@cpu,max/fp32@cpu,softmax/*@cpu' --out out";
};

TEST_F(TheProgramOfReductions, GivesRowsThatFitTheSchemaAndContinues) {
  const Outcome first = run(some_ + " --json --seed 5");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, read(file()));
  const std::vector<std::string> all = lines(first.out);
  EXPECT_EQ(schema().problem(Json::parse(all.at(0)), "study"), "");
  std::set<std::string> operations;
  std::size_t verified = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Json row = Json::parse(all[i]);
    EXPECT_EQ(schema().problem(row, "reduction"), "") << row;
    EXPECT_EQ(row["seed"], 5);
    EXPECT_GT(row["seconds"], 0);
    EXPECT_LE(row["outer"].get<std::size_t>() * row["n"].get<std::size_t>(), std::size_t{1} << 18);
    operations.insert(row["operation"]);
    const std::string method = row["method"];
    if (method.ends_with("@peer"))
      EXPECT_EQ(row["verified"], true) << row;
    else
      verified += row["verified"] == Json(true);
    const double moved = static_cast<double>(row["n"].get<std::size_t>() * row["outer"].get<std::size_t>()) *
                         sizeof(float) * (row["operation"] == "max" ? 1 : 2);
    EXPECT_NEAR(row["gb_per_s"].get<double>() * 1e9 * row["seconds"].get<double>() / moved, 1, 1e-9);
  }
  EXPECT_THAT(operations, ElementsAre("dot", "max", "softmax"));
  EXPECT_EQ(verified, 1 + 1 + 8) << "our methods";
  std::vector<std::string> again = lines(run(some_ + " --json --seed 5").out);
  ASSERT_EQ(again.size(), all.size());
  again[0] = all[0];  // the header has the date
  EXPECT_EQ(again, all) << "rows are read back: measured times would differ";
}

TEST_F(TheProgramOfReductions, MeasuresExactAndFixedPointOnAwkwardData) {
  const Outcome o = run(
      "--longest 18 --json --filter 'sum/exact/fp32@cpu,sum/fixed_point/fp32@cpu,sum/tree/plain/fp32@cpu'");
  ASSERT_EQ(o.code, 0) << o.err;
  std::map<std::string, double> normal;  // seconds, by method and length of a row
  std::map<std::string, int> seen;
  for (const std::string& line : lines(o.out)) {
    const Json row = Json::parse(line);
    if (row["kind"] != "reduction") continue;
    EXPECT_EQ(schema().problem(row, "reduction"), "") << row;
    const std::string key = row["method"].get<std::string>() + row["n"].dump() + row["inner"].dump();
    if (!row.contains("data")) {
      EXPECT_FALSE(row.contains("times_normal")) << row;
      normal[key] = row["seconds"];
    } else if (row["method"] != "read") {
      ASSERT_TRUE(normal.contains(key)) << row;
      EXPECT_EQ(row["times_normal"], row["seconds"].get<double>() / normal[key]) << row;
      EXPECT_TRUE(may_depend_on_data(find(row["method"].get<std::string>()))) << row;
      EXPECT_EQ(row["verified"], Json(true)) << row;
      ++seen[row["method"].get<std::string>() + " " + row["data"].get<std::string>()];
    }
  }
  for (const std::string& data : awkward_data())
    for (const char* method : {"sum/exact/fp32@cpu ", "sum/fixed_point/fp32@cpu "})
      EXPECT_EQ(seen[method + data], 2) << method << data << ": rows and columns";
}

TEST_F(TheProgramOfReductions, DerivesItsFieldsFromTheRoundsOfAllProcessesInItsFile) {
  const std::string some = "--longest 18 --filter 'sum/exact/fp32@cpu' --out out --processes 2";
  const Outcome o = run(some);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, IsEmpty());
  std::map<int, std::vector<Json>> turns;
  for (const std::string& line : lines(read(file())))
    if (const Json row = Json::parse(line); row["kind"] == "reduction") turns[row["turns"]].push_back(row);
  EXPECT_EQ(turns.size(), 2 + 2 * awkward_data().size()) << "rows and columns of each kind of data";
  for (const auto& [number, rows] : turns) {
    std::optional<Json> fastest;
    for (const Json& row : rows)
      if (row["method"].get<std::string>().ends_with("@peer") &&
          (!fastest || row["seconds"] < (*fastest)["seconds"]))
        fastest = row;
    for (const Json& row : rows) {
      EXPECT_EQ(schema().problem(row, "reduction"), "");
      const Processes rounds = rounds_of(row);
      ASSERT_THAT(rounds, ElementsAre(SizeIs(5), SizeIs(5))) << row;
      const Interval time = median_interval(rounds);
      EXPECT_EQ(row["seconds"], time.median);
      EXPECT_EQ(row["low"], time.low);
      EXPECT_EQ(row["high"], time.high);
      EXPECT_EQ(row["times_ceiling"], ratio_of_rounds(rounds, rounds_of(rows.back())).median);
      EXPECT_EQ(row["peer"], fastest ? (*fastest)["method"] : Json(nullptr));
      EXPECT_EQ(row["times_peer"],
                fastest ? Json(ratio_of_rounds(rounds, rounds_of(*fastest)).median) : Json(nullptr));
    }
  }
  const std::string whole = read(file());
  EXPECT_EQ(run(some).out, o.out) << "the table of the last process";
  EXPECT_EQ(read(file()), whole);
}

TEST_F(TheProgramOfReductions, MeasuresAReductionAgainIfOneOfItsRowsIsTruncated) {
  ASSERT_EQ(run(some_).code, 0);
  const std::string whole = read(file());
  write(file(), whole.substr(0, whole.size() - 20));
  const Outcome o = run(some_);
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(lines(o.err), AllOf(SizeIs(1), Each(HasSubstr("incomplete line: skipped"))));
  EXPECT_THAT(lines(read(file())), SizeIs(lines(whole).size()));
}

TEST_F(TheProgramOfReductions, ShowsTablesOf80Columns) {
  const Outcome o = run("--longest 18");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(o.out, AllOf(HasSubstr("softmax, 1024 x 256 fp32: 1 thread"), HasSubstr("of copy"),
                           HasSubstr("sum, 1 x 512 x 512 fp32"), HasSubstr("moments, 2^18 fp32"),
                           HasSubstr("0 targets reached, 0 missed")));
  EXPECT_TRUE(std::filesystem::is_empty(shell_.work()));
}

TEST_F(TheProgramOfReductions, FailsIfBitsAreWrong) {
  ASSERT_EQ(run(some_).code, 0);
  std::string text = read(file());
  const std::string right = R"("verified":true)";
  write(file(), text.replace(text.rfind(right), right.size(), R"("verified":false)"));
  const Outcome o = run(some_);
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(lines(o.err),
              AllOf(SizeIs(1), Each(HasSubstr("check failed: max/fp32@cpu of 2^18 fp32: wrong bits"))));
}

TEST_F(TheProgramOfReductions, RefusesWrongArgumentsInOneLine) {
  for (const auto& [wrong, message] : std::vector<std::pair<std::string, std::string>>{
           {"--filter nothing", "--filter: 'nothing' matches no method"},
           {"--filter 'dot/*,x*'", "'x*' matches no method"},
           {"--filter read", "'read' matches no method"},
           {"--filter 'dot/*' --longest 3", "leave nothing"},
           {"--longest 41", "--longest"},
           {"--full --quick", "excludes"},
           {"--seed soon", "--seed"}}) {
    const Outcome o = run(wrong);
    EXPECT_EQ(o.code, 2) << wrong;
    EXPECT_THAT(o.err, HasSubstr(message));
    EXPECT_THAT(lines(o.err), SizeIs(1)) << o.err;
  }
}

TEST_F(TheProgramOfReductions, HasAHelpTextThatExplainsItsColumns) {
  const Outcome o = run("--help");
  EXPECT_EQ(o.code, 0);
  for (const std::string& line : lines(o.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(o.out,
              AllOf(HasSubstr("Rows of kind \"reduction\""), HasSubstr("McCalpin"), HasSubstr("--longest")));
}

}  // namespace
}  // namespace samesum::harness
