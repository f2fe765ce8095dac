/// What does each promise cost, in speed and in accuracy?
#include <algorithm>
#include <optional>
#include <thread>
#include <tuple>

#include "harness/dataset.hpp"
#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/sample.hpp"
#include "harness/speed_table.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

// --- what is measured ------------------------------------------------------------------------------

/// Whether a method is measured in a cell. Elements are summed in their own format, 16-bit elements also in
/// fp32. Sequential orders are left out with several threads, which they do not use, and compensated sums
/// whose additions wait for each other for long arrays, on which they are slow.
bool takes_part(const Method& v, const Cell& cell, bool full) {
  const bool in_format = v.format == cell.input || (cell.input->bytes == 2 && v.format->name == "fp32");
  const bool endless = (is_sequential(v) && cell.threads > 1) ||
                       (!full && compensates_in_turn(v) && cell.n > (std::size_t{1} << 16));
  return fits(v, cell) && in_format && !endless;
}

std::vector<int> thread_counts() {
  std::vector<int> all{1};
  if (const unsigned most = std::thread::hardware_concurrency(); most > 1)
    all.push_back(static_cast<int>(most));
  if (absent().empty()) all.push_back(0);
  return all;
}

std::vector<SpeedTask> sums(const std::string& filter, int longest, bool full) {
  std::vector<const Method*> all;
  for (const FormatInfo& format : formats)
    for (const Method* v : methods_matching(filter.empty() ? "*,*@peer" : filter, format, "--filter"))
      if (std::ranges::count(all, v) == 0 && v->backend != "reference") all.push_back(v);
  std::vector<SpeedTask> chosen;
  for (const FormatInfo& input : formats)
    for (int e = 12; e <= longest; e += full ? 2 : 4)
      for (const int threads : thread_counts()) {
        // A second thread pays off from 2^17 elements on.
        if ((threads > 1 && e < 20) || (!full && e != 20 && input.name != "fp32")) continue;
        SpeedTask task{{&input, two_to(e), threads}, {}};
        std::ranges::copy_if(all, std::back_inserter(task.methods),
                             [&](const Method* v) { return takes_part(*v, task.cell, full); });
        task.declined = declined_of(task.cell, task.methods);
        if (!task.methods.empty()) chosen.push_back(task);
      }
  return chosen;
}

/// Another operation: 2^20 elements, fewer where the exact result takes long.
std::vector<SpeedTask> tasks(const std::string& operation, const std::string& filter, int longest,
                             bool full) {
  if (operation == "sum") return sums(filter, longest, full);
  const bool slow_truth = operation == "logsumexp" || operation == "softmax";
  const int e = std::min(longest, slow_truth ? 16 : 20);
  std::vector<SpeedTask> chosen;
  for (const Method* v : methods_in_own_format(filter, operation))
    for (const int threads : thread_counts()) {
      Cell cell{v->format, two_to(e), threads};
      cell.operation = operation;
      cell.data = operation == "prod" ? "near 1" : "normal";
      if (!fits(*v, cell) || (threads > 1 && (slow_truth || is_sequential(*v))) ||
          (!full && v->format->name != "fp32") || v->backend == "reference")
        continue;
      const auto same = std::ranges::find(chosen, cell, &SpeedTask::cell);
      (same == chosen.end() ? chosen.emplace_back(SpeedTask{cell, {}}) : *same).methods.push_back(v);
    }
  return chosen;
}

// --- errors ----------------------------------------------------------------------------------------

const Dataset& hard_data(const FormatInfo& format) {
  const Dataset& hard = *datasets_matching("kappa 1e8").front();
  return hard.fits(format) ? hard : *datasets_matching("kappa 1e4").front();
}

/// Makes samples when they are first needed, and keeps them while cells use the same ones.
class Samples {
 public:
  explicit Samples(std::uint64_t seed) : seed_{seed} {}

  Sample& usual(const Cell& cell) { return made(usual_, cell.dataset(), cell); }
  /// Elements of a high condition number; for sums only.
  Sample& hard(const Cell& cell) { return made(hard_, hard_data(*cell.input), cell); }

 private:
  struct Slot {
    std::optional<Sample> sample;
    std::tuple<const FormatInfo*, std::size_t, std::string> of;
  };
  Sample& made(Slot& slot, const Dataset& data, const Cell& cell) {
    if (const std::tuple wanted{cell.input, cell.n, cell.operation}; !slot.sample || slot.of != wanted) {
      slot.sample.reset();  // frees memory for the next one
      std::optional<Column> second;
      if (cell.inputs() == 2) second = data.make(*cell.input, cell.n, seed_ + 1);
      slot.sample.emplace(data.make(*cell.input, cell.n, seed_), cell.operation, std::move(second));
      slot.of = wanted;
    }
    return *slot.sample;
  }
  std::uint64_t seed_;
  Slot usual_, hard_;
};

// --- the study -------------------------------------------------------------------------------------

constexpr std::size_t name_width = 34;

void print_head(Study& study, const Cell& cell) {
  study.print("");
  const bool is_sum = cell.operation == "sum";
  study.print(title_prefix(cell.operation) + std::string{cell.input->name} +
              ", n = " + power_or_number(cell.n) + ", " +
              (cell.threads == 0   ? "GPU"
               : cell.threads == 1 ? "1 thread"
                                   : std::to_string(cell.threads) + " threads") +
              "; error: in ulps" +
              (is_sum ? "; hard: relative error (" + hard_data(*cell.input).name + ")" : ""));
  study.print(left("method", name_width) + left("promise", 11) + right("time", 9) + right("GB/s", 8) +
              right("error", 9) + (is_sum ? right("hard", 9) : ""));
}

void print(Study& study, const Json& row) {
  std::string name = row["method"];
  if (const std::string operation = row.value("operation", "sum") + '/'; name.starts_with(operation))
    name.erase(0, operation.size());
  const auto number = [&](const char* field) {
    return right(row[field].is_null() ? "-" : compact(row[field], 8, 2), 9);
  };
  study.print(left(name, name_width) + left(row["promise"], 11) + right(duration(row["seconds"]), 9) +
              right(compact(row["gb_per_s"], 7), 8) + number("error_ulps") +
              (row.contains("hard_relative") ? number("hard_relative") : ""));
}

Json errors_of(const Method& v, const Cell& cell, Samples& samples) {
  const Options options{.threads = cell.threads};
  const Error error = samples.usual(cell).judged(v, options).error;
  Json values = {{"error_ulps", number_or_null(error.ulps)},
                 {"relative_error", number_or_null(error.relative)}};
  if (const std::string which = compared_result(v); !which.empty()) values["result"] = which;
  if (cell.operation != "sum") return values;
  const Error hard = samples.hard(cell).judged(v, options).error;
  values.update({{"hard_data", hard_data(*cell.input).name},
                 {"hard_condition", number_or_null(samples.hard(cell).truth().condition())},
                 {"hard_error_ulps", number_or_null(hard.ulps)},
                 {"hard_relative", number_or_null(hard.relative)}});
  return values;
}

/// Measures all methods of a cell in turns.
void measure(Study& study, const SpeedTask& task, Samples& samples) {
  const Cell& cell = task.cell;
  print_head(study, cell);
  std::vector<Json> keys;
  for (const Method* v : task.methods)
    keys.push_back(with_operation({{"kind", "price"},
                                   {"method", v->name},
                                   {"promise", name_of(v->promise)},
                                   {"input_format", cell.input->name},
                                   {"n", cell.n},
                                   {"threads", cell.threads},
                                   {"seed", study.seed()}},
                                  *v));
  const auto measure_all = [&](std::vector<Json>& rows) {
    const std::vector<Speed> speeds =
        Bench{cell, study.seed(), cell.n}.measure(cell, task.methods, study.repeats(15));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      add_process(rows[i], speeds.at(i));
      if (processes_of(rows[i]) == 1) rows[i].update(errors_of(*task.methods[i], cell, samples));
    }
  };
  const auto derive = [&](std::vector<Json>& rows) {
    for (Json& row : rows) derive_speed(row, cell.bytes());
  };
  for (const Json& row : study.rows_in_turns(keys, measure_all, derive)) {
    print(study, row);
    check_results(study, cell, row);
  }
  decline(study, cell, task.declined);
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "price_of_promise",
      "What does each promise cost, in speed and in accuracy?",
      "All methods are timed in turns, in rounds of one run of each in a random order, so that a disturbance "
      "of the machine affects all of them; a time is the median of 5 rounds (--full: 15). Rows can be "
      "compared if they have the same "
      "elements, length and number of threads (0: a GPU). The elements are normal; 2^20 of them are "
      "generated and repeated. Errors are measured on as many normal elements, and on data of condition "
      "number 1e8 (in fp16 1e4), which are generated by algorithm 6.1 of Ogita, Rump and Oishi 2005; both "
      "are compared with the exact sum. The price of a promise is the time of the fastest method that gives "
      "it over the time of the fastest method that promises nothing.\n\n"
      "The other operations follow, with 2^20 elements (logsumexp and softmax 2^16), each compared with its "
      "own exact result: of moments, the variance; of softmax, the first element. Without --full only "
      "fp32.\n\n"
      "Several threads are left out for sequential orders and for arrays below 2^20 elements. Without "
      "--full, compensated sums whose additions wait for each other are left out above 2^16 elements, and "
      "formats other than fp32 at lengths other than 2^20. Rows that are measured in turns are written "
      "together: if the program is "
      "stopped in between, all of them are measured again.\n\n"
      "Exit code 1 if a method that promises its bits everywhere gave other bits, or if a result of a peer "
      "is "
      "wrong: it is compared with wider arithmetic within 4u (sqrt(n) max|s_k| + sum|x|) for sums, where s_k "
      "are the partial sums.",
      {"price", "declined"},
      "  price_of_promise\n"
      "  price_of_promise --filter 'exact,tree/*,*@peer' --longest 20\n"
      "  price_of_promise --full --out build/study"};
  study.add_operations(rounded_operations());
  std::optional<int> longest;
  study.add_option("--longest", "E", longest,
                   "At most 2^E elements, E from 12 to 34\n(default 24, --full 28)", {12, 34});
  study.add_processes();
  return study.run(argc, argv, [&](Study& s) {
    std::vector<SpeedTask> all;
    for (const std::string& operation : s.operations())
      std::ranges::copy(tasks(operation, s.filter(), longest.value_or(s.full() ? 28 : 24), s.full()),
                        std::back_inserter(all));
    if (all.empty()) throw UsageError{"--filter and --longest leave nothing to measure on this machine"};
    for (const SpeedTask& task : all) s.expect(task.methods.size() + task.declined.size());
    Samples samples{s.seed()};
    for (const SpeedTask& task : all) measure(s, task, samples);
  });
}
