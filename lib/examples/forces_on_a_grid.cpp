// Forces on a grid: each particle shares its force between the eight corners of its cell (cloud in cell),
// here in another order of the particles in each run, on the CPU and, if there is one, on a GPU.
//
//   forces_on_a_grid [particles side runs]    default: 20000 8 100
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <samesum/samesum.hpp>
#include <set>
#include <span>
#include <vector>

using Vector = std::array<float, 3>;
struct Particle {
  Vector place, force;  // places are in units of a cell
};

/// The 64-bit FNV-1a hash of all bytes.
std::uint64_t hash(std::span<const std::byte> bytes) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const std::byte b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return h;
}

/// What is deposited: a share of a force, and the number of the grid point that receives it.
struct Deposits {
  std::vector<float> share;
  std::vector<std::uint32_t> point;

  Deposits(const std::vector<Particle>& particles, std::uint32_t side) {
    for (const Particle& p : particles)
      for (std::uint32_t corner = 0; corner < 8; ++corner) {
        float weight = 1;
        std::uint32_t number = 0;
        for (std::size_t d = 0; d < 3; ++d) {
          const float cell = std::floor(p.place[d]), beyond = p.place[d] - cell;
          const std::uint32_t step = corner >> d & 1;
          weight *= step ? beyond : 1 - beyond;
          number = number * side + (static_cast<std::uint32_t>(cell) + step) % side;  // the grid is periodic
        }
        for (const float f : p.force) share.push_back(weight * f);
        point.push_back(number);
      }
  }
};

/// The sum of all vectors, correctly rounded to fp64.
std::array<double, 3> total(const std::vector<float>& vectors) {
  std::array<double, 3> sums;
  samesum::reduce(samesum::find("sum/exact/fp64"), vectors, samesum::Layout::axis(1, vectors.size() / 3, 3),
                  std::span<double>{sums});
  return sums;
}

struct Outcome {
  std::set<std::uint64_t> hashes;
  double error = 0;  // the largest difference between the total force on the grid and that of all shares
};

int main(int count, char** arguments) {
  const auto number = [&](int i, std::size_t otherwise) {
    return i < count ? std::strtoul(arguments[i], nullptr, 10) : otherwise;
  };
  const auto side = static_cast<std::uint32_t>(number(2, 8));
  std::mt19937 random;
  const auto uniform = [&] { return static_cast<float>(random() >> 8) * 0x1p-24f; };
  std::vector<Particle> particles(number(1, 20000));
  for (Particle& p : particles) {
    for (float& x : p.place) x = uniform() * static_cast<float>(side);
    for (float& f : p.force) f = uniform() - 0.25f;
  }

  std::vector<float> grid(std::size_t{3} * side * side * side);
  const auto run = [&](const char* name, const Deposits& all, Outcome& outcome) {
    samesum::reduce(samesum::find(name), all.share, all.point, samesum::Layout::axis(1, all.point.size(), 3),
                    std::span{grid});
    outcome.hashes.insert(hash(std::as_bytes(std::span{grid})));
    const auto deposited = total(all.share), arrived = total(grid);
    for (std::size_t d = 0; d < 3; ++d)
      outcome.error = std::max(outcome.error, std::fabs(arrived[d] - deposited[d]));
  };
  const bool has_gpu = std::ranges::none_of(samesum::absent(), [](auto& a) { return a.backend == "cuda"; });
  Outcome exact, loop, atomics;
  for (std::size_t i = number(3, 100); i > 0; --i) {
    const Deposits all{particles, side};
    run("scatter_add/exact/fp32@cpu", all, exact);
    run("scatter_add/serial/plain/fp32@cpu", all, loop);
    if (has_gpu) {
      run("scatter_add/exact/fp32@cuda", all, exact);
      run("scatter_add/atomic_element/plain/fp32@cuda", all, atomics);
    }
    for (std::size_t k = particles.size(); k > 1; --k)  // another order of the particles
      std::swap(particles[k - 1], particles[random() % k]);
  }
  std::printf("exact: %zu hash, %016llx; the total force is off by %.1g\n", exact.hashes.size(),
              static_cast<unsigned long long>(*exact.hashes.begin()), exact.error);
  std::printf("a loop: %zu hashes; off by up to %.1g\n", loop.hashes.size(), loop.error);
  std::printf("atomics on a GPU: ");
  if (has_gpu)
    std::printf("%zu hashes; off by up to %.1g\n", atomics.hashes.size(), atomics.error);
  else
    std::printf("there is no GPU\n");
}
