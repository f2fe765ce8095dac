/// Reductions over ranks element by element: each rank gets a block of all vectors, reduces it along the axis
/// of ranks, and keeps or spreads the results.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "samesum/communicator/mpi/ranks.hpp"
#include "samesum/operation/validation.hpp"

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

  explicit Cut(std::vector<int> of_ranks) : counts{std::move(of_ranks)}, places(counts.size()) {
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), 0);
  }
  /// Blocks of n elements whose lengths differ by at most one.
  static Cut even(std::size_t n, int ranks) {
    const auto count = static_cast<std::size_t>(ranks);
    std::vector<int> counts;
    for (std::size_t r = 0; r < count; ++r)
      counts.push_back(static_cast<int>(n * (r + 1) / count - n * r / count));
    return Cut{counts};
  }
};

/// What both calls do.
class ElementByElement {
 public:
  ElementByElement(const Ranks& ranks, const Method& method, const Options& options, const Values& x,
                   const Values* y, const Results& out)
      : ranks_{ranks},
        method_{method},
        options_{options},
        x_{x},
        y_{y},
        out_{out},
        element_{x.format->bytes},
        result_{method.result_bytes()} {}

  /// Reduces all elements, and writes all results on all ranks.
  void all_reduce() const {
    for (std::size_t first = 0, n; first < x_.size; first += n) {
      n = std::min(most_at_once, x_.size - first);
      const Cut cut = Cut::even(n, ranks_.size());
      const auto part = [&](const Values& all) { return bytes_of(all) + first * x_.format->bytes; };
      const std::vector<std::byte> mine = reduced(part(x_), y_ ? part(*y_) : nullptr, cut);
      check("MPI_Allgatherv",
            MPI_Allgatherv(mine.data(), cut.counts[me()], result_.get(),
                           static_cast<std::byte*>(out_.data) + first * method_.result_bytes(),
                           cut.counts.data(), cut.places.data(), result_.get(), ranks_.comm()));
    }
  }

  /// Reduces all elements, and writes block r of the results, which has sizes[r] elements, on rank r.
  void reduce_scatter(const std::vector<std::uint64_t>& sizes) const {
    const std::size_t per_rank = std::max<std::size_t>(most_at_once / sizes.size(), 1);
    const std::uint64_t longest = *std::ranges::max_element(sizes);
    std::vector<std::byte> of_x, of_y;
    for (std::uint64_t first = 0; first < longest; first += per_rank) {
      // The elements from `first` on of each block, at most `per_rank` of them, one block after another.
      std::vector<int> counts;
      for (const std::uint64_t size : sizes)
        counts.push_back(static_cast<int>(std::min<std::uint64_t>(size - std::min(size, first), per_rank)));
      const auto packed = [&](const Values& all, std::vector<std::byte>& to) {
        const std::size_t bytes = all.format->bytes;
        to.clear();
        std::uint64_t begin = 0;
        for (std::size_t r = 0; r < sizes.size(); begin += sizes[r++]) {
          const std::byte* const from = bytes_of(all) + (begin + std::min(first, sizes[r])) * bytes;
          to.insert(to.end(), from, from + static_cast<std::size_t>(counts[r]) * bytes);
        }
        return to.data();
      };
      const std::vector<std::byte> mine =
          reduced(packed(x_, of_x), y_ ? packed(*y_, of_y) : nullptr, Cut{counts});
      if (!mine.empty())
        std::memcpy(static_cast<std::byte*>(out_.data) + first * method_.result_bytes(), mine.data(),
                    mine.size());
    }
  }

 private:
  static const std::byte* bytes_of(const Values& all) { return static_cast<const std::byte*>(all.data); }
  std::size_t me() const { return static_cast<std::size_t>(ranks_.rank()); }

  /// Sends block r of the cut to rank r, and reduces the blocks that all ranks have sent to this one.
  std::vector<std::byte> reduced(const std::byte* x, const std::byte* y, const Cut& cut) const {
    const std::size_t n = static_cast<std::size_t>(cut.counts[me()]),
                      count = static_cast<std::size_t>(ranks_.size());
    const Cut equal{std::vector<int>(count, cut.counts[me()])};
    const auto received = [&](const std::byte* blocks) {
      std::vector<std::byte> all(count * n * x_.format->bytes);
      check("MPI_Alltoallv",
            MPI_Alltoallv(blocks, cut.counts.data(), cut.places.data(), element_.get(), all.data(),
                          equal.counts.data(), equal.places.data(), element_.get(), ranks_.comm()));
      return all;
    };
    std::vector<std::byte> results(n * method_.result_bytes());
    const std::vector<std::byte> all_x = received(x), all_y = y ? received(y) : std::vector<std::byte>{};
    const Layout over_ranks = Layout::axis(1, count, n);
    const Results out{out_.format, results.data(), n * static_cast<std::size_t>(method_.results)};
    const Values of_x{*x_.format, all_x.data(), count * n};
    ranks_.agree("the reduction of blocks", message_of([&] {
                   if (n == 0) return;
                   if (y)
                     reduce(method_, of_x, {*x_.format, all_y.data(), count * n}, over_ranks, out, options_);
                   else
                     reduce(method_, of_x, over_ranks, out, options_);
                 }));
    return results;
  }

  const Ranks& ranks_;
  const Method& method_;
  const Options& options_;
  const Values& x_;
  const Values* y_;
  const Results& out_;
  Type element_, result_;
};

/// Agrees on a call for which `out` needs this number of results on this rank.
void agree(const Ranks& ranks, std::string_view function, const Method& m, const Values& x, const Values* y,
           const Results& out, std::size_t results, const Options& options) {
  const std::string format{is_listed(x.format) ? x.format->name : "an unknown format"};
  const std::string call = std::string{function} + " of " + std::to_string(x.size) + " elements of " + format;
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("samesum: " + m.name + ": " + why);
  };
  ranks.agree(description(call, m, options), message_of([&] {
                if (m.promise < Promise::everywhere)
                  refuse("its bits differ from run to run; use a method that promises everywhere");
                if (m.has_result_per_element)
                  refuse("the method returns a number per element; use one that reduces");
                std::string wrong = validation_error(m, options);
                if (wrong.empty())
                  wrong = validation_error(m, x, y, nullptr, Layout::axis(1, 1, results), out, true);
                if (!wrong.empty()) refuse(wrong);
              }));
}

void all_reduce(const Method& m, const Values& x, const Values* y, const Results& out, MPI_Comm comm,
                const Options& options) {
  const Ranks ranks{comm};
  agree(ranks, "all_reduce", m, x, y, out, x.size, options);
  ElementByElement{ranks, m, options, x, y, out}.all_reduce();
}

void reduce_scatter(const Method& m, const Values& x, const Values* y, const Results& out, MPI_Comm comm,
                    const Options& options) {
  const Ranks ranks{comm};
  const std::uint64_t mine = out.size / static_cast<std::size_t>(m.results);
  agree(ranks, "reduce_scatter", m, x, y, out, mine, options);
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(ranks.size()));
  check("MPI_Allgather", MPI_Allgather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, ranks.comm()));
  const std::uint64_t all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (all != x.size)  // on all ranks alike
    throw Error{"samesum: " + m.name + ": the blocks of all ranks have room for " + std::to_string(all) +
                " results; they need " + std::to_string(x.size)};
  ElementByElement{ranks, m, options, x, y, out}.reduce_scatter(sizes);
}

}  // namespace

void all_reduce(const Method& method, Values x, Results out, MPI_Comm comm, Options options) {
  all_reduce(method, x, nullptr, out, comm, options);
}
void all_reduce(const Method& method, Values x, Values y, Results out, MPI_Comm comm, Options options) {
  all_reduce(method, x, &y, out, comm, options);
}
void reduce_scatter(const Method& method, Values x, Results out, MPI_Comm comm, Options options) {
  reduce_scatter(method, x, nullptr, out, comm, options);
}
void reduce_scatter(const Method& method, Values x, Values y, Results out, MPI_Comm comm, Options options) {
  reduce_scatter(method, x, &y, out, comm, options);
}

}  // namespace samesum::mpi
