/// Prints a digest of the bits that each deterministic method returns for each input format: sums, reductions
/// and softmax over vectors, rows, axes and segments of ordinary and awkward data. All backends, instruction
/// sets and machines must print the lines of digests.txt.
///
/// Usage: digests BACKEND [EXPECTED]. Without EXPECTED the program prints all lines. With EXPECTED it prints
/// the lines that differ, and exits with 1 if there are any. It exits with 77 if the backend is absent.
/// Since the reference takes longest, only its lines of fp32 are compared, unless SAMESUM_LONG_TESTS is set:
/// other tests compare it with the CPU backend for all formats and inputs. Scans and
/// rolling operations, which take long, are compared for the widest set only; instruction_set_test.cpp
/// compares vectors and columns in all sets.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "operation/reduction_support.hpp"
#include "operation/softmax_support.hpp"
#include "samesum/backend/cpu/loops/instruction_set.hpp"

using namespace samesum;
using namespace samesum::testing_support;

namespace {

/// FNV-1a hash of the bytes of 64-bit words.
class Digest {
 public:
  void add(std::uint64_t word) {
    // The upper bytes of most words are zeros, which only multiply.
    std::size_t bytes = 0;
    for (; word != 0; word >>= 8, ++bytes) hash_ = (hash_ ^ (word & 0xff)) * powers[1];
    hash_ *= powers[8 - bytes];
  }
  template <class Words> void add_all(const Words& words) {
    for (const auto word : words) add(word);
  }
  std::string text() const {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash_));
    return hex;
  }

 private:
  static constexpr std::array<std::uint64_t, 9> powers = [] {
    std::array<std::uint64_t, 9> all{1};
    for (std::size_t i = 1; i < all.size(); ++i) all[i] = all[i - 1] * 0x100000001b3u;
    return all;
  }();
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

using Lines = std::map<std::string, std::string>;

/// Elements of one format and their layout.
struct Input {
  Array x, y;
  Layout layout;
};

/// Returns the inputs in one format. All methods share them, since rounding the elements takes as long as one
/// method.
const std::vector<Input>& inputs(const FormatInfo& format) {
  static const std::vector<BatchCase> of_every_shape = [] {
    std::vector<BatchCase> all = batches();
    // Repeated elements have the bits of others in their place.
    std::erase_if(all, [](const BatchCase& b) { return b.layout.stride == 0 && b.layout.inner > 0; });
    return all;
  }();
  static std::map<std::size_t, std::vector<Input>> of_formats;
  std::vector<Input>& made = of_formats[format.index];
  if (!made.empty()) return made;
  const auto add = [&](const std::vector<double>& x, const std::vector<double>& y, const Layout& layout) {
    made.push_back({{format, x}, {format, y}, layout});
  };
  for (const BatchCase& b : of_every_shape) add(wide(b.elements, 12, 1), wide(b.elements, 12, 2), b.layout);
  for (const Dataset& d : datasets(5000)) add(d.x, uniform(5000, 11), Layout::vector(5000));
  constexpr std::size_t n = 9 * 512 + 3;
  for (const Dataset& d : awkward_data(n))
    for (const Layout& layout : {Layout::vector(n), Layout::rows(9, 512), Layout::rows(6, 768)})
      add(d.x, uniform(n, 32), layout);
  return made;
}

const std::vector<std::unique_ptr<Table>>& tables(const FormatInfo& format) {
  static std::map<std::size_t, std::vector<std::unique_ptr<Table>>> of_formats;
  std::vector<std::unique_ptr<Table>>& made = of_formats[format.index];
  if (made.empty())
    for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{11, 1},
                                        {22, 7},
                                        {33, 128},
                                        {11, 1000},
                                        {11, 4097},
                                        {5, 20'000}})
      made.push_back(std::make_unique<Table>(format, columns, rows_of_all_kinds(rows, columns, true)));
  return made;
}

/// Whether the instruction set in use is not the widest of this machine.
bool is_narrower() {
  return std::ranges::any_of(cpu::instruction_sets, [](cpu::InstructionSet set) {
    return set > cpu::instruction_set() && cpu::is_supported(set);
  });
}

std::string line_of(const std::string& method, const FormatInfo& input) {
  return method.substr(0, method.find('@')) + " " + std::string{input.name};
}

/// Whether the method reduces batches of such elements, and not only vectors.
bool takes_batches(const Method& m, const FormatInfo& input) {
  const double x[2] = {};
  double sums[2];
  return validation_error(
             {.method = &m, .x = {input, x, 2}, .layout = Layout::rows(2, 1), .out = {m.format, sums, 2}},
             true)
      .empty();
}

std::string digest_of_vectors(const Method& m, const FormatInfo& format) {
  Digest digest;
  for (const Input& input : inputs(format))
    if (input.layout.results() == 1) digest.add(m(input.x.values()).bits);
  return digest.text();
}

std::string digest_of_batches(const Method& m, const FormatInfo& format) {
  Digest digest;
  for (const Input& input : inputs(format))
    digest.add_all(reduce_all(m, input.x.values(), input.y.values(), input.layout, {.ddof = 1}));
  return digest.text();
}

std::string digest_of_softmax(const Method& m, const FormatInfo& format) {
  Digest digest;
  for (const auto& table : tables(format)) digest.add_all(computed(m, *table, {3, 1}, 0));
  return digest.text();
}

/// Returns the digest of the results, inclusive and exclusive, at the places of all elements.
std::string digest_of_scans(const Method& m, const FormatInfo& format) {
  Digest digest;
  for (const Input& input : inputs(format)) {
    const Layout& l = input.layout;
    if (l.offsets || (l.n > 1 && l.stride != l.inner) || l.outer_stride < l.n * l.inner) continue;
    with_format(*m.format, [&]<class F>() {
      for (const bool exclusive : {false, true}) {
        std::vector<F> out(l.results() == 0 ? 0 : (l.outer - 1) * l.outer_stride + l.n * l.inner);
        reduce(m, input.x.values(), l, std::span{out}, {.exclusive = exclusive});
        for (const F& result : out) digest.add(to_bits(result));
      }
    });
  }
  return digest.text();
}

/// Returns the digest of the results for windows of several kinds. Sums that overflow the grid are NaN.
std::string digest_of_windows(const Method& m, const FormatInfo& format) {
  Digest digest;
  for (const Input& input : inputs(format)) {
    const Layout& l = input.layout;
    if (l.offsets || (l.n > 1 && l.stride != l.inner) || l.outer_stride < l.n * l.inner) continue;
    with_format(*m.format, [&]<class F>() {
      for (const std::size_t window : {1, 6, 33}) {
        std::vector<F> out(l.results() == 0 ? 0 : (l.outer - 1) * l.outer_stride + l.n * l.inner);
        Options options =
            with_window(m, {.skip_nan = window == 33, .window = window, .centred = window == 6});
        options.window = window;
        try {
          reduce(m, input.x.values(), l, std::span{out}, options);
        } catch (const std::overflow_error&) {
        }
        for (const F& result : out) digest.add(to_bits(result));
      }
    });
  }
  return digest.text();
}

/// Returns the digest of the results by keys of several kinds, overwriting and combined.
std::string digest_by_key(const Method& m, const FormatInfo& format) {
  Digest digest;
  std::mt19937_64 random{7};
  for (const Input& input : inputs(format)) {
    const Layout& l = input.layout;
    if (l.outer != 1 || l.inner == 0 || l.offsets || (l.n > 1 && l.stride != l.inner)) continue;
    for (const std::size_t bins : {1, 5, 300}) {
      std::vector<std::int64_t> keys(l.n);
      for (std::int64_t& key : keys) key = static_cast<std::int64_t>(random() % bins);
      const bool counts = m.inputs == 0;
      const Layout layout = Layout::axis(1, l.n, counts ? 1 : l.inner);
      const Values x = counts ? Values{format, nullptr, 0} : input.x.values();
      const auto digest_into = [&](auto out) {
        for (const bool combine : {false, true}) {
          if (combine && m.operation == "scatter_mean") continue;
          reduce(m, x, keys, layout, std::span{out}, {.combine = combine});
          for (const auto& result : out)
            if constexpr (std::is_same_v<decltype(result), const std::int64_t&>)
              digest.add(static_cast<std::uint64_t>(result));
            else
              digest.add(to_bits(result));
        }
      };
      if (m.returns_index)
        digest_into(std::vector<std::int64_t>(bins));
      else
        with_format(*m.format, [&]<class F>() { digest_into(std::vector<F>(bins * layout.inner)); });
    }
  }
  return digest.text();
}

void add(const Method& m, const FormatInfo& input, Lines& lines) {
  if (m.takes_keys) {
    if (m.inputs > 0 || &input == m.format) lines[line_of(m.name, input)] = digest_by_key(m, input);
  } else if (m.is_scan()) {
    lines[line_of(m.name, input)] = digest_of_scans(m, input);
  } else if (m.takes_window) {
    lines[line_of(m.name, input)] = digest_of_windows(m, input);
  } else if (m.has_result_per_element) {
    lines[line_of(m.name, input)] = digest_of_softmax(m, input);
  } else if (m.operation == "sum") {
    lines[line_of(short_name(m), input)] = digest_of_vectors(m, input);
    if (takes_batches(m, input)) lines[line_of(m.name, input)] = digest_of_batches(m, input);
  } else {
    lines[line_of(m.name, input)] = digest_of_batches(m, input);
  }
}

/// Whether the line of a method and an input is not compared.
bool is_left_out(const Method& m, const FormatInfo& input, std::string_view backend) {
  const FormatInfo& only = format_info<fp32>();
  if (backend == "cpu" && (m.is_scan() || m.takes_window) && is_narrower()) return true;
  return backend == "reference" && (m.format != &only || &input != &only) &&
         std::getenv("SAMESUM_LONG_TESTS") == nullptr;
}

/// Returns the lines that are not compared, and those for which the backend has no method, or none for
/// batches, according to the catalogue.
std::set<std::string> lines_beyond(const std::string& backend) {
  std::set<std::string> all;
  for (const Method& m : methods()) {
    if (m.backend != "reference" || m.promise < Promise::everywhere) continue;
    const std::string name = m.name.substr(0, m.name.find('@')) + "@" + backend;
    const bool is_refused = std::ranges::count(unsupported(), name, &Unsupported::name) > 0;
    const auto found = std::ranges::find(methods(), name, &Method::name);
    for (const FormatInfo& input : formats) {
      const bool is_absent = is_refused || is_left_out(m, input, backend);
      if (is_absent) all.insert(line_of(short_name(m), input));
      if (is_absent || (m.operation == "sum" && found != methods().end() && !takes_batches(*found, input)))
        all.insert(line_of(m.name, input));
    }
  }
  return all;
}

int compare(const Lines& lines, const std::string& backend, const char* file) {
  std::ifstream in{file};
  if (!in) {
    std::fprintf(stderr, "digests: cannot read '%s'\n", file);
    return 2;
  }
  Lines expected;
  for (std::string method, format, digest; in >> method >> format >> digest;)
    expected[method + " " + format] = digest;
  int different = 0;
  for (const auto& [name, digest] : lines)
    if (const auto found = expected.find(name); found == expected.end() || found->second != digest) {
      std::printf("%s %s, expected %s\n", name.c_str(), digest.c_str(),
                  found == expected.end() ? "nothing" : found->second.c_str());
      ++different;
    }
  const std::set<std::string> beyond = lines_beyond(backend);
  for (const auto& [name, digest] : expected)
    if (!lines.contains(name) && !beyond.contains(name)) {
      std::printf("%s is missing\n", name.c_str());
      ++different;
    }
  std::printf("%zu digests, %d differ\n", lines.size(), different);
  return different > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "Usage: digests BACKEND [EXPECTED]\n");
    return 2;
  }
  const std::string backend = argv[1];
  Lines lines;
  for (const Method& m : methods())
    for (const FormatInfo& input : formats)
      if (m.backend == backend && m.promise >= Promise::everywhere && m.accepts(input) &&
          (argc < 3 || !is_left_out(m, input, backend)))
        add(m, input, lines);
  if (lines.empty()) {
    std::printf("backend %s is not available\n", argv[1]);
    return 77;
  }
  if (argc == 3) return compare(lines, backend, argv[2]);
  for (const auto& [name, digest] : lines) std::printf("%s %s\n", name.c_str(), digest.c_str());
}
