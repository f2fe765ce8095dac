/// No public function depends on the caller's floating-point environment or changes it.
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <regex>
#include <set>

#include "environments.hpp"
#include "interface/c_support.hpp"
#include "operation/reduction_support.hpp"
#include "operation/user_reductions.hpp"
#include "public_functions.hpp"
#include "samesum/operation/distinct.hpp"
#include "samesum/operation/softmax.hpp"
#include "samesum/states.hpp"
#include "samesum/statistics.hpp"
#include "typed_reductions.hpp"

namespace samesum {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;

struct EntryPoint {
  const char* name;
  std::vector<const char*> functions;  ///< public functions that `call` calls
  std::function<void(Text& out, int threads)> call;
};

/// A custom reduction that rounds in each of its functions.
struct MeanOfSquares {
  static constexpr bool commutative = true;
  using State = float;
  float identity() const { return third * 0x1p-130f; }
  float map(float x, std::uint64_t) const { return x * third; }
  float combine(float a, float b) const { return a + b * third; }
  float finish(float s, std::uint64_t n) const { return s / static_cast<float>(n + 3); }
  float third;
};

std::vector<const char*> typed_functions() {
  std::vector<const char*> all{"reduce", "Named::method"};
  for_each_typed_reduction(std::vector<float>(1), {}, [&](const char* name, auto) { all.push_back(name); });
  return all;
}

const std::vector<EntryPoint>& entry_points() {
  // Created before any test changes the environment. The arrays have all formats, subnormals and many
  // binades; the long one is enough for several threads.
  static const std::vector<Array> arrays = [] {
    std::vector<Array> all;
    for (const FormatInfo& format : formats) {
      std::vector<double> data = wide(600, 30, 5);
      for (std::size_t i = 0; i < data.size(); i += 3) data[i] *= 4 * format.smallest_subnormal;
      all.emplace_back(format, data);
    }
    return all;
  }();
  static const Array long_array = [] {
    std::vector<double> data = wide(140'000, 30, 6);
    for (std::size_t i = 0; i < data.size(); i += 3) data[i] *= Format<fp32>::smallest_subnormal;
    return Array{format_info<fp32>(), data};
  }();
  static const std::vector<float> tiny(9, 0x1p-130f), tinier(100'000, 0x1p-140f);
  static const double subnormal = 0x1p-1060, not_a_number = std::numeric_limits<double>::quiet_NaN();
  static const Number one = Number::of(1.0f), third = Number::of(1.0f / 3);
  static const Cost costs[] = {{"tree/plain/fp32@cpu", "fp32", 1000, 1e-7},
                               {"exact/fp32@cpu", "fp32", 10, 1e-6}};
  static const std::vector<EntryPoint> all{
      {"sum",
       {"sum"},
       [](Text& out, int threads) {
         out << sum(tiny, {.threads = threads}) << sum(tinier, {.threads = threads})
             << sum(std::span<const float>{tiny}, {.threads = threads});
       }},
      {"sum<name>",
       {"sum"},
       [](Text& out, int threads) {
         out << sum<"tree/kahan/fp32">(tinier, {.threads = threads}) << sum<"exact/bf16">(tiny)
             << sum<"serial/neumaier/fp16@reference">(tiny);
       }},
      {"typed reductions", typed_functions(),
       [](Text& out, int threads) {
         for_each_typed_reduction(tiny, {.threads = threads}, [&out](const char*, const auto& result) {
           out << std::string_view{reinterpret_cast<const char*>(&result), sizeof result};
         });
         out << reduce<"dot/tree/kahan">(tinier, tinier, {.threads = threads})
             << reduce<"norm/pairwise">(tinier, {.threads = threads});
       }},
      {"accumulate",
       {"accumulate"},
       [](Text& out, int threads) {
         const Exact state = accumulate(tiny, {.threads = threads});
         out << state.result<double>() << state.result<fp16>()
             << accumulate(tinier, {.threads = threads}).serialise();
         for (const Array& x : arrays) out << accumulate(x.values(), {.threads = threads}).serialise();
         out << accumulate(long_array.values(), {.threads = threads}).serialise();
         out.refusal([] { accumulate(tiny, {.threads = -1}); });
       }},
      {"estimate",
       {"estimate"},
       [](Text& out, int) {
         for (const Method& m : methods())
           if (m.promise >= Promise::everywhere && m.backend == "cpu" && reduces_vectors(m) &&
               !m.returns_index && m.results == 1 && m.accepts(formats[2])) {
             const Estimate e = m.inputs == 2 ? estimate(m.name, tiny, tiny) : estimate(m.name, tiny);
             out << e.value << e.bound << e.magnitudes;
             const Layout columns = Layout::axis(1, 3, 3);
             for (const Estimate& of :
                  m.inputs == 2 ? estimate(m.name, tiny, tiny, columns) : estimate(m.name, tiny, columns))
               out << of.value << of.bound << of.magnitudes;
           }
         out.refusal([] { estimate("atomic/plain/fp32", tiny); });
       }},
      {"Method, bind, place",
       {"Method::operator()", "Method::bind", "Method::place", "Method::accepts", "Method::height"},
       [](Text& out, int threads) {
         for (const Method& m : methods())
           for (const Array& x : arrays) {
             const Values values = x.values();
             if (m.backend == "cuda" || m.promise < Promise::everywhere || !m.accepts(*values.format) ||
                 !reduces_vectors(m) || m.returns_index || m.results != 1)
               continue;
             const Values placed = m.place(values).values;
             if (m.inputs == 2)
               out << m(values, values, {.threads = threads}) << m.bind(placed, placed)();
             else
               out << m(values, {.threads = threads}) << m.bind(placed)();
           }
         const Method& m = find("pairwise/double_word/bf16");
         out << m(long_array.values(), {.threads = threads})
             << m.bind(long_array.values(), {.threads = threads})();
       }},
      {"Method::bound",
       {"Method::bound"},
       [](Text& out, int) {
         for (const Method& m : methods())
           for (const std::size_t n : {0, 1, 1000, 1'000'000}) {
             const FormatInfo& own = *m.format;
             const Number result{&own, 0x17}, other{&own, 0x2a3};
             if (m.keeps_format) {
               if (n > 0)
                 for (const FormatInfo& f : {formats[0], formats[2]})
                   out << m.bound(f, n, Number{&f, 0x17}, 7.3) << m.bound(f, n, Number{&f, 0x17}, subnormal);
             } else if (m.results == 2) {
               for (const std::size_t of : {0, 1})
                 out << m.bound(own, n, {other, other}, 3.3, {.result_index = of, .ddof = 1});
             } else {
               const BoundOptions options{.grid = m.takes_window ? with_grid(m).grid : std::nullopt};
               BoundOptions probable = options, unlikely = options;
               probable.probability = 0.9;
               unlikely.probability = subnormal;
               out << m.bound(formats[3], n, result, subnormal, options)
                   << m.bound(own, n, result, 7.3, options) << m.bound(own, n, other, 7.3, options)
                   << m.bound(own, n, other, subnormal, options) << m.bound(own, n, result, 7.3, probable)
                   << m.bound(own, n, result, 7.3, unlikely);
             }
           }
         out.refusal([] { find("exact/fp32").bound(formats[2], 1, one, -subnormal); });
         out.refusal([] { find("exact/fp32").bound(formats[2], 1, one, 1, {.probability = 1 + 0x1p-52}); });
         out.refusal([] { find("norm/tree/fp32").bound(formats[2], 1, one, -subnormal); });
       }},
      {"Partial",
       {"Partial::add", "Partial::merge", "Partial::finish", "Partial::serialise", "Partial::deserialise",
        "Partial::grid", "Partial::method", "Partial::begin", "Partial::end", "Partial::size",
        "Partial::operator="},
       [](Text& out, int threads) {
         for (const Method& m : methods()) {
           if (m.backend != "cpu" || !has_partials(m)) continue;
           Partial all = partial_of(m);
           for (const Array& x : arrays) {
             if (!m.accepts(*x.values().format)) continue;
             Partial next = partial_of(m, all.end());
             if (m.inputs == 2)
               next.add(x.values(), x.values(), {.threads = threads});
             else
               next.add(x.values(), {.threads = threads});
             all.merge(next);
           }
           Partial moved = partial_of(m);
           moved = std::move(all);
           all = moved;
           std::uint64_t bits[2] = {};
           const Results results{m.result_format(*m.format), bits, static_cast<std::size_t>(m.results)};
           Partial::deserialise(all.serialise()).finish(results);
           out << all.serialise() << Number{&formats[3], bits[0]} << Number{&formats[3], bits[1]};
         }
         out.refusal([] { Partial{"tree/plain/fp32", 3}.finish(); });
       }},
      {"Exact",
       {"Exact::add", "Exact::merge", "Exact::result", "Exact::flags", "Exact::serialise",
        "Exact::deserialise"},
       [](Text& out, int) {
         Exact state, other;
         state.add(std::span<const float>{tiny});
         other.add(subnormal);
         other.add(fp16{-3.0f});
         state.merge(other);
         out << std::uint64_t{state.flags()} << state.serialise()
             << Exact::deserialise(state.serialise()).result<float>();
       }},
      {"states of the caller",
       {"FixedPointState::add",
        "FixedPointState::atomic_add",
        "FixedPointState::merge",
        "FixedPointState::atomic_merge",
        "FixedPointState::overflows",
        "FixedPointState::finish",
        "WindowState::add",
        "WindowState::atomic_add",
        "WindowState::merge",
        "WindowState::atomic_merge",
        "WindowState::fell_outside",
        "WindowState::most_terms",
        "WindowState::finish",
        "ExponentWindow::holds",
        "ExactState::add",
        "ExactState::atomic_add",
        "ExactState::merge",
        "ExactState::atomic_merge",
        "ExactState::finish",
        "ExactState::exact"},
       [](Text& out, int) {
         constexpr ExponentWindow window{-149, -20};
         FixedPointState on_grid{}, on_grid_too{};
         WindowState<3> narrow{}, narrow_too{};
         ExactState<double> exact{}, exact_too{};
         for (const float x : {0x1p-130f, 0x1.8p-140f, -0x1.23456p-30f, 0x1p-149f}) {
           on_grid.add(x, -141);
           on_grid_too.atomic_add(-x, -139);
           narrow.add(x, window);
           narrow_too.atomic_add(-x, window);
         }
         for (const double x : {subnormal, 3.0, -0x1p900}) {
           exact.add(x);
           exact_too.atomic_add(x);
           out << std::uint64_t{window.holds(x)};
         }
         on_grid.merge(on_grid_too);
         on_grid.atomic_merge(on_grid_too);
         narrow.merge(narrow_too);
         narrow.atomic_merge(narrow_too);
         exact.merge(exact_too);
         exact.atomic_merge(exact_too);
         exact.merge(narrow, window);
         exact.atomic_merge(narrow, window);
         out << on_grid.finish<float>(-141, 12) << on_grid.finish<double>(-141, 12)
             << std::uint64_t{on_grid.overflows<float>(12)} << narrow.finish<float>(window)
             << std::uint64_t{narrow.fell_outside()} << narrow.most_terms(window) << exact.finish<fp16>()
             << exact.finish<double>() << exact.exact().serialise();
       }},
      {"choose",
       {"choose", "shipped_costs"},
       [](Text& out, int) {
         const auto told = [&out](const Choice& c) {
           out << c.best.method->name << c.best.bound << c.best.ulps << c.best.reason;
           for (const Candidate& o : c.others)
             out << o.method->name << o.bound << o.seconds.value_or(7) << o.reason;
         };
         told(choose({.length = 1000, .input = "fp32", .relative_error = 1e-6}));
         told(choose({.length = 1000, .input = "fp32", .ulps = 3, .probability = 0.9, .condition = 10},
                     costs));
         out.refusal([] { choose({.length = 1000, .relative_error = subnormal}); });
         out.refusal([] { choose({.length = 1000, .relative_error = -subnormal}); });
         out.refusal([] { choose({.length = 3, .relative_error = 1, .condition = 0.1 * 3}); });
         out << shipped_costs().machine;
       }},
      {"find",
       {"find", "find_on", "default_method", "methods", "unsupported", "absent"},
       [](Text& out, int) {
         out << find("tree/plain/fp32").name << find("norm/tree/fp16").name
             << find_on("reference", find("max/fp32")).name
             << default_method("sum", format_info<fp32>(), "cpu")->name;
         out.refusal([] { find("tree/plane/fp32"); });
         out.refusal([] { find("nrm/tree/fp32"); });
         out << std::uint64_t{methods().size()} << std::uint64_t{methods("dot").size()}
             << std::uint64_t{unsupported().size()} << std::uint64_t{absent().size()};
       }},
      {"reduce",
       {"reduce", "reduce_to_index", "run"},
       [](Text& out, int threads) {
         for (const char* backend : {"reference", "cpu"})
           for (const Method* m : reductions_of(backend))
             for (const Array& x : arrays)
               if (m->accepts(*x.values().format))
                 out << reduce_all(*m, x.values(), x.values(), Layout::rows(6, 100),
                                   {.threads = threads, .ddof = 1});
         for (const char* name :
              {"dot/tree/kahan/fp32", "norm/tree/fp32", "moments/exact/fp32", "argmax/fp32"})
           out << reduce_all(find(name), long_array.values(), long_array.values(), Layout::vector(140'000),
                             {.threads = threads});
         out << reduce("dot/exact/fp64", tiny, tiny) << reduce("mean/tree/plain/fp32", tiny)
             << static_cast<std::uint64_t>(reduce_to_index("argmin/fp32", tiny));
         out.refusal([] {
           float two[2];
           reduce(find("moments/tree/fp32"), tiny, Layout::vector(9), std::span<float>{two},
                  {.ddof = -subnormal});
         });
       }},
      {"validation_error",
       {"validation_error", "check"},
       [](Text& out, int) {
         for (const char* name : {"moments/tree/fp32", "moments/exact/fp32", "sum/tree/plain/fp32"})
           for (const double ddof : {0.0, 1.0, 0.5, -subnormal, subnormal, not_a_number})
             out << validation_error(find(name), Options{.ddof = ddof});
       }},
      {"reduce with a custom reduction",
       {"reduce"},
       [](Text& out, int threads) {
         const MeanOfSquares reduction{third.as<float>()};
         const auto x = long_array.values().as<float>();
         std::vector<float> rows(70);
         reduce(reduction, x.data(), Layout::rows(70, 2000), rows.data(), {.threads = threads});
         out << rows << reduce(reduction, x, {.threads = threads})
             << reduce<Pairwise>(reduction, x, {.threads = threads})
             << reduce<Blocked>(reduction, x, {.threads = threads}) << reduce(reduction, x.first(0))
             << reduce(reduction, tiny);
       }},
      {"count_distinct",
       {"count_distinct"},
       [](Text& out, int) {
         out << count_distinct(std::vector<float>{0, 0x1p-149f, 0x1p-148f, -0x1p-149f, -0.0f});
         for (const Array& x : arrays) out << count_distinct(x.values());
       }},
      {"softmax",
       {"reduce"},
       [](Text& out, int threads) {
         std::vector<float> y(600);
         const Values x = arrays[2].values();
         for (const Method& m : methods())
           if (m.keeps_format && m.backend != "cuda") {
             reduce(m, x, Layout::rows(6, 100), std::span{y}, {.threads = threads});
             out << y;
           }
         out.refusal([] { find("softmax/tree/plain/fp32").bound(formats[2], 100, one, -subnormal); });
       }},
      {"scans",
       {"reduce"},
       [](Text& out, int threads) {
         for (const Method& m : methods())
           for (const Array& x : arrays)
             if (m.is_scan() && m.backend != "cuda" && m.accepts(*x.values().format))
               with_format(*m.format, [&]<class F>() {
                 for (const bool exclusive : {false, true}) {
                   std::vector<F> y(600);
                   reduce(m, x.values(), Layout::rows(6, 100), std::span{y},
                          {.threads = threads, .exclusive = exclusive});
                   for (const F& result : y) out << Number::of(result);
                 }
               });
         std::vector<float> sums(140'000);
         reduce(find("cumsum/prefix/kahan/fp32"), long_array.values(), Layout::vector(140'000),
                std::span{sums}, {.threads = threads});
         out << sums;
       }},
      {"rolling operations",
       {"reduce"},
       [](Text& out, int threads) {
         for (const Method& m : methods())
           for (const Array& x : arrays)
             if (m.takes_window && m.backend != "cuda" && m.accepts(*x.values().format))
               with_format(*m.format, [&]<class F>() {
                 std::vector<F> y(600);
                 for (const bool skip_nan : {false, true}) {
                   const Options options = with_window(m, {.threads = threads, .skip_nan = skip_nan});
                   try {
                     reduce(m, x.values(), Layout::rows(6, 100), std::span{y}, options);
                   } catch (const std::overflow_error& error) {
                     out << error.what();
                   }
                   for (const F& result : y) out << Number::of(result);
                 }
               });
       }},
      {"reductions by key",
       {"reduce", "reduce_by_key", "segments_of"},
       [](Text& out, int threads) {
         std::vector<std::int32_t> keys(600);
         for (std::size_t k = 0; k < keys.size(); ++k) keys[k] = static_cast<std::int32_t>(k * k % 17);
         for (const Method& m : methods())
           for (const Array& x : arrays)
             if (m.takes_keys && m.inputs == 1 && m.backend != "cuda" && m.accepts(*x.values().format))
               with_format(*m.format, [&]<class F>() {
                 std::vector<F> y(17);
                 reduce(m, x.values(), keys, Layout::vector(600), std::span{y}, {.threads = threads});
                 for (const F& result : y) out << Number::of(result);
               });
         std::vector<std::int64_t> counts(17);
         reduce(find("scatter_count/fp64"), Values{formats[3], nullptr, 0}, keys, Layout::vector(600),
                std::span{counts}, {.threads = threads});
         for (const std::int64_t count : counts) out << static_cast<double>(count);
         for (const std::uint64_t offset : segments_of(keys).offsets) out << static_cast<double>(offset);
         const Values few{formats[2], long_array.values().data, 600};
         out << reduce_by_key<float>(find("sum/tree/kahan/fp32"), few, keys).results;
       }},
      {"Number and the formats",
       {"Number::to_double", "Number::of", "Number::as", "Values::as"},
       [](Text& out, int) {
         out << third.to_double() << Number::of(third.as<float>()) << fp16{third.to_double()}
             << bf16{subnormal} << static_cast<float>(fp16{third.to_double()})
             << convert<float>(third.to_double()) << convert<double>(tiny[0])
             << static_cast<double>(bf16{tiny[0]});
       }},
      {"calls of the C interface",
       {"samesum_run", "samesum_estimate", "samesum_bound", "samesum_find", "samesum_method_count",
        "samesum_method_at", "samesum_workspace_size", "samesum_prepare", "samesum_enqueue"},
       [](Text& out, int threads) {
         for (std::size_t i = 0; i < samesum_method_count(); i += 7) {
           const samesum_method* const m = samesum_method_at(i);
           if (!reduces_vectors(methods()[i]) || methods()[i].backend == "cuda") continue;
           std::uint64_t bits[2] = {};
           samesum_options options = samesum_options_default();
           options.threads = threads;
           samesum_call call = samesum_call_default();
           call.method = m;
           call.x = c_interface::values_in_c(arrays[2].values());
           if (samesum_method_inputs(m) == 2) call.y = call.x;
           call.out = {bits, static_cast<std::size_t>(samesum_method_results(m)), 0,
                       samesum_method_result_format(m, SAMESUM_FP32)};
           call.options = &options;
           out << c_interface::ask(samesum_run, static_cast<const samesum_call*>(&call)).message << bits[0]
               << bits[1];
         }
         const samesum_values x = c_interface::values_in_c(Values{tiny});
         samesum_bound_query query = samesum_bound_query_default();
         query.method = c_interface::found("tree/kahan/fp32");
         float value = 0;
         double bound = 0;
         out << c_interface::ask(samesum_estimate, query.method, &x,
                                 static_cast<const samesum_values*>(nullptr), static_cast<void*>(&value),
                                 &bound, static_cast<double*>(nullptr))
                    .message
             << value << bound;
         query.result = &value;
         query.n = 9;
         query.input = SAMESUM_FP32;
         query.has_magnitudes = 1;
         for (const double probability : {0.0, 0.9, subnormal}) {
           query.magnitudes = subnormal;
           query.probability = probability;
           out << c_interface::ask(samesum_bound, static_cast<const samesum_bound_query*>(&query), &bound)
                      .message
               << bound;
         }
         std::size_t bytes = 0;
         const samesum_call none = samesum_call_default();
         void* const nowhere = nullptr;
         out << c_interface::ask(samesum_workspace_size, &none, &bytes).message
             << c_interface::ask(samesum_prepare, nowhere, bytes, nowhere).message
             << c_interface::ask(samesum_enqueue, &none, nowhere, bytes, nowhere,
                                 static_cast<samesum_device_status*>(nullptr))
                    .message;
       }},
      {"statistics",
       {"run", "validation_error", "weighted_mean", "weighted_variance", "covariance", "correlation",
        "linear_regression", "statistic_bound", "samesum_run_statistics", "samesum_statistic_bound"},
       [](Text& out, int threads) {
         const Options options{.threads = threads, .ddof = 0.3};
         for (const std::vector<float>* x : {&tiny, &tinier}) {
           const auto line = linear_regression(*x, *x, options);
           out << weighted_mean(*x, *x, options) << weighted_variance(*x, *x, options)
               << covariance(*x, *x, options, *x) << correlation(*x, *x, options) << line.slope
               << line.intercept;
         }
         for (const Array& x : arrays)
           for (const Statistic s : {Statistic::mean, Statistic::covariance_matrix}) {
             std::vector<double> found(s == Statistic::mean ? 6 : 36);
             StatisticsCall call{.statistic = s,
                                 .x = x.values(),
                                 .layout = Layout::rows(6, 100),
                                 .out = std::span{found},
                                 .options = options};
             run(call);
             out << found;
             call.options.ddof = -subnormal;
             out << validation_error(call);
           }
         out << statistic_bound(third) << statistic_bound(Number::of(subnormal));
         float value = 0;
         double bound = 0;
         samesum_statistics_call call = samesum_statistics_call_default();
         call.statistic = SAMESUM_STATISTIC_VARIANCE;
         call.x = c_interface::values_in_c(Values{tiny});
         call.out = {&value, 1, 0, SAMESUM_FP32};
         out << c_interface::ask(samesum_run_statistics, &call, static_cast<std::int32_t*>(nullptr)).message
             << value
             << c_interface::ask(samesum_statistic_bound, static_cast<const void*>(&value), SAMESUM_FP32,
                                 &bound)
                    .message
             << bound;
       }},
      {"states of the C interface",
       {"samesum_state_kind_find", "samesum_state_init", "samesum_state_add", "samesum_state_add_fp32",
        "samesum_state_add_fp64", "samesum_state_subtract", "samesum_state_subtract_fp32",
        "samesum_state_subtract_fp64", "samesum_state_merge", "samesum_state_unmerge", "samesum_state_copy",
        "samesum_state_finish", "samesum_state_finish_mean", "samesum_state_serialise",
        "samesum_state_deserialise"},
       [](Text& out, int) {
         for (c_interface::State state :
              {c_interface::State{"exact/fp64"}, c_interface::State{"exact/fp64", c_interface::subtractable},
               c_interface::State{"fixed_point/fp64", c_interface::on_grid(-90)}}) {
           const c_interface::State empty = state;
           c_interface::State other = state;
           for (const Array& x : arrays) out << other.add(x.values()).message;
           samesum_state_add_fp32(state, tiny[0]);
           samesum_state_add_fp64(state, subnormal);
           out << state.subtract(Values{tiny}).message
               << std::uint64_t(samesum_state_subtract_fp32(state, tiny[0]))
               << std::uint64_t(samesum_state_subtract_fp64(state, subnormal))
               << c_interface::ask(samesum_state_copy, empty.get(), state.memory(), state.bytes(),
                                   static_cast<samesum_state**>(nullptr))
                      .message
               << state.merge(other).message << other.unmerge(state).message << state.serialise()
               << state.deserialise(state.serialise()).message << state.result(formats[1])
               << state.mean(formats[2], 1803);
         }
       }},
      {"states of aggregate functions",
       {"Aggregate::add",
        "Aggregate::subtract",
        "Aggregate::add_each",
        "Aggregate::update_from",
        "Aggregate::merge",
        "Aggregate::unmerge",
        "Aggregate::copy_to",
        "Aggregate::result",
        "Aggregate::serialise",
        "Aggregate::deserialise",
        "samesum_aggregate_copy",
        "samesum_aggregate_add",
        "samesum_aggregate_subtract",
        "samesum_aggregate_add_each",
        "samesum_aggregate_add_fp64",
        "samesum_aggregate_subtract_fp64",
        "samesum_aggregate_add_int64",
        "samesum_aggregate_subtract_int64",
        "samesum_aggregate_merge",
        "samesum_aggregate_unmerge",
        "samesum_aggregate_finish",
        "samesum_aggregate_serialise",
        "samesum_aggregate_deserialise"},
       [](Text& out, int) {
         constexpr double tenth = 0.1;
         AggregateComoments state{}, copy{}, read{};
         for (const Array& x : arrays) (void)state.add(x.values(), x.values());
         (void)state.add(subnormal, tenth);
         (void)state.copy_to(copy);
         (void)copy.add(Values{tinier}, Values{tinier});
         (void)copy.subtract(Values{tiny}, Values{tiny});
         (void)copy.subtract(subnormal, subnormal);
         (void)copy.update_from<-1>(&tenth, &tenth, 0, heap_allocator);
         AggregateComoments* const both[] = {&state, &copy};
         std::size_t done = 0;
         (void)AggregateComoments::add_each<double>(both, std::array{subnormal, tenth},
                                                    std::array{tenth, subnormal}, done);
         (void)state.merge(copy);
         (void)copy.unmerge(state);
         (void)AggregateComoments::deserialise(state.serialise(), read);
         out << read.serialise() << copy.serialise();
         for (const AggregateResult r :
              {AggregateResult::mean, AggregateResult::variance, AggregateResult::correlation,
               AggregateResult::slope, AggregateResult::intercept})
           out << read.result(r, formats[3]) << read.result(r, formats[0]);
         // The functions in C call these.
         const samesum_values x = c_interface::values_in_c(Values{tiny});
         const samesum_aggregate_kind kind = SAMESUM_AGGREGATE_COMOMENTS;
         auto* const c = reinterpret_cast<samesum_aggregate*>(&copy);
         samesum_aggregate* const states[] = {c, c, c, c, c, c, c, c, nullptr};
         std::uint64_t other[23] = {};
         auto* const second = reinterpret_cast<samesum_aggregate*>(other);
         using c_interface::ask;
         out << ask(samesum_aggregate_add, kind, c, &x, &x, nullptr).message
             << ask(samesum_aggregate_add_each, kind, states, &x, &x, nullptr, nullptr).message
             << ask(samesum_aggregate_copy, kind, std::as_const(c), second, nullptr).message
             << ask(samesum_aggregate_subtract, kind, c, &x, &x, nullptr).message
             << std::uint64_t(samesum_aggregate_add_fp64(kind, c, subnormal, tenth, nullptr))
             << std::uint64_t(samesum_aggregate_subtract_fp64(kind, c, tenth, subnormal, nullptr))
             << std::uint64_t(samesum_aggregate_add_int64(kind, c, 3, -5, nullptr))
             << std::uint64_t(samesum_aggregate_subtract_int64(kind, c, -7, 11, nullptr))
             << ask(samesum_aggregate_merge, kind, c, std::as_const(second), nullptr).message
             << ask(samesum_aggregate_unmerge, kind, second, std::as_const(c), nullptr).message;
         std::vector<std::byte> bytes(samesum_aggregate_serialised_bytes(kind));
         std::size_t size = 0;
         out << ask(samesum_aggregate_serialise, kind, std::as_const(c), static_cast<void*>(bytes.data()),
                    bytes.size(), &size)
                    .message;
         samesum_aggregate_destroy(kind, second, nullptr);
         out << ask(samesum_aggregate_deserialise, kind, static_cast<const void*>(bytes.data()), size, second,
                    nullptr)
                    .message;
         double value = 0;
         out << ask(samesum_aggregate_finish, kind, std::as_const(second), SAMESUM_RESULT_SLOPE,
                    std::uint64_t{1}, SAMESUM_FP64, static_cast<void*>(&value))
                    .message
             << value << bytes;
         samesum_aggregate_destroy(kind, second, nullptr);
         for (AggregateComoments* s : {&state, &copy, &read}) s->destroy();
       }},
      {"partials of the C interface",
       {"samesum_partial_create", "samesum_partial_copy", "samesum_partial_destroy", "samesum_partial_add",
        "samesum_partial_merge", "samesum_partial_finish", "samesum_partial_serialise",
        "samesum_partial_deserialise"},
       [](Text& out, int threads) {
         const samesum_values x = c_interface::values_in_c(long_array.values());
         samesum_options options = samesum_options_default();
         options.threads = threads;
         samesum_partial *left = nullptr, *right = nullptr, *copy = nullptr;
         const samesum_method* const m = c_interface::found("prefix/kahan/fp32");
         samesum_partial_create(m, 0, 0, 0, &left, nullptr, 0);
         samesum_partial_create(m, x.size, 0, 0, &right, nullptr, 0);
         for (samesum_partial* partial : {left, right})
           samesum_partial_add(partial, &x, nullptr, &options, nullptr, 0);
         samesum_partial_copy(left, &copy, nullptr, 0);
         std::size_t size = 0;
         samesum_partial_serialise(right, nullptr, 0, &size, nullptr, 0);
         std::vector<std::byte> bytes(size);
         samesum_partial_serialise(right, bytes.data(), size, &size, nullptr, 0);
         samesum_partial_destroy(right);
         samesum_partial_deserialise(bytes.data(), size, "cpu", &right, nullptr, 0);
         samesum_partial_merge(copy, right, nullptr, 0);
         float sum = 0;
         const samesum_results results{&sum, 1, 0, SAMESUM_FP32};
         samesum_partial_finish(copy, &results, nullptr, nullptr, 0);
         out << sum << bytes;
         for (samesum_partial* partial : {left, right, copy}) samesum_partial_destroy(partial);
       }},
  };
  return all;
}

constexpr int thread_counts[] = {1, 3};

/// Returns hashes of the results of all entry points in the default environment. A child process computes
/// them before any other call, since a table initialised in another environment would affect all later calls
/// in its process.
const std::vector<std::uint64_t>& ordinary() {
  static const std::vector<std::uint64_t> hashes = [] {
    std::vector<std::uint64_t> all(entry_points().size() * std::size(thread_counts));
    const auto fill = [&] {
      for (std::size_t i = 0; i < all.size(); ++i) {
        Text text;
        entry_points()[i / std::size(thread_counts)].call(text, thread_counts[i % std::size(thread_counts)]);
        all[i] = text.hash();
      }
    };
    int pipe_ends[2];
    const std::size_t bytes = all.size() * sizeof all[0];
    EXPECT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      fill();
      std::_Exit(write(pipe_ends[1], all.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 1);
    }
    EXPECT_EQ(read(pipe_ends[0], all.data(), bytes), static_cast<ssize_t>(bytes)) << "the child failed";
    waitpid(child, nullptr, 0);
    return all;
  }();
  return hashes;
}

class AnyEnvironment : public ::testing::TestWithParam<Environment> {};
INSTANTIATE_TEST_SUITE_P(With, AnyEnvironment, ::testing::ValuesIn(all_environments()), [](const auto& info) {
  std::string name = name_of(info.param);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST_P(AnyEnvironment, ChangesNoResultAndIsLeftUnchanged) {
  ASSERT_EQ(ordinary().size(), 2 * entry_points().size());
  // The first calls in this process initialise their tables in a non-default environment.
  for (std::size_t i = 0; i < ordinary().size(); ++i)
    for (const unsigned bits : register_bits) {
      const EntryPoint& entry = entry_points()[i / std::size(thread_counts)];
      const int threads = thread_counts[i % std::size(thread_counts)];
      Environment environment = GetParam();
      // One setting shows whether a thread inherits its creator's environment. Traps are combined with set
      // flags, and other roundings with flush-to-zero and denormals-are-zero, instead of each with all
      // settings.
      const bool few = threads > 1 || environment.traps || environment.rounding != FE_TONEAREST;
      const unsigned one = environment.traps ? all_flags : register_bits[0];
      if (few && bits != one && (bits != 0 || threads > 1)) continue;
      environment.register_bits = bits;
      Text text;
      const bool kept = call_in(environment, [&] { entry.call(text, threads); });
      EXPECT_EQ(text.hash(), ordinary()[i])
          << entry.name << " returned other bits: " << name_of(environment) << ", " << threads << " threads";
      EXPECT_TRUE(kept) << entry.name << " changed the environment: " << name_of(environment);
    }
}

/// Public headers in folders that also contain internal headers.
constexpr std::string_view face_elsewhere[] = {"samesum/accumulator/exact.hpp",
                                               "samesum/accumulator/exact_state.hpp",
                                               "samesum/accumulator/fixed_point_state.hpp",
                                               "samesum/window/window_state.hpp",
                                               "samesum/format/number.hpp",
                                               "samesum/operation/aggregates.hpp",
                                               "samesum/operation/distinct.hpp"};

/// Returns the functions of the public headers and of the headers for custom reducers.
std::set<std::string> public_functions() {
  const fs::path library = fs::path{SAMESUM_SOURCE_DIR} / "lib";
  std::set<std::string> functions, seen;
  const std::function<void(const std::string&)> follow = [&](const std::string& name) {
    const std::string folder = name.substr(0, name.rfind('/'));
    const bool is_face = folder == "samesum" || folder == "samesum/base" || folder == "samesum/catalogue" ||
                         (folder == "samesum/call" && name != "samesum/call/validation.hpp") ||
                         std::ranges::count(face_elsewhere, name) > 0;
    if (!is_face || !seen.insert(name).second) return;
    functions.merge(functions_of(library / name));
    std::ifstream file{library / name};
    const std::regex include{R"re(^#include "(samesum/[^"]+)")re"};
    for (std::string line; std::getline(file, line);)
      if (std::smatch match; std::regex_search(line, match, include)) follow(match[1]);
  };
  for (const char* header :
       {"samesum/samesum.hpp", "samesum/samesum.h", "samesum/reducer.hpp", "samesum/states.hpp",
        "samesum/statistics.hpp", "samesum/operation/distinct.hpp"})
    follow(header);
  EXPECT_GT(seen.size(), 10u);
  return functions;
}

/// Functions that never compute in floating point, and parts that compute in the environment of their caller.
const std::set<std::string> without_guard{
    // integers and names
    "Exact::digits", "Exact::empty", "Exact::is_special", "Exact::only_minus_zero", "Layout::axis",
    "Layout::first", "Layout::length", "Layout::results", "Layout::rows", "Layout::segments",
    "Layout::vector", "BackendList::all", "Keys::is_given", "Mask::is_given", "selects", "Values::is_given",
    "bins", "most_terms", "is_vector", "normalised", "overlap_error", "refuse", "Method::is_scan",
    "Method::result_bytes", "Method::result_format", "Name::view", "bytes_of", "depends_on_condition",
    "first_bad_key", "is_listed", "key_at", "message_of_bad_key", "with_key_format", "Results::stride_of",
    "backend", "completed", "format_of_name", "is_combination", "name_of", "refusal_without_order",
    "parse_name", "refusal", "with_defaults",
    // names, facts, layouts and headers of states in C
    "samesum_abi_version", "samesum_version", "samesum_sizeof", "samesum_status_name", "samesum_format_name",
    "samesum_format_bytes", "samesum_vector", "samesum_rows", "samesum_axis", "samesum_segments",
    "samesum_call_default", "samesum_options_default", "samesum_bound_query_default",
    "samesum_state_options_default", "samesum_method_name", "samesum_method_operation",
    "samesum_method_summary", "samesum_method_order", "samesum_method_accumulator", "samesum_method_backend",
    "samesum_method_promise", "samesum_method_format", "samesum_method_result_format",
    "samesum_method_inputs", "samesum_method_results", "samesum_method_returns_index",
    "samesum_method_has_result_per_element", "samesum_method_is_scan", "samesum_method_takes_keys",
    "samesum_method_takes_window", "samesum_method_takes_grid", "samesum_method_can_combine",
    "samesum_method_accepts", "samesum_state_bytes", "samesum_state_alignment",
    "samesum_state_serialised_bytes", "samesum_state_destroy", "samesum_state_is_empty",
    "samesum_partial_method", "samesum_partial_begin", "samesum_partial_end", "samesum_aggregate_bytes",
    "samesum_aggregate_serialised_bytes", "samesum_aggregate_destroy", "samesum_aggregate_size",
    "Aggregate::destroy", "Aggregate::most_serialised_bytes", "Aggregate::size",
    // the guard itself
    "in_standard_environment",
    // facts of calls of statistics
    "Weights::is_given", "is_matrix", "samesum_statistics_call_default", "takes_y", "weights_layout",
    "y_layout",
    // functions of a custom reducer that schedules call
    "CustomReducer::add", "CustomReducer::finish", "CustomReducer::item", "CustomReducer::merge",
    "CustomReducer::start"};

TEST(EveryPublicFunction, IsTestedInEveryEnvironment) {
  std::set<std::string> called = without_guard;
  for (const EntryPoint& entry : entry_points())
    called.insert(entry.functions.begin(), entry.functions.end());
  const std::set<std::string> declared = public_functions();
  for (const std::string& function : declared)
    EXPECT_TRUE(called.contains(function)) << function << " is declared but not tested in any environment";
  for (const std::string& function : called)
    EXPECT_TRUE(declared.contains(function)) << function << " is no longer declared";
  EXPECT_TRUE(declared.contains("Method::bound") && declared.contains("accumulate"));
}

TEST(AnEntryPoint, RaisesNoFloatingPointFlag) {
  for (const EntryPoint& entry : entry_points()) {
    Text text;
    std::feclearexcept(FE_ALL_EXCEPT);
    entry.call(text, 3);
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << entry.name;
  }
}

TEST(AnExactState, OfSubnormalsIsCorrectInFlushToZeroMode) {
#if defined(__x86_64__)
  std::vector<float> few(9, 0x1p-130f), many(100'000, 0x1p-140f);
  Text sums;
  call_in({FE_TONEAREST, false, flush_to_zero | denormals_are_zero}, [&] {
    sums << accumulate(few).result<double>();
    for (const int threads : {1, 2}) sums << accumulate(many, {.threads = threads}).result<double>();
  });
  Text expected;
  expected << 0x1.2p-127 << 100'000 * 0x1p-140 << 100'000 * 0x1p-140;
  EXPECT_EQ(sums.str(), expected.str());
#else
  GTEST_SKIP() << "this test sets flush to zero on x86-64 only";
#endif
}

}  // namespace
}  // namespace samesum
