/// Codes, messages and conversions of the C interface.
#include "samesum/interface/c_support.hpp"

#include <algorithm>
#include <functional>
#include <new>

namespace samesum::c {
namespace {

static_assert(formats.size() == 4 && format_info<fp16>().index == SAMESUM_FP16 - 1 &&
              format_info<bf16>().index == SAMESUM_BF16 - 1 &&
              format_info<fp32>().index == SAMESUM_FP32 - 1 && format_info<fp64>().index == SAMESUM_FP64 - 1);
static_assert(SAMESUM_PROMISE_NONE == static_cast<int>(Promise::none) &&
              SAMESUM_PROMISE_RUN_TO_RUN == static_cast<int>(Promise::run_to_run) &&
              SAMESUM_PROMISE_EVERYWHERE == static_cast<int>(Promise::everywhere) &&
              SAMESUM_PROMISE_ORDER_FREE == static_cast<int>(Promise::order_free));

KeyFormat key_format_of(samesum_key_format format) {
  switch (format) {
    case SAMESUM_NO_KEYS:
      return KeyFormat::none;
    case SAMESUM_KEYS_INT32:
      return KeyFormat::int32;
    case SAMESUM_KEYS_UINT32:
      return KeyFormat::uint32;
    case SAMESUM_KEYS_INT64:
      return KeyFormat::int64;
    default:
      refuse("keys.format is " + std::to_string(format) +
             "; use one of SAMESUM_NO_KEYS, SAMESUM_KEYS_INT32, SAMESUM_KEYS_UINT32, SAMESUM_KEYS_INT64");
  }
}

Keys keys_of(const samesum_keys& keys) {
  if (keys.format == SAMESUM_NO_KEYS && (keys.data != nullptr || keys.size != 0))
    refuse("keys have no format; set keys.format, or leave out the keys");
  return {key_format_of(keys.format), keys.data, keys.size};
}

}  // namespace

void refuse(const std::string& why) { throw std::invalid_argument("samesum: " + why); }

void write_message(std::string_view text, char* message, std::size_t bytes) noexcept {
  if (message == nullptr || bytes == 0) return;
  std::size_t size = std::min(text.size(), bytes - 1);
  // A character of UTF-8 that is cut would end in bytes that are no text.
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  std::copy_n(text.data(), size, message);
  message[size] = '\0';
}

samesum_status status_of_exception(char* message, std::size_t bytes) noexcept {
  const auto status = [&](samesum_status code, const char* text) {
    write_message(text, message, bytes);
    return code;
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return status(SAMESUM_OUT_OF_MEMORY, "samesum: memory is exhausted");
  } catch (const std::invalid_argument& error) {
    return status(SAMESUM_INVALID_ARGUMENT, error.what());
  } catch (const std::overflow_error& error) {
    return status(SAMESUM_OVERFLOW, error.what());
  } catch (const std::length_error& error) {
    return status(SAMESUM_TOO_MANY_ELEMENTS, error.what());
  } catch (const Unavailable& error) {
    return status(SAMESUM_UNAVAILABLE, error.what());
  } catch (const std::exception& error) {
    return status(is_gpu_error(error) ? SAMESUM_GPU_ERROR : SAMESUM_INTERNAL_ERROR, error.what());
  } catch (...) {
    return status(SAMESUM_INTERNAL_ERROR, "samesum: an unknown exception");
  }
}

const FormatInfo& format_of(samesum_format format, const char* name, const char* field) {
  if (format < SAMESUM_FP16 || format > SAMESUM_FP64)
    refuse(std::string{name} + field + " is " + std::to_string(format) +
           "; use one of SAMESUM_FP16, SAMESUM_BF16, SAMESUM_FP32, SAMESUM_FP64");
  return formats[static_cast<std::size_t>(format - SAMESUM_FP16)];
}

const FormatInfo* result_format_of(samesum_format format, const char* name) {
  return format == SAMESUM_INT64 ? nullptr : &format_of(format, name);
}

samesum_format to_c(const FormatInfo* format) {
  return format == nullptr ? SAMESUM_INT64 : static_cast<samesum_format>(format->index) + SAMESUM_FP16;
}

bool flag_of(std::int32_t flag, const char* name) {
  if (flag != 0 && flag != 1) refuse(std::string{name} + " is " + std::to_string(flag) + "; pass 0 or 1");
  return flag == 1;
}

Values values_of(const samesum_values& values, const char* name) {
  if (values.format == SAMESUM_NONE) {
    if (values.data != nullptr || values.size != 0)
      refuse(std::string{name} + " has no format; set " + name + ".format, or leave out " + name);
    return {};
  }
  return {format_of(values.format, name, ".format"), values.data, values.size};
}

Values values_of(const samesum_values* values, const char* name) {
  return values == nullptr ? Values{} : values_of(*values, name);
}

Results results_of(const samesum_results& results, const char* name) {
  return {result_format_of(results.format, (std::string{name} + ".format").c_str()), results.data,
          results.size, results.row_stride};
}

void read_sized(const void* from, void* to, std::size_t bytes, std::size_t least, const char* name,
                const char* type) {
  constexpr std::size_t most = 4096;  // another number than a size, such as an address, is larger
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < least || size > most || size % alignof(std::uint64_t) != 0)
    refuse(std::string{name} + ".struct_size is " + std::to_string(size) + "; set it to sizeof(" + type +
           "), as " + type + "_default() does. This library has " + std::to_string(bytes) + " bytes there");
  const auto* const first = static_cast<const std::byte*>(from);
  if (size > bytes && std::any_of(first + bytes, first + size, [](std::byte b) { return b != std::byte{0}; }))
    refuse(std::string{name} + " has fields that samesum " + samesum_version() +
           " does not know; set them to 0, or load the library of the caller's header");
  std::memcpy(to, first, std::min(size, bytes));
}

Options options_of(const samesum_options* pointer, std::size_t elements) {
  if (pointer == nullptr) return {};
  const samesum_options o = sized(pointer, "options", "samesum_options");
  Options options{.threads = o.threads,
                  .ddof = o.ddof,
                  .exclusive = flag_of(o.exclusive, "options.exclusive"),
                  .combine = flag_of(o.combine, "options.combine"),
                  .skip_nan = flag_of(o.skip_nan, "options.skip_nan"),
                  .window = o.window,
                  .centred = flag_of(o.centred, "options.centred")};
  if (o.where != nullptr) options.where = {o.where, elements};
  if (flag_of(o.has_grid, "options.has_grid")) options.grid = o.grid;
  if (flag_of(o.has_min_periods, "options.has_min_periods")) options.min_periods = o.min_periods;
  return options;
}

Layout layout_of(const samesum_layout& l, std::size_t n) {
  switch (l.kind) {
    case SAMESUM_ALL:
      if ((l.outer | l.n | l.inner | l.outer_stride | l.stride) != 0 || l.offsets != nullptr)
        refuse(
            "layout.kind is SAMESUM_ALL, but other fields of the layout are not 0; use samesum_vector, "
            "samesum_rows, samesum_axis or samesum_segments");
      return Layout::vector(n);
    case SAMESUM_STRIDED:
      if (l.offsets != nullptr) refuse("layout.offsets is given; set layout.kind to SAMESUM_SEGMENTS");
      return {l.outer, l.n, l.inner, l.outer_stride, l.stride, nullptr};
    case SAMESUM_SEGMENTS: {
      Layout segments = Layout::segments(l.offsets, l.outer);
      segments.inner = l.inner;
      return segments;
    }
    default:
      refuse("layout.kind is " + std::to_string(l.kind) +
             "; use one of SAMESUM_ALL, SAMESUM_STRIDED, SAMESUM_SEGMENTS");
  }
}

Call call_of(const samesum_call* pointer) {
  const samesum_call call = sized(pointer, "call", "samesum_call");
  const Keys keys = keys_of(call.keys);
  return {.method = &method_of(call.method),
          .x = values_of(call.x, "x"),
          .y = values_of(call.y, "y"),
          .keys = keys,
          .layout = layout_of(call.layout, keys.is_given() ? keys.size : call.x.size),
          .out = results_of(call.out),
          .options = options_of(call.options, call.x.format == SAMESUM_NONE ? keys.size : call.x.size)};
}

void copy_bytes(std::span<const std::byte> from, void* to, std::size_t capacity) {
  std::byte* const first = &given(static_cast<std::byte*>(to), "bytes");
  if (capacity < from.size())
    refuse("bytes has room for " + std::to_string(capacity) + " bytes; it needs " +
           std::to_string(from.size()));
  std::ranges::copy(from, first);
}

const Method* find_method(const samesum_method* handle) {
  const std::span<const Method> all = methods();
  const auto address = reinterpret_cast<std::uintptr_t>(handle),
             first = reinterpret_cast<std::uintptr_t>(all.data());
  if (address < first || address >= first + all.size_bytes() || (address - first) % sizeof(Method) != 0)
    return nullptr;
  return &all[(address - first) / sizeof(Method)];
}

const Method& method_of(const samesum_method* handle) {
  const Method* const method = find_method(handle);
  if (method == nullptr)
    refuse(std::string{"method is "} + (handle ? "not a method" : "NULL") +
           "; pass one from samesum_find or samesum_method_at");
  return *method;
}

}  // namespace samesum::c
