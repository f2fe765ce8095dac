/// Exact sums of elements in fp64 arithmetic: if the elements of a block span few enough bits, one, two or
/// three words add them without rounding. Each instruction set compiles its own copy.
#pragma once

#include <bit>

#include "samesum/backend/cpu/exact/extremes.hpp"
#include "samesum/backend/cpu/exact/three_words.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/loops/selection_loops.hpp"
#include "samesum/window/anchor.hpp"

namespace samesum::cpu {
namespace {

/// A source of elements all of which take part.
template <class T> struct AllElements { const T* x; };

/// A source of all elements that counts those other than -0.
template <class T> struct CountedElements {
  using Signed = std::make_signed_t<BitsOf<T>>;
  const T* x;

  /// The bit patterns of W elements. Adds 1 to the counts of the lanes of those other than -0.
  template <int W>
  [[gnu::always_inline]] Register<Signed, W> bits(std::size_t i, Register<Signed, W>& counts) const {
    Register<Signed, W> bits;
    std::memcpy(&bits, x + i, sizeof bits);
    counts -= bits != std::numeric_limits<Signed>::min();
    return bits;
  }
};

template <class T, class Elements> class ExactBlocks {
  static constexpr int width = vector_bytes / 8, narrow = vector_bytes / int{sizeof(T)};
  static constexpr std::size_t w = width, chains = 4, step = w * chains;
  static constexpr std::size_t far = 4096;  ///< prefetch distance in bytes
  using V = Pack<fp64, width>;
  using Bits = BitsOf<T>;
  using Words = Register<Bits, narrow>;
  static constexpr bool selects = !std::is_same_v<Elements, AllElements<T>>,
                        counts_flags = std::is_same_v<Elements, SelectedElements<T, true, false>>;
  template <int W> using Lanes = Register<std::make_signed_t<Bits>, W>;
  static_assert(exact_step % step == 0 && exact_step % narrow == 0);

 public:
  /// See AddExactly.
  static std::size_t add(Expansions& sum, const void* data, std::size_t n) {
    const T* x = static_cast<const T*>(data);
    ExactBlocks blocks{sum};
    std::size_t done = 0;
    while (done < n) {
      const std::size_t size = n - done < exact_block ? n - done : exact_block;
      if (!blocks.add_block({x + done}, size)) break;
      done += size;
    }
    blocks.save(sum);
    return done;
  }
  /// Adds the elements of a block that take part: see AddSelected.
  static std::size_t add_selected(Expansions& sum, Elements x, std::size_t n, std::size_t& count) {
    // Counted first: then the loop over the elements finds the flags in the first-level cache.
    std::size_t flags = 0;
    if constexpr (counts_flags) flags = count_flags(x.where, n);
    ExactBlocks blocks{sum};
    if (!blocks.add_block(x, n)) return 0;
    blocks.save(sum);
    count += counts_flags ? flags : blocks.count_;
    return n;
  }

 private:
  explicit ExactBlocks(const Expansions& sum) {
    for (std::size_t i = 0; i < Expansions::words; ++i) std::memcpy(&sum_.word[i], sum.word[i], sizeof(V));
    expected_ = sum.expected;
  }
  void save(Expansions& sum) const {
    for (std::size_t i = 0; i < Expansions::words; ++i) std::memcpy(sum.word[i], &sum_.word[i], sizeof(V));
    sum.expected = expected_;
  }

  /// Adds the whole block and returns true, or returns false and adds nothing.
  bool add_block(Elements x, std::size_t n) {
    if (add_as_expected(x, n)) return true;
    int log2_adds = 0;  // log2 of the additions per column, rounded up
    while ((w << log2_adds) < n) ++log2_adds;
    // Most blocks resemble the previous one: if that fitted into one word, the pass that finds the range also
    // adds this block.
    V plain = V::zero();
    const ExponentRange range = expected_.one_word ? look<true>(x, n, plain) : look<false>(x, n, plain);
    if (!range.is_bounded()) return false;
    if (range.is_empty()) return true;
    ThreeWords<width> sum = sum_;
    const int least = std::max(log2_adds - 3, 2);  // a step is four additions; for the 3 see add_in_windows
    const bool fits = log2_for<1>(range.bits(), log2_adds) == log2_adds;
    if (fits) {
      if (!expected_.one_word) look<true>(x, n, plain);
      sum.add(plain);
    } else if (!BlockAnchors<2>{range.top(), log2_adds}.are_numbers()) {
      return false;
    } else if (const int adds = log2_for<2>(range.bits(), log2_adds); adds >= least) {
      add_in_windows<2, false>(sum, x, n, range.top(), adds);
      expect_two_windows(range);
    } else if (const int fewer = log2_for<3>(range.bits(), log2_adds); fewer >= least) {
      add_in_windows<3, false>(sum, x, n, range.top(), fewer);
    } else {
      return false;
    }
    expected_.one_word = fits;
    if (!sum.is_exact()) return false;
    sum_ = sum;
    return true;
  }

  /// Whether two windows for elements below 2^expected_.top add a block of this range exactly.
  bool is_expected(const ExponentRange& range) const {
    return range.is_bounded() && range.top() <= expected_.top &&
           log2_for<2>(expected_.top - range.lowest(), log2_block) == log2_block;
  }
  /// Adds the block in the windows of the previous one, in the pass that finds its range. Returns false and
  /// adds nothing if that is not exact.
  bool add_as_expected(Elements x, std::size_t n) {
    if (expected_.blocks_to_wait > 0) --expected_.blocks_to_wait;
    if (!expected_.two_windows || expected_.blocks_to_wait > 0) return false;
    ThreeWords<width> sum = sum_;
    const ExponentRange range = add_in_windows<2, true>(sum, x, n, expected_.top, log2_block);
    if (range.is_empty()) return true;
    if (!is_expected(range) || !sum.is_exact()) {
      expected_.blocks_to_wait = after_failure;
      return false;
    }
    sum_ = sum;
    expected_.one_word = log2_for<1>(range.bits(), log2_block) == log2_block;
    expected_.two_windows = !expected_.one_word;
    return true;
  }
  /// Lets the next block use the windows of a block of this range, with a power of two to spare.
  void expect_two_windows(const ExponentRange& range) {
    expected_.top = range.top() + 1;
    expected_.two_windows = is_expected(range) && BlockAnchors<2>{expected_.top, log2_block}.are_numbers();
  }

  /// Loads the pack from element i on, which is at place `at` of a vector of T. At the beginning of a vector,
  /// stores the elements that take part in `last` and, if `looks`, looks at them.
  template <bool looks>
  [[gnu::always_inline]] static V load(Elements x, std::size_t i, std::size_t at, Extremes<T>& extremes,
                                       T (&last)[narrow], Lanes<narrow>& counts) {
    if constexpr (selects) {
      if (at == 0) {
        const auto bits = x.template bits<narrow>(i, counts);
        if (looks) extremes.see(bits);
        std::memcpy(static_cast<void*>(last), &bits, sizeof bits);
      }
      return V::load(last + at);
    } else {
      if (looks && at == 0) extremes.see(x.x + i);
      return V::load(x.x + i);
    }
  }
  /// Looks at one vector.
  [[gnu::always_inline]] static void see(Extremes<T>& extremes, Elements x, std::size_t i,
                                         Lanes<narrow>& counts) {
    if constexpr (selects)
      extremes.see(x.template bits<narrow>(i, counts));
    else
      extremes.see(x.x + i);
  }
  /// Keeps the number of elements of the last block that take part.
  void keep_count(const Lanes<narrow>& counts) {
    if constexpr (selects && !counts_flags) count_ = static_cast<std::size_t>(sum_of<narrow>(counts));
  }

  /// Returns the range of the elements; if `add`, also adds them plainly.
  template <bool add> ExponentRange look(Elements x, std::size_t n, V& sum) {
    Extremes<T> extremes;
    T last[narrow];
    Lanes<narrow> counts{};
    const bool ahead = wants_prefetch();
    V chain[chains];
    for (V& c : chain) c = V::zero();
#pragma GCC unroll 1
    for (std::size_t i = 0; i < n; i += exact_step)
      for (std::size_t k = 0; k < exact_step; k += narrow) {
        if (ahead) prefetch_bytes(x.x + i + k, vector_bytes, far);
        if constexpr (add)
          for (std::size_t j = k; j < k + narrow; j += w)
            chain[j / w % chains] =
                chain[j / w % chains] + load<true>(x, i + j, j - k, extremes, last, counts);
        else
          see(extremes, x, i + k, counts);
      }
    keep_count(counts);
    for (std::size_t c = 1; c < chains; ++c) chain[0] = chain[0] + chain[c];
    if (add) sum = chain[0];
    return extremes.range();
  }

  /// The anchors of windows that restart after 2^k additions, distributed over the chains, up to eight times.
  template <int windows> using BlockAnchors = Anchors<windows, 2>;
  /// The largest k up to log2_adds such that `windows` windows add 2^k elements of a range of so many bits
  /// exactly.
  template <int windows> static int log2_for(int bits, int log2_adds) {
    const int most = BlockAnchors<windows>::most_log2_terms(bits);
    return most < log2_adds ? most : log2_adds;
  }
  /// Adds n elements in windows, which restart every 2^k additions of at most 2^(k+3). If `looks`, also
  /// returns the range of the elements.
  template <int windows, bool looks>
  ExponentRange add_in_windows(ThreeWords<width>& sum, Elements x, std::size_t n, int top, int k) {
    Extremes<T> extremes;
    T last[narrow];
    Lanes<narrow> counts{};
    const bool ahead = looks && wants_prefetch();
    const BlockAnchors<windows> anchors{top, k};
    V start[windows], total[windows];
    for (int i = 0; i < windows; ++i) {
      start[i] = i + 1 < windows ? V::broadcast(anchor_at(anchors.exponent(i))) : V::zero();
      total[i] = V::zero();
    }
    for (std::size_t done = 0, most = w << k; done < n; done += most) {
      V chain[windows][chains];
      for (int i = 0; i < windows; ++i)
        for (V& c : chain[i]) c = start[i];
      const std::size_t end = std::min(n, done + most);
#pragma GCC unroll 1
      for (std::size_t at = done; at < end; at += step)
        for (std::size_t c = 0; c < chains; ++c) {
          if (ahead && c * w % narrow == 0) prefetch_bytes(x.x + at + c * w, vector_bytes, far);
          V rest = load<looks>(x, at + c * w, c * w % narrow, extremes, last, counts);
          for (int i = 0; i + 1 < windows; ++i) {
            const V t = chain[i][c] + rest;
            rest = rest - (t - chain[i][c]);
            chain[i][c] = t;
          }
          chain[windows - 1][c] = chain[windows - 1][c] + rest;
        }
      for (int i = 0; i < windows; ++i) {
        V part = chain[i][0] - start[i];
        for (std::size_t c = 1; c < chains; ++c) part = part + (chain[i][c] - start[i]);
        // A double holds the parts of all restarts. The last window is full.
        if (i + 1 < windows)
          total[i] = total[i] + part;
        else
          sum.add(part);
      }
    }
    for (int i = 0; i + 1 < windows; ++i) sum.add(total[i]);
    if (looks) keep_count(counts);
    return extremes.range();
  }

  /// log2 of the additions per column of a block.
  static constexpr int log2_block = std::countr_zero(exact_block / w);
  /// Number of blocks without an expectation after one that failed, so that erratic data cost little more.
  static constexpr int after_failure = 16;

  ThreeWords<width> sum_;
  Expansions::Expected expected_;
  std::size_t count_ = 0;
};

/// See AddSelected.
template <class T>
std::size_t add_selected(Expansions& sum, const void* x, const std::uint8_t* where, bool skip_nan,
                         std::size_t n, std::size_t& count) {
  const T* const elements = static_cast<const T*>(x);
  const auto add = [&]<bool flagged, bool skips_nan>() {
    using Elements = SelectedElements<T, flagged, skips_nan>;
    return ExactBlocks<T, Elements>::add_selected(sum, Elements{elements, where}, n, count);
  };
  if (!where && !skip_nan) return ExactBlocks<T, CountedElements<T>>::add_selected(sum, {elements}, n, count);
  if (!skip_nan) return add.template operator()<true, false>();
  return where ? add.template operator()<true, true>() : add.template operator()<false, true>();
}

}  // namespace
}  // namespace samesum::cpu
