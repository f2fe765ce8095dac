/// Functions on the aggregate states of the C interface that grow.
#include <algorithm>
#include <new>
#include <type_traits>

#include "samesum/call/validation.hpp"
#include "samesum/interface/c_support.hpp"
#include "samesum/operation/aggregates.hpp"

namespace samesum::c {
namespace {

static_assert(static_cast<int>(AggregateResult::sum) == SAMESUM_RESULT_SUM &&
              static_cast<int>(AggregateResult::mean) == SAMESUM_RESULT_MEAN &&
              static_cast<int>(AggregateResult::variance) == SAMESUM_RESULT_VARIANCE &&
              static_cast<int>(AggregateResult::sum_of_y) == SAMESUM_RESULT_SUM_OF_Y &&
              static_cast<int>(AggregateResult::mean_of_y) == SAMESUM_RESULT_MEAN_OF_Y &&
              static_cast<int>(AggregateResult::variance_of_y) == SAMESUM_RESULT_VARIANCE_OF_Y &&
              static_cast<int>(AggregateResult::covariance) == SAMESUM_RESULT_COVARIANCE &&
              static_cast<int>(AggregateResult::correlation) == SAMESUM_RESULT_CORRELATION &&
              static_cast<int>(AggregateResult::slope) == SAMESUM_RESULT_SLOPE &&
              static_cast<int>(AggregateResult::intercept) == SAMESUM_RESULT_INTERCEPT);

/// Calls visit(std::type_identity<State>) with the type of a kind. Returns false if there is no such kind.
template <class Visit>
[[gnu::always_inline]] inline bool with_kind(samesum_aggregate_kind kind, const Visit& visit) {
  switch (kind) {
    case SAMESUM_AGGREGATE_SUM:
      visit(std::type_identity<AggregateSum>{});
      return true;
    case SAMESUM_AGGREGATE_PRODUCTS:
      visit(std::type_identity<AggregateProducts>{});
      return true;
    case SAMESUM_AGGREGATE_MOMENTS:
      visit(std::type_identity<AggregateMoments>{});
      return true;
    case SAMESUM_AGGREGATE_COMOMENTS:
      visit(std::type_identity<AggregateComoments>{});
      return true;
    default:
      return false;
  }
}
/// As with_kind, for functions with messages: an unknown kind is an error.
template <class Visit> void with_given_kind(samesum_aggregate_kind kind, const Visit& visit) {
  if (!with_kind(kind, visit))
    refuse("kind is " + std::to_string(kind) +
           "; pass one of SAMESUM_AGGREGATE_SUM, _PRODUCTS, _MOMENTS, "
           "_COMOMENTS");
}

void check_memory(const void* memory, const char* name) {
  given(static_cast<const char*>(memory), name);
  if (reinterpret_cast<std::uintptr_t>(memory) % alignof(AggregateSum) != 0)
    refuse(std::string{name} + " is not aligned to 8 bytes; pass memory that is");
}
template <class State> State& state_of(samesum_aggregate* state, const char* name) {
  check_memory(state, name);
  return *reinterpret_cast<State*>(state);
}
template <class State> const State& state_of(const samesum_aggregate* state, const char* name) {
  check_memory(state, name);
  return *reinterpret_cast<const State*>(state);
}

StateAllocator allocator_of(const samesum_allocator* memory) {
  if (memory == nullptr) return heap_allocator;
  return {memory->allocate, memory->release, memory->context};
}

void check(StateStatus status) {
  if (status == StateStatus::out_of_memory) throw std::bad_alloc{};
  if (status == StateStatus::too_many)
    throw std::length_error("samesum: a state holds fewer than 2^62 elements; add no more");
}
samesum_status code_of(StateStatus status) {
  return status == StateStatus::ok              ? SAMESUM_OK
         : status == StateStatus::out_of_memory ? SAMESUM_OUT_OF_MEMORY
                                                : SAMESUM_TOO_MANY_ELEMENTS;
}

/// Elements of a format, or integers.
template <class T> std::span<const T> elements_of(const samesum_values& v) {
  return {static_cast<const T*>(v.data), v.size};
}
/// Checks the elements of an argument.
void check_elements(const samesum_values& v, const char* name) {
  if (v.format != SAMESUM_INT64) return samesum::check(name, values_of(v, name));
  if ((v.data == nullptr && v.size > 0) ||
      reinterpret_cast<std::uintptr_t>(v.data) % sizeof(std::int64_t) != 0)
    refuse(std::string{name} + ".data is NULL, or not aligned to 8 bytes; pass the address of the integers");
}
/// Returns x and y after checks. Without pairs, y is empty.
template <class State>
std::pair<samesum_values, samesum_values> inputs_of(const samesum_values* x, const samesum_values* y) {
  std::pair<samesum_values, samesum_values> all{given(x, "x"), {}};
  check_elements(all.first, "x");
  if constexpr (State::has_pairs) {
    all.second = given(y, "y");
    check_elements(all.second, "y");
    if (all.first.size != all.second.size || all.first.format != all.second.format)
      refuse("x and y differ in size or format; pass pairs of one format");
  }
  return all;
}

/// Adds all elements to one state, or subtracts them.
template <class State>
StateStatus take_all(State& state, const samesum_values& x, const samesum_values& y, int sign,
                     const StateAllocator& memory) {
  const auto take = [&](const auto& a, const auto& b) {
    return sign > 0 ? state.add(a, b, memory) : state.subtract(a, b, memory);
  };
  if (x.format == SAMESUM_INT64) return take(elements_of<std::int64_t>(x), elements_of<std::int64_t>(y));
  return take(values_of(x, "x"), values_of(y, "y"));
}
void take_all(samesum_aggregate_kind kind, samesum_aggregate* state, const samesum_values* x,
              const samesum_values* y, int sign, const samesum_allocator* memory) {
  with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
    const auto [first, second] = inputs_of<State>(x, y);
    check(take_all(state_of<State>(state, "state"), first, second, sign, allocator_of(memory)));
  });
}

template <int sign, class T>
samesum_status take_one(samesum_aggregate_kind kind, samesum_aggregate* state, T x, T y,
                        const samesum_allocator* memory) noexcept {
  StateStatus status = StateStatus::ok;
  const bool is_known = state != nullptr && with_kind(kind, [&]<class State>(std::type_identity<State>) {
                          State& s = *reinterpret_cast<State*>(state);
                          status = s.template update_from<sign>(&x, &y, 0, allocator_of(memory));
                        });
  return is_known ? code_of(status) : SAMESUM_INVALID_ARGUMENT;
}

void merge(samesum_aggregate_kind kind, samesum_aggregate* state, const samesum_aggregate* other, int sign,
           const samesum_allocator* memory) {
  with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
    State& s = state_of<State>(state, "state");
    const State& o = state_of<State>(other, "other");
    check(sign > 0 ? s.merge(o, allocator_of(memory)) : s.unmerge(o, allocator_of(memory)));
  });
}

}  // namespace

SAMESUM_API size_t samesum_aggregate_bytes(samesum_aggregate_kind kind) {
  std::size_t bytes = 0;
  with_kind(kind, [&]<class State>(std::type_identity<State>) { bytes = sizeof(State); });
  return bytes;
}
SAMESUM_API size_t samesum_aggregate_serialised_bytes(samesum_aggregate_kind kind) {
  std::size_t bytes = 0;
  with_kind(kind, [&]<class State>(std::type_identity<State>) { bytes = State::most_serialised_bytes(); });
  return bytes;
}

SAMESUM_API void samesum_aggregate_destroy(samesum_aggregate_kind kind, samesum_aggregate* state,
                                           const samesum_allocator* memory) {
  if (state != nullptr)
    with_kind(kind, [&]<class State>(std::type_identity<State>) {
      reinterpret_cast<State*>(state)->destroy(allocator_of(memory));
    });
}
SAMESUM_API samesum_status samesum_aggregate_copy(samesum_aggregate_kind kind, const samesum_aggregate* state,
                                                  samesum_aggregate* copy, const samesum_allocator* memory,
                                                  char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
      const State& from = state_of<State>(state, "state");
      check(from.copy_to(state_of<State>(copy, "copy"), allocator_of(memory)));
    });
  });
}
SAMESUM_API int64_t samesum_aggregate_size(samesum_aggregate_kind kind, const samesum_aggregate* state) {
  std::int64_t size = 0;
  if (state != nullptr)
    with_kind(kind, [&]<class State>(std::type_identity<State>) {
      size = reinterpret_cast<const State*>(state)->size();
    });
  return size;
}

SAMESUM_API samesum_status samesum_aggregate_add(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                 const samesum_values* x, const samesum_values* y,
                                                 const samesum_allocator* memory, char* message,
                                                 size_t message_bytes) {
  return guarded(message, message_bytes, [&] { take_all(kind, state, x, y, 1, memory); });
}
SAMESUM_API samesum_status samesum_aggregate_subtract(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                      const samesum_values* x, const samesum_values* y,
                                                      const samesum_allocator* memory, char* message,
                                                      size_t message_bytes) {
  return guarded(message, message_bytes, [&] { take_all(kind, state, x, y, -1, memory); });
}
SAMESUM_API samesum_status samesum_aggregate_add_each(samesum_aggregate_kind kind,
                                                      samesum_aggregate* const* states,
                                                      const samesum_values* x, const samesum_values* y,
                                                      const samesum_allocator* memory, size_t* done,
                                                      char* message, size_t message_bytes) {
  std::size_t count = 0;
  const samesum_status code = guarded(message, message_bytes, [&] {
    with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
      const auto [first, second] = inputs_of<State>(x, y);
      if (first.size > 0) given(states, "states");
      const StateAllocator allocator = allocator_of(memory);
      StateStatus status = StateStatus::ok;
      const auto add = [&, &first = first, &second = second]<class T>() {
        status = State::template add_each<T>({reinterpret_cast<State* const*>(states), first.size},
                                             elements_of<T>(first), elements_of<T>(second), count, allocator);
      };
      if (first.format == SAMESUM_INT64)
        add.template operator()<std::int64_t>();
      else
        with_format(format_of(first.format, "x.format"), add);
      check(status);
    });
  });
  if (done != nullptr) *done = count;
  return code;
}

SAMESUM_API samesum_status samesum_aggregate_add_fp64(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                      double x, double y, const samesum_allocator* memory) {
  return take_one<1>(kind, state, x, y, memory);
}
SAMESUM_API samesum_status samesum_aggregate_subtract_fp64(samesum_aggregate_kind kind,
                                                           samesum_aggregate* state, double x, double y,
                                                           const samesum_allocator* memory) {
  return take_one<-1>(kind, state, x, y, memory);
}
SAMESUM_API samesum_status samesum_aggregate_add_int64(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                       int64_t x, int64_t y,
                                                       const samesum_allocator* memory) {
  return take_one<1>(kind, state, std::int64_t{x}, std::int64_t{y}, memory);
}
SAMESUM_API samesum_status samesum_aggregate_subtract_int64(samesum_aggregate_kind kind,
                                                            samesum_aggregate* state, int64_t x, int64_t y,
                                                            const samesum_allocator* memory) {
  return take_one<-1>(kind, state, std::int64_t{x}, std::int64_t{y}, memory);
}

SAMESUM_API samesum_status samesum_aggregate_merge(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                   const samesum_aggregate* other,
                                                   const samesum_allocator* memory, char* message,
                                                   size_t message_bytes) {
  return guarded(message, message_bytes, [&] { merge(kind, state, other, 1, memory); });
}
SAMESUM_API samesum_status samesum_aggregate_unmerge(samesum_aggregate_kind kind, samesum_aggregate* state,
                                                     const samesum_aggregate* other,
                                                     const samesum_allocator* memory, char* message,
                                                     size_t message_bytes) {
  return guarded(message, message_bytes, [&] { merge(kind, state, other, -1, memory); });
}

SAMESUM_API samesum_status samesum_aggregate_finish(samesum_aggregate_kind kind,
                                                    const samesum_aggregate* state,
                                                    samesum_aggregate_result which, uint64_t ddof,
                                                    samesum_format format, void* out, char* message,
                                                    size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
      const FormatInfo& to = format_of(format, "format");
      if (which < SAMESUM_RESULT_SUM || which > SAMESUM_RESULT_INTERCEPT)
        refuse("which is " + std::to_string(which) +
               "; use one of SAMESUM_RESULT_SUM to SAMESUM_RESULT_INTERCEPT");
      given(static_cast<char*>(out), "out");
      write_number(state_of<State>(state, "state").result(static_cast<AggregateResult>(which), to, ddof),
                   out);
    });
  });
}

SAMESUM_API samesum_status samesum_aggregate_serialise(samesum_aggregate_kind kind,
                                                       const samesum_aggregate* state, void* bytes,
                                                       size_t capacity, size_t* size, char* message,
                                                       size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
      std::size_t& needed = given(size, "size");
      const std::vector<std::byte> all = state_of<State>(state, "state").serialise();
      needed = all.size();
      copy_bytes(all, bytes, capacity);
    });
  });
}
SAMESUM_API samesum_status samesum_aggregate_deserialise(samesum_aggregate_kind kind, const void* bytes,
                                                         size_t size, samesum_aggregate* state,
                                                         const samesum_allocator* memory, char* message,
                                                         size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    with_given_kind(kind, [&]<class State>(std::type_identity<State>) {
      const auto* first = &given(static_cast<const std::byte*>(bytes), "bytes");
      check(
          State::deserialise(std::span{first, size}, state_of<State>(state, "state"), allocator_of(memory)));
    });
  });
}

}  // namespace samesum::c
