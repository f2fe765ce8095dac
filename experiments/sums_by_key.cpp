/// How wrong, how repeatable and how fast are sums by key?
#include <algorithm>
#include <exception>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>

#include "harness/dataset.hpp"
#include "harness/key_sets.hpp"
#include "harness/launch.hpp"
#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/repeats_table.hpp"
#include "harness/speed_table.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

// --- methods ---------------------------------------------------------------------------------------

/// The operations by key of the catalogue.
std::vector<std::string> operations_by_key() {
  std::vector<std::string> all;
  for (const Method& m : methods())
    if (m.takes_keys && std::ranges::find(all, m.operation) == all.end()) all.push_back(m.operation);
  return all;
}

/// The methods by key that match a glob in one of the operations; for an empty one, those measured by
/// default.
std::vector<const Method*> methods_for(const std::string& glob) {
  std::vector<const Method*> chosen;
  std::exception_ptr refusal;  // of the first operation
  for (const std::string& operation : operations_by_key()) try {
      std::ranges::copy(methods_in_own_format(glob, operation), std::back_inserter(chosen));
    } catch (const std::exception&) {
      if (!refusal) refusal = std::current_exception();
    }
  if (chosen.empty()) std::rethrow_exception(refusal);
  return chosen;
}

std::vector<const Method*> chosen_methods(const std::string& filter) {
  if (filter.empty()) return methods_for("");
  std::vector<const Method*> chosen;
  for (const std::string& glob : globs_in(filter))
    for (const Method* m : methods_for(glob))
      if (std::ranges::find(chosen, m) == chosen.end()) chosen.push_back(m);
  return chosen;
}

/// Methods of one operation, whose results have the format of the elements.
struct PartByKey {
  std::string operation;
  const FormatInfo* format;
  std::vector<const Method*> methods;
};

std::vector<PartByKey> parts_of(const std::vector<const Method*>& methods) {
  std::vector<PartByKey> all;
  for (const Method* m : methods) {
    const auto same = [&](const PartByKey& p) {
      return p.operation == m->operation && p.format == m->format;
    };
    auto part = std::ranges::find_if(all, same);
    if (part == all.end()) part = all.insert(all.end(), {m->operation, m->format, {}});
    part->methods.push_back(m);
  }
  return all;
}

// --- pairs of key and element ----------------------------------------------------------------------

/// Generated pairs in any order, with a copy of the elements on the GPU, which is made when a method first
/// needs it, and room for the results.
class Pairs {
 public:
  Pairs(const Dataset& data, const FormatInfo& format, const KeySet& keys, std::size_t n, std::size_t bins,
        std::uint64_t seed)
      : bins_{bins},
        x_{data.make(format, n, seed)},
        keys_{keys.make(n, bins, seed + 1)},
        results_(bins * sizeof(std::uint64_t)) {}

  const Column& column() const { return x_; }
  std::span<const std::uint32_t> keys() const { return keys_; }
  std::size_t bins() const { return bins_; }

  /// The results of all keys, valid until the next call.
  std::span<const std::byte> reduced(const Method& m, Options options = {}) {
    reduce(m, elements(m), keys_, Layout::vector(keys_.size()), results(m), options);
    return used(m);
  }
  std::span<const std::byte> reduced_in_schedule(const Method& m, int schedule) {
    const Keys keys{keys_};
    reduce_in_schedule(m, elements(m), &keys, Layout::vector(keys_.size()), results(m), schedule);
    return used(m);
  }
  /// Moves the pairs to a random order.
  void permute(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    with_format(*x_.format, [&]<class F>() {
      F* const x = reinterpret_cast<F*>(x_.bytes.data());
      for (std::size_t i = keys_.size(); i > 1; --i) {
        const std::size_t k = random() % i;
        std::swap(x[i - 1], x[k]);
        std::swap(keys_[i - 1], keys_[k]);
      }
    });
    on_gpu_.reset();
  }

 private:
  Values elements(const Method& m) {
    if (m.inputs == 0) return {*x_.format, nullptr, 0};
    if (!runs_on_gpu(m)) return x_.values();
    if (!on_gpu_) on_gpu_ = m.place(x_.values());
    return on_gpu_->values;
  }
  Results results(const Method& m) { return {m.result_format(*x_.format), results_.data(), bins_}; }
  std::span<const std::byte> used(const Method& m) const {
    return std::span{results_}.first(bins_ * m.result_bytes());
  }

  std::size_t bins_;
  Column x_;
  std::vector<std::uint32_t> keys_;
  std::vector<std::byte> results_;
  std::optional<Placed> on_gpu_;
};

Json key_of(const std::string& kind, const Method& m, const FormatInfo& input, const std::string& data,
            const std::string& keys, std::size_t n, std::size_t bins, std::uint64_t seed) {
  return {{"kind", kind},
          {"method", m.name},
          {"promise", name_of(m.promise)},
          {"operation", m.operation},
          {"input_format", input.name},
          {"data", data},
          {"seed", seed},
          {"n", n},
          {"keys", keys},
          {"bins", bins}};
}

// --- errors ----------------------------------------------------------------------------------------

/// The exact results of all keys, and what bounds need to know.
class TruthsByKey {
 public:
  TruthsByKey(const Pairs& pairs, const std::string& operation) : all_(pairs.bins()) {
    const std::span<const std::uint32_t> keys = pairs.keys();
    std::vector<std::size_t> end(pairs.bins() + 1);
    for (const std::uint32_t key : keys) ++end[key + 1];
    std::partial_sum(end.begin(), end.end(), end.begin());
    std::vector<std::size_t> next(end.begin(), end.end() - 1);
    const Column& x = pairs.column();
    with_format(*x.format, [&]<class F>() {
      const std::span<const F> from = x.values().as<F>();
      std::vector<F> grouped(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        grouped[next[keys[i]]++] = from[i];
        largest_ = std::max(largest_, std::abs(convert<double>(from[i])));
      }
      for (std::size_t key = 0; key < all_.size(); ++key)
        if (end[key] < end[key + 1])
          all_[key] = Truth::of(operation, std::span{grouped}.subspan(end[key], end[key + 1] - end[key]));
    });
    size_ = keys.size();
  }

  /// The errors of the results of the keys that have elements.
  Json errors_of(const Method& m, const FormatInfo& input, std::span<const std::byte> results) const {
    ErrorsOfResults errors;
    for (std::size_t key = 0; key < all_.size(); ++key)
      if (all_[key]) errors.add(judged(m, input, *all_[key], number_at(m, results, key)));
    return errors.values();
  }

 private:
  Measurement judged(const Method& m, const FormatInfo& input, const Truth& truth, Number result) const {
    Measurement found = judge(m, input, truth, result);
    if (m.accumulator == "fixed_point") {  // the grid depends on all elements
      found.bound = m.bound(input, size_, result, largest_);
      found.within_bound = truth.within(found.bound, result);
    }
    return found;
  }

  std::vector<std::optional<Truth>> all_;
  std::size_t size_;
  double largest_ = 0;
};

constexpr std::size_t name_width = 38, column_width = 9;

/// The operation of which `operation` has a truth; empty for those whose results are not rounded.
std::string truth_for(const std::string& operation) {
  return operation == "scatter_add" ? "sum" : operation == "scatter_mean" ? "mean" : "";
}

struct SetOfPairs {
  const char *data, *keys;
};
/// Data that cancel, data of one sign, and data of which most terms are far below the largest.
constexpr SetOfPairs of_errors[] = {{"normal", "uniform"}, {"uniform", "zipf"}, {"60 binades", "uniform"}};
constexpr int log2_bins_of_errors[] = {0, 4, 8, 12};

std::size_t length_of_errors(bool full) { return two_to(full ? 18 : 16); }

void measure_errors(Study& study, const PartByKey& part, const SetOfPairs& set) {
  const Dataset& data = *datasets_matching(set.data).front();
  const std::size_t n = length_of_errors(study.full());
  std::vector<std::string> lines;
  for (const Method* m : part.methods) lines.push_back(left(short_name(*m), name_width));
  std::string head = left("", name_width);
  for (const int e : log2_bins_of_errors) {
    const std::size_t bins = two_to(e);
    head += right(power_or_number(bins), column_width);
    std::optional<Pairs> pairs;
    std::optional<TruthsByKey> truths;
    for (std::size_t i = 0; i < part.methods.size(); ++i) {
      const Method& m = *part.methods[i];
      const Json row =
          study.row(key_of("errors", m, *part.format, data.name, set.keys, n, bins, study.seed()), [&] {
            if (!pairs) {
              pairs.emplace(data, *part.format, key_set(set.keys), n, bins, study.seed());
              truths.emplace(*pairs, truth_for(part.operation));
            }
            return truths->errors_of(m, *part.format, pairs->reduced(m));
          });
      const Json& ulps = row["largest_ulps"];
      lines[i] += right(ulps.is_null() ? "inf" : compact(ulps, column_width - 1), column_width);
      if (const std::string why = complaint_about_errors(m, row); !why.empty())
        study.fail(m.name + " on " + data.name + ", " + power_or_number(bins) + " keys: " + why);
    }
  }
  study.print(part.operation + " of 2^" + std::to_string(std::countr_zero(n)) + ", " + data.name + " in " +
              std::string{part.format->name} + ", " + set.keys + " keys: largest error in ulps");
  study.print(head + " keys");
  for (const std::string& line : lines) study.print(line);
  study.print("");
}

// --- repeats ---------------------------------------------------------------------------------------

std::size_t if_own(const Method& m, std::size_t runs) { return is_peer(m) ? 0 : runs; }

const std::vector<RepeatAxis<Pairs>> axes{
    {"runs",
     Promise::run_to_run,
     {18, 22},
     [](const Method&) -> std::size_t { return 100; },
     [](const Method& m, Pairs& p, std::size_t) { return p.reduced(m, {.threads = several_threads()}); }},
    {"permutation",
     Promise::order_free,
     {16, 20},
     [](const Method&) -> std::size_t { return 8; },
     [](const Method& m, Pairs& p, std::size_t run) {
       if (run > 0) p.permute(run);
       return p.reduced(m, {.threads = several_threads()});
     }},
    {"threads",
     Promise::everywhere,
     {18, 20},
     [](const Method& m) {
       return if_own(m, runs_on_gpu(m) ? 0 : static_cast<std::size_t>(several_threads()));
     },
     [](const Method& m, Pairs& p, std::size_t run) {
       return p.reduced(m, {.threads = static_cast<int>(run) + 1});
     }},
    {"schedule",
     Promise::everywhere,
     {18, 22},
     [](const Method& m) {
       return if_own(m, m.backend == "cuda" ? static_cast<std::size_t>(schedules_of(m)) : 0);
     },
     [](const Method& m, Pairs& p, std::size_t run) {
       return p.reduced_in_schedule(m, static_cast<int>(run));
     }},
    {"backend",
     Promise::everywhere,
     {14, 14},
     [](const Method& m) { return if_own(m, m.promise == Promise::none ? 0 : 2); },
     [](const Method& m, Pairs& p, std::size_t run) {
       return p.reduced(run == 0 ? find_on("reference", m) : m);
     }},
};
constexpr std::size_t bins_of_repeats = 256;

void measure_repeats(Study& study, const PartByKey& part) {
  const Dataset& data = *datasets_matching("normal").front();
  study.print(part.operation + ", normal in " + std::string{part.format->name} + ", " +
              power_or_number(bins_of_repeats) + " uniform keys: distinct results/runs");
  print_repeats<Pairs>(
      study, axes, part.methods, left("method", name_width - 5),
      [](const Method& m) { return left(short_name(m), name_width - 5); },
      [&](const Method& m, std::size_t n) {
        return key_of("repeats", m, *part.format, data.name, "uniform", n, bins_of_repeats, study.seed());
      },
      [&](std::size_t n) {
        return Pairs{data, *part.format, key_set("uniform"), n, bins_of_repeats, study.seed()};
      });
}

// --- speed -----------------------------------------------------------------------------------------

struct CellMaker {
  int threads;
  std::size_t elements;
  std::vector<Cell> cells = {};

  void add(const std::string& keys, int log2_bins, std::size_t inner = 1, const char* format = "fp32",
           const std::string& operation = "scatter_add") {
    const Cell cell{.input = find_format(format),
                    .n = elements / inner,
                    .threads = threads,
                    .operation = operation,
                    .inner = inner,
                    .keys = keys,
                    .bins = two_to(log2_bins),
                    .grid = grid_for_normal_data};
    if (cell.bins <= 4 * cell.n) cells.push_back(cell);  // not far more results than rows
  }
  /// Sums of data that are awkward for integers. A given grid may be too fine for them.
  void add_awkward_data(int log2_bins, std::size_t inner, const char* format) {
    for (const std::string& data : awkward_data()) {
      const std::size_t before = cells.size();
      add("uniform", log2_bins, inner, format);
      for (std::size_t i = before; i < cells.size(); ++i) cells[i].data = data, cells[i].grid.reset();
    }
  }
};

const std::vector<std::string> uneven{"skewed", "zipf", "sorted"};

std::vector<Cell> cpu_cells(bool full) {
  CellMaker all{1, two_to(14)};
  all.add("uniform", 8);
  all.elements = two_to(full ? 22 : 20);
  for (const int bins : full ? std::vector{0, 4, 8, 12, 16, 20} : std::vector{0, 12, 20})
    all.add("uniform", bins);
  for (const std::string& keys : uneven) {
    all.add(keys, 12);
    if (full) all.add(keys, 20);
  }
  for (const std::size_t inner :
       full ? std::vector<std::size_t>{8, 64, 128, 1024} : std::vector<std::size_t>{128})
    all.add("uniform", 10, inner);
  for (const char* operation : {"scatter_mean", "scatter_min", "scatter_max"})
    all.add("uniform", 12, 1, "fp32", operation);
  all.add("uniform", 12, 1, "fp64", "scatter_count");
  all.add_awkward_data(12, 1, "fp32");
  if (full) all.add_awkward_data(20, 1, "fp32");
  if (full) all.add_awkward_data(10, 128, "fp32");
  all.threads = 2;
  all.add("uniform", 12);
  all.add("uniform", 20);
  return all.cells;
}

std::vector<Cell> gpu_cells(bool full) {
  CellMaker all{0, two_to(14)};
  all.add("uniform", 8);
  all.elements = two_to(full ? 26 : 24);
  for (const int bins : full ? std::vector{0, 2, 4, 6, 8, 10, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26}
                             : std::vector{0, 8, 12, 20, 24})
    all.add("uniform", bins);
  for (const std::string& keys : uneven)
    for (const int bins : full ? std::vector{4, 8, 12, 16, 20, 24} : std::vector{12}) all.add(keys, bins);
  for (const std::size_t inner : {8, 64, 128, 1024})
    for (const int bins : {10, 16, 20})
      if (full || (inner == 128 && bins == 16)) all.add("uniform", bins, inner);
  for (const char* operation : {"scatter_mean", "scatter_min", "scatter_max"})
    all.add("uniform", 12, 1, "fp32", operation);
  all.add("uniform", 12, 1, "fp64", "scatter_count");
  for (const char* format : {"fp16", "bf16", "fp64"})
    if (full) all.add("uniform", 12, 1, format);
  all.add_awkward_data(12, 1, "fp32");
  if (full) {
    all.add_awkward_data(22, 1, "fp32");
    all.add_awkward_data(18, 128, "fp32");
    all.add("uniform", 20, 1, "fp64");
    all.add_awkward_data(20, 1, "fp64");
  }
  return all.cells;
}

std::vector<SpeedTask> tasks(const std::vector<const Method*>& methods, bool full, int longest) {
  std::vector<Cell> cells = cpu_cells(full);
  if (absent().empty()) std::ranges::move(gpu_cells(full), std::back_inserter(cells));
  std::vector<SpeedTask> all;
  for (const Cell& cell : cells) {
    SpeedTask task{cell, {}};
    for (const Method* m : methods) {
      const bool takes_long = m->is_slow && cell.n / cell.bins > two_to(16);
      if (cell.data != "normal" && !may_depend_on_data(*m)) continue;
      if (!is_peer(*m) && m->backend != "reference" && m->format == cell.input && fits(*m, cell) &&
          !takes_long)
        task.methods.push_back(m);
    }
    if (task.methods.empty() || cell.elements() > two_to(longest)) continue;
    if (cell.data == "normal") append_peers(task);
    all.push_back(task);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "sums_by_key",
      "How wrong, how repeatable and how fast are sums by key?",
      "An operation by key reduces the elements that have the same key. The error of each result of "
      "scatter_add and scatter_mean is its distance from the exact one, which comes from integer buckets, "
      "and a share of its bound (Higham, Accuracy and Stability of Numerical Algorithms, 2002, eq. 4.6, "
      "for plain sums). Keys without elements are left out.\n\n"
      "All results of repeated calls are compared bit by bit. The axes differ in what changes: nothing, "
      "the order of the pairs of key and element, the number of threads, the schedule on a GPU (through a "
      "hook for the library's tests), or the backend, which is then the reference implementation in one of "
      "two runs.\n\n"
      "Speeds are measured in turns, as by speed_of_reductions, on normal data and keys of 32 bits, exact "
      "and fixed_point also on data that are awkward for integers: " +
          listed(awkward_data()) +
          ". GB/s counts elements and keys; the ceiling reads both once. fixed_point is measured twice: it "
          "finds its grid, or is given 2^-30. Peers are the loop out[key] += x and, on a GPU, a radix sort "
          "and ReduceByKey of CUB; scatter_add in the order atomic_element adds as most GPU programs do. "
          "Exit code 1 if an error exceeds its bound, an exact result is not correctly rounded, a promise "
          "is broken or bits are wrong.",
      {"errors", "repeats", "reduction", "declined"},
      "  sums_by_key\n"
      "  sums_by_key --filter 'scatter_add/*/fp32@cpu' --longest 14\n"
      "  sums_by_key --full --out build/study\n\nKeys:" +
          key_sets_in_words()};
  int longest = 40;
  study.add_option("--longest", "E", longest, "Speeds of arrays of at most 2^E elements", {0, 40});
  study.add_processes();
  return study.run(argc, argv, [&](Study& s) {
    const std::vector<const Method*> methods = chosen_methods(s.filter());
    const std::vector<PartByKey> all = parts_of(methods);
    const std::vector<SpeedTask> of_speeds = tasks(methods, s.full(), longest);
    for (const PartByKey& part : all)
      for (const Method* m : part.methods) {
        if (!truth_for(part.operation).empty())
          s.expect(std::size(of_errors) * std::size(log2_bins_of_errors));
        s.expect(static_cast<std::size_t>(
            std::ranges::count_if(axes, [&](const auto& axis) { return axis.runs(*m) > 0; })));
      }
    for (const SpeedTask& task : of_speeds) s.expect(rows_of(task));
    for (const PartByKey& part : all)
      for (const SetOfPairs& set : of_errors)
        if (!truth_for(part.operation).empty()) measure_errors(s, part, set);
    for (const PartByKey& part : all) measure_repeats(s, part);
    measure_speeds(s, of_speeds);
  });
}
