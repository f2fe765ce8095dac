/// Functions on aggregate states of the C interface.
#include <array>
#include <new>
#include <type_traits>

#include "samesum/call/validation.hpp"
#include "samesum/interface/c_state.hpp"
#include "samesum/interface/c_support.hpp"

namespace samesum::c {
namespace {

constexpr std::size_t alignment = 8;
constexpr std::uint64_t kind_mark = 0x646e694b6d757353;  // of a kind that was found

template <class State>
inline constexpr bool is_flat = std::is_trivially_copyable_v<State>&& std::is_standard_layout_v<State> &&
                                alignof(State) == alignment&& offsetof(State, header) == 0;
static_assert(is_flat<ExactSum> && is_flat<SubtractableSum> && is_flat<GridState>);

bool is_valid(const StateHeader& header) {
  return header.mark == StateHeader::valid && header.form >= Form::exact &&
         header.form <= Form::fixed_point && header.format < formats.size();
}

/// Reads the header of a kind. Returns false if it is none that was found.
bool read_kind(const samesum_state_kind* kind, StateHeader& header) {
  if (kind == nullptr || kind->opaque[1] != kind_mark) return false;
  std::memcpy(&header, &kind->opaque[0], sizeof header);
  return is_valid(header);
}
StateHeader header_of(const samesum_state_kind* kind) {
  StateHeader header;
  if (!read_kind(kind, header)) refuse("kind is no kind of state; pass one from samesum_state_kind_find");
  return header;
}

/// Whether memory holds a state.
bool is_state(const void* memory) {
  if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) return false;
  StateHeader header;
  std::memcpy(&header, memory, sizeof header);
  return is_valid(header);
}
template <class State> void check_state(const State* state, const char* name) {
  if (!is_state(state))
    refuse(std::string{name} + " is no state; pass memory from samesum_state_init, or a copy of it");
}

/// Calls visit(state) with the type of the state, or of the kind.
template <class Visit> decltype(auto) with_form(Form form, const Visit& visit) {
  if (form == Form::exact) return visit(std::type_identity<ExactSum>{});
  if (form == Form::subtractable) return visit(std::type_identity<SubtractableSum>{});
  return visit(std::type_identity<GridState>{});
}
const StateHeader& header_of(const samesum_state* state) {
  return *reinterpret_cast<const StateHeader*>(state);
}
template <class Visit> decltype(auto) with_state(samesum_state* state, const Visit& visit) {
  return with_form(header_of(state).form, [&]<class State>(std::type_identity<State>) -> decltype(auto) {
    return visit(*reinterpret_cast<State*>(state));
  });
}
template <class Visit> decltype(auto) with_state(const samesum_state* state, const Visit& visit) {
  return with_form(header_of(state).form, [&]<class State>(std::type_identity<State>) -> decltype(auto) {
    return visit(*reinterpret_cast<const State*>(state));
  });
}

std::size_t bytes_of(Form form) {
  return with_form(form, []<class State>(std::type_identity<State>) { return sizeof(State); });
}

/// Checks memory for a state.
void check_memory(const StateHeader& kind, const void* memory, std::size_t bytes) {
  given(static_cast<const char*>(memory), "memory");
  if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0)
    refuse("memory is not aligned to " + std::to_string(alignment) + " bytes; see samesum_state_alignment");
  if (bytes < bytes_of(kind.form))
    refuse("memory has " + std::to_string(bytes) + " bytes; a state of this kind needs " +
           std::to_string(bytes_of(kind.form)));
}

void give(void* memory, samesum_state** state) {
  if (state) *state = static_cast<samesum_state*>(memory);
}

/// The kind of states for a method.
StateHeader kind_of(const Method& m, const samesum_state_options* pointer) {
  samesum_state_options options{};
  if (pointer != nullptr) options = sized(pointer, "options", "samesum_state_options");
  const bool is_exact = m.accumulator == Exact::name,
             subtractable = flag_of(options.subtractable, "subtractable");
  if (m.operation != "sum" || (!is_exact && !m.takes_grid))
    samesum::refuse(m, "there are states for sums by exact and by fixed_point alone; use a partial");
  if (subtractable && !is_exact) samesum::refuse(m, "subtractable is only for exact; leave it out");
  Options given;
  if (flag_of(options.has_grid, "has_grid")) given.grid = options.grid;
  std::string wrong = validation_error(m, given);
  if (wrong.empty() && !is_exact && !given.grid) wrong = "a state needs a grid, which all share; pass one";
  if (!wrong.empty()) samesum::refuse(m, wrong);
  return {StateHeader::valid, static_cast<std::int16_t>(given.grid.value_or(0)),
          subtractable ? Form::subtractable
          : is_exact   ? Form::exact
                       : Form::fixed_point,
          static_cast<std::uint8_t>(m.format->index)};
}

/// Checks that two states have one kind. The format of exact states is only that of their results.
void check_same_kind(const samesum_state* state, const samesum_state* other) {
  check_state(state, "state");
  check_state(other, "other");
  StateHeader a = header_of(state), b = header_of(other);
  if (a.form != Form::fixed_point) a.format = b.format;
  if (a != b) refuse("the states differ in their kind; merge states of one kind, format and grid");
}

/// The elements of an argument.
Values elements_of(const samesum_values* x) {
  const Values values = values_of(given(x, "x"), "x");
  check("x", values);
  return values;
}

/// Calls `visit` with a subtractable state.
template <class Visit> void with_subtractable(samesum_state* state, const Visit& visit) {
  check_state(state, "state");
  if (header_of(state).form != Form::subtractable)
    refuse("the state is not subtractable; set samesum_state_options.subtractable for its kind");
  visit(*reinterpret_cast<SubtractableSum*>(state));
}

template <class T> samesum_status add_one(samesum_state* state, T x) noexcept {
  if (!is_state(state)) return SAMESUM_INVALID_ARGUMENT;
  try {
    with_state(state, [x](auto& s) { s.add_one(x); });
    return SAMESUM_OK;
  } catch (const std::length_error&) {
    return SAMESUM_TOO_MANY_ELEMENTS;
  }
}
template <class T> samesum_status subtract_one(samesum_state* state, T x) noexcept {
  if (!is_state(state) || header_of(state).form != Form::subtractable) return SAMESUM_INVALID_ARGUMENT;
  reinterpret_cast<SubtractableSum*>(state)->subtract_one(x);
  return SAMESUM_OK;
}

void finish(const samesum_state* state, std::uint64_t divisor, samesum_format format, void* out) {
  check_state(state, "state");
  const FormatInfo& to = format_of(format, "format");
  given(static_cast<char*>(out), "out");
  try {
    write_number(with_state(state, [&](const auto& s) { return s.result(to, divisor); }), out);
  } catch (const std::overflow_error&) {
    write_number({&to, to.canonical_nan}, out);
    throw;
  }
}

}  // namespace

// --- kinds -------------------------------------------------------------------------------------------------

SAMESUM_API samesum_status samesum_state_kind_find(const char* name, samesum_format format,
                                                   const samesum_state_options* options,
                                                   samesum_state_kind* kind, char* message,
                                                   size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const std::string_view text{&given(name, "name")};
    samesum_state_kind& out = given(kind, "kind");
    const std::string_view input = format == SAMESUM_NONE ? "" : format_of(format, "format").name;
    const StateHeader header = kind_of(find(text, {.format = input}), options);
    static_assert(sizeof header == sizeof out.opaque[0]);
    std::memcpy(&out.opaque[0], &header, sizeof header);
    out.opaque[1] = kind_mark;
  });
}

SAMESUM_API size_t samesum_state_bytes(const samesum_state_kind* kind) {
  StateHeader header;
  return read_kind(kind, header) ? bytes_of(header.form) : 0;
}
SAMESUM_API size_t samesum_state_alignment(const samesum_state_kind* kind) {
  StateHeader header;
  return read_kind(kind, header) ? alignment : 0;
}
SAMESUM_API size_t samesum_state_serialised_bytes(const samesum_state_kind* kind) {
  StateHeader header;
  return read_kind(kind, header) ? serialised_bytes(header) : 0;
}

// --- states ------------------------------------------------------------------------------------------------

SAMESUM_API samesum_status samesum_state_init(const samesum_state_kind* kind, void* memory, size_t bytes,
                                              samesum_state** state, char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const StateHeader header = header_of(kind);
    check_memory(header, memory, bytes);
    with_form(header.form,
              [&]<class State>(std::type_identity<State>) { new (memory) State{.header = header}; });
    give(memory, state);
  });
}

SAMESUM_API samesum_status samesum_state_copy(const samesum_state* state, void* memory, size_t bytes,
                                              samesum_state** copy, char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check_state(state, "state");
    check_memory(header_of(state), memory, bytes);
    std::memmove(memory, state, bytes_of(header_of(state).form));
    give(memory, copy);
  });
}

SAMESUM_API void samesum_state_destroy(samesum_state* state) {
  if (is_state(state)) reinterpret_cast<StateHeader*>(state)->mark = 0;
}

SAMESUM_API int samesum_state_is_empty(const samesum_state* state) {
  return !is_state(state) || with_state(state, [](const auto& s) { return s.is_empty(); });
}

SAMESUM_API samesum_status samesum_state_add(samesum_state* state, const samesum_values* x, char* message,
                                             size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check_state(state, "state");
    const Values values = elements_of(x);
    with_state(state, [&](auto& s) { s.add(values); });
  });
}
SAMESUM_API samesum_status samesum_state_add_fp32(samesum_state* state, float x) { return add_one(state, x); }
SAMESUM_API samesum_status samesum_state_add_fp64(samesum_state* state, double x) {
  return add_one(state, x);
}

SAMESUM_API samesum_status samesum_state_merge(samesum_state* state, const samesum_state* other,
                                               char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check_same_kind(state, other);
    with_state(state, [&]<class State>(State& s) { s.merge(*reinterpret_cast<const State*>(other)); });
  });
}

SAMESUM_API samesum_status samesum_state_subtract(samesum_state* state, const samesum_values* x,
                                                  char* message, size_t message_bytes) {
  return guarded(message, message_bytes,
                 [&] { with_subtractable(state, [&](SubtractableSum& s) { s.subtract(elements_of(x)); }); });
}
SAMESUM_API samesum_status samesum_state_subtract_fp32(samesum_state* state, float x) {
  return subtract_one(state, x);
}
SAMESUM_API samesum_status samesum_state_subtract_fp64(samesum_state* state, double x) {
  return subtract_one(state, x);
}

SAMESUM_API samesum_status samesum_state_unmerge(samesum_state* state, const samesum_state* other,
                                                 char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    with_subtractable(state, [&](SubtractableSum& s) {
      check_same_kind(state, other);
      s.unmerge(*reinterpret_cast<const SubtractableSum*>(other));
    });
  });
}

SAMESUM_API samesum_status samesum_state_finish(const samesum_state* state, samesum_format format, void* out,
                                                char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] { finish(state, 1, format, out); });
}

SAMESUM_API samesum_status samesum_state_finish_mean(const samesum_state* state, uint64_t n,
                                                     samesum_format format, void* out, char* message,
                                                     size_t message_bytes) {
  return guarded(message, message_bytes, [&] { finish(state, n, format, out); });
}

// --- bytes -------------------------------------------------------------------------------------------------

SAMESUM_API samesum_status samesum_state_serialise(const samesum_state* state, void* bytes, size_t capacity,
                                                   size_t* size, char* message, size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check_state(state, "state");
    std::size_t& needed = given(size, "size");
    const std::vector<std::byte> all = with_state(state, [](const auto& s) { return s.serialise(); });
    needed = all.size();
    copy_bytes(all, bytes, capacity);
  });
}

SAMESUM_API samesum_status samesum_state_deserialise(const samesum_state_kind* kind, const void* bytes,
                                                     size_t size, void* memory, size_t memory_bytes,
                                                     samesum_state** state, char* message,
                                                     size_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    const StateHeader header = header_of(kind);
    const auto* first = &given(static_cast<const std::byte*>(bytes), "bytes");
    check_memory(header, memory, memory_bytes);
    with_form(header.form, [&]<class State>(std::type_identity<State>) {
      State read{.header = header};
      read.deserialise(std::span{first, size});
      new (memory) State{read};
    });
    give(memory, state);
  });
}

}  // namespace samesum::c
