/// What do nondeterminism and low precision do to what is computed with sums?
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "harness/dataset.hpp"
#include "harness/downstream/downstream.hpp"
#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/repeat.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

const std::string usual = "atomic/plain/*,serial/plain/*@cpu,tree/plain/*,tree/kahan/*,exact";
const std::string usual_data = "build/study/data";

/// The chosen methods with these formats. Leaves out peers, because samesum makes no promises for them.
std::vector<const Method*> methods(const Study& study, const std::set<std::string_view>& formats) {
  std::vector<const Method*> all = methods_in_own_format(study.filter().empty() ? usual : study.filter());
  std::erase_if(all, [&](const Method* v) { return is_peer(*v) || !formats.contains(v->format->name); });
  std::ranges::stable_sort(all, {}, [](const Method* v) { return v->format->index; });
  return all;
}

/// Replaces NaN, which has no place in an order, by infinity, the worst number.
double never_nan(double x) { return std::isnan(x) ? std::numeric_limits<double>::infinity() : x; }

constexpr double forever = std::numeric_limits<double>::infinity();

struct Runs {
  int most;
  double patience;  ///< in seconds
};

/// Repeats a run. On a GPU, where each sum costs a copy and a launch, at most ten times.
template <class Run> auto repeat(const Method& v, Runs runs, const Run& run) {
  const int most = runs_on_gpu(v) ? std::min(runs.most, 10) : runs.most;
  return harness::repeat(static_cast<std::size_t>(most), runs.patience, [&](std::size_t) { return run(); });
}

Summation sum_by(const Method& v) {
  return [&v](Values x) { return v(x, {.threads = several_threads()}); };
}

template <class T, class Of> std::size_t distinct(const std::vector<T>& all, const Of& of) {
  std::set<std::uint64_t> different;
  for (const T& one : all) different.insert(of(one));
  return different.size();
}

/// The fields with which every row begins.
Json key_of(const std::string& kind, const Method& v, const FormatInfo& input, std::size_t n) {
  return {{"kind", kind},
          {"method", v.name},
          {"promise", name_of(v.promise)},
          {"input_format", input.name},
          {"n", n}};
}

/// Checks the promises: within a row, and between the backends of a method.
class Judge {
 public:
  explicit Judge(Study& study) : study_{study} {}

  void see(const Method& v, const Json& row) {
    const std::string what = row["kind"].get<std::string>() + ", " + v.name;
    if (row["broken"])
      study_.fail(what + ": promises " + row["promise"].get<std::string>() + " but gave " +
                  row["distinct_bits"].dump() + " results");
    if (v.promise < Promise::everywhere) return;
    const std::string what_and_how = full_name(v.operation, v.order, v.accumulator, v.format->name, "any") +
                                     std::string{row["input_format"]} + row.value("quantity", "") +
                                     row.value("data", "") + std::string{row["kind"]};
    const Json& first = bits_.try_emplace(what_and_how, row["bits"]).first->second;
    if (row["bits"] != first) study_.fail(what + ": bits differ from those on another backend");
  }

 private:
  Study& study_;
  std::map<std::string, Json> bits_;
};

bool is_broken(const Method& v, std::size_t answers) {
  return answers > 1 && v.promise >= Promise::run_to_run;
}

/// "7", or "7 .. 9".
std::string range(const Json& least, const Json& most, int digits) {
  const auto text = [&](const Json& x) { return x.is_null() ? "-" : compact(x, 9, digits); };
  return text(least) == text(most) ? text(least) : text(least) + " .. " + text(most);
}

constexpr std::size_t name_width = 29, promise_width = 11, bits_width = 9;

std::string beginning(const Json& row) {
  return left(row["method"], name_width) + left(row["promise"], promise_width) +
         right(row["distinct_bits"].dump() + "/" + row["runs"].dump(), bits_width);
}

std::string head(const std::string& what) {
  return left("method", name_width) + left("promise", promise_width) + right("results", bits_width) + what;
}

// --- conjugate gradients -----------------------------------------------------------------------------

double tolerance(const FormatInfo& format) { return format.name == "fp64" ? 1e-10 : 1e-5; }

void solve(Study& study, Judge& judge, const std::vector<const Method*>& methods, const System& system,
           Runs runs) {
  const auto n = static_cast<std::size_t>(system.n);
  study.print("Conjugate gradients, " + system.name + ", n = " + power_or_number(n) + ", condition number " +
              compact(system.condition, 7));
  study.print(head(right("iterations", 12) + right("residual", 19)));
  std::map<const FormatInfo*, Solver> solvers;
  for (const Method* v : methods) {
    const FormatInfo& format = *v->format;
    Json key = key_of("solver", *v, format, n);
    key.update({{"data", system.name}, {"seed", study.seed()}});
    const Json row = study.row(key, [&]() -> Json {
      Solver& solver = solvers[&format];
      if (!solver)
        solver = conjugate_gradients(system, datasets_matching("normal")[0]->make(format, n, study.seed()),
                                     tolerance(format));
      const auto all = repeat(*v, runs, [&] { return solver(sum_by(*v)); });
      const auto [fewest, most] = std::ranges::minmax(all, {}, &Solution::iterations);
      const auto [best, worst] =
          std::ranges::minmax(all, {}, [](const Solution& s) { return never_nan(s.residual); });
      const std::size_t answers = distinct(all, [](const Solution& s) { return s.bits; });
      return {{"condition", system.condition},
              {"tolerance", tolerance(format)},
              {"runs", all.size()},
              {"distinct_bits", answers},
              {"bits", hexadecimal_digest(all[0].bits)},
              {"converged", std::ranges::count_if(all, &Solution::converged)},
              {"least_iterations", fewest.iterations},
              {"most_iterations", most.iterations},
              {"least_residual", number_or_null(best.residual)},
              {"most_residual", number_or_null(worst.residual)},
              {"broken", is_broken(*v, answers)}};
    });
    study.print(beginning(row) + right(range(row["least_iterations"], row["most_iterations"], 5), 12) +
                right(range(row["least_residual"], row["most_residual"], 2), 19));
    judge.see(*v, row);
  }
  study.print("");
}

// --- a network ---------------------------------------------------------------------------------------

constexpr int samples_per_interval = 8;
constexpr double middle = 385, width = 15;  ///< of the range of the Moon's distance, in 1000 km

std::vector<float> standardised(const std::vector<double>& distances) {
  std::vector<float> series;
  for (const double r : distances) series.push_back(static_cast<float>((r - middle) / width));
  return series;
}

/// The largest difference of one weight between two runs.
double spread_of_weights(const std::vector<Trained>& all) {
  double widest = 0;
  for (std::size_t i = 0; i < all[0].weights.size(); ++i) {
    const auto [low, high] = std::ranges::minmax(all, {}, [i](const Trained& t) { return t.weights[i]; });
    widest = std::max(widest, double{high.weights[i]} - double{low.weights[i]});
  }
  return widest;
}

void learn(Study& study, Judge& judge, const std::vector<const Method*>& methods,
           const std::vector<double>& distances, Runs runs) {
  const std::vector<float> series = standardised(distances);
  Lesson lesson;
  lesson.seed = study.seed();
  if (study.full()) lesson.steps = 200;
  const std::size_t samples = series.size() - static_cast<std::size_t>(lesson.inputs);
  study.print("Training a network, " + std::to_string(lesson.weights()) +
              " weights, on the Moon's distance: " + std::to_string(lesson.steps) + " steps, " +
              std::to_string(samples) + " samples");
  study.print(head(right("apart", 10) + right("error/km", 20)));
  const auto km = [](const Trained& t) { return std::sqrt(t.loss) * width * 1000; };
  for (const Method* v : methods) {
    Json key = key_of("training", *v, format_info<fp32>(), samples);
    key.update({{"data", "moon"}, {"seed", study.seed()}, {"steps", lesson.steps}});
    const Json row = study.row(key, [&]() -> Json {
      const auto all = repeat(*v, runs, [&] { return train(series, lesson, sum_by(*v)); });
      const auto bits = [](const Trained& t) { return digest(std::as_bytes(std::span{t.weights})); };
      const auto [best, worst] =
          std::ranges::minmax(all, {}, [](const Trained& t) { return never_nan(t.loss); });
      const std::size_t answers = distinct(all, bits);
      return {{"weights", lesson.weights()},
              {"runs", all.size()},
              {"distinct_bits", answers},
              {"bits", hexadecimal_digest(bits(all[0]))},
              {"weights_apart", number_or_null(spread_of_weights(all))},
              {"least_error", number_or_null(km(best))},
              {"most_error", number_or_null(km(worst))},
              {"broken", is_broken(*v, answers)}};
    });
    study.print(beginning(row) +
                right(row["weights_apart"].is_null() ? "-" : compact(row["weights_apart"], 9), 10) +
                right(range(row["least_error"], row["most_error"], 6), 20));
    judge.see(*v, row);
  }
  study.print("");
}

// --- a recording -------------------------------------------------------------------------------------

struct Quantity {
  const char* name;
  double Statistics::*of;
};
constexpr Quantity quantities[] = {{"mean", &Statistics::mean},
                                   {"variance, naive", &Statistics::naive_variance},
                                   {"variance, two passes", &Statistics::two_pass_variance}};

/// null if it is not finite.
Json relative_error(double value, double truth) { return number_or_null(std::abs(value - truth) / truth); }

void describe(Study& study, Judge& judge, const std::vector<const Method*>& methods, const std::string& file,
              Runs runs) {
  const std::vector<double> distances = moon_distances(file, samples_per_interval);
  study.print("Mean and variance of the Moon's distance, " + std::to_string(distances.size()) +
              " samples: relative errors");
  study.print(left("method", name_width) + right("mean", 12) + right("naive", 12) + right("two passes", 12));
  std::optional<Column> x;
  Statistics truth{};
  for (const Method* v : methods) {
    std::vector<Statistics> all;
    const auto measure = [&] {
      if (!x || x->format != v->format) truth = true_moments(*(x = column_of(*v->format, distances)));
      all = repeat(*v, runs, [&] { return moments(*x, sum_by(*v)); });
    };
    std::string line = left(v->name, name_width);
    for (const Quantity& q : quantities) {
      Json key = key_of("recording", *v, *v->format, distances.size());
      key.update({{"data", "moon"}, {"quantity", q.name}});
      const Json row = study.row(key, [&]() -> Json {
        if (all.empty()) measure();
        const std::size_t answers = distinct(all, [&](const Statistics& m) { return to_bits(m.*q.of); });
        const double worst =
            std::ranges::max(
                all, {}, [&](const Statistics& m) { return never_nan(std::abs(m.*q.of - truth.*q.of)); }).*
            q.of;
        return {{"runs", all.size()},
                {"distinct_bits", answers},
                {"bits", hexadecimal_digest(to_bits(all[0].*q.of))},
                {"value", number_or_null(worst)},
                {"truth", truth.*q.of},
                {"relative_error", relative_error(worst, truth.*q.of)},
                {"broken", is_broken(*v, answers)}};
      });
      line += right(row["relative_error"].is_null() ? "-" : compact(row["relative_error"], 8, 2), 12);
      judge.see(*v, row);
    }
    study.print(line);
  }
  study.print("");
}

/// The path of the recording, or "" if it does not exist. Throws UsageError if a folder was given without it.
std::string moon_in(const std::string& folder, Study& study) {
  const std::string asked = folder.empty() ? usual_data : folder, file = asked + "/moon.npy";
  if (std::filesystem::exists(file)) return file;
  const std::string why =
      file + " does not exist; run experiments/run, or experiments/datasets.py " + asked + ", to create it";
  if (!folder.empty()) throw UsageError{"--data: " + why};
  study.leave_out("the network and the recording", why);
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "consequences",
      "What do nondeterminism and low precision do to what is computed with sums?",
      "Three computations in which only the sums can vary: everything else runs in one thread, without "
      "fused or reordered operations. Each computation is repeated with each method, and the distinct bit "
      "patterns of its whole result are counted (column results: different results / runs; 100 runs of the "
      "solver, 20 of the others; fewer with --quick if they are slow).\n\n"
      "solver: conjugate gradients (Hestenes and Stiefel 1952) on Poisson's equation with the five-point "
      "stencil, and on a matrix with the eigenvalues 1, 1/2, … 2^-19, for which 20 iterations suffice "
      "without rounding (Strakos 1991). The right-hand side is normal. The products of a dot product are "
      "formed first, each rounded once, and then summed. Iterations end when the residual of the recurrence "
      "is at most 1e-10 (fp64) or 1e-5 (fp32) of |b|; the residual in the table is |b - Ax| / |b| of the "
      "solution. training: a network with one hidden layer of softsign units, in fp32, predicts the Moon's "
      "distance from the eight distances before it (NASA JPL's ephemeris DE421; Folkner, Williams and Boggs "
      "2009), by gradient descent on all samples. Each component of the gradient is a sum over the samples. "
      "recording: mean and sample variance of the same distances, by the naive formula (sum of squares "
      "minus squared sum over n) and in two passes (Chan, Golub and LeVeque 1983), compared with arithmetic "
      "of 400 digits.\n\n"
      "Exit code 1 if a method that promises the same bits gave different ones.",
      {"solver", "training", "recording"},
      "  consequences --filter 'atomic/plain/*,exact'\n"
      "  consequences --data build/study/data --json\n"
      "  consequences --full --out build/study"};
  std::string folder;
  int most = 100;
  study.add_option("--runs", "N", most, "Largest number of runs (default 100)", {1, 1000000});
  study.add_option("--data", "FOLDER", folder, "Folder of moon.npy (default build/study/data)");
  return study.run(argc, argv, [&](Study& s) {
    const std::string file = moon_in(folder, s);
    const auto solving = methods(s, {"fp32", "fp64"}), learning = methods(s, {"bf16", "fp32"}),
               describing = methods(s, {"fp16", "bf16", "fp32", "fp64"});
    if (describing.empty())
      throw UsageError{"--filter: '" + s.filter() + "' matches only methods of other libraries"};
    if (!has_linear_algebra())
      s.leave_out("the solver and the network", "they need Eigen: install libeigen3-dev and build again");
    const bool solves = has_linear_algebra() && !solving.empty();
    const bool learns = has_linear_algebra() && !learning.empty() && !file.empty(), describes = !file.empty();
    s.expect((solves ? 2 * solving.size() : 0) + (learns ? learning.size() : 0) +
             (describes ? std::size(quantities) * describing.size() : 0));
    s.depend_on("runs", most);
    std::vector<double> recording;
    if (!file.empty()) {
      recording = moon_distances(file, 1);
      s.depend_on("recording", hexadecimal_digest(digest(std::as_bytes(std::span{recording}))));
    }
    Judge judge{s};
    const auto runs = [&](int usual, double patience) {
      return Runs{std::min(most, usual), s.full() ? forever : patience};
    };
    if (solves) {
      solve(s, judge, solving, graded(1 << 16, 20), runs(most, 0.5));
      solve(s, judge, solving, s.full() ? poisson(256, 256) : poisson(160, 128), runs(most, 0.2));
    }
    if (learns) learn(s, judge, learning, recording, runs(20, 0.3));
    if (describes) describe(s, judge, describing, file, runs(20, 0.1));
  });
}
