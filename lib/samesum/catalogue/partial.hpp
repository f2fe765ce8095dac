/// Partials: reductions that are cut anywhere, and finish to the bits of the undivided one.
#pragma once

#include <memory>
#include <vector>

#include "samesum/call/call.hpp"

namespace samesum {

struct PartialForm;
class PartialInput;

/// The state of a reduction of consecutive elements of a vector.
///
/// A partial takes in elements in portions of any size, merges with the partial that begins where it ends,
/// and travels as bytes. Once it covers the vector from element 0 on, `finish` returns the bits that the
/// method returns for the whole vector, however the vector was cut, wherever the parts were computed, and in
/// whatever order neighbours were merged. The length of the vector need not be known in advance.
///
/// It holds the states of the largest subtrees of the method's tree that lie within its range, and the
/// elements, rounded to the format of the method, of the two leaves that it may hold in part. For a range of
/// n elements:
/// - tree and pairwise: at most 2·4095 elements, and from n = 4096 on at most 2·log2(n / 4096) + 2 states;
/// - canonicalL: at most 2·(L - 1) elements, and from n = L on at most 2·log2(n / L) + 2 rows of L states;
/// - exact methods, fixed_point, min, max, argmin and argmax: one state;
/// - serial: one state if the range begins at element 0; otherwise all n elements, because the textbook loop
///   cannot start in the middle.
///
/// Every deterministic method whose results are one per vector has partials, except hopper: not softmax, and
/// not the orders of arrival (atomic and atomic_element), whose bits differ from run to run. Error bound of
/// the result: Method::bound with n = size() and the widest format of the elements.
class Partial {
 public:
  /// Creates the partial of no elements, whose first element will be element `begin` of the vector.
  /// @param grid for fixed_point, as Options::grid: neighbours need the same grid before they have seen each
  ///   other's elements, so it must be given. For other methods it must be left out.
  /// @throws std::invalid_argument if the method has no partials, or if `grid` is missing or out of place.
  /// @throws std::length_error if begin is 2^63 or more.
  explicit Partial(const Method& method, std::uint64_t begin = 0, std::optional<int> grid = {});
  /// Creates the partial of no elements for the method `name`, which must have a format: "tree/kahan/fp32".
  /// @throws std::invalid_argument as `find` does, and as above.
  explicit Partial(std::string_view name, std::uint64_t begin = 0, std::optional<int> grid = {});
  Partial(const Partial&) = default;
  Partial& operator=(const Partial&) = default;
  /// Moves leave the partial of no elements at begin().
  Partial(Partial&& other) noexcept;
  Partial& operator=(Partial&& other) noexcept;

  /// Takes in the next elements. They lie where the method can read them, as for samesum::reduce; on the
  /// backend "cuda" also in host memory. Complexity: linear; the elements are reduced on options.threads
  /// threads. Under options.where or skip_nan the range grows by the elements that take part, and an index
  /// counts these.
  /// @throws std::invalid_argument as Method::operator() does.
  /// @throws std::length_error if the range would end beyond element 2^63 - 2.
  /// If it throws, the partial is unchanged.
  void add(Values x, Options options = {}) { add(x, {}, options); }
  /// Takes in the next elements of two inputs, of the same format and size, as for one input.
  void add(Values x, Values y, Options options = {});

  /// Merges with the partial that begins where this one ends; it may have been computed by another backend.
  /// Complexity: linear in the states and elements that both hold.
  /// @throws std::invalid_argument if the methods differ in more than the backend, or the grids, or if `next`
  /// begins
  ///   elsewhere. If it throws, the partial is unchanged.
  void merge(const Partial& next);

  /// Returns the result for the vector, which must begin at element 0: the bits that the method returns for
  /// the undivided vector. The partial can go on taking in elements.
  /// @throws std::invalid_argument if the partial does not begin at element 0, or if the method returns an
  ///   index or two numbers.
  /// @throws std::overflow_error as for the undivided vector, if the sum overflows the grid.
  Number finish(Options options = {}) const;
  /// Writes the result for the vector to `out`: one number, an index, or mean and variance.
  /// @throws std::invalid_argument if the partial does not begin at element 0, or if `out` has the wrong
  ///   format or size.
  void finish(Results out, Options options = {}) const;

  const Method& method() const { return *method_; }
  /// Index of the first element in the vector.
  std::uint64_t begin() const { return begin_; }
  /// Index after the last element: where the next portion or partial begins.
  std::uint64_t end() const { return end_; }
  std::uint64_t size() const { return end_ - begin_; }
  /// The grid that was given.
  std::optional<int> grid() const { return grid_; }

  /// Returns the partial as bytes: name of the method without its backend, range, grid if it has one,
  /// elements, states, and a checksum; versioned and little-endian. Partials of the same method, range and
  /// elements give the same bytes.
  std::vector<std::byte> serialise() const;
  /// Restores a partial of `method` from the bytes that `serialise` returned on any backend.
  /// @throws std::invalid_argument if the bytes are damaged, are not a partial, or have another version or
  ///   method. The message says which.
  static Partial deserialise(std::span<const std::byte> bytes, const Method& method);
  /// Restores a partial of any method, for the given backend.
  static Partial deserialise(std::span<const std::byte> bytes, std::string_view backend = "cpu");

 private:
  friend void add_to(Partial& partial, PartialInput& input, std::size_t n);

  /// Elements of a leaf that the partial holds only in part, in the format of the method.
  struct Elements {
    std::vector<std::byte> x, y;
    std::uint64_t count = 0;
  };
  /// A subtree of `count` elements from element `first` on.
  struct Subtree {
    std::uint64_t first, count;
  };

  void check_same_grid(const Options& options) const;
  void add(PartialInput& input, std::size_t n);
  Elements rounded_copy(PartialInput& input, std::size_t first, std::size_t count) const;
  Elements& open_leaf();
  void append_to_leaf(const Elements& elements);
  void append_subtree(Subtree subtree, const std::byte* state);
  void continue_loop(const Elements& elements);
  void reduce_leaf(const Elements& leaf, std::byte* state) const;
  std::size_t subtree_bytes() const;
  std::vector<std::byte> root() const;
  std::vector<std::byte> root_from_left(std::vector<std::byte> tail) const;
  std::string name() const;

  const Method *method_, *on_host_;  // on_host_: the same method on a backend that reads host memory
  const PartialForm* form_;
  std::uint64_t begin_, end_;
  std::optional<int> grid_;
  Elements head_;  // of the leaf in which the range begins, if it begins inside a leaf
  Elements tail_;  // of the last leaf, if it is incomplete
  std::vector<Subtree> subtrees_;
  std::vector<std::byte> states_;  // of the subtrees, one after another
};

}  // namespace samesum
