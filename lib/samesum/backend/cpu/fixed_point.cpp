/// Reductions on a grid on a CPU: nearly all terms are exact doubles, which vector instructions round to the
/// grid and add as integers.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "samesum/backend/cpu/exact_sums.hpp"
#include "samesum/backend/cpu/methods.hpp"
#include "samesum/backend/cpu/order_free.hpp"
#include "samesum/operation/grid_reduction.hpp"

namespace samesum::cpu {
namespace {

constexpr std::size_t terms_at_once = 2048;  ///< terms; stays in the first-level cache

/// Whether the terms are doubles: all but products of doubles.
template <class T> bool has_doubles(Term term) { return !std::is_same_v<T, fp64> || !is_product(term); }

const Kernels& loops() { return kernels<Formats::index_of<fp64>()>(); }
template <class T> const Kernels& loops_for() { return kernels<Formats::index_of<T>()>(); }

/// Calls visit(terms, from, n) for blocks of n terms that are doubles; `from` is the index of the first.
template <class T, class Visit>
void for_each_block(Term term, const T* x, const T* y, std::size_t n, Visit visit) {
  const WriteTerms write = loops().write_terms[Formats::index_of<T>()];
  double terms[terms_at_once];
  for (std::size_t begin = 0; begin < n; begin += terms_at_once) {
    const std::size_t mine = std::min(n - begin, terms_at_once);
    if constexpr (std::is_same_v<T, fp64>)
      if (term == Term::element) {
        visit(x + begin, begin, mine);
        continue;
      }
    write(term, x + begin, y ? y + begin : nullptr, mine, terms, nullptr);
    visit(static_cast<const double*>(terms), begin, mine);
  }
}

/// Returns the exponent of the largest finite term.
template <class T> int largest_exponent(Term term, const T* x, const T* y, std::size_t n) {
  int largest = no_exponent;
  const auto one_by_one = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i)
      largest = std::max(largest, exponent_of_term(term, x[i], y ? y[i] : T{}));
  };
  if (!has_doubles<T>(term)) {
    one_by_one(0, n);
    return largest;
  }
  if (term == Term::element || term == Term::magnitude) {
    BitsOf<T> most = 0;
    for (std::size_t begin = 0; begin < n; begin += terms_at_once) {
      const std::size_t mine = std::min(n - begin, terms_at_once);
      const auto of_block = static_cast<BitsOf<T>>(loops_for<T>().largest_bits(x + begin, mine));
      if (of_block >= Format<T>::infinity)
        one_by_one(begin, mine);
      else
        most = std::max(most, of_block);
    }
    return std::max(largest, exponent_of(from_bits<T>(most)));
  }
  std::uint64_t bits = 0;
  for_each_block(term, x, y, n, [&](const double* terms, std::size_t from, std::size_t count) {
    const std::uint64_t of_block = loops().largest_magnitude(terms, count);
    if (of_block >= Format<fp64>::infinity)
      one_by_one(from, count);
    else
      bits = std::max(bits, of_block);
  });
  return std::max(largest, exponent_of(from_bits<double>(bits)));
}

/// Adds terms.
template <class T> void add_terms(GridSum& sum, Term term, const T* x, const T* y, std::size_t n, int grid) {
  const auto one_by_one = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i) add_term(sum, term, x[i], y ? y[i] : T{}, grid);
  };
  // Beyond these limits the scale, or a term in units, is not a normal double.
  if (!has_doubles<T>(term) || grid < -900 || grid > 1000) return one_by_one(0, n);
  const double scale = power_of_two(-grid);
  if constexpr (std::is_same_v<T, CarrierOf<T>>)
    if (term == Term::element) {
      // As long as all terms of a block have up to 2^50 units.
      for (; n > 0; x += std::min(n, terms_at_once), n -= std::min(n, terms_at_once)) {
        const std::size_t mine = std::min(n, terms_at_once);
        const auto bits = static_cast<BitsOf<T>>(loops_for<T>().largest_bits(x, mine));
        if (bits >= Format<T>::infinity) break;
        const GridTerm largest = to_grid(from_bits<T>(bits), grid);
        if (largest.bits > 50) break;
        sum.add({Int128::of(loops_for<T>().sum_units(x, mine, scale)), largest.bits});
      }
    }
  for_each_block(term, x, y, n, [&](const double* terms, std::size_t from, std::size_t count) {
    const std::uint64_t bits = loops().largest_magnitude(terms, count);
    const GridTerm largest = bits < Format<fp64>::infinity ? to_grid(from_bits<double>(bits), grid)
                                                           : GridTerm{{}, GridTerm::beyond};
    if (largest.bits == GridTerm::beyond) return one_by_one(from, count);
    std::int64_t sums[3] = {};
    loops().add_slices(terms, count, scale, largest.bits <= 50 ? 1 : largest.bits <= 100 ? 2 : 3, sums);
    Int128 units = Int128::of(sums[0]);
    units.add(Int128::of(sums[1]).shifted(50));
    units.add(Int128::of(sums[2]).shifted(100));
    sum.add({units, largest.bits});
  });
}

template <class T, class F> class GridBatch : OrderFreeBatch<T> {
 public:
  GridBatch(ExactKind kind, const Call& call) : OrderFreeBatch<T>{call}, kind_{kind} {}

  /// Reduces all results, or writes the state of the only one. Returns whether a sum overflows the given
  /// grid.
  bool run(bool as_state) {
    if (this->is_one()) {
      reduce_one(as_state);
    } else {
      this->for_each_run([this](std::size_t first, std::size_t count) { reduce_run(first, count); });
    }
    return overflowed_;
  }

  /// The grid of each result.
  std::vector<int> grids() {
    std::vector<int> all(this->call.layout.results());
    if (this->is_one())
      all[0] = grid_of_one();
    else
      this->for_each_result([&](std::size_t at) { all[at] = grid_of(at); });
    return all;
  }

 private:
  static constexpr std::size_t most_results = OrderFreeBatch<T>::longest_run;
  /// The longest row that is rounded together with others. Longer ones are faster alone.
  static constexpr std::size_t short_row = 128;
  static constexpr std::size_t few_columns = 8;  ///< fewer are rounded one by one
  static_assert(short_row <= terms_at_once && most_results <= terms_at_once);

  int found(std::size_t at, int largest) const {
    return found_grid(largest, this->length_of(at), grid_word_bits<F>,
                      quantum_of_terms(kind_.term, format_info<T>()));
  }
  int grid_of(std::size_t at) const {
    if (given_) return *given_;
    int largest = no_exponent;
    this->for_each_part(at, [&](const T* x, const T* y, std::size_t n) {
      largest = std::max(largest, largest_exponent(kind_.term, x, y, n));
    });
    return found(at, largest);
  }
  /// The grid of the only result.
  int grid_of_one() const {
    if (given_) return *given_;
    std::mutex mutex;
    int largest = no_exponent;
    this->for_each_part_of_one([&](const T* x, const T* y, std::size_t n) {
      const int mine = largest_exponent(kind_.term, x, y, n);
      const std::scoped_lock lock{mutex};
      largest = std::max(largest, mine);
    });
    return found(0, largest);
  }
  /// Reduces rows or neighbouring columns: together those whose exact sums tell their results or whose terms
  /// can be rounded as doubles, and the others one by one.
  void reduce_run(std::size_t first, std::size_t count) {
    const std::size_t n = this->length_of(first);
    const bool rows = this->are_rows(),
               alone = n == 0 || (given_ && (rows ? n > short_row : count < few_columns));
    if (alone) {
      for (std::size_t k = 0; k < count; ++k) reduce(first + k);
      return;
    }
    ExactSums exact[most_results];
    this->sum_run(kind_, first, count, exact);
    std::optional<bool> are_rounded;
    ExactSums of_rows[most_results];
    GridSum of_columns[most_results];
    for (std::size_t k = 0; k < count; ++k) {
      if (are_on_grid(exact[k], n, first + k) && finish_exact(exact[k], first + k)) continue;
      if (!are_rounded)
        are_rounded =
            given_ && (rows ? round_rows(first, count, of_rows) : round_columns(first, count, of_columns));
      if (*are_rounded && !rows)
        finish(of_columns[k], first + k, *given_);
      else if (!*are_rounded || !finish_exact(of_rows[k], first + k))
        reduce(first + k);
    }
  }
  void reduce(std::size_t at) {
    const int grid = grid_of(at);
    GridSum sum;
    this->for_each_part(
        at, [&](const T* x, const T* y, std::size_t n) { add_terms(sum, kind_.term, x, y, n, grid); });
    finish(sum, at, grid);
  }
  /// Whether all terms of a result are known to be multiples of its grid that cannot overflow it.
  bool are_on_grid(const ExactSums& of, std::size_t n, std::size_t at) const {
    if (given_) return of.known && of.lowest >= *given_ && !may_overflow(of.top - *given_, n);
    // The neighbours may have larger terms, and for these a coarser grid would be found.
    return of.known && of.lowest >= found(at, of.top - 1);
  }
  /// Writes a result whose terms are multiples of the grid: their exact sum, rounded once. Returns false if
  /// that is not known.
  bool finish_exact(const ExactSums& of, std::size_t at) const {
    if (!of.known) return false;
    F& result = static_cast<F*>(this->call.out.data)[at];
    if (of.sum[0] != 0 && !round_sum(of, this->length_of(at), kind_.mean, result)) return false;
    if (of.sum[0] == 0 || to_bits(result) == Format<F>::sign_bit) result = F{};  // every zero is +0
    return true;
  }
  /// Whether n terms of up to 2^bits units may overflow the given grid.
  static bool may_overflow(int bits, std::size_t n) { return bits + bits_for_terms(n) > grid_word_bits<F>; }

  /// Writes the terms of `lines` runs of `length` elements, `pitch` apart, rounded to the given grid. Returns
  /// the bits of the largest one, or nothing if a sum might overflow or doubles do not hold the terms.
  std::optional<std::int32_t> round_terms(std::size_t first, std::size_t from, std::size_t lines,
                                          std::size_t length, std::size_t pitch, double* terms) const {
    if (!has_doubles<T>(kind_.term) || std::abs(*given_) > 900) return {};
    const T *x = this->first_of(first) + from, *y = this->first_of_y(first);
    if (y) y += from;
    const WriteTerms write = loops().write_terms[Formats::index_of<T>()];
    const bool joined = pitch == length;
    for (std::size_t k = 0; k < (joined ? 1 : lines); ++k)
      write(kind_.term, x + k * pitch, y ? y + k * pitch : nullptr, joined ? lines * length : length,
            terms + k * length, nullptr);
    const std::uint64_t largest = loops().largest_magnitude(terms, lines * length);
    if (largest >= Format<fp64>::infinity) return {};
    const std::int32_t bits = to_grid(from_bits<double>(largest), *given_).bits;
    if (may_overflow(bits, this->length_of(first))) return {};
    loops().round_to_grid(terms, lines * length, *given_);
    return bits;
  }
  /// Writes the exact sums of short rows whose terms are rounded to the given grid. Returns false if
  /// round_terms returns nothing.
  bool round_rows(std::size_t first, std::size_t count, ExactSums* sums) const {
    const std::size_t n = this->length_of(first), at_once = terms_at_once / n;
    double terms[terms_at_once];
    for (std::size_t r = 0, rows; r < count; r += rows) {
      rows = std::min(count - r, at_once);
      if (!round_terms(first + r, 0, rows, n, this->call.layout.outer_stride, terms)) return false;
      sum_exactly<fp64>(ExactKind{}, true, terms, nullptr, rows, n, n, sums + r);
    }
    return true;
  }
  /// Rounds the terms of columns, and sums them on the grid. Returns false if a term cannot be rounded.
  bool round_columns(std::size_t first, std::size_t count, GridSum* sums) const {
    const std::size_t n = this->length_of(first), at_once = terms_at_once / count,
                      pitch = this->call.layout.stride;
    double terms[terms_at_once];
    ExactSums exact[most_results];
    for (std::size_t begin = 0, rows; begin < n; begin += rows) {
      rows = std::min(n - begin, at_once);
      const auto bits = round_terms(first, begin * pitch, rows, count, pitch, terms);
      if (!bits) return false;
      sum_exactly<fp64>(ExactKind{}, false, terms, nullptr, count, rows, count, exact);
      for (std::size_t k = 0; k < count; ++k) {
        if (!exact[k].known) return false;
        for (const double word : exact[k].sum) sums[k].add({to_grid(word, *given_).units, *bits});
      }
    }
    return true;
  }
  void finish(const GridSum& sum, std::size_t at, int grid) {
    if (!finish_on_grid<F>(sum, kind_.mean, this->length_of(at), grid, at, this->call.out.data))
      overflowed_ = true;
  }

  void reduce_one(bool as_state) {
    const int grid = grid_of_one();
    std::mutex mutex;
    GridSum total;
    this->for_each_part_of_one([&](const T* x, const T* y, std::size_t n) {
      GridSum sum;
      add_terms(sum, kind_.term, x, y, n, grid);
      const std::scoped_lock lock{mutex};
      total.merge(sum);
    });
    if (as_state)
      *static_cast<GridSum*>(this->call.out.data) = total;
    else
      finish(total, 0, grid);
  }

  ExactKind kind_;
  std::optional<int> given_ = this->call.options.grid;
  std::atomic<bool> overflowed_ = false;
};

}  // namespace

void reduce_on_grid(ExactKind kind, HostRun& work) {
  const Call& call = work.call;
  with_format(*call.method->format, [&]<class F>() {
    with_format(*call.x.format, [&]<class T>() {
      work.overflowed = GridBatch<T, F>{kind, call}.run(work.as_state);
    });
  });
}

std::vector<int> grids_of_results(const Call& call) {
  return with_format(*call.method->format, [&]<class F>() {
    return with_format(*call.x.format, [&]<class T>() { return GridBatch<T, F>{ExactKind{}, call}.grids(); });
  });
}

GridSum sum_on_grid(Values x, int grid) {
  GridSum sum;
  with_format(*x.format, [&]<class T>() {
    add_terms(sum, Term::element, static_cast<const T*>(x.data), static_cast<const T*>(nullptr), x.size,
              grid);
  });
  return sum;
}

}  // namespace samesum::cpu
