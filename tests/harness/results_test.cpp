#include "harness/results.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cases.hpp"
#include "harness/input.hpp"
#include "harness/names.hpp"
#include "harness/schema.hpp"
#include "harness/text.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/samesum.hpp"
#include "shell.hpp"

namespace samesum::harness {
namespace {

namespace fs = std::filesystem;
using samesum::testing::Array;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::Folder;
using testing_support::read;

constexpr double infinity = std::numeric_limits<double>::infinity();

// --- the schema ----------------------------------------------------------------------------------

Comparison compare(const Array& array, const Truth& truth) {
  std::vector<Measurement> measurements;
  for (const Method* v : methods_matching("tree/*", *array.values().format))
    measurements.push_back(measure(*v, array.values(), truth, {.repeats = 2, .threads = 1}));
  sort_by_merit(measurements);
  const Recommendation recommendation = recommend(measurements, *array.values().format, truth);
  return {.operation = "sum",
          .files = {"data"},
          .inputs = array.values(),
          .truth = &truth,
          .options = {.repeats = 2, .threads = 1},
          .transfer = Transfer{0.5, 2},
          .measurements = measurements,
          .recommendation = recommendation};
}

TEST(AComparison, FitsTheSchemaOnEveryCaseWithAKnownAnswer) {
  const Schema s = schema();
  for (const auto& c : samesum::testing::cases()) {
    const Array array = c.array();
    const Truth truth{array.values()};
    const Json line = Json::parse(json_line(comparison_json(compare(array, truth))));
    ASSERT_EQ(s.problem(line, "comparison"), "") << c << '\n' << line.dump(1);
    for (const Json& row : line["methods"]) ASSERT_EQ(s.problem(row, "measurement"), "") << c;
  }
}

TEST(ResultsOfThisRepository, FitTheSchema) {
  const Schema s = schema();
  int files = 0;
  for (const auto& file : fs::directory_iterator{fs::path{SAMESUM_SOURCE_DIR} / "experiments/results"}) {
    ++files;
    const std::string name = file.path().filename().string();
    std::istringstream in{read(file.path())};
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines) {
      const Json object = Json::parse(line);
      ASSERT_EQ(s.problem(object, object["kind"]), "") << file.path();
      if (object.contains("provenance"))  // files are named after the GPU, if there is one
        EXPECT_EQ(object["provenance"]["gpu"].is_null(),
                  !name.starts_with("h100.") && !name.starts_with("h200."))
            << file.path();
      else
        EXPECT_GT(lines, 0) << file.path() << " does not begin with its provenance";
    }
  }
  EXPECT_GT(files, 0);
}

TEST(TheSchema, ListsEveryPromiseAndEveryFormat) {
  Json promises = Json::array(), names = Json::array();
  for (const Promise p : {Promise::none, Promise::run_to_run, Promise::everywhere, Promise::order_free})
    promises.push_back(name_of(p));
  for (const FormatInfo& f : formats) names.push_back(f.name);
  const Json definitions =
      Json::parse(read(SAMESUM_SOURCE_DIR "/experiments/harness/results.schema.json"))["$defs"];
  EXPECT_EQ(definitions["promise"]["enum"], promises) << "from the weakest to the strongest";
  EXPECT_EQ(definitions["format"]["enum"], names);
}

TEST(TheSchema, EnforcesTheMinimumNumberOfItems) {
  const Schema s{Json::parse(R"({"$defs": {"list": {"type": "array", "minItems": 1}}})")};
  EXPECT_EQ(s.problem({1}, "list"), "");
  EXPECT_EQ(s.problem(Json::array(), "list"), "list: has fewer than 1 items");
}

TEST(AComparison, WithoutOneOfItsKeysDoesNotFitTheSchema) {
  const Array array{format_info<fp64>(), {1, 2}};
  const Truth truth{array.values()};
  const Json line = comparison_json(compare(array, truth));
  for (const auto& [key, value] : line.items()) {
    Json broken = line;
    broken.erase(key);
    EXPECT_EQ(schema().problem(broken, "comparison").empty(), key == "schema" || key == "operation")
        << key << ": older files lack it";
  }
  for (const auto& [key, value] : line["methods"][0].items()) {
    Json broken = line;
    broken["methods"][0].erase(key);
    EXPECT_NE(schema().problem(broken, "comparison"), "") << key;
    broken["methods"][0][key] = Json::object();
    EXPECT_NE(schema().problem(broken, "comparison"), "") << key;
  }
  Json broken = line;
  broken["surprise"] = 1;
  EXPECT_NE(schema().problem(broken, "comparison"), "");
}

TEST(AComparison, IsOneObjectOnOneLine) {
  const Array array{format_info<fp64>(), {1, 2}};
  const Truth truth{array.values()};
  Comparison c = compare(array, truth);
  c.files = {"a name\nof two lines that is no UTF-8: \xff"};
  const std::string line = json_line(comparison_json(c));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(line.back(), '\n');
}

TEST(AResult, HasNullForANumberThatIsNotFiniteAndAlwaysHasItsBits) {
  const Array array{format_info<fp16>(), {65504, 65504}};
  const Truth truth{array.values()};
  const Method& exact = find("exact/fp16@cpu");
  const Json row = result_json(judge(exact, *array.values().format, truth, exact.bind(array.values())()),
                               *array.values().format, truth);
  EXPECT_TRUE(row["value"].is_null() && row["truth"].is_null() && row["relative_error"].is_null());
  EXPECT_EQ(row["bits"], "0x7c00");
  EXPECT_EQ(row["truth_bits"], "0x7c00");
  EXPECT_EQ(row["error_ulps"], 0);
}

TEST(Rows, AreCommaSeparatedWithAHeaderAndQuotes) {
  EXPECT_EQ(csv({}), "");
  EXPECT_EQ(csv({Json{{"a", 1}, {"b", nullptr}}, Json{{"a", "x,\"y\""}, {"b", -0.0}}}),
            "a,b\n1,\n\"x,\"\"y\"\"\",-0.0\n");
}

// --- files ---------------------------------------------------------------------------------------

TEST(AFile, IsWrittenWholeAndReplacesTheOldOne) {
  const Folder folder;
  write_file(folder / "out", "old and longer");
  write_file(folder / "out", "new");
  EXPECT_EQ(read(folder / "out"), "new");
  EXPECT_THAT(folder.names(), ElementsAre("out"));
}

TEST(AFile, KeepsASymbolicLinkToIt) {
  const Folder folder;
  write_file(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read(folder / "target"), "new");
}

TEST(AFile, ThatCannotBeWrittenIsRefusedByNameAndLeavesNothing) {
  const Folder folder;
  fs::create_directory(folder / "directory");
  for (const auto& path : {folder / "directory", folder / "missing/out"}) {
    try {
      write_file(path, "text");
      ADD_FAILURE() << path;
    } catch (const OutputError& e) {
      EXPECT_THAT(e.what(), HasSubstr(path.string() + ": cannot be written: "));
    }
  }
  EXPECT_THAT(folder.names(), ElementsAre("directory"));
}

/// A named pipe represents all devices, so that an error here cannot replace /dev/null.
TEST(AFile, ThatIsAPipeIsWrittenToAndStaysAPipe) {
  const Folder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  write_file(pipe, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
  std::array<char, 8> received{};
  EXPECT_EQ(::read(reader, received.data(), received.size()), 4);
  EXPECT_STREQ(received.data(), "text");
  close(reader);
  EXPECT_THAT(folder.names(), ElementsAre("pipe"));
}

// --- numbers as text -----------------------------------------------------------------------------

/// Whether one digit fewer, rounded down or up, would still read back as the same number.
bool could_be_shorter(Number x, std::size_t digits) {
  if (digits < 2) return false;
  std::array<char, 160> text;
  std::snprintf(text.data(), text.size(), "%.140e", std::abs(x.to_double()));
  const std::string all = text.data();
  const std::string head = all.substr(0, 1) + all.substr(2, digits - 2);
  const int exponent = std::stoi(all.substr(all.find('e') + 1)) - static_cast<int>(digits - 2);
  for (const unsigned long long d : {std::stoull(head), std::stoull(head) + 1})
    if (parse_number(std::to_string(d) + "e" + std::to_string(exponent), *x.format) ==
        Number{x.format, x.bits & ~x.format->sign_bit})
      return true;
  return false;
}

std::size_t significant_digits(const std::string& decimal) {
  std::string digits;
  for (const char c : decimal.substr(0, decimal.find('e')))
    if (std::isdigit(static_cast<unsigned char>(c))) digits += c;
  digits.erase(0, digits.find_first_not_of('0'));
  digits.erase(digits.find_last_not_of('0') + 1);
  return digits.size();
}

/// Integers below 10^16 are printed with all their digits, since rounding them would not shorten the text.
bool is_spelled_as_integer(Number x) {
  const double magnitude = std::abs(x.to_double());
  return magnitude == std::trunc(magnitude) && magnitude < 1e16;
}

TEST(AShortestDecimal, OfEvery16BitNumberReadsBackAndCannotBeShorter) {
  for (const FormatInfo* format : {&format_info<fp16>(), &format_info<bf16>()})
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const Number x{format, bits};
      if (!is_finite(x)) continue;
      const std::string text = shortest_decimal(x);
      ASSERT_EQ(parse_number(text, *format), x) << text;
      // An integer has all its digits, unless an exponent is shorter.
      if (is_spelled_as_integer(x) && text.size() >= std::to_string(std::llrint(x.to_double())).size())
        ASSERT_EQ(std::stod(text), x.to_double());
      else
        ASSERT_FALSE(could_be_shorter(x, significant_digits(text))) << text;
    }
}

struct Written {
  Number x;
  const char* decimal;
  const char* hex;
  const char* bits;
};

TEST(ANumber, IsSpelledForReadersAndForMachines) {
  const std::vector<Written> spellings{
      {Number::of(0.1), "0.1", "0x1.999999999999ap-4", "0x3fb999999999999a"},
      {Number::of(0.1f), "0.1", "0x1.99999ap-4", "0x3dcccccd"},
      {Number::of(fp16{0.1}), "0.1", "0x1.998p-4", "0x2e66"},
      {Number::of(bf16{0.1}), "0.1", "0x1.9ap-4", "0x3dcd"},
      {Number::of(bf16{99840.0}), "99840", "0x1.86p+16", "0x47c3"},
      {Number::of(16777216.0f), "16777216", "0x1p+24", "0x4b800000"},
      {Number::of(fp16{65504.0}), "65504", "0x1.ffcp+15", "0x7bff"},
      {Number::of(bf16{1e38}), "1e+38", "0x1.2cp+126", "0x7e96"},
      {Number::of(fp16{0x1p-24}), "6e-08", "0x1p-24", "0x0001"},
      {Number::of(100000.0), "100000", "0x1.86ap+16", "0x40f86a0000000000"},
      {Number::of(1e16), "1e+16", "0x1.1c37937e08p+53", "0x4341c37937e08000"},
      {Number::of(123456789012345.0), "123456789012345", "0x1.c12218377de4p+46", "0x42dc12218377de40"},
      {Number::of(-1.5e-7), "-1.5e-07", "-0x1.421f5f40d8376p-23", "0xbe8421f5f40d8376"},
      {Number::of(0.0), "0", "0x0p+0", "0x0000000000000000"},
      {Number::of(-0.0f), "-0", "-0x0p+0", "0x80000000"},
      {Number::of(-infinity), "-inf", "-inf", "0xfff0000000000000"},
      {Number{&format_info<bf16>(), 0x7fc0}, "nan", "nan", "0x7fc0"},
  };
  for (const Written& s : spellings) {
    EXPECT_EQ(shortest_decimal(s.x), s.decimal);
    EXPECT_EQ(hexadecimal(s.x), s.hex);
    EXPECT_EQ(bit_string(s.x), s.bits);
  }
}

TEST(ANumberInATable, FitsItsColumn) {
  EXPECT_EQ(compact(0.30501, 7), "0.305");
  EXPECT_EQ(compact(12345678, 7), "1.2e+07");
  EXPECT_EQ(compact(-1.23456e-100, 8, 17), "-1e-100");
  EXPECT_EQ(compact(infinity, 7), "inf");
  EXPECT_EQ(compact(std::nan(""), 7), "-");
  EXPECT_EQ(duration(0.0123456), "12.3ms");
  EXPECT_EQ(duration(1.2e-6), "1.20us");
  EXPECT_EQ(duration(9.9999e-7), "1000ns");
  EXPECT_EQ(duration(123.4), "123s");
}

// --- names ---------------------------------------------------------------------------------------

TEST(AGlob, MatchesWholeNamesWithStarsAndQuestionMarks) {
  EXPECT_TRUE(matches("*", "tree/kahan/fp32@cpu"));
  EXPECT_TRUE(matches("tree/*@cpu", "tree/kahan/fp32@cpu"));
  EXPECT_TRUE(matches("*/fp??@*", "tree/kahan/fp32@cpu"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("tree", "tree/kahan/fp32@cpu"));
  EXPECT_FALSE(matches("*/fp?@cpu", "tree/kahan/fp32@cpu"));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c*", "aXbYbZc"));
  EXPECT_FALSE(matches("a*b*c", "aXbYbZcd"));
  EXPECT_FALSE(matches(std::string(10'000, '*') + "x", "tree/kahan/fp32@cpu")) << "must not take 2^n steps";
}

std::vector<std::string> names_matching(const std::string& glob) {
  std::vector<std::string> names;
  for (const Method* v : methods_matching(glob, format_info<bf16>())) names.push_back(v->name);
  return names;
}

TEST(AGlob, WithoutABackendMeansTheCpuAndTheGpuIfThereIsOne) {
  std::vector<std::string> both{"sum/tree/kahan/fp32@cpu"};
  if (absent().empty()) both.push_back("sum/tree/kahan/fp32@cuda");
  EXPECT_EQ(names_matching("tree/kahan/*32"), both);
  EXPECT_THAT(names_matching("tree/kahan/*32@*").size(), both.size() + 1);
  for (const std::string& name : names_matching("*")) EXPECT_FALSE(find(name).is_slow) << name;
}

TEST(AGlob, MayBeOneOfAList) {
  EXPECT_THAT(names_matching("tree/kahan/fp32@cpu,exact@cpu,exact*@cpu"),
              ElementsAre("sum/tree/kahan/fp32@cpu", "sum/exact/bf16@cpu", "sum/exact/fp16@cpu",
                          "sum/exact/fp32@cpu", "sum/exact/fp64@cpu"));
  EXPECT_THROW(names_matching("exact,x*"), UsageError);
}

TEST(AFullName, WithoutABackendMeansTheCpu) {
  EXPECT_THAT(names_matching("exact"), ElementsAre("sum/exact/bf16@cpu"));
  EXPECT_THAT(names_matching("exact@reference"), ElementsAre("sum/exact/bf16@reference"));
  EXPECT_THAT(names_matching("tree/kahan/*32*reference"), ElementsAre("sum/tree/kahan/fp32@reference"));
  EXPECT_THROW(names_matching("tree"), UsageError);
}

// --- failures and advice -------------------------------------------------------------------------

/// Returns an invented measurement of a method.
Measurement pretend(const char* name, double seconds, double bound, double error = 0) {
  const Method& v = find(name);
  const Number value{v.format, 0};
  return {&v, value, value, {error, error, error}, bound, true, 1, 3, seconds, 1};
}

TEST(AFailure, IsABrokenBoundABrokenPromiseOrAnExactSumThatIsWrong) {
  Measurement m = pretend("tree/plain/fp64", 1, 1);
  EXPECT_FALSE(failure(m));
  m.distinct_bits = 2;
  EXPECT_THAT(failure(m).value(), HasSubstr("promises everywhere but gave 2 bit patterns in 3 runs"));
  m.within_bound = false;
  EXPECT_THAT(failure(m).value(), HasSubstr("exceeds its bound"));

  Measurement atomic = pretend("atomic/plain/fp64", 1, 1);
  atomic.distinct_bits = 3;
  EXPECT_FALSE(failure(atomic)) << "it promises nothing";

  Method peer = find("tree/plain/fp64");
  peer.backend = "peer";
  m.method = &peer;
  const Array array{format_info<fp64>(), {1}};
  EXPECT_EQ((Comparison{"", {}, array.values(), nullptr, {}, {}, {m}, {}}.failures().size()), 0u)
      << "a promise that a peer breaks is not a failure";

  Measurement exact = pretend("exact/fp16", 1, 1);
  EXPECT_FALSE(failure(exact));
  exact.value.bits = 1;
  EXPECT_THAT(failure(exact).value(), HasSubstr("gave 0x0001, but the exact result rounds to 0x0000"));
}

TEST(TheOrderOfMerit, IsByErrorThenBySpeed) {
  std::vector<Measurement> all{pretend("tree/plain/fp64", 1, 1, 2), pretend("tree/kahan/fp64", 3, 1, 1),
                               pretend("exact/fp64", 2, 1, 1), pretend("serial/plain/fp64", 1, 1, infinity)};
  sort_by_merit(all);
  std::vector<std::string> names;
  for (const Measurement& m : all) names.push_back(m.method->name);
  EXPECT_THAT(names, ElementsAre("sum/exact/fp64@cpu", "sum/tree/kahan/fp64@cpu", "sum/tree/plain/fp64@cpu",
                                 "sum/serial/plain/fp64@cpu"));
}

/// By default the data are a thousand ones, for which a bound of 1 ulp is a relative bound of 1.024 u.
class Advice : public ::testing::Test {
 protected:
  Recommendation recommended(std::vector<Measurement> all, std::vector<double> x) const {
    const Array array{format_info<fp64>(), x};
    sort_by_merit(all);
    return recommend(all, format_info<fp64>(), Truth{array.values()});
  }
  std::string on(std::vector<Measurement> all, std::vector<double> x = std::vector<double>(1000, 1)) const {
    return recommended(all, x).method->name;
  }
};

TEST(Lines, AreWrappedAtBlanksBeforeTheyAreTooLong) {
  EXPECT_EQ(wrapped("to be or not", 8), "to be or\n  not");
  EXPECT_EQ(wrapped("to be or not", 7, 0), "to be\nor not");
  EXPECT_EQ(wrapped("to be or not", 80), "to be or not");
  EXPECT_EQ(wrapped("incomprehensible it is", 6), "incomprehensible\n  it\n  is");
  EXPECT_EQ(wrapped(""), "");
}

TEST_F(Advice, IsTheFastestMethodGuaranteedWithinOneUlp) {
  EXPECT_EQ(on({pretend("exact/fp64", 9, 1), pretend("tree/neumaier/fp64", 2, 1),
                pretend("tree/kahan/fp64", 1.5, 1), pretend("tree/plain/fp64", 1, 1)}),
            "sum/tree/neumaier/fp64@cpu")
      << "Kahan's bound is 3 u";
}

TEST_F(Advice, EqualsTheChoiceOfTheLibrary) {
  const std::vector<double> tenths(700, 0.1);
  const Truth truth{tenths};
  const std::vector<Measurement> all{pretend("exact/fp64", 9, 1), pretend("tree/neumaier/fp64", 3, 1),
                                     pretend("tree/double_word/fp64", 2, 1),
                                     pretend("tree/plain/fp64", 1, 1)};
  std::vector<Cost> costs;
  for (const Measurement& m : all) costs.push_back({m.method->name, "fp64", truth.size(), m.seconds});
  const Requirements required =
      requirements_for(truth, format_info<fp64>(), {.relative_error = 1.5 * 0x1p-53});
  EXPECT_EQ(required.length, 700u);
  EXPECT_EQ(required.condition, 1 + 0x1p-40);
  EXPECT_EQ(on(all, tenths), choose(required, costs).best.method->name);
}

TEST_F(Advice, IsExactIfItCostsLittleMore) {
  EXPECT_EQ(on({pretend("exact/fp64", 2.2, 1), pretend("tree/neumaier/fp64", 2, 1)}), "sum/exact/fp64@cpu");
}

TEST_F(Advice, IsExactIfNoOtherMethodIsGuaranteed) {
  EXPECT_EQ(on({pretend("exact/fp64", 99, 1), pretend("tree/plain/fp64", 1, 1)}), "sum/exact/fp64@cpu");
}

TEST_F(Advice, IsExactIfDataAreNotFiniteOrCancel) {
  const std::vector<Measurement> all{pretend("exact/fp64", 99, infinity), pretend("exact/fp32", 1, infinity),
                                     pretend("tree/plain/fp64", 1, infinity)};
  for (const std::vector<double>& x : {std::vector{infinity}, {1.0, -1.0}, {}})
    EXPECT_EQ(on(all, x), "sum/exact/fp64@cpu");
  EXPECT_EQ(recommended(all, {infinity}).reason,
            "the data contain inf or NaN, for which there is no relative error");
  EXPECT_EQ(recommended(all, {1, -1}).reason,
            "the exact sum is 0, which exact returns for any order of the elements");
  EXPECT_EQ(recommended(all, {1.7e308, 1.7e308}).reason,
            "the sum is beyond the range of fp64; exact is correctly rounded");
  EXPECT_EQ(recommended(all, {1.7e308, 1.7e308, -1.7e308}).reason,
            "the sum of |x| is beyond the range of fp64, which does not affect exact");
  for (const std::vector<Measurement>& some : {all, {all[2]}})
    EXPECT_EQ(recommended(some, {}).reason, "there are no elements, so every method returns the same");
}

TEST_F(Advice, StatesItsReason) {
  const Measurement exact = pretend("exact/fp64", 2, 1), neumaier = pretend("tree/neumaier/fp64", 2, 1),
                    plain = pretend("tree/plain/fp64", 1, 1);
  const std::vector<double> ones(1000, 1);
  const auto reason = [&](const std::vector<Measurement>& all) { return recommended(all, ones).reason; };
  EXPECT_EQ(reason({exact, plain}), "only exact has a bound of at most 1 ulp of fp64 (condition number 1)");
  EXPECT_EQ(
      reason({exact, neumaier}),
      "correctly rounded, and as fast as the fastest other method whose bound is at most 1 ulp of fp64");
  EXPECT_EQ(reason({pretend("exact/fp64", 1, 1), neumaier}),
            "correctly rounded, in 0.5 times the time of the fastest other method whose bound is at most 1 "
            "ulp of fp64");
  EXPECT_EQ(reason({pretend("exact/fp64", 9, 1), neumaier}),
            "fastest method whose bound is at most 1 ulp of fp64 (exact takes 4.5 times as long)");
  EXPECT_EQ(reason({neumaier}), "fastest method whose bound is at most 1 ulp of fp64");
  EXPECT_EQ(recommended({plain}, {infinity}).reason,
            "the data contain inf or NaN, for which there is no relative error");
}

TEST_F(Advice, SkipsMethodsThatPromiseNothingOrAreNarrowerThanTheData) {
  EXPECT_EQ(
      on({pretend("atomic/plain/fp64", 1, 1), pretend("exact/fp32", 1, 1), pretend("exact/fp64", 9, 1)}, {1}),
      "sum/exact/fp64@cpu");
}

TEST_F(Advice, SkipsAMethodThatBrokeItsBound) {
  Measurement broken = pretend("tree/neumaier/fp64", 1, 1);
  broken.within_bound = false;
  EXPECT_EQ(on({broken, pretend("exact/fp64", 9, 1)}), "sum/exact/fp64@cpu");
  EXPECT_EQ(on({broken}), "sum/tree/neumaier/fp64@cpu") << "there is no other method";
}

TEST_F(Advice, IsTheSmallestErrorIfNoMethodIsGuaranteed) {
  const Recommendation r =
      recommended({pretend("tree/plain/fp64", 1, 1, 0.5), pretend("tree/kahan/fp64", 9, 1, 0.25),
                   pretend("atomic/plain/fp64", 1, 1, 0)},
                  std::vector<double>(1000, 1));
  EXPECT_EQ(r.method->name, "sum/tree/kahan/fp64@cpu");
  EXPECT_EQ(r.reason, "smallest error here, but not guaranteed");
}

TEST_F(Advice, MayBeAMethodOfTheReferenceIfThereAreNoOthers) {
  EXPECT_EQ(on({pretend("exact/fp64@reference", 9, 1), pretend("tree/neumaier/fp64@reference", 2, 1)}),
            "sum/tree/neumaier/fp64@reference");
}

TEST(AMeasurement, CountsBitPatternsAndBytes) {
  const std::vector<double> x{1, 2, 3};
  const Truth truth{x};
  const Measurement m = measure(find("tree/plain/fp64"), x, truth, {.repeats = 3, .threads = 2});
  EXPECT_EQ(m.value, Number::of(6.0));
  EXPECT_EQ(m.distinct_bits, 1u);
  EXPECT_EQ(m.repeats, 3);
  EXPECT_GT(m.seconds, 0);
  EXPECT_DOUBLE_EQ(m.gigabytes_per_second, 24 / m.seconds / 1e9);
}

TEST(AMeasurement, OfASlowMethodIsOneRun) {
  const std::vector<double> x{1, 2, 3};
  const Measurement m =
      measure(find("tree/plain/fp64"), x, Truth{x}, {.repeats = 3, .threads = 0, .patience = 0});
  EXPECT_EQ(m.repeats, 1);
  EXPECT_EQ(m.distinct_bits, 1u);
  EXPECT_GT(m.seconds, 0);
}

TEST(ASpread, IsBetweenTheLowestAndTheHighestAnswer) {
  const Spread some = spread_of({Number::of(2.0), Number::of(-1.0), Number::of(2.0), Number::of(0.5)}, 0.25);
  EXPECT_EQ(some.runs, 4u);
  EXPECT_EQ(some.distinct_bits, 3u);
  EXPECT_EQ(some.lowest, -1);
  EXPECT_EQ(some.highest, 2);
  EXPECT_EQ(some.ulps, 12);
  EXPECT_EQ(spread_of({Number::of(0.0), Number::of(-0.0)}, 1).distinct_bits, 2u);
  EXPECT_EQ(spread_of({Number::of(0.0), Number::of(-0.0)}, 1).ulps, 0);
  EXPECT_EQ(spread_of({Number::of(infinity), Number::of(infinity)}, infinity).ulps, 0);
  EXPECT_EQ(spread_of({Number::of(infinity), Number::of(1.0)}, 1).ulps, infinity);
  const double vs =
      largest_variability({Number::of(2.0), Number::of(-2.5), Number::of(2.0), Number::of(1.0)});
  EXPECT_EQ(vs, 0.5) << "signs do not count";
  EXPECT_EQ(largest_variability({Number::of(0.0), Number::of(0.0)}), 0) << "nothing varied";
  EXPECT_EQ(largest_variability({Number::of(infinity), Number::of(infinity)}), 0);
  EXPECT_TRUE(std::isnan(largest_variability({Number::of(0.0), Number::of(1.0)})));
  const Spread none = spread_of({Number::of(1.0), Number::of(std::nan("")), Number::of(2.0)}, 1);
  EXPECT_EQ(none.distinct_bits, 3u);
  EXPECT_TRUE(std::isnan(none.lowest) && std::isnan(none.highest) && std::isnan(none.ulps));
}

/// The answer of the method changes from run to run.
TEST(AMeasurement, OfAnUnsteadyMethodIsItsWorstRun) {
  Method unsteady = find("atomic/plain/fp64");
  Code code = Code::of(unsteady);
  code.sum.fill([](const void*, std::size_t, int) {
    static int runs = 0;
    return to_bits(std::array{6.0, 6.0, 7.0, 5.5}[static_cast<std::size_t>(runs++ % 4)]);
  });
  code.run_by(unsteady);
  const std::vector<double> x{1, 2, 3};
  const Measurement m = measure(unsteady, x, Truth{x}, {.repeats = 7, .threads = 0});
  EXPECT_EQ(m.distinct_bits, 3u);
  EXPECT_EQ(m.value, Number::of(7.0));
  EXPECT_FALSE(m.within_bound);
}

}  // namespace
}  // namespace samesum::harness
