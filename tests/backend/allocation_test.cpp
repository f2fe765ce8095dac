/// Short sums allocate no memory on the heap. A failed allocation leaves a partial unchanged, and reaches the
/// caller from every thread of every method.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <new>

#include "interface/c_support.hpp"
#include "operation/by_key_support.hpp"
#include "samesum/backend/cpu/schedule/threads.hpp"
#include "samesum/states.hpp"

namespace {
constexpr int never = -1;
std::atomic<int> allocations{0}, failing{never};  // failing: the allocation that fails
std::atomic<bool> and_all_later{false};           // whether those after it fail, too
std::atomic<int> failures_in_helpers{0};
const pthread_t main_thread = pthread_self();

bool next_allocation_fails() {
  const int mine = ++allocations, first = failing;
  if (first == never) return false;
  const bool is_helper = !pthread_equal(pthread_self(), main_thread),
             fails = and_all_later ? mine >= first : mine == first;
  // Lets a helper take the task of the next allocation: else the main thread would often finish all of them.
  if (!is_helper && mine + 1 == first) usleep(50);
  failures_in_helpers += is_helper && fails;
  return fails;
}
}  // namespace

#if defined(SAMESUM_WRAPPED_NEW)
extern "C" {
void* __real__Znwm(std::size_t size);
void* __real__ZnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t&) noexcept;
void* __wrap__Znwm(std::size_t size) {
  return next_allocation_fails() ? throw std::bad_alloc{} : __real__Znwm(size);
}
void* __wrap__ZnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t& tag) noexcept {
  return next_allocation_fails() ? nullptr : __real__ZnwmRKSt9nothrow_t(size, tag);
}
}
#else
void* operator new(std::size_t size) {
  if (void* p = next_allocation_fails() ? nullptr : std::malloc(size)) return p;
  throw std::bad_alloc{};
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return next_allocation_fails() ? nullptr : std::malloc(size);
}
// If g++ inlines operator delete but not operator new, it warns about free().
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace samesum {
namespace {

using namespace testing_support;

/// What became of a call: whether its allocation that should fail was reached, and whether it threw
/// std::bad_alloc.
struct Outcome {
  bool reached, threw;
};

/// Calls run() while allocation k from now on fails, and if `all_later` those after it.
template <class Run> Outcome with_failure(int k, const Run& run, bool all_later = false) {
  Outcome outcome{};
  and_all_later = all_later;
  failing = allocations + k;
  try {
    run();
  } catch (const std::bad_alloc&) {
    outcome.threw = true;
  }
  outcome.reached = allocations >= failing;
  failing = never;
  return outcome;
}

TEST(AShortSum, AllocatesNothing) {
  for (const Method* m : sums_of("cpu")) {
    if (m->is_slow) continue;  // a model of hardware, which lists the sums of its tiles
    for (const std::size_t n : {0, 1, 64, 1000, 4096, 50'000}) {
      const Array x{*m->format, uniform(n, 1)};
      const Values values = x.values();
      (*m)(values, {.threads = 1});  // initialises what is created only once
      const int before = allocations;
      (*m)(values, {.threads = 1});
      EXPECT_EQ(allocations, before) << m->name << ", n = " << n;
    }
  }
}

TEST(TheCountOfAllocations, GrowsWithAnAllocation) {
  const int before = allocations;
  const std::vector<int> some(100);
  EXPECT_GT(allocations, before);
  EXPECT_EQ(some.size(), 100u);
}

TEST(APartial, IsUnchangedIfAnAllocationFails) {
  const Array x{format_info<fp32>(), wide(14'000, 20, 1)}, few{format_info<fp32>(), wide(3000, 20, 2)};
  int failures = 0;
  for (const char* name :
       {"tree/kahan/fp32", "dot/tree/kahan/fp32", "canonical16/plain/fp32", "prefix/plain/fp32",
        "serial/plain/fp32", "exact/fp32", "fixed_point/fp32", "argmax/fp32"})
    for (const std::uint64_t begin : {0, 4000})
      for (const Array* portion : {&x, &few}) {
        Partial partial = partial_of(find(name), begin);
        const auto add = [&] {
          partial.method().inputs == 2 ? partial.add(portion->values(), portion->values(), {.threads = 1})
                                       : partial.add(portion->values(), {.threads = 1});
        };
        add();
        const std::vector<std::byte> before = partial.serialise();
        for (int k = 1; with_failure(k, add).threw; ++k) {
          ++failures;
          ASSERT_TRUE(partial.serialise() == before) << name << " from " << begin << ", allocation " << k;
        }
        ASSERT_GT(partial.size(), portion->values().size);
      }
  EXPECT_GT(failures, 100);
}

TEST(AStateThatGrows, IsUnchangedIfAnAllocationOfTheLibraryFails) {
  // Numbers that span so many powers of two that the library allocates memory for their sums and quotients.
  const std::vector<double> x = wide(40'000, 2000, 1), y = wide(40'000, 2000, 2);
  int failures = 0;
  const auto expect_unchanged = [&]<class State>(State state, const Values& second) {
    (void)state.add(x[0], x[1]);
    const std::vector<std::byte> before = state.serialise();
    StateStatus status = StateStatus::out_of_memory;
    for (int k = 1; status != StateStatus::ok; ++k) {
      with_failure(k, [&] { status = state.add(x, second); });
      failures += status == StateStatus::out_of_memory;
      if (status == StateStatus::out_of_memory) {
        ASSERT_TRUE(state.serialise() == before) << k;
      }
    }
    for (const auto& use :
         {+[](const State& s) { (void)s.serialise(); },
          +[](const State& s) { (void)s.result(AggregateResult::correlation, format_info<fp64>()); }})
      for (int k = 1; with_failure(k, [&] { use(state); }).threw; ++k) ++failures;
    const std::vector<std::byte> bytes = state.serialise();
    for (int k = 1; with_failure(k,
                                 [&] {
                                   State read;
                                   (void)State::deserialise(bytes, read);
                                   read.destroy();
                                 })
                        .threw;
         ++k)
      ++failures;
    state.destroy();
  };
  expect_unchanged(AggregateComoments{}, Values{y});
  EXPECT_GT(failures, 5);
}

// --- every allocation of every method ----------------------------------------------------------------------

using Bytes = std::vector<std::byte>;

/// A call of a method on several threads, with memory for its results.
struct RepeatableCall {
  const Method& method;
  Values x;
  const Keys* keys;
  Layout layout;
  bool combine;
  Bytes held;  ///< what `out` holds before the call
  Bytes out = held;

  void run() {
    std::ranges::copy(held, out.begin());
    const Options options = with_window(method, {.threads = 4, .combine = combine});
    const FormatInfo* const format = method.result_format(*x.format);
    const Results results{format, out.data(), out.size() / (format ? format->bytes : sizeof(std::int64_t))};
    if (keys)
      reduce(method, method.inputs == 0 ? Values{*x.format, nullptr, 0} : x, *keys, layout, results, options);
    else if (method.inputs == 2)
      reduce(method, x, x, layout, results, options);
    else
      reduce(method, x, layout, results, options);
  }
};

RepeatableCall call_with(const Method& m, Values x, Layout layout) {
  const std::size_t results = m.has_result_per_element ? layout.results() * layout.n : layout.results(),
                    each = m.has_result_per_element ? m.result_format(*x.format)->bytes : m.result_bytes();
  return {m, x, nullptr, layout, false, Bytes(results * each, std::byte{0x5a})};
}

/// Calls visit(call) for calls of a method that use each schedule for several threads; on the backend
/// "reference", which has one thread, for short ones.
template <class Visit> void for_each_call(const Method& m, Visit visit) {
  const bool is_short = m.backend == "reference";
  const FormatInfo& input = input_of(m);
  if (m.takes_keys) {
    const std::size_t bins = 9, of_row = is_short ? 2 : 64;
    for (const std::size_t inner : {std::size_t{1}, m.inputs == 0 ? 1 : of_row}) {
      const std::size_t n = is_short ? 6 : inner == 1 ? 20'000 : 400;
      const by_key::KeyArray numbers{by_key::random_keys(n, bins, 2), KeyFormat::int32};
      const Keys keys = numbers.keys();
      for (const int binades : {12, 90}) {  // 90 exceed the window of exact sums
        const Array x{input, wide(n * inner, binades, 1)};
        for (const bool combine : {false, true})
          if (!combine || by_key::can_combine(m))
            visit(RepeatableCall{m, x.values(), &keys, Layout::axis(1, n, inner), combine,
                                 Bytes(bins * inner * m.result_bytes())});
      }
    }
    return;
  }
  const std::size_t n = is_short ? 60 : 70'000;                      // groups of leaves for two threads
  static std::map<std::pair<std::size_t, std::size_t>, Array> made;  // for all methods
  const auto found = made.find({n, input.index});
  const Array& x = found != made.end()
                       ? found->second
                       : made.try_emplace({n, input.index}, input, wide(n, 12, 1)).first->second;
  const std::uint64_t offsets[] = {0, 7, 7, is_short ? n / 2 : 1000, n};
  std::vector<Layout> layouts{Layout::rows(10, n / 10)};
  if (!m.keeps_format) layouts.insert(layouts.end(), {Layout::vector(n), Layout::axis(1, n / 10, 10)});
  if (!m.has_result_per_element) layouts.push_back(Layout::segments(offsets, 4));
  std::erase_if(layouts, [&](const Layout& layout) { return !m.accepts(input, layout); });
  static std::size_t turn = 0;  // with sanitizers, methods take half of the layouts in turn
  const std::size_t step = is_sanitized && layouts.size() > 1 ? 2 : 1;
  for (std::size_t k = ++turn % step; k < layouts.size(); k += step)
    visit(call_with(m, x.values(), layouts[k]));
}

/// Returns the methods of the host in one format, since all formats share the code that allocates. The driver
/// of a GPU has allocations of its own.
std::vector<const Method*> methods_on_the_host() {
  std::vector<const Method*> all;
  for (const Method& m : methods())
    if (m.backend != "cuda" && m.format == &format_info<fp32>()) all.push_back(&m);
  return all;
}

TEST(AnAllocationThatFails, OnAnyThreadOfAnyMethodReachesTheCallerAndTheNextCallHasTheRightBits) {
  SAMESUM_WITHOUT_THREAD_SANITIZER("the address sanitizer covers it");
  std::map<std::string, int> failures;
  for (const Method* m : methods_on_the_host()) {
    // Compensated sums allocate what plain ones do.
    if (is_sanitized && !m->order.empty() && m->accumulator != "plain" && !m->accumulator.empty()) continue;
    // Rolling means and variances allocate what rolling sums do.
    if (is_sanitized && (m->operation == "rolling_mean" || m->operation == "rolling_var")) continue;
    for_each_call(*m, [&](RepeatableCall call) {
      call.run();
      const Bytes expected = call.out;
      const auto is_right = [&] { return m->promise < Promise::everywhere || call.out == expected; };
      bool reached = true;
      // The first 16 allocations fail one by one; of thousands, which are alike, some fail.
      for (int k = 1; reached; k += is_sanitized ? 11 + k / 2 : 1 + k / 16) {
        const bool all_later = k % 4 > 1;
        const Outcome outcome = with_failure(
            k, [&] { call.run(); }, all_later);
        reached = outcome.reached;
        failures[m->operation] += outcome.threw;
        ASSERT_EQ(outcome.threw, outcome.reached) << m->name << ", allocation " << k;
        call.run();
        ASSERT_TRUE(is_right()) << m->name << " after allocation " << k << " failed";
      }
    });
  }
  EXPECT_GE(failures.size(), 20u);
  for (const auto& [operation, count] : failures) EXPECT_GT(count, 0) << operation;
  EXPECT_GT(failures_in_helpers, 0);
}

TEST(ACallInC, ThatFindsNoMemoryReturnsACodeAndAMessage) {
  std::vector<double> elements = wide(14'000, 200, 1);
  elements[0] = std::numeric_limits<double>::infinity();  // words, which allocate nothing, hold numbers only
  const Array x{format_info<fp32>(), elements};
  const samesum_values values = c_interface::values_in_c(x.values());
  std::vector<float> out(8);
  samesum_call call = samesum_call_default();
  samesum_options options = samesum_options_default();
  call.method = c_interface::found("moments/exact/fp32");
  call.x = values;
  call.layout = samesum_axis(1, 3500, 4);
  call.out = {out.data(), out.size(), 0, SAMESUM_FP32};
  options.threads = 4;
  call.options = &options;
  samesum_statistics_call statistics = samesum_statistics_call_default();
  statistics.statistic = SAMESUM_STATISTIC_COVARIANCE_MATRIX;
  statistics.x = values;
  statistics.layout = call.layout;
  std::vector<float> matrix(16);
  statistics.out = {matrix.data(), matrix.size(), 0, SAMESUM_FP32};
  samesum_partial* partial = nullptr;
  char message[100] = "";
  std::size_t size = 0;
  const std::function<samesum_status()> calls[] = {
      [&] { return samesum_run(&call, message, sizeof message); },
      [&] { return samesum_run_statistics(&statistics, nullptr, message, sizeof message); },
      [&] {
        const samesum_method* method = nullptr;
        return samesum_find("pairwise/double_word", SAMESUM_FP32, &method, message, sizeof message);
      },
      [&] {
        samesum_partial_destroy(std::exchange(partial, nullptr));
        return samesum_partial_create(call.method, 0, 0, 0, &partial, message, sizeof message);
      },
      [&] { return samesum_partial_add(partial, &values, nullptr, nullptr, message, sizeof message); },
      [&] { return samesum_partial_serialise(partial, nullptr, 0, &size, message, sizeof message); }};
  for (const auto& run : calls) {
    run();  // initialises what is created only once, such as threads
    int failures = 0;
    for (int k = 1;; ++k) {
      samesum_status status = SAMESUM_INTERNAL_ERROR;
      const Outcome outcome = with_failure(k, [&] { status = run(); });
      if (!outcome.reached) break;
      ASSERT_EQ(status, SAMESUM_OUT_OF_MEMORY) << "allocation " << k << ": " << message;
      ASSERT_STREQ(message, "samesum: memory is exhausted");
      ++failures;
    }
    EXPECT_GT(failures, 0) << "call " << &run - calls;
  }
  samesum_partial_destroy(partial);
}

TEST(AnAggregateState, AllocatesNothing) {
  const Array x{format_info<fp32>(), wide(50'000, 60, 1)};
  c_interface::State all[] = {c_interface::State{"exact/fp32"},
                              c_interface::State{"exact/fp32", c_interface::subtractable},
                              c_interface::State{"fixed_point/fp32", c_interface::on_grid(-20)}};
  const samesum_values values = c_interface::values_in_c(x.values());
  for (c_interface::State& state : all) {
    const c_interface::State other = state;
    char message[100];
    float out = 0;
    const int before = allocations;
    EXPECT_EQ(samesum_state_init(&state.kind(), state.memory(), state.bytes(), nullptr, message, 100),
              SAMESUM_OK);
    EXPECT_EQ(samesum_state_add(state, &values, message, sizeof message), SAMESUM_OK);
    EXPECT_EQ(samesum_state_add_fp64(state, 1), SAMESUM_OK);
    EXPECT_EQ(samesum_state_merge(state, other, message, sizeof message), SAMESUM_OK);
    EXPECT_EQ(samesum_state_finish(state, SAMESUM_FP32, &out, message, sizeof message), SAMESUM_OK);
    if (&state == &all[1]) {
      EXPECT_EQ(samesum_state_subtract(state, &values, message, sizeof message), SAMESUM_OK);
      EXPECT_EQ(samesum_state_unmerge(state, other, message, sizeof message), SAMESUM_OK);
    }
    EXPECT_EQ(samesum_state_copy(other, state.memory(), state.bytes(), nullptr, message, 100), SAMESUM_OK);
    samesum_state_destroy(state);
    EXPECT_EQ(allocations, before);
  }
}

TEST(ThreadsThatCannotBeCreated, LeaveTheWorkToTheOthersAndTheSignalsToTheCaller) {
  int threads = 10, refusals = 0;
  for (const bool all_later : {false, true})
    for (int k = 1;; ++k) {
      std::atomic<int> ran = 0;
      threads += 3;
      const Outcome outcome = with_failure(
          k, [&] { cpu::on_threads(threads, [&] { ++ran; }); }, all_later);
      EXPECT_EQ(outcome.threw, ran == 0) << "allocation " << k;
      refusals += outcome.threw;
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      EXPECT_EQ(sigismember(&blocked, SIGINT), 0) << "allocation " << k;
      if (!outcome.reached) break;
    }
  EXPECT_GT(refusals, 0);
}

}  // namespace
}  // namespace samesum
