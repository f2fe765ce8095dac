/// A variant: one accumulator in one order in one format on one backend, with its facts and its contract.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "samesum/bound.hpp"
#include "samesum/order/height.hpp"
#include "samesum/promise.hpp"
#include "samesum/value.hpp"

namespace samesum {

/// How to run, never what to compute: no option changes the bits of a variant that promises `everywhere`.
struct Options {
  /// 0: one thread for each 2^17 elements, at most one for each processor. A number that is given is a limit:
  /// there are never more threads than pieces of work, nor than four for each processor. They come from a
  /// pool that lives as long as the process. Ignored by backends without threads.
  int threads = 0;
};

/// Throws std::invalid_argument for a negative number of threads.
void check(const Options& options);

/// A sum that is bound to its data and can be run many times. The data must outlive it.
using Job = std::function<Number()>;

/// Values where a backend can read them, and what keeps them there.
struct Placed {
  Values values;
  std::shared_ptr<const void> owner;
};

namespace gpu {
struct Call;
}

/// A sum and what was seen on the way, summed in double.
struct Watched {
  std::uint64_t bits;
  double magnitudes;  ///< Σ|x| of the elements as given
  double partials;    ///< Σ|partial sum| over the nodes of the tree
};

struct Variant {
  std::string name;          ///< "tree/kahan/bf16@cpu", "exact/fp32@cpu"
  std::string order;         ///< "" for exact, which needs none
  std::string accumulator;   ///< "plain", "kahan", …, "exact"
  const FormatInfo* format;  ///< of the accumulator and of the result
  std::string backend;       ///< "reference", "cpu", "cuda"
  Promise promise;
  bool slow = false;           ///< by its nature, and for the study's sake: one GPU thread, one cell for all
  std::size_t state_bytes;     ///< of one lane's state, as stored by this library
  int operations_per_element;  ///< floating-point operations that one `add` costs (integer ones for exact)
  std::string height_formula;  ///< of `height`, in words of n

  /// Additions on the longest path from an element to the result.
  Height (*height)(std::size_t n);

  /// A rigorous bound on |result - sum of the elements as given|, rounded up;infinity if the result is not
  /// finite, or if it cannot be excluded that a number on the way overflows. `magnitudes` is an upper bound
  /// of the sum of |x|, `result` the value that the variant returned. Throws std::invalid_argument for
  /// negative magnitudes, and for a result of another format.
  double bound(const FormatInfo& input, std::size_t n, double magnitudes, Number result) const;

  /// What |result - sum| exceeds with a probability of at most 1 - probability, for given elements, over the
  /// ways in which roundings fall: if each has mean 0 whatever the earlier ones were (Higham and Mary 2019;
  /// Hallman and Ipsen 2022; bound.hpp has the proof). Equal or structured elements break that: of
  /// 10^6 times 0.1 in fp32 a loop is 46 times this off, at 0.99. So does a sum that stagnates: each rounding
  /// drops the element, and the error may be as large as the sum. Never more than `bound`, and the same for
  /// exact, for Kahan and double_word, where theory gains nothing from Σ|x| alone, and for probability 1.
  /// Rounding elements to a narrower accumulator is bounded for certain, likewise. Throws
  /// std::invalid_argument unless 0 < probability <= 1.
  double probable_bound(const FormatInfo& input, std::size_t n, double magnitudes, Number result,
                        double probability) const;

  /// The sum of x, in `format`. Throws std::invalid_argument for negative threads and for an x that is null,
  /// misaligned or larger than memory, and on the backend "cuda" gpu::Error, which names the call that
  /// failed.
  Number operator()(Values x, Options options = {}) const;

  /// The same, bound to its data to be run many times. What has to be moved is moved here. Data on a GPU must
  /// be complete, or on their way in its default stream; gpu.hpp has calls for other streams.
  Job bind(Values x, Options options = {}) const;

  /// x where this variant's backend can read it: x itself on a CPU, a copy in its memory on a GPU unless x is
  /// there already. Binding what is placed moves nothing.
  Placed place(Values x) const;

  // Filled by the registry.
  AccumulatorBound accumulator_bound;                                           ///< null for exact
  AccumulatorProbableBound accumulator_probable_bound;                          ///< likewise
  using Run = std::uint64_t (*)(const void* data, std::size_t n, int threads);  ///< gives the result's bits
  std::array<Run, Formats::size> run;                                           ///< by input format
  using Launch = int (*)(gpu::Call&);                                           ///< gives a cudaError_t
  std::array<Launch, Formats::size> launch;  ///< by input format; on the backend "cuda", instead of `run`
  Placed (*move)(Values);                    ///< likewise, as the next two
  Job (*start)(const Variant&, Placed);
  double lost_per_arrival;  ///< what an addition to a shared cell may lose beyond its rounding
  using Watch = Watched (*)(const void* data, std::size_t n);
  std::array<Watch, Formats::size> watch;  ///< by input format; on the reference backend alone
};

}  // namespace samesum
