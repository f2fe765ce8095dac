/// Error bounds, and the choice of a method.
#include "module.hpp"

namespace samesum::python {
namespace {

Promise promise_named(std::string_view name) {
  for (std::size_t i = 0; i < promise_count; ++i)
    if (name_of(static_cast<Promise>(i)) == name) return static_cast<Promise>(i);
  throw std::invalid_argument("samesum: promise is '" + std::string{name} +
                              "'; use none, run_to_run, everywhere or order_free");
}

double bound(const Method& method, std::string_view input, std::size_t n, std::vector<double> results,
             std::optional<double> magnitudes, double probability, std::size_t index, double ddof) {
  if (results.size() != static_cast<std::size_t>(method.results))
    throw std::invalid_argument("samesum: " + method.name + ": result has " + std::to_string(results.size()) +
                                " numbers; the method returns " + std::to_string(method.results));
  const auto number = [&](double x) {
    return with_format(*method.format, [&]<class F>() { return Number::of(convert<F>(x)); });
  };
  const ResultNumbers all = results.size() == 1 ? ResultNumbers{number(results[0])}
                                                : ResultNumbers{number(results[0]), number(results[1])};
  return method.bound(format_named(input), n, all, magnitudes, {probability, index, ddof});
}

nb::tuple described(const Candidate& c) {
  return nb::make_tuple(nb::cast(c.method, nb::rv_policy::reference), c.bound, c.ulps,
                        c.seconds ? nb::cast(*c.seconds) : nb::none(), c.reason);
}

}  // namespace

void bind_study(nb::module_& m) {
  m.def("estimate", [](std::string_view name, std::string_view format, std::uintptr_t x, std::uintptr_t y,
                       std::size_t size) {
    const FormatInfo& input = format_named(format);
    const nb::gil_scoped_release released;
    const Estimate e = estimate(name, values_at(input, x, size), y ? values_at(input, y, size) : Values{});
    return std::tuple{e.value.to_double(), e.bound, e.magnitudes};
  });
  m.def("bound", &bound);
  m.def(
      "choose",
      [](std::string_view operation, std::size_t length, std::string_view input, std::string_view promise,
         std::optional<double> relative_error, std::optional<double> ulps, double probability,
         std::string_view backend, double condition, std::optional<double> magnitudes) {
        const Choice choice = choose({operation, length, input, promise_named(promise), relative_error, ulps,
                                      probability, backend, condition, magnitudes});
        nb::list others;
        for (const Candidate& c : choice.others) others.append(described(c));
        return nb::make_tuple(described(choice.best), others);
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
      nb::arg(), nb::arg().none());
}

}  // namespace samesum::python
