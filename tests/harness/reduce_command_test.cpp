/// Checks the tool's reductions of files against the library's calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "cases.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"
#include "shell.hpp"
#include "tool/commands.hpp"
#include "tool/output_npy.hpp"

namespace samesum::harness {
namespace {

using samesum::testing::Array;
using ::testing::HasSubstr;
using testing_support::Folder;
using testing_support::folder_in_memory;
using testing_support::read;
using testing_support::with_window;
using testing_support::write;

/// A matrix, written as a file.
struct Matrix {
  std::string name;
  std::size_t rows, columns;
  std::vector<double> elements;
};

std::vector<Matrix> matrices() {
  const std::vector<double> u = {0.1, -2.5, 3.75, 0.2, 1.125, -0.7, 6, 2, 0.001, -1, 5.5, 0.25};
  std::vector<double> nan = u, infinite = u;
  nan[4] = NAN;
  infinite[0] = INFINITY;
  return {{"ordinary", 3, 4, u},
          {"with a NaN", 4, 3, nan},
          {"with an infinity", 2, 6, infinite},
          {"of one row", 1, 5, {1, 2, 3, 4, 5.5}},
          {"of no rows", 0, 3, {}},
          {"of no columns", 3, 0, {}}};
}

std::set<std::string> operations() {
  std::set<std::string> all;
  for (const Method& m : methods())
    if (!m.takes_keys) all.insert(m.operation);
  return all;
}

/// The options of a command with the window of `with_window`.
ReduceOptions windowed(const Method& m, ReduceOptions options) {
  const Options window = with_window(m);
  options.window = window.window;
  options.min_periods = window.min_periods;
  options.grid = window.grid;
  return options;
}

Layout layout_of(const Matrix& m, const std::string& axis) {
  return axis == "rows"      ? Layout::axis(m.rows, m.columns, 1)
         : axis == "columns" ? Layout::axis(1, m.rows, m.columns)
                             : Layout::vector(m.rows * m.columns);
}

/// The bytes of the results by a call of the library.
std::string results_of(const Method& m, Values x, Values y, Layout layout) {
  const FormatInfo* format = m.result_format(*x.format);
  const std::size_t count =
      m.has_result_per_element ? x.size : layout.results() * static_cast<std::size_t>(m.results);
  std::string bytes(count * (format ? format->bytes : sizeof(std::int64_t)), '\0');
  const Results out{format, bytes.data(), count};
  if (m.inputs == 2)
    reduce(m, x, y, layout, out);
  else
    reduce(m, x, layout, out, with_window(m));
  return bytes;
}

TEST(AReductionOfAFile, HasTheBitsOfTheLibraryForEveryOperationAndAxis) {
  const Folder folder{folder_in_memory()};
  const std::string x_file = (folder / "x.npy").string(), y_file = (folder / "y.npy").string(),
                    out = (folder / "out.npy").string();
  int compared = 0;
  for (const Matrix& matrix : matrices())
    for (const FormatInfo* format : {&format_info<fp16>(), &format_info<fp32>(), &format_info<fp64>()}) {
      const Array x{*format, matrix.elements},
          y{*format, std::vector<double>(matrix.elements.rbegin(), matrix.elements.rend())};
      const std::size_t bytes = matrix.rows * matrix.columns * format->bytes;
      for (const auto& [file, a] : {std::pair{x_file, &x}, {y_file, &y}})
        write_npy(file, {matrix.rows, matrix.columns}, format,
                  {static_cast<const std::byte*>(a->values().data), bytes});
      for (const std::string& operation : operations()) {
        const Method* m = default_method(operation, *format);
        for (const std::string axis : {"", "rows", "columns"}) {
          if (m->keeps_format && axis == "columns") continue;
          const std::vector<std::string> files =
              m->inputs == 2 ? std::vector{x_file, y_file} : std::vector{x_file};
          const std::string what =
              operation + " of " + std::string{format->name} + ", " + matrix.name + ", " + axis;
          EXPECT_EQ(reduce_command(
                        windowed(*m, {.operation = operation, .files = files, .axis = axis, .output = out}))
                        .text,
                    "");
          const std::string written = read(out);
          const Layout layout = layout_of(matrix, m->keeps_format ? "rows" : axis);
          const std::string expected = results_of(*m, x.values(), y.values(), layout);
          ASSERT_EQ(written.size() % 64, expected.size() % 64) << what;
          EXPECT_EQ(written.substr(written.size() - expected.size()), expected) << what;
          ++compared;
        }
      }
    }
  EXPECT_GT(compared, 500);
}

TEST(AReductionOfAFile, HasTheBitsOfTheLibraryForEveryMethodAndAxisOfThree) {
  const Folder folder{folder_in_memory()};
  const std::string file = (folder / "x.npy").string(), out = (folder / "out.npy").string();
  const std::vector<std::size_t> shape{2, 3, 4};
  std::vector<double> elements = matrices().front().elements;
  for (std::size_t i = 0; i < 12; ++i) elements.push_back(1 - elements[i]);
  std::size_t compared = 0;
  for (const Method& m : methods()) {
    if (m.backend != "cpu" || m.format == &format_info<bf16>() || !m.accepts(*m.format) || m.takes_keys)
      continue;
    const Array x{*m.format, elements};
    write_npy(file, {2, 3, 4}, m.format,
              {static_cast<const std::byte*>(x.values().data), elements.size() * m.format->bytes});
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (m.keeps_format && axis < 2) continue;
      const std::size_t outer = axis == 0 ? 1 : axis == 1 ? 2 : 6;
      const std::string expected = results_of(
          m, x.values(), x.values(), Layout::axis(outer, shape[axis], elements.size() / outer / shape[axis]));
      reduce_command(windowed(m, {.operation = m.operation,
                                  .files = std::vector(static_cast<std::size_t>(m.inputs), file),
                                  .method = m.name,
                                  .axis = std::to_string(axis),
                                  .output = out}));
      EXPECT_TRUE(read(out).ends_with(expected)) << m.name << ", axis " << axis;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300u);
}

TEST(AReductionOfAFile, HasABoundThatHolds) {
  const Folder folder{folder_in_memory()};
  const std::string file = (folder / "x.npy").string();
  std::vector<double> elements = matrices().front().elements;
  for (double& e : elements) e = convert<double>(convert<fp16>(e));
  const auto reduced = [&](const FormatInfo& format, const std::string& operation,
                           const std::optional<std::string>& method, const std::string& axis) {
    const Array x{format, elements};
    write_npy(file, {3, 4}, &format,
              {static_cast<const std::byte*>(x.values().data), x.values().size * format.bytes});
    const std::vector<std::string> files(operation == "dot" ? 2 : 1, file);
    const ReduceOptions options{
        .operation = operation, .files = files, .method = method, .axis = axis, .json = true};
    return Json::parse(reduce_command(windowed(chosen_method(options, format), options)).text);
  };
  std::size_t compared = 0;
  for (const Method& method : methods()) {
    if (method.backend != "cpu" || method.keeps_format || method.returns_index || method.takes_keys ||
        !method.accepts(format_info<fp16>()))
      continue;
    for (const std::string axis : {"", "rows", "columns"}) {
      // The default method in fp64 has a smaller bound, and the same elements.
      const Json narrow = reduced(format_info<fp16>(), method.operation, method.name, axis),
                 wide = reduced(format_info<fp64>(), method.operation, {}, axis);
      const std::string ending = axis.empty() && !method.has_result_per_element ? "" : "s";
      for (const std::string name : {"value", "mean", "variance", "standard_deviation"}) {
        const std::string key = name == "value" ? name + ending : name,
                          bound = (name == "value" ? "" : name + "_") + "bound" + ending;
        if (!narrow.contains(key)) continue;
        const auto list = [](const Json& x) { return x.is_array() ? x : Json::array({x}); };
        const Json values = list(narrow[key]), bounds = list(narrow[bound]), exact = list(wide[key]),
                   of_exact = list(wide[bound]);
        ASSERT_EQ(values.size(), method.has_result_per_element ? 12u
                                 : axis == ""                  ? 1u
                                 : axis == "rows"              ? 3u
                                                               : 4u);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (bounds[i].is_null()) continue;  // an overflow cannot be excluded
          ++compared;
          EXPECT_LE(std::abs(values[i].get<double>() - exact[i].get<double>()),
                    bounds[i].get<double>() + of_exact[i].get<double>())
              << method.name << ", " << axis << ", " << key;
          EXPECT_LT(bounds[i].get<double>(), 20) << method.name << ", " << axis << ", " << key;
        }
      }
    }
  }
  EXPECT_GT(compared, 1000u);
}

TEST(AReductionOfAFile, PrintsALinePerResult) {
  const Folder folder;
  const std::string file = (folder / "x.npy").string();
  const std::vector<double> x{1, 2, 3, 4, 5, 9};
  write_npy(file, {2, 3}, &format_info<fp64>(), std::as_bytes(std::span{x}));
  const auto text = [&](ReduceOptions options) {
    options.files = {file};
    return reduce_command(options).text;
  };
  EXPECT_EQ(text({.operation = "mean", .axis = "rows"}), "2\n6\n");
  EXPECT_EQ(text({.operation = "mean", .axis = "-2"}), "2.5\n3.5\n6\n");
  EXPECT_EQ(text({.operation = "argmax", .axis = "1"}), "2\n2\n");
  EXPECT_EQ(text({.operation = "moments", .axis = "rows"}),
            "2 0.6666666666666666 0.816496580927726\n6 4.666666666666667 2.160246899469287\n");
  EXPECT_EQ(text({.operation = "max", .axis = "columns", .bound = true}), "4 0\n5 0\n9 0\n");
  EXPECT_EQ(text({.operation = "rolling_sum", .window = 2}), "nan\n3\n5\n7\n9\n14\n");
  EXPECT_EQ(text({.operation = "rolling_sum", .axis = "rows", .window = 2, .min_periods = 1}),
            "1\n3\n5\n4\n9\n14\n");
  EXPECT_EQ(text({.operation = "rolling_max", .axis = "columns", .window = 1, .bound = true}),
            "1 0\n2 0\n3 0\n4 0\n5 0\n9 0\n");
  EXPECT_EQ(text({.operation = "rolling_var", .ddof = 1, .window = 3, .min_periods = 2, .centred = true}),
            "0.5\n1\n1\n1\n7\n8\n");
  EXPECT_EQ(text({.operation = "rolling_sum", .method = "fixed_point", .grid = 1, .window = 6}),
            "nan\nnan\nnan\nnan\nnan\n22\n");
  EXPECT_THROW(text({.operation = "rolling_sum", .method = "fixed_point", .window = 6}), UsageError);
  EXPECT_THROW(text({.operation = "rolling_sum", .window = 7}), std::invalid_argument);
  EXPECT_EQ(text({.operation = "cumsum"}), "1\n3\n6\n10\n15\n24\n");
  EXPECT_EQ(text({.operation = "cumsum", .axis = "rows", .hex = true}),
            "0x1p+0\n0x1.8p+1\n0x1.8p+2\n0x1p+2\n0x1.2p+3\n0x1.2p+4\n");
  EXPECT_EQ(text({.operation = "cumsum", .axis = "columns", .exclusive = true}), "0\n0\n0\n1\n2\n3\n");
  EXPECT_EQ(text({.operation = "cumsum", .method = "fixed_point", .grid = 1}), "0\n2\n6\n10\n14\n22\n");
  EXPECT_EQ(text({.operation = "cummax", .bound = true}), "1 0\n2 0\n3 0\n4 0\n5 0\n9 0\n");
  const Json json = Json::parse(text({.operation = "cumsum", .axis = "0", .json = true}));
  EXPECT_EQ(json["values"], Json::array({1, 2, 3, 5, 7, 12}));
  EXPECT_EQ(json["shape"], Json::array({2, 3}));
  EXPECT_EQ(json["bounds"].size(), 6u);
}

struct Bad {
  const char* name;
  ReduceOptions options;
  const char* words;
};
class ABadReduction : public ::testing::TestWithParam<Bad> {};

TEST_P(ABadReduction, IsRefusedWithTheRemedyAndWritesNothing) {
  const Folder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const std::vector<float> x{1, 2, 3, 4, 5, 9};
  write_npy(path("m.npy"), {2, 3}, &format_info<fp32>(), std::as_bytes(std::span{x}));
  write_npy(path("v.npy"), {6}, &format_info<fp32>(), std::as_bytes(std::span{x}));
  write(folder / "v.txt", "1 2 3\n");
  ReduceOptions options = GetParam().options;
  for (std::string& file : options.files) file = path(file.c_str());
  if (options.output.size() > 1) options.output = path(options.output.c_str());
  const std::string before = read(path("m.npy"));
  try {
    reduce_command(options);
    FAIL() << "is accepted";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().words));
  }
  EXPECT_EQ(read(path("m.npy")), before);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.npy"));
}

INSTANTIATE_TEST_SUITE_P(
    Options, ABadReduction,
    ::testing::Values(
        Bad{"Axis",
            {.operation = "sum", .files = {"m.npy"}, .axis = "2"},
            "--axis: 2 is out of range; FILE has 2 axes"},
        Bad{"NoAxis",
            {.operation = "sum", .files = {"m.npy"}, .axis = "row"},
            "'row' is not an axis; give rows, columns"},
        Bad{"OneAxis",
            {.operation = "sum", .files = {"v.npy"}, .axis = "rows"},
            "FILE has 1 axis; rows are those of"},
        Bad{"OneInput",
            {.operation = "dot", .files = {"m.npy"}},
            "dot takes exactly two files, and 1 was given"},
        Bad{"Shapes", {.operation = "dot", .files = {"m.npy", "v.npy"}}, "another shape"},
        Bad{"Formats", {.operation = "mean", .files = {"v.npy", "v.txt"}}, "pass --format to convert all"},
        Bad{"Elements",
            {.operation = "softmax", .files = {"m.npy"}},
            "--output: softmax has a result per element"},
        Bad{"Columns",
            {.operation = "softmax", .files = {"m.npy"}, .axis = "0", .output = "out.npy"},
            "reduces rows only"},
        Bad{"Input",
            {.operation = "mean", .files = {"m.npy"}, .output = "m.npy"},
            "this file holds the elements"},
        Bad{"Dash", {.operation = "mean", .files = {"m.npy"}, .output = "-"}, "'-' is not a file"},
        Bad{"Extension",
            {.operation = "mean", .files = {"m.npy"}, .output = "out.txt"},
            "does not end in .npy"},
        Bad{"Bf16",
            {.operation = "mean", .files = {"m.npy"}, .method = "exact/bf16", .output = "out.npy"},
            "no elements of bf16"},
        Bad{"Method",
            {.operation = "mean", .files = {"m.npy"}, .method = "dot/exact"},
            "is not a mean; `samesum list 'mean/*'`"},
        Bad{"Ddof", {.operation = "moments", .files = {"m.npy"}, .ddof = NAN}, "ddof"},
        Bad{"Threads",
            {.operation = "mean", .files = {"m.npy"}, .threads = -1},
            "--threads: -1 is negative"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace samesum::harness
