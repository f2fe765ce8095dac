/// Calls of statistics: the exact sums of each result, and its one rounding.
#include "samesum/operation/statistics.hpp"

#include <cstring>
#include <stdexcept>

#include "samesum/backend/cpu/statistics/inputs.hpp"
#include "samesum/backend/cpu/statistics/product_sums.hpp"

namespace samesum::cpu {
namespace {

void write_to(const Results& out, std::size_t i, Number x) {
  const std::size_t bytes = out.format->bytes;
  std::memcpy(static_cast<std::byte*>(out.data) + i * bytes, &x.bits, bytes);
}

/// A sum of products of the elements of inputs, which is computed again only if one of them has moved.
class KeptSum {
 public:
  /// Inputs that are null are left out.
  KeptSum(ProductSums& sums, std::initializer_list<const Elements*> inputs) : sums_{sums} {
    for (const Elements* input : inputs)
      if (input) inputs_[size_++] = input;
  }
  const SumOfProducts& value() {
    std::array<std::uint64_t, 3> versions{};
    for (std::size_t k = 0; k < size_; ++k) versions[k] = inputs_[k]->version();
    if (versions == versions_) return sum_;
    versions_ = versions;
    Factors factors;
    for (std::size_t k = 0; k < size_; ++k) factors.add(inputs_[k]->values());
    sum_ = sums_.sum(factors);
    return sum_;
  }

 private:
  ProductSums& sums_;
  std::array<const Elements*, 3> inputs_{};
  std::size_t size_ = 0;
  std::array<std::uint64_t, 3> versions_{};  ///< those of inputs that have moved are not 0
  SumOfProducts sum_;
};

/// Statistics with a result for each vector of the layout. A variance is the covariance of x and x.
class RowStatistics {
 public:
  RowStatistics(const StatisticsCall& call, ProductSums& sums)
      : call_{call}, taking_part_{call}, x_{call.x}, y_{call.y}, w_{call.weights.values}, sums_{sums} {}

  /// Computes all results. Returns whether the weights of one with elements sum to zero.
  bool run() {
    for (std::size_t r = 0; r < call_.layout.results(); ++r) {
      const std::uint8_t* const flags = taking_part_.flags(r);
      x_.move_to({call_.layout, r}, flags);
      if (call_.y.is_given()) y_.move_to({*call_.y_layout, r}, flags);
      if (is_weighted_) w_.move_to({*call_.weights.layout, r}, flags);
      write(r);
    }
    return has_zero_;
  }

 private:
  void write(std::size_t at) {
    const FormatInfo& format = *call_.out.format;
    const SumOfProducts& total = weight();
    switch (call_.statistic) {
      case Statistic::mean:
        if (call_.second) write_to(*call_.second, at, quotient_of_sums(format, total, total_of(1)));
        return write_to(call_.out, at, quotient_of_sums(format, of_x_.value(), total));
      case Statistic::correlation:
        return write_to(call_.out, at,
                        correlation_of(format, total, of_x_.value(), of_y_.value(), of_xy_.value(),
                                       of_xx_.value(), of_yy_.value()));
      case Statistic::linear_regression: {
        const Line line =
            line_of(format, total, of_x_.value(), of_y_.value(), of_xy_.value(), of_xx_.value());
        if (call_.second) write_to(*call_.second, at, line.intercept);
        return write_to(call_.out, at, line.slope);
      }
      default:
        return write_to(call_.out, at,
                        covariance_of(format, total, of_x_.value(), of_y_.value(), of_xy_.value(),
                                      divisor_of(total.value, ddof_, squares(total).value)));
    }
  }
  /// Returns Σw, or the number of elements.
  const SumOfProducts& weight() {
    const std::size_t n = x_.values().size;
    if (!is_weighted_) return count_ = total_of(n);
    const SumOfProducts& sum = of_w_.value();
    has_zero_ = has_zero_ || (n > 0 && sum.is_zero());
    return sum;
  }
  const SumOfProducts& squares(const SumOfProducts& total) {
    return is_weighted_ && call_.weights.kind == WeightKind::reliabilities ? of_ww_.value() : total;
  }

  const StatisticsCall& call_;
  const bool is_weighted_ = call_.weights.is_given();
  const Dyadic ddof_{call_.options.ddof};
  TakingPart taking_part_;
  Elements x_, y_, w_;
  const Elements* const weights_ = is_weighted_ ? &w_ : nullptr;
  ProductSums& sums_;
  KeptSum of_w_{sums_, {weights_}}, of_ww_{sums_, {weights_, weights_}}, of_x_{sums_, {weights_, &x_}},
      of_xx_{sums_, {weights_, &x_, &x_}}, of_other_{sums_, {weights_, &y_}},
      of_product_{sums_, {weights_, &x_, &y_}}, of_yy_{sums_, {weights_, &y_, &y_}};
  KeptSum &of_y_ = call_.y.is_given() ? of_other_ : of_x_,
          &of_xy_ = call_.y.is_given() ? of_product_ : of_xx_;
  SumOfProducts count_;
  bool has_zero_ = false;
};

/// The symmetric matrix of covariances or correlations of variables.
class Matrix {
 public:
  Matrix(const StatisticsCall& call, ProductSums& sums)
      : call_{call}, sums_{sums}, count_{call.layout.results()} {}

  /// Computes the entries of variables of which all elements take part. Returns whether Σw = 0.
  bool run() {
    Elements w{call_.weights.values};
    if (is_weighted_) w.move_to({*call_.weights.layout, 0});
    std::vector<Elements> variables;
    for (std::size_t v = 0; v < count_; ++v) variables.emplace_back(call_.x).move_to(place_of(v));
    const OfWeights of_weights = sums_of(w.values(), call_.layout.n);
    const SumOfProducts& total = of_weights.total;
    std::vector<SumOfProducts> of_x;
    for (const Elements& x : variables) of_x.push_back(sums_.sum({w.values(), x.values()}));
    const auto moment = [&](std::size_t i, std::size_t k) {
      const SumOfProducts xy = sums_.sum({w.values(), variables[i].values(), variables[k].values()});
      return moment_of(total, of_x[i], of_x[k], xy);
    };
    std::vector<Dyadic> diagonal;
    for (std::size_t i = 0; i < count_; ++i) diagonal.push_back(moment(i, i));
    write_symmetric([&](std::size_t i, std::size_t k) {
      if (!are_finite(total, of_x[i], of_x[k]))
        return Number{call_.out.format, call_.out.format->canonical_nan};
      const Dyadic xy = i == k ? diagonal[i] : moment(i, k);
      return is_correlation_ ? correlation_of(*call_.out.format, xy, diagonal[i], diagonal[k])
                             : covariance_of(*call_.out.format, xy, of_weights.divisor);
    });
    return of_weights.is_zero;
  }

  /// Computes the entries of the elements that take part in both variables. Returns whether Σw = 0 for one.
  bool run_selected() {
    const std::size_t n = call_.layout.n;
    std::vector<std::uint8_t> flags;
    TakingPart taking_part{call_};
    for (std::size_t v = 0; v < count_; ++v) {
      const std::uint8_t* const of_v = taking_part.flags(v);
      flags.insert(flags.end(), of_v, of_v + n);
    }
    std::vector<std::uint8_t> both(n);
    Elements x{call_.x}, y{call_.x}, w{call_.weights.values};
    bool has_zero = false;
    write_symmetric([&](std::size_t i, std::size_t k) {
      for (std::size_t e = 0; e < n; ++e) both[e] = flags[i * n + e] & flags[k * n + e];
      x.move_to(place_of(i), both.data());
      y.move_to(place_of(k), both.data());
      if (is_weighted_) w.move_to({*call_.weights.layout, 0}, both.data());
      const OfWeights of_weights = sums_of(w.values(), x.values().size);
      has_zero = has_zero || of_weights.is_zero;
      return entry(of_weights, w.values(), x.values(), y.values());
    });
    return has_zero;
  }

 private:
  /// Σw, or the number of elements, and the divisor of covariances.
  struct OfWeights {
    SumOfProducts total;
    Dyadic divisor;
    bool is_zero;  ///< whether there are elements, whose weights sum to zero
  };
  OfWeights sums_of(const Values& w, std::size_t n) {
    const SumOfProducts total = is_weighted_ ? sums_.sum({w}) : total_of(n);
    const bool squared = is_weighted_ && call_.weights.kind == WeightKind::reliabilities && !is_correlation_;
    return {total, divisor_of(total.value, ddof_, squared ? sums_.sum({w, w}).value : total.value),
            is_weighted_ && n > 0 && total.is_zero()};
  }
  Number entry(const OfWeights& of_weights, const Values& w, const Values& x, const Values& y) {
    const SumOfProducts &total = of_weights.total, of_x = sums_.sum({w, x}), of_y = sums_.sum({w, y}),
                        of_xy = sums_.sum({w, x, y});
    return is_correlation_ ? correlation_of(*call_.out.format, total, of_x, of_y, of_xy, sums_.sum({w, x, x}),
                                            sums_.sum({w, y, y}))
                           : covariance_of(*call_.out.format, total, of_x, of_y, of_xy, of_weights.divisor);
  }
  VectorPlace place_of(std::size_t variable) const { return {call_.layout, variable}; }
  /// Writes value(i, k), 0 <= i <= k < count, and its mirror image.
  template <class Value> void write_symmetric(Value value) {
    for (std::size_t i = 0; i < count_; ++i)
      for (std::size_t k = i; k < count_; ++k) {
        const Number number = value(i, k);
        write_to(call_.out, i * count_ + k, number);
        write_to(call_.out, k * count_ + i, number);
      }
  }

  const StatisticsCall& call_;
  ProductSums& sums_;
  std::size_t count_;
  const bool is_weighted_ = call_.weights.is_given(),
             is_correlation_ = call_.statistic == Statistic::correlation_matrix;
  const Dyadic ddof_{call_.options.ddof};
};

/// Whether a weight of an element that takes part in any result is negative. NaN and -0 are not.
bool has_negative_weights(const StatisticsCall& call) {
  TakingPart taking_part{call};
  const auto is_negative = [&]<class T>(const VectorPlace& at, const std::uint8_t* flags) {
    const T* const w = static_cast<const T*>(call.weights.values.data) + at.first;
    bool any = false;
    if (!flags && at.stride == 1) {
      for (std::size_t k = 0; k < at.n; ++k) any |= convert<double>(w[k]) < 0;  // as vectors
    } else {
      for (std::size_t k = 0; k < at.n; ++k)
        any |= (convert<double>(w[k * at.stride]) < 0) & (!flags || flags[k] != 0);
    }
    return any;
  };
  return with_format(*call.weights.values.format, [&]<class T>() {
    if (is_matrix(call.statistic) && !taking_part.selects())
      return is_negative.template operator()<T>(place_of_weights(call, 0), nullptr);
    std::optional<VectorPlace> last;  // which rows that are repeated share
    for (std::size_t r = 0; r < call.layout.results(); ++r) {
      const VectorPlace at = place_of_weights(call, r);
      if (!taking_part.selects() && at == last) continue;
      last = at;
      if (is_negative.template operator()<T>(at, taking_part.flags(r))) return true;
    }
    return false;
  });
}

}  // namespace

bool run_statistics(StatisticsCall call, const std::function<void()>& pause) {
  call.y_layout = normalised(y_layout(call));
  call.weights.layout = normalised(weights_layout(call));
  call.layout = normalised(call.layout);
  if (call.weights.is_given() && call.statistic != Statistic::mean && has_negative_weights(call))
    throw std::invalid_argument("samesum: weights has negative numbers; pass weights of 0 or more");
  ProductSums sums{call.options.threads, pause};
  if (!is_matrix(call.statistic)) return RowStatistics{call, sums}.run();
  Matrix matrix{call, sums};
  return selects(call.options) ? matrix.run_selected() : matrix.run();
}

}  // namespace samesum::cpu
