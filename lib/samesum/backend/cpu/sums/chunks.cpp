/// What aggregate states need of this backend to add arrays, for extensions of databases: see chunks.hpp.
#include "samesum/backend/cpu/sums/chunks.hpp"

#include "samesum/backend/cpu/schedule/methods.hpp"

namespace samesum::cpu {
namespace {

const ChunkLoops& chunk_loops() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx2) return chunk_loops_of<InstructionSet::avx2>();
#endif
  return chunk_loops_of<InstructionSet::baseline>();
}

}  // namespace

std::optional<std::array<double, 3>> sum_in_words(Values x, Values y) {
  if (x.format->bytes < sizeof(fp32)) return {};
  const ChunkLoops::OfFormat& loops =
      x.format->bytes == sizeof(fp32) ? chunk_loops().fp32 : chunk_loops().fp64;
  ExactSums sums;
  if (y.is_given())
    loops.products({x.data, y.data, Term::product, 1, x.size, x.size}, &sums);
  else
    loops.elements({x.data, x.data, Term::element, 1, x.size, x.size}, &sums);
  if (!sums.is_exact()) return {};
  return std::to_array(sums.sum);
}

SelectedSum sum_counting(Values x) {
  SelectedSum total;
  with_format(*x.format, [&]<class T>() {
    for (const T element : x.as<T>()) total.sum.add(element);
  });
  total.count = x.size - count_minus_zeros(x);
  return total;
}

std::size_t count_minus_zeros(Values x) {
  return with_format(*x.format, [&]<class T>() -> std::size_t {
    std::size_t count = 0;
    for (const T element : x.as<T>()) count += to_bits(element) == Format<T>::sign_bit;
    return count;
  });
}

}  // namespace samesum::cpu
