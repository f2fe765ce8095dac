/// Support for the tests of the library: arrays of any format, data with portable bits, readable failure
/// messages.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "samesum/accumulator/accumulators.hpp"
#include "samesum/accumulator/hopper.hpp"
#include "samesum/order/orders.hpp"
#include "samesum/samesum.hpp"

namespace samesum {

inline void PrintTo(const Number& x, std::ostream* out) {
  *out << x.to_double() << " (" << x.format->name << " bits 0x" << std::hex << x.bits << std::dec << ")";
}
inline void PrintTo(const Method& m, std::ostream* out) { *out << m.name; }

namespace testing_support {

/// Whether a sanitizer makes everything at least ten times slower, so that tests see fewer cases: one that
/// the build has, or compute-sanitizer, for which SAMESUM_REDUCED_TESTS is set.
inline const bool is_sanitized =
    !std::string_view{SAMESUM_SANITIZE}.empty() || std::getenv("SAMESUM_REDUCED_TESTS") != nullptr;

/// Number of random cases of a test: n, an eighth of them with sanitizers.
inline int random_cases(int n) { return is_sanitized ? n / 8 : n; }

// --- tests that are left out ------------------------------------------------------------------------------

inline constexpr bool has_thread_sanitizer = std::string_view{SAMESUM_SANITIZE} == "thread";

/// Whether tests with the tags below are left out. SAMESUM_LONG_TESTS has all of them, but for the thread
/// sanitizer.
inline const bool leaves_out_tests =
    is_sanitized && (has_thread_sanitizer || std::getenv("SAMESUM_LONG_TESTS") == nullptr);

/// Whether a method on a CPU or GPU is of another format than fp32, and tests of those are left out.
inline bool leaves_out_format(const Method& m) {
  return leaves_out_tests && m.format->name != "fp32" && m.backend != "reference";
}

/// Skips the test that is running.
inline void skip(std::string_view why) { GTEST_SKIP() << why; }

/// Tags a test that sanitizers leave out: "it tests bits", for example, if other tests access the same
/// memory.
#define SAMESUM_UNSANITIZED(why)                    \
  if (::samesum::testing_support::leaves_out_tests) \
  return ::samesum::testing_support::skip("left out with sanitizers: " why)

/// Tags a test of a walk that sanitizers see for methods in fp32. Other formats have code from the same
/// templates; of each walk, the test that compares every layout with the reference runs in all formats.
#define SAMESUM_SANITIZED_IN_FP32(method)                    \
  if (::samesum::testing_support::leaves_out_format(method)) \
  return ::samesum::testing_support::skip("left out with sanitizers, but in fp32")

/// Tags a test that the thread sanitizer leaves out.
#define SAMESUM_WITHOUT_THREAD_SANITIZER(why)           \
  if (::samesum::testing_support::has_thread_sanitizer) \
  return ::samesum::testing_support::skip("left out with the thread sanitizer: " why)

/// Allocates at whole cache lines. Nothing follows what is asked for, so the address sanitizer sees an access
/// by one element too far.
template <class T> struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, line); }
  bool operator==(const LineAllocator&) const = default;
};

/// Elements of one format at any element-aligned address.
class Array {
 public:
  Array(const FormatInfo& format, const std::vector<double>& x, std::size_t offset = 0)
      : format_{&format},
        offset_{offset},
        size_{x.size()},
        memory_(std::max<std::size_t>(1, (offset + x.size()) * format.bytes)) {
    with_format(format, [&]<class F>() {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const F element = convert<F>(x[i]);
        std::memcpy(first() + i * sizeof(F), &element, sizeof(F));
      }
    });
  }
  Values values() const { return {*format_, first(), size_}; }
  /// Returns a copy at another offset, without rounding the elements again.
  Array at_offset(std::size_t offset) const {
    Array other{*format_, {}, offset + size_};
    other.offset_ = offset;
    other.size_ = size_;
    if (size_ > 0) std::memcpy(other.first(), first(), size_ * format_->bytes);
    return other;
  }

 private:
  std::byte* first() { return memory_.data() + offset_ * format_->bytes; }
  const std::byte* first() const { return const_cast<Array*>(this)->first(); }
  const FormatInfo* format_;
  std::size_t offset_, size_;
  std::vector<std::byte, LineAllocator<std::byte>> memory_;
};

/// Returns n numbers uniform in (-1, 1). They are computed from the generator's integers, so their bits are
/// portable.
inline std::vector<double> uniform(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<double> x(n);
  for (double& e : x) e = static_cast<double>(static_cast<std::int64_t>(random()) >> 11) * 0x1p-52;
  return x;
}

/// Returns n numbers of either sign, with magnitudes spread over the given number of binades around 1.
inline std::vector<double> wide(std::size_t n, int binades, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<double> x = uniform(n, seed + 1);
  for (double& e : x) {
    const int exponent = static_cast<int>(random() % static_cast<std::uint64_t>(binades)) - binades / 2;
    e *= power_of_two(exponent);
  }
  return x;
}

struct Dataset {
  std::string name;
  std::vector<double> x;
};

/// Returns ordinary and awkward data sets of n elements, all within the range of fp16.
inline std::vector<Dataset> datasets(std::size_t n) {
  std::vector<double> cancelling = uniform(n, 5);
  for (std::size_t i = 0; i + 1 < n; i += 2) cancelling[i + 1] = -cancelling[i] + (i % 16 == 0 ? 0x1p-9 : 0);
  std::vector<double> big_first(n, 1.0);
  if (n > 0) big_first[0] = 4096;
  std::vector<double> harmonic(n);
  for (std::size_t i = 0; i < n; ++i) harmonic[i] = 1.0 / static_cast<double>(i + 1);
  std::vector<double> subnormal = uniform(n, 7);
  for (double& e : subnormal) e *= 0x1p-16;
  return {{"uniform in (-1, 1)", uniform(n, 1)},
          {"20 binades", wide(n, 20, 2)},
          {"cancelling pairs", cancelling},
          {"one big, then ones", big_first},
          {"harmonic", harmonic},
          {"ones", std::vector<double>(n, 1.0)},
          {"0.1", std::vector<double>(n, 0.1)},
          {"near the subnormals of fp16", subnormal},
          {"-0", std::vector<double>(n, -0.0)},
          {"+0", std::vector<double>(n, 0.0)}};
}

/// Lanes and elements per leaf of a method's order; {1, unbounded} for serial and exact.
struct Shape {
  std::size_t lanes = 1, leaf = unbounded;
};
inline Shape shape_of(const Method& m) {
  Shape shape;
  Orders::for_each([&]<class Order>() {
    if (Order::name == m.order) shape = {Order::Shape::lanes, Order::Shape::leaf};
  });
  return shape;
}

/// Returns the name without the backend and without "sum/".
inline std::string short_name(const Method& m) {
  const std::string name = m.name.substr(0, m.name.find('@'));
  return name.starts_with("sum/") ? name.substr(4) : name;
}

/// Returns a method's name in the characters that GoogleTest accepts, such as "sum_tree_kahan_bf16_cpu".
inline std::string test_name(const ::testing::TestParamInfo<const Method*>& info) {
  if (!info.param) return "absent";
  std::string name = info.param->name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// Returns the sums on a backend whose promise is at least `least`.
inline std::vector<const Method*> sums_of(std::string_view backend, Promise least = Promise::none) {
  std::vector<const Method*> chosen;
  for (const Method& m : methods("sum"))
    if (m.backend == backend && m.promise >= least) chosen.push_back(&m);
  return chosen;
}

/// Whether the method reduces vectors: it has no result per element, and takes no keys.
inline bool reduces_vectors(const Method& m) { return !m.has_result_per_element && !m.takes_keys; }

/// Whether there are partials of the method. Matrix units sum a whole vector.
inline bool has_partials(const Method& m) {
  return m.promise >= Promise::everywhere && reduces_vectors(m) && m.accumulator != Hopper::name;
}

/// Returns a format of elements that the method accepts: its own or fp32, if it accepts one of them.
inline const FormatInfo& input_of(const Method& m) {
  if (m.accepts(*m.format)) return *m.format;
  const auto accepted = std::ranges::find_if(formats, [&](const FormatInfo& f) { return m.accepts(f); });
  return m.accepts(format_info<fp32>()) || accepted == formats.end() ? format_info<fp32>() : *accepted;
}

inline const Method& reference_of(const Method& m) { return find_on("reference", m); }

/// The method on the host that calls which are too long for the reference are compared with.
inline const Method& on_host(const Method& m) { return m.backend == "cuda" ? find_on("cpu", m) : m; }

// --- suites of tests for each method or backend -----------------------------------------------------------

/// Why a backend is absent; empty if it is there.
inline std::string absence_of(std::string_view backend) {
  for (const Absent& a : absent())
    if (a.backend == backend) return a.reason;
  return {};
}

/// A test of one method. A null pointer stands for all methods of a GPU that is absent: the test is skipped,
/// and says why.
class MethodTest : public ::testing::TestWithParam<const Method*> {
 protected:
  const Method& m = GetParam() ? *GetParam() : methods().front();
  void SetUp() override {
    if (!GetParam()) skip(absence_of("cuda"));
  }
};

/// The parameters of a suite for methods of a GPU, which may be absent.
inline std::vector<const Method*> or_absent(std::vector<const Method*> methods_of_gpu) {
  if (!absence_of("cuda").empty()) methods_of_gpu.assign(1, nullptr);
  return methods_of_gpu;
}

/// A test of one format. With sanitizers, fp16 is left out, since its loops are those of bf16, but for the
/// conversion, which tests of packs cover.
template <class F> class FormatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (leaves_out_tests && std::is_same_v<F, fp16>) skip("left out with sanitizers, but in other formats");
  }
};
/// Leaves out fp16 from the methods of a suite likewise. Methods with code of their own for fp16 stay.
inline std::vector<const Method*> without_fp16_if_sanitized(std::vector<const Method*> all) {
  if (leaves_out_tests) std::erase_if(all, [](const Method* m) { return m->format->name == "fp16"; });
  return all;
}

/// A test on one backend, of which methods are found by name. It is skipped, and says why, if the backend is
/// absent.
class BackendTest : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string backend = GetParam();
  const Method& method(const std::string& name) const { return find(name + "@" + backend); }
  void SetUp() override {
    if (const std::string why = absence_of(backend); !why.empty()) skip(why);
  }
};
inline std::string backend_name(const ::testing::TestParamInfo<const char*>& info) { return info.param; }
/// Defines a suite of tests on the backends of these names. All suites have one type, which compiles faster.
#define SAMESUM_ON_BACKENDS(Suite, ...)                                     \
  using Suite = ::samesum::testing_support::BackendTest;                    \
  INSTANTIATE_TEST_SUITE_P(Backends, Suite, ::testing::Values(__VA_ARGS__), \
                           ::samesum::testing_support::backend_name)

/// Returns the backends that are there.
inline std::vector<std::string> present_backends() {
  std::vector<std::string> all{"reference", "cpu", "cuda"};
  std::erase_if(all, [](const std::string& backend) { return !absence_of(backend).empty(); });
  return all;
}

/// Options with the grid that partials of a method share in the tests, if it needs one.
inline Options with_grid(const Method& m, Options options = {}) {
  if (m.accumulator == "fixed_point") options.grid = -20;
  return options;
}
/// Options with a window, and a grid if the method needs one, for tests of all methods.
inline Options with_window(const Method& m, Options options = {}) {
  if (!m.takes_window) return options;
  options.window = 5;
  options.min_periods = 1;
  return with_grid(m, options);
}
inline Partial partial_of(const Method& m, std::uint64_t begin = 0) {
  return Partial{m, begin, with_grid(m).grid};
}

/// Returns the message of the std::invalid_argument that f throws; empty if it throws nothing.
template <class F> std::string refusal_by(F f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

}  // namespace testing_support
}  // namespace samesum
