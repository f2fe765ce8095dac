// The gradient of an embedding: the gradient of each token is added to the row of its word, here in another
// order and by another number of threads in each run, on the CPU and, if there is one, on a GPU.
//
//   embedding_gradient [tokens words width runs]    default: 4096 1000 64 100; GPT-2: 1048576 50257 768 10
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <samesum/samesum.hpp>
#include <set>
#include <span>
#include <vector>

using Hashes = std::set<std::uint64_t>;

/// The 64-bit FNV-1a hash of all bytes.
std::uint64_t hash(std::span<const std::byte> bytes) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const std::byte b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return h;
}

template <samesum::Element T>
void compare(std::size_t tokens, std::size_t words, std::size_t width, std::size_t runs) {
  std::mt19937_64 random;
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  // Zipf's law: word k is 1 / (k + 1) times as frequent as word 0.
  std::vector<double> frequency{1};
  while (frequency.size() < words)
    frequency.push_back(frequency.back() + 1 / static_cast<double>(frequency.size() + 1));
  std::vector<std::uint32_t> word(tokens);
  for (std::uint32_t& w : word) {
    const auto last = frequency.end() - 1;
    w = static_cast<std::uint32_t>(std::upper_bound(frequency.begin(), last, uniform() * *last) -
                                   frequency.begin());
  }
  std::vector<T> gradient(tokens * width), sums(words * width);
  for (T& g : gradient) g = samesum::convert<T>(uniform() - 0.5);

  const bool has_gpu = std::ranges::none_of(samesum::absent(), [](auto& a) { return a.backend == "cuda"; });
  const auto run = [&](const char* name, int threads, Hashes& hashes) {
    const samesum::Method& method = samesum::find(name, {"scatter_add", samesum::Format<T>::name});
    samesum::reduce(method, gradient, word, samesum::Layout::axis(1, tokens, width), std::span{sums},
                    {.threads = threads});
    hashes.insert(hash(std::as_bytes(std::span{sums})));
  };
  Hashes exact, loop, atomics;
  for (std::size_t i = 0; i < runs; ++i) {
    const int threads = 1 + static_cast<int>(i % 8);
    run("exact@cpu", threads, exact);
    run("serial/plain@cpu", threads, loop);
    if (has_gpu) {
      run("exact@cuda", threads, exact);
      run("atomic_element/plain@cuda", threads, atomics);
    }
    for (std::size_t k = tokens; k > 1; --k) {  // another order of the tokens
      const std::size_t other = random() % k;
      std::swap(word[k - 1], word[other]);
      std::swap_ranges(&gradient[(k - 1) * width], &gradient[(k - 1) * width] + width,
                       &gradient[other * width]);
    }
  }
  const char* format = samesum::Format<T>::name.data();
  std::printf("%s, exact: %zu hash, %016llx\n", format, exact.size(),
              static_cast<unsigned long long>(*exact.begin()));
  std::printf("%s, a loop: %zu hashes\n", format, loop.size());
  std::printf("%s, atomics on a GPU: ", format);
  std::printf(has_gpu ? "%zu hashes\n" : "there is no GPU\n", atomics.size());
}

int main(int count, char** arguments) {
  const auto number = [&](int i, std::size_t otherwise) {
    return i < count ? std::strtoul(arguments[i], nullptr, 10) : otherwise;
  };
  const std::size_t tokens = number(1, 4096), words = number(2, 1000), width = number(3, 64);
  compare<float>(tokens, words, width, number(4, 100));
  compare<samesum::bf16>(tokens, words, width, number(4, 100));
}
