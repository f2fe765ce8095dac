/// Exact scans along columns, and of rows of a few elements. A thread has some consecutive elements of one
/// column, a part, so that the loads of neighbouring threads are coalesced, or a short row. As in scans of
/// segments, the elements are read twice: for the sums of the parts, and to scan each part from the sum of
/// all before it.
#pragma once

#include "samesum/backend/cuda/scan/columns.cuh"
#include "samesum/backend/cuda/scan/exact_scan.cuh"

namespace samesum::gpu {

/// The sums of the parts of columns and of groups of parts. Part p of column i of array o stands at
/// (o·parts + p)·inner + i, as the elements do; groups likewise. At first, `part` has the sums of the parts;
/// sum_before_parts replaces each by that of the parts before it in its group, and finds the sums of the
/// groups, which sum_before_part_groups replaces by those of the groups before.
template <class Sum> struct ColumnSums {
  static constexpr std::size_t length = 64;  ///< elements of a part
  std::size_t parts;                         ///< of a column
  std::size_t in_group;                      ///< parts of a group
  Sum* part = nullptr;                       ///< null if a column has one part
  Sum* group = nullptr;                      ///< null if a column has one group

  /// Columns of n elements. A thread goes through a group, and later one through the groups of a column, so a
  /// long column has about as many groups as a group has parts.
  static ColumnSums of(std::size_t n) {
    constexpr int shortest = 6;  // log2
    const std::size_t parts = (n - 1) / length + 1;
    return {parts, std::size_t{1} << std::max(static_cast<int>(ceil_log2(parts) + 1) / 2, shortest)};
  }
  __host__ __device__ std::size_t groups() const { return (parts - 1) / in_group + 1; }
  /// These sums, of a shorter type in the memory of the longer one.
  template <class Shorter> __host__ __device__ ColumnSums<Shorter> with() const {
    static_assert(sizeof(Shorter) <= sizeof(Sum));
    return {parts, in_group, reinterpret_cast<Shorter*>(part), reinterpret_cast<Shorter*>(group)};
  }
};

/// The elements of a part.
template <class C> class PartElements {
 public:
  static constexpr int at_once = 8;  ///< elements that are loaded at a time

  __device__ PartElements(const ScanInput& in, const Layout& l, const ColumnPart& part)
      : in_{in}, stride_{l.stride} {
    const std::size_t begin = part.part * ColumnSums<WindowSum>::length;
    at_ = l.first(part.outer) + part.inner + begin * l.stride;
    count_ = static_cast<int>(min(l.n - begin, ColumnSums<WindowSum>::length));
  }
  /// Calls visit(elements, count) for up to eight elements at a time; absent ones are 0.
  template <class Visit> __device__ __forceinline__ void visit(Visit visit) const {
#pragma unroll 1
    for (int first = 0; first < count_; first += at_once) {
      CarrierOf<C> x[at_once]{};
      visit_format(in_.format, [&]<class T>() {
        if constexpr (can_read<T, C>) {
          const T* from = static_cast<const T*>(in_.x) + at_ + static_cast<std::size_t>(first) * stride_;
#pragma unroll
          for (int i = 0; i < at_once; ++i)
            if (first + i < count_)
              x[i] = gpu::load<Scalar<C>>(from + static_cast<std::size_t>(i) * stride_).v;
        }
      });
      visit(x, min(count_ - first, at_once));
    }
  }

 private:
  const ScanInput& in_;
  std::size_t stride_, at_;
  int count_;
};

template <class Units, class X, std::size_t count>
__device__ __forceinline__ bool are_common(const Units& units, const X (&x)[count]) {
  if constexpr (!Units::has_common) return false;
  bool common = true;
#pragma unroll
  for (const X& e : x) common = common & units.is_common(e);
  return common;
}

/// Sums a part of a column.
template <class C, class Sum>
__device__ __forceinline__ void sum_part(const ScanInput& in, const Layout& l, const ExactScan& call,
                                         const ColumnSums<Sum>& sums) {
  const ColumnPart part{l, sums.parts};
  if (!part.exists) return;
  const UnitsFor<C, Sum> units{call};
  Sum sum;
  PartElements<C>{in, l, part}.visit([&](const auto& x, int) {
    if (are_common(units, x)) {
      if constexpr (units.has_common) {
        CommonSum common;
        for (const auto& e : x) common = common + units.common(e);
        sum = sum + common.widened();
      }
    } else {
      for (const auto& e : x) sum = sum + units.exactly_inlined(e);
    }
  });
  if (sums.part != nullptr) sums.part[(part.outer * sums.parts + part.part) * l.inner + part.inner] = sum;
}

/// Replaces `count` sums, `apart` from `sum` on, by those of the sums before them, and returns the sum of
/// all.
template <class Sum>
__device__ __forceinline__ Sum sum_before_each(Sum* sum, std::size_t count, std::size_t apart) {
  constexpr std::size_t ahead = 8;
  Sum before;
#pragma unroll 1
  for (std::size_t first = 0; first < count; first += ahead) {
    Sum next[ahead];
#pragma unroll
    for (std::size_t i = 0; i < ahead; ++i)
      if (first + i < count) next[i] = sum[(first + i) * apart];
#pragma unroll
    for (std::size_t i = 0; i < ahead; ++i) {
      if (first + i >= count) break;
      sum[(first + i) * apart] = before;
      before = before + next[i];
    }
  }
  return before;
}
/// A thread has a group of a column.
template <class Sum> __device__ void sum_before_parts_of(const Layout& l, const ColumnSums<Sum>& sums) {
  const ColumnPart group{l, sums.groups()};
  if (!group.exists) return;
  const std::size_t first = group.part * sums.in_group, count = min(sums.parts - first, sums.in_group);
  const Sum all =
      sum_before_each(sums.part + (group.outer * sums.parts + first) * l.inner + group.inner, count, l.inner);
  if (sums.group != nullptr)
    sums.group[(group.outer * sums.groups() + group.part) * l.inner + group.inner] = all;
}
/// A thread has a column.
template <class Sum> __device__ void sum_before_groups_of(const Layout& l, const ColumnSums<Sum>& sums) {
  const ColumnPart column{l, 1};
  if (column.exists)
    sum_before_each(sums.group + column.outer * sums.groups() * l.inner + column.inner, sums.groups(),
                    l.inner);
}

/// Scans a part of a column in sums of that type, and rounds each sum once to F.
template <class C, class F, class Sum> class PartScan {
 public:
  __device__ PartScan(const ExactScan& call, const Sum& before, F* to, std::size_t apart, bool exclusive)
      : units_{call},
        before_{before},
        to_{to},
        apart_{apart},
        exclusive_{exclusive},
        last_{units_.template rounded<F>(before)} {}

  template <class X, std::size_t most>
  __device__ __forceinline__ void operator()(const X (&x)[most], int count) {
    if (!are_common(units_, x)) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(most); ++i) {
        if (i >= count) break;
        before_ = before_ + units_.exactly_inlined(x[i]);
        write(units_.template rounded_inlined<F>(before_));
      }
    } else if constexpr (units_.has_common) {
      with_split(before_, [&](auto split) { add_common(split, x, count); });
    }
  }

 private:
  template <class Split, class X, std::size_t most>
  __device__ __forceinline__ void add_common(Split sum, const X (&x)[most], int count) {
    const SumRounder<F, C> round{units_, sum.shift};
#pragma unroll
    for (std::size_t i = 0; i < most; ++i) {
      sum = sum + units_.common(x[i]);  // absent elements are 0
      if (static_cast<int>(i) < count) write(round(sum));
    }
    before_ = sum.widened();
  }
  __device__ void write(F result) {
    *to_ = exclusive_ ? last_ : result;
    last_ = result;
    to_ += apart_;
  }

  UnitsFor<C, Sum> units_;
  Sum before_;
  F* to_;
  std::size_t apart_;
  bool exclusive_;
  F last_;
};

template <class C, class F, class Sum>
__device__ __forceinline__ void scan_part(const ScanInput& in, const Layout& l, const ExactScan& call,
                                          const ColumnSums<Sum>& sums, const ScanDestination& out) {
  const ColumnPart part{l, sums.parts};
  if (!part.exists) return;
  Sum before;
  if (sums.part != nullptr) before = sums.part[(part.outer * sums.parts + part.part) * l.inner + part.inner];
  if (sums.group != nullptr)
    before =
        before + sums.group[(part.outer * sums.groups() + part.part / sums.in_group) * l.inner + part.inner];
  F* const to =
      static_cast<F*>(out.out) + part.outer * out.row_stride + part.inner + part.part * sums.length * l.inner;
  PartScan<C, F, Sum> scan{call, before, to, l.inner, out.exclusive};
  PartElements<C>{in, l, part}.visit([&](const auto& x, int count) { scan(x, count); });
}

/// Scans each part in sums of 128 bits, or, in another kernel, of more bits, if these give the results.
template <class C, class F>
__global__ void __launch_bounds__(scan_column_threads)
    scan_parts(ScanInput in, Layout l, ExactScan call, ColumnSums<WindowSum> sums, ScanDestination out) {
  if (call.narrow_fits()) scan_part<C, F>(in, l, call, sums, out);
}
template <class C, class F>
__global__ void __launch_bounds__(scan_column_threads)
    scan_wide_parts(ScanInput in, Layout l, ExactScan call, ColumnSums<WidestSum> sums, ScanDestination out) {
  const int words = call.wide_words();
  if (words == 3) scan_part<C, F>(in, l, call, sums.with<WideSum<3>>(), out);
  if (words == 5) scan_part<C, F>(in, l, call, sums, out);
}

}  // namespace samesum::gpu
