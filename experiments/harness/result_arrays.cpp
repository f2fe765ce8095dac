#include "harness/result_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "harness/peers.hpp"

namespace samesum::harness {
namespace {

/// Eight bytes at a time: results have hundreds of megabytes.
std::uint64_t digest_of_words(std::span<const std::byte> bytes) {
  std::uint64_t hash = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[i], std::min(sizeof word, bytes.size() - i));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void ErrorsOfResults::add(const Measurement& m) {
  ulps_.push_back(m.error.ulps);
  correct_ += m.value == m.truth;
  within_bound_ &= m.within_bound;
  relative_ = std::max(relative_, m.error.relative);
  if (std::isfinite(m.bound))
    share_ = std::max(share_, m.error.absolute == 0 ? 0 : m.error.absolute / m.bound);
}

Json ErrorsOfResults::values() const {
  std::vector<double> ulps = ulps_;
  const auto middle = ulps.begin() + static_cast<std::ptrdiff_t>(ulps.size() / 2);
  std::ranges::nth_element(ulps, middle);
  return {{"results", ulps.size()},
          {"correct", correct_},
          {"largest_ulps", number_or_null(std::ranges::max(ulps_))},
          {"median_ulps", number_or_null(*middle)},
          {"largest_relative", number_or_null(relative_)},
          {"largest_share", share_ < 0 ? Json(nullptr) : number_or_null(share_)},
          {"within_bound", within_bound_}};
}

std::string complaint_about_errors(const Method& m, const Json& row) {
  if (is_peer(m)) return {};
  if (!row["within_bound"]) return "an error exceeds its bound";
  if (m.accumulator == "exact" && row["correct"] != row["results"])
    return row["correct"].dump() + " of " + row["results"].dump() + " results are correctly rounded";
  if (row.contains("sums") && row["same_as_sums"] != row["sums"])
    return row["same_as_sums"].dump() + " of " + row["sums"].dump() + " prefixes have the bits of their sum";
  return {};
}

void DistinctResults::add(std::span<const std::byte> results) {
  digests_.push_back(digest_of_words(results));
}

Json DistinctResults::values(const Method& m, Promise forbids) const {
  const std::size_t distinct = std::set(digests_.begin(), digests_.end()).size();
  return {{"runs", digests_.size()},
          {"distinct_bits", distinct},
          {"broken", distinct > 1 && m.promise >= forbids}};
}

Number number_at(const Method& m, std::span<const std::byte> results, std::size_t at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &results[at * m.format->bytes], m.format->bytes);  // little-endian
  return {m.format, bits};
}

}  // namespace samesum::harness
