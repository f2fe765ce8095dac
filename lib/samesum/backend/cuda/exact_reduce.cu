/// Exact reductions on a GPU: terms in double, which hold them without a rounding, added as doubles are added
/// exactly.
#include <algorithm>

#include "samesum/backend/cuda/exact.cuh"
#include "samesum/backend/cuda/reduce_launch.hpp"
#include "samesum/operation/exact_reduction.hpp"

namespace samesum::gpu {
namespace {

/// What a thread loads at a time: so many neighbouring elements of each input, and so many of these in
/// flight.
constexpr int run_length = 4, in_flight = 4;

/// The terms of elements of format T, as doubles.
template <class T> struct TermReader {
  const T *x, *y;
  Term term;

  struct alignas(run_length * sizeof(T) <= 16 ? run_length * sizeof(T) : 16) Run {
    T element[run_length];
  };
  __device__ bool is_aligned(std::size_t place) const {
    return reinterpret_cast<std::uintptr_t>(x + place) % alignof(Run) == 0 &&
           (y == nullptr || reinterpret_cast<std::uintptr_t>(y + place) % alignof(Run) == 0);
  }
  __device__ static Run load(const T* from, std::size_t stride, bool aligned) {
    if (aligned) return *reinterpret_cast<const Run*>(from);
    Run run;
    for (int i = 0; i < run_length; ++i) run.element[i] = from[i * stride];
    return run;
  }
  __device__ double of(T a, T b) const {
    const double wide = widen(a);
    if (term == Term::element) return wide;
    return term == Term::magnitude ? fabs(wide)
                                   : wide * static_cast<double>(widen(term == Term::square ? a : b));
  }
};

/// The leading digits of a quotient of a wide integer, and whether anything is left.
template <class F>
__device__ BitsOf<F> rounded_quotient(const std::uint32_t* word, int count, bool negative, std::uint64_t n) {
  std::uint64_t rest = 0, leading[3] = {};
  int found = 0, top = 0;
  bool more = false;
  for (int i = count - 1; i >= -4;
       --i) {  // below the units, so many digits that the rest alone is below them
    std::uint64_t digit = i < 0 ? 0 : word[i];
    if (n >> 32 == 0) {
      const std::uint64_t part = rest << 32 | digit;
      digit = part / n;
      rest = part % n;
    } else {
      __extension__ using Wide = unsigned __int128;
      const Wide part = Wide{rest} << 32 | digit;
      digit = static_cast<std::uint64_t>(part / n);
      rest = static_cast<std::uint64_t>(part % n);
    }
    if (found == 0 && digit == 0) continue;
    if (found == 0) top = i;
    if (found < 3)
      leading[found] = digit;
    else
      more = more || digit != 0;
    ++found;
  }
  if (found == 0) return 0;
  return round_leading<F>(negative, leading[0], leading[1], leading[2], more || rest != 0,
                          Exact::lowest_exponent + 32 * top);
}

/// To be called by one warp: the sum over `divisor`, if that is not 1, rounded once.
template <class F>
__device__ void write_quotient(Digits& digits, unsigned flags, std::uint64_t divisor, F* out) {
  __shared__ std::uint32_t words[3 * warp];
  __syncwarp();  // the digits are complete
  const Magnitude magnitude{digits};
  BitsOf<F> bits = rounded<F>(magnitude, flags, words);
  __syncwarp();  // the words are there
  constexpr unsigned special = Exact::seen_nan | Exact::seen_plus_infinity | Exact::seen_minus_infinity;
  if (divisor == 0) bits = Format<F>::canonical_nan;
  if (divisor > 1 && !(flags & special) && flags & Exact::seen_other_than_minus_zero && thread() == 0)
    bits = rounded_quotient<F>(words, 3 * warp, magnitude.is_negative(), divisor);
  if (thread() == 0) *out = from_bits<F>(bits);
}

/// A batch: a block a result; or all blocks for the one that there is, which then meet.
template <class T>
__global__ void __launch_bounds__(exact_threads, sizeof(T) == 8 ? 2 : 3)
    sum_terms_exactly(TermReader<T> reader, Layout l, bool mean, Meeting* meeting, std::size_t format,
                      void* out) {
  __shared__ Expansions::Shared shared;
  __shared__ Digits digits;
  __shared__ unsigned flags_of_warp[exact_threads / warp];
  using Run = typename TermReader<T>::Run;
  const bool together = l.results() == 1;
  for (std::size_t at = together ? 0 : blockIdx.x; at < l.results(); at += gridDim.x) {
    const std::size_t n = l.length(at / l.inner), place = l.first(at / l.inner) + at % l.inner;
    const std::size_t stride = l.offsets ? 1 : l.stride, runs = n / run_length;
    const bool aligned = stride == 1 && reader.is_aligned(place);
    digits.clear();
    Expansions sum{shared, digits};
    unsigned flags = n > 0 ? Exact::seen_any : 0, other = 0;
    const auto note = [&other](double term) {
      other |= (static_cast<unsigned>(__double2hiint(term)) ^ 0x80000000u) |
               static_cast<unsigned>(__double2loint(term));
    };
    const std::size_t first = together ? std::size_t{blockIdx.x} * exact_threads + threadIdx.x : threadIdx.x;
    const std::size_t step = together ? std::size_t{gridDim.x} * exact_threads : exact_threads;
#pragma unroll 1
    for (std::size_t r = first; r < runs; r += in_flight * step) {
      Run x[in_flight], y[in_flight];
#pragma unroll
      for (int k = 0; k < in_flight; ++k) {
        const std::size_t i = r + k * step;
        if (i >= runs) break;
        x[k] = reader.load(reader.x + place + i * run_length * stride, stride, aligned);
        y[k] = reader.term == Term::product
                   ? reader.load(reader.y + place + i * run_length * stride, stride, aligned)
                   : x[k];
      }
#pragma unroll
      for (int k = 0; k < in_flight; ++k) {
        if (r + k * step >= runs) break;
#pragma unroll
        for (int i = 0; i < run_length; i += Vector<fp64>::size) {
          Vector<fp64> terms;
          for (int e = 0; e < Vector<fp64>::size; ++e) {
            terms.element[e] = reader.of(x[k].element[i + e], y[k].element[i + e]);
            note(terms.element[e]);
          }
          flags |= sum.add(terms);
        }
      }
    }
    if (const std::size_t i = runs * run_length + first; i < n) {
      const T a = reader.x[place + i * stride],
              b = reader.term == Term::product ? reader.y[place + i * stride] : a;
      note(reader.of(a, b));
      flags |= sum.add(reader.of(a, b));
    }
    if (other) flags |= Exact::seen_other_than_minus_zero;
    flags = __reduce_or_sync(whole_warp, flags);
    if (thread() == 0) flags_of_warp[warp_index()] = flags;
    sum.finish(shared, digits);
    if (warp_index() == 0) {
      flags = __reduce_or_sync(whole_warp, thread() < warps() ? flags_of_warp[thread()] : 0);
      if (!together || gridDim.x == 1 ||
          meet(digits, Expansions::first_digit, Expansions::last_digit, flags, *meeting)) {
        std::size_t f = 0;
        Formats::for_each([&]<class F>() {
          if (f++ == format) write_quotient<F>(digits, flags, mean ? n : 1, static_cast<F*>(out) + at);
        });
      }
    }
    __syncthreads();  // what is shared may change
  }
}

template <class T>
cudaError_t launch_exactly(ExactKind kind, const FormatInfo& format, ReduceLaunch& launch_of) {
  const ReduceCall& call = launch_of.call;
  const Layout& l = call.layout;
  int processors = 0, of_each = 0;
  cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, processors);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, sum_terms_exactly<T>, exact_threads, 0);
  if (error != cudaSuccess || !has_workspace(launch_of, sizeof(Meeting), error) || l.results() == 0)
    return error;
  const std::size_t at_once = static_cast<std::size_t>(processors * of_each);
  const std::size_t n = l.offsets ? launch_of.elements : l.n,
                    of_block = std::size_t{exact_threads} * in_flight * run_length;
  const std::size_t wanted = l.results() == 1 ? std::max<std::size_t>(n, 1) / of_block + 1 : l.results();
  const std::size_t blocks = std::min({wanted, at_once, std::size_t{Meeting::most_blocks}});
  error = cudaMemsetAsync(launch_of.workspace, 0, sizeof(Meeting), launch_of.stream);
  if (error != cudaSuccess) return error;
  const TermReader<T> reader{static_cast<const T*>(call.x), static_cast<const T*>(call.y), kind.term};
  return launch(sum_terms_exactly<T>, blocks, exact_threads, launch_of.stream, reader, l, kind.mean,
                static_cast<Meeting*>(launch_of.workspace), format.index, call.out);
}

}  // namespace

cudaError_t reduce_exactly(ExactKind kind, const FormatInfo& input, const FormatInfo& format,
                           ReduceLaunch& launch) {
  return with_format(input, [&]<class T>() { return launch_exactly<T>(kind, format, launch); });
}

}  // namespace samesum::gpu
