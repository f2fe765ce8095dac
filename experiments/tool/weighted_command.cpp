/// Sums and means of a column of a table with weights from another one.
#include <cmath>
#include <new>

#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "harness/truth.hpp"
#include "samesum/samesum.hpp"
#include "tool/commands.hpp"

namespace samesum::harness {
namespace {

/// A column of elements, and their weights.
struct WeightedColumn {
  Column column;
  std::vector<double> weights;
  std::size_t rounded_weights = 0;  ///< integers that fp64 cannot hold

  std::vector<std::string> notes() const {
    std::vector<std::string> all = column.notes;
    const std::size_t rounded = column.rounded() + rounded_weights;
    if (rounded > 0)
      all.push_back(rounded_integers(rounded) + "; without --weights, sum adds them unrounded");
    return all;
  }
};

WeightedColumn read_weighted(const ReduceOptions& options) {
  WeightedColumn x;
  const std::unique_ptr<ElementReader> elements = open_elements(options.files, nullptr, options.table);
  x.column = read_all(*elements, [&](const Column& portion) {
    for (const std::string& text : portion.keys) {
      const std::optional<WrittenNumber> weight = parse_written(text);
      if (!weight)
        throw InputError{options.files.front(), "'" + printable(text) +
                                                    "' in the column of --weights is not a number" +
                                                    (text.empty() ? "; pass --skip-missing" : "")};
      x.weights.push_back(weight->rounded);
      x.rounded_weights += !weight->lost.empty();
    }
  });
  return x;
}

/// Σwx / Σw, rounded once.
double mean(const WeightedColumn& x) {
  const Truth products = Truth::of("dot", x.column.values(), x.weights), weights{x.weights};
  if (!products.finite() || !weights.finite())
    return products.rounded(format_info<fp64>()).to_double() /
           weights.rounded(format_info<fp64>()).to_double();
  const BigInteger divisor = weights.value() << (weights.unit() - products.unit());
  const double magnitude = quotient(abs(products.value()), abs(divisor));
  return (products.value() < 0) == (divisor < 0) ? magnitude : -magnitude;
}

}  // namespace

Report weighted_command(const ReduceOptions& options) try {
  const WeightedColumn x = read_weighted(options);
  const bool is_mean = options.operation == "mean";
  if (is_mean && sum(x.weights) == 0)
    throw InputError{options.files.front(), "the weights sum to zero, which divides nothing"};
  const double result = is_mean ? mean(x) : dot(x.column.values().as<double>(), x.weights);
  const Number number = Number::of(result);
  if (options.json)
    return {json_line({{"operation", options.operation + " with weights"},
                       {"n", x.weights.size()},
                       {"value", number_or_null(result)},
                       {"bits", bit_string(number)},
                       {"promise", name_of(Promise::order_free)}}),
            {},
            x.notes()};
  return {(options.hex ? hexadecimal(number) : shortest_decimal(number)) + '\n', {}, x.notes()};
} catch (const std::bad_alloc&) {
  throw InputError{options.files.front(), "does not fit in memory"};
}

}  // namespace samesum::harness
