/// Reductions on a grid on a GPU, by the kernels for batches: one pass finds the largest exponent of each
/// result, unless the grid is given, and one adds the terms. The kernels reduce in the order `tree`, but
/// integers are the same in any order.
#include "samesum/backend/cuda/batch.cuh"
#include "samesum/backend/cuda/grid.cuh"
#include "samesum/backend/cuda/methods.hpp"
#include "samesum/backend/cuda/reader.cuh"
#include "samesum/operation/grid_reduction.hpp"

namespace samesum::gpu {
namespace {

/// Finds the largest exponent of the terms of each result. Elements are given in the carrier C of their
/// format, which holds them exactly.
template <class C> struct LargestExponentReducer : StateReducer<LargestExponent, std::int32_t> {
  using FastPath = LargestExponentFastPath<C>;
  Term term;
  __device__ FastPath fast_path() const { return {{}, term}; }
  template <class Element> __device__ std::int32_t item(const Element& e) const {
    return exponent_of_term<C>(term, e.x.v, e.y.v);
  }
  __device__ void finish(const LargestExponent& state, std::uint64_t, std::size_t at, void* out) const {
    static_cast<std::int32_t*>(out)[at] = state.value;
  }
};

/// The elements of both inputs of which a term is made.
template <class C> struct Factors { C x, y; };

/// Adds terms on the grid of their result.
template <class C> struct GridReducer : StateReducer<GridSum, Factors<C>>, FastPathFor<C> {
  using Item = Factors<C>;
  GridSource source;
  Term term;
  bool mean;
  std::size_t format;  ///< format index of the results
  KeyStatus* status;   ///< set if a sum overflows a given grid; may be null
  GridOfDoubles grid;

  /// The reducer for the terms of result `at`, which has n elements.
  __device__ GridReducer at(std::size_t result, std::uint64_t n) const {
    GridReducer own = *this;
    own.grid = GridOfDoubles{source.grid(result, n)};
    return own;
  }
  /// Most terms on a grid that is found for 126 bits have more than the fast path adds.
  __device__ GridFastPath fast_path() const {
    return {grid.exponent(), term, source.exponents == nullptr || source.word_bits <= 62};
  }
  template <class Element> __device__ Item item(const Element& e) const { return {e.x.v, e.y.v}; }
  __device__ GridSum start(const Item& x) const {
    GridSum sum;
    add(sum, x, 0);
    return sum;
  }
  __device__ void add(GridSum& sum, const Item& x, std::size_t) const {
    if (!grid.add_fast(sum, double_of(x))) add_term(sum, term, x.x, x.y, grid.exponent());
  }
  __device__ void finish(const GridSum& sum, std::uint64_t n, std::size_t at, void* out) const {
    KernelFormats::for_each([&]<class F>() {
      constexpr std::size_t of_type = Formats::index_of<F>();
      if (format == of_type && !finish_on_grid<F>(sum, mean, n, source.grid(at, n), at, out) && status)
        status->overflowed = 1;
    });
  }

 private:
  /// The term as a double, if it is one: products of doubles are NaN.
  __device__ double double_of(const Item& x) const {
    const double a = x.x;
    if (!is_product(term)) return element_term(term, a);
    if constexpr (sizeof(C) == sizeof(double)) return from_bits<double>(Format<double>::canonical_nan);
    return a * static_cast<double>(second_factor(term, x.x, x.y));
  }
};

/// Reduces all elements. Without a workspace, only sets `bytes`.
template <class T, class Reducer>
cudaError_t pass(const Reducer& reducer, const Launch& work, Destination out, void* workspace,
                 std::size_t& bytes) {
  Launch of = work;
  of.call.out.data = out.out;
  of.as_state = out.states;
  of.workspace = workspace;
  of.bytes = bytes;
  const cudaError_t error =
      reduce<CoarsenedTree::Shape>(reducer, Reader<T, T>{work.call.x.data, work.call.y.data}, of);
  bytes = of.bytes;
  return error;
}

/// Finds the largest exponent of each result.
template <class T>
cudaError_t find_exponents(Term term, const Launch& work, std::int32_t* exponents, void* workspace,
                           std::size_t& bytes) {
  LargestExponentReducer<CarrierOf<T>> find{};
  find.term = term;
  return pass<T>(find, work, {exponents}, workspace, bytes);
}

template <class T> cudaError_t launch_on_grid(ExactKind kind, Launch& work) {
  const FormatInfo& format = *work.call.method->format;
  using C = CarrierOf<T>;
  GridReducer<C> reducer{};
  reducer.source = {work.call.options.grid.value_or(0), nullptr, word_bits_for(format.precision),
                    quantum_of_terms(kind.term, *work.call.x.format)};
  reducer.term = kind.term;
  reducer.mean = kind.mean;
  reducer.format = format.index;
  reducer.status = work.status;
  const Destination out{work.call.out.data, work.as_state};
  if (work.call.options.grid) return pass<T>(reducer, work, out, work.workspace, work.bytes);
  // The exponents follow the states, for which both passes use the same memory.
  std::size_t of_first = 0, of_second = 0;
  cudaError_t error = find_exponents<T>(kind.term, work, nullptr, nullptr, of_first);
  if (error == cudaSuccess) error = pass<T>(reducer, work, out, nullptr, of_second);
  if (error != cudaSuccess) return error;
  const std::size_t results = work.call.layout.results(),
                    of_states = (std::max({of_first, of_second, header_bytes}) + 15) / 16 * 16;
  if (!accept_workspace(work, of_states + results * sizeof(std::int32_t), error) || results == 0)
    return error;
  auto* exponents = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(work.workspace) + of_states);
  reducer.source.exponents = exponents;
  std::size_t bytes = of_states;
  error = find_exponents<T>(kind.term, work, exponents, work.workspace, bytes);
  return error == cudaSuccess ? pass<T>(reducer, work, out, work.workspace, bytes) : error;
}

}  // namespace

cudaError_t reduce_on_grid(ExactKind kind, Launch& work) {
  return with_kernel_format(*work.call.x.format, [&]<class T>() { return launch_on_grid<T>(kind, work); });
}

cudaError_t find_largest_exponents(const Launch& work, std::int32_t* exponents, void* workspace,
                                   std::size_t& bytes) {
  return with_kernel_format(*work.call.x.format, [&]<class T>() {
    return find_exponents<T>(Term::element, work, exponents, workspace, bytes);
  });
}

}  // namespace samesum::gpu
