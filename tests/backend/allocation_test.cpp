/// Short sums allocate no memory on the heap.
#include <atomic>
#include <cstdlib>
#include <new>

#include "support.hpp"

namespace {
std::atomic<int> allocations{0};
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc{};
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
// If g++ inlines operator delete but not operator new, it warns about free().
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace samesum {
namespace {

using namespace testing_support;

TEST(AShortSum, AllocatesNothing) {
  for (const Method* m : sums_of("cpu"))
    for (const std::size_t n : {0, 1, 64, 1000, 4096, 50'000}) {
      const Array x{*m->format, uniform(n, 1)};
      const Values values = x.values();
      (*m)(values, {.threads = 1});  // initialises what is created only once
      const int before = allocations;
      (*m)(values, {.threads = 1});
      EXPECT_EQ(allocations, before) << m->name << ", n = " << n;
    }
}

TEST(TheCountOfAllocations, GrowsWithAnAllocation) {
  const int before = allocations;
  const std::vector<int> some(100);
  EXPECT_GT(allocations, before);
  EXPECT_EQ(some.size(), 100u);
}

}  // namespace
}  // namespace samesum
