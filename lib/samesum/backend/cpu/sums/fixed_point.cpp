/// Reductions on a grid on a CPU: nearly all terms are exact doubles, which vector instructions round to the
/// grid and add as integers.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/order_free.hpp"
#include "samesum/operation/grid_reduction.hpp"

namespace samesum::cpu {
namespace {

constexpr std::size_t terms_at_once = 2048;  ///< terms; stays in the first-level cache

/// Whether the terms are doubles: all but products of doubles.
template <class T> bool has_doubles(Term term) { return !std::is_same_v<T, fp64> || !is_product(term); }

const Kernels& loops() { return kernels(Formats::index_of<fp64>()); }
template <class T> const Kernels& loops_for() { return kernels(Formats::index_of<T>()); }

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

Int128 units_of_slices(const std::int64_t (&sums)[3]) {
  Int128 units = Int128::of(sums[0]);
  units.add(Int128::of(sums[1]).shifted(50));
  units.add(Int128::of(sums[2]).shifted(100));
  return units;
}

/// Products of doubles, as unevaluated sums of two doubles.
struct ProductBlock {
  double high[terms_at_once], low[terms_at_once];
  std::size_t n;
  double largest;  ///< of |high|

  /// Whether the words are exact, except of products below 2^-960.
  bool is_exact() const { return largest >= 0x1p-960 && largest < 0x1p1000; }
  bool has_low() const { return loops().largest_magnitude(low, n) != 0; }
};
/// Calls visit(block, from) for blocks of products; `from` is the index of the first.
template <class Visit>
void for_each_product(Term term, const fp64* x, const fp64* y, std::size_t n, Visit visit) {
  ProductBlock block;
  for (std::size_t begin = 0; begin < n; begin += terms_at_once) {
    block.n = std::min(n - begin, terms_at_once);
    loops().write_terms[Formats::index_of<fp64>()](term, x + begin, y ? y + begin : nullptr, block.n,
                                                   block.high, block.low);
    block.largest = from_bits<double>(loops().largest_magnitude(block.high, block.n));
    visit(std::as_const(block), begin);
  }
}

/// Returns the exponent of the largest finite term.
template <class T> int largest_exponent(Term term, const T* x, const T* y, std::size_t n) {
  int largest = no_exponent;
  const auto one_by_one = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i)
      largest = std::max(largest, exponent_of_term(term, x[i], y ? y[i] : T{}));
  };
  if constexpr (std::is_same_v<T, fp64>)
    if (is_product(term)) {
      for_each_product(term, x, y, n, [&](const ProductBlock& block, std::size_t from) {
        // A product that was rounded to a power of two may be below it.
        const bool is_power = to_bits(block.largest) << 12 == 0;
        if (!block.is_exact() || (is_power && block.has_low()))
          one_by_one(from, block.n);
        else
          largest = std::max(largest, exponent_of(block.largest));
      });
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

/// Adds up to 2048 numbers of up to 2^bits units each. `low` is null, or has their second words.
void add_slices(GridSum& sum, const double* x, const double* low, std::size_t n, double scale,
                std::int32_t bits) {
  std::int64_t sums[3] = {};
  loops().add_slices(x, low, n, scale, bits <= 50 ? 1 : bits <= 100 ? 2 : 3, sums);
  sum.add({units_of_slices(sums), bits});
}

/// Adds terms.
template <class T> void add_terms(GridSum& sum, Term term, const T* x, const T* y, std::size_t n, int grid) {
  const auto one_by_one = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i) add_term(sum, term, x[i], y ? y[i] : T{}, grid);
  };
  // Beyond these limits the scale, or a term in units, is not a normal double.
  if (grid < -900 || grid > 1000) return one_by_one(0, n);
  const double scale = power_of_two(-grid);
  if constexpr (std::is_same_v<T, fp64>)
    if (is_product(term)) {
      for_each_product(term, x, y, n, [&](const ProductBlock& block, std::size_t from) {
        const GridTerm largest =
            block.is_exact() ? to_grid(block.largest, grid) : GridTerm{{}, GridTerm::beyond};
        // The bits of a product next to a power of two depend on its low word.
        const auto bits_of = [](Wide units) { return 128 - leading_zeros(units - 1); };
        const Wide units = largest.units.magnitude().wide();
        const bool is_next_to_power = units < 2 || bits_of(units - 1) != bits_of(units + 1);
        if (largest.bits == GridTerm::beyond || (is_next_to_power && block.has_low()))
          return one_by_one(from, block.n);
        add_slices(sum, block.high, block.low, block.n, scale, largest.bits);
      });
      return;
    }
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
    add_slices(sum, terms, nullptr, count, scale, largest.bits);
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
    const bool rows = this->are_rows();
    if (n > 0 && !rows && count >= few_columns && has_doubles<T>(kind_.term) &&
        std::abs(given_.value_or(0)) <= GridColumns::largest_grid)
      return reduce_columns(first, count);
    if (n == 0 || (given_ && (!rows || n > short_row))) {
      for (std::size_t k = 0; k < count; ++k) reduce(first + k);
      return;
    }
    ExactSums exact[most_results], rounded[most_results];
    this->sum_run(kind_, first, count, exact);
    std::optional<bool> are_rounded;
    for (std::size_t k = 0; k < count; ++k) {
      if (are_on_grid(exact[k], n, first + k) && finish_exact(exact[k], first + k)) continue;
      if (!are_rounded) are_rounded = given_ && round_rows(first, count, rounded);
      if (!*are_rounded || !finish_exact(rounded[k], first + k)) reduce(first + k);
    }
  }
  void reduce_columns(std::size_t first, std::size_t count) {
    const bool writes = is_product(kind_.term);
    const std::size_t n = this->length_of(first);
    std::vector<std::uint32_t> marks((n - 1) / GridColumns::rows + 1);
    GridColumns columns{this->first_of(first),
                        this->first_of_y(first),
                        kind_.term,
                        writes ? loops().write_terms[Formats::index_of<T>()] : nullptr,
                        count,
                        n,
                        this->call.layout.stride,
                        sizeof(T),
                        given_.has_value(),
                        given_.value_or(0),
                        grid_word_bits<F>,
                        quantum_of_terms(kind_.term, format_info<T>()),
                        marks.data()};
    const SumColumnsOnGrid sum = (writes ? loops() : loops_for<T>()).sum_columns_on_grid;
    GridColumnSum sums[GridColumns::most];
    for (std::size_t c = 0; c < count; c += columns.count) {
      columns.x = this->first_of(first + c);
      columns.y = this->first_of_y(first + c);
      columns.count = std::min(count - c, GridColumns::most);
      sum(columns, sums);
      for (std::size_t k = 0; k < columns.count; ++k)
        writes ? finish_column<fp64>(sums[k], first + c + k) : finish_column<T>(sums[k], first + c + k);
    }
  }
  /// Finishes a column whose terms have the format `Terms`.
  template <class Terms> void finish_column(const GridColumnSum& column, std::size_t at) {
    if (!column.known) return reduce(at);
    // Terms cannot overflow a grid that is found.
    const std::int32_t bits =
        given_ ? to_grid(from_bits<Terms>(static_cast<BitsOf<Terms>>(column.largest)), column.grid).bits : 0;
    if (column.is_exact && !may_overflow(bits, this->length_of(at))) {
      ExactSums exact{};
      std::ranges::copy(column.exact, exact.sum);
      if (finish_exact(exact, at)) return;
    }
    GridSum sum;
    for (const double word : column.exact) sum.add({to_grid(word, column.grid).units, bits});
    sum.add({units_of_slices(column.units), bits});
    finish(sum, at, column.grid);
  }
  void reduce(std::size_t at) {
    const int grid = grid_of(at);
    GridSum sum;
    this->for_each_part(
        at, [&](const T* x, const T* y, std::size_t n) { add_terms(sum, kind_.term, x, y, n, grid); });
    finish(sum, at, grid);
  }
  /// Whether all terms of a result are known to be multiples of its grid that cannot overflow it.
  bool are_on_grid(const ExactSums& sums, std::size_t n, std::size_t at) const {
    if (!sums.is_exact() || sums.terms.is_empty()) return sums.is_exact();
    const int top = sums.terms.top(), lowest = sums.terms.lowest();
    if (given_) return lowest >= *given_ && !may_overflow(top - *given_, n);
    // The neighbours may have larger terms, and for these a coarser grid would be found.
    return lowest >= found(at, top - 1);
  }
  /// Writes a result whose terms are multiples of the grid: their exact sum, rounded once. Returns false if
  /// that is not known.
  bool finish_exact(const ExactSums& sums, std::size_t at) const {
    if (!sums.is_exact()) return false;
    F& result = static_cast<F*>(this->call.out.data)[at];
    if (sums.sum[0] != 0 && !round_sum(sums, this->length_of(at), kind_.mean, result)) return false;
    if (sums.sum[0] == 0 || to_bits(result) == Format<F>::sign_bit) result = F{};  // every zero is +0
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
