#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <new>
#include <numeric>

#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/call/windows.hpp"
#include "samesum/samesum.hpp"
#include "tool/commands.hpp"
#include "tool/output_npy.hpp"

namespace samesum::harness {
namespace {

using Lengths = std::vector<std::uint64_t>;

std::size_t product(std::span<const std::uint64_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{1}, std::multiplies<std::size_t>{});
}

InputArray read_array(const std::vector<std::string>& files, const FormatInfo* format,
                      const TableOptions& table) {
  const std::unique_ptr<ElementReader> elements = open_elements(files, format, table);
  InputArray a{read_all(*elements), elements->shape()};
  if (a.shape.size() < 2) a.shape = {a.column.size()};
  return a;
}

/// Leaves out the elements of one input whose record was left out of the other, so that the pairs are pairs
/// of records.
void keep_pairs(InputArray& x, InputArray& y, const std::vector<std::string>& files,
                const TableOptions& table) {
  if (x.column.places.empty() && y.column.places.empty()) return;
  for (Column* c : {&x.column, &y.column})
    if (c->places.empty() && c->size() > 0) {
      c->places.resize(c->size());
      std::iota(c->places.begin(), c->places.end(), std::uint64_t{0});
      c->records = c->size();
    }
  if (x.column.records != y.column.records)
    throw InputError{files[1], "has " + std::to_string(y.column.records) + " records, and the first file " +
                                   std::to_string(x.column.records) + "; name two with a record per pair"};
  const std::span a = x.column.places, b = y.column.places;
  if (std::ranges::equal(a, b)) return;
  if (!table.skip_missing && table.where.empty())
    throw InputError{files[1],
                     "its empty lines are others than those of the first file; pass --skip-missing "
                     "to leave out pairs that lack a number"};
  std::vector<std::size_t> of_x, of_y;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) {
      of_x.push_back(i);
      of_y.push_back(k);
    }
    const bool x_is_behind = a[i] <= b[k], y_is_behind = b[k] <= a[i];
    i += x_is_behind;
    k += y_is_behind;
  }
  keep_elements(x.column, of_x);
  keep_elements(y.column, of_y);
  for (InputArray* const array : {&x, &y})
    if (array->shape.size() == 1) array->shape = {of_x.size()};
  y.column.notes.push_back(printable(files[0]) + ", " + printable(files[1]) + ": " +
                           std::to_string(of_x.size()) + (of_x.size() == 1 ? " pair is" : " pairs are") +
                           " left: a record that one file leaves out is left out of both");
}

/// Returns the number of the reduced axis of an array with that shape.
std::size_t axis_of(const std::string& text, const Lengths& shape) {
  const auto count = static_cast<long>(shape.size());
  const std::string have = "FILE has " + std::to_string(count) + (count == 1 ? " axis" : " axes");
  if (text == "rows" || text == "columns") {
    if (count != 2)
      throw UsageError{"--axis: " + have + "; " + text + " are those of an array with 2; give a number"};
    return text == "rows" ? 1 : 0;
  }
  long axis = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), axis);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UsageError{"--axis: '" + printable(text) + "' is not an axis; give rows, columns or a number"};
  if (axis < -count || axis >= count)
    throw UsageError{"--axis: " + text + " is out of range; " + have +
                     ", of which the first is 0 and the last -1"};
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

/// Whether a method adds integers unrounded.
bool adds_lost(const Method& method) { return method.operation == "sum" && method.accumulator == "exact"; }

/// Whether each element has a result of its own, which is that of elements around it.
bool has_table(const Method& method) { return method.has_result_per_element && !method.keeps_format; }

/// A reduction of the arrays, its results, and bounds on their errors.
class Reduction {
 public:
  Reduction(const ReduceOptions& options, const Method& method, const InputArray& x, const InputArray* y)
      : method_{method},
        x_{x.column.values()},
        shape_{x.shape},
        ddof_{options.ddof},
        exclusive_{options.exclusive},
        grid_{options.grid},
        how_{options.threads, ddof_, options.exclusive, grid_} {
    how_.window = options.window;
    how_.min_periods = options.min_periods;
    how_.centred = options.centred;
    if (options.axis.empty() && !method.keeps_format) {
      layout_ = Layout::vector(x_.size);
      shape_ = has_table(method) ? Lengths{x_.size} : Lengths{};
    } else {
      if (product(shape_) != x_.size)
        throw UsageError{"--skip-missing: without its NaNs, an array of " + std::to_string(shape_.size()) +
                         " axes has none; leave out --skip-missing, or reduce all elements"};
      const std::size_t axis = options.axis.empty() ? shape_.size() - 1 : axis_of(options.axis, shape_);
      const std::span all{shape_};
      layout_ = Layout::axis(product(all.first(axis)), shape_[axis], product(all.subspan(axis + 1)));
      if (method.keeps_format && layout_.inner != 1)
        throw UsageError{"--axis: " + method.operation + " reduces rows only; give rows or -1"};
      if (!method.has_result_per_element) shape_.erase(shape_.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    n_ = layout_.n;
    if (adds_lost(method) && !x.column.lost.empty()) append_lost(x.column);
    const auto per_result = static_cast<std::size_t>(method.results);
    const std::size_t count = method.has_result_per_element ? x_.size : layout_.results() * per_result;
    bytes_.resize(count * (format() ? format()->bytes : sizeof(std::int64_t)));
    const Results out{format(), bytes_.data(), count};
    if (y) {
      y_ = y->column.values();
      reduce(method, x_, *y_, layout_, out, how_);
    } else {
      reduce(method, x_, layout_, out, how_);
    }
  }

  const Method& method() const { return method_; }
  std::size_t n() const { return n_; }  ///< number of elements per result; for a scan of the last
  const FormatInfo& input() const { return *x_.format; }
  const Lengths& shape() const { return shape_; }  ///< of the results
  std::size_t results() const { return has_table(method_) ? x_.size : layout_.results(); }
  /// nullptr for indices
  const FormatInfo* format() const { return method_.result_format(*x_.format); }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Number i of the results, which are pairs for moments.
  Number number(std::size_t i) const {
    return with_format(*format(),
                       [&]<class F>() { return Number::of(reinterpret_cast<const F*>(bytes_.data())[i]); });
  }
  std::int64_t index(std::size_t i) const { return reinterpret_cast<const std::int64_t*>(bytes_.data())[i]; }
  /// The square root of variance i, rounded to its format.
  Number deviation(std::size_t i) const {
    const double root = std::sqrt(number(2 * i + 1).to_double());
    return with_format(*format(), [&]<class F>() { return Number::of(convert<F>(root)); });
  }

  /// A bound on the error of result i; for moments of its mean or variance.
  double bound(std::size_t i, std::size_t which = 0) {
    if (magnitudes_.empty()) find_magnitudes();
    if (method_.returns_index) return method_.bound(input(), layout_.n, Number::of(fp64{}), magnitudes_[i]);
    const ResultNumbers result =
        method_.results == 2 ? ResultNumbers{number(2 * i), number(2 * i + 1)} : ResultNumbers{number(i)};
    // All elements of a vector determine the grid that a scan finds.
    const bool on_found_grid = method_.is_scan() && method_.accumulator == "fixed_point" && !grid_;
    return method_.bound(input(), on_found_grid ? layout_.n : elements_of(i), result,
                         on_found_grid ? largest_ : magnitudes_[i],
                         {.result_index = which, .ddof = ddof_, .grid = grid_});
  }
  /// A bound on the error of deviation i: |√v' - √v| = |v' - v| / (√v' + √v), and the root is rounded once to
  /// double and once to the format. The factor covers the roundings of this computation.
  double deviation_bound(std::size_t i) {
    const double variance = number(2 * i + 1).to_double(), error = bound(i, 1);
    if (!(error < std::numeric_limits<double>::infinity())) return error;
    const double roots = std::sqrt(variance) + std::sqrt(std::max(variance - error, 0.0));
    const double of_root = roots > 0 ? error / roots : std::sqrt(error);
    return (of_root + 2 * format()->unit_roundoff * std::sqrt(variance)) * (1 + 0x1p-40);
  }

 private:
  /// Number of elements of result i.
  std::size_t elements_of(std::size_t i) const {
    if (!has_table(method_)) return layout_.n;
    const std::size_t k = i / layout_.inner % layout_.n;
    if (method_.is_scan()) return k + (exclusive_ ? 0 : 1);
    const Windows windows{layout_.n, how_};
    return windows.end(k) - windows.first(k);
  }

  /// Appends what rounding took from the elements of each result to these, as further terms. An array with
  /// `further_lost` is a text, which has one axis.
  void append_lost(const Column& column) {
    const std::span<const double> x = x_.as<double>(), lost = column.lost;
    const std::size_t chunk = layout_.n * layout_.inner;
    for (std::size_t first = 0; first < x.size(); first += chunk)
      for (const std::span<const double> terms : {x, lost})
        terms_.insert(terms_.end(), &terms[first], &terms[first] + chunk);
    terms_.insert(terms_.end(), column.further_lost.begin(), column.further_lost.end());
    x_ = {format_info<fp64>(), terms_.data(), terms_.size()};
    layout_ = Layout::axis(layout_.outer, 2 * layout_.n + column.further_lost.size(), layout_.inner);
  }

  /// Σ|x| per result, for dot Σ|xy|, for a squared norm Σx², rounded up.
  void find_magnitudes() {
    magnitudes_.resize(results());
    const std::span out{magnitudes_};
    if (y_) {
      const Column x = absolute(x_), y = absolute(*y_);
      reduce(find("dot/exact/fp64"), x.values(), y.values(), layout_, out);
    } else if (method_.takes_window) {
      return;  // the bounds need none: a grid is given
    } else if (method_.is_scan()) {
      const Column x = absolute(x_);
      reduce(find("cumsum/exact/fp64"), x.values(), layout_, out, {.exclusive = exclusive_});
      largest_ = (*default_method("max", *x.format))(x.values()).to_double();
    } else if (method_.operation == "squared_norm") {
      reduce(find("squared_norm/exact/fp64"), x_, layout_, out);
    } else {
      reduce(find("sum_of_magnitudes/exact/fp64"), x_, layout_, out);
    }
    for (double& m : magnitudes_) m = std::nextafter(m, std::numeric_limits<double>::infinity());
  }

  const Method& method_;
  Values x_;
  std::optional<Values> y_;
  Lengths shape_;
  Layout layout_;
  double ddof_;
  bool exclusive_;
  std::optional<int> grid_;
  Options how_;
  std::size_t n_ = 0;
  std::vector<double> terms_;  ///< the input and what it lost; empty if it lost nothing
  std::vector<std::byte> bytes_;
  std::vector<double> magnitudes_;
  double largest_ = 0;  ///< for scans: the largest |x|
};

/// One of the numbers that are printed for a result.
struct Field {
  std::string name;
  std::function<Number(std::size_t)> value;
  std::function<double(std::size_t)> bound;
};

std::vector<Field> fields_of(Reduction& r) {
  if (r.method().results == 1)
    return {{"value", [&](std::size_t i) { return r.number(i); }, [&](std::size_t i) { return r.bound(i); }}};
  return {
      {"mean", [&](std::size_t i) { return r.number(2 * i); }, [&](std::size_t i) { return r.bound(i, 0); }},
      {"variance", [&](std::size_t i) { return r.number(2 * i + 1); },
       [&](std::size_t i) { return r.bound(i, 1); }},
      {"standard_deviation", [&](std::size_t i) { return r.deviation(i); },
       [&](std::size_t i) { return r.deviation_bound(i); }}};
}

std::string bound_text(double bound) { return compact(bound, 12, 3); }

std::string as_text(Reduction& r, const ReduceOptions& options) {
  std::string text;
  if (r.method().returns_index) {
    for (std::size_t i = 0; i < r.results(); ++i) text += std::to_string(r.index(i)) + '\n';
    return text;
  }
  const std::vector<Field> fields = fields_of(r);
  const bool is_table = !options.axis.empty() || has_table(r.method());  // a line per result
  for (std::size_t i = 0; i < r.results(); ++i) {
    for (const Field& f : fields) {
      if (fields.size() > 1 && !is_table) text += f.name + ' ';
      const Number value = f.value(i);
      text += options.hex ? hexadecimal(value) : shortest_decimal(value);
      if (options.bound) text += ' ' + bound_text(f.bound(i));
      text += is_table && &f != &fields.back() ? ' ' : '\n';
    }
  }
  return text;
}

Json as_json(Reduction& r, const ReduceOptions& options) {
  Json object = {{"method", r.method().name}, {"input_format", r.input().name}, {"n", r.n()}};
  const bool is_array = !options.axis.empty() || has_table(r.method());
  const auto all = [&](auto of) {
    if (!is_array) return Json(of(std::size_t{0}));
    Json values = Json::array();
    for (std::size_t i = 0; i < r.results(); ++i) values.push_back(of(i));
    return values;
  };
  if (is_array) object["shape"] = r.shape();
  if (r.method().returns_index) {
    object[is_array ? "values" : "value"] = all([&](std::size_t i) { return Json(r.index(i)); });
  } else {
    for (const Field& f : fields_of(r)) {
      const bool is_only = f.name == "value";
      const std::string prefix = is_only ? "" : f.name + "_", ending = is_array ? "s" : "";
      object[is_only ? "value" + ending : f.name] =
          all([&](std::size_t i) { return number_or_null(f.value(i).to_double()); });
      if (!is_array) object[prefix + "bits"] = bit_string(f.value(0));
      object[prefix + "bound" + ending] = all([&](std::size_t i) { return number_or_null(f.bound(i)); });
    }
  }
  object["promise"] = name_of(r.method().promise);
  return object;
}

void check_npy_output(const ReduceOptions& options) {
  if (options.output.empty()) return;
  check_output("--output", options.output, options.files);
  if (!options.output.ends_with(".npy"))
    throw UsageError{"--output: '" + printable(options.output) + "' does not end in .npy"};
}

}  // namespace

const Method& chosen_method(const ReduceOptions& options, const FormatInfo& input) {
  return options.method ? method_named(options.operation, *options.method, input, "--method")
                        : method_without_name(options.operation, input);
}

Column absolute(Values x) {
  Column all{x.format, std::vector<std::byte>(x.size * x.format->bytes)};
  with_format(*x.format, [&]<class F>() {
    std::ranges::transform(x.as<F>(), reinterpret_cast<F*>(all.bytes.data()),
                           [](F e) { return from_bits<F>(BitsOf<F>(to_bits(e) & ~Format<F>::sign_bit)); });
  });
  return all;
}

std::vector<InputArray> read_inputs(const std::string& operation, const std::vector<std::string>& files,
                                    const FormatInfo* format, const TableOptions& table) {
  if (methods(operation).front().inputs == 1) return {read_array(files, format, table)};
  if (files.size() != 2)
    throw UsageError{operation + " takes exactly two files, and " + std::to_string(files.size()) +
                     (files.size() == 1 ? " was given" : " were given")};
  TableOptions with_places = table;
  with_places.pairs = true;
  InputArray x = read_array({files[0]}, format, with_places), y = read_array({files[1]}, format, with_places);
  keep_pairs(x, y, files, table);
  if (y.column.format != x.column.format)
    throw InputError{files[1], "has elements of " + std::string{y.column.format->name} +
                                   ", and the first file of " + std::string{x.column.format->name} +
                                   "; pass --format to convert both"};
  if (y.shape != x.shape)
    throw InputError{files[1], "has " + std::to_string(y.column.size()) + " elements, and the first file " +
                                   std::to_string(x.column.size()) +
                                   " or another shape; name two of one shape"};
  return {x, y};
}

std::vector<std::string> names_of(const std::vector<std::string>& files, const TableOptions& table) {
  std::vector<std::string> names = files;
  if (!table.column.empty())
    for (std::string& name : names) name += ':' + table.column;
  return names;
}

Inputs inputs_of(const std::vector<InputArray>& arrays) {
  return {arrays.front().column.values(),
          arrays.size() > 1 ? std::optional{arrays[1].column.values()} : std::nullopt};
}

Report reduce_command(const ReduceOptions& options) try {
  check_threads(options.threads);
  check_npy_output(options);
  const FormatInfo* format = format_named(options.format);
  check_before_reading(format, [&](const FormatInfo& f) { chosen_method(options, f); });
  const std::vector<InputArray> arrays = read_inputs(options.operation, options.files, format, options.table);
  const InputArray& x = arrays.front();
  const Method& method = chosen_method(options, *x.column.format);
  if (method.keeps_format && options.output.empty())
    throw UsageError{"--output: " + options.operation +
                     " has a result per element; name a .npy file for them"};
  if (const std::string wrong = validation_error(method, Options{.ddof = options.ddof, .grid = options.grid});
      !wrong.empty())
    throw UsageError{"--" + wrong};
  Reduction r{options, method, x, arrays.size() > 1 ? &arrays[1] : nullptr};
  const std::vector<std::string> notes = notes_on(arrays, !adds_lost(method));
  if (!options.output.empty()) {
    Lengths shape = r.shape();
    if (method.results > 1) shape.push_back(static_cast<std::uint64_t>(method.results));
    write_npy(options.output, shape, r.format(), r.bytes());
    return {options.json ? json_line({{"method", method.name},
                                      {"input_format", r.input().name},
                                      {"n", r.n()},
                                      {"shape", shape},
                                      {"output", options.output},
                                      {"promise", name_of(method.promise)}})
                         : "",
            {},
            notes};
  }
  return {options.json ? json_line(as_json(r, options)) : as_text(r, options), {}, notes};
} catch (const std::bad_alloc&) {
  throw InputError{options.files.front(), "does not fit in memory"};
}

std::string rounded_integers(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " integer was" : " integers were") +
         " rounded to fp64 before the computation";
}

std::vector<std::string> notes_on(std::vector<std::string> notes, std::size_t rounded) {
  constexpr char remedy[] = "; samesum sum with the method exact adds integers unrounded";
  if (rounded > 0) notes.push_back(rounded_integers(rounded) + remedy);
  return notes;
}

std::vector<std::string> notes_on(const std::vector<InputArray>& arrays, bool is_rounded) {
  std::vector<std::string> notes;
  std::size_t rounded = 0;
  for (const InputArray& array : arrays) {
    notes.insert(notes.end(), array.column.notes.begin(), array.column.notes.end());
    if (is_rounded) rounded += array.column.rounded();
  }
  return notes_on(notes, rounded);
}

}  // namespace samesum::harness
