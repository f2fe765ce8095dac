/// Tests of samesum::mpi. `mpi_ranks undivided` prints a hash for each method; `mpi_ranks blocks`, run by
/// mpirun with any number of ranks, prints the same hashes, after it has tested all that has other results
/// for other numbers of ranks. In `mpi_ranks killed` one of two or more ranks is killed.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>

#include "environments.hpp"
#include "partial_support.hpp"
#include "samesum/base/serial_form.hpp"
#include "samesum/mpi.hpp"

namespace samesum::testing_support {
namespace {

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error{what};
}

int rank_of_this() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int count_ranks() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// A layout without its elements: those of result i are [begin(i), end(i)) of its undivided ones.
struct Case {
  std::string kind;
  std::size_t outer, n, inner;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"vector", 1, 0, 1},      {"vector", 1, 1, 1}, {"vector", 1, 700, 1},    {"vector", 1, 4096, 1},
      {"vector", 1, 30'011, 1}, {"rows", 5, 333, 1}, {"columns", 2, 1'500, 3}, {"segments", 4, 900, 1}};
  return all;
}

/// What makes the elements of a case, the same on all ranks.
Inputs inputs_of(const Method& m, const Case& c) {
  std::mt19937_64 random{
      std::accumulate(m.name.begin(), m.name.end(), c.outer * 31 + c.n,
                      [](std::size_t h, char x) { return h * 131 + static_cast<unsigned char>(x); })};
  const std::size_t n = c.outer * c.n * c.inner;
  if (c.kind == "vector") return random_inputs(random, m, n);
  const auto elements = [&] { return random_elements(random, n, *m.format); };
  return {{*m.format, elements()}, {*m.format, m.inputs == 2 ? elements() : std::vector<double>{}}, n};
}

/// The elements [begin, end) of the reduced axis.
Inputs cut(const Inputs& in, const Case& c, std::size_t begin, std::size_t end) {
  const auto part = [&](const Array& array) {
    const Values all = array.values();
    std::vector<double> kept;
    for (std::size_t o = 0; o < (all.size > 0 ? c.outer : 0); ++o)
      for (std::size_t k = begin; k < end; ++k)
        for (std::size_t i = 0; i < c.inner; ++i)
          kept.push_back(with_format(*all.format, [&]<class F>() {
            return convert<double>(all.as<F>()[(o * c.n + k) * c.inner + i]);
          }));
    return Array{*all.format, kept};
  };
  return {part(in.x), part(in.y), c.outer * (end - begin) * c.inner};
}

/// The layout of n elements per result; `offsets` keeps those of segments.
Layout layout_of(const Case& c, std::size_t n, std::vector<std::uint64_t>& offsets) {
  if (c.kind == "vector") return Layout::vector(n);
  if (c.kind != "segments") return Layout::axis(c.outer, n, c.inner);
  for (std::size_t o = 0; o <= c.outer; ++o) offsets.push_back(o * n);
  return Layout::segments(offsets.data(), c.outer);
}

/// Uneven cuts of n elements, the same on all ranks; many blocks are empty.
std::vector<std::size_t> cuts_of(std::size_t n, std::size_t seed) {
  std::mt19937_64 random{seed};
  std::vector<std::size_t> cuts{0, n};
  for (int r = 1; r < count_ranks(); ++r) cuts.push_back(random() % 4 == 0 ? n : below(random, n + 1));
  std::ranges::sort(cuts);
  return cuts;
}

using Reduce = std::function<void(const Method&, const Inputs&, const Layout&, Results, Options)>;

/// Whether the method takes the case.
bool is_for(const Method& m, const Case& c) {
  return c.kind == "vector" || m.accepts(*m.format, Layout::axis(c.outer, c.n, c.inner));
}

/// A line per method: its name, and a hash of the results of all cases. `block_of` returns the part of the
/// elements that this process has.
std::string hashes(const std::function<std::array<std::size_t, 2>(std::size_t n)>& block_of,
                   const Reduce& reduce_block) {
  std::string lines;
  for (const Method* m : methods_with_partials("cpu")) {
    Text text;
    for (const Case& c : cases()) {
      if (!is_for(*m, c)) continue;
      const auto [begin, end] = block_of(c.n);
      const Inputs block = cut(inputs_of(*m, c), c, begin, end);
      std::vector<std::uint64_t> offsets;
      const Layout layout = layout_of(c, end - begin, offsets);
      Bits bits(c.outer * c.inner * static_cast<std::size_t>(m->results));
      Results out = results_of(*m, bits);
      out.size = bits.size();
      try {
        reduce_block(*m, block, layout, out, with_grid(*m, {.threads = 1, .ddof = double(m->results == 2)}));
      } catch (const std::exception& e) {
        expect(std::string_view{e.what()}.find("overflows the grid") != std::string_view::npos, e.what());
        text << "overflow";
        continue;
      }
      for (const std::uint64_t word : bits) text << word;
    }
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(text.hash()));
    lines += m->name + ' ' + hash + '\n';
  }
  return lines;
}

std::string undivided_hashes() {
  return hashes(
      [](std::size_t n) {
        return std::array<std::size_t, 2>{0, n};
      },
      [](const Method& m, const Inputs& in, const Layout& layout, Results out, Options options) {
        if (m.inputs == 2)
          reduce(m, in.x.values(), in.y.values(), layout, out, options);
        else
          reduce(m, in.x.values(), layout, out, options);
      });
}

/// The hashes of mpi::reduce on blocks, the same on all ranks.
std::string hashes_of_blocks() {
  std::size_t seed = 0;
  const std::string lines = hashes(
      [&](std::size_t n) {
        const std::vector<std::size_t> cuts = cuts_of(n, ++seed);
        const auto rank = static_cast<std::size_t>(rank_of_this());
        return std::array<std::size_t, 2>{cuts[rank], cuts[rank + 1]};
      },
      [](const Method& m, const Inputs& in, const Layout& layout, Results out, Options options) {
        if (m.inputs == 2)
          mpi::reduce(m, in.x.values(), in.y.values(), layout, out, MPI_COMM_WORLD, options);
        else
          mpi::reduce(m, in.x.values(), layout, out, MPI_COMM_WORLD, options);
      });
  mpi::together(MPI_COMM_WORLD, lines, [] {});
  return lines;
}

/// Vectors of all ranks, reduced element by element, have the bits of the reduction of a matrix of all of
/// them.
void test_elements() {
  const std::size_t count = static_cast<std::size_t>(count_ranks()), n = 101,
                    me = static_cast<std::size_t>(rank_of_this());
  int compared = 0;
  for (const Method& m : methods()) {
    if (m.backend != "cpu" || m.promise < Promise::everywhere || !reduces_vectors(m) ||
        !m.accepts(*m.format, Layout::axis(1, count, n)))
      continue;
    const Case matrix{"columns", 1, count, n};
    const Inputs all = inputs_of(m, matrix), mine = cut(all, matrix, me, me + 1);
    const std::size_t numbers = n * static_cast<std::size_t>(m.results), bytes = m.result_bytes();
    const auto array_of = [&](std::vector<std::byte>& memory, std::size_t results) {
      memory.resize(results * bytes);
      return Results{m.result_format(*m.format), memory.data(),
                     results * static_cast<std::size_t>(m.results)};
    };
    std::vector<std::byte> expected, reduced, scattered;
    const Results whole = array_of(expected, n), of_all = array_of(reduced, n);
    // The last rank has the rest.
    const std::size_t each = n / (2 * count), size = me + 1 == count ? n - each * me : each;
    const Results of_block = array_of(scattered, size);
    const Options options = with_grid(m);
    const Layout over_ranks = Layout::axis(1, count, n);
    expect(whole.size == numbers, m.name);
    bool overflows = false;
    try {
      if (m.inputs == 2)
        reduce(m, all.x.values(), all.y.values(), over_ranks, whole, options);
      else
        reduce(m, all.x.values(), over_ranks, whole, options);
    } catch (const std::overflow_error&) {
      overflows = true;
    }
    try {
      if (m.inputs == 2) {
        mpi::all_reduce(m, mine.x.values(), mine.y.values(), of_all, MPI_COMM_WORLD, options);
        mpi::reduce_scatter(m, mine.x.values(), mine.y.values(), of_block, MPI_COMM_WORLD, options);
      } else {
        mpi::all_reduce(m, mine.x.values(), of_all, MPI_COMM_WORLD, options);
        mpi::reduce_scatter(m, mine.x.values(), of_block, MPI_COMM_WORLD, options);
      }
      expect(!overflows, m.name + ": no overflow");
      expect(reduced == expected, m.name + ": all_reduce has other bits");
      expect(std::equal(scattered.begin(), scattered.end(),
                        expected.begin() + static_cast<std::ptrdiff_t>(each * me * bytes)),
             m.name + ": reduce_scatter has other bits");
    } catch (const mpi::Error& e) {
      expect(overflows, e.what());
    }
    ++compared;
  }
  expect(compared > 30, "hardly any method was compared");
}

/// Exact states and packed partials go through MPI's own collectives.
void test_states() {
  const std::size_t me = static_cast<std::size_t>(rank_of_this()),
                    count = static_cast<std::size_t>(count_ranks());
  const std::vector<double> x = wide(1000 * count, 200, 3);
  const std::span<const double> mine = std::span{x}.subspan(1000 * me, 1000);

  std::vector<Exact> sums{accumulate(mine), accumulate(mine.first(10))};
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, mpi::exact_type(), mpi::exact_sum(), MPI_COMM_WORLD);
  expect(sums[0].serialise() == accumulate(std::span<const double>{x}).serialise(), "another exact sum");

  int packed = 0;
  for (const Method* m : methods_with_partials("cpu")) {
    if (m->promise < Promise::order_free || !m->accepts(format_info<fp64>())) continue;
    const auto partial_of_part = [&](std::size_t begin, std::size_t n) {
      Partial partial = partial_of(*m, begin);
      const std::span<const double> part = std::span{x}.subspan(begin, n);
      m->inputs == 2 ? partial.add(part, part) : partial.add(part);
      return partial;
    };
    const mpi::PackedPartials form{*m, with_grid(*m).grid};
    const std::size_t n = me == 0 ? 0 : 1000;  // rank 0 has no elements
    std::vector<std::byte> bytes = form.pack(partial_of_part(me == 0 ? 0 : 1000 * (me - 1), n));
    MPI_Allreduce(MPI_IN_PLACE, bytes.data(), 1, form.type(), form.merge(), MPI_COMM_WORLD);
    expect(form.unpack(bytes).serialise() == partial_of_part(0, 1000 * (count - 1)).serialise(),
           m->name + ": another packed partial");
    ++packed;
    if (count == 1) continue;
    bytes = form.pack(partial_of_part(5 * me, 1));  // no neighbours
    MPI_Allreduce(MPI_IN_PLACE, bytes.data(), 1, form.type(), form.merge(), MPI_COMM_WORLD);
    try {
      form.unpack(bytes);
      expect(false, m->name + ": partials that are no neighbours were merged");
    } catch (const std::invalid_argument&) {
    }
  }
  expect(packed > 10, "hardly any method was packed");
}

/// What MPI_Send below does to messages of this rank.
enum class Damage { none, bit, version } damage = Damage::none;

/// Expects that the call throws on all ranks, with one message that contains the words.
void expect_error(const std::string& words, const std::function<void()>& call) {
  std::string message = "nothing was thrown";
  try {
    call();
  } catch (const mpi::Error& e) {
    message = e.what();
  }
  damage = Damage::none;
  mpi::together(MPI_COMM_WORLD, message, [&] {
    expect(message.find(words) != std::string::npos, "'" + words + "' is not in: " + message);
  });
}

void test_errors() {
  const int me = rank_of_this(), last = count_ranks() - 1;
  const bool odd_one = me == last;
  const std::string rank = "rank " + std::to_string(last);
  const std::vector<double> x(5000, 1.0), y(odd_one ? 4999 : 5000, 1.0), negative(10, -1e300);
  std::vector<double> out(odd_one ? 3 : 2), wide_out(5000);
  const Method &tree = find("tree/plain/fp64"), &kahan = find("tree/kahan/fp64"),
               &serial = find("serial/plain/fp64"), &on_grid = find("fixed_point/fp64"),
               &dot = find("dot/exact/fp64");
  const MPI_Comm world = MPI_COMM_WORLD;
  const Values none{format_info<fp64>(), nullptr, 0}, null{format_info<fp64>(), nullptr, 1};

  expect_error("calls reduce with sum/tree/kahan/fp64",
               [&] { mpi::reduce(odd_one ? kahan : tree, x, world); });
  expect_error("all_reduce of 5000 elements of fp64", [&] {
    odd_one ? mpi::all_reduce(tree, x, std::span{wide_out}, world)
            : static_cast<void>(mpi::reduce(tree, x, world));
  });
  expect_error("ddof 1", [&] {
    mpi::reduce(find("moments/tree/fp64"), x, Layout::vector(5000), std::span{out}.first(2), world,
                {.ddof = double(odd_one)});
  });
  expect_error("samesum 0.0.1",
               [&] { mpi::together(world, odd_one ? "samesum 0.0.1" : "samesum 0.1.0", [] {}); });
  expect_error(rank + ": sum/tree/plain/fp64@cpu: x is null",
               [&] { mpi::reduce(tree, odd_one ? null : none, world); });
  expect_error(rank + ": dot/exact/fp64@cpu: x has 5000 elements and y has 4999",
               [&] { mpi::reduce(dot, x, y, world); });
  expect_error(rank + ": sum/tree/plain/fp64@cpu: threads",
               [&] { mpi::reduce(tree, x, world, {.threads = -odd_one}); });
  expect_error("needs a grid", [&] { mpi::reduce(on_grid, x, world); });
  expect_error("run to run", [&] { mpi::reduce(find("atomic/plain/fp64"), x, world); });
  expect_error("overflows the grid", [&] { mpi::reduce(on_grid, x, world, {.grid = -120}); });
  expect_error("does not return one number", [&] { mpi::reduce(find("argmax/fp64"), x, world); });
  expect_error("calls reduce with", [&] {  // another number of rows
    mpi::reduce(tree, x, Layout::rows(out.size(), 7), std::span{out}, world);
  });
  for (const Method* m : {&tree, &serial}) {
    const auto fill = [&](const std::function<void(Partial&)>& on_odd_one) {
      std::uint64_t bits = 0;
      mpi::reduce(
          *m, 5000, [&](Partial& partial) { odd_one ? on_odd_one(partial) : partial.add(x); },
          {&format_info<fp64>(), &bits, 1}, world);
    };
    expect_error(rank + ": the disk is gone",
                 [&] { fill([](Partial&) { throw std::runtime_error{"the disk is gone"}; }); });
    expect_error(rank + ": size is 5000, but fill added 5",
                 [&] { fill([&](Partial& p) { p.add(std::span{x}.first(5)); }); });
    // Each rank but the root sends one message; in the chain, the last rank sends none.
    const bool sends = me == (m == &serial ? 0 : last);
    for (const auto& [kind, words] :
         {std::pair{Damage::bit, "checksum"}, std::pair{Damage::version, "version 9"}})
      expect_error(words, [&, kind = kind] {
        damage = sends ? kind : Damage::none;
        mpi::reduce(*m, x, world);
      });
  }
  expect_error(rank + ": sum/tree/plain/fp64@cpu: out has room for",
               [&] { mpi::all_reduce(tree, x, std::span{wide_out}.first(odd_one ? 4999 : 5000), world); });
  expect_error("of 4999 elements",
               [&] { mpi::all_reduce(tree, y, std::span{wide_out}.first(y.size()), world); });
  expect_error("have room for 0 results; they need 5000",
               [&] { mpi::reduce_scatter(tree, x, std::span<double>{}, world); });
  expect_error("overflows the grid",
               [&] { mpi::all_reduce(on_grid, x, std::span{wide_out}, world, {.grid = -130}); });
  expect_error("number per element",
               [&] { mpi::all_reduce(find("cumsum/exact/fp64"), x, std::span{wide_out}, world); });

  // After errors the next call is a call like any other.
  expect(mpi::reduce(tree, x, world).to_double() == 5000.0 * (last + 1), "another sum after errors");
  MPI_Comm part;
  MPI_Comm_split(world, me % 2, -me, &part);  // ranks in another order
  expect(mpi::reduce(serial, x, part).to_double() == 5000.0 * (me % 2 ? (last + 1) / 2 : last / 2 + 1),
         "another sum of a part");
  MPI_Comm_free(&part);
}

/// The last rank is killed while the others wait for it.
void be_killed() {
  const std::vector<double> x(5000, 1.0);
  if (rank_of_this() + 1 == count_ranks()) std::raise(SIGKILL);
  mpi::reduce(find("tree/plain/fp64"), x, MPI_COMM_WORLD);
}

/// Changes a message as it is sent; the checksum remains right if only the version changes.
int send_damaged(std::vector<std::byte> bytes, int to, int tag, MPI_Comm comm) {
  if (damage == Damage::bit) bytes[bytes.size() / 2] ^= std::byte{1};
  if (damage == Damage::version) {
    bytes[4] = std::byte{9};
    const std::uint32_t sum = crc32(std::span{bytes}.first(bytes.size() - 4));
    for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(sum >> (8 * i));
  }
  return PMPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, comm);
}

int run(const std::string& test) {
  if (test == "undivided") {
    std::cout << undivided_hashes();
    return 0;
  }
  MPI_Init(nullptr, nullptr);
  try {
    if (test == "killed") be_killed();
    test_elements();
    test_states();
    if (count_ranks() > 1) test_errors();
    const std::string lines = hashes_of_blocks();
    if (rank_of_this() == 0) std::cout << lines;
  } catch (const std::exception& e) {
    std::cout << "rank " << rank_of_this() << ": " << e.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_Finalize();
}

}  // namespace
}  // namespace samesum::testing_support

/// MPI's profiling interface: the library's calls of MPI_Send are these.
extern "C" int MPI_Send(const void* from, int count, MPI_Datatype, int to, int tag, MPI_Comm comm) {
  const auto* const first = static_cast<const std::byte*>(from);
  return samesum::testing_support::send_damaged({first, first + count}, to, tag, comm);
}

int main(int argc, char** argv) { return samesum::testing_support::run(argc > 1 ? argv[1] : ""); }
