/// Reductions of a column of a table by the keys in another one.
#include <cmath>
#include <limits>
#include <new>
#include <unordered_map>

#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"
#include "tool/commands.hpp"

namespace samesum::harness {
namespace {

/// A column of elements, and the number of the key of each.
struct KeyedColumn {
  Column column;
  std::vector<std::int64_t> keys;
  std::vector<std::string> names;   ///< of the keys, in the order in which they appear first
  std::vector<std::size_t> counts;  ///< number of elements of each key
};

KeyedColumn read_keyed(const std::vector<std::string>& files, const FormatInfo* format,
                       const TableOptions& table) {
  KeyedColumn x;
  std::unordered_map<std::string, std::int64_t> numbers;
  const std::unique_ptr<ElementReader> elements = open_elements(files, format, table);
  x.column = read_all(*elements, [&](const Column& portion) {
    for (const std::string& name : portion.keys) {
      const auto [at, is_new] = numbers.try_emplace(name, static_cast<std::int64_t>(x.names.size()));
      if (is_new) {
        x.names.push_back(name);
        x.counts.push_back(0);
      }
      x.keys.push_back(at->second);
      ++x.counts[static_cast<std::size_t>(at->second)];
    }
  });
  return x;
}

/// The results of all keys, and bounds on their errors.
class ReductionByKey {
 public:
  ReductionByKey(const ReduceOptions& options, const Method& method, const KeyedColumn& x)
      : method_{method}, x_{x}, grid_{options.grid} {
    const FormatInfo* const format = method.result_format(*x.column.format);
    bytes_.resize(x.names.size() * method.result_bytes());
    const Values elements = method.inputs == 0 ? Values{*x.column.format, nullptr, 0} : x.column.values();
    reduce(method, elements, x.keys, Layout::vector(x.keys.size()), {format, bytes_.data(), x.names.size()},
           {.threads = options.threads, .grid = grid_});
  }

  Number number(std::size_t key) const {
    return with_format(*method_.format,
                       [&]<class F>() { return Number::of(reinterpret_cast<const F*>(bytes_.data())[key]); });
  }
  std::int64_t count(std::size_t key) const {
    return reinterpret_cast<const std::int64_t*>(bytes_.data())[key];
  }

  /// A bound on the error of a result. A grid that was found depends on all elements.
  double bound(std::size_t key) {
    if (magnitudes_.empty()) find_magnitudes();
    const bool on_found_grid = method_.accumulator == "fixed_point" && !grid_;
    return method_.bound(*x_.column.format, on_found_grid ? x_.keys.size() : x_.counts[key], number(key),
                         on_found_grid ? largest_ : magnitudes_[key], {.grid = grid_});
  }

 private:
  /// Finds Σ|x| of each key, rounded up, and the largest |x|.
  void find_magnitudes() {
    magnitudes_.resize(x_.names.size());
    const Column x = absolute(x_.column.values());
    reduce(find("scatter_add/exact/fp64"), x.values(), x_.keys, Layout::vector(x_.keys.size()),
           std::span{magnitudes_});
    for (double& m : magnitudes_) m = std::nextafter(m, std::numeric_limits<double>::infinity());
    largest_ = (*default_method("max", *x.format))(x.values()).to_double();
  }

  const Method& method_;
  const KeyedColumn& x_;
  std::optional<int> grid_;
  std::vector<std::byte> bytes_;
  std::vector<double> magnitudes_;
  double largest_ = 0;
};

std::string as_text(ReductionByKey& r, const Method& method, const KeyedColumn& x,
                    const ReduceOptions& options) {
  std::string text;
  for (std::size_t key = 0; key < x.names.size(); ++key) {
    text += printable(x.names[key]) + '\t';
    if (method.returns_index)
      text += std::to_string(r.count(key));
    else
      text += options.hex ? hexadecimal(r.number(key)) : shortest_decimal(r.number(key));
    if (options.bound) text += ' ' + compact(r.bound(key), 12, 3);
    text += '\n';
  }
  return text;
}

Json as_json(ReductionByKey& r, const Method& method, const KeyedColumn& x) {
  Json object = {{"method", method.name}};
  if (method.inputs > 0) object["input_format"] = x.column.format->name;
  object["n"] = x.keys.size();
  object["keys"] = x.names;
  Json values = Json::array(), bounds = Json::array();
  for (std::size_t key = 0; key < x.names.size(); ++key) {
    if (method.returns_index) {
      values.push_back(r.count(key));
    } else {
      values.push_back(number_or_null(r.number(key).to_double()));
      bounds.push_back(number_or_null(r.bound(key)));
    }
  }
  object["values"] = std::move(values);
  if (!method.returns_index) object["bounds"] = std::move(bounds);
  object["promise"] = name_of(method.promise);
  return object;
}

}  // namespace

Report by_key_command(const ReduceOptions& options) try {
  check_threads(options.threads);
  const FormatInfo* format = format_named(options.format);
  check_before_reading(format, [&](const FormatInfo& f) { chosen_method(options, f); });
  const KeyedColumn x = read_keyed(options.files, format, options.table);
  const Method& method = chosen_method(options, *x.column.format);
  if (const std::string wrong = validation_error(method, Options{.grid = options.grid}); !wrong.empty())
    throw UsageError{"--" + wrong};
  ReductionByKey r{options, method, x};
  return {options.json ? json_line(as_json(r, method, x)) : as_text(r, method, x, options),
          {},
          notes_on(x.column.notes, x.column.rounded())};
} catch (const std::bad_alloc&) {
  throw InputError{options.files.front(), "does not fit in memory"};
}

}  // namespace samesum::harness
