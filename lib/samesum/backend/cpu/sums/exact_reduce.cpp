/// Exact reductions on a CPU: nearly all terms are exact in one or two doubles, which are then summed
/// exactly.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/order_free.hpp"

namespace samesum::cpu {
namespace {

constexpr std::size_t block = 4096;

/// Adds n contiguous products. Products of doubles become two words, or integers if the words would lose
/// bits.
template <class T> void add_products(ExactTerms& to, const T* x, const T* y, std::size_t n) {
  const WriteTerms write = kernels(Formats::index_of<fp64>()).write_terms[Formats::index_of<T>()];
  double high[block], low[block];
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t mine = std::min(n - begin, block);
    const T *a = x + begin, *b = y + begin;
    write(Term::product, a, b, mine, high, std::is_same_v<T, fp64> ? low : nullptr);
    if constexpr (std::is_same_v<T, fp64>) {
      bool any = false;
      for (std::size_t i = 0; i < mine; ++i) {
        const double size = std::abs(high[i]);
        // The low word may underflow, or the product overflow.
        const bool doubtful = !(size > 0x1p-960 && size < 0x1p1000);
        if (doubtful && std::isfinite(a[i]) && std::isfinite(b[i]) && a[i] != 0 && b[i] != 0) {
          to.add_product(a[i], b[i]);
          high[i] = -0.0;
          low[i] = 0;
        }
        if (low[i] == 0) low[i] = -0.0;  // -0 is the identity of addition
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
  if (is_product(kind.term)) {
    add_products(to.terms, x, second_factor(kind.term, x, y), n);
  } else if (kind.term == Term::element) {
    to.terms.sum.merge(sum_exact(Values{std::span<const T>{x, n}}, 1));
  } else {
    std::vector<T> terms(n);
    for (std::size_t i = 0; i < n; ++i) terms[i] = element_term(kind.term, x[i]);
    to.terms.sum.merge(sum_exact(Values{std::span<const T>{terms}}, 1));
  }
  if (kind.moments) add_products(to.squares, x, x, n);
}

/// The sums of the only result of a call.
template <class T> ExactSums sums_of_one(ExactKind kind, const OrderFreeBatch<T>& batch, bool nearly) {
  ExactSums total{};
  std::mutex mutex;
  batch.for_each_part_of_one([&](const T* x, const T* y, std::size_t n) {
    const ExactSums part = sums_of(kind, x, y, n, nearly);
    const std::scoped_lock lock{mutex};
    merge(total, part);
  });
  return total;
}

template <class T> class ExactBatch : OrderFreeBatch<T> {
 public:
  ExactBatch(ExactKind kind, const HostRun& work)
      : OrderFreeBatch<T>{work.call}, kind_{kind}, as_state_{work.as_state} {}

  void run() const {
    if (this->is_one() && (as_state_ || this->length_of(0) > OrderFreeBatch<T>::part)) return reduce_one();
    with_format(format(), [&]<class F>() {
      this->for_each_run([&](std::size_t first, std::size_t count) { reduce_run<F>(first, count); });
    });
  }

 private:
  static constexpr std::size_t most_tried_once = 4096;  ///< elements

  /// Reduces rows or neighbouring columns: rows of sums and means as packs, which leaves few for words.
  template <class F> void reduce_run(std::size_t first, std::size_t count) const {
    const std::size_t n = this->length_of(first);
    if constexpr (std::is_same_v<F, T> && std::is_same_v<T, CarrierOf<T>>)
      if (this->are_rows() && n > 0 && !is_product(kind_.term) && !kind_.moments) {
        const T* const x = this->first_of(first);
        std::uint64_t unknown = kernels(Formats::index_of<T>())
                                    .round_rows({x, x, kind_.term, count, n, this->call.layout.outer_stride},
                                                kind_.mean, static_cast<T*>(this->call.out.data) + first);
        for (std::size_t r = 0; unknown != 0;) {
          const int skipped = std::countr_zero(unknown), rows = std::countr_one(unknown >> skipped);
          r += static_cast<std::size_t>(skipped);
          reduce_in_words<F>(first + r, static_cast<std::size_t>(rows));
          r += static_cast<std::size_t>(rows);
          unknown = rows == 64 ? 0 : unknown >> skipped >> rows;
        }
        return;
      }
    reduce_in_words<F>(first, count);
  }
  /// Reduces rows or neighbouring columns: in a window, and those that do not fit there one by one.
  template <class F> void reduce_in_words(std::size_t first, std::size_t count) const {
    const std::size_t n = this->length_of(first);
    const auto is_finished = [&](const ExactSums& sums, std::size_t at) {
      return finish<F>(sums, n, at) || finish_equal<F>(n, at);
    };
    ExactSums sums[OrderFreeBatch<T>::longest_run];
    std::uint64_t unknown = 0;
    if (suffice_nearly<T, F> && tries_nearly_.load(std::memory_order_relaxed)) {
      this->sum_run(kind_, first, count, sums, true);
      for (std::size_t k = 0; k < count; ++k) unknown |= std::uint64_t{!is_finished(sums[k], first + k)} << k;
      if (unknown == 0) return;
    }
    // A column alone takes as long as several neighbouring ones.
    const bool alone = unknown != 0 && std::popcount(unknown) <= 4;
    if (unknown != 0 && !alone) tries_nearly_.store(false, std::memory_order_relaxed);
    if (!alone) this->sum_run(kind_, first, count, sums);
    for (std::size_t k = 0; k < count; ++k) {
      if (unknown != 0 && (unknown >> k & 1) == 0) continue;
      if (alone) this->sum_run(kind_, first + k, 1, &sums[k]);
      if (!is_finished(sums[k], first + k)) reduce(first + k);
    }
  }

  /// Writes a result, if its words tell how to round it.
  template <class F> bool finish(const ExactSums& sums, std::uint64_t n, std::size_t at) const {
    F* const out = static_cast<F*>(this->call.out.data);
    if (!kind_.moments) return round_sum(sums, n, kind_.mean, out[at]);
    return round_sum(sums, n, true, out[2 * at]) &&
           round_variance(sums, n, whole(this->call.options.ddof), out[2 * at + 1]);
  }

  /// Writes moments of finite elements that are all equal, whose variance of 0 words cannot tell.
  template <class F> bool finish_equal(std::size_t n, std::size_t at) const {
    if (!kind_.moments || n <= whole(this->call.options.ddof)) return false;
    const T* const x = this->first_of(at);
    const BitsOf<T> bits = to_bits(*x);
    if (bits == Format<T>::sign_bit || BitsOf<T>(bits & ~Format<T>::sign_bit) >= Format<T>::infinity)
      return false;
    for (std::size_t i = 1; i < n; ++i)
      if (to_bits(x[i * this->call.layout.stride]) != bits) return false;
    F* const out = static_cast<F*>(this->call.out.data) + 2 * at;
    out[0] = convert<F>(convert<double>(*x));
    out[1] = F{};
    return true;
  }

  /// Whether elements are added as they are. Long vectors of them are fastest in words that are carried
  /// along.
  bool is_plain_sum() const { return kind_.term == Term::element && !kind_.moments; }
  /// Adds the terms of n contiguous elements: in a window, or, where they do not fit, one by one.
  void add_part(ExactBatchState& to, const T* x, const T* y, std::size_t n) const {
    for_each_row_of(kind_, x, y, n, false,
                    [&](const ExactSums& sums, const T* row, const T* row_y, std::size_t each) {
                      if (!add_sums(to, sums)) add_terms(to, kind_, row, row_y, each);
                    });
  }
  /// Adds sums that words hold exactly. Returns false for others.
  bool add_sums(ExactBatchState& to, const ExactSums& sums) const {
    if (!sums.is_exact() || (kind_.moments && sums.square_error != 0)) return false;
    add_words(to.terms.sum, sums.sum);
    if (kind_.moments) add_words(to.squares.sum, sums.square);
    return true;
  }
  static void add_words(Exact& to, const double (&word)[3]) {
    to.add(word[0]);
    for (const double lower : {word[1], word[2]})
      if (lower != 0) to.add(lower);
  }

  void reduce(std::size_t at) const {
    ExactBatchState state;
    // A short result has just been tried in a window.
    this->for_each_part(at, [&](const T* x, const T* y, std::size_t n) {
      n <= most_tried_once ? add_terms(state, kind_, x, y, n) : add_part(state, x, y, n);
    });
    finish(state, at);
  }
  void finish(const ExactBatchState& state, std::size_t at) const {
    state.finish(kind_, format(), this->length_of(at), this->call.options.ddof, at, this->call.out.data);
  }

  /// Writes the only result, if words tell how to round it, or hold its sums exactly.
  bool finish_one() const {
    return with_format(format(), [&]<class F>() {
      const ExactSums sums = sums_of_one(kind_, *this, suffice_nearly<T, F>);
      if (sums.sum[0] == 0) return false;  // perhaps -0
      if (finish<F>(sums, this->length_of(0), 0)) return true;
      ExactBatchState state;
      if (!add_sums(state, sums)) return false;
      finish(state, 0);
      return true;
    });
  }
  void reduce_one() const {
    const auto spans_many_powers = [&] {
      const bool nearly = with_format(format(), []<class F>() { return suffice_nearly<T, F>; });
      return this->call.layout.stride == 1 && spans_many(this->first_of(0), this->length_of(0), nearly);
    };
    if (!as_state_ && (!is_plain_sum() || spans_many_powers()) && finish_one()) return;
    ExactBatchState total;
    std::mutex mutex;
    this->for_each_part_of_one([&](const T* x, const T* y, std::size_t n) {
      ExactBatchState state;
      is_plain_sum() ? add_terms(state, kind_, x, y, n) : add_part(state, x, y, n);
      const std::scoped_lock lock{mutex};
      total.merge(state);
    });
    if (as_state_)
      *static_cast<ExactDigits*>(this->call.out.data) = ExactDigits{total};
    else
      finish(total, 0);
  }

  const FormatInfo& format() const { return *this->call.method->format; }

  ExactKind kind_;
  bool as_state_;
  /// Whether sums that lack bits are tried: until they leave many results of a run unknown.
  mutable std::atomic<bool> tries_nearly_ = !is_product(kind_.term) && !kind_.moments;
};

}  // namespace

ExactSums sum_in_bounds(Values x, bool nearly, int threads) {
  const Call call{.method = nullptr,
                  .x = x,
                  .layout = Layout::vector(x.size),
                  .out = {x.format, nullptr, 0},
                  .options = {.threads = threads}};
  return with_format(*x.format, [&]<class T>() { return sums_of_one({}, OrderFreeBatch<T>{call}, nearly); });
}

std::optional<std::array<double, 3>> sum_in_words(Values x, Values y) {
  const ExactKind kind{y.is_given() ? Term::product : Term::element};
  ExactSums sums;
  with_format(*x.format, [&]<class T>() {
    sum_exactly(kind, true, static_cast<const T*>(x.data), static_cast<const T*>(y.data), 1, x.size, x.size,
                &sums);
  });
  if (!sums.is_exact()) return {};
  return std::to_array(sums.sum);
}

void multiply(Values x, Values y, double* high, double* low) {
  kernels(Formats::index_of<fp64>())
      .write_terms[x.format->index](Term::product, x.data, y.data, x.size, high, low);
}

void reduce_exactly(ExactKind kind, const HostRun& work) {
  with_format(*work.call.x.format, [&]<class T>() { ExactBatch<T>{kind, work}.run(); });
}

}  // namespace samesum::cpu
