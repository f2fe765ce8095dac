/// Scans a tile of the order prefix: the merges of TileWalker, for a pack of neighbouring runs at a time, or
/// for a pack of neighbouring columns. Each instruction set compiles its own copy.
#pragma once

#include <new>

#include "samesum/backend/cpu/loops/leaf.hpp"
#include "samesum/backend/cpu/loops/softmax_loops.hpp"
#include "samesum/order/prefix.hpp"

namespace samesum::cpu {
namespace {

template <template <class> class A, class F> class ScanLoops {
  using Carrier = CarrierOf<F>;
  static constexpr std::size_t row = PrefixTree::lanes, run = PrefixTree::run;
  static constexpr int width = vector_bytes / int{sizeof(Carrier)};
  static constexpr std::size_t w = width, packs = PrefixTree::runs / w;
  using Vector = Pack<F, width>;
  using Storage = typename Vector::Storage;
  using One = A<Scalar<F>>;
  using Many = A<Vector>;  ///< the state of a run in each lane
  static constexpr std::size_t numbers = sizeof(One) / sizeof(Carrier);
  static_assert(sizeof(Many) == w * sizeof(One) && run == 4);

 public:
  /// See ScanTile.
  static void scan(const void* data, std::size_t n, const void* carry, void* out, void* state) {
    const auto* x = static_cast<const Carrier*>(data);
    auto* to = static_cast<F*>(out);
    const Many before = carry ? broadcast(*static_cast<const One*>(carry)) : Many{};
    const Merge reducer;
    Rows rows{reducer};
    One all;
    std::size_t done = 0;
    for (; done + row <= n; done += row)
      scan_row<packs>(x + done, done / row, rows, carry ? &before : nullptr, to + done, row, all);
    if (done < n) {
      const auto scan_rest = n - done <= few * run * w ? scan_part<few> : scan_part<packs>;
      scan_rest(x + done, n - done, done / row, rows, carry ? &before : nullptr, to + done, all);
    }
    std::memcpy(state, &all, sizeof all);
  }
  /// See ScanColumns.
  static void scan_columns(const ScannedColumns& b) {
    const Merge reducer;
    const std::size_t packs = (b.count - 1) / w + 1;
    auto* const of_pack = static_cast<ColumnPack*>(b.scratch);
    for (std::size_t p = 0; p < packs; ++p) {
      new (of_pack + p) ColumnPack{reducer};
      if (b.carry) of_pack[p].before = gather(static_cast<const One*>(b.carry) + p * w, b.count - p * w);
    }
    for (std::size_t first = 0; first < b.n; first += run) {
      const std::size_t size = b.n - first < run ? b.n - first : run;
      const Carrier* rows[run];
      for (std::size_t j = 0; j < size; ++j) {
        const void* const x = static_cast<const char*>(b.x) + (first + j) * b.pitch * b.bytes;
        if (b.read) {
          auto* const numbers = static_cast<Carrier*>(b.numbers) + j * b.count;
          b.read(Term::element, x, nullptr, b.count, numbers, nullptr);
          rows[j] = numbers;
        } else {
          rows[j] = static_cast<const Carrier*>(x);
        }
      }
      for (std::size_t p = 0; p < packs; ++p)
        if (size == run && (p + 1) * w <= b.count)
          scan_run<true>(b, rows, first, run, p, of_pack[p]);
        else
          scan_run<false>(b, rows, first, size, p, of_pack[p]);
    }
  }

 private:
  /// Merges states, as the reducer of DoublingWalker.
  struct Merge {
    using State = Many;
    static void merge(Many& left, const Many& right) { left.merge(right); }
  };
  using Rows = DoublingWalker<Merge, PrefixTree::rows_of_tile>;  ///< the same state in all lanes
  /// States of neighbouring columns: whole runs of the row, whole rows of the tile, and earlier tiles.
  struct ColumnPack {
    explicit ColumnPack(const Merge& reducer) : runs{reducer}, rows{reducer} {}
    DoublingWalker<Merge, PrefixTree::runs> runs;
    Rows rows;
    Many before{};
  };
  static_assert(sizeof(ColumnPack) <= ScannedColumns::scratch_states * sizeof(Many) &&
                ScannedColumns::pack % w == 0);

  static constexpr std::size_t few = packs < 4 ? 1 : packs / 4;  ///< packs of a short part of a row

  /// Scans the last n elements, at most size·run·w, in row r. The padding cannot affect their results, since
  /// it comes later.
  template <std::size_t size>
  static void scan_part(const Carrier* x, std::size_t n, std::size_t r, Rows& rows, const Many* before,
                        F* out, One& all) {
    if (n == size * run * w) return scan_row<size>(x, r, rows, before, out, n, all);
    alignas(vector_bytes) Carrier padded[size * run * w] = {};
    F results[size * run * w];
    for (std::size_t i = 0; i < n; ++i) padded[i] = x[i];
    scan_row<size>(padded, r, rows, before, results, n, all);
    for (std::size_t i = 0; i < n; ++i) out[i] = results[i];
  }
  /// Scans the first `last` elements of row r, at most size·run·w; so many can be read and written. `rows`
  /// holds the preceding rows. `all` becomes the state of the tile up to element `last` - 1 of this row. If
  /// `before` is not null, the results include it.
  template <std::size_t size>
  static void scan_row(const Carrier* x, std::size_t r, Rows& rows, const Many* before, F* out,
                       std::size_t last, One& all) {
    Many sum[size][run];  // the state of the elements of each run up to element j
    for (std::size_t p = 0; p < size; ++p) {
      Storage element[run];
      split(x + p * run * w, element);
      for (std::size_t j = 0; j < run; ++j) {
        if (j > 0) sum[p][j] = sum[p][j - 1];
        if (j == 0)
          sum[p][j] = Many{Vector{element[j]}};
        else
          sum[p][j].add(Vector{element[j]});
      }
    }
    Many whole[size];  // the state of the row up to the end of each run
    for (std::size_t p = 0; p < size; ++p) whole[p] = sum[p][run - 1];
    scan_lanes<1>(whole);
    for (std::size_t half = 1; half < size; half *= 2)
      for (std::size_t p = 0; p < size; ++p)
        if (p & half) whole[p] = merged(all_last(whole[p / half * half - 1]), whole[p]);
    const Many up_to_rows = rows.state();
    if (last == row) rows.push(r, all_last(whole[size - 1]));
    for (std::size_t p = 0; p < size; ++p) {
      const Many left = shifted(whole[p == 0 ? 0 : p - 1], whole[p]);
      Many part[run];
      for (std::size_t j = 0; j < run; ++j) {
        const Many& in_run = sum[p][j];
        part[j] = j + 1 == run ? whole[p]
                  : p == 0     ? first_of(in_run, merged(left, in_run))
                               : merged(left, in_run);
        if (r > 0) part[j] = merged(up_to_rows, part[j]);
      }
      // The last element completes the row, whose state is then merged with those of the rows before.
      if (p + 1 == packs && last == row) part[run - 1] = last_of(rows.state(), part[run - 1]);
      const std::size_t first = p * run * w;
      if (last > first && last <= first + run * w) {
        const std::size_t i = last - 1 - first;
        all = extract(part[i % run], i / run);
      }
      Storage result[run];
      for (std::size_t j = 0; j < run; ++j)
        result[j] = (before ? merged(*before, part[j]) : part[j]).result().v;
      join(result, out + first);
    }
  }

  /// Scans the next `size` rows, a run unless they are the last ones, of pack p of the columns.
  template <bool is_whole>
  [[gnu::always_inline]] static void scan_run(const ScannedColumns& b, const Carrier* const (&rows)[run],
                                              std::size_t first, std::size_t size, std::size_t p,
                                              ColumnPack& sums) {
    const std::size_t r = first / row, k = first % row / run, c = p * w, count = is_whole ? w : b.count - c,
                      columns = count < w ? count : w;
    F* const exclusive = b.exclusive ? static_cast<F*>(b.exclusive) + c : nullptr;
    F* out = static_cast<F*>(b.out) + first * b.out_pitch + c;
    Storage element[run];
    for (std::size_t j = 0; j < size; ++j) element[j] = load<is_whole>(rows[j] + c, columns);
    if (exclusive) {
      std::memcpy(static_cast<void*>(out), exclusive, columns * sizeof(F));
      out += b.out_pitch;
    }
    Many sum;
    for (std::size_t j = 0; j < size; ++j) {
      if (j == 0)
        sum = Many{Vector{element[j]}};
      else
        sum.add(Vector{element[j]});
      Many part = j + 1 == run ? sums.runs.push(k, sum) : k == 0 ? sum : merged(sums.runs.state(), sum);
      if (j + 1 == run && k + 1 == PrefixTree::runs)
        part = sums.rows.push(r, part);
      else if (r > 0)
        part = merged(sums.rows.state(), part);
      if (b.states && first + j + 1 == b.n)
        for (std::size_t l = 0; l < columns; ++l) static_cast<One*>(b.states)[c + l] = extract(part, l);
      const Storage result = (b.carry ? merged(sums.before, part) : part).result().v;
      F* const to = exclusive && j + 1 == size ? exclusive : out + j * b.out_pitch;
      if (is_whole) {
        write(result, to);
      } else {
        F results[w];
        write(result, results);
        std::memcpy(static_cast<void*>(to), results, columns * sizeof(F));
      }
    }
  }
  template <bool is_whole> [[gnu::always_inline]] static Storage load(const Carrier* x, std::size_t n) {
    Storage v{};
    std::memcpy(&v, x, is_whole ? sizeof v : n * sizeof(Carrier));
    return v;
  }

  static Many merged(Many left, const Many& right) {
    left.merge(right);
    return left;
  }

  /// Applies f to each number of a state, which is stored as one register per number.
  template <class Function>
  [[gnu::always_inline]] static Many each(const Many& a, const Many& b, Function f) {
    Storage of_a[numbers], of_b[numbers];
    std::memcpy(of_a, &a, sizeof a);
    std::memcpy(of_b, &b, sizeof b);
    for (std::size_t k = 0; k < numbers; ++k) of_a[k] = f(of_a[k], of_b[k]);
    Many all;
    std::memcpy(&all, of_a, sizeof all);
    return all;
  }
  /// Sklansky's scan of the lanes of each pack: at each level, the lanes of a right half merge the last lane
  /// of their left half.
  template <int half, std::size_t size> [[gnu::always_inline]] static void scan_lanes(Many (&pack)[size]) {
    if constexpr (half < width) {
      for (std::size_t p = 0; p < size; ++p) {
        const Many left = each(pack[p], pack[p], [](Storage a, Storage) {
          return [&]<int... l>(std::integer_sequence<int, l...>) {
            return __builtin_shufflevector(a, a, (l & half ? l / half * half - 1 : l)...);
          }
          (std::make_integer_sequence<int, width>{});
        });
        pack[p] = each(pack[p], merged(left, pack[p]), [](Storage a, Storage b) {
          return [&]<int... l>(std::integer_sequence<int, l...>) {
            return __builtin_shufflevector(a, b, (l & half ? width + l : l)...);
          }
          (std::make_integer_sequence<int, width>{});
        });
      }
      scan_lanes<2 * half>(pack);
    }
  }
  /// The last lane of a in each lane.
  static Many all_last(const Many& a) {
    return each(a, a, [](Storage v, Storage) {
      return [&]<int... l>(std::integer_sequence<int, l...>) {
        return __builtin_shufflevector(v, v, (l * 0 + width - 1)...);
      }
      (std::make_integer_sequence<int, width>{});
    });
  }
  /// The last lane of a, then all lanes of b but its last.
  static Many shifted(const Many& a, const Many& b) {
    return each(a, b, [](Storage v, Storage u) {
      return [&]<int... l>(std::integer_sequence<int, l...>) {
        return __builtin_shufflevector(v, u, (width - 1 + l)...);
      }
      (std::make_integer_sequence<int, width>{});
    });
  }
  /// The first lane of a, and the others of b.
  static Many first_of(const Many& a, const Many& b) {
    return each(a, b, [](Storage v, Storage u) {
      return [&]<int... l>(std::integer_sequence<int, l...>) {
        return __builtin_shufflevector(v, u, (l == 0 ? 0 : width + l)...);
      }
      (std::make_integer_sequence<int, width>{});
    });
  }
  /// The last lane of a, and the others of b.
  static Many last_of(const Many& a, const Many& b) {
    return each(a, b, [](Storage v, Storage u) {
      return [&]<int... l>(std::integer_sequence<int, l...>) {
        return __builtin_shufflevector(v, u, (l + 1 == width ? l : width + l)...);
      }
      (std::make_integer_sequence<int, width>{});
    });
  }
  static Many broadcast(const One& one) {
    Carrier number[numbers];
    Storage all[numbers];
    std::memcpy(number, &one, sizeof one);
    for (std::size_t k = 0; k < numbers; ++k) all[k] = Vector::broadcast(number[k]).v;
    Many many;
    std::memcpy(&many, all, sizeof many);
    return many;
  }
  /// The states of up to w columns.
  static Many gather(const One* states, std::size_t n) {
    Carrier number[numbers * w] = {}, one[numbers];
    for (std::size_t l = 0; l < w && l < n; ++l) {
      std::memcpy(one, states + l, sizeof one);
      for (std::size_t k = 0; k < numbers; ++k) number[k * w + l] = one[k];
    }
    Many many;
    std::memcpy(&many, number, sizeof many);
    return many;
  }
  static One extract(const Many& many, std::size_t lane) {
    Carrier number[numbers * w], one[numbers];
    std::memcpy(number, &many, sizeof many);
    for (std::size_t k = 0; k < numbers; ++k) one[k] = number[k * w + lane];
    One state;
    std::memcpy(&state, one, sizeof state);
    return state;
  }

  /// Interleaves the lanes of the lower (`half` = 0) or upper halves of a and b.
  template <int half> static Storage in_turn(Storage a, Storage b) {
    return [&]<int... l>(std::integer_sequence<int, l...>) {
      return __builtin_shufflevector(a, b, (half * (width / 2) + l / 2 + l % 2 * width)...);
    }
    (std::make_integer_sequence<int, width>{});
  }
  /// Element j of each of `width` runs.
  static void split(const Carrier* x, Storage (&element)[run]) {
    Storage four[run];
    for (std::size_t j = 0; j < run; ++j) four[j] = load<true>(x + j * w, w);
    const Storage even[2] = {every_second<0>(four[0], four[1]), every_second<0>(four[2], four[3])},
                  odd[2] = {every_second<1>(four[0], four[1]), every_second<1>(four[2], four[3])};
    element[0] = every_second<0>(even[0], even[1]);
    element[1] = every_second<0>(odd[0], odd[1]);
    element[2] = every_second<1>(even[0], even[1]);
    element[3] = every_second<1>(odd[0], odd[1]);
  }
  /// Writes result j of each of `width` runs.
  static void join(const Storage (&result)[run], F* out) {
    const Storage even[2] = {in_turn<0>(result[0], result[2]), in_turn<1>(result[0], result[2])},
                  odd[2] = {in_turn<0>(result[1], result[3]), in_turn<1>(result[1], result[3])};
    write(in_turn<0>(even[0], odd[0]), out);
    write(in_turn<1>(even[0], odd[0]), out + w);
    write(in_turn<0>(even[1], odd[1]), out + 2 * w);
    write(in_turn<1>(even[1], odd[1]), out + 3 * w);
  }
  /// Writes numbers that F holds; NaN becomes the canonical one.
  static void write(Storage v, F* out) {
    const auto bits = narrow_lanes<F>(Pack<Carrier, width>{v});
    std::memcpy(static_cast<void*>(out), &bits, sizeof bits);
  }
};

}  // namespace
}  // namespace samesum::cpu
