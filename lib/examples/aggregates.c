// States of aggregate functions from C: GROUP BY with a sum of 32 bytes per group, partial results that are
// merged as bytes, a window that slides, and a correlation.
#include <samesum/samesum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Ends the program with a message if a call failed.
static void check(samesum_status status, const char* message) {
  if (status == SAMESUM_OK) return;
  fprintf(stderr, "%s: %s\n", samesum_status_name(status), message);
  exit(1);
}

/// A pool that counts what states take from it: the memory of a query, say.
typedef struct pool {
  size_t bytes;
} pool;
static void* take(void* context, size_t bytes) {
  ((pool*)context)->bytes += bytes;
  return malloc(bytes);
}
static void give_back(void* context, void* memory, size_t bytes) {
  ((pool*)context)->bytes -= bytes;
  free(memory);
}

/// A state of a sum. All bytes 0 is the state of no elements.
typedef struct sum {
  uint64_t bytes[4];
} sum;
static samesum_aggregate* state_of(sum* s) { return (samesum_aggregate*)s; }

static double result_of(samesum_aggregate_kind kind, const void* state, samesum_aggregate_result which) {
  char message[200];
  double value;
  check(samesum_aggregate_finish(kind, state, which, 1, SAMESUM_FP64, &value, message, sizeof message),
        message);
  return value;
}

int main(void) {
  enum { groups = 3, rows = 12 };
  char message[200];
  pool of_query = {0};
  const samesum_allocator memory = {take, give_back, &of_query};

  // SELECT sum(x) GROUP BY key: a chunk of rows, each with the state of its group.
  const double x[rows] = {0.1, 1e300, 1, -1e16, 1, 2, 0.3, 2, 3, 1e16, 0.4, 4};
  sum state[groups];
  memset(state, 0, sizeof state);
  samesum_aggregate* of_row[rows];
  for (int row = 0; row < rows; ++row) of_row[row] = state_of(&state[row % groups]);
  const samesum_values column = {x, rows, SAMESUM_FP64};
  check(samesum_aggregate_add_each(SAMESUM_AGGREGATE_SUM, of_row, &column, NULL, &memory, NULL, message,
                                   sizeof message),
        message);
  for (int group = 0; group < groups; ++group)
    printf("group %d: %lld rows, sum %.17g\n", group,
           (long long)samesum_aggregate_size(SAMESUM_AGGREGATE_SUM, state_of(&state[group])),
           result_of(SAMESUM_AGGREGATE_SUM, &state[group], SAMESUM_RESULT_SUM));
  printf("%zu bytes a group, and %zu for the one whose numbers are far apart\n", sizeof(sum), of_query.bytes);

  // The partial result of another worker arrives as bytes.
  unsigned char bytes[400];
  size_t size;
  sum received;
  check(samesum_aggregate_serialise(SAMESUM_AGGREGATE_SUM, state_of(&state[2]), bytes, sizeof bytes, &size,
                                    message, sizeof message),
        message);
  check(samesum_aggregate_deserialise(SAMESUM_AGGREGATE_SUM, bytes, size, state_of(&received), &memory,
                                      message, sizeof message),
        message);
  check(samesum_aggregate_merge(SAMESUM_AGGREGATE_SUM, state_of(&state[0]), state_of(&received), &memory,
                                message, sizeof message),
        message);
  printf("groups 0 and 2: %.17g\n", result_of(SAMESUM_AGGREGATE_SUM, &state[0], SAMESUM_RESULT_SUM));

  // A window of two rows slides: what leaves it is subtracted, as if it had never been added.
  sum window;
  memset(&window, 0, sizeof window);
  for (int row = 0; row < rows; ++row) {
    if (row >= 2)
      samesum_aggregate_subtract_fp64(SAMESUM_AGGREGATE_SUM, state_of(&window), x[row - 2], 0, &memory);
    samesum_aggregate_add_fp64(SAMESUM_AGGREGATE_SUM, state_of(&window), x[row], 0, &memory);
  }
  printf("last window: %.17g\n", result_of(SAMESUM_AGGREGATE_SUM, &window, SAMESUM_RESULT_SUM));

  // Two variables. The integers that doubles do not hold are exact, too.
  uint64_t pairs[184 / 8];
  memset(pairs, 0, sizeof pairs);
  for (int64_t i = 0; i < 4; ++i)
    samesum_aggregate_add_int64(SAMESUM_AGGREGATE_COMOMENTS, (samesum_aggregate*)pairs,
                                INT64_C(9007199254740993) + i, 3 * i, &memory);
  printf("slope %g, correlation %g\n", result_of(SAMESUM_AGGREGATE_COMOMENTS, pairs, SAMESUM_RESULT_SLOPE),
         result_of(SAMESUM_AGGREGATE_COMOMENTS, pairs, SAMESUM_RESULT_CORRELATION));

  for (int group = 0; group < groups; ++group)
    samesum_aggregate_destroy(SAMESUM_AGGREGATE_SUM, state_of(&state[group]), &memory);
  samesum_aggregate_destroy(SAMESUM_AGGREGATE_SUM, state_of(&received), &memory);
  samesum_aggregate_destroy(SAMESUM_AGGREGATE_SUM, state_of(&window), &memory);
  samesum_aggregate_destroy(SAMESUM_AGGREGATE_COMOMENTS, (samesum_aggregate*)pairs, &memory);
  printf("%zu bytes are left\n", of_query.bytes);
}
