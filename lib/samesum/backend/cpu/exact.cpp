#include "samesum/backend/cpu/exact.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "samesum/backend/cpu/schedule.hpp"

namespace samesum::cpu {
namespace {

/// Lanes of expansions hi + lo in fp64 in front of a superaccumulator (Collange et al. 2015). An addition
/// loses nothing where the second error is 0, and that is checked for each block.
template <class T> class ExactLanes {
  static constexpr int width = vector_bytes / 8;
  static constexpr std::size_t w = width, pairs = 4, step = w * pairs, block = 64 * step;
  using V = Pack<fp64, width>;
  struct Expansion {
    V hi = V::zero(), lo = V::zero();
  };

 public:
  explicit ExactLanes(Exact& sum) : sum_{sum} {}
  ~ExactLanes() { flush(); }
  ExactLanes(const ExactLanes&) = delete;

  /// Adds n elements; whether they were anything but -0 is not noted where they cancel.
  void add(const T* x, std::size_t n) {
    for (; n >= block; x += block, n -= block) {
      if (!add_block(x)) {
        flush();
        sum_.add(std::span{x, block});
      }
    }
    sum_.add(std::span{x, n});
  }

 private:
  /// All of the block or nothing: false where something would have been lost. Infinities and NaN count as
  /// lost.
  bool add_block(const T* x) {
    std::array<Expansion, pairs> e = expansion_;
    Register<std::int64_t, width> lost{};
    for (std::size_t i = 0; i < block; i += step) {
      for (std::size_t k = 0; k < pairs; ++k) {
        const auto [hi, error] = two_sum(e[k].hi, V::load(x + i + k * w));
        const auto [lo, rest] = two_sum(e[k].lo, error);
        e[k] = {hi, lo};
        lost |= same_bits<Register<std::int64_t, width>>(rest.v != V::zero().v);
      }
    }
    for (int l = 0; l < width; ++l)
      if (lost[l]) return false;
    expansion_ = e;
    return true;
  }

  void flush() {
    for (Expansion& e : expansion_) {
      for (const V& word : {e.hi, e.lo}) {
        const auto numbers = same_bits<std::array<double, w>>(word);
        for (const double number : numbers)
          if (number != 0) sum_.add(number);
      }
      e = Expansion{};
    }
  }

  Exact& sum_;
  std::array<Expansion, pairs> expansion_{};
};

template <class T> Exact sum_elements(const T* x, std::size_t n, int threads) {
  constexpr std::size_t chunk = std::size_t{1} << 16;
  Exact total;
  if (n == 0) return total;
  total.add(from_bits<T>(Format<T>::sign_bit));
  std::mutex total_mutex;
  const std::size_t chunks = (n - 1) / chunk + 1;
  std::atomic<std::size_t> next{0};
  on_threads(thread_count(threads, n, chunks), [&] {
    Exact sum;
    {
      ExactLanes<T> lanes{sum};
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < chunks;)
        lanes.add(x + k * chunk, std::min(n - k * chunk, chunk));
    }
    const std::scoped_lock lock{total_mutex};
    total.merge(sum);
  });
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
