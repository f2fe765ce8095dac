/// Exact sums on a CPU: fp64 words and bins in front of a superaccumulator, on several threads.
#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "samesum/backend/cpu/exponent_bins.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/schedule.hpp"

namespace samesum::cpu {
namespace {

/// A sum in fp64 words, which spill into a superaccumulator when they cannot hold it (Collange et al. 2015).
template <class T> class ExactSum {
 public:
  explicit ExactSum(Exact& sum) : sum_{sum} {}

  void add(const T* x, std::size_t n) {
    const std::size_t whole = n / exact_step * exact_step;
    add_whole(x, whole);
    if (n - whole <= few) return sum_.add(std::span{x + whole, n - whole});
    T padded[exact_step] = {};
    std::copy(x + whole, x + n, padded);
    add_whole(padded, exact_step);
  }

  /// Moves everything into the superaccumulator.
  void flush() {
    for (const auto& word : words_.word)
      for (const double number : word)
        if (number != 0) sum_.add(number);
    words_ = {};
    empty_ = true;
    if (in_bins_ > 0) bins().move_to(sum_);
    in_bins_ = 0;
  }

 private:
  /// Remainders of up to this length are added one by one, not as a padded step.
  static constexpr std::size_t few = 8;
  /// The fewest elements for which it pays to empty the bins: of narrow data, and of all.
  static constexpr std::size_t some = 512, many = 16 * 1024;

  void add_whole(const T* x, std::size_t n) {
    while (n > 0) {
      std::size_t taken = add_(words_, x, n);
      if (taken > 0) {
        empty_ = false;
      } else if (!empty_) {
        flush();
      } else {  // empty words cannot hold the block either
        taken = std::min(n, exact_block);
        if (in_bins_ > 0 || n >= many || (n >= some && is_narrow(x, taken, n / 8)))
          add_to_bins(x, taken);
        else
          sum_.add(std::span{x, taken});
      }
      x += taken;
      n -= taken;
    }
  }

  /// Whether the elements that are not 0 span at most so many powers of two, each of which uses two bins.
  static bool is_narrow(const T* x, std::size_t n, std::size_t most_powers) {
    using Signed = std::make_signed_t<BitsOf<T>>;
    constexpr Signed most = std::numeric_limits<Signed>::max();
    Signed largest = 0, smallest = most;
    for (std::size_t i = 0; i < n; ++i) {
      const auto magnitude = static_cast<Signed>(to_bits(x[i]) & most),
                 less = static_cast<Signed>((magnitude - 1) & most);  // of a zero, the largest
      largest = std::max(largest, magnitude);
      smallest = std::min(smallest, less);
    }
    constexpr int fraction_bits = Format<T>::precision - 1;
    return static_cast<std::size_t>((largest >> fraction_bits) - (smallest >> fraction_bits)) <= most_powers;
  }
  static ExponentBins& bins() { return ExponentBins::of_this_thread(); }
  void add_to_bins(const T* x, std::size_t n) {
    if (in_bins_ + n > ExponentBins::capacity) flush();
    bins().add(x, n);
    in_bins_ += n;
  }

  AddExactly add_ = kernels<Formats::index_of<T>()>().add_exactly;
  Exact& sum_;
  Expansions words_;
  bool empty_ = true;
  std::size_t in_bins_ = 0;  ///< elements; no other sum of this thread uses the bins meanwhile
};

template <class T> Exact sum_elements(const T* x, std::size_t n, int threads) {
  constexpr std::size_t chunk = std::size_t{1} << 16;
  Exact total;
  if (n == 0) return total;
  total.add(from_bits<T>(Format<T>::sign_bit));
  const std::size_t chunks = (n - 1) / chunk + 1;
  if (const int count = thread_count(threads, n, chunks); count == 1) {
    ExactSum<T> sum{total};
    sum.add(x, n);
    sum.flush();
  } else {
    std::mutex total_mutex;
    std::atomic<std::size_t> next{0};
    on_threads(count, [&] {
      Exact part;
      ExactSum<T> sum{part};
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < chunks;)
        sum.add(x + k * chunk, std::min(n - k * chunk, chunk));
      sum.flush();
      const std::scoped_lock lock{total_mutex};
      total.merge(part);
    });
  }
  // The fp64 words do not record whether all elements were -0.
  const auto is_not_minus_zero = [](T element) { return to_bits(element) != Format<T>::sign_bit; };
  if (total.only_minus_zero() && std::any_of(x, x + n, is_not_minus_zero)) total.add(T{});
  return total;
}

}  // namespace

Exact sum_exact(Values x, int threads) {
  return with_format(*x.format,
                     [&]<class T>() { return sum_elements(static_cast<const T*>(x.data), x.size, threads); });
}

}  // namespace samesum::cpu
