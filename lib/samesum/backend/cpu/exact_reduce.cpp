/// Exact reductions on a CPU: terms in double, which hold nearly all of them, and the exact sums of these.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "samesum/backend/cpu/kernels.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/tasks.hpp"

namespace samesum::cpu {
namespace {

constexpr std::size_t block = 4096;

/// Adds n products that lie one after the other. Doubles are multiplied into two words, where these lose
/// nothing.
template <class T> void add_products(ExactTerms& to, const T* x, const T* y, std::size_t n) {
  const WriteTerms write = kernels<Formats::index_of<fp64>()>().write_terms[Formats::index_of<T>()];
  double high[block], low[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t mine = std::min(n - begin, block);
    const T *a = x + begin, *b = y + begin;
    write(Term::product, a, b, mine, high, std::is_same_v<T, fp64> ? low : nullptr);
    if constexpr (std::is_same_v<T, fp64>) {
      bool any = false;
      for (std::size_t i = 0; i < mine; ++i) {
        const double size = std::abs(high[i]);
        const bool doubtful = !(size > 0x1p-960 && size < 0x1p1000);  // the low word may be lost, or all
        if (doubtful && std::isfinite(a[i]) && std::isfinite(b[i]) && a[i] != 0 && b[i] != 0) {
          to.add_product(a[i], b[i]);
          high[i] = -0.0;
          low[i] = 0;
        }
        if (low[i] == 0) low[i] = -0.0;  // adds nothing, not even a sign
        any = any || low[i] != 0;
      }
      if (any) to.sum.merge(sum_exact(Values{std::span<const double>{low, mine}}, 1));
    }
    to.sum.merge(sum_exact(Values{std::span<const double>{high, mine}}, 1));
  }
}

template <class T>
void add_terms(ExactBatchState& to, ExactKind kind, const T* x, const T* y, std::size_t n) {
  if (n == 0) return;
  if (kind.term >= Term::square) {
    add_products(to.terms, x, kind.term == Term::square ? x : y, n);
  } else if (kind.term == Term::magnitude) {
    std::vector<T> magnitudes(n);
    for (std::size_t i = 0; i < n; ++i)
      magnitudes[i] = from_bits<T>(BitsOf<T>(to_bits(x[i]) & ~Format<T>::sign_bit));
    to.terms.sum.merge(sum_exact(Values{std::span<const T>{magnitudes}}, 1));
  } else {
    to.terms.sum.merge(sum_exact(Values{std::span<const T>{x, n}}, 1));
  }
  if (kind.moments) add_products(to.squares, x, x, n);
}

}  // namespace

void reduce_exactly(ExactKind kind, const FormatInfo& format, const Call& call) {
  with_format(*call.input, [&]<class T>() {
    const Layout& l = call.layout;
    constexpr std::size_t part = std::size_t{1} << 16;  // of a long one, what is a task
    const T *x = static_cast<const T*>(call.x), *y = static_cast<const T*>(call.y);
    const auto add = [&](ExactBatchState& state, std::size_t at, std::size_t begin, std::size_t n) {
      const std::size_t place = l.first(at / l.inner) + at % l.inner + begin * l.stride;
      if (l.stride == 1) return add_terms(state, kind, x + place, y ? y + place : nullptr, n);
      std::vector<T> column[2];
      for (std::size_t i = 0; i < n; ++i) column[0].push_back(x[place + i * l.stride]);
      for (std::size_t i = 0; y && i < n; ++i) column[1].push_back(y[place + i * l.stride]);
      add_terms(state, kind, column[0].data(), y ? column[1].data() : nullptr, n);
    };
    const std::size_t results = l.results();
    const auto whole = [&](std::size_t at) {
      const std::size_t n = l.length(at / l.inner);
      ExactBatchState state;
      for (std::size_t begin = 0; begin < n; begin += part) add(state, at, begin, std::min(n - begin, part));
      state.finish(kind, format, n, call.options.ddof, at, call.out);
    };
    const std::size_t elements =
        l.offsets ? static_cast<std::size_t>(l.offsets[l.outer] - l.offsets[0]) : results * l.n;
    if (results != 1) {
      // A task is enough short results to be worth a turn.
      const std::size_t tasks = std::clamp<std::size_t>(elements >> 14, 1, std::max<std::size_t>(results, 1)),
                        per_task = (results + tasks - 1) / tasks;
      return for_each_task(thread_count(call.options.threads, elements, tasks), tasks, [&](std::size_t k) {
        for (std::size_t at = k * per_task; at < std::min(results, (k + 1) * per_task); ++at) whole(at);
      });
    }
    const std::size_t n = l.length(0), tasks = (std::max<std::size_t>(n, 1) - 1) / part + 1;
    ExactBatchState total;
    std::mutex mutex;
    for_each_task(thread_count(call.options.threads, n, tasks), tasks, [&](std::size_t k) {
      ExactBatchState state;
      add(state, 0, k * part, std::min(n - k * part, part));
      const std::scoped_lock lock{mutex};
      total.merge(state);
    });
    total.finish(kind, format, n, call.options.ddof, 0, call.out);
  });
}

}  // namespace samesum::cpu
