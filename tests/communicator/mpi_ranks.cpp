/// Tests of samesum::mpi. `mpi_ranks undivided` prints a hash for each method; `mpi_ranks blocks`, run by
/// mpirun with any number of ranks, prints the same hashes, after it has tested all that has other results
/// for other numbers of ranks. In `mpi_ranks memory` allocations of one rank fail. In `mpi_ranks killed` one
/// of two or more ranks is killed.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>

#include "environments.hpp"
#include "partial_support.hpp"
#include "samesum/base/serial_form.hpp"
#include "samesum/communicator/mpi/ranks.hpp"
#include "samesum/mpi.hpp"
#include "samesum/samesum_mpi.h"

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

/// Elements that take part, by flags and by NaN, have the bits of the undivided ones that do.
void test_selections() {
  const auto rank = static_cast<std::size_t>(rank_of_this());
  std::size_t seed = 99;
  for (const Method* m : methods_with_partials("cpu")) {
    for (const Case& c : cases()) {
      if (!is_for(*m, c) || m->returns_index || c.n < 300 || c.n > 1'500) continue;
      const std::vector<std::size_t> cuts = cuts_of(c.n, ++seed);
      const Inputs all = inputs_of(*m, c), block = cut(all, c, cuts[rank], cuts[rank + 1]);
      std::vector<std::uint8_t> flags(all.n), mine;
      for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = (i * 2654435761u >> 7) % 3 != 0;
      for (std::size_t o = 0; o < c.outer; ++o)
        for (std::size_t k = cuts[rank]; k < cuts[rank + 1]; ++k)
          for (std::size_t i = 0; i < c.inner; ++i) mine.push_back(flags[(o * c.n + k) * c.inner + i]);
      const auto run_on = [&](const Inputs& in, std::size_t n, const std::vector<std::uint8_t>& where,
                              const std::function<void(const Call&)>& run) {
        std::vector<std::uint64_t> offsets;
        const Layout layout = layout_of(c, n, offsets);
        Bits bits(c.outer * c.inner * static_cast<std::size_t>(m->results));
        Results out = results_of(*m, bits);
        out.size = bits.size();
        Options options = with_grid(*m, {.threads = 1, .where = where, .skip_nan = seed % 2 == 0});
        try {
          run({.method = m,
               .x = in.x.values(),
               .y = m->inputs == 2 ? in.y.values() : Values{},
               .layout = layout,
               .out = out,
               .options = options});
        } catch (const std::exception& e) {
          return std::string_view{e.what()}.find("overflows the grid") != std::string_view::npos
                     ? Bits{}
                     : throw std::runtime_error{m->name + ": " + e.what()};
        }
        return bits;
      };
      expect(run_on(all, c.n, flags, [](const Call& call) { samesum::run(call); }) ==
                 run_on(block, cuts[rank + 1] - cuts[rank], mine,
                        [](const Call& call) { mpi::run(call, MPI_COMM_WORLD); }),
             m->name + ", " + c.kind + " of " + std::to_string(c.n) + ": other bits with flags");
    }
  }
}

/// Fields of this rank: `n` of the elements of each of three fields of 5000, and flags for them.
struct FieldsOfRank {
  static constexpr std::size_t all = 5000, fields = 3;
  std::vector<double> whole_x = wide(all * fields, 200, 3), whole_y = wide(all * fields, 200, 4), x, y;
  std::vector<std::uint8_t> whole_where, where;
  std::size_t n = 0;

  FieldsOfRank() {
    const auto rank = static_cast<std::size_t>(rank_of_this());
    const std::vector<std::size_t> cuts = cuts_of(all, 5);
    n = cuts[rank + 1] - cuts[rank];
    for (std::size_t i = 0; i < all; ++i) whole_where.push_back(i % 3 != 0);
    where.assign(whole_where.data() + cuts[rank], whole_where.data() + cuts[rank + 1]);
    for (std::size_t f = 0; f < fields; ++f)
      for (std::size_t i = cuts[rank]; i < cuts[rank + 1]; ++i) {
        x.push_back(whole_x[f * all + i]);
        y.push_back(whole_y[f * all + i]);
      }
  }
  /// The sums or dot products of the undivided fields, of the elements with a flag if there are flags.
  std::vector<double> undivided(const char* method, const std::vector<std::uint8_t>& selected) const {
    std::vector<double> sums(fields);
    std::vector<std::uint8_t> flags;
    for (std::size_t f = 0; f < fields; ++f) flags.insert(flags.end(), selected.begin(), selected.end());
    const Method& m = find(method);
    samesum::run({.method = &m,
                  .x = whole_x,
                  .y = m.inputs == 2 ? Values{whole_y} : Values{},
                  .layout = Layout::rows(fields, all),
                  .out = std::span{sums},
                  .options = {.where = flags.empty() ? Mask{} : Mask{flags}}});
    return sums;
  }
};

/// Functions of C and those for Fortran have the bits of undivided fields.
void test_fields_in_c() {
  const FieldsOfRank f;
  const MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
  for (const bool selects : {false, true}) {
    const std::uint8_t* const where = selects ? f.where.data() : nullptr;
    const std::vector<std::uint8_t> selected = selects ? f.whole_where : std::vector<std::uint8_t>{};
    const std::vector<double> sums = f.undivided("exact/fp64", selected),
                              products = f.undivided("dot/exact/fp64", selected);
    const auto is = [&](const std::vector<double>& expected, const char* name, auto&& call) {
      std::vector<double> result(f.fields);
      char message[200];
      expect(call(result.data(), message, sizeof message) == SAMESUM_OK, std::string{name} + ": " + message);
      expect(result == expected, std::string{name} + ": other bits");
    };
    const double *const x = f.x.data(), *const y = f.y.data();
    is(sums, "samesum_mpi_sum", [&](double* result, auto... message) {
      return samesum_mpi_sum(x, f.n, f.fields, MPI_COMM_WORLD, result, where, message...);
    });
    is(sums, "samesum_mpi_sum_f", [&](double* result, auto... message) {
      return samesum_mpi_sum_f(x, f.n, f.fields, world, result, where, message...);
    });
    is(products, "samesum_mpi_dot", [&](double* result, auto... message) {
      return samesum_mpi_dot(x, y, f.n, f.fields, MPI_COMM_WORLD, result, where, message...);
    });
    is(products, "samesum_mpi_dot_f", [&](double* result, auto... message) {
      return samesum_mpi_dot_f(x, y, f.n, f.fields, world, result, where, message...);
    });
    if (selects) continue;
    const auto run_call = [&](const auto& run) {
      samesum_call call = samesum_call_default();
      samesum_find("exact/fp64", SAMESUM_NONE, &call.method, nullptr, 0);
      call.x = {x, f.x.size(), SAMESUM_FP64};
      call.layout = samesum_rows(f.fields, f.n, f.n);
      return [&, call](double* result, auto... message) mutable {
        call.out = {result, f.fields, 0, SAMESUM_FP64};
        return run(&call, message...);
      };
    };
    is(sums, "samesum_mpi_run", run_call([](const samesum_call* call, auto... message) {
         return samesum_mpi_run(call, MPI_COMM_WORLD, message...);
       }));
    is(sums, "samesum_mpi_run_f", run_call([&](const samesum_call* call, auto... message) {
         return samesum_mpi_run_f(call, world, message...);
       }));
  }
  // Flags on the first rank only, whose elements come first.
  std::vector<std::uint8_t> selected = f.whole_where;
  std::fill(selected.begin() + cuts_of(f.all, 5)[1], selected.end(), std::uint8_t{1});
  std::vector<double> some(f.fields);
  const std::uint8_t* const where = rank_of_this() == 0 ? f.where.data() : nullptr;
  char message[200];
  expect(samesum_mpi_sum(f.x.data(), f.n, f.fields, MPI_COMM_WORLD, some.data(), where, message, 200) ==
             SAMESUM_OK,
         message);
  expect(some == f.undivided("exact/fp64", selected), "flags on one rank: other bits");
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

/// Messages of any length arrive whole.
void test_messages() {
  const int me = rank_of_this(), count = count_ranks();
  const mpi::Ranks ranks{MPI_COMM_WORLD};
  for (const std::size_t n : {0, 1, 65'535, 65'536, 65'537, 131'072, 1'000'000}) {
    std::vector<std::byte> sent(n);
    for (std::size_t i = 0; i < n; ++i) sent[i] = static_cast<std::byte>(i * 7 + n);
    if (me + 1 < count) ranks.send(sent, me + 1);
    if (me > 0) expect(ranks.receive(me - 1) == sent, "a message of " + std::to_string(n) + " bytes");
  }
}

/// Vectors that are longer than the buffers have the results of their elements.
void test_long_vectors() {
  const std::size_t n = (std::size_t{1} << 24) + 1000, count = static_cast<std::size_t>(count_ranks()),
                    me = static_cast<std::size_t>(rank_of_this());
  std::vector<fp16> x(n), all(n), of_sums;
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto sum = count * (i % 100) + count * (count - 1) / 2;
    x[i] = fp16{static_cast<double>(i % 100 + me)};
    of_sums.push_back(fp16{static_cast<double>(sum)});
  }
  for (std::size_t i = 1000; i < n; ++i) x[i] = x[i - 1000];
  const auto is_sum = [&](std::size_t first, std::span<const fp16> found) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].bits != of_sums[(first + i) % 1000].bits) return false;
    return true;
  };
  const Method& tree = find("tree/plain/fp16");
  mpi::all_reduce(tree, x, std::span{all}, MPI_COMM_WORLD);
  expect(is_sum(0, all), "another sum of a long vector");
  const std::size_t each = n / (2 * count), first = each * me;  // the last rank has the rest
  const std::span<fp16> mine = std::span{all}.first(me + 1 == count ? n - first : each);
  mpi::reduce_scatter(tree, x, mine, MPI_COMM_WORLD);
  expect(is_sum(first, mine), "another sum of a block of a long vector");
}

/// What MPI_Send below does to messages of this rank.
enum class Damage { none, bit, version, lost } damage = Damage::none;

// A call that waits for ever ends the program, and so the job.
constexpr unsigned seconds = 10;

/// Expects that the call throws on all ranks in time, with one message that contains the words.
void expect_error(const std::string& words, const std::function<void()>& call) {
  std::string message = "nothing was thrown";
  alarm(seconds);
  try {
    call();
  } catch (const mpi::Error& e) {
    message = e.what();
  }
  alarm(0);
  damage = Damage::none;
  mpi::together(MPI_COMM_WORLD, message, [&] {
    expect(message.find(words) != std::string::npos, "'" + words + "' is not in: " + message);
  });
}

/// Throws what a function of C++ would have thrown. Allocates nothing if the function succeeded.
void check_c(samesum_status status, const char* message) {
  if (status == SAMESUM_OUT_OF_MEMORY) throw std::bad_alloc{};
  if (status == SAMESUM_MPI_ERROR) throw mpi::Error{message};
  if (status != SAMESUM_OK || message[0] != 0) throw std::runtime_error{message};
}

void test_errors_in_c() {
  const int last = count_ranks() - 1;
  const bool odd_one = rank_of_this() == last;
  const std::string rank = "samesum: rank " + std::to_string(last);
  const std::vector<double> x(50, 1.0);
  double result[2] = {};
  char message[2000];
  const auto sum = [&](const double* all, std::size_t n, std::size_t fields, double* out) {
    check_c(samesum_mpi_sum(all, n, fields, MPI_COMM_WORLD, out, nullptr, message, sizeof message), message);
  };
  expect_error(rank + ": sum/exact/fp64@cpu: x is null",
               [&] { sum(odd_one ? nullptr : x.data(), 25, 2, result); });
  expect_error(rank + ": result is NULL", [&] { sum(x.data(), 25, 2, odd_one ? nullptr : result); });
  expect_error(rank + ": n is 18446744073709551615",
               [&] { sum(x.data(), odd_one ? SIZE_MAX : 25, 2, result); });
  if (last > 0) expect_error("calls reduce with", [&] { sum(x.data(), 25, odd_one ? 1 : 2, result); });
  expect_error(rank + ": call.struct_size is 0", [&] {
    samesum_call call = samesum_call_default();
    samesum_find("exact/fp64", SAMESUM_NONE, &call.method, nullptr, 0);
    call.x = {x.data(), 50, SAMESUM_FP64};
    call.out = {result, 1, 0, SAMESUM_FP64};
    if (odd_one) call.struct_size = 0;
    check_c(samesum_mpi_run(&call, MPI_COMM_WORLD, message, sizeof message), message);
  });
  sum(x.data(), 25, 2, result);  // the next call is one like any other
  expect(result[1] == 25.0 * (last + 1), "another sum after errors in C");
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
  expect_error(rank + ": argmax/fp64@cpu: an index cannot count elements", [&] {
    std::int64_t index;
    const std::vector<std::uint8_t> flags(5000, 1);
    mpi::reduce(find("argmax/fp64"), x, Layout::vector(5000), std::span{&index, 1}, world,
                {.where = odd_one ? Mask{flags} : Mask{}});
  });
  expect_error(rank + ": sum/tree/plain/fp64@cpu: where has 2 flags; pass 5000", [&] {
    const std::vector<std::uint8_t> flags(odd_one ? 2 : 5000, 1);
    mpi::reduce(tree, x, world, {.where = flags});
  });
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
         {std::pair{Damage::bit, "checksum"}, std::pair{Damage::version, "version 9"},
          std::pair{Damage::lost, "a partial was lost on its way; reduce again"}})
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
  expect_error("the reason" + std::string(900, '.'), [&] {  // texts of any length
    mpi::together(world, std::string(5000, 'x'), [&] {
      if (odd_one) throw std::runtime_error{"the reason" + std::string(5000, '.')};
    });
  });
  expect_error("rank 0 calls xxx", [&] {  // texts that differ behind what is sent of them
    mpi::together(world, std::string(5000, 'x') + (odd_one ? "y" : "z"), [] {});
  });

  // `out` overlaps x or y: at the elements that the rank keeps, behind them, at the last one.
  const std::size_t ranks = static_cast<std::size_t>(last + 1), n = 8 * ranks;
  std::vector<double> memory(3 * n, 1.0);
  const std::span<double> in{memory.data(), n}, second{memory.data() + n, n}, apart{memory.data() + 2 * n, n};
  for (const std::size_t first : {std::size_t{0}, std::size_t{5}, std::size_t{9}, n - 1}) {
    const auto out_at = [&](std::span<double> from, std::size_t size) {
      return odd_one ? std::span{from.data() + first, size} : apart.first(size);
    };
    expect_error(rank + ": sum/tree/plain/fp64@cpu: out overlaps x",
                 [&] { mpi::reduce_scatter(tree, in, out_at(in, 8), world); });
    expect_error(rank + ": sum/tree/plain/fp64@cpu: out overlaps x",
                 [&] { mpi::all_reduce(tree, in, out_at(in, n), world); });
    expect_error(rank + ": dot/exact/fp64@cpu: out overlaps y",
                 [&] { mpi::reduce_scatter(dot, in, second, out_at(second, 8), world); });
  }
  mpi::reduce_scatter(tree, in, second.first(8), world);  // neighbours do not overlap
  expect(second[7] == static_cast<double>(ranks), "another sum beside its input");

  // After errors the next call is a call like any other.
  expect(mpi::reduce(tree, x, world).to_double() == 5000.0 * (last + 1), "another sum after errors");
  MPI_Comm part;
  MPI_Comm_split(world, me % 2, -me, &part);  // ranks in another order
  expect(mpi::reduce(serial, x, part).to_double() == 5000.0 * (me % 2 ? (last + 1) / 2 : last / 2 + 1),
         "another sum of a part");
  MPI_Comm_free(&part);
}

// --- allocations that fail ---------------------------------------------------------------------------------

constexpr long all_succeed = -1;
/// How many more allocations of this rank succeed before one fails.
long allocations_left = all_succeed;
/// Whether all later ones fail, too.
bool failure_lasts = false;
bool has_failed = false;

void* allocated(std::size_t bytes, std::size_t alignment) {
  if (allocations_left > 0) {
    --allocations_left;
  } else if (allocations_left == 0) {
    has_failed = true;
    if (!failure_lasts) allocations_left = all_succeed;
    throw std::bad_alloc{};
  }
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

/// Makes the call again and again, until it needs no more allocations than those that succeed on a rank.
/// Until then all ranks throw, in time. Returns how often.
int fail_allocations(const std::string& name, int of_rank, bool lasts, const std::function<void()>& call) {
  for (int succeeding = 0;; ++succeeding) {
    std::string error;
    bool has_thrown = false;
    alarm(seconds);
    failure_lasts = lasts;
    has_failed = false;
    if (rank_of_this() == of_rank) allocations_left = succeeding;
    try {
      call();
    } catch (const mpi::Error& e) {
      allocations_left = all_succeed;
      has_thrown = true;
      error = e.what();
    } catch (const std::bad_alloc&) {  // a rank without memory has none for the message either
      allocations_left = all_succeed;
      has_thrown = lasts;
    }
    allocations_left = all_succeed;
    alarm(0);
    int must_throw = has_failed;
    MPI_Allreduce(MPI_IN_PLACE, &must_throw, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const std::string words =
        "samesum: rank " + std::to_string(of_rank) + ": the data do not fit into memory";
    mpi::together(MPI_COMM_WORLD, name, [&] {
      expect(has_thrown == (must_throw != 0) && (!has_thrown || error == words || (lasts && error.empty())),
             name + ", allocation " + std::to_string(succeeding) + ": " + error);
    });
    if (!must_throw) return succeeding;
  }
}

void test_memory() {
  const std::size_t n = 6000, ranks = static_cast<std::size_t>(count_ranks());
  const std::vector<double> x(n, 1.0);
  std::vector<double> out(n), rows(20);
  const Method &tree = find("tree/plain/fp64"), &serial = find("serial/plain/fp64"),
               &dot = find("dot/tree/plain/fp64");
  const std::vector<std::uint8_t> flags(20, 1);
  const Options one_thread{.threads = 1};
  const MPI_Comm world = MPI_COMM_WORLD;
  std::uint64_t bits = 0;
  const Results one{&format_info<fp64>(), &bits, 1};
  const std::function<void(Partial&)> fill = [&](Partial& partial) { partial.add(x, one_thread); };
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"reduce", [&] { mpi::reduce(tree, x, world, one_thread); }},
      {"reduce in a chain", [&] { mpi::reduce(serial, x, world, one_thread); }},
      {"reduce of two inputs", [&] { mpi::reduce(dot, x, x, world, one_thread); }},
      {"reduce of columns",
       [&] { mpi::reduce(tree, x, Layout::axis(1, n / 20, 20), std::span{rows}, world, one_thread); }},
      {"reduce of a file", [&] { mpi::reduce(tree, n, fill, one, world, one_thread); }},
      {"fields in C",
       [&] {
         char message[200];
         check_c(samesum_mpi_dot(x.data(), x.data(), 20, 2, world, rows.data(), flags.data(), message, 200),
                 message);
       }},
      {"all_reduce", [&] { mpi::all_reduce(tree, x, std::span{out}, world, one_thread); }},
      {"all_reduce of two inputs", [&] { mpi::all_reduce(dot, x, x, std::span{out}, world, one_thread); }},
      {"reduce_scatter",
       [&] { mpi::reduce_scatter(tree, x, std::span{out}.first(n / ranks), world, one_thread); }},
      {"reduce_scatter of two inputs",
       [&] { mpi::reduce_scatter(dot, x, x, std::span{out}.first(n / ranks), world, one_thread); }}};
  for (const auto& [name, call] : calls) {
    call();  // what the library makes once
    for (int rank = 0; rank < count_ranks(); ++rank)
      for (const bool lasts : {false, true})
        expect(fail_allocations(name, rank, lasts, call) > 3, std::string{name} + ": hardly any allocation");
  }
  // The first call of a communicator duplicates it.
  const std::function<void()> first = [&] {
    MPI_Comm fresh;
    MPI_Comm_dup(world, &fresh);
    try {
      mpi::together(fresh, "first", [] {});
    } catch (...) {
      MPI_Comm_free(&fresh);
      throw;
    }
    MPI_Comm_free(&fresh);
  };
  for (int rank = 0; rank < count_ranks(); ++rank) fail_allocations("first", rank, false, first);
}

/// The last rank is killed while the others wait for it.
void be_killed() {
  const std::vector<double> x(5000, 1.0);
  if (rank_of_this() + 1 == count_ranks()) std::raise(SIGKILL);
  mpi::reduce(find("tree/plain/fp64"), x, MPI_COMM_WORLD);
}

/// Changes a message as it is sent; the checksum remains right if only the version changes.
int send_damaged(std::vector<std::byte> bytes, int to, int tag, MPI_Comm comm) {
  if (damage == Damage::lost) bytes.clear();
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
    if (test == "memory") {
      test_memory();
    } else {
      test_selections();
      test_fields_in_c();
      test_elements();
      test_states();
      test_messages();
      if (count_ranks() == 2) test_long_vectors();
      if (count_ranks() > 1) test_errors();
      test_errors_in_c();
      const std::string lines = hashes_of_blocks();
      if (rank_of_this() == 0) std::cout << lines;
    }
  } catch (const std::exception& e) {
    std::cout << "rank " << rank_of_this() << ": " << e.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_Finalize();
}

}  // namespace
}  // namespace samesum::testing_support

/// MPI's profiling interface: the library's calls of MPI_Send are these.
extern "C" int MPI_Send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  using namespace samesum::testing_support;
  if (damage == Damage::none) return PMPI_Send(from, count, type, to, tag, comm);
  const auto* const first = static_cast<const std::byte*>(from);
  return send_damaged({first, first + count}, to, tag, comm);
}

// All allocations of C++ are these. Inlined, g++ would take some of them for a mismatch of new and free.
void* operator new(std::size_t bytes) {
  return samesum::testing_support::allocated(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return samesum::testing_support::allocated(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

int main(int argc, char** argv) { return samesum::testing_support::run(argc > 1 ? argv[1] : ""); }
