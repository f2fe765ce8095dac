/// Prints a digest of the bits that every deterministic method returns, for each input format: sums,
/// reductions, softmax, over vectors, rows, axes and segments of ordinary and awkward data. The lines of all
/// backends, instruction sets and machines are those of digests.txt.
///
/// Usage: digests BACKEND [EXPECTED]. Without EXPECTED it prints the lines. With it, prints those that
/// differ, and exits with 1 if there is one, with 77 if the backend is absent.
#include <cstdio>
#include <fstream>
#include <map>

#include "operation/reduction_support.hpp"
#include "operation/softmax_support.hpp"
#if SAMESUM_WITH_CUDA
#include "samesum/operation/gpu_softmax.hpp"
#endif

using namespace samesum;
using namespace samesum::testing_support;

namespace {

/// FNV-1a over the bytes of 64-bit words.
class Digest {
 public:
  void add(std::uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) hash_ = (hash_ ^ (word >> shift & 0xff)) * 0x100000001b3u;
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
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

using Lines = std::map<std::string, std::string>;

/// One set of data, and how it lies.
struct Input {
  std::vector<double> x, y;
  Layout layout;
};

const std::vector<Input>& inputs() {
  static const std::vector<BatchCase> of_every_shape = batches();
  static const std::vector<Input> all = [] {
    std::vector<Input> made;
    for (const BatchCase& b : of_every_shape)
      made.push_back({wide(b.elements, 12, 1), wide(b.elements, 12, 2), b.layout});
    for (const Dataset& d : datasets(5000)) made.push_back({d.x, uniform(5000, 11), Layout::vector(5000)});
    constexpr std::size_t n = 9 * 512 + 3;
    for (const Dataset& d : awkward_data(n))
      for (const Layout& layout : {Layout::vector(n), Layout::rows(9, 512), Layout::rows(6, 768)})
        made.push_back({d.x, uniform(n, 32), layout});
    return made;
  }();
  return all;
}

std::string line_of(const std::string& method, const FormatInfo& input) {
  return method.substr(0, method.find('@')) + " " + std::string{input.name};
}

void add_sums(std::string_view backend, Lines& lines) {
  for (const Variant& v : variants()) {
    if (v.backend != backend || v.promise < Promise::everywhere) continue;
    for (const FormatInfo& format : formats) {
      Digest digest;
      for (const Input& input : inputs())
        if (input.layout.results() == 1) digest.add(v(Array{format, input.x}.values()).bits);
      lines[line_of(v.name, format)] = digest.text();
    }
  }
}

void add_reductions(std::string_view backend, Lines& lines) {
  for (const Reduction& r : reductions()) {
    if (r.backend != backend) continue;
    for (const FormatInfo& format : formats) {
      if (!r.takes(format)) continue;
      Digest digest;
      for (const Input& input : inputs()) {
        const Array x{format, input.x}, y{format, input.y};
        digest.add_all(reduce_all(r, x.values(), y.values(), input.layout, {.ddof = 1}));
      }
      lines[line_of(r.name, format)] = digest.text();
    }
  }
}

std::vector<std::uint32_t> softmax_of(const SoftmaxVariant& v, const Table& in) {
  if (v.run) return computed(v, in, {3, 1});
#if SAMESUM_WITH_CUDA
  Table out{in.format(), in.rows(), in.columns()};
  void* memory = nullptr;
  const Matrix x = in.view();
  const std::size_t bytes = in.rows() * in.columns() * in.format().bytes;
  if (cudaMalloc(&memory, bytes + 1) != cudaSuccess) throw std::runtime_error("cudaMalloc failed");
  static_cast<void>(cudaMemcpy(memory, x.data, bytes, cudaMemcpyHostToDevice));
  const MutableMatrix there{in.format(), memory, in.rows(), in.columns(), in.columns()};
  gpu::softmax(there, there, {v.accumulator, v.log, 0});
  if (cudaMemcpy(out.view().data, memory, bytes, cudaMemcpyDeviceToHost) != cudaSuccess)
    throw std::runtime_error("cudaMemcpy failed");
  static_cast<void>(cudaFree(memory));
  return out.bits();
#else
  throw std::logic_error(v.name + " cannot be run");
#endif
}

void add_softmaxes(std::string_view backend, Lines& lines) {
  for (const SoftmaxVariant& v : softmax_variants()) {
    if (v.backend != backend) continue;
    for (const FormatInfo* format : softmax_formats) {
      Digest digest;
      for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{11, 1},
                                          {22, 7},
                                          {33, 128},
                                          {11, 1000},
                                          {11, 4097},
                                          {5, 20'000}})
        digest.add_all(softmax_of(v, Table{*format, columns, rows_of_all_kinds(rows, columns, true)}));
      lines[line_of(v.name, *format)] = digest.text();
    }
  }
}

int compare(const Lines& lines, const char* file) {
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
  for (const auto& [name, digest] : expected)
    if (!lines.contains(name)) {
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
  const std::string_view backend = argv[1];
  Lines lines;
  add_sums(backend, lines);
  add_reductions(backend, lines);
  add_softmaxes(backend, lines);
  if (lines.empty()) {
    std::printf("there is no backend %s here\n", argv[1]);
    return 77;
  }
  if (argc == 3) return compare(lines, argv[2]);
  for (const auto& [name, digest] : lines) std::printf("%s %s\n", name.c_str(), digest.c_str());
}
