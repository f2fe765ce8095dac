/// Counts different values by sorting their keys.
#include "samesum/operation/distinct.hpp"

#include <algorithm>
#include <vector>

#include "samesum/base/environment.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/operation/extremum.hpp"

namespace samesum {

std::uint64_t count_distinct(Values x) {
  check("x", x);
  const FloatingPointEnvironment environment;
  return with_format(*x.format, [&]<class F>() {
    std::vector<typename KeyOf<F>::Key> keys;
    keys.reserve(x.size);
    for (const F& e : x.as<F>()) keys.push_back(KeyOf<F>::of_number(convert<CarrierOf<F>>(e), false));
    std::ranges::sort(keys);
    return static_cast<std::uint64_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
  });
}

}  // namespace samesum
