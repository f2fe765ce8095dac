/// Schedules reductions whose accumulators take no order over threads: parts may be added in any order.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "samesum/backend/cpu/exact/exact_sums.hpp"
#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::cpu {

/// The results of one call. One thread computes each result; all threads share a single result, part by part.
template <class T> class OrderFreeBatch {
 public:
  explicit OrderFreeBatch(const Call& c) : call{c} {}

  bool is_one() const { return call.layout.results() == 1; }
  std::size_t length_of(std::size_t at) const { return call.layout.length(at / call.layout.inner); }

  /// The first element of x, or of y, that belongs to result `at`; null if there is no y.
  const T* first_of(std::size_t at) const { return static_cast<const T*>(call.x.data) + place_of(at); }
  const T* first_of_y(std::size_t at) const {
    return call.y.data ? static_cast<const T*>(call.y.data) + place_of(at) : nullptr;
  }

  /// Calls visit(x, y, n) for each part of result `at`, with contiguous elements; y is null for one input.
  template <class Visit> void for_each_part(std::size_t at, Visit visit) const {
    const std::size_t n = length_of(at);
    for (std::size_t begin = 0; begin < n; begin += part) pass(at, begin, std::min(n - begin, part), visit);
  }
  /// Calls visit(x, y, n) for each part of the only result, on several threads.
  template <class Visit> void for_each_part_of_one(Visit visit) const {
    const std::size_t n = length_of(0), tasks = (n + part - 1) / part;
    for_each_task(thread_count(call.options.threads, n, std::max<std::size_t>(tasks, 1)), tasks,
                  [&](std::size_t k) { pass(0, k * part, std::min(n - k * part, part), visit); });
  }
  /// Calls reduce(at) for each result, on several threads.
  template <class Reduce> void for_each_result(Reduce reduce) const {
    for_each_run([&](std::size_t first, std::size_t count) {
      for (std::size_t at = first; at < first + count; ++at) reduce(at);
    });
  }
  static constexpr std::size_t longest_run = 64;             ///< results
  static constexpr std::size_t part = std::size_t{1} << 16;  ///< elements
  /// Calls reduce(first, count) for runs of results, on several threads: of rows, of columns of one matrix,
  /// or of one segment.
  template <class Reduce> void for_each_run(Reduce reduce) const {
    const Layout& l = call.layout;
    const std::size_t results = l.results();
    const std::size_t elements =
        l.offsets ? static_cast<std::size_t>(l.offsets[l.outer] - l.offsets[0]) : results * l.n;
    // A task holds enough short results to outweigh the cost of taking it from the queue, and whole runs of
    // columns, so that what is read of a row is long, unless threads would have none. It is longer where each
    // thread has several: what is prefetched at its end is then rarely what another thread reads.
    const std::size_t most = std::clamp<std::size_t>(elements >> 14, 1, std::max<std::size_t>(results, 1));
    const auto threads = static_cast<std::size_t>(thread_count(call.options.threads, elements, most));
    const std::size_t wanted = std::clamp(elements >> 17, std::min(4 * threads, most), most),
                      least = (results + wanted - 1) / wanted;
    const std::size_t whole_runs = (least + longest_run - 1) / longest_run * longest_run,
                      per_task =
                          l.stride == 1 ? least : std::min(whole_runs, (results + threads - 1) / threads),
                      tasks = results == 0 ? 0 : (results - 1) / per_task + 1;
    for_each_task(static_cast<int>(std::min(threads, std::max<std::size_t>(tasks, 1))), tasks,
                  [&](std::size_t k) {
                    const std::size_t end = std::min(results, (k + 1) * per_task);
                    for (std::size_t at = k * per_task, count; at < end; at += count) {
                      count = std::min(end - at, longest_run);
                      if (l.offsets) count = 1;
                      if (!are_rows()) count = std::min(count, l.inner - at % l.inner);
                      reduce(at, count);
                    }
                  });
  }

  /// Whether the elements of a result are contiguous.
  bool are_rows() const { return call.layout.offsets || (call.layout.inner == 1 && call.layout.stride == 1); }
  /// Writes the sums of a run of results: see ExactResults. Nothing is known of those of no elements.
  void sum_run(ExactKind kind, std::size_t first, std::size_t count, ExactSums* sums,
               bool nearly = false) const {
    const std::size_t n = length_of(first);
    for (std::size_t k = 0; n == 0 && k < count; ++k) sums[k].error = std::numeric_limits<double>::infinity();
    if (n == 0) return;
    const std::size_t pitch = are_rows() ? call.layout.outer_stride : call.layout.stride;
    sum_exactly(kind, are_rows(), first_of(first), first_of_y(first), count, n, pitch, sums, nearly);
  }

  const Call& call;

 private:
  std::size_t place_of(std::size_t at) const {
    return call.layout.first(at / call.layout.inner) + at % call.layout.inner;
  }
  template <class Visit> void pass(std::size_t at, std::size_t begin, std::size_t n, Visit& visit) const {
    const Layout& l = call.layout;
    const std::size_t place = place_of(at) + begin * l.stride;
    const T *x = static_cast<const T*>(call.x.data) + place,
            *y = call.y.data ? static_cast<const T*>(call.y.data) + place : nullptr;
    if (l.stride == 1) return visit(x, y, n);
    std::vector<T> column_x(n), column_y(y ? n : 0);
    for (std::size_t i = 0; i < n; ++i) column_x[i] = x[i * l.stride];
    for (std::size_t i = 0; y && i < n; ++i) column_y[i] = y[i * l.stride];
    visit(column_x.data(), y ? column_y.data() : nullptr, n);
  }
};

}  // namespace samesum::cpu
