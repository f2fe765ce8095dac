/// Reductions of vectors and arrays whose reduced axis is spread over ranks: partials are merged with their
/// neighbours, in a tree of ranks or, where a partial needs the state before it, along a chain.
#include <algorithm>
#include <cstring>

#include "samesum/base/serial_form.hpp"
#include "samesum/call/validation.hpp"
#include "samesum/catalogue/selection.hpp"
#include "samesum/communicator/mpi/ranks.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::mpi {
namespace {

/// The elements of this rank, for each of the results.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  virtual std::size_t results() const = 0;
  /// Number of elements for a result.
  virtual std::uint64_t size(std::size_t result) const = 0;
  /// Adds the elements for a result to its partial.
  virtual void add(std::size_t result, Partial& partial) const = 0;
  /// Returns a message that names the invalid argument; empty if all are valid.
  virtual std::string error(const Results& out, const Options& options) const = 0;

 protected:
  ~Blocks() = default;
};

/// Byte format of the partials of one or more neighbouring ranks, one for each result: the serialised
/// partials, which have checksums, each after its size. A rank that has failed sends no bytes in their place.
constexpr std::string_view name_of_parts = "parts";

std::vector<std::byte> serialised(std::span<const Partial> parts) {
  SerialWriter out{name_of_parts};
  for (const Partial& partial : parts) {
    const std::vector<std::byte> bytes = partial.serialise();
    out.put(std::uint64_t{bytes.size()});
    out.put_bytes(bytes);
  }
  return out.bytes();
}

std::vector<Partial> deserialised(std::span<const std::byte> bytes, const Method& method,
                                  std::size_t results) {
  SerialReader in{bytes, name_of_parts};
  std::vector<Partial> parts;
  for (std::size_t i = 0; i < results; ++i)
    parts.push_back(Partial::deserialise(in.get_bytes(in.get<std::uint64_t>(), 1), method));
  in.finish();
  return parts;
}

/// The reduction of blocks whose places in their vectors the ranks before this one determine.
class SpreadReduction {
 public:
  /// Allocates all that the messages need but for partials, whose sizes become known on the way.
  SpreadReduction(const Ranks& ranks, const Method& method, const Options& options, const Blocks& blocks,
                  const Results& out)
      : ranks_{ranks},
        method_{method},
        options_{options},
        blocks_{blocks},
        out_{out},
        sizes_(blocks.results()),
        begins_(sizes_.size()),
        packet_(header + sizes_.size() * method.result_bytes()) {
    for (std::size_t i = 0; i < sizes_.size(); ++i) sizes_[i] = blocks.size(i);
  }

  /// Writes the results on all ranks.
  void run() {
    check("MPI_Exscan", MPI_Exscan(sizes_.data(), begins_.data(), static_cast<int>(sizes_.size()),
                                   MPI_UINT64_T, MPI_SUM, ranks_.comm()));
    if (ranks_.rank() == 0) std::ranges::fill(begins_, std::uint64_t{0});  // MPI leaves them undefined
    merge_parts();
    const int root = is_chain() ? ranks_.size() - 1 : 0;  // has all parts
    if (ranks_.rank() == root) attempt([&] { finish(); });

    // One broadcast does if all is well: it says whether the results behind it are those.
    packet_[0] = static_cast<std::byte>(failed_);
    ranks_.broadcast(packet_, root);
    if (packet_[0] != std::byte{0}) {
      ranks_.agree(report_);
      throw Error{"samesum: a partial was lost on its way; reduce again"};
    }
    if (!sizes_.empty()) std::memcpy(out_.data, packet_.data() + header, packet_.size() - header);
  }

 private:
  /// Whether a partial can take in its elements only behind all elements before them.
  bool is_chain() const { return method_.order == Serial::name; }

  /// Merges the parts of all ranks, on the root; of fewer ranks on the others.
  void merge_parts() {
    const int me = ranks_.rank(), count = ranks_.size();
    if (is_chain()) {
      if (me == 0)
        begin();
      else
        receive(me - 1, [&](std::vector<Partial> before) { parts_ = std::move(before); });
      add_elements();
      if (me + 1 < count) send(me + 1);
      return;
    }
    begin();
    add_elements();
    // After k steps, a rank that is a multiple of 2^k has the parts of 2^k ranks.
    for (int step = 1; step < count; step *= 2) {
      if (me & step) return send(me - step);
      if (me + step < count)
        receive(me + step, [&](const std::vector<Partial>& next) {
          for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].merge(next[i]);
        });
    }
  }

  /// Runs work() unless this rank, or one whose parts it has, has failed. Keeps the message of its exception.
  template <class Work> void attempt(const Work& work) {
    if (failed_) return;
    report_ = report_of([&] {
      work();
      return std::string_view{};
    });
    failed_ = report_.failed;
  }
  void begin() {
    attempt([&] {
      for (const std::uint64_t begin : begins_) parts_.emplace_back(method_, begin, options_.grid);
    });
  }
  void add_elements() {
    attempt([&] {
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        blocks_.add(i, parts_[i]);
        if (const std::uint64_t added = parts_[i].end() - begins_[i]; added != sizes_[i])
          throw std::invalid_argument("samesum: size is " + std::to_string(sizes_[i]) + ", but fill added " +
                                      std::to_string(added) + " elements; add those of this rank");
      }
    });
  }
  void send(int to) {
    std::vector<std::byte> bytes;
    attempt([&] { bytes = serialised(parts_); });
    ranks_.send(bytes, to);
  }
  template <class Take> void receive(int from, const Take& take) {
    const std::optional<std::vector<std::byte>> bytes = ranks_.receive(from);
    if (bytes && bytes->empty()) failed_ = true;
    attempt([&] {
      if (!bytes) throw std::bad_alloc{};
      take(deserialised(*bytes, method_, sizes_.size()));
    });
  }
  void finish() {
    const std::size_t numbers = static_cast<std::size_t>(method_.results), bytes = method_.result_bytes();
    for (std::size_t i = 0; i < parts_.size(); ++i)
      parts_[i].finish({out_.format, packet_.data() + header + i * bytes, numbers},
                       of_all_elements(options_));
  }

  static constexpr std::size_t header = 16;  ///< bytes before the results, which keep them aligned

  const Ranks& ranks_;
  const Method& method_;
  const Options& options_;
  const Blocks& blocks_;
  const Results& out_;
  std::vector<std::uint64_t> sizes_, begins_;  ///< of the blocks of this rank, for each result
  std::vector<std::byte> packet_;              ///< whether a rank has failed, and the results
  std::vector<Partial> parts_;
  Report report_ = Report::of_call({});  ///< why this rank has failed, if it has
  bool failed_ = false;                  ///< whether it has, or one whose parts it needs
};

/// Checks the arguments of this rank, and makes its reduction. Returns the description of the call.
std::string prepare(std::optional<SpreadReduction>& reduction, const Ranks& ranks, const Method& method,
                    const Blocks& blocks, const Results& out, const Options& options) {
  Partial{method, 0, options.grid};
  std::string wrong = blocks.error(out, options);
  if (wrong.empty() && blocks.results() > std::numeric_limits<int>::max())
    wrong = "there are 2^31 or more results; make several calls";
  if (!wrong.empty()) refuse(method, wrong);
  reduction.emplace(ranks, method, options, blocks, out);
  return description("reduce", method, options) + ", " + std::to_string(blocks.results()) + " results";
}

/// Reduces the blocks if all ranks agree on the call and have valid arguments.
void reduce(const Method& method, const Blocks& blocks, const Results& out, MPI_Comm comm,
            const Options& options) {
  const Ranks ranks{comm};
  std::optional<SpreadReduction> reduction;
  ranks.agree(report_of([&] { return prepare(reduction, ranks, method, blocks, out, options); }));
  reduction->run();
}

/// Place of the first element of a result.
std::size_t first_of(const Layout& layout, std::size_t result) {
  return layout.first(result / layout.inner) + result % layout.inner;
}

/// Number of elements of a result that take part.
std::uint64_t count_selected(const Call& call, std::size_t result) {
  const std::size_t n = call.layout.length(result / call.layout.inner);
  const auto where = [&](std::size_t at) {
    return !call.options.where.data || call.options.where.data[at] != 0;
  };
  return with_format(*call.x.format, [&]<class T>() {
    const auto is_nan = [](const Values& all, std::size_t at) {
      return all.is_given() && is_nan_bits<T>(to_bits(static_cast<const T*>(all.data)[at]));
    };
    std::uint64_t count = 0;
    for (std::size_t k = 0, at = first_of(call.layout, result); k < n; ++k, at += call.layout.stride)
      count += where(at) && !(call.options.skip_nan && (is_nan(call.x, at) || is_nan(call.y, at)));
    return count;
  });
}

/// Elements (o, k, i) of a result, as contiguous ones. Copies them, at most this many at once, if they are
/// not contiguous.
constexpr std::size_t most_copied = std::size_t{1} << 16;

void add_elements(Partial& partial, const Call& call, std::size_t result) {
  const std::size_t n = call.layout.length(result / call.layout.inner), stride = call.layout.stride;
  // The elements from number k on of an array, each of which has so many bytes.
  const auto part = [&](const void* all, std::size_t bytes, std::size_t k, std::size_t count,
                        std::vector<std::byte>& copy) -> const void* {
    const auto* from =
        static_cast<const std::byte*>(all) + (first_of(call.layout, result) + k * stride) * bytes;
    if (stride == 1) return from;
    copy.resize(count * bytes);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(copy.data() + i * bytes, from + i * stride * bytes, bytes);
    return copy.data();
  };
  std::vector<std::byte> of_x, of_y, of_where;
  Options how{.threads = call.options.threads, .skip_nan = call.options.skip_nan};
  for (std::size_t k = 0, count; k < n; k += count) {
    count = stride == 1 ? n : std::min(n - k, most_copied);
    const auto values = [&](const Values& all, std::vector<std::byte>& copy) {
      if (!all.is_given()) return all;
      return Values{*all.format, part(all.data, all.format->bytes, k, count, copy), count};
    };
    if (call.options.where.is_given())
      how.where = {part(call.options.where.data, 1, k, count, of_where), count};
    partial.add(values(call.x, of_x), values(call.y, of_y), how);
  }
}

/// Elements of arrays.
class BlocksOfArrays : public Blocks {
 public:
  /// `for_number`: the caller returns the result as a Number.
  BlocksOfArrays(const Call& call, bool for_number)
      : call_{call}, normal_{normalised(call)}, for_number_{for_number} {}
  std::size_t results() const override { return normal_.layout.results(); }
  std::uint64_t size(std::size_t result) const override {
    return selects(call_.options) ? count_selected(normal_, result)
                                  : normal_.layout.length(result / normal_.layout.inner);
  }
  void add(std::size_t result, Partial& partial) const override { add_elements(partial, normal_, result); }
  std::string error(const Results&, const Options&) const override {
    if (for_number_ && (call_.method->returns_index || call_.method->results != 1))
      return "the method does not return one number; call reduce with a layout and out";
    if (call_.method->returns_index && selects(call_.options))
      return "an index cannot count elements that take no part on other ranks; leave out where and skip_nan";
    Call all = call_;
    all.options = of_all_elements(call_.options);
    const std::string wrong = validation_error(all, true);
    return wrong.empty() && selects(call_.options) ? selection_error(call_) : wrong;
  }
  const Call& call() const { return call_; }

 private:
  Call call_, normal_;
  bool for_number_;
};

/// Elements that a function of the caller adds.
class FilledBlock : public Blocks {
 public:
  FilledBlock(const Method& method, std::uint64_t size, const std::function<void(Partial&)>& fill)
      : method_{method}, size_{size}, fill_{fill} {}
  std::size_t results() const override { return 1; }
  std::uint64_t size(std::size_t) const override { return size_; }
  void add(std::size_t, Partial& partial) const override { fill_(partial); }
  std::string error(const Results& out, const Options& options) const override {
    const Values none{*method_.format, nullptr, 0};
    return validation_error({.method = &method_,
                             .x = none,
                             .y = method_.inputs == 2 ? none : Values{},
                             .layout = Layout::vector(0),
                             .out = out,
                             .options = options},
                            true);
  }

 private:
  const Method& method_;
  std::uint64_t size_;
  const std::function<void(Partial&)>& fill_;
};

}  // namespace

void run(const std::function<Call()>& call, MPI_Comm comm) {
  const Ranks ranks{comm};
  std::optional<BlocksOfArrays> blocks;
  std::optional<SpreadReduction> reduction;
  ranks.agree(report_of([&] {
    blocks.emplace(call(), false);
    const Call& all = blocks->call();
    return prepare(reduction, ranks, *all.method, *blocks, all.out, all.options);
  }));
  reduction->run();
}
void run(const Call& call, MPI_Comm comm) {
  run([&] { return call; }, comm);
}

Number reduce(const Method& method, Values x, Values y, MPI_Comm comm, Options options) {
  std::uint64_t bits = 0;
  const Call call{.method = &method,
                  .x = x,
                  .y = y,
                  .layout = Layout::vector(x.size),
                  .out = {method.format, &bits, 1},
                  .options = options};
  reduce(method, BlocksOfArrays{call, true}, call.out, comm, options);
  return {method.format, bits};
}

void reduce(const Method& method, std::uint64_t size, const std::function<void(Partial&)>& fill, Results out,
            MPI_Comm comm, Options options) {
  reduce(method, FilledBlock{method, size, fill}, out, comm, options);
}

}  // namespace samesum::mpi
