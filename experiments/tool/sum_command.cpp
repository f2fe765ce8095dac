#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <sstream>

#include "harness/input.hpp"
#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"
#include "tool/commands.hpp"

namespace samesum::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t unknown_number = std::numeric_limits<std::uint64_t>::max();

void write_json(Report& report, const Method& method, const FormatInfo& input, const Truth& truth,
                Number value, std::optional<int> grid) {
  const Measurement m = judge(method, input, truth, value, 0, grid);
  report.text = json_line(result_json(m, input, truth));
  if (const auto broken = failure(m)) report.failures.push_back(*broken);
}

std::string text_of(Number value, const SumOptions& options) {
  return (options.hex ? hexadecimal(value) : shortest_decimal(value)) + '\n';
}

bool is_same_path(const std::string& a, const std::string& b) {
  const auto whole = [](const std::string& path) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  };
  return !b.empty() && whole(a) == whole(b);
}

/// Returns what went wrong; empty if the partial is saved.
std::string save(const Partial& partial, const std::string& path) try {
  const std::vector<std::byte> bytes = partial.serialise();
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return {};
} catch (const OutputError& error) {
  return error.what();
}

/// Reads a partial of the method that begins at element 0.
Partial saved_partial(const std::string& path, const Method& method) {
  const std::string otherwise = "leave out --resume to start at the first element";
  std::ifstream in{path, std::ios::binary};
  if (!in) throw InputError{path, "cannot be read; " + otherwise};
  std::ostringstream bytes;
  bytes << in.rdbuf();
  try {
    Partial partial = Partial::deserialise(std::as_bytes(std::span{bytes.view()}), method.backend);
    if (const std::string& name = partial.method().name; name != method.name)
      throw InputError{path, "holds a partial of " + name + ", not of " + method.name + "; pass --method " +
                                 name + ", or " + otherwise};
    if (partial.begin() != 0)
      throw InputError{path, "begins at element " + std::to_string(partial.begin()) + "; " + otherwise};
    return partial;
  } catch (const std::invalid_argument& damaged) {
    const std::string_view reason{damaged.what()};  // begins with "samesum: "
    throw InputError{path, std::string{reason.substr(reason.find(' ') + 1)} + "; " + otherwise};
  }
}

/// Returns the partial from which --resume goes on, or that of no elements, and passes over its elements.
Partial start(ElementReader& elements, const Method& method, const SumOptions& options) {
  const bool anew = options.resume.empty() ||
                    (is_same_path(options.resume, options.save_partial) && !fs::exists(options.resume));
  if (anew) return Partial{method, 0, options.grid};
  const Partial partial = saved_partial(options.resume, method);
  if (const std::uint64_t present = elements.skip(partial.end()); present < partial.end())
    throw InputError{options.resume, "covers " + std::to_string(partial.end()) +
                                         " elements, but FILE has only " + std::to_string(present) +
                                         "; resume with the file of the run that saved it"};
  return partial;
}

[[noreturn]] void refuse_partial_of_rounded(const SumOptions& options) {
  throw InputError{options.files.front(),
                   "has integers beyond 2^53, whose sum cannot be saved or resumed; leave out --save-partial "
                   "and --resume, or pass --format fp64 to round them"};
}

/// Sums portions as they are read. Adds them to `truth` too, unless that is null. A save that fails on the
/// way is tried again a second later; only the last one counts.
Number sum_portions(ElementReader& elements, const Method& method, const SumOptions& options, Truth* truth,
                    Report& report) {
  using Clock = std::chrono::steady_clock;
  Partial partial = start(elements, method, options);
  Clock::time_point last_saved = Clock::now();
  std::size_t rounded = 0;
  while (elements.next()) {
    const Column& portion = elements.portion();
    if (truth) truth->add(portion.values());
    partial.add(portion.values(), {.threads = options.threads});
    if (method.accumulator != "exact") {
      rounded += portion.rounded();
    } else if (!portion.lost.empty()) {
      if (!options.save_partial.empty() || !options.resume.empty()) refuse_partial_of_rounded(options);
      for (const Values& lost : portion.lost_values()) {
        if (truth) truth->add_parts(lost);
        partial.add(lost, {.threads = options.threads});
      }
    }
    if (options.save_partial.empty() || Clock::now() - last_saved < std::chrono::seconds{1}) continue;
    static_cast<void>(save(partial, options.save_partial));
    last_saved = Clock::now();
  }
  if (!options.save_partial.empty())
    if (const std::string wrong = save(partial, options.save_partial); !wrong.empty())
      report.failures.push_back(wrong);
  report.notes = notes_on(elements.notes(), rounded);
  return partial.finish({.threads = options.threads});
}

/// Sums with a method that has no partials, or needs all elements to find its grid.
Number sum_at_once(ElementReader& elements, const Method& method, const SumOptions& options, Truth* truth,
                   Report& report) {
  const Column column = read_all(elements);
  if (truth) truth->add(column.values());
  report.notes = notes_on(column.notes, column.rounded());
  return method(column.values(), {.threads = options.threads, .grid = options.grid});
}

/// Sums all elements in this process.
Report sum_alone(const SumOptions& options) {
  check_threads(options.threads);
  if (!options.save_partial.empty()) check_output("--save-partial", options.save_partial, options.files);
  const FormatInfo* format = format_named(options.format);
  check_before_reading(format, [&](const FormatInfo& f) { sum_named(options.method, f, "--method"); });
  const std::unique_ptr<ElementReader> elements = open_elements(options.files, format, options.table);
  const Method& method = sum_named(options.method, elements->format(), "--method");
  const bool needs_partial = !options.save_partial.empty() || !options.resume.empty();
  Truth truth;
  // A partial of fixed_point needs a grid; without one the elements are read first. hopper has no partials.
  const bool has_partials = method.promise >= Promise::everywhere && method.accumulator != "hopper" &&
                            (method.accumulator != "fixed_point" || options.grid);
  const auto sum = has_partials || needs_partial ? sum_portions : sum_at_once;
  Report report;
  const Number value = sum(*elements, method, options, options.json ? &truth : nullptr, report);
  if (options.json)
    write_json(report, method, elements->format(), truth, value, options.grid);
  else
    report.text = text_of(value, options);
  return report;
}

/// The number of elements of the files; the largest number if only reading tells it.
std::uint64_t number_of_elements(const SumOptions& options, const FormatInfo* format) {
  const bool can_be_shared = std::ranges::all_of(options.files, [](const std::string& file) {
    std::error_code ignored;
    return file != "-" && !fs::is_fifo(file_of(file), ignored);
  });
  if (!can_be_shared) return unknown_number;
  return open_elements(options.files, format, options.table)->left().value_or(unknown_number);
}

/// Adds the next `count` elements to the partial, and returns how many integers were rounded. The last rank
/// reads to the end of the files, which checks their size.
std::size_t add_elements(ElementReader& elements, Partial& partial, std::uint64_t count, bool to_the_end,
                         const SumOptions& options) {
  std::size_t rounded = 0;
  while ((count > 0 || to_the_end) && elements.next()) {
    const Column& portion = elements.portion();
    if (!portion.lost.empty() && partial.method().accumulator == "exact")
      throw InputError{
          options.files.front(),
          "has integers beyond 2^53, whose sum cannot be spread over ranks; run samesum without the "
          "launcher, or pass --format fp64 to round them"};
    rounded += portion.rounded();
    const Values all = portion.values();
    const auto n = to_the_end ? all.size : static_cast<std::size_t>(std::min<std::uint64_t>(all.size, count));
    partial.add({*all.format, all.data, n}, {.threads = options.threads});
    count -= std::min<std::uint64_t>(count, n);
  }
  return rounded;
}

/// Where the part of a rank begins: at a multiple of 4096 elements, so that no partial begins inside a leaf.
std::uint64_t begin_of_part(std::uint64_t all, int rank, int ranks) {
  if (rank == ranks) return all;
  const auto r = static_cast<std::uint64_t>(rank), of = static_cast<std::uint64_t>(ranks);
  return (all / of * r + all % of * r / of) / 4096 * 4096;
}

Report sum_over_ranks(const SumOptions& options, const Ranks& ranks) {
  const FormatInfo* format = format_named(options.format);
  const bool is_first = ranks.rank() == 0;
  std::uint64_t all = 0;
  ranks.together("the count of the elements", [&] {
    if (is_first) all = number_of_elements(options, format);
  });
  all = ranks.total(all);
  Report report;
  if (all == unknown_number) {
    ranks.together("the sum on rank 0", [&] {
      if (is_first) report = sum_alone(options);
    });
    report.notes.push_back(
        "rank 0 has read all elements: those of a text, a table, a pipe or a compressed raw file, or without "
        "NaNs, are not spread over ranks");
    return report;
  }

  const std::uint64_t begin = begin_of_part(all, ranks.rank(), ranks.size()),
                      end = begin_of_part(all, ranks.rank() + 1, ranks.size());
  std::unique_ptr<ElementReader> elements;
  ranks.together("the sum of " + std::to_string(all) + " elements", [&] {
    elements = open_elements(options.files, format, options.table);
    sum_named(options.method, elements->format(), "--method");
    if (const std::uint64_t here = elements->left().value_or(unknown_number); here != all)
      throw InputError{options.files.front(), "has " + std::to_string(here) + " elements here, but " +
                                                  std::to_string(all) +
                                                  " on rank 0; give all ranks the same files"};
    elements->skip(begin);
  });
  const Method& method = sum_named(options.method, elements->format(), "--method");
  std::size_t rounded = 0;
  const Number value = ranks.sum(
      method, end - begin,
      [&](Partial& partial) { rounded = add_elements(*elements, partial, end - begin, end == all, options); },
      {.threads = options.threads, .grid = options.grid});
  report.text = text_of(value, options);
  report.notes = notes_on({}, static_cast<std::size_t>(ranks.total(rounded)));
  return report;
}

}  // namespace

Report sum_command(const SumOptions& options) try {
  return options.ranks ? sum_over_ranks(options, *options.ranks) : sum_alone(options);
} catch (const std::bad_alloc&) {
  throw InputError{options.files.front(), "does not fit in memory"};
}

}  // namespace samesum::harness
