#include "harness/bench.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "harness/key_sets.hpp"
#include "harness/peers.hpp"
#include "harness/verify.hpp"

namespace samesum::harness {
namespace {

using Bytes = std::vector<std::byte>;

std::size_t bytes_of_result(const Method& m, const FormatInfo& input, std::size_t n) {
  return m.has_result_per_element ? n * m.result_format(input)->bytes : m.result_bytes();
}

/// Reduces a vector on the host, or two vectors if the method has two inputs.
Bytes result_of(const Method& m, const FormatInfo& input, const Bytes& x, const Bytes& y,
                const Options& options) {
  const std::size_t n = x.size() / input.bytes;
  Bytes result(bytes_of_result(m, input, n));
  const Results out{m.result_format(input), result.data(),
                    m.has_result_per_element ? n : static_cast<std::size_t>(m.results)};
  const Values vx{input, x.data(), n}, vy{input, y.data(), n};
  m.inputs == 2 ? reduce(m, vx, vy, Layout::vector(n), out, options)
                : reduce(m, vx, Layout::vector(n), out, options);
  return result;
}

/// Bytes that the method writes for a cell.
std::size_t bytes_of_results(const Method& m, const Cell& cell) {
  const std::size_t results = cell.by_key() ? cell.bins * cell.inner : cell.layout().results();
  return results * bytes_of_result(m, *cell.input, cell.n);
}

/// Largest number of elements of a vector that are compared: the reference and copies from a GPU are slow.
std::size_t longest_compared(const Cell& cell) {
  if (cell.outer * cell.inner > 1) return SIZE_MAX;
  return two_to(cell.on_gpu() ? 22 : 18);
}

/// Number of elements of rows on a GPU whose results by a peer are compared: those are copied to the host.
constexpr std::size_t most_copied = two_to(24);

/// Number of rows that are compared by key. On a GPU so many that the schedule is that of all rows: it
/// depends on whether there are 2^20 elements, and half as many as results.
std::size_t rows_compared(const Cell& cell) {
  const std::size_t elements = cell.on_gpu() ? std::max(two_to(22), cell.bins * cell.inner) : two_to(18);
  return std::min(cell.n, std::max<std::size_t>(elements / cell.inner, 1));
}

}  // namespace

std::string Cell::place() const {
  if (on_gpu()) return "GPU";
  return elements() <= 64              ? "latency"
         : input_bytes() == l2_bytes   ? "L2"
         : input_bytes() >= dram_bytes ? "DRAM"
                                       : "other";
}

const std::vector<std::string>& awkward_data() {
  static const std::vector<std::string> all{"outliers", "log-normal", "around 1000", "60 binades",
                                            "arbitrary bits"};
  return all;
}

void append_awkward_data(std::vector<Cell>& cells, const Cell& normal) {
  for (const std::string& data : awkward_data()) {
    Cell cell = normal;
    cell.data = data;
    if (cell.dataset().fits(*cell.input)) cells.push_back(cell);
  }
}

void add_cells_in_graphs(std::vector<Cell>& cells) {
  std::vector<Cell> all;
  for (const Cell& cell : cells) {
    all.push_back(cell);
    if (!cell.on_gpu() || cell.cold || cell.bytes() > most_bytes_in_graph) continue;
    all.push_back(cell);
    all.back().in_graph = true;
  }
  cells = std::move(all);
}

bool may_depend_on_data(const Method& m) {
  return m.accumulator == "exact" || m.accumulator == "fixed_point";
}

bool same_but_for_grid(const Cell& a, const Cell& b) {
  Cell other = a;
  other.grid = b.grid;
  return other == b;
}

bool fits(const Method& m, const Cell& cell) {
  return m.operation == cell.operation && runs_on_gpu(m) == cell.on_gpu() &&
         m.accepts(*cell.input, cell.layout());
}

std::string refusal(const Method& peer, const Cell& cell) {
  if (cell.threads > 1 && !is_parallel(peer)) return "it computes with one thread";
  if (cell.in_graph && !can_be_recorded(peer)) return "it allocates memory and waits for the GPU";
  return refusal(peer, cell.layout());
}

PeersOfCell peers_of(const Cell& cell) {
  PeersOfCell all;
  for (const Method& m : peers_of_batches())
    if (m.operation == cell.operation && runs_on_gpu(m) == cell.on_gpu() && m.accepts(*cell.input))
      all.methods.push_back(&m);
  all.declined = declined_of(cell, all.methods);
  return all;
}

std::vector<PeersOfCell::Declined> declined_of(const Cell& cell, std::vector<const Method*>& methods) {
  std::vector<PeersOfCell::Declined> declined;
  std::erase_if(methods, [&](const Method* m) {
    const std::string why = is_peer(*m) ? refusal(*m, cell) : "";
    if (!why.empty()) declined.push_back({m, why});
    return !why.empty();
  });
  return declined;
}

std::span<const std::byte> speed_block(const FormatInfo& format, const Dataset& data, std::uint64_t seed,
                                       std::size_t most) {
  const std::size_t n = std::min(two_to(log2_speed_block), most);
  static std::map<std::tuple<const FormatInfo*, const Dataset*, std::uint64_t, std::size_t>, Bytes> kept;
  const auto [at, is_new] = kept.try_emplace({&format, &data, seed, n});
  if (is_new) at->second = data.make(format, n, seed).bytes;
  return at->second;
}

Bench::Bench(const Cell& cell, std::uint64_t seed, std::size_t most)
    : format_{*cell.input},
      data_{cell.dataset()},
      seed_{seed},
      place_{cell.on_gpu() ? gpu_place() : cpu_place()},
      // On a GPU, more than the caches hold.
      bytes_{std::max(most * format_.bytes, cell.on_gpu() ? two_to(28) : 0)},
      x_{filled(bytes_, seed)} {}

std::shared_ptr<std::byte> Bench::filled(std::size_t bytes, std::uint64_t seed) const {
  const std::span<const std::byte> block = speed_block(format_, data_, seed, bytes / format_.bytes);
  std::shared_ptr<std::byte> memory = place_->memory(bytes);
  std::size_t done = std::min(block.size(), bytes);
  place_->copy(memory.get(), block.data(), done);
  // Copies what is filled, so that a GPU does not wait for the host.
  for (std::size_t more; done < bytes; done += more) {
    more = std::min(done, bytes - done);
    place_->copy(memory.get() + done, memory.get(), more);
  }
  place_->finish("filling memory");
  return memory;
}

/// Allocates the second input, the keys and the output of the methods for a cell.
void Bench::allocate(const Cell& cell, const std::vector<const Method*>& methods) {
  if (cell.inputs() == 2) y_ = filled(bytes_, seed_ + 1);  // as large as x: cold calls move through both
  std::size_t bytes = sizeof(std::uint64_t);               // what Place writes for one number of any format
  if (cell.has_result_per_element()) bytes = std::max(bytes, cell.input_bytes());  // the ceiling is a copy
  for (const Method* m : methods) bytes = std::max(bytes, bytes_of_results(*m, cell));
  out_ = place_->memory(bytes);
  columns_.clear();
  copies_.clear();
  if (cell.by_key()) fill_keys(cell);
}

/// The call of a method for a cell, on what was allocated.
Call Bench::call_of(const Cell& cell, const Method& m) const {
  const std::size_t per_result = m.has_result_per_element ? cell.n : static_cast<std::size_t>(m.results),
                    results = cell.by_key() ? cell.bins * cell.inner : cell.layout().results();
  Call call{.method = &m,
            .x = {format_, x_.get(), m.inputs == 0 ? 0 : cell.elements()},
            .layout = cell.layout(),
            .out = {m.result_format(format_), out_.get(), results * per_result},
            .options = {.threads = cell.threads}};
  if (m.inputs == 2) call.y = {format_, y_.get(), cell.elements()};
  if (cell.by_key()) call.keys = {KeyFormat::uint32, keys_.get(), cell.n};
  return call;
}

/// Binds the call as the cell prescribes: once, in a graph if there are graphs.
BoundCall Bench::bound(const Cell& cell, const Call& call) const {
  const BoundCall run = place_->bind(call);
  return cell.in_graph ? place_->recorded(run, 1) : run;
}

void Bench::fill_keys(const Cell& cell) {
  const std::vector<std::uint32_t> keys = key_set(cell.keys).make(cell.n, cell.bins, seed_);
  keys_ = place_->memory(cell.key_bytes());
  place_->copy(keys_.get(), keys.data(), cell.key_bytes());
}

std::vector<std::byte> Bench::results(const Cell& cell, const Method& m) {
  allocate(cell, {&m});
  bound(cell, call_of(cell, m))(0);
  place_->finish(m.name);
  Bytes found(bytes_of_results(m, cell));
  place_->copy(found.data(), out_.get(), found.size());
  return found;
}

/// The first m elements that the result at index `at` reduces, in contiguous memory on the host.
const Bytes& Bench::column_on_host(const Cell& cell, const void* x, std::size_t at, std::size_t m) {
  Bytes& found = columns_[{x, at}];
  if (x == nullptr || !found.empty()) return found;
  const Layout all = cell.layout();
  const std::size_t bytes = cell.input->bytes, first = all.first(at / cell.inner) + at % cell.inner;
  const std::byte* from = static_cast<const std::byte*>(x) + first * bytes;
  found.resize(m * bytes);
  if (all.stride == 1)
    place_->copy(found.data(), from, m * bytes);
  else
    place_->copy(found.data(), from, bytes, m, all.stride * bytes);
  return found;
}

bool Bench::has_right_bits(const Cell& cell, const Call& call) {
  const Method& m = *call.method;
  const Method& expected_of = find_on(cell.on_gpu() ? "cpu" : "reference", m);
  const std::size_t n = std::min(cell.n, longest_compared(cell));
  Call compared = call;
  if (n < cell.n) {
    compared.x.size = n;
    if (call.y.is_given()) compared.y.size = n;
    compared.layout = Layout::vector(n);
  }
  auto* const out = static_cast<std::byte*>(call.out.data);
  Bytes got(bytes_of_result(m, format_, n), std::byte{0xa5});  // makes a result that is not written wrong
  const std::set<std::size_t> results{0, cell.layout().results() - 1};
  const BoundCall run = bound(cell, compared);
  for (const std::size_t at : results) place_->copy(out + at * got.size(), got.data(), got.size());
  run(0);
  place_->finish(m.name);
  return std::ranges::all_of(results, [&](std::size_t at) {
    place_->copy(got.data(), out + at * got.size(), got.size());
    return got == result_of(expected_of, format_, column_on_host(cell, call.x.data, at, n),
                            column_on_host(cell, call.y.data, at, n), {.grid = call.options.grid});
  });
}

bool Bench::has_right_bits_by_key(const Cell& cell, const Call& call) const {
  const Method& m = *call.method;
  const Method& expected_of = find_on(cell.on_gpu() ? "cpu" : "reference", m);
  Call compared = call;
  const std::size_t n = rows_compared(cell), elements = m.inputs == 0 ? 0 : n * cell.inner;
  compared.x.size = elements;
  compared.layout = Layout::axis(1, n, cell.inner);
  compared.keys.size = n;
  Bytes x(elements * format_.bytes), got(bytes_of_results(m, cell), std::byte{0xa5});
  Bytes expected(got.size());
  std::vector<std::uint32_t> keys(n);
  place_->copy(x.data(), call.x.data, x.size());
  place_->copy(keys.data(), call.keys.data, n * sizeof(std::uint32_t));
  const BoundCall run = bound(cell, compared);
  place_->copy(call.out.data, got.data(), got.size());  // makes a result that is not written wrong
  run(0);
  place_->finish(m.name);
  place_->copy(got.data(), call.out.data, got.size());
  compared.method = &expected_of;
  compared.x.data = x.data();
  compared.keys = keys;
  compared.out.data = expected.data();
  compared.options.threads = 0;
  samesum::run(compared);
  return got == expected;
}

/// Data that a call reads, on the host. The first call for a cell decides how much of them is copied.
const void* Bench::on_host(const Cell& cell, const void* data, std::size_t bytes) {
  if (!data || !cell.on_gpu()) return data;
  auto& copy = copies_[data];
  if (copy) return copy.get();
  copy = std::make_unique_for_overwrite<std::byte[]>(bytes);
  place_->copy(copy.get(), data, bytes);
  return copy.get();
}

std::optional<bool> Bench::has_right_results(const Cell& cell, const Call& call) {
  const std::size_t bytes = bytes_of_results(*call.method, cell);
  const BoundCall run = bound(cell, call);
  // Makes a result that is not written wrong.
  place_->copy(call.out.data, Bytes(bytes, std::byte{0xff}).data(), bytes);
  run(0);
  place_->finish(call.method->name);
  Call done = call;
  Bytes out(cell.on_gpu() ? bytes : 0);
  if (cell.on_gpu()) {
    place_->copy(out.data(), call.out.data, bytes);
    done.out.data = out.data();
  }
  done.x.data = on_host(cell, call.x.data, cell.input_bytes());
  done.y.data = on_host(cell, call.y.data, cell.input_bytes());
  done.keys.data = on_host(cell, call.keys.data, cell.key_bytes());
  return verify(done).verified();
}

std::optional<bool> Bench::has_right_results_of_any_length(const Cell& cell, const Method& peer) {
  Cell most = cell;
  if (cell.on_gpu() && !cell.by_key()) {
    most.n = std::min(cell.n, longest_compared(cell));
    most.outer = std::min(cell.outer, std::max<std::size_t>(most_copied / (most.n * cell.inner), 1));
  }
  const std::optional<bool> of_all = has_right_results(most, call_of(most, peer));
  if (cell.n <= few_elements || cell.outer > 1 || cell.by_key()) return of_all;
  Cell few = cell;
  few.n = few_elements;
  return has_right_results(few, call_of(few, peer)) == false ? false : of_all;
}

Turn Bench::ceiling(const Cell& cell) const {
  const std::byte *x = x_.get(), *y = cell.inputs() == 2 ? y_.get() : nullptr;
  std::byte* const out = out_.get();
  return {cell.ceiling(), std::nullopt, [=, this, bytes = cell.input_bytes()](std::size_t offset) {
            if (cell.has_result_per_element())
              place_->copy_all(x + offset, out, bytes, cell.threads);
            else if (cell.inputs() > 0)
              place_->read_all(x + offset, bytes, cell.threads);
            if (y) place_->read_all(y, bytes, cell.threads);
            if (cell.by_key()) place_->read_all(keys_.get(), cell.key_bytes(), cell.threads);
          }};
}

std::vector<Speed> Bench::measure(const Cell& cell, const std::vector<const Method*>& methods,
                                  Repeats repeats) {
  allocate(cell, methods);
  std::vector<Turn> turns;
  const auto add = [&](const Call& call) {
    const Method& m = *call.method;
    std::optional<bool> verified;
    if (is_peer(m))
      verified = has_right_results_of_any_length(cell, m);
    else if (m.promise >= Promise::everywhere)
      verified = cell.by_key() ? has_right_bits_by_key(cell, call) : has_right_bits(cell, call);
    turns.push_back({m.name, verified, place_->bind(call), call.options.grid});
  };
  for (const Method* m : methods) {
    Call call = call_of(cell, *m);
    add(call);
    if (!cell.grid || !m->takes_grid) continue;
    call.options.grid = cell.grid;
    add(call);
  }
  turns.push_back(ceiling(cell));
  if (cell.in_graph)
    for (Turn& turn : turns) {
      turn.calls = calls_in_graph;
      turn.run = place_->recorded(turn.run, turn.calls);
    }
  const std::size_t apart = (cell.input_bytes() + 255) / 256 * 256;
  return place_->in_turns(turns, {.repeats = repeats,
                                  .bytes = cell.input_bytes() + cell.key_bytes(),
                                  .threads = cell.threads,
                                  .places = cell.cold ? std::max<std::size_t>(bytes_ / apart, 1) : 1,
                                  .stride = apart});
}

}  // namespace samesum::harness
