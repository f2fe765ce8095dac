/// Short sums allocate no memory on the heap, and a failed allocation leaves a partial unchanged.
#include <atomic>
#include <cstdlib>
#include <new>

#include "support.hpp"

namespace {
std::atomic<int> allocations{0}, failing{-1};  // failing: the allocation that fails; -1 if none does
}

void* operator new(std::size_t size) {
  const bool fails = ++allocations == failing;
  if (void* p = fails ? nullptr : std::malloc(size)) return p;
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

TEST(APartial, IsUnchangedIfAnAllocationFails) {
  const Array x{format_info<fp32>(), wide(14'000, 20, 1)}, few{format_info<fp32>(), wide(3000, 20, 2)};
  int failures = 0;
  for (const char* name :
       {"tree/kahan/fp32", "dot/tree/kahan/fp32", "canonical16/plain/fp32", "prefix/plain/fp32",
        "serial/plain/fp32", "exact/fp32", "fixed_point/fp32", "argmax/fp32"})
    for (const std::uint64_t begin : {0, 4000})
      for (const Array* portion : {&x, &few}) {
        Partial partial = partial_of(find(name), begin);
        const auto add = [&] {
          partial.method().inputs == 2 ? partial.add(portion->values(), portion->values(), {.threads = 1})
                                       : partial.add(portion->values(), {.threads = 1});
        };
        add();
        const std::vector<std::byte> before = partial.serialise();
        for (int k = 1; k < 1000; ++k) {
          failing = allocations + k;
          try {
            add();
            break;
          } catch (const std::bad_alloc&) {
            failing = -1;
            ++failures;
            ASSERT_TRUE(partial.serialise() == before) << name << " from " << begin << ", allocation " << k;
          }
        }
        failing = -1;
        ASSERT_GT(partial.size(), portion->values().size);
      }
  EXPECT_GT(failures, 100);
}

}  // namespace
}  // namespace samesum
