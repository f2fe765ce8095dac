/// Cells: sums whose states lie in an array of Python, where kernels in other languages may add to them.
#include "cells.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "call.hpp"
#include "samesum/base/serial_form.hpp"

namespace samesum::python {
namespace {

template <class T> T* pointer_to(const Memory& memory) { return reinterpret_cast<T*>(memory.address); }

/// Words of 64 bits of a state.
std::size_t words_of(const FormatInfo& format, bool has_grid) {
  return CellArray{nullptr, 0, &format, has_grid ? std::optional{0} : std::nullopt}.with_kind(
      []<class State>(auto, State*) { return sizeof(State) / sizeof(std::uint64_t); });
}

CellArray cells_in(const Memory& words, const FormatInfo& format, std::optional<int> grid) {
  return {pointer_to<void>(words), words.size / words_of(format, grid.has_value()), &format, grid};
}

// --- calls -------------------------------------------------------------------------------------------------

void add_to_cells(const nb::tuple& words, std::string_view format, std::optional<int> grid,
                  const nb::tuple& rows, const nb::tuple& x, std::string_view x_format) {
  const Memory at = memory_of(words), of_rows = memory_of(rows), of_x = memory_of(x);
  const CellArray all = cells_in(at, format_named(format), grid);
  const CellElements elements{&format_named(x_format), pointer_to<void>(of_x),
                              pointer_to<std::int64_t>(of_rows), of_x.size,
                              of_rows.size == 0 ? 1 : of_x.size / of_rows.size};
  const nb::gil_scoped_release released;
  if (at.place.device >= 0)
    return cells_on_gpu(at.place, [&](auto stream) { add_to_cells_on_gpu(all, elements, stream); });
  all.with_kind([&]<class Kind>(Kind kind, typename Kind::State* states) {
    with_format(*elements.format, [&]<class T>() {
      if constexpr (Kind::template holds<T>) {
        const auto* const values = static_cast<const BitsOf<T>*>(elements.x);
        for (std::size_t i = 0; i < elements.size; ++i) {
          if (i % chunk == chunk - 1) check_signals();
          const std::size_t row = i / elements.inner, column = i - row * elements.inner;
          kind.add(states[static_cast<std::size_t>(elements.rows[row]) * elements.inner + column],
                   from_bits<T>(values[i]));
        }
      }
    });
  });
}

void merge_cells(const nb::tuple& words, std::string_view format, std::optional<int> grid,
                 const nb::tuple& other) {
  const Memory at = memory_of(words), of_other = memory_of(other);
  const CellArray all = cells_in(at, format_named(format), grid);
  const nb::gil_scoped_release released;
  if (at.place.device >= 0)
    return cells_on_gpu(at.place,
                        [&](auto stream) { merge_cells_on_gpu(all, pointer_to<void>(of_other), stream); });
  all.with_kind([&]<class State>(auto, State* states) {
    for (std::size_t i = 0; i < all.size; ++i) states[i].atomic_merge(pointer_to<const State>(of_other)[i]);
  });
}

void finish_cells(const nb::tuple& words, std::string_view format, std::optional<int> grid,
                  const nb::tuple& out, std::string_view out_format) {
  const Memory at = memory_of(words), of_out = memory_of(out);
  const CellArray all = cells_in(at, format_named(format), grid);
  const FormatInfo& rounded_to = format_named(out_format);
  const nb::gil_scoped_release released;
  if (at.place.device >= 0)
    return cells_on_gpu(at.place, [&](auto stream) {
      finish_cells_on_gpu(all, rounded_to, pointer_to<void>(of_out), stream);
    });
  all.with_kind([&]<class Kind>(Kind kind, typename Kind::State* states) {
    with_format(rounded_to, [&]<class F>() {
      for (std::size_t i = 0; i < all.size; ++i)
        pointer_to<BitsOf<F>>(of_out)[i] = to_bits(kind.template finish<F>(states[i]));
    });
  });
}

// --- bytes -------------------------------------------------------------------------------------------------

constexpr std::string_view serial_name_of_cells = "cells";

/// Replaces a state by the one that all states of the same elements become.
template <class T> void make_canonical(ExactState<T>& state) {
  propagate_carries(state.digits, state.digit_count);
}
/// An element beyond the room of a cell decides the result; kernels in other languages do not add its units.
void make_canonical(FixedPointState& state) {
  if (state.bits > FixedPointState::free_bits) state = {{}, state.flags, GridTerm::beyond};
}

/// Bytes of a state that have a meaning: all before its padding.
template <class T> constexpr std::size_t bytes_of(const ExactState<T>& state) {
  return sizeof state.digits + sizeof state.flags;
}
constexpr std::size_t bytes_of(const FixedPointState& state) { return sizeof state; }

/// Returns the bytes: the header of serial_form.hpp with the name "cells", the format index, whether there is
/// a grid, the grid, the number of axes and their lengths, the words of the canonical states, and a checksum.
nb::bytes serialise_cells(const nb::tuple& words, std::string_view format, std::optional<int> grid,
                          const std::vector<std::uint64_t>& shape) {
  const Memory at = memory_of(words);
  const CellArray all = cells_in(at, format_named(format), grid);
  SerialWriter out{serial_name_of_cells};
  out.put(static_cast<std::uint8_t>(all.format->index));
  out.put(static_cast<std::uint8_t>(grid.has_value()));
  out.put(static_cast<std::uint32_t>(grid.value_or(0)));
  out.put(static_cast<std::uint8_t>(shape.size()));
  for (const std::uint64_t n : shape) out.put(n);
  all.with_kind([&]<class State>(auto, State* states) {
    for (std::size_t i = 0; i < all.size; ++i) {
      State state = states[i];
      make_canonical(state);
      std::array<std::uint64_t, sizeof(State) / sizeof(std::uint64_t)> word{};
      std::memcpy(word.data(), &state, bytes_of(state));
      for (const std::uint64_t w : word) out.put(w);
    }
  });
  out.put_checksum();
  return nb::bytes{out.bytes().data(), out.bytes().size()};
}

/// Returns the format, the grid, the shape and the words, in bytes, of serialised cells.
nb::tuple deserialise_cells(const nb::bytes& data) {
  SerialReader in{{static_cast<const std::byte*>(data.data()), data.size()}, serial_name_of_cells};
  in.check_checksum();
  const std::size_t format = in.get<std::uint8_t>();
  if (format >= formats.size()) SerialReader::refuse("it has an unknown format");
  const bool has_grid = in.get<std::uint8_t>() != 0;
  const auto grid = static_cast<std::int32_t>(in.get<std::uint32_t>());
  std::vector<std::uint64_t> shape(in.get<std::uint8_t>());
  std::uint64_t size = 1;
  for (std::uint64_t& n : shape) size *= n = in.get<std::uint64_t>();
  const std::span<const std::byte> words =
      in.get_bytes(size, sizeof(std::uint64_t) * words_of(formats[format], has_grid));
  in.finish();
  return nb::make_tuple(formats[format].name, has_grid ? nb::object{nb::int_(grid)} : nb::none(), shape,
                        nb::bytes{words.data(), words.size()});
}

}  // namespace

void bind_cells(nb::module_& m) {
  m.def("cell_words",
        [](std::string_view format, bool has_grid) { return words_of(format_named(format), has_grid); });
  m.def("add_to_cells", &add_to_cells, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
        nb::arg());
  m.def("merge_cells", &merge_cells, nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def("finish_cells", &finish_cells, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
  m.def("serialise_cells", &serialise_cells, nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def("deserialise_cells", &deserialise_cells);
}

}  // namespace samesum::python
