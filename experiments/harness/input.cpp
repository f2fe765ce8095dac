#include "harness/input.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>

#include "harness/input_parts.hpp"
#include "harness/text.hpp"

namespace samesum::harness {

namespace fs = std::filesystem;

namespace {

static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= alignof(double), "Column::bytes would be misaligned");

template <class Stored>
Column read_raw(std::span<const std::byte> file, std::string_view name, const FormatInfo* format) {
  return parse_raw(file, name, format_info<Stored>(), format);
}

Column read_text(std::span<const std::byte> file, std::string_view name, const FormatInfo* format) {
  return parse_text({reinterpret_cast<const char*>(file.data()), file.size()}, name, format);
}

struct Reader {
  std::string_view extension;
  Column (*read)(std::span<const std::byte>, std::string_view, const FormatInfo*);
};

constexpr Reader readers[] = {
    {".npy", parse_npy},      {".f16", read_raw<fp16>}, {".bf16", read_raw<bf16>}, {".f32", read_raw<fp32>},
    {".f64", read_raw<fp64>}, {".txt", read_text},      {".csv", read_text},
};

/// Whether the path is a pipe. Pipes have no extension; their data are read as text.
bool is_pipe(const std::string& path, fs::file_status status) {
  return fs::is_fifo(status) || fs::is_socket(status) || path == "/dev/stdin" ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

const Reader& reader_of(const std::string& path, fs::file_status status) {
  std::string extension = fs::path{path}.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (path == "-" || (extension.empty() && is_pipe(path, status))) extension = ".txt";
  for (const Reader& reader : readers)
    if (reader.extension == extension) return reader;
  std::string problem =
      extension.empty() ? "has no extension that tells its type" : "unknown extension " + shown(extension);
  if (extension == ".npz") problem += ", an archive of .npy files: unzip it first";
  throw InputError{path,
                   problem + "; known are " + known_extensions() + ", and - for text on standard input"};
}

/// Reads until the end. `expected` is only a hint for the size, which is unknown for pipes.
std::vector<std::byte> read_all(std::FILE* file, std::size_t expected, const std::string& path) {
  std::vector<std::byte> bytes;
  bytes.reserve(expected);
  std::array<std::byte, 1 << 16> block;
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file))
    bytes.insert(bytes.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(n));
  if (std::ferror(file)) throw InputError{path, std::string{"cannot be read: "} + std::strerror(errno)};
  return bytes;
}

std::vector<std::byte> read_file(const std::string& path, fs::file_status status) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file{std::fopen(path.c_str(), "rb")};
  if (!file) throw InputError{path, std::string{"cannot be opened: "} + std::strerror(errno)};
  std::error_code unknown;
  const std::uintmax_t size = fs::is_regular_file(status) ? fs::file_size(path, unknown) : 0;
  return read_all(file.get(), unknown ? 0 : static_cast<std::size_t>(size), path);
}

}  // namespace

InputError::InputError(std::string_view name, const std::string& problem)
    : runtime_error{printable(name) + ": " + problem} {}

std::string known_extensions() { return listed(readers, " ", &Reader::extension); }

std::string shown(std::string_view text) {
  constexpr std::size_t limit = 40;
  return "'" + printable(text.substr(0, limit), false) + (text.size() > limit ? "...'" : "'");
}

Column convert_elements(std::span<const std::byte> elements, bool big_endian, const FormatInfo& stored,
                        const FormatInfo& format) {
  Column column{&format, {}};
  if (&format == &stored && big_endian == (std::endian::native == std::endian::big)) {
    column.bytes.assign(elements.begin(), elements.end());
    return column;
  }
  const std::size_t n = elements.size() / stored.bytes;
  column.bytes.resize(n * format.bytes);
  with_format(stored, [&]<class From>() {
    with_format(format, [&]<class To>() {
      for (std::size_t i = 0; i < n; ++i) {
        const From x = from_bits<From>(load<BitsOf<From>>(&elements[i * sizeof(From)], big_endian));
        store<To>(column, i, to_bits(convert<To>(x)));
      }
    });
  });
  return column;
}

Column parse_raw(std::span<const std::byte> file, std::string_view name, const FormatInfo& stored,
                 const FormatInfo* format) {
  if (file.size() % stored.bytes != 0)
    throw InputError{name, "has " + std::to_string(file.size()) + " bytes, not a multiple of the " +
                               std::to_string(stored.bytes) + " bytes of an element of " +
                               std::string{stored.name} + "; is it cut short, or of another format?"};
  return convert_elements(file, false, stored, format ? *format : stored);
}

Column read_column(const std::string& path, const FormatInfo* format) try {
  if (path == "-") return read_text(read_all(stdin, 0, "standard input"), "standard input", format);
  if (path.empty()) throw InputError{"FILE", "the name is empty; name a file, or - for standard input"};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw InputError{path, "no such file"};
  if (error) throw InputError{path, "cannot be opened: " + error.message()};
  if (fs::is_directory(status)) throw InputError{path, "is a directory; name a file in it"};
  const Reader& reader = reader_of(path, status);
  return reader.read(read_file(path, status), path, format);
} catch (const std::bad_alloc&) {
  throw InputError{path, "does not fit in memory"};
}

}  // namespace samesum::harness
