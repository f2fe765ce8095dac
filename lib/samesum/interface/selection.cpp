/// Definitions of selection.hpp.
#include "samesum/catalogue/selection.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/loops/kernels.hpp"
#include "samesum/backend/cpu/schedule/methods.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/base/environment.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum {
namespace {

/// Elements that are packed at a time: in fp64 they fit the second-level cache.
constexpr std::size_t portion = cpu::most_selected;
/// Portions of a long vector that one task reduces to a state.
constexpr std::size_t portions_per_task = 8;

std::unique_ptr<std::byte[]> room_for(std::size_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

/// Elements in a row or column of an array: those from `first` on, `stride` apart.
struct Stretch {
  std::size_t first, n, stride = 1;
};

/// The elements of which some take part.
struct Elements {
  Values x, y;
  const std::uint8_t* where;  ///< null if all do
  bool skip_nan;

  std::size_t bytes() const { return x.format->bytes; }

  /// Calls visit(k, takes) for each element k of a stretch, in order. Without a branch, which could not be
  /// predicted.
  template <class T, class Visit> void for_each(Stretch s, Visit visit) const {
    const auto *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
    const bool skips_of_y = skip_nan && b;
    for (std::size_t k = 0, i = s.first; k < s.n; ++k, i += s.stride)
      visit(k, (!where || where[i] != 0) & !(skip_nan && is_nan_bits<T>(to_bits(a[i]))) &
                   !(skips_of_y && is_nan_bits<T>(to_bits(b[i]))));
  }

  /// Packs the elements of a stretch that take part, and returns how many do. `to_y` is used if y is given.
  std::size_t pack(Stretch s, std::byte* to_x, std::byte* to_y) const {
    return with_format(*x.format, [&]<class T>() {
      const auto *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
      auto *p = reinterpret_cast<T*>(to_x), *q = reinterpret_cast<T*>(to_y);
      std::size_t count = 0;
      // Each element is written, and perhaps overwritten.
      for_each<T>(s, [&](std::size_t k, bool takes) {
        p[count] = a[s.first + k * s.stride];
        if (b) q[count] = b[s.first + k * s.stride];
        count += takes;
      });
      return count;
    });
  }

  /// Writes for each element of a stretch whether it takes part.
  void flag(Stretch s, std::uint8_t* flags) const {
    with_format(*x.format,
                [&]<class T>() { for_each<T>(s, [&](std::size_t k, bool takes) { flags[k] = takes; }); });
  }

  /// The place in a stretch of the element that is number `index` of those that take part.
  std::size_t place_of(std::size_t index, Stretch s) const {
    std::size_t place = 0;
    with_format(*x.format, [&]<class T>() {
      for_each<T>(s, [&](std::size_t k, bool takes) {
        if (takes && index-- == 0) place = k;
      });
    });
    return place;
  }
};

/// Room for packed elements of one or two inputs.
class Packed {
 public:
  Packed(const Elements& from, std::size_t most)
      : from_{from},
        x_{room_for(most * from.bytes())},
        y_{room_for(from.y.is_given() ? most * from.bytes() : 0)} {}
  /// Appends the elements of a stretch that take part.
  void append(Stretch s) {
    const std::size_t at = size_ * from_.bytes();
    size_ += from_.pack(s, x_.get() + at, from_.y.is_given() ? y_.get() + at : nullptr);
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  Values x() const { return {*from_.x.format, x_.get(), size_}; }
  Values y() const { return from_.y.is_given() ? Values{*from_.x.format, y_.get(), size_} : Values{}; }
  std::byte* data() { return x_.get(); }

 private:
  const Elements& from_;
  std::unique_ptr<std::byte[]> x_, y_;
  std::size_t size_ = 0;
};

/// A call and the elements that take part in it. The call itself, valid and normalised, has all elements.
class Selected {
 public:
  explicit Selected(const Call& call)
      : call_{call}, elements_{call.x, call.y, call.options.where.data, call.options.skip_nan} {
    call_.options = of_all_elements(call.options);
    call_ = normalised(call_);
  }

  /// Runs the call. Returns whether a sum overflowed.
  bool run() {
    if (call_.keys.is_given())
      reduce_by_key();
    else if (method().has_result_per_element)
      scan();
    else
      reduce();
    return overflowed_;
  }

 private:
  const Method& method() const { return *call_.method; }
  const Layout& layout() const { return call_.layout; }
  const PartialForm* form() const { return Code::of(method()).partial_form; }

  /// The elements of result number r.
  Stretch elements_of(std::size_t r) const {
    const std::size_t o = r / layout().inner, i = r % layout().inner;
    return {layout().first(o) + i, layout().length(o), layout().stride};
  }
  /// The place of result number r.
  Results result(std::size_t r, std::size_t count = 1) const {
    const std::size_t numbers = static_cast<std::size_t>(method().results);
    return {call_.out.format, static_cast<std::byte*>(call_.out.data) + r * method().result_bytes(),
            count * numbers};
  }

  /// Runs a call on packed elements.
  void run_packed(Call packed, int threads) {
    packed.options.threads = threads;
    HostRun run{normalised(packed)};
    Code::of(method()).backend->run(run);
    if (run.overflowed) overflowed_ = true;
  }

  /// Replaces the index of a packed element by its place in x.
  void restore_index(std::size_t r) {
    if (!method().returns_index) return;
    std::int64_t& index = *static_cast<std::int64_t*>(result(r).data);
    if (index >= 0)
      index = static_cast<std::int64_t>(elements_.place_of(static_cast<std::size_t>(index), elements_of(r)));
  }

  void reduce() {
    const std::size_t results = layout().results();
    if (results == 0) return;
    if (finds_extremum() && !elements_.where) return skip_in_place();
    const std::size_t elements = elements_of_all(), longest = layout().offsets ? 0 : layout().n;
    if (can_stay() && (are_rows() ? longest <= portion : are_columns())) return reduce_in_place(elements);
    if (longest > portion) {
      for (std::size_t r = 0; r < results; ++r) reduce_long(r);
      return;
    }
    const std::size_t step = std::max<std::size_t>(1, portion * results / std::max<std::size_t>(1, elements)),
                      blocks = (results + step - 1) / step;
    cpu::for_each_task(cpu::thread_count(call_.options.threads, elements, blocks), blocks,
                       [&](std::size_t b) {
                         const std::size_t first = b * step, count = std::min(step, results - first);
                         std::size_t most = 0;
                         for (std::size_t r = first; r < first + count; ++r) most += elements_of(r).n;
                         reduce_results(first, count, most, blocks == 1 ? call_.options.threads : 1);
                       });
  }

  /// Number of elements of all results.
  std::size_t elements_of_all() const {
    if (!layout().offsets) return layout().n * layout().results();
    return layout().offsets[layout().outer] - layout().offsets[0];
  }

  /// What the method adds if it is an exact sum or mean of elements, by this backend's own loops.
  const ExactKind* adds_elements() const {
    const std::optional<ExactKind>& adds = Code::of(method()).adds;
    const bool is_exact = method().backend == "cpu" && method().accumulator == "exact";
    return is_exact && adds && adds->term == Term::element && !adds->moments ? &*adds : nullptr;
  }
  bool is_smallest() const { return method().operation == Min::name || method().operation == ArgMin::name; }
  /// Whether the method finds an extremum, or its index, by this backend's own loops.
  bool finds_extremum() const {
    const bool is_largest = method().operation == Max::name || method().operation == ArgMax::name;
    return method().backend == "cpu" && (is_largest || is_smallest());
  }
  /// Whether something can stand in for elements that take no part, so that the others need not move.
  bool can_stay() const { return adds_elements() || finds_extremum(); }
  /// The bits of an element that stands in for others: it adds nothing, or is what every number replaces.
  std::uint64_t stand_in() const {
    return with_format(*call_.x.format, [&]<class T>() {
      std::uint64_t bits = finds_extremum() ? Format<T>::infinity : 0;
      if (!finds_extremum() || !is_smallest()) bits |= Format<T>::sign_bit;
      return bits;
    });
  }
  bool are_rows() const { return !layout().offsets && layout().inner == 1 && layout().stride == 1; }
  /// Whether there are blocks of neighbouring columns that are not too long.
  bool are_columns() const {
    return layout().inner >= least_columns && layout().n <= portion / least_columns;
  }
  static constexpr std::size_t least_columns = 8, least_counted = 64;

  /// Finds extrema by loops that skip NaN.
  void skip_in_place() {
    Call all = call_;
    all.options.skip_nan = true;
    HostRun run{all};
    Code::of(method()).backend->run(run);
  }

  /// Reduces blocks of rows, or of neighbouring columns, in which something stands in for elements that take
  /// no part.
  void reduce_in_place(std::size_t elements) {
    const Layout& l = layout();
    const bool rows = are_rows();
    const std::size_t along = rows ? l.outer : l.inner,
                      step = std::min(along, std::max<std::size_t>(rows ? 1 : least_columns,
                                                                   portion / std::max<std::size_t>(1, l.n))),
                      blocks = (along + step - 1) / step, all = rows ? blocks : blocks * l.outer;
    cpu::for_each_task(cpu::thread_count(call_.options.threads, elements, all), all, [&](std::size_t b) {
      const std::size_t first = b % blocks * step;
      reduce_block(rows ? 0 : b / blocks, first, std::min(step, along - first),
                   all == 1 ? call_.options.threads : 1);
    });
  }
  /// Reduces a block of rows, or of columns of matrix o.
  void reduce_block(std::size_t o, std::size_t first, std::size_t count, int threads) {
    const Layout& l = layout();
    const bool rows = are_rows(), is_mean = adds_elements() && adds_elements()->mean;
    const std::size_t r = o * l.inner + first;
    const std::unique_ptr<std::byte[]> room = room_for(l.n * count * elements_.bytes());
    std::vector<std::size_t> counts;  // not of short rows, which are kept as one
    if (!rows)
      keep(l.first(o) + first, l.stride, l.n, count, room.get(), &counts);
    else if (is_mean || l.n >= least_counted)
      for (std::size_t k = 0; k < count; ++k)
        counts.push_back(keep(l.first(first + k), 0, 1, l.n, room.get() + k * l.n * elements_.bytes()));
    else if (l.outer_stride == l.n)
      keep(l.first(first), 0, 1, count * l.n, room.get());
    else
      keep(l.first(first), l.outer_stride, count, l.n, room.get());
    // With +0 in it, the sum of a result without elements is +0.
    for (std::size_t k = 0; adds_elements() && k < counts.size(); ++k)
      if (counts[k] == 0 && l.n > 0)
        std::memset(room.get() + k * (rows ? l.n : 1) * elements_.bytes(), 0, elements_.bytes());
    if (is_mean) return find_means(r, count, room.get(), counts);
    Call part = call_;
    part.x = {*call_.x.format, room.get(), l.n * count};
    part.layout = rows ? Layout::rows(count, l.n) : Layout::axis(1, l.n, count);
    part.out = result(r, count);
    run_packed(part, threads);
    for (std::size_t k = 0; k < count; ++k)
      if (method().returns_index)
        check_index(r + k);
      else if (adds_elements() && counts.empty())
        clear_if_empty(r + k);
  }
  /// Writes the means of a block, from number r on. Those that words do not tell are found from packed
  /// elements.
  void find_means(std::size_t r, std::size_t count, const std::byte* block,
                  const std::vector<std::size_t>& counts) {
    constexpr std::size_t at_once = 64;
    const std::size_t n = layout().n;
    cpu::ExactSums sums[at_once];
    for (std::size_t k = 0; k < count; k += at_once) {
      const std::size_t some = n == 0 ? 0 : std::min(at_once, count - k);
      with_format(*call_.x.format, [&]<class T>() {
        const T* const x = reinterpret_cast<const T*>(block) + k * (are_rows() ? n : 1);
        if (some > 0)
          cpu::sum_exactly<T>(*adds_elements(), are_rows(), x, nullptr, some, n, are_rows() ? n : count,
                              sums);
      });
      with_format(*call_.out.format, [&]<class F>() {
        for (std::size_t i = 0; i < std::min(at_once, count - k); ++i) {
          const std::size_t at = r + k + i, taking = counts[k + i];
          if (taking == 0 || !cpu::round_sum(sums[i], taking, true, *static_cast<F*>(result(at).data)))
            reduce_results(at, 1, n, 1);
        }
      });
    }
  }
  /// Replaces the sum -0 of no elements by +0.
  void clear_if_empty(std::size_t r) const {
    with_format(*call_.out.format, [&]<class F>() {
      F& sum = *static_cast<F*>(result(r).data);
      if (to_bits(sum) == Format<F>::sign_bit && !any_takes(elements_of(r))) sum = from_bits<F>(0);
    });
  }
  bool any_takes(Stretch s) const {
    bool any = false;
    with_format(*call_.x.format,
                [&]<class T>() { elements_.for_each<T>(s, [&](std::size_t, bool takes) { any |= takes; }); });
    return any;
  }
  /// Finds an index again if it is that of an element which stands in for others.
  void check_index(std::size_t r) {
    const std::int64_t index = *static_cast<const std::int64_t*>(result(r).data);
    const Stretch all = elements_of(r);
    if (index >= 0 && !any_takes({all.first + static_cast<std::size_t>(index) * all.stride, 1}))
      reduce_in_parallel(r, false);
  }

  /// Reduces `count` results from number `first` on, which have `most` elements, as segments.
  void reduce_results(std::size_t first, std::size_t count, std::size_t most, int threads) {
    Packed packed{elements_, most};
    std::vector<std::uint64_t> offsets(count + 1);
    for (std::size_t r = 0; r < count; ++r) {
      packed.append(elements_of(first + r));
      offsets[r + 1] = packed.size();
    }
    Call part = call_;
    part.x = packed.x();
    part.y = packed.y();
    part.layout = count == 1 ? Layout::vector(packed.size()) : Layout::segments(offsets.data(), count);
    part.out = result(first, count);
    run_packed(part, threads);
    for (std::size_t r = first; r < first + count; ++r) restore_index(r);
  }

  /// Reduces one long result.
  void reduce_long(std::size_t r) {
    const Stretch all = elements_of(r);
    if (!form() || (method().takes_grid && !call_.options.grid))
      return reduce_results(r, 1, all.n, call_.options.threads);
    if (const ExactKind* const adds = adds_elements(); adds && all.stride == 1) return sum_exactly(r, *adds);
    const bool stays =
        method().accumulator == "exact" && !call_.y.is_given();  // to an exact sum, -0 adds nothing
    if (form()->leaf == 0)
      return reduce_in_parallel(r, elements_of(r).stride == 1 && (stays || finds_extremum()));
    Partial partial{method(), 0, call_.options.grid};
    Packed packed{elements_, portion};
    for (std::size_t k = 0; k < all.n; k += portion) {
      packed.clear();
      packed.append({all.first + k * all.stride, std::min(portion, all.n - k), all.stride});
      partial.add(packed.x(), packed.y(), call_.options);
    }
    partial.finish(result(r), call_.options);
  }

  /// Sums the elements of one result exactly, or finds their mean.
  void sum_exactly(std::size_t r, ExactKind kind) {
    const Stretch all = elements_of(r);
    const Values x{*call_.x.format,
                   static_cast<const std::byte*>(call_.x.data) + all.first * elements_.bytes(), all.n};
    cpu::SelectedSum sum = cpu::sum_selected(x, elements_.where ? elements_.where + all.first : nullptr,
                                             elements_.skip_nan, call_.options.threads);
    ExactBatchState state;
    state.terms.sum = sum.sum;
    state.finish(kind, *method().format, sum.count, 0, 0, result(r).data);
  }

  /// The state of a part of a result, and its number of elements.
  struct State {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t count = 0;
  };

  /// Takes the next elements into a state of a method whose order is free.
  void add(State& state, const Values& x, const Values& y, std::size_t count) {
    if (count == 0) return;
    Call part = call_;
    part.x = x;
    part.y = y;
    part.layout = Layout::vector(x.size);
    part.options.threads = 1;
    std::unique_ptr<std::byte[]> room = room_for(form()->state_bytes);
    part.out = {nullptr, room.get(), 0};
    HostRun run{part, true};
    Code::of(method()).backend->run(run);
    merge(state, {std::move(room), count});
  }
  /// Appends a state of later elements.
  void merge(State& state, State next) {
    if (next.count == 0) return;
    if (form()->move_index) form()->move_index(next.bytes.get(), state.count);
    if (state.count == 0)
      state.bytes = std::move(next.bytes);
    else
      form()->merge(state.bytes.get(), next.bytes.get());
    state.count += next.count;
  }

  /// Reduces one result by a method whose order is free. If `stay`, its elements are contiguous and do not
  /// move.
  void reduce_in_parallel(std::size_t r, bool stay) {
    const Stretch all = elements_of(r);
    constexpr std::size_t task = portion * portions_per_task;
    std::vector<State> states((all.n + task - 1) / task);
    cpu::for_each_task(
        cpu::thread_count(call_.options.threads, all.n, states.size()), states.size(), [&](std::size_t t) {
          Packed packed{elements_, portion};
          const std::size_t end = std::min(all.n, (t + 1) * task);
          for (std::size_t k = t * task; k < end; k += portion) {
            const Stretch part{all.first + k * all.stride, std::min(portion, end - k), all.stride};
            if (stay) {
              const std::size_t count = keep(part.first, 0, 1, part.n, packed.data());
              // An index counts what stands in for others, too.
              add(states[t], {*call_.x.format, packed.data(), part.n}, {}, finds_extremum() ? part.n : count);
            } else {
              packed.clear();
              packed.append(part);
              add(states[t], packed.x(), packed.y(), packed.size());
            }
          }
        });
    State whole;
    for (State& state : states) merge(whole, std::move(state));
    if (whole.count > 0 && form()->overflows && form()->overflows(whole.bytes.get(), whole.count))
      overflowed_ = true;
    form()->finish({call_.options.ddof, call_.options.grid.value_or(0)},
                   whole.count > 0 ? whole.bytes.get() : nullptr, whole.count, result(r).data);
    if (!stay)
      restore_index(r);
    else if (method().returns_index)
      check_index(r);
  }

  /// Copies rows of `count` elements from `first` on, with stand-ins for those that take no part, and returns
  /// how many do. If `counts` is given, it becomes those of the columns.
  std::size_t keep(std::size_t first, std::size_t pitch, std::size_t rows, std::size_t count, std::byte* to,
                   std::vector<std::size_t>* counts = nullptr) const {
    return with_format(*call_.x.format, [&]<class T>() {
      constexpr std::size_t pack = cpu::SelectedRows::pack;
      std::vector<BitsOf<T>> of_columns(counts ? (count + pack - 1) / pack * pack : 0);
      const std::size_t all = cpu::kernels(Formats::index_of<T>())
                                  .keep_selected({static_cast<const T*>(call_.x.data) + first,
                                                  elements_.where ? elements_.where + first : nullptr, pitch,
                                                  rows, count, elements_.skip_nan, stand_in()},
                                                 to, counts ? of_columns.data() : nullptr);
      if (counts) counts->assign(of_columns.begin(), of_columns.begin() + static_cast<std::ptrdiff_t>(count));
      return all;
    });
  }

  /// Scans each vector: its packed elements, whose results then go to all places.
  void scan() {
    const std::size_t results = layout().results();
    if (results == 0) return;
    cpu::for_each_task(cpu::thread_count(call_.options.threads, results * layout().n, results), results,
                       [&](std::size_t r) { scan_vector(r, results == 1 ? call_.options.threads : 1); });
  }
  void scan_vector(std::size_t r, int threads) {
    const Stretch all = elements_of(r);
    const std::size_t bytes = call_.out.format->bytes, o = r / layout().inner, i = r % layout().inner;
    Packed packed{elements_, all.n};
    // x may be overwritten by the results.
    const auto takes = std::make_unique_for_overwrite<std::uint8_t[]>(all.n);
    elements_.flag(all, takes.get());
    packed.append(all);
    // One result more, that of no elements, comes first.
    const std::unique_ptr<std::byte[]> of_packed = room_for((packed.size() + 1) * bytes);
    const std::uint64_t zero = 0;
    const auto scan_part = [&](const Values& x, bool exclusive, std::size_t at, int threads_of_part) {
      Call part = call_;
      part.options.exclusive = exclusive;
      part.x = x;
      part.layout = Layout::vector(x.size);
      part.out = {call_.out.format, of_packed.get() + at * bytes, x.size, 0};
      run_packed(part, threads_of_part);
    };
    // If the last element takes part, no exclusive result contains it: then its sum must not overflow a grid.
    if (call_.options.exclusive && all.n > 0 && takes[all.n - 1] != 0) {
      scan_part(packed.x(), true, 0, threads);
    } else {
      scan_part({*call_.x.format, &zero, 1}, true, 0, 1);
      if (packed.size() > 0) scan_part(packed.x(), false, 1, threads);
    }
    with_format(*call_.out.format, [&]<class F>() {
      auto* out = static_cast<F*>(call_.out.data) + o * call_.out.row_stride + i;
      const auto* const of_first = reinterpret_cast<const F*>(of_packed.get());
      std::size_t before = 0;
      for (std::size_t k = 0; k < all.n; ++k, out += layout().inner) {
        const std::size_t after = before + takes[k];
        *out = of_first[call_.options.exclusive ? before : after];
        before = after;
      }
    });
  }

  /// Packs pairs of a key and an element. Rows of several elements become pairs of their own: element i of a
  /// row with key k has the key k·inner + i. A result still has at most one element of each row.
  void reduce_by_key() {
    const std::size_t inner = layout().inner, n = call_.keys.size, results = call_.out.size;
    const bool counts = method().inputs == 0;
    std::vector<std::int64_t> keys;
    std::size_t rows = 0, end_of_row = 0;  // rows of which an element takes part, and where the last one ends
    const auto take = [&](std::size_t at) {
      const std::size_t place = at / inner;
      const std::uint64_t key = key_at(call_.keys.format, call_.keys.data, place);
      if (key >= results / inner) refuse(method(), message_of_bad_key(place, key, results / inner));
      if (at >= end_of_row) end_of_row = (place + 1) * inner, ++rows;
      keys.push_back(static_cast<std::int64_t>(key * inner + at % inner));
    };
    std::optional<Packed> packed;
    if (counts) {
      for (std::size_t k = 0; k < n; ++k)
        if (elements_.where[k]) take(k);
    } else {
      packed.emplace(elements_, n * inner);
      packed->append({0, n * inner});
      with_format(*call_.x.format, [&]<class T>() {
        elements_.for_each<T>({0, n * inner}, [&](std::size_t at, bool takes) {
          if (takes) take(at);
        });
      });
    }
    Call part = call_;
    if (packed) part.x = packed->x();
    part.keys = Keys{std::span<const std::int64_t>{keys}};
    part.most_terms = rows;
    part.layout = Layout::vector(keys.size());
    run_packed(part, call_.options.threads);
  }

  Call call_;
  Elements elements_;
  std::atomic<bool> overflowed_ = false;
};

}  // namespace

std::string selection_error(const Call& call) {
  const Method& m = *call.method;
  const Mask& where = call.options.where;
  if (m.keeps_format) return "where and skip_nan are for reductions and scans; leave them out";
  if (m.inputs == 0 && call.options.skip_nan)
    return "skip_nan is for elements; the method counts keys, so leave it out";
  const std::size_t flags = m.inputs == 0 ? call.keys.size : call.x.size;
  if (where.is_given() && where.size != flags)
    return "where has " + std::to_string(where.size) + " flags; pass " + std::to_string(flags) +
           (m.inputs == 0 ? ", one for each key" : ", one for each element of x");
  if (where.is_given() && where.size > 0 && where.data == nullptr) return "where is null; pass its address";
  return {};
}

void run_selected(const Call& call) {
  const FloatingPointEnvironment environment;
  Call all = call;
  all.options = of_all_elements(call.options);
  std::string wrong = validation_error(all, true);
  if (wrong.empty()) wrong = selection_error(call);
  if (!wrong.empty()) refuse(*call.method, wrong);
  HostRun run{normalised(call)};
  if (!Code::of(*call.method).backend->run_selected(run)) run.overflowed = Selected{call}.run();
  refuse_what_failed(run);
}

void add_selected(Partial& partial, const Values& x, const Values& y, const Options& options) {
  const FloatingPointEnvironment environment;
  check_portion(partial, x, y);
  Call call = call_for_state(partial.method(), x, y, options);
  if (const std::string wrong = selection_error(call); !wrong.empty()) refuse(partial.method(), wrong);
  const Options all = of_all_elements(options);
  if (const auto there = Code::of(partial.method()).backend->packed(x, y, options))
    return partial.add(there->x.values, there->y.values, all);
  const Elements elements{x, y, options.where.data, options.skip_nan};
  Packed packed{elements, x.size};
  packed.append({0, x.size});
  partial.add(packed.x(), packed.y(), all);
}

}  // namespace samesum
