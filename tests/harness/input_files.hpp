/// Builds the files for the tests of the readers.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "harness/input.hpp"

namespace samesum::harness {

inline std::span<const std::byte> as_bytes(std::string_view s) { return std::as_bytes(std::span{s}); }

/// Returns the bytes of the values, little-endian or big-endian.
template <class T> std::string stored(const std::vector<T>& values, bool big_endian = false) {
  std::string bytes;
  for (const T value : values) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &value, sizeof(T));
    if (big_endian != (std::endian::native == std::endian::big)) one.assign(one.rbegin(), one.rend());
    bytes += one;
  }
  return bytes;
}

inline std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  const std::string header = dict + "\n";
  const auto size = static_cast<std::uint32_t>(header.size());
  const std::string length = version == 1 ? stored<std::uint16_t>({static_cast<std::uint16_t>(size)})
                                          : stored<std::uint32_t>({size});
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} + length + header + data;
}

inline std::string dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

inline std::vector<std::uint64_t> bits(const Column& column) {
  std::vector<std::uint64_t> all;
  with_format(*column.format, [&]<class F>() {
    for (const F x : column.values().as<F>()) all.push_back(to_bits(x));
  });
  return all;
}

inline std::vector<double> doubles(const Column& column) {
  std::vector<double> all;
  for (const std::uint64_t b : bits(column)) all.push_back(Number{column.format, b}.to_double());
  return all;
}

/// What other programs write instead of numbers.
inline constexpr std::string_view specials[] = {
    "#N/A",           "#DIV/0!", "#VALUE!", "#REF!",   "#NAME?",  "#NUM!",   "#NULL!", "#SPILL!",
    "#\xc2\xa1NULO!", "1.#INF",  "-1.#INF", "1.#QNAN", "-1.#IND", "1.#SNAN", "1.#J",   "1.#IND00"};

/// Returns the message of the error that a reader throws; empty if it accepts its input.
template <class Read> std::string complaint(Read read) {
  try {
    static_cast<void>(read());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace samesum::harness
