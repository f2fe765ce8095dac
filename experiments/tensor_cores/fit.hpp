/// Hypotheses about a matrix unit: sets of parameters of a fused sum, and those next to one.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "samesum/accumulator/fused_sum.hpp"

namespace samesum::tensor_cores {

inline std::string describe(const FusedSum& p) {
  static const char* const cuts[] = {"truncate", "down", "nearest"};
  static const char* const exponents[] = {"sum", "carry", "leading"};
  char text[400];
  std::snprintf(text, sizeof text,
                "group %d run %d%s bits %d %s exponent %s%s floor %d element_min %d%s%s%s%s%s result %d %s%s "
                "zero %s%s nan %x",
                p.group, p.run, p.is_reversed ? " reversed" : "", p.fraction_bits, cuts[int(p.alignment)],
                exponents[int(p.product_exponent)], p.zeros_have_exponents ? " zeros_count" : "",
                p.smallest_exponent, p.element_min_exponent, p.flushes_elements ? " flush_elements" : "",
                p.flushes_addend ? " flush_addend" : "", p.flushes_result ? " flush_result" : "",
                p.rounds_elements ? " round_elements" : "", p.adds_last ? " adds_last" : "",
                p.result_fraction_bits, cuts[int(p.result)], p.saturates ? " saturates" : "",
                p.zero_sign == ZeroSign::positive ? "+" : "-if_all",
                p.keeps_sign_of_underflow ? "" : " underflow_to_+0", p.nan);
  return text;
}

/// Calls visit(copy of p) with each value of the parameter `member`, p's own included.
template <class T, class Visit>
void vary(const FusedSum& p, T FusedSum::*member, const std::vector<T>& values, Visit visit) {
  for (const T value : values) {
    FusedSum q = p;
    q.*member = value;
    visit(q);
  }
}

inline std::vector<int> range(int first, int last) {
  std::vector<int> x;
  for (int i = first; i <= last; ++i) x.push_back(i);
  return x;
}

struct Division {
  int group, run;
};
/// Ways to divide n products: consecutive ones, interleaved ones, and pairs in turn.
inline std::vector<Division> groups_of(int n) {
  std::vector<Division> all{{n, n}};
  for (int group = n / 2; group >= 2; group /= 2) {
    all.push_back({group, group});
    for (int run = 1; run < group && run <= 2; ++run) all.push_back({group, run});
  }
  all.push_back({1, 1});
  return all;
}

/// One parameter, or two that belong together, with all its values: sets that differ from p in nothing else.
struct Axis {
  const char* name;
  std::vector<FusedSum> models;
};
inline std::vector<Axis> axes_of(const FusedSum& p, int n, int result_bits) {
  std::vector<Axis> axes;
  const auto add = [&](const char* name, auto member, const auto& values) {
    Axis axis{name, {}};
    vary(p, member, values, [&](const FusedSum& q) { axis.models.push_back(q); });
    axes.push_back(axis);
  };
  const std::vector<bool> flags{false, true};
  const std::vector<Cut> cuts{Cut::toward_zero, Cut::down, Cut::nearest_even};
  add("bits", &FusedSum::fraction_bits, range(6, 34));
  add("alignment", &FusedSum::alignment, cuts);
  add("exponent", &FusedSum::product_exponent,
      std::vector<ProductExponent>{ProductExponent::sum, ProductExponent::carry,
                                   ProductExponent::leading_bit});
  Axis groups{"group", {}};
  for (const Division& g : groups_of(n)) {
    FusedSum q = p;
    q.group = g.group;
    q.run = g.run;
    groups.models.push_back(q);
  }
  axes.push_back(groups);
  add("reversed", &FusedSum::is_reversed, flags);
  std::vector<int> floors = range(-170, -100), low = range(-40, 0);
  floors.insert(floors.begin(), -400);
  floors.insert(floors.end(), low.begin(), low.end());
  add("floor", &FusedSum::smallest_exponent, floors);
  add("element_min", &FusedSum::element_min_exponent, std::vector<int>{0, -7, -8, -9, -14, -15, -24, -200});
  add("zeros", &FusedSum::zeros_have_exponents, flags);
  add("flush_elements", &FusedSum::flushes_elements, flags);
  add("flush_addend", &FusedSum::flushes_addend, flags);
  add("flush_result", &FusedSum::flushes_result, flags);
  add("round_elements", &FusedSum::rounds_elements, flags);
  add("adds_last", &FusedSum::adds_last, flags);
  add("result_bits", &FusedSum::result_fraction_bits, range(6, result_bits));
  add("result_cut", &FusedSum::result, cuts);
  add("saturates", &FusedSum::saturates, flags);
  add("zero_sign", &FusedSum::zero_sign,
      std::vector<ZeroSign>{ZeroSign::positive, ZeroSign::negative_if_all_are});
  add("underflow", &FusedSum::keeps_sign_of_underflow, flags);
  return axes;
}

/// The grid that a search begins with.
inline std::vector<FusedSum> grid_of(const FusedSum& p, int n, int result_bits) {
  std::vector<FusedSum> all;
  for (const Division& g : groups_of(n))
    for (const int bits : range(8, 32))
      for (const Cut alignment : {Cut::toward_zero, Cut::down, Cut::nearest_even})
        for (const ProductExponent e :
             {ProductExponent::sum, ProductExponent::carry, ProductExponent::leading_bit})
          for (const bool last : {false, true})
            for (const int r : {result_bits, 14, 13, 12})
              for (const Cut result : {Cut::toward_zero, Cut::down, Cut::nearest_even}) {
                if (r > result_bits) continue;
                FusedSum q = p;
                q.group = g.group;
                q.run = g.run;
                q.fraction_bits = bits;
                q.alignment = alignment;
                q.product_exponent = e;
                q.adds_last = last;
                q.result_fraction_bits = r;
                q.result = result;
                all.push_back(q);
              }
  return all;
}

}  // namespace samesum::tensor_cores
