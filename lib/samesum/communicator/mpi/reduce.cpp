/// Reductions of vectors and arrays whose reduced axis is spread over ranks: partials are merged with their
/// neighbours, in a tree of ranks or, where a partial needs the state before it, along a chain.
#include <algorithm>
#include <cstring>

#include "samesum/base/serial_form.hpp"
#include "samesum/communicator/mpi/ranks.hpp"
#include "samesum/operation/validation.hpp"
#include "samesum/order/tree.hpp"

namespace samesum::mpi {
namespace {

/// The elements of this rank, for each of the results.
struct Blocks {
  std::size_t results = 1;
  std::function<std::uint64_t(std::size_t result)> size;
  /// Adds the elements for a result to its partial.
  std::function<void(std::size_t result, Partial&)> add;
};

/// The partials of one or more neighbouring ranks, one for each result; or an error.
struct Parts {
  static constexpr std::int32_t no_rank = -1;
  static constexpr std::string_view name = "parts";

  std::vector<Partial> all = {};
  std::int32_t failed = no_rank;  ///< the rank that has the error
  std::string error = {};

  /// Runs work() on this rank unless there is an error, and keeps the message of its exception.
  void attempt(int rank, const std::function<void()>& work) {
    if (failed != no_rank) return;
    if (const std::string message = message_of(work); !message.empty()) failed = rank, error = message;
  }

  /// Takes in the parts of the next ranks. An error of either is an error of both.
  void merge(int rank, const Parts& next) {
    if (failed == no_rank && next.failed != no_rank) failed = next.failed, error = next.error;
    attempt(rank, [&] {
      for (std::size_t i = 0; i < all.size(); ++i) all[i].merge(next.all[i]);
    });
  }

  /// Byte format: the rank that failed, then its message or the serialised partials, which have checksums,
  /// each after its size.
  std::vector<std::byte> serialise() const {
    SerialWriter out{name};
    const auto put = [&](std::span<const std::byte> bytes) {
      out.put(std::uint64_t{bytes.size()});
      out.put_bytes(bytes);
    };
    out.put(static_cast<std::uint32_t>(failed));
    if (failed != no_rank) put(std::as_bytes(std::span{error}));
    for (const Partial& partial : all)
      if (failed == no_rank) put(partial.serialise());
    return out.bytes();
  }

  static Parts deserialise(std::span<const std::byte> bytes, const Method& method, std::size_t results) {
    SerialReader in{bytes, name};
    Parts parts;
    parts.failed = static_cast<std::int32_t>(in.get<std::uint32_t>());
    const auto get = [&] { return in.get_bytes(in.get<std::uint64_t>(), 1); };
    if (parts.failed != no_rank) {
      for (const std::byte b : get()) parts.error.push_back(static_cast<char>(b));
    } else {
      for (std::size_t i = 0; i < results; ++i) parts.all.push_back(Partial::deserialise(get(), method));
    }
    in.finish();
    return parts;
  }
};

/// The blocks of a call, and where they lie in their vectors.
class SpreadBlocks {
 public:
  SpreadBlocks(const Ranks& ranks, const Method& method, const Options& options, const Blocks& blocks)
      : ranks_{ranks}, method_{method}, options_{options}, blocks_{blocks}, begins_(blocks.results) {
    for (std::size_t i = 0; i < blocks.results; ++i) sizes_.push_back(blocks.size(i));
    check("MPI_Exscan", MPI_Exscan(sizes_.data(), begins_.data(), static_cast<int>(sizes_.size()),
                                   MPI_UINT64_T, MPI_SUM, ranks.comm()));
    if (ranks.rank() == 0) std::ranges::fill(begins_, std::uint64_t{0});  // MPI leaves them undefined
  }

  /// Whether a partial can take in its elements only behind all elements before them.
  bool is_chain() const { return method_.order == Serial::name; }
  /// The rank that has all parts in the end.
  int root() const { return is_chain() ? ranks_.size() - 1 : 0; }

  /// The parts of all ranks, on the root; of fewer ranks on the others.
  Parts merged() const {
    const int me = ranks_.rank(), count = ranks_.size();
    if (is_chain()) {
      Parts mine = me == 0 ? empty() : received(me - 1);
      add_elements(mine);
      if (me + 1 < count) ranks_.send(mine.serialise(), me + 1);
      return mine;
    }
    // After k steps, a rank that is a multiple of 2^k has the parts of 2^k ranks.
    Parts mine = empty();
    add_elements(mine);
    for (int step = 1; step < count; step *= 2) {
      if (me & step) {
        ranks_.send(mine.serialise(), me - step);
        break;
      }
      if (me + step < count) mine.merge(me, received(me + step));
    }
    return mine;
  }

 private:
  Parts empty() const {
    Parts parts;
    parts.attempt(ranks_.rank(), [&] {
      for (const std::uint64_t begin : begins_) parts.all.emplace_back(method_, begin, options_.grid);
    });
    return parts;
  }
  Parts received(int from) const {
    const std::vector<std::byte> bytes = ranks_.receive(from);
    Parts parts;
    parts.attempt(ranks_.rank(), [&] { parts = Parts::deserialise(bytes, method_, blocks_.results); });
    return parts;
  }
  void add_elements(Parts& parts) const {
    parts.attempt(ranks_.rank(), [&] {
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        blocks_.add(i, parts.all[i]);
        if (const std::uint64_t added = parts.all[i].end() - begins_[i]; added != sizes_[i])
          throw std::invalid_argument("samesum: size is " + std::to_string(sizes_[i]) + ", but fill added " +
                                      std::to_string(added) + " elements; add those of this rank");
      }
    });
  }

  const Ranks& ranks_;
  const Method& method_;
  const Options& options_;
  const Blocks& blocks_;
  std::vector<std::uint64_t> sizes_, begins_;
};

/// Reduces the blocks if all ranks agree on the call and have valid arguments. `wrong_arrays` returns a
/// message if x, y, the layout or `out` is invalid.
void reduce(const Method& method, const Blocks& blocks, const Results& out, MPI_Comm comm,
            const Options& options, const std::function<std::string()>& wrong_arrays) {
  const Ranks ranks{comm};
  ranks.agree(description("reduce", method, options) + ", " + std::to_string(blocks.results) + " results",
              message_of([&] {
                Partial{method, 0, options.grid};
                std::string wrong = validation_error(method, options);
                if (wrong.empty()) wrong = wrong_arrays();
                if (wrong.empty() && blocks.results > std::numeric_limits<int>::max())
                  wrong = "there are 2^31 or more results; make several calls";
                if (!wrong.empty()) throw std::invalid_argument("samesum: " + method.name + ": " + wrong);
              }));

  const SpreadBlocks spread{ranks, method, options, blocks};
  Parts parts = spread.merged();
  const std::size_t per_result = static_cast<std::size_t>(method.results),
                    numbers = blocks.results * per_result,
                    bytes = out.format ? out.format->bytes : sizeof(std::int64_t);
  std::byte* const results = static_cast<std::byte*>(out.data);
  if (ranks.rank() == spread.root())
    parts.attempt(ranks.rank(), [&] {
      for (std::size_t i = 0; i < blocks.results; ++i)
        parts.all[i].finish({out.format, results + i * per_result * bytes, per_result}, options);
    });

  // The rank that failed goes before the results, so that one broadcast does if all is well.
  std::vector<std::byte> packet(sizeof parts.failed + numbers * bytes);
  std::memcpy(packet.data(), &parts.failed, sizeof parts.failed);
  if (numbers > 0) std::memcpy(packet.data() + sizeof parts.failed, results, numbers * bytes);
  ranks.broadcast(packet, spread.root());
  std::memcpy(&parts.failed, packet.data(), sizeof parts.failed);
  if (parts.failed != Parts::no_rank)
    Ranks::refuse(parts.failed, ranks.broadcast(parts.error, spread.root()));
  if (numbers > 0) std::memcpy(results, packet.data() + sizeof parts.failed, numbers * bytes);
}

/// Elements (o, k, i) of a result, as contiguous ones. Copies them, at most this many at once, if they are
/// not contiguous.
constexpr std::size_t most_copied = std::size_t{1} << 16;

void add_elements(Partial& partial, const Values& x, const Values* y, const Layout& layout,
                  std::size_t result, const Options& options) {
  const std::size_t o = result / layout.inner, n = layout.length(o);
  const auto part = [&](const Values& all, std::size_t k, std::size_t count, std::vector<std::byte>& copy) {
    const std::size_t bytes = all.format->bytes;
    const auto* from = static_cast<const std::byte*>(all.data) +
                       (layout.first(o) + result % layout.inner + k * layout.stride) * bytes;
    if (layout.stride == 1) return Values{*all.format, from, count};
    copy.resize(count * bytes);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(copy.data() + i * bytes, from + i * layout.stride * bytes, bytes);
    return Values{*all.format, copy.data(), count};
  };
  std::vector<std::byte> of_x, of_y;
  const Options how{.threads = options.threads};
  for (std::size_t k = 0, count; k < n; k += count) {
    count = layout.stride == 1 ? n : std::min(n - k, most_copied);
    if (y)
      partial.add(part(x, k, count, of_x), part(*y, k, count, of_y), how);
    else
      partial.add(part(x, k, count, of_x), how);
  }
}

void reduce(const Method& method, const Values& x, const Values* y, const Layout& layout, const Results& out,
            MPI_Comm comm, const Options& options) {
  const Layout same = normalised(layout);
  const Blocks blocks{
      same.results(), [&](std::size_t i) { return same.length(i / same.inner); },
      [&](std::size_t i, Partial& partial) { add_elements(partial, x, y, same, i, options); }};
  reduce(method, blocks, out, comm, options,
         [&] { return validation_error(method, x, y, nullptr, layout, out, true); });
}

Number reduce(const Method& method, const Values& x, const Values* y, MPI_Comm comm, const Options& options) {
  const Layout layout = Layout::vector(x.size);
  std::uint64_t bits = 0;
  const Blocks blocks{
      1, [&](std::size_t) { return x.size; },
      [&](std::size_t, Partial& partial) { add_elements(partial, x, y, layout, 0, options); }};
  const Results out{method.format, &bits, 1};
  reduce(method, blocks, out, comm, options, [&]() -> std::string {
    if (method.returns_index || method.results != 1)
      return "the method does not return one number; call reduce with a layout and out";
    return validation_error(method, x, y, nullptr, layout, out, true);
  });
  return {method.format, bits};
}

}  // namespace

Number reduce(const Method& method, Values block, MPI_Comm comm, Options options) {
  return reduce(method, block, nullptr, comm, options);
}
Number reduce(const Method& method, Values x, Values y, MPI_Comm comm, Options options) {
  return reduce(method, x, &y, comm, options);
}
void reduce(const Method& method, Values x, Layout layout, Results out, MPI_Comm comm, Options options) {
  reduce(method, x, nullptr, layout, out, comm, options);
}
void reduce(const Method& method, Values x, Values y, Layout layout, Results out, MPI_Comm comm,
            Options options) {
  reduce(method, x, &y, layout, out, comm, options);
}
void reduce(const Method& method, std::uint64_t size, const std::function<void(Partial&)>& fill, Results out,
            MPI_Comm comm, Options options) {
  const Blocks blocks{1, [&](std::size_t) { return size; },
                      [&](std::size_t, Partial& partial) { fill(partial); }};
  const Values none{*method.format, nullptr, 0};
  reduce(method, blocks, out, comm, options, [&] {
    return validation_error(method, none, method.inputs == 2 ? &none : nullptr, nullptr, Layout::vector(0),
                            out, true);
  });
}

}  // namespace samesum::mpi
