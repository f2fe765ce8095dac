#include "samesum/catalogue/catalogue.hpp"

#include <set>

#include "samesum/catalogue/support.hpp"
#include "samesum/operation/softmax.hpp"
#include "support.hpp"

namespace samesum {
namespace {

using namespace testing_support;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(std::string_view name, NameDefaults defaults = {}) {
  try {
    find(name, defaults);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(found)";
}

// --- contents -------------------------------------------------------------------------------------------

/// The number of methods that a backend has or refuses: an operation has the axes that its facts name.
std::size_t combinations() {
  std::size_t all = 0;
  for (const OperationFacts& f : operation_facts)
    all += f.keeps_format ? Denominators::size
                          : Formats::size * ((f.has_order ? Orders::size : 1) *
                                                 (f.has_accumulator ? Accumulators::size : 1) +
                                             (f.can_be_exact ? accumulators_without_order.size() : 0));
  return all;
}

TEST(TheCatalogue, ListsEveryCombinationOnceAsAMethodOrWithAReason) {
  std::set<std::string> names;
  for (const Method& m : methods()) EXPECT_TRUE(names.insert(m.name).second) << m.name;
  for (const Unsupported& u : unsupported()) {
    EXPECT_TRUE(names.insert(u.name).second) << u.name;
    EXPECT_FALSE(u.reason.empty()) << u.name;
  }
  for (const std::string_view backend : backends)
    if (std::ranges::count(absent(), backend, &Absent::backend) == 0) {
      EXPECT_EQ(std::ranges::count_if(names,
                                      [&](auto& name) { return name.ends_with("@" + std::string{backend}); }),
                combinations())
          << backend;
    }
}

TEST(TheCatalogue, HasUnsupportedCombinationsForEveryOperationWithAnOrder) {
  std::set<std::string_view> operations, expected;
  for (const Unsupported& u : unsupported())
    operations.insert(std::string_view{u.name}.substr(0, u.name.find('/')));
  for (const OperationFacts& f : operation_facts)
    if ((f.has_order && !f.keeps_format) || !f.only_formats.empty()) expected.insert(f.name);
  EXPECT_EQ(operations, expected);
}

TEST(TheCatalogue, GivesTheMethodsOfAnOperationInOneSpan) {
  std::size_t all = 0;
  std::set<std::string> operations;
  for (const Method& m : methods()) operations.insert(m.operation);
  EXPECT_EQ(operations.size(), operation_facts.size());
  for (const std::string& operation : operations) {
    const std::span<const Method> of = methods(operation);
    ASSERT_FALSE(of.empty()) << operation;
    for (const Method& m : of) EXPECT_EQ(m.operation, operation);
    all += of.size();
  }
  EXPECT_EQ(all, methods().size());
  EXPECT_TRUE(methods("summ").empty());
  EXPECT_TRUE(methods("").empty());
}

TEST(TheCatalogue, StoresFullNames) {
  for (const Method& m : methods()) {
    std::string name = m.operation;
    for (const std::string& field : {m.order, m.accumulator, std::string{m.format->name}})
      if (!field.empty()) name += "/" + field;
    EXPECT_EQ(m.name, name + "@" + m.backend);
  }
}

// --- names ----------------------------------------------------------------------------------------------

TEST(ANameOfAMethod, IsFound) {
  for (const Method& m : methods()) EXPECT_EQ(&find(m.name), &m);
}

TEST(ANameOfAMethod, MayLeaveOutWhatHasADefault) {
  const Method& kahan = find("sum/tree/kahan/bf16@cpu");
  EXPECT_EQ(&find("tree/kahan/bf16"), &kahan);
  EXPECT_EQ(&find("tree/kahan/bf16@cpu"), &kahan);
  EXPECT_EQ(&find("sum/tree/kahan/bf16"), &kahan);
  EXPECT_EQ(&find("tree/kahan", {.format = "bf16"}), &kahan);
  EXPECT_EQ(&find("tree/kahan/bf16", {.format = "fp64"}), &kahan)
      << "a format in the name overrides the default";
  EXPECT_EQ(&find("tree/kahan/bf16", {.backend = "reference"}), &find("sum/tree/kahan/bf16@reference"));
  EXPECT_EQ(&find("tree/kahan/bf16", {.operation = "dot"}), &find("dot/tree/kahan/bf16@cpu"));
  EXPECT_EQ(&find("exact", {.format = "fp16"}), &find("sum/exact/fp16@cpu"));
  EXPECT_EQ(&find("max", {.format = "fp16"}), &find("max/fp16@cpu"));
  EXPECT_EQ(&find("softmax/exact", {.format = "fp32"}), &find("softmax/exact/fp32@cpu"));
  EXPECT_EQ(&find_on("reference", kahan), &find("sum/tree/kahan/bf16@reference"));
  EXPECT_THAT(refusal_of("tree/kahan"),
              HasSubstr("the name has no format; add one of fp16, bf16, fp32, fp64"));
  EXPECT_THAT(refusal_of(""), HasSubstr("the name is empty"));
}

TEST(AName, WithoutAnAccumulatorMeansPlain) {
  EXPECT_EQ(&find("tree/fp32"), &find("sum/tree/plain/fp32@cpu"));
  EXPECT_EQ(&find("canonical16", {.format = "fp64"}), &find("sum/canonical16/plain/fp64@cpu"));
  EXPECT_EQ(&find("dot/pairwise/fp32"), &find("dot/pairwise/plain/fp32@cpu"));
  EXPECT_EQ(&find("softmax/tree/fp32"), &find("softmax/tree/plain/fp32@cpu"));
}

TEST(AName, WithoutAnOrderMeansTreeOrWhatTheOperationHasInItsPlace) {
  EXPECT_EQ(&find("kahan/bf16"), &find("sum/tree/kahan/bf16@cpu"));
  EXPECT_EQ(&find("dot/neumaier/fp32"), &find("dot/tree/neumaier/fp32@cpu"));
  EXPECT_EQ(&find("cumsum/kahan/fp32"), &find("cumsum/prefix/kahan/fp32@cpu"));
  EXPECT_EQ(&find("scatter_add/plain/fp32"), &find("scatter_add/serial/plain/fp32@cpu"));
}

TEST(AName, IsCompletedToEachMethodThatHasTheUsualOrderOrAccumulator) {
  for (const Method& m : methods()) {
    const std::string end = "/" + std::string{m.format->name} + "@" + m.backend;
    if (m.accumulator == "plain") {
      EXPECT_EQ(&find(m.operation + "/" + m.order + end), &m) << m.name;
    }
    if (m.order == (m.takes_keys ? "serial" : m.is_scan() ? "prefix" : "tree") && !m.accumulator.empty()) {
      EXPECT_EQ(&find(m.operation + "/" + m.accumulator + end), &m) << m.name;
    }
  }
}

TEST(AName, WithoutAnOrderAndAnAccumulatorNamesTheCandidates) {
  EXPECT_THAT(refusal_of("sum/fp32"), AllOf(HasSubstr("leaves the order and the accumulator open"),
                                            HasSubstr("tree/plain"), HasSubstr("exact")));
  EXPECT_THAT(refusal_of("norm/fp32"), AllOf(HasSubstr("tree"), HasSubstr("pairwise")));
  EXPECT_EQ(&find("max/fp32"), &find("max/fp32@cpu")) << "there is no choice";
}

TEST(ANameOfAMethod, IsParsedIntoItsFields) {
  const auto fields = [](std::string_view name) {
    const ParsedName p = parse_name(name);
    const auto& [operation, order, accumulator, format, backend] = p.fields;
    std::string text;
    for (const std::string_view f : {operation, order, accumulator, format, backend})
      text.append(f).append("|");
    return text.append(p.wrong);
  };
  EXPECT_EQ(fields("sum/tree/kahan/fp32@cpu"), "sum|tree|kahan|fp32|cpu|");
  EXPECT_EQ(fields("tree/kahan/fp32"), "|tree|kahan|fp32||");
  EXPECT_EQ(fields("dot/exact@cuda"), "dot||exact||cuda|");
  EXPECT_EQ(fields("max/fp16@reference"), "max|||fp16|reference|");
  EXPECT_EQ(fields("softmax/online/fp32"), "softmax||online|fp32||");
  EXPECT_EQ(fields("canonical16/plain"), "|canonical16|plain|||");
  EXPECT_EQ(fields("fp32"), "|||fp32||");
  // Fields in another order, twice, or empty.
  EXPECT_EQ(fields("kahan/tree/fp32"), "||kahan|||tree");
  EXPECT_EQ(fields("tree/sum/kahan/fp32"), "|tree||||sum");
  EXPECT_EQ(fields("tree/kahan/fp32/fp32"), "|tree|kahan|fp32||fp32");
  EXPECT_EQ(fields("tree/tree/fp32"), "|tree||||tree");
  EXPECT_EQ(fields("tree//fp32"), "|tree||||tree//fp32");
  EXPECT_EQ(fields("/tree/fp32"), "|||||/tree/fp32");
  EXPECT_EQ(fields("tree/kahan/fp32/"), "|tree|kahan|fp32||tree/kahan/fp32/");
  EXPECT_EQ(fields("@"), "|||||@");
  EXPECT_EQ(fields("@cpu"), "|||||@cpu");
  EXPECT_EQ(fields("exact/fp32@"), "||exact|fp32||exact/fp32@");
  EXPECT_EQ(fields("exact/fp32@cpu@cpu"), "||exact|fp32|cpu@cpu|cpu@cpu");
  EXPECT_EQ(fields("exact/fp32@here"), "||exact|fp32|here|here");
  EXPECT_EQ(fields("Tree/kahan/fp32"), "|||||Tree") << "case counts";
  static_assert(parse_name("norm/tree/fp64").fields.operation == "norm");
}

TEST(ANameOfAMethod, HasTheFieldsOfTheMethod) {
  for (const Method& m : methods()) {
    const ParsedName p = parse_name(m.name);
    EXPECT_EQ(p.wrong, "") << m.name;
    EXPECT_EQ(p.fields.operation, m.operation);
    EXPECT_EQ(p.fields.order, m.order);
    EXPECT_EQ(p.fields.accumulator, m.accumulator);
    EXPECT_EQ(p.fields.format, m.format->name);
    EXPECT_EQ(p.fields.backend, m.backend);
  }
}

TEST(AnUnknownWord, IsReportedWithTheNearestKnownOne) {
  EXPECT_THAT(refusal_of("sum/tree/kahn/fp32"), HasSubstr("'kahn'"));
  EXPECT_THAT(refusal_of("sum/tree/kahn/fp32"), HasSubstr("did you mean 'kahan'?"));
  EXPECT_THAT(refusal_of("tree/khan/bf16"), HasSubstr("did you mean 'kahan'?"));
  EXPECT_THAT(refusal_of("tre/kahan/bf16"), HasSubstr("did you mean 'tree'?"));
  EXPECT_THAT(refusal_of("pairwize/plain/fp32"), HasSubstr("did you mean 'pairwise'?"));
  EXPECT_THAT(refusal_of("exact/fp33"), HasSubstr("did you mean 'fp32'?"));
  EXPECT_THAT(refusal_of("dott/tree/plain/fp32"), HasSubstr("did you mean 'dot'?"));
  EXPECT_THAT(refusal_of("exact/fp32@cudaa"), HasSubstr("did you mean 'cuda'?"));
  EXPECT_THAT(refusal_of("exact/fp32@cdua"), HasSubstr("did you mean 'cuda'?"));
  EXPECT_THAT(refusal_of("exact/fp23"), HasSubstr("did you mean 'fp32'?"));
  EXPECT_THAT(refusal_of("kahan/tree/fp32"), HasSubstr("'tree' is unknown or out of place"));
  EXPECT_THAT(refusal_of("fp32/exact"),
              HasSubstr("the order of the fields is operation/order/accumulator/format"));
  EXPECT_THAT(refusal_of("something/fp32"), AllOf(HasSubstr("'something'"), HasSubstr("the operations are"),
                                                  HasSubstr("sum has the orders")));
  EXPECT_THAT(refusal_of("@"), HasSubstr("samesum: no method '@'"));
  EXPECT_THAT(refusal_of("tree//fp32"), HasSubstr("samesum: no method 'tree//fp32'"));
  EXPECT_THAT(refusal_of(std::string(100'000, 'x')), ::testing::SizeIs(::testing::Lt(2000u)));
}

TEST(AnUnknownWord, ThatIsASynonymIsTranslated) {
  const std::pair<const char*, const char*> others[] = {
      {"variance/tree/fp32", "'variance' is called 'moments' here"},
      {"std/tree/fp32", "'std' is called 'moments' here"},
      {"l2/tree/fp32", "'l2' is called 'norm' here"},
      {"avg/tree/plain/fp32", "'avg' is called 'mean' here"},
      {"prefix_sum/exact/fp32", "'prefix_sum' is called 'cumsum' here"},
      {"sum/tree/plain/float32", "'float32' is called 'fp32' here"},
      {"tree/plain/double", "'double' is called 'fp64' here"},
      {"exact/fp32@gpu", "'gpu' is called 'cuda' here"},
      {"tree/compensated/fp32", "'compensated' is called 'kahan' here"}};
  for (const auto& [name, message] : others) EXPECT_THAT(refusal_of(name), HasSubstr(message));
}

TEST(ACombination, ThatIsUnsupportedIsRefusedWithTheReason) {
  EXPECT_THAT(refusal_of("atomic/kahan/fp32"), HasSubstr("an atomic cell holds one number"));
  EXPECT_THAT(refusal_of("atomic/plain/fp32@reference"), HasSubstr("no reference implementation"));
  EXPECT_THAT(refusal_of("atomic_element/plain/fp32"), HasSubstr("only to show the worst case on a GPU"));
  EXPECT_THAT(refusal_of("canonical16/plain/fp64@cuda"), HasSubstr("this order has no GPU kernel"));
  EXPECT_THAT(refusal_of("dot/serial/plain/fp32"),
              HasSubstr("this order is for sums only; use tree or pairwise"));
  EXPECT_THAT(refusal_of("mean/pairwise/kahan/fp32"), HasSubstr("use tree"));
  EXPECT_THAT(refusal_of("hopper/fp32@cuda"), HasSubstr("its kernels are in experiments/tensor_cores"));
  EXPECT_THAT(refusal_of("hopper/bf16"), HasSubstr("use fp32"));
  EXPECT_THAT(refusal_of("dot/hopper/fp32"), HasSubstr("for sums only"));
  EXPECT_THAT(refusal_of("moments/pairwise/fp32"), HasSubstr("would merge two states per addition"));
  EXPECT_THAT(refusal_of("logsumexp/tree/fp16"), HasSubstr("exp and log are computed in fp32 or fp64"));
  EXPECT_THAT(refusal_of("cumlogsumexp/prefix/bf16"), HasSubstr("exp and log are computed in fp32 or fp64"));
  EXPECT_THAT(refusal_of("cumsum/tree/plain/fp32"), HasSubstr("use prefix"));
  EXPECT_THAT(refusal_of("cumprod/serial/fp32"), HasSubstr("scans of sums only; use prefix"));
  EXPECT_THAT(refusal_of("mean/prefix/plain/fp32"), HasSubstr("operations that have a scan; use tree"));
}

TEST(ACombination, WithoutAMethodOrAReasonIsRefusedWithTheNearestMethod) {
  EXPECT_THAT(refusal_of("norm/tree/kahan/fp32"), HasSubstr("norm/tree/fp32@cpu"));
  EXPECT_THAT(refusal_of("max/exact/fp32"), HasSubstr("max/fp32@cpu"));
  EXPECT_THAT(refusal_of("norm/exact/fp32"), HasSubstr("norm/tree/fp32@cpu"));
}

TEST(TheCatalogue, StatesWhyABackendIsAbsent) {
  for (const Absent& a : absent()) {
    EXPECT_EQ(refusal_of("tree/kahan/fp32@" + a.backend),
              "samesum: no method 'sum/tree/kahan/fp32@" + a.backend + "' here: " + a.reason);
    EXPECT_EQ(refusal_of("softmax/exact/fp32@" + a.backend),
              "samesum: no method 'softmax/exact/fp32@" + a.backend + "' here: " + a.reason);
  }
  static_assert(format_of_name("tree/kahan/fp32@cuda", {}) == Formats::index_of<fp32>());
}

// --- methods --------------------------------------------------------------------------------------------

TEST(AMethod, HasCorrectProperties) {
  for (const Method& m : methods()) {
    EXPECT_EQ(m.promise, m.order.starts_with("atomic") ? Promise::none
                         : m.order.empty() && m.accumulator != "online" && m.accumulator != "hopper"
                             ? Promise::order_free
                             : Promise::everywhere)
        << m.name;
    EXPECT_GT(m.state_bytes, 0u) << m.name;
    EXPECT_EQ(m.height(0).total(), 0u) << m.name;
    EXPECT_EQ(m.height(1).total(), 0u) << m.name;
    EXPECT_FALSE(m.height_formula.empty()) << m.name;
    EXPECT_EQ(m.inputs, m.operation == "dot" ? 2 : m.operation == "scatter_count" ? 0 : 1) << m.name;
    EXPECT_EQ(m.results, m.operation == "moments" ? 2 : 1) << m.name;
    EXPECT_EQ(m.returns_index, m.operation.starts_with("arg") || m.operation == "scatter_count") << m.name;
    EXPECT_EQ(m.takes_keys, m.operation.starts_with("scatter_")) << m.name;
    EXPECT_EQ(m.is_scan(), m.operation.starts_with("cum")) << m.name;
    EXPECT_EQ(m.takes_window, m.operation.starts_with("rolling_")) << m.name;
    EXPECT_EQ(m.has_result_per_element, m.is_scan() || m.takes_window || m.keeps_format) << m.name;
    EXPECT_EQ(m.keeps_format, m.operation.ends_with("softmax")) << m.name;
    if (m.operation == "sum") {
      EXPECT_GT(m.operations_per_element, 0) << m.name;
      for (const FormatInfo& f : formats)
        EXPECT_EQ(m.accepts(f), m.accumulator != "hopper" || f.bytes == 2) << m.name << " of " << f.name;
    }
  }
  EXPECT_EQ(find("serial/plain/fp32").height(100).total(), 99u);
  EXPECT_EQ(find("tree/kahan/bf16").state_bytes, 4u);
  EXPECT_EQ(find("tree/plain/fp64").state_bytes, 8u);
  EXPECT_EQ(find("argmax/fp32").result_format(format_info<fp32>()), nullptr);
  EXPECT_EQ(find("softmax/exact/fp32").result_format(format_info<bf16>()), &format_info<bf16>());
  EXPECT_EQ(find("sum/exact/fp16").result_format(format_info<fp64>()), &format_info<fp16>());
}

TEST(AMethod, RefusesANegativeNumberOfThreads) {
  const std::vector<float> x{1, 2};
  EXPECT_THROW(find("tree/plain/fp32")(x, {.threads = -1}), std::invalid_argument);
  EXPECT_THROW(find("norm/tree/fp32")(x, {.threads = -1}), std::invalid_argument);
  EXPECT_THROW(find("dot/tree/plain/fp32").bind(x, x, {.threads = -1}), std::invalid_argument);
  EXPECT_THROW(accumulate(x, {.threads = -1}), std::invalid_argument);
}

TEST(AMethod, BoundToDataRunsManyTimes) {
  std::vector<float> x{1, 2, 3};
  const Job job = find("pairwise/plain/fp32").bind(x);
  EXPECT_EQ(job().as<float>(), 6);
  x[0] = 2;
  EXPECT_EQ(job().as<float>(), 7);
}

TEST(AMethod, OfTwoInputsOrWithoutAnOrderCanBeBound) {
  std::vector<float> x{1, 2, 3}, y{4, 5, 6};
  for (const std::string backend : {"@cpu", "@reference"}) {
    x[2] = 3;
    const Job dot = find("dot/tree/kahan/fp32" + backend).bind(x, y),
              max = find("max/fp32" + backend).bind(x), exact = find("dot/exact/fp64" + backend).bind(x, y);
    EXPECT_EQ(dot().as<float>(), 32);
    EXPECT_EQ(max().as<float>(), 3);
    EXPECT_EQ(exact().as<double>(), 32);
    x[2] = 4;
    EXPECT_EQ(dot().as<float>(), 38);
    EXPECT_EQ(max().as<float>(), 4);
    EXPECT_EQ(exact().as<double>(), 38);
    const Job copy = dot;
    EXPECT_EQ(copy().as<float>(), 38);
  }
}

TEST(AMethod, BoundToDataGivesTheBitsOfACall) {
  const std::vector<double> data = wide(20'000, 20, 3), others = uniform(20'000, 4);
  for (const Method& m : methods()) {
    if (m.backend == "cuda" || m.promise < Promise::everywhere || !reduces_vectors(m) || m.returns_index ||
        m.results != 1)
      continue;
    const Array x{input_of(m), data}, y{input_of(m), others};
    const bool two = m.inputs == 2;
    const Number called = two ? m(x.values(), y.values()) : m(x.values());
    EXPECT_EQ(two ? m.bind(x.values(), y.values())() : m.bind(x.values())(), called) << m.name;
    EXPECT_EQ(two ? reduce(m.name, x.values(), y.values()) : reduce(m.name, x.values()), called) << m.name;
    EXPECT_EQ(m.place(x.values()).values.data, x.values().data) << m.name;
  }
}

TEST(AMethod, IsNotBoundToDataThatItDoesNotAccept) {
  const std::vector<float> x{1, 2, 3}, shorter{1, 2};
  const std::vector<double> wider{1, 2, 3};
  EXPECT_THROW(find("dot/tree/plain/fp32").bind(x), std::invalid_argument);
  EXPECT_THROW(find("dot/tree/plain/fp32").bind(x, shorter), std::invalid_argument);
  EXPECT_THROW(find("dot/tree/plain/fp32").bind(x, wider), std::invalid_argument);
  EXPECT_THROW(find("max/fp32").bind(x, x), std::invalid_argument);
  EXPECT_THROW(find("max/fp32").bind(wider), std::invalid_argument);
  EXPECT_THROW(find("sum/tree/plain/fp32").bind(x, x), std::invalid_argument);
  EXPECT_THROW(find("sum/tree/plain/fp32")(x, x), std::invalid_argument);
  EXPECT_THROW(find("argmax/fp32").bind(x), std::invalid_argument);
  EXPECT_THROW(find("moments/tree/fp32").bind(x), std::invalid_argument);
  EXPECT_THROW(find("moments/tree/fp32")(x), std::invalid_argument);
}

TEST(ACompileTimeName, SumsLikeTheMethodOfThatName) {
  const std::vector<double> data = wide(5000, 20, 1);
  const Array x{format_info<fp32>(), data};
  EXPECT_EQ(to_bits(sum<"pairwise/kahan/fp32">(x.values())), find("pairwise/kahan/fp32")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"sum/pairwise/kahan/fp32@cpu">(x.values())),
            find("pairwise/kahan/fp32")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"tree/plain/bf16@reference">(x.values())), find("tree/plain/bf16")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"canonical16/plain/fp32">(x.values())),
            find("canonical16/plain/fp32")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"exact/fp16">(x.values())), find("exact/fp16")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"kahan/fp32">(x.values())), find("tree/kahan/fp32")(x.values()).bits);
  EXPECT_EQ(to_bits(sum<"pairwise/bf16">(x.values())), find("pairwise/plain/bf16")(x.values()).bits);
  static_assert(std::is_same_v<decltype(sum<"exact/bf16">(x.values())), bf16>);
  // Names that would not compile.
  const auto is_none = [](std::string_view name) consteval {
    return format_of_name(name, {}) == Formats::size;
  };
  static_assert(is_none("tree/kahan/fp12"));
  static_assert(is_none("atomic/kahan/fp32"));
  static_assert(is_none("atomic/plain/fp32@reference"));
  static_assert(is_none("tree/kahan/fp32@nowhere"));
  static_assert(is_none("treekahan/fp32"));
  static_assert(is_none("canonical16/plain/fp32@cuda"));
  static_assert(is_none("norm/tree/kahan/fp32"));
  static_assert(is_none("norm/exact/fp32"));
  static_assert(is_none("moments/fixed_point/fp32"));
  static_assert(is_none("logsumexp/tree/bf16"));
  static_assert(is_none("cumsum/exact/fp32"));
  static_assert(is_none("scatter_add/exact/fp32"));
  static_assert(is_none("softmax/exact/fp32"));
  static_assert(is_none("max/tree/fp32"));
  static_assert(is_none("tree/kahan"));
  static_assert(is_none("sum/fp32"));
}

TEST(TheDefaultSum, IsExactInTheFormatOfTheElements) {
  const std::vector<double> x{1e100, 1, -1e100, 1e-100, 1e50, -1, -1e50};
  EXPECT_EQ(sum(x), 1e-100);
  const std::vector<fp16> sevens(7, fp16{7.0f});
  EXPECT_EQ(static_cast<float>(sum(sevens)), 49);
}

}  // namespace
}  // namespace samesum
