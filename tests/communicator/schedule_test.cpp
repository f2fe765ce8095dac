/// The schedule by which GPUs reduce a vector that is spread over them: the states of its subtrees, merged as
/// a GPU merges them, give the bits of the undivided vector.
#include "samesum/communicator/nccl/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partial_support.hpp"
#include "samesum/catalogue/backend.hpp"

namespace samesum::nccl {
namespace {

using namespace testing_support;

const PartialForm& form_of(const Method& m) { return *Code::of(m).partial_form; }

/// Whether the tree of the method is one of tiles, or its order is free.
bool has_schedule(const Method& m) {
  const PartialForm& form = form_of(m);
  return form.extend == nullptr && form.lanes == 1 && !form.from_left;
}

/// Random lengths of the blocks of some ranks, together n; many are 0.
std::vector<std::uint64_t> random_sizes(std::mt19937_64& random, std::size_t n) {
  std::vector<std::uint64_t> cuts{0, n}, sizes;
  for (std::size_t ranks = 1 + below(random, 9); cuts.size() <= ranks;)
    cuts.push_back(random() % 4 == 0 ? n : below(random, n + 1));
  std::ranges::sort(cuts);
  for (std::size_t r = 0; r + 1 < cuts.size(); ++r) sizes.push_back(cuts[r + 1] - cuts[r]);
  return sizes;
}

/// The states of all places, computed by the method itself.
std::vector<std::byte> states_of(const Method& m, const Inputs& in, const Schedule& s) {
  const PartialForm& form = form_of(m);
  std::vector<std::byte> all(s.subtrees.size() * s.states_per_rank * form.state_bytes);
  const Values x = in.x.values(), y = in.y.values();
  const auto input = Code::of(m).backend->partial_input(
      call_for_state(m, x, m.inputs == 2 ? y : Values{}, with_grid(m, {.threads = 1})));
  for (std::size_t r = 0; r < s.subtrees.size(); ++r)
    for (std::size_t i = 0; i < s.subtrees[r].size(); ++i) {
      const PartialInput::Subtree subtree{s.subtrees[r][i].first, s.subtrees[r][i].count};
      std::byte* const state = all.data() + (r * s.states_per_rank + i) * form.state_bytes;
      input->reduce({&subtree, 1}, form.state_bytes, state);
      if (form.move_index) form.move_index(state, subtree.first);
    }
  return all;
}

/// What the kernel merge_tiles does.
Bits merged(const Method& m, std::vector<std::byte> states, const Schedule& s) {
  const PartialForm& form = form_of(m);
  std::vector<std::byte*> of_tile;
  for (const std::int32_t place : s.place)
    of_tile.push_back(place < 0 ? nullptr
                                : states.data() + static_cast<std::size_t>(place) * form.state_bytes);
  for (std::size_t stride = 1; stride < of_tile.size(); stride *= 2)
    for (std::size_t k = 0; k + stride < of_tile.size(); k += 2 * stride) {
      std::byte *&left = of_tile[k], *const right = of_tile[k + stride];
      if (right == nullptr) continue;
      EXPECT_TRUE(left != nullptr || form.leaf == 0) << m.name << ": the left subtree is missing";
      if (left)
        form.merge(left, right);
      else
        left = right;
    }
  return bits_unless_overflow(m, [&](Results out) {
    const std::byte* const state = of_tile.empty() ? nullptr : of_tile[0];
    if (form.overflows && state && form.overflows(state, s.n)) throw std::overflow_error{"as the method"};
    form.finish({0, with_grid(m).grid.value_or(0)}, state, s.n, out.data);
  });
}

TEST(AScheduleOverGpus, GivesTheBitsOfTheUndividedVector) {
  SAMESUM_UNSANITIZED("the tests of partials access the same memory");
  std::mt19937_64 random{11};
  int compared = 0;
  for (const Method* m : methods_with_partials("cpu")) {
    if (!has_schedule(*m)) continue;
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{30'000},
                                40'000 + below(random, 60'000)}) {
      const Inputs in = random_inputs(random, *m, n);
      for (const std::uint64_t most : {most_tiles, std::uint64_t{8}, std::uint64_t{1}}) {
        const std::vector<std::uint64_t> sizes = random_sizes(random, n);
        const Schedule s = schedule_of(sizes, form_of(*m).leaf, most);
        ASSERT_EQ(merged(*m, states_of(*m, in, s), s), undivided(*m, in))
            << m->name << ", n = " << n << ", most = " << most << ", sizes "
            << ::testing::PrintToString(sizes);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

TEST(AScheduleOverGpus, GivesEachElementToOneSubtreeOfARankThatHasOrGetsIt) {
  SAMESUM_UNSANITIZED("the tests of partials access the same memory");
  std::mt19937_64 random{12};
  constexpr std::uint64_t leaf = 16;
  for (int repetition = 0; repetition < 2000; ++repetition) {
    const std::size_t n = below(random, 3000);
    const std::vector<std::uint64_t> sizes = random_sizes(random, n);
    const Schedule s = schedule_of(sizes, leaf, 1 + below(random, 64));
    SCOPED_TRACE(::testing::PrintToString(sizes));
    std::vector<int> rank_of(n, -1);
    for (std::size_t r = 0; r < s.subtrees.size(); ++r) {
      EXPECT_LE(s.subtrees[r].size(), s.states_per_rank);
      for (const Range& subtree : s.subtrees[r])
        for (std::uint64_t i = subtree.first; i < subtree.end(); ++i) {
          EXPECT_EQ(rank_of[i], -1) << i;
          rank_of[i] = static_cast<int>(r);
        }
    }
    std::vector<int> holder(n, -1);
    for (std::size_t r = 0; r < sizes.size(); ++r)
      for (std::uint64_t i = s.begins[r]; i < s.begins[r] + sizes[r]; ++i) holder[i] = static_cast<int>(r);
    std::vector<bool> is_sent(n);
    std::vector<std::size_t> owned(sizes.size());
    for (const SplitTile& tile : s.split) {
      const Range& first =
          s.subtrees[static_cast<std::size_t>(tile.owner)][owned[static_cast<std::size_t>(tile.owner)]++];
      EXPECT_EQ(first.first, tile.elements.first) << "split tiles come first";
      std::uint64_t next = tile.elements.first;
      for (const SplitTile::Part& part : tile.parts) {
        EXPECT_EQ(part.elements.first, next);
        next = part.elements.end();
        for (std::uint64_t i = part.elements.first; i < next; ++i) {
          EXPECT_EQ(holder[i], part.rank);
          EXPECT_EQ(rank_of[i], tile.owner);
          is_sent[i] = true;
        }
      }
      EXPECT_EQ(next, tile.elements.end());
    }
    for (std::size_t i = 0; i < n; ++i)
      if (!is_sent[i]) {
        EXPECT_EQ(rank_of[i], holder[i]) << i;
      }
  }
}

TEST(AScheduleOverGpus, HasFewSubtrees) {
  SAMESUM_UNSANITIZED("the tests of partials access the same memory");
  const std::uint64_t most = std::uint64_t{1} << 30;
  for (const std::uint64_t first : {most, most + 1, most - 1, most + 123'456'789})
    EXPECT_LE(schedule_of(std::vector{first, 2 * most - first}, 4096).states_per_rank, 21u) << first;
}

}  // namespace
}  // namespace samesum::nccl
