// The C interface from C: a sum with its bound, rows, a line, a state that is split and merged, and an error.
#include <samesum/samesum.h>
#include <stdio.h>
#include <stdlib.h>

/// Ends the program with a message if a call failed.
static void check(samesum_status status, const char* message) {
  if (status == SAMESUM_OK) return;
  fprintf(stderr, "%s: %s\n", samesum_status_name(status), message);
  exit(1);
}

int main(void) {
  char message[200];
  const double x[] = {1e16, 1, 1, -1e16, 0.1, 0.2};
  const samesum_values all = {x, 6, SAMESUM_FP64};

  // A value and a rigorous bound on its error.
  const samesum_method* kahan;
  double value, bound;
  check(samesum_find("tree/kahan", SAMESUM_FP64, &kahan, message, sizeof message), message);
  check(samesum_estimate(kahan, &all, NULL, &value, &bound, NULL, message, sizeof message), message);
  printf("%s %.17g, off by at most %.1g\n", samesum_method_name(kahan), value, bound);

  // The rows of a matrix. What a call does not need keeps its default.
  double sums[2];
  samesum_call call = samesum_call_default();
  check(samesum_find("exact", SAMESUM_FP64, &call.method, message, sizeof message), message);
  call.x = all;
  call.layout = samesum_rows(2, 3, 3);
  call.out.data = sums;
  call.out.size = 2;
  call.out.format = SAMESUM_FP64;
  check(samesum_run(&call, message, sizeof message), message);
  printf("rows %.17g %.17g\n", sums[0], sums[1]);

  // A line through points: slope and intercept are each rounded once.
  const double time[] = {1e9, 1e9 + 1, 1e9 + 2}, height[] = {1, 3, 5};
  double slope, intercept;
  samesum_statistics_call line = samesum_statistics_call_default();
  line.statistic = SAMESUM_STATISTIC_LINEAR_REGRESSION;
  line.x = (samesum_values){time, 3, SAMESUM_FP64};
  line.y = (samesum_values){height, 3, SAMESUM_FP64};
  line.out = (samesum_results){&slope, 1, 0, SAMESUM_FP64};
  line.second = (samesum_results){&intercept, 1, 0, SAMESUM_FP64};
  check(samesum_run_statistics(&line, NULL, message, sizeof message), message);
  printf("line %.17g x %+.17g\n", slope, intercept);

  // The state of an aggregate, in memory of the caller: two threads or machines add, then their states merge.
  samesum_state_options options = samesum_state_options_default();
  options.subtractable = 1;
  samesum_state_kind kind;
  check(samesum_state_kind_find("exact/fp64", SAMESUM_NONE, &options, &kind, message, sizeof message),
        message);
  const size_t bytes = samesum_state_bytes(&kind);
  samesum_state *left, *right;
  check(samesum_state_init(&kind, malloc(bytes), bytes, &left, message, sizeof message), message);
  check(samesum_state_init(&kind, malloc(bytes), bytes, &right, message, sizeof message), message);
  const samesum_values first = {x, 2, SAMESUM_FP64}, others = {x + 2, 4, SAMESUM_FP64};
  check(samesum_state_add(left, &first, message, sizeof message), message);
  check(samesum_state_add(right, &others, message, sizeof message), message);
  check(samesum_state_merge(right, left, message, sizeof message), message);
  check(samesum_state_finish(right, SAMESUM_FP64, &value, message, sizeof message), message);
  printf("merged %.17g\n", value);

  // Without 1e16, as if it had never been added: a window that slides, say.
  samesum_state_subtract_fp64(right, 1e16);
  samesum_state_add_fp64(right, 1e16 + 2);
  check(samesum_state_finish(right, SAMESUM_FP64, &value, message, sizeof message), message);
  printf("changed %.17g\n", value);
  free(left);
  free(right);

  // An error is a code and a message.
  const samesum_method* none;
  const samesum_status status = samesum_find("tree/khan", SAMESUM_FP64, &none, message, sizeof message);
  printf("%s: %s\n", samesum_status_name(status), message);
}
