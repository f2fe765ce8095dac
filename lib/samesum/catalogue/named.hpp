/// Methods by names that the compiler checks: reduce<"dot/tree/kahan/fp32">(x, y).
#pragma once

#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/nearest.hpp"
#include "samesum/catalogue/refusal.hpp"

namespace samesum {

/// The two results of the operation moments.
template <Element T> struct MeanVariance {
  T mean, variance;
  bool operator==(const MeanVariance&) const = default;
};

namespace detail {

/// The type of a result whose numbers have the format F.
template <bool is_index, int numbers, class F>
using ResultOf =
    std::conditional_t<is_index, std::int64_t, std::conditional_t<numbers == 2, MeanVariance<F>, F>>;

/// Whether a vector has a result by the method with these fields, none of which is left out.
constexpr bool reduces(const NameFields& f) {
  const std::size_t index = operation_index(f.operation);
  if (index == operation_facts.size() || !operation_facts[index].reduces()) return false;
  const OperationFacts& operation = operation_facts[index];
  if (takes_no_order(f.accumulator))
    return f.order.empty() && operation.can_be_exact &&
           refusal_without_order(operation, f.accumulator, f.format, f.backend).empty();
  if (f.order.empty() == operation.has_order || f.accumulator.empty() == operation.has_accumulator)
    return false;
  bool exists = false;
  Orders::for_each([&]<class Order>() {
    if (f.order == Order::name || (f.order.empty() && std::is_same_v<Order, CoarsenedTree>))
      exists = refusal<Order>(operation, f.accumulator.empty() || f.accumulator == accumulator_names.front(),
                              f.format, f.backend)
                   .empty();
  });
  return exists;
}

/// Returns the fields of the method that a name means. Fills in the order and the accumulator only if the
/// name as it stands is not that of a method, as `find` does.
constexpr NameFields meant(std::string_view name, const NameDefaults& defaults) {
  const NameFields f = with_defaults(parse_name(name).fields, defaults);
  return reduces(f) ? f : completed(f);
}

}  // namespace detail

/// Returns the format index of the method that a name means and that reduces a vector; Formats::size if there
/// is none.
///
/// It is an index, not a pointer: with -fsanitize=undefined, g++ does not accept a comparison of pointers as
/// a constant.
constexpr std::size_t format_of_name(std::string_view name, const NameDefaults& defaults) {
  const NameFields f = detail::meant(name, defaults);
  return parse_name(name).wrong.empty() && detail::reduces(f) ? format_index(f.format) : Formats::size;
}

namespace detail {

/// A name that does not compile. The message of the compiler has both arguments.
template <Name name, class Meant> struct NoMethod {
  static_assert(name.view().size() == std::string_view::npos,
                "samesum: no method of this name reduces a vector to a result; a name is "
                "operation/order/accumulator/format, exact/format or fixed_point/format, see `samesum list`");
};

}  // namespace detail

/// The method that reduces a vector, by its name. `operation` and `backend` are those of a name without them;
/// T is the format of a name without one, or void. Does not compile if there is no such method.
template <Name name, class T = void, Name operation = "sum", Name backend = "cpu"> struct Named {
 private:
  static constexpr NameDefaults defaults = [] {
    NameDefaults d{.operation = operation.view(), .backend = backend.view()};
    if constexpr (!std::is_void_v<T>) d.format = samesum::Format<T>::name;
    return d;
  }();
  static constexpr std::size_t index = format_of_name(name.view(), defaults);
  static constexpr bool exists = index < Formats::size;
  static_assert(sizeof(std::conditional_t<exists, char,
                                          detail::NoMethod<name, typename detail::Suggestion<name>::type>>) >
                0);
  static constexpr std::size_t place =
      exists ? operation_index(detail::meant(name.view(), defaults).operation) : 0;

 public:
  static constexpr OperationFacts facts = operation_facts[place];
  using Format = Formats::at<exists ? index : 0>;
  using Result = detail::ResultOf<facts.returns_index, facts.results, Format>;
  static const Method& method() {
    static const Method& found = find(name.view(), defaults);
    return found;
  }
};

/// The sum with that name. Does not compile if it is the name of another operation.
template <Name name, class T = void, Name backend = "cpu"> struct NamedSum : Named<name, T, "sum", backend> {
  static_assert(NamedSum::facts.name == "sum", "samesum: the name is not that of a sum; call reduce");
};

}  // namespace samesum
