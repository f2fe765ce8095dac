/// Exact sums on a CPU: fp64 words and bins in front of a superaccumulator, on several threads.
#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "samesum/backend/cpu/exact/exponent_bins.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/schedule.hpp"

namespace samesum::cpu {
namespace {

/// A sum in fp64 words, which spill into a superaccumulator when they cannot hold it (Collange et al. 2015).
template <class T> class ExactSum {
 public:
  explicit ExactSum(Exact& sum) : sum_{sum} {}

  /// Number of elements before the next cache line. A vector of 64 bytes that crosses a line is read at two
  /// thirds of the speed.
  static std::size_t before_line(const T* x) {
    constexpr std::size_t line = 64 / sizeof(T);
    return (line - reinterpret_cast<std::uintptr_t>(x) / sizeof(T) % line) % line;
  }

  void add(const T* x, std::size_t n) {
    if (n >= many) {
      const std::size_t before = before_line(x);
      add_rest(x, before);
      x += before;
      n -= before;
    }
    const std::size_t whole = n / exact_step * exact_step;
    add_whole(x, whole);
    add_rest(x + whole, n - whole);
  }

  /// Adds those of at most one block that take part, and returns how many. Without `where`, all but NaN do.
  std::size_t add_selected(const T* x, const std::uint8_t* where, bool skip_nan, std::size_t n) {
    const Kernels& loops = kernels(Formats::index_of<T>());
    std::size_t count = 0;
    if (n % exact_step == 0 && loops.add_selected(words_, x, where, skip_nan, n, count) == n) {
      empty_ = false;
      return count;
    }
    T kept[exact_block];
    count = loops.keep_selected({x, where, n, 1, n, skip_nan, Format<T>::sign_bit}, kept, nullptr);
    add(kept, n);
    return count;
  }

  /// Adds whole steps of at most one block, and increases `count` by the number of elements that are not -0.
  /// Returns false, and does nothing, if the words cannot hold them.
  bool add_counting(const T* x, std::size_t n, std::size_t& count) {
    if (kernels(Formats::index_of<T>()).add_selected(words_, x, nullptr, false, n, count) == 0) return false;
    empty_ = false;
    return true;
  }

  /// Moves everything into the superaccumulator.
  void flush() {
    for (const auto& word : words_.word)
      for (const double number : word)
        if (number != 0) sum_.add(number);
    const Expansions::Expected expected = words_.expected;
    words_ = {};
    words_.expected = expected;
    empty_ = true;
    if (in_bins_ > 0) bins().move_to(sum_);
    in_bins_ = 0;
  }

 private:
  /// Remainders of up to this length are added one by one, not as a padded step.
  static constexpr std::size_t few = 8;
  /// The fewest elements for which it pays to empty the bins: of narrow data, and of all.
  static constexpr std::size_t some = 512, many = 16 * 1024;

  /// Adds less than a step of elements.
  void add_rest(const T* x, std::size_t n) {
    if (n <= few) return sum_.add(std::span{x, n});
    T padded[exact_step] = {};
    std::copy(x, x + n, padded);
    add_whole(padded, exact_step);
  }
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

  AddExactly add_ = kernels(Formats::index_of<T>()).add_exactly;
  Exact& sum_;
  Expansions words_;
  bool empty_ = true;
  std::size_t in_bins_ = 0;  ///< elements; no other sum of this thread uses the bins meanwhile
};

/// Adds n elements from number `first` on by add(sum, first, n), which returns how many take part.
template <class T, class Add> SelectedSum sum_chunks(std::size_t n, int threads, Add add) {
  constexpr std::size_t chunk = std::size_t{1} << 16;
  SelectedSum total;
  const std::size_t chunks = n / chunk + (n % chunk != 0);
  if (const int count = thread_count(threads, n, chunks); count == 1) {
    ExactSum<T> sum{total.sum};
    total.count = add(sum, 0, n);
    sum.flush();
  } else {
    std::mutex total_mutex;
    std::atomic<std::size_t> next{0};
    on_threads(count, [&] {
      SelectedSum part;
      ExactSum<T> sum{part.sum};
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < chunks;)
        part.count += add(sum, k * chunk, std::min(n - k * chunk, chunk));
      sum.flush();
      const std::scoped_lock lock{total_mutex};
      total.sum.merge(part.sum);
      total.count += part.count;
    });
  }
  // The fp64 words do not record elements that are -0.
  if (total.count > 0) total.sum.add(from_bits<T>(Format<T>::sign_bit));
  return total;
}

template <class T> constexpr bool is_not_minus_zero(T element) {
  return to_bits(element) != Format<T>::sign_bit;
}

template <class T> Exact sum_elements(const T* x, std::size_t n, int threads) {
  Exact total = sum_chunks<T>(n, threads, [x](ExactSum<T>& sum, std::size_t first, std::size_t count) {
                  sum.add(x + first, count);
                  return count;
                }).sum;
  // Nor whether there were others.
  if (total.only_minus_zero() && std::any_of(x, x + n, is_not_minus_zero<T>)) total.add(T{});
  return total;
}

/// Whether any of n elements takes part and is not -0.
template <class T> bool has_others(const T* x, const std::uint8_t* where, bool skip_nan, std::size_t n) {
  const auto is_other = [=](std::size_t i) {
    return is_not_minus_zero(x[i]) && (!where || where[i]) && !(skip_nan && is_nan_bits<T>(to_bits(x[i])));
  };
  std::size_t i = 0;
  while (i < n && !is_other(i)) ++i;
  return i < n;
}

template <class T>
SelectedSum sum_selected(const T* x, const std::uint8_t* where, bool skip_nan, std::size_t n, int threads) {
  SelectedSum total = sum_chunks<T>(n, threads, [=](ExactSum<T>& sum, std::size_t first, std::size_t size) {
    std::size_t count = 0;
    for (std::size_t i = first; i < first + size; i += exact_block)
      count += sum.add_selected(x + i, where ? where + i : nullptr, skip_nan,
                                std::min(first + size - i, exact_block));
    return count;
  });
  if (total.count == 0) total.sum = {};  // without those that stand in for others
  if (total.sum.only_minus_zero() && has_others(x, where, skip_nan, n)) total.sum.add(T{});
  return total;
}

}  // namespace

SelectedSum sum_counting(Values x) {
  constexpr std::size_t wide = 32 * 1024;  // elements that are added otherwise, once a block does not fit
  return with_format(*x.format, [&]<class T>() {
    const T* const all = static_cast<const T*>(x.data);
    SelectedSum total;
    ExactSum<T> sum{total.sum};
    const auto add = [&](std::size_t first, std::size_t n) {
      const Values part{format_info<T>(), all + first, n};
      total.count += n - count_minus_zeros(part);  // first: then the sum finds the elements in the cache
      sum.add(all + first, n);
      return n;
    };
    std::size_t i = add(0, std::min(x.size, ExactSum<T>::before_line(all)));
    while (i < x.size) {
      const std::size_t left = x.size - i, whole = std::min(left, exact_block) / exact_step * exact_step;
      const bool fits = whole > 0 && sum.add_counting(all + i, whole, total.count);
      i += fits ? whole : add(i, std::min(left, wide));
    }
    sum.flush();
    return total;
  });
}

Exact sum_exact(Values x, int threads) {
  return with_format(*x.format,
                     [&]<class T>() { return sum_elements(static_cast<const T*>(x.data), x.size, threads); });
}

SelectedSum sum_selected(Values x, const std::uint8_t* where, bool skip_nan, int threads) {
  return with_format(*x.format, [&]<class T>() {
    return sum_selected(static_cast<const T*>(x.data), where, skip_nan, x.size, threads);
  });
}

std::size_t count_minus_zeros(Values x) {
  return with_format(*x.format, [&]<class T>() -> std::size_t {
    // As an integer with a sign, -0 is the smallest one.
    using Integer = std::make_signed_t<BitsOf<T>>;
    constexpr bool smallest = true;
    Integer least = 0;
    kernels(Formats::index_of<fp64>())
        .integers[IntegerTypes::index_of<Integer>()]
        .extremum[smallest](x.data, x.size, &least);
    if (least != std::numeric_limits<Integer>::min()) return 0;
    return static_cast<std::size_t>(
        std::ranges::count_if(x.as<T>(), [](T element) { return !is_not_minus_zero(element); }));
  });
}

}  // namespace samesum::cpu
