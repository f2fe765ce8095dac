/// Exact reductions on a CPU: nearly all terms are exact in one or two doubles, which are then summed
/// exactly.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "samesum/backend/cpu/exact_window.hpp"
#include "samesum/backend/cpu/kernels.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/order_free.hpp"
#include "samesum/bound/height.hpp"

namespace samesum::cpu {
namespace {

constexpr std::size_t block = 4096;

/// Adds n contiguous products. Products of doubles become two words, or integers if the words would lose
/// bits.
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

template <class T> class ExactBatch : OrderFreeBatch<T> {
 public:
  ExactBatch(ExactKind kind, const HostRun& work)
      : OrderFreeBatch<T>{work.call}, kind_{kind}, as_state_{work.as_state} {}

  void run() const {
    if (this->is_one()) return reduce_one();
    const bool has_window = kind_.term == Term::element && !kind_.moments;
    with_format(format(), [&]<class F>() {
      this->for_each_result([&](std::size_t at) {
        if (!has_window || !sum_in_window<F>(at)) reduce(at);
      });
    });
  }

 private:
  static constexpr std::size_t most_in_window = 64;  ///< elements; longer sums are faster in fp64 words

  /// Sums a short vector in an integer. Returns false, with nothing written, if it is too long or an element
  /// does not fit.
  template <class F> bool sum_in_window(std::size_t at) const {
    const std::size_t n = this->length_of(at), stride = this->call.layout.stride;
    if (n == 0 || n > most_in_window) return false;
    const T* const x = this->first_of(at);
    BitsOf<T> largest = 0;
    for (std::size_t i = 0; i < n; ++i)
      largest = std::max(largest, BitsOf<T>(to_bits(x[i * stride]) & ~Format<T>::sign_bit));
    if (largest == 0 || largest >= Format<T>::infinity) return false;
    constexpr int most_bits = 126;  // |sum| is at most 2^(grid + most_bits)
    const int end = exponent_of(from_bits<T>(largest)) + 1,
              grid = std::max(end + static_cast<int>(ceil_log2(n)) - most_bits, Format<T>::min_quantum);
    const ExactWindow<T> window{grid, end - grid};
    Wide sum = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (!window.add(sum, x[i * stride])) return false;
    static_cast<F*>(this->call.out.data)[at] = rounded_sum<F>(sum, grid, kind_.mean ? n : 1);
    return true;
  }
  void reduce(std::size_t at) const {
    ExactBatchState state;
    this->for_each_part(at, [&](const T* x, const T* y, std::size_t n) { add_terms(state, kind_, x, y, n); });
    finish(state, at);
  }
  void finish(ExactBatchState& state, std::size_t at) const {
    state.finish(kind_, format(), this->length_of(at), this->call.options.ddof, at, this->call.out.data);
  }

  void reduce_one() const {
    ExactBatchState total;
    std::mutex mutex;
    this->for_each_part_of_one([&](const T* x, const T* y, std::size_t n) {
      ExactBatchState state;
      add_terms(state, kind_, x, y, n);
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
};

}  // namespace

void reduce_exactly(ExactKind kind, const HostRun& work) {
  with_format(*work.call.x.format, [&]<class T>() { ExactBatch<T>{kind, work}.run(); });
}

}  // namespace samesum::cpu
