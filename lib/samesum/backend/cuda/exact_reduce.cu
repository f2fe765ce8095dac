/// Exact reductions on a GPU: terms are added exactly, and what is made of their sums is rounded once.
#include <algorithm>

#include "samesum/backend/cuda/call.hpp"
#include "samesum/backend/cuda/exact_sum.cuh"

namespace samesum::gpu {
namespace {

// --- the end: one warp a result ----------------------------------------------------------------------

/// What is made of the sums, and where it goes.
struct Ending {
  ExactKind kind;
  std::size_t format;
  std::uint64_t ddof;
  void* out;
};

constexpr int digits_of_thread = 5, word_count = digits_of_thread * warp;

/// The digits as a magnitude in words of 32 bits, the lowest first. Returns the place of the first that is
/// not 0, or -1. By a whole warp, as all that follows.
__device__ __noinline__ int write_magnitude(const TermDigits* digits, std::uint32_t* words, bool* negative) {
  __syncwarp();  // the digits are complete, and nobody reads the words any more
  const MagnitudeOf<digits_of_thread> magnitude{*digits};
  *negative = magnitude.is_negative();
  return magnitude.write(words);
}

/// A step of a long division: rest·2^32 + digit over the divisor, which is more than the rest.
__device__ std::uint32_t divide(std::uint64_t& rest, std::uint32_t digit, std::uint64_t divisor) {
  if (divisor >> 32 == 0) {
    const std::uint64_t part = rest << 32 | digit;
    rest = part % divisor;
    return static_cast<std::uint32_t>(part / divisor);
  }
  std::uint32_t quotient = 0;
#pragma unroll 1
  for (int bit = 31; bit >= 0; --bit) {
    const bool carry = rest >> 63;
    rest = rest << 1 | (digit >> bit & 1);
    const bool fits = carry || rest >= divisor;
    if (fits) rest -= divisor;
    quotient = quotient << 1 | fits;
  }
  return quotient;
}

/// The bits in that format of a special value, or what else depends on the format alone.
template <class Of> __device__ std::uint64_t in_format(std::size_t format, Of of) {
  std::uint64_t bits = 0;
  std::size_t f = 0;
  Formats::for_each([&]<class F>() {
    if (f++ == format) bits = of.template operator()<F>();
  });
  return bits;
}

/// The number of that magnitude over a·b, rounded once to the format: of the eight leading words the quotient
/// has three at least, and of what is below them it matters only whether it is 0.
__device__ __noinline__ std::uint64_t rounded_quotient(const std::uint32_t* words, int top, bool negative,
                                                       std::uint64_t a, std::uint64_t b, std::size_t format) {
  constexpr int leading = 8;
  if (top < 0) return 0;
  std::uint32_t word[leading];
  for (int i = 0; i < leading; ++i) word[i] = i <= top ? words[top - i] : 0;
  bool below = false;
  for (int i = thread(); i <= top - leading; i += warp) below = below || words[i] != 0;
  bool more = __any_sync(whole_warp, below);
#pragma unroll 1
  for (const std::uint64_t divisor : {a, b}) {
    if (divisor == 1) continue;
    std::uint64_t rest = 0;
    for (std::uint32_t& digit : word) digit = divide(rest, digit, divisor);
    more = more || rest != 0;
  }
  for (int shift = 0; shift < leading / 2; ++shift) {  // at most four words are 0 now
    if (word[0] != 0) break;
    for (int i = 0; i + 1 < leading; ++i) word[i] = word[i + 1];
    word[leading - 1] = 0;
    --top;
  }
  for (int i = 3; i < leading; ++i) more = more || word[i] != 0;
  return in_format(format, [&]<class F>() -> std::uint64_t {
    return round_leading<F>(negative, word[0], word[1], word[2], more,
                            TermDigits::lowest_exponent + 32 * top);
  });
}

/// Turns the digits of Σx² into those of n·Σx² - (Σx)²: units of the first digit, and fewer than 2^40 in
/// each.
__device__ __noinline__ void subtract_square(TermDigits* squares, const std::uint32_t* sum, std::uint64_t n) {
  __shared__ std::uint32_t words[word_count];
  bool negative;
  write_magnitude(squares, words, &negative);
  const auto low = [](std::uint64_t x) { return x & 0xffffffff; };
  const std::uint64_t n_low = low(n), n_high = n >> 32;
  for (int i = thread(); i < TermDigits::count; i += warp) {
    const auto word = [&](int at) { return at < 0 ? std::uint64_t{0} : words[at]; };
    squares->digit[i] = static_cast<std::int64_t>(low(n_low * word(i)) + (n_low * word(i - 1) >> 32) +
                                                  low(n_high * word(i - 1)) + (n_high * word(i - 2) >> 32));
  }
  __syncwarp();  // everybody has read the words
  // The square of Σx as an integer has its digits where those of Σx² are, if Σx is in units of half the
  // exponent: 7 bits below those of an Exact.
  constexpr int shift = Exact::lowest_exponent - TermDigits::lowest_exponent / 2;
  constexpr int exact_at = (Exact::lowest_exponent - TermDigits::lowest_exponent) / 32;
  static_assert(shift == 7 && exact_at * 32 == Exact::lowest_exponent - TermDigits::lowest_exponent);
  int lowest = Exact::digit_count, highest = -1;
  for (int i = thread(); i < Exact::digit_count; i += warp) {
    words[i] = sum[exact_at + i] << shift | sum[exact_at + i - 1] >> (32 - shift);
    if (words[i] == 0) continue;
    lowest = min(lowest, i);
    highest = max(highest, i);
  }
  lowest = __reduce_min_sync(whole_warp, lowest);
  highest = __reduce_max_sync(whole_warp, highest);
  __syncwarp();  // the words are there
  for (int first = 2 * lowest; first <= 2 * highest; first += warp) {
    const int at = first + thread();
    std::uint64_t here = 0, above = 0;
    for (int i = max(lowest, at - highest); i <= min(highest, at - lowest); ++i) {
      const std::uint64_t product = std::uint64_t{words[i]} * words[at - i];
      here += low(product);
      above += product >> 32;
    }
    const bool any = at <= 2 * highest;
    if (any) squares->digit[at] -= static_cast<std::int64_t>(here);
    __syncwarp();  // a digit at a time
    if (any) squares->digit[at + 1] -= static_cast<std::int64_t>(above);
    __syncwarp();  // likewise
  }
}

/// By one warp: result `at`, of n elements with that sum, and for moments with that sum of squares after it.
__device__ __noinline__ void finish(Ending end, TermDigits* sums, unsigned flags, std::uint64_t n,
                                    std::size_t at) {
  __shared__ std::uint32_t words[word_count];
  const ExactKind kind = end.kind;
  const bool over_n = kind.mean || kind.moments;
  constexpr unsigned infinities = Exact::seen_plus_infinity | Exact::seen_minus_infinity;
  const bool special = flags & (Exact::seen_nan | infinities);
  const auto write = [&](std::size_t place, std::uint64_t bits) {
    if (thread() == 0)
      in_format(end.format, [&]<class F>() -> std::uint64_t {
        static_cast<BitsOf<F>*>(end.out)[place] = static_cast<BitsOf<F>>(bits);
        return 0;
      });
  };
  const auto nan = [&] {
    return in_format(end.format, [&]<class F>() -> std::uint64_t { return Format<F>::canonical_nan; });
  };
  const auto with_sign = [&](bool negative, bool infinite) {
    return in_format(end.format, [&]<class F>() -> std::uint64_t {
      return (negative ? Format<F>::sign_bit : 0u) | (infinite ? Format<F>::infinity : 0u);
    });
  };

  bool negative;
  int top = write_magnitude(&sums[0], words, &negative);
  std::uint64_t bits;
  if ((flags & Exact::seen_nan) || (flags & infinities) == infinities || (over_n && n == 0))
    bits = nan();
  else if (special || flags == Exact::seen_any)
    bits = with_sign(!(flags & Exact::seen_plus_infinity), special);
  else
    bits = rounded_quotient(words, top, negative, over_n ? n : 1, 1, end.format);
  write(kind.moments ? 2 * at : at, bits);
  if (!kind.moments) return;

  if (special || n <= end.ddof) {
    bits = nan();
  } else {
    subtract_square(&sums[1], words, n);
    top = write_magnitude(&sums[1], words, &negative);
    bits = rounded_quotient(words, top, negative, n, n - end.ddof, end.format);
  }
  write(2 * at + 1, bits);
}

// --- the sums ------------------------------------------------------------------------------------------

using TermMeeting = MeetingOf<TermDigits::count>;

/// Runs of each input that a thread has in flight.
template <class T> constexpr int in_flight = sizeof(T) == 8 ? 2 : 4;

template <class T> struct TermReader {
  const T *x, *y;
  Term term;

  __device__ bool is_aligned(std::size_t place) const {
    const auto is = [place](const T* p) {
      return reinterpret_cast<std::uintptr_t>(p + place) % alignof(Run<T>) == 0;
    };
    return is(x) && (term != Term::product || is(y));
  }
  __device__ static Run<T> load(const T* from, std::size_t stride) {
    Run<T> run;
    for (int i = 0; i < run_length; ++i) run.element[i] = from[i * stride];
    return run;
  }
};

/// The digits that terms of such elements may touch, and one for carries.
template <class T>
constexpr int first_digit = (2 * Format<T>::min_quantum - TermDigits::lowest_exponent) / 32;
template <class T>
constexpr int last_digit = (2 * Format<T>::max_exponent + 2 + 64 - TermDigits::lowest_exponent) / 32 + 2;
static_assert(last_digit<fp64> < TermDigits::count);

/// A batch: a block a result; or all blocks for the one that there is, which then meet.
template <class T, bool moments>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 2 : 3)
    reduce_terms(TermReader<T> reader, Layout l, Ending end, TermMeeting* meeting) {
  constexpr int sums_of_result = moments ? 2 : 1, ahead = in_flight<T>;
  __shared__ TermDigits digits[sums_of_result];
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  TermSums<T, moments> sums{digits, reader.term};
  const bool together = l.results() == 1;
  for (std::size_t at = together ? 0 : blockIdx.x; at < l.results(); at += gridDim.x) {
    const std::size_t n = l.length(at / l.inner), place = l.first(at / l.inner) + at % l.inner;
    const std::size_t stride = l.stride, runs = n / run_length;
    const bool aligned = stride == 1 && reader.is_aligned(place);
    const bool two = !moments && reader.term == Term::product;
    const T *x = reader.x + place, *y = two ? reader.y + place : x;
    // A block reads tiles of neighbouring runs, each thread some runs of a tile.
    constexpr std::size_t of_tile = std::size_t{exact_threads} * ahead;
    const std::size_t tiles = (runs + of_tile - 1) / of_tile, blocks = together ? gridDim.x : 1;
    const auto load = [&](const T* from) {
      return aligned ? *reinterpret_cast<const Run<T>*>(from) : reader.load(from, stride);
    };
    const auto load_all = [&](const T* from, Run<T>(&of)[ahead]) {
      if (aligned)
        for (int k = 0; k < ahead; ++k) of[k] = reinterpret_cast<const Run<T>*>(from)[k * exact_threads];
      else
        for (int k = 0; k < ahead; ++k)
          of[k] = reader.load(from + k * exact_threads * run_length * stride, stride);
    };
    for (TermDigits& d : digits) d.clear();
    __syncthreads();  // anybody may add to them

    sums.start();
    std::size_t tile = together ? blockIdx.x : 0;
    if (const std::size_t i = runs * run_length + threadIdx.x; tile == 0 && i < n)
      sums.add(x[i * stride], y[i * stride]);
    for (;;) {
#pragma unroll 1
      for (int b = 0; b < sums.most / (ahead * run_length) && tile < tiles; ++b, tile += blocks) {
        const std::size_t first = tile * of_tile + threadIdx.x;
        if ((tile + 1) * of_tile <= runs) {
          Run<T> of_x[ahead], of_y[ahead];
          load_all(x + first * run_length * stride, of_x);
          if (two)
            load_all(y + first * run_length * stride, of_y);
          else
            for (int k = 0; k < ahead; ++k) of_y[k] = of_x[k];
          if (sums.add(of_x, of_y)) continue;
        }
#pragma unroll 1
        for (std::size_t run = first; run < runs && run < first + of_tile; run += exact_threads) {
          const T *from_x = x + run * run_length * stride, *from_y = y + run * run_length * stride;
          const Run<T> a[] = {load(from_x)}, c[] = {two ? load(from_y) : a[0]};
          if (sums.add(a, c)) continue;
#pragma unroll 1
          for (int i = 0; i < run_length; ++i) sums.add(from_x[i * stride], from_y[i * stride]);
        }
      }
      sums.empty();
      __syncthreads();  // the digits are complete
      if (tile >= tiles) break;
      for (TermDigits& d : digits) {
        const int i = static_cast<int>(threadIdx.x), last = last_digit<T>;
        const std::int64_t carried = i <= last ? d.carried(i, last) : 0;
        __syncthreads();  // everybody has read them
        if (i <= last) d.digit[i] = carried;
      }
      __syncthreads();  // anybody may add to them again
    }

    unsigned flags = __reduce_or_sync(whole_warp, sums.flags() | (n > 0 ? Exact::seen_any : 0));
    if (thread() == 0) flags_of_warp[warp_index()] = flags;
    __syncthreads();  // the flags of all warps
    if (warp_index() == 0) {
      flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
      bool last = true;
      for (int s = 0; s < sums_of_result && together && gridDim.x > 1; ++s)
        last = meet(digits[s], first_digit<T>, last_digit<T>, flags, meeting[s]);
      if (last) finish(end, digits, flags, n, at);
    }
    __syncthreads();  // what is shared may change
  }
}

template <class T, bool moments> cudaError_t launch_exactly(Ending end, Launch& call) {
  const Layout& l = call.layout;
  int processors = 0, of_each = 0;
  cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, processors);
  if (error == cudaSuccess)
    error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, reduce_terms<T, moments>, exact_threads, 0);
  constexpr std::size_t meetings = (moments ? 2 : 1) * sizeof(TermMeeting);
  if (error != cudaSuccess || !has_workspace(call, header_bytes + meetings, error) || l.results() == 0)
    return error;
  const std::size_t at_once = static_cast<std::size_t>(processors * of_each);
  const std::size_t n = l.offsets ? call.size : l.n,
                    of_block = std::size_t{exact_threads} * in_flight<T> * run_length;
  const std::size_t wanted = l.results() == 1 ? std::max<std::size_t>(n, 1) / of_block + 1 : l.results();
  const std::size_t blocks = std::min({wanted, at_once, std::size_t{TermMeeting::most_blocks}});
  auto* meeting = static_cast<TermMeeting*>(states(call.workspace));
  error = cudaMemsetAsync(meeting, 0, meetings, call.stream);
  if (error != cudaSuccess) return error;
  const TermReader<T> reader{static_cast<const T*>(call.x), static_cast<const T*>(call.y), end.kind.term};
  return launch(reduce_terms<T, moments>, blocks, exact_threads, call.stream, reader, l, end, meeting);
}

// --- sums of elements, by the kernel of exact sums ---------------------------------------------------------

/// Turns a state of elements into result `at`. Runs on one warp.
__global__ void finish_state(Ending end, const ExactState* state, std::uint64_t n, std::size_t at) {
  __shared__ TermDigits digits;
  constexpr int first = (Exact::lowest_exponent - TermDigits::lowest_exponent) / 32;
  for (int i = thread(); i < TermDigits::count; i += warp) {
    const int of_state = i - first;
    digits.digit[i] = of_state >= 0 && of_state < Exact::digit_count ? state->digits[of_state] : 0;
  }
  finish(end, &digits, state->flags, n, at);
}

/// Whether sum_each is faster than reduce_terms: for few long vectors, each of which occupies the GPU alone.
bool is_for_sums(ExactKind kind, const Layout& l) {
  return kind.term == Term::element && !kind.moments && !l.offsets && l.stride == 1 &&
         l.n >= std::size_t{1} << 22 && l.results() <= 32;
}

/// Sums vector after vector with the kernel of exact sums.
cudaError_t sum_each(Ending end, Launch& call) {
  const Layout& l = call.layout;
  Launch one = call;
  one.layout = Layout::vector(l.n);
  cudaError_t error;
  call.uses_header = true;
  static_assert(sizeof(ExactState) <= sizeof(TermMeeting));
  if (!has_workspace(call, header_bytes + sizeof(TermMeeting), error)) return error;  // as short ones
  one.bytes = call.bytes;
  auto* state = static_cast<ExactState*>(states(call.workspace));
  for (std::size_t at = 0; at < l.results() && error == cudaSuccess; ++at) {
    one.x =
        static_cast<const std::byte*>(call.x) + (l.first(at / l.inner) + at % l.inner) * call.input->bytes;
    error = cudaMemsetAsync(state, 0, sizeof *state, call.stream);
    if (error == cudaSuccess) error = sum_exact(one, {nullptr, 0, state});
    if (error == cudaSuccess) error = launch(finish_state, 1, warp, call.stream, end, state, l.n, at);
  }
  return error;
}

}  // namespace

cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& format, Launch& call) {
  const Ending end{kind, format.index, whole(call.options.ddof), call.out};
  if (is_for_sums(kind, call.layout)) return sum_each(end, call);
  return with_format(*call.input, [&]<class T>() {
    return kind.moments ? launch_exactly<T, true>(end, call) : launch_exactly<T, false>(end, call);
  });
}

}  // namespace samesum::gpu
