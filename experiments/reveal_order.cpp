/// In which order does each sum add?
#include <algorithm>
#include <map>

#include "harness/names.hpp"
#include "harness/peers.hpp"
#include "harness/reveal.hpp"
#include "harness/sample.hpp"
#include "harness/study.hpp"
#include "harness/text.hpp"

namespace {

using namespace samesum;
using namespace samesum::harness;

struct Question {
  const Method* method;
  std::size_t n;
  std::size_t samples;  ///< masks that are compared with the declared tree; 0: the whole tree is revealed
};

/// The length of three leaves and a part of a fourth.
constexpr std::size_t several_leaves = 3 * CoarsenedTree::leaf + 5;

std::vector<Question> questions(const std::vector<const Method*>& methods, bool full) {
  std::vector<Question> all;
  for (const Method* v : methods) {
    // Some compensated means keep the ones that M absorbs and never overflow: no mask shows their order.
    if (v->operation == "mean" && v->accumulator != "plain" && !is_peer(*v)) continue;
    all.push_back({v, 32, 0});
    if (!runs_on_gpu(*v))
      all.push_back({v, 600, 0});  // lanes have several rows; not on a GPU, where each mask costs a transfer
    if (declared_tree(*v, 1)) all.push_back({v, several_leaves, runs_on_gpu(*v) ? 24u : full ? 1000u : 64u});
  }
  return all;
}

Json found(const Question& q, std::uint64_t seed) {
  // With several threads, peers divide even short arrays in the order in which threads arrive; one thread
  // gives a tree.
  const BlackBox box{*q.method, is_peer(*q.method) ? 1 : 2};
  const Finding found = find_out(box, q.n, declared_tree(*q.method, q.n), q.samples, seed);
  const auto or_null = [](bool exists, const auto& value) { return exists ? Json(value()) : Json(nullptr); };
  return {{"masks", or_null(found.masks.has_value(), [&] { return name_of(*found.masks); })},
          {"sampled", q.samples},
          {"tree", or_null(found.tree && q.samples == 0, [&] { return found.tree->spelled(); })},
          {"height", or_null(found.tree.has_value(), [&] { return found.tree->height(); })},
          {"matches", or_null(found.matches.has_value(), [&] { return *found.matches; })},
          {"blind", or_null(!found.blind.empty(), [&] { return found.blind; })},
          {"difference", or_null(!found.difference.empty(), [&] { return found.difference; })},
          {"asked", box.asked()}};
}

std::vector<std::string> other_operations() {
  const auto others = BlackBox::operations().subspan(1);
  return {others.begin(), others.end()};
}

std::string verdict(const Json& row) {
  if (!row["matches"].is_null()) return row["matches"] ? "as declared" : "NOT AS DECLARED";
  if (!row["difference"].is_null()) return "not a tree";
  return row["masks"].is_null() ? "no order" : "revealed";
}

void ask(Study& study, const std::vector<Question>& all) {
  study.print(left("method", 29) + right("n", 6) + right("masks", 10) + right("sums", 8) +
              right("height", 8) + "  tree");
  std::map<std::string, std::vector<std::string>>
      drawn;  // trees of 32 elements, with the methods that have them
  for (const Question& q : all) {
    const Json key = with_operation({{"kind", "tree"},
                                     {"method", q.method->name},
                                     {"promise", name_of(q.method->promise)},
                                     {"input_format", q.method->format->name},
                                     {"n", q.n},
                                     {"seed", study.seed()}},
                                    *q.method);
    const Json row = study.row(key, [&] { return found(q, study.seed()); });
    const auto or_none = [&](const char* field) {
      return row[field].is_null()     ? std::string{"-"}
             : row[field].is_string() ? row[field].get<std::string>()
                                      : row[field].dump();
    };
    study.print(left(q.method->name, 29) + right(std::to_string(q.n), 6) + right(or_none("masks"), 10) +
                right(or_none("asked"), 8) + right(or_none("height"), 8) + "  " + verdict(row));
    if (q.n == 32 && row["tree"].is_string()) drawn[row["tree"]].push_back(q.method->name);
    if (row["matches"] == Json(false))
      study.fail(q.method->name + ", n = " + std::to_string(q.n) + ": not the declared tree" +
                 (row["difference"].is_string() ? ": " + row["difference"].get<std::string>() : ""));
  }
  for (const auto& [tree, names] : drawn) {
    std::string text = names.front() +
                       (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "") +
                       ", tree of 32 elements: ";
    for (const char c : tree) text += c == '+' ? std::string{"+ "} : std::string{c};
    study.print("");
    study.print(wrapped(text));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Study study{
      "reveal_order",
      "In which order does each sum add?",
      "Each method sums masks as a black box. A mean is multiplied by n; the second vector of a dot product "
      "has only ones. Compensated means neither lose the ones that M absorbs nor overflow: they are left "
      "out. Operations whose terms have one sign, such as norm, and prod, which keeps its exponent "
      "apart "
      "and never overflows, are left out. Units: FPRev (Xie et al. 2025) sums ones with M at i and -M "
      "at j. M and -M absorb every one that is added to them before they cancel, so the result counts the "
      "leaves that are not below the lowest common ancestor of i and j, and these counts determine the "
      "tree. In fp16 a one is the smallest subnormal number; if there are more ones than the format can "
      "count, each mask has only a part of them, among zeros. Overflow: for sums that keep the ones that M "
      "absorbs, as compensated merges do, the masks have the largest number at i and j, its negative at k, "
      "and zeros "
      "elsewhere. The result is infinite if i and j meet before k meets one of them, and all these triples "
      "determine the tree (Aho et al. 1981). A sum that responds to neither mask has no order.\n\n"
      "The tree of each method of samesum is compared with the definition of its order: the whole tree for "
      "32 and 600 elements (on a GPU for 32), and sampled places for 3 leaves + 5. Peers run on one thread, "
      "and their trees are printed. Exit code 1 if a declared tree is not found.",
      {"tree"},
      "  reveal_order --filter 'tree/plain/*,eigen/*@peer'\n"
      "  reveal_order --filter 'pairwise/*@cpu' --json\n"
      "  reveal_order --full --out build/study"};
  study.add_operations(other_operations());
  return study.run(argc, argv, [](Study& s) {
    std::vector<Question> all;
    for (const std::string& operation : s.operations())
      std::ranges::copy(questions(methods_in_own_format(s.filter(), operation), s.full()),
                        std::back_inserter(all));
    s.expect(all.size());
    ask(s, all);
  });
}
