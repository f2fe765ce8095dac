/// Reductions over ranks element by element: each rank gets a block of all vectors, reduces it along the axis
/// of ranks, and keeps or spreads the results.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "samesum/call/validation.hpp"
#include "samesum/communicator/mpi/ranks.hpp"

namespace samesum::mpi {
namespace {

// Elements that a rank sends at once: enough for the bandwidth, and so few that counts and places fit in int.
constexpr std::size_t most_at_once = std::size_t{1} << 24;

/// An element, or a result, as MPI's type.
class Type {
 public:
  explicit Type(std::size_t bytes) : type_{type_of_bytes(bytes)} {}
  ~Type() { MPI_Type_free(&type_); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

/// Consecutive blocks, one per rank.
struct Cut {
  std::vector<int> counts, places;

  explicit Cut(std::size_t ranks) : counts(ranks), places(ranks) {}
  /// Gives rank r count_of(r) elements.
  template <class Count> void set(const Count& count_of) {
    for (std::size_t r = 0; r < counts.size(); ++r) counts[r] = static_cast<int>(count_of(r));
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
  }
};

/// What both calls do, in memory that the constructor allocates.
class ElementByElement {
 public:
  /// This rank reduces at most `most` elements at once. It packs the elements for all ranks, at most
  /// `most_packed` at once, if their blocks are not consecutive.
  ElementByElement(const Ranks& ranks, const Method& method, const Options& options, const Values& x,
                   const Values& y, const Results& out, std::size_t most, std::size_t most_packed)
      : ranks_{ranks},
        method_{method},
        options_{options},
        x_{x},
        y_{y},
        out_{out},
        count_{static_cast<std::size_t>(ranks.size())},
        element_{x.format->bytes},
        result_{method.result_bytes()},
        sent_{count_},
        received_{count_},
        packed_x_(most_packed * x.format->bytes),
        packed_y_(y.is_given() ? packed_x_.size() : 0),
        received_x_(count_ * most * x.format->bytes),
        received_y_(y.is_given() ? received_x_.size() : 0),
        results_(most * method.result_bytes()),
        sizes_(count_) {}

  /// Most elements of a vector of n that a rank gets from each other one at once, for all_reduce.
  static std::size_t most_of_even_blocks(std::size_t n, std::size_t ranks) {
    return (std::min(most_at_once, n) + ranks - 1) / ranks;
  }
  /// Most elements of a vector that a rank gets from each other one at once, for reduce_scatter.
  static std::size_t most_of_blocks(std::size_t ranks) {
    return std::max<std::size_t>(most_at_once / ranks, 1);
  }

  /// Reduces all elements, and writes all results on all ranks.
  void all_reduce() {
    for (std::size_t first = 0, n; first < x_.size; first += n) {
      n = std::min(most_at_once, x_.size - first);
      sent_.set([&](std::size_t r) { return n * (r + 1) / count_ - n * r / count_; });
      const auto part = [&](const Values& all) { return bytes_of(all) + first * all.format->bytes; };
      reduce_blocks(part(x_), y_.is_given() ? part(y_) : nullptr);
      check("MPI_Allgatherv",
            MPI_Allgatherv(results_.data(), sent_.counts[me()], result_.get(), results_at(first),
                           sent_.counts.data(), sent_.places.data(), result_.get(), ranks_.comm()));
    }
  }

  /// Reduces all elements, and writes the next `mine` results after those of the ranks before on this rank.
  /// Throws on all ranks if these are not all results.
  void reduce_scatter(std::uint64_t mine) {
    check("MPI_Allgather",
          MPI_Allgather(&mine, 1, MPI_UINT64_T, sizes_.data(), 1, MPI_UINT64_T, ranks_.comm()));
    const std::uint64_t all = std::accumulate(sizes_.begin(), sizes_.end(), std::uint64_t{0});
    if (all != x_.size)  // on all ranks alike
      throw Error{"samesum: " + method_.name + ": the blocks of all ranks have room for " +
                  std::to_string(all) + " results; they need " + std::to_string(x_.size)};
    const std::uint64_t most = most_of_blocks(count_), longest = *std::ranges::max_element(sizes_);
    for (std::uint64_t first = 0; first < longest; first += most) {
      // The elements from `first` on of each block, at most `most` of them.
      sent_.set([&](std::size_t r) { return std::min(sizes_[r] - std::min(sizes_[r], first), most); });
      pack(x_, first, packed_x_);
      if (y_.is_given()) pack(y_, first, packed_y_);
      reduce_blocks(packed_x_.data(), packed_y_.data());
      if (const auto n = static_cast<std::size_t>(sent_.counts[me()]); n > 0)
        std::memcpy(results_at(first), results_.data(), n * method_.result_bytes());
    }
  }

 private:
  static const std::byte* bytes_of(const Values& all) { return static_cast<const std::byte*>(all.data); }
  std::byte* results_at(std::size_t first) const {
    return static_cast<std::byte*>(out_.data) + first * method_.result_bytes();
  }
  std::size_t me() const { return static_cast<std::size_t>(ranks_.rank()); }

  /// Copies the elements from `first` on of the block of each rank, one block after another.
  void pack(const Values& all, std::uint64_t first, std::vector<std::byte>& to) const {
    const std::size_t bytes = all.format->bytes;
    std::uint64_t begin = 0;
    for (std::size_t r = 0; r < count_; begin += sizes_[r++])
      if (const auto n = static_cast<std::size_t>(sent_.counts[r]); n > 0)
        std::memcpy(to.data() + static_cast<std::size_t>(sent_.places[r]) * bytes,
                    bytes_of(all) + (begin + first) * bytes, n * bytes);
  }

  /// Sends block r to rank r, and reduces the blocks that all ranks have sent to this one.
  void reduce_blocks(const std::byte* x, const std::byte* y) {
    const auto n = static_cast<std::size_t>(sent_.counts[me()]);
    received_.set([&](std::size_t) { return n; });
    const auto exchange = [&](const std::byte* from, std::vector<std::byte>& to) {
      check("MPI_Alltoallv",
            MPI_Alltoallv(from, sent_.counts.data(), sent_.places.data(), element_.get(), to.data(),
                          received_.counts.data(), received_.places.data(), element_.get(), ranks_.comm()));
    };
    exchange(x, received_x_);
    if (y_.is_given()) exchange(y, received_y_);
    ranks_.agree(report_of([&] {
      Call call{.method = &method_,
                .x = {*x_.format, received_x_.data(), count_ * n},
                .layout = Layout::axis(1, count_, n),
                .out = {out_.format, results_.data(), n * static_cast<std::size_t>(method_.results)},
                .options = options_};
      if (y_.is_given()) call.y = {*x_.format, received_y_.data(), count_ * n};
      if (n > 0) run(call);
      return std::string_view{"the reduction of blocks"};
    }));
  }

  const Ranks& ranks_;
  const Method& method_;
  const Options& options_;
  const Values &x_, &y_;
  const Results& out_;
  std::size_t count_;  ///< of ranks
  Type element_, result_;
  Cut sent_, received_;
  std::vector<std::byte> packed_x_, packed_y_, received_x_, received_y_, results_;
  std::vector<std::uint64_t> sizes_;  ///< sizes of the blocks of results
};

/// Checks a call for which `out` needs this number of results on this rank, and returns its description.
std::string checked_description(std::string_view function, const Method& m, const Values& x, const Values& y,
                                const Results& out, std::size_t results, const Options& options) {
  if (m.promise < Promise::everywhere)
    refuse(m, "its bits differ from run to run; use a method that promises everywhere");
  if (m.has_result_per_element) refuse(m, "the method returns a number per element; use one that reduces");
  std::string wrong = validation_error(
      {.method = &m, .x = x, .y = y, .layout = Layout::axis(1, 1, results), .out = out, .options = options},
      true);
  if (wrong.empty()) wrong = overlap_error(x, y, out);
  if (!wrong.empty()) refuse(m, wrong);
  return description(
      std::string{function} + " of " + std::to_string(x.size) + " elements of " + std::string{x.format->name},
      m, options);
}

}  // namespace

void all_reduce(const Method& m, Values x, Values y, Results out, MPI_Comm comm, Options options) {
  const Ranks ranks{comm};
  std::optional<ElementByElement> call;
  ranks.agree(report_of([&] {
    const std::string text = checked_description("all_reduce", m, x, y, out, x.size, options);
    const auto count = static_cast<std::size_t>(ranks.size());
    call.emplace(ranks, m, options, x, y, out, ElementByElement::most_of_even_blocks(x.size, count), 0);
    return text;
  }));
  call->all_reduce();
}

void reduce_scatter(const Method& m, Values x, Values y, Results out, MPI_Comm comm, Options options) {
  const Ranks ranks{comm};
  const std::size_t mine = out.size / static_cast<std::size_t>(m.results);
  std::optional<ElementByElement> call;
  ranks.agree(report_of([&] {
    const std::string text = checked_description("reduce_scatter", m, x, y, out, mine, options);
    const auto count = static_cast<std::size_t>(ranks.size());
    const std::size_t most = ElementByElement::most_of_blocks(count);
    call.emplace(ranks, m, options, x, y, out, std::min(mine, most), std::min(x.size, most * count));
    return text;
  }));
  call->reduce_scatter(mine);
}

}  // namespace samesum::mpi
