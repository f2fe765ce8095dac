#include "harness/input.hpp"

#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <new>

#include "harness/input_parts.hpp"
#include "harness/text.hpp"

namespace samesum::harness {

namespace fs = std::filesystem;

namespace {

struct Reader {
  std::string_view extension;
  std::unique_ptr<ElementReader> (*open)(Source);
  bool is_table = false;
  std::string_view start = {};  ///< of each file; empty if it may be anything
  bool can_be_piped = true;     ///< and compressed
};

class RawReader : public BinaryReader {
 public:
  RawReader(Source source, const FormatInfo& stored)
      : BinaryReader{std::move(source), stored, stored.bytes, std::numeric_limits<std::uint64_t>::max()},
        stored_format_{stored} {}

 private:
  void check_size(std::uint64_t bytes) const override {
    if (bytes % stored_format_.bytes != 0)
      throw InputError{name(), "has " + std::to_string(bytes) + " bytes, not a multiple of the " +
                                   std::to_string(stored_format_.bytes) + " bytes of an element of " +
                                   std::string{stored_format_.name} +
                                   "; is it cut short, or of another format?"};
  }
  void convert(std::vector<std::byte>& stored, std::uint64_t) override {
    convert_elements(stored, false, stored_format_, portion_);
  }
  const FormatInfo& stored_format_;
};

template <class Stored> std::unique_ptr<ElementReader> open_stored(Source source) {
  return open_raw(std::move(source), format_info<Stored>());
}

std::unique_ptr<ElementReader> open_csv(Source source) { return open_table(std::move(source), ";,\t"); }
std::unique_ptr<ElementReader> open_tsv(Source source) { return open_table(std::move(source), "\t"); }

std::unique_ptr<ElementReader> open_any_text(Source source) {
  return source.table.is_set() ? open_table(std::move(source), ";,\t ") : open_text(std::move(source));
}

/// Bytes of which the first ones have been read already.
class RejoinedBytes : public Bytes {
 public:
  RejoinedBytes(std::vector<std::byte> head, std::unique_ptr<Bytes> rest)
      : head_{std::move(head)}, rest_{std::move(rest)} {}

  std::size_t read(std::span<std::byte> to) override {
    const std::size_t n = head_.read(to);
    return n + rest_->read(to.subspan(n));
  }
  std::uint64_t skip(std::uint64_t n) override {
    const std::uint64_t passed = head_.skip(n);
    return passed + rest_->skip(n - passed);
  }
  std::optional<std::uint64_t> left() override {
    const std::optional<std::uint64_t> rest = rest_->left();
    return rest ? std::optional{*head_.left() + *rest} : std::nullopt;
  }

 private:
  MemoryBytes head_;
  std::unique_ptr<Bytes> rest_;
};

/// The reader of an array, without NaNs if missing elements are left out.
std::unique_ptr<ElementReader> as_chosen(std::unique_ptr<ElementReader> array, const TableOptions& table,
                                         const std::string& name) {
  return table.skip_missing ? without_nans(std::move(array), name, table.pairs) : std::move(array);
}

/// The first bytes of a source, which stay in it.
std::string start_of(Source& source) {
  std::vector<std::byte> head(npy_magic.size());
  head.resize(source.bytes->read(head));
  const std::string start{reinterpret_cast<const char*>(head.data()), head.size()};
  source.bytes = std::make_unique<RejoinedBytes>(std::move(head), std::move(source.bytes));
  return start;
}

constexpr Reader readers[] = {
    {".npy", open_npy, false, npy_magic},
    {".npz", open_npz, false, npz_magic},
    {".f16", open_stored<fp16>},
    {".bf16", open_stored<bf16>},
    {".f32", open_stored<fp32>},
    {".f64", open_stored<fp64>},
    {".txt", open_any_text, true},
    {".csv", open_csv, true},
    {".tsv", open_tsv, true},
    {".parquet", open_parquet, true, "PAR1", false},
    {".arrow", open_feather, true, "ARROW1", false},
    {".feather", open_feather, true, "ARROW1", false},
};

/// The extensions of the files with a property.
std::string extensions(bool Reader::*property, bool has_it = true) {
  std::string text;
  for (const Reader& reader : readers)
    if (reader.*property == has_it) text.append(text.empty() ? "" : " ").append(reader.extension);
  return text;
}

void refuse_table(const TableOptions& table, const std::string& name, std::string_view extension) {
  if (table.needs_table())
    throw InputError{name, std::string{!table.by.empty()      ? "--by is"
                                       : !table.where.empty() ? "--where is"
                                                              : "--column and --header are"} +
                               " for tables (" + extensions(&Reader::is_table) + ", -), and this is a " +
                               std::string{extension} + " file"};
}

/// Pipes have no extension: their first bytes tell compressed, .npy and .npz files from text.
std::unique_ptr<ElementReader> open_pipe(Source source) {
  std::string start = start_of(source);
  if (start.starts_with(gzip_magic)) {
    source.bytes = open_gzip(std::move(source.bytes), source.name);
    start = start_of(source);
  }
  const bool is_npy = start == npy_magic, is_npz = start.starts_with(npz_magic);
  for (const Reader& reader : readers)
    if (!reader.can_be_piped && start.starts_with(reader.start))
      throw InputError{source.name, "begins as a " + std::string{reader.extension} +
                                        " file does, which is not read from a pipe; save and name it"};
  if (!is_npy && !is_npz) return open_any_text(std::move(source));
  refuse_table(source.table, source.name, is_npy ? ".npy" : ".npz");
  const TableOptions table = source.table;
  const std::string name = source.name;
  if (is_npz) source.bytes = std::make_unique<MemoryBytes>(read_rest(*source.bytes));  // read from the end
  return as_chosen(is_npy ? open_npy(std::move(source)) : open_npz(std::move(source)), table, name);
}

constexpr Reader pipe_reader{"", open_pipe, true};

/// Whether the path is a pipe.
bool is_pipe(const std::string& path, fs::file_status status) {
  return fs::is_fifo(status) || fs::is_socket(status) || path == "/dev/stdin" ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool is_gzip(const std::string& path) { return extension_of(path) == ".gz"; }

const Reader& reader_of(const std::string& path, fs::file_status status) {
  const std::string extension = extension_of(is_gzip(path) ? fs::path{path}.stem() : fs::path{path});
  if (extension.empty() && is_pipe(path, status)) return pipe_reader;
  for (const Reader& reader : readers)
    if (reader.extension == extension) {
      if (is_gzip(path) && !reader.can_be_piped)
        throw InputError{
            path, "a " + extension + " file compressed by gzip is not read; decompress it with gzip -d"};
      return reader;
    }
  std::string problem =
      extension.empty() ? "has no extension that tells its type" : "unknown extension " + shown(extension);
  throw InputError{path, problem + "; known are " + known_extensions() + ", each also with .gz, " +
                             extensions_without_gzip() + ", and - for text, .npy or .npz on standard input"};
}

/// Throws InputError if a file begins as another kind of file does.
void check_start(Source& source, const Reader& reader) {
  const bool may_be_anything = reader.extension.empty() || (!reader.is_table && reader.start.empty());
  if (may_be_anything || !source.bytes->left()) return;
  std::vector<std::byte> head(npy_magic.size());
  head.resize(source.bytes->read(head));
  source.bytes->move_to(0);
  const std::string_view start{reinterpret_cast<const char*>(head.data()), head.size()};
  if (start.starts_with(gzip_magic))
    throw InputError{source.name,
                     "is compressed by gzip; let its name end in .gz, or decompress it with gzip -d"};
  for (const Reader& other : readers)
    if (!other.start.empty() && start.starts_with(other.start) && other.start != reader.start)
      throw InputError{source.name, "begins as a " + std::string{other.extension} +
                                        " file does; if it is one, let its name end in " +
                                        std::string{other.extension}};
}

class FileBytes : public Bytes {
 public:
  /// Closes the file in the end, unless it is standard input.
  FileBytes(std::FILE* file, std::string name) : file_{file}, name_{std::move(name)} {}

  std::size_t read(std::span<std::byte> to) override {
    if (std::feof(file_.get())) return 0;  // a terminal would wait for further input
    const std::size_t n = std::fread(to.data(), 1, to.size(), file_.get());
    if (std::ferror(file_.get()))
      throw InputError{name_, std::string{"cannot be read: "} + std::strerror(errno)};
    return n;
  }

  std::uint64_t skip(std::uint64_t n) override {
    const std::optional<std::uint64_t> most = left();
    if (!most) return Bytes::skip(n);
    n = std::min(n, *most);
    if (fseeko(file_.get(), static_cast<off_t>(n), SEEK_CUR) == 0) return n;
    throw InputError{name_, std::string{"cannot be read: "} + std::strerror(errno)};
  }

  bool move_to(std::uint64_t place) override {
    return fseeko(file_.get(), static_cast<off_t>(place), SEEK_SET) == 0;
  }

  std::optional<std::uint64_t> left() override {
    struct stat status;
    if (fstat(fileno(file_.get()), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    return static_cast<std::uint64_t>(std::max<off_t>(status.st_size - ftello(file_.get()), 0));
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string name_;
};

/// The elements of several files, one after another.
class Concatenation : public ElementReader {
 public:
  Concatenation(std::vector<std::string> paths, const FormatInfo* format, const TableOptions& table)
      : Concatenation{open_elements(paths.front(), format, table), std::move(paths), format, table} {}

  std::optional<std::uint64_t> left() override {
    std::optional<std::uint64_t> all = current_->left();
    for (std::size_t i = next_; i < paths_.size() && all; ++i) {
      const std::optional<std::uint64_t> more = open_elements(paths_[i], wanted_, table_)->left();
      all = more ? std::optional{*all + *more} : std::nullopt;
    }
    return all;
  }
  std::uint64_t skip(std::uint64_t n) override {
    std::uint64_t done = current_->skip(n);
    while (done < n && open_next()) done += current_->skip(n - done);
    return done;
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> all = notes_;
    for (const std::string& note : current_->notes()) all.push_back(note);
    return all;
  }

 private:
  Concatenation(std::unique_ptr<ElementReader> first, std::vector<std::string> paths,
                const FormatInfo* wanted, const TableOptions& table)
      : ElementReader{first->format()},
        current_{std::move(first)},
        paths_{std::move(paths)},
        wanted_{wanted},
        table_{table} {}

  void fill_portion() override {
    while (!current_->next())
      if (!open_next()) {
        portion_ = Column{&format(), {}};
        return;
      }
    portion_ = current_->portion();
  }

  bool open_next() {
    if (next_ == paths_.size()) return false;
    const std::string& path = paths_[next_++];
    notes_ = notes();
    current_ = open_elements(path, wanted_, table_);
    if (&current_->format() != &format())
      throw InputError{path, "has elements of " + std::string{current_->format().name} + ", and " +
                                 shown(paths_[0]) + " of " + std::string{format().name} +
                                 "; pass --format to convert all"};
    return true;
  }

  std::unique_ptr<ElementReader> current_;
  std::vector<std::string> paths_;
  const FormatInfo* wanted_;
  TableOptions table_;
  std::size_t next_ = 1;
  std::vector<std::string> notes_;  ///< on the files before the current one
};

Source source_in(std::span<const std::byte> memory, std::string_view name, const FormatInfo* format,
                 std::size_t portion) {
  return {std::make_unique<MemoryBytes>(std::vector<std::byte>(memory.begin(), memory.end())),
          std::string{name}, format, std::clamp<std::size_t>(memory.size(), 1, portion)};
}

}  // namespace

std::string file_of(const std::string& path) {
  std::error_code ignored;
  const std::size_t end = path.rfind(".npz:");
  return end == path.npos || fs::exists(path, ignored) ? path : path.substr(0, end + 4);
}

std::string known_extensions() { return extensions(&Reader::can_be_piped); }
std::string extensions_without_gzip() { return extensions(&Reader::can_be_piped, false); }

std::unique_ptr<ElementReader> open_raw(Source source, const FormatInfo& stored) {
  return std::make_unique<RawReader>(std::move(source), stored);
}

std::unique_ptr<ElementReader> open_elements(const std::string& argument, const FormatInfo* format,
                                             const TableOptions& table) {
  const std::string path = file_of(argument);
  const std::string member = path.size() < argument.size() ? argument.substr(path.size() + 1) : "";
  const auto source = [&](std::FILE* file, const std::string& name) {
    return Source{std::make_unique<FileBytes>(file, name), name, format, portion_bytes, table, member};
  };
  if (path == "-") return open_pipe(source(stdin, "standard input"));
  if (path.size() + 1 == argument.size())
    throw InputError{argument, "no name of a member after ':'; give one, as in x.npz:member"};
  if (path.empty()) throw InputError{"FILE", "the name is empty; name a file, or - for standard input"};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw InputError{path, "no such file"};
  if (error) throw InputError{path, "cannot be opened: " + error.message()};
  if (fs::is_directory(status)) throw InputError{path, "is a directory; name a file in it"};
  const Reader& reader = reader_of(path, status);
  if (!reader.is_table) refuse_table(table, path, reader.extension);
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (!file) throw InputError{path, std::string{"cannot be opened: "} + std::strerror(errno)};
  Source opened = source(file, path);
  if (is_gzip(path))
    opened.bytes = open_gzip(std::move(opened.bytes), path);
  else
    check_start(opened, reader);
  std::unique_ptr<ElementReader> elements = reader.open(std::move(opened));
  return reader.is_table ? std::move(elements) : as_chosen(std::move(elements), table, path);
}

std::unique_ptr<ElementReader> open_elements(const std::vector<std::string>& paths, const FormatInfo* format,
                                             const TableOptions& table) {
  if (paths.size() == 1) return open_elements(paths.front(), format, table);
  return std::make_unique<Concatenation>(paths, format, table);
}

Column read_all(ElementReader& elements, const std::function<void(const Column&)>& visit) {
  Column all{&elements.format(), {}};
  while (elements.next()) {
    const Column& portion = elements.portion();
    if (visit) visit(portion);
    const std::size_t before = all.size();
    all.bytes.insert(all.bytes.end(), portion.bytes.begin(), portion.bytes.end());
    if (!portion.lost.empty()) all.lost.resize(before);
    all.lost.insert(all.lost.end(), portion.lost.begin(), portion.lost.end());
    all.further_lost.insert(all.further_lost.end(), portion.further_lost.begin(), portion.further_lost.end());
    all.places.insert(all.places.end(), portion.places.begin(), portion.places.end());
  }
  if (!all.lost.empty()) all.lost.resize(all.size());
  all.records = elements.portion().records;
  all.notes = elements.notes();
  return all;
}

Column read_column(const std::string& path, const FormatInfo* format, const TableOptions& table) try {
  return read_all(*open_elements(path, format, table));
} catch (const std::bad_alloc&) {
  throw InputError{path, "does not fit in memory"};
}

Column parse_npy(std::span<const std::byte> file, std::string_view name, const FormatInfo* format,
                 std::size_t portion) {
  return read_all(*open_npy(source_in(file, name, format, portion)));
}

Column parse_text(std::string_view text, std::string_view name, const FormatInfo* format,
                  std::size_t portion) {
  return read_all(*open_text(source_in(std::as_bytes(std::span{text}), name, format, portion)));
}

Column parse_table(std::string_view text, std::string_view name, std::string_view extension,
                   const TableOptions& table, const FormatInfo* format, std::size_t portion) {
  Source source = source_in(std::as_bytes(std::span{text}), name, format, portion);
  source.table = table;
  return read_all(*std::ranges::find(readers, extension, &Reader::extension)->open(std::move(source)));
}

Column parse_npz(std::span<const std::byte> file, std::string_view name, const std::string& member,
                 const FormatInfo* format, std::size_t portion) {
  Source source = source_in(file, name, format, portion);
  source.member = member;
  return read_all(*open_npz(std::move(source)));
}

Column parse_pipe(std::span<const std::byte> bytes, std::string_view name, const FormatInfo* format,
                  std::size_t portion) {
  return read_all(*open_pipe(source_in(bytes, name, format, portion)));
}

Column parse_raw(std::span<const std::byte> file, std::string_view name, const FormatInfo& stored,
                 const FormatInfo* format, std::size_t portion) {
  return read_all(*open_raw(source_in(file, name, format, portion), stored));
}

}  // namespace samesum::harness
