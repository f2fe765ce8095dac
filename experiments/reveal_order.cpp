/// In which order does each sum add?
#include <algorithm>
#include <map>

#include "harness/commands.hpp"
#include "harness/peers.hpp"
#include "harness/reveal.hpp"
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

/// A length that takes three leaves and a part of one.
constexpr std::size_t several_leaves = 3 * CoarsenedTree::leaf + 5;

std::vector<Question> questions(const std::vector<const Method*>& methods, bool full) {
  std::vector<Question> all;
  for (const Method* v : methods) {
    all.push_back({v, 32, 0});
    if (!runs_on_gpu(*v))
      all.push_back({v, 600, 0});  // lanes of several rows; on a GPU each mask takes a transfer
    if (declared_tree(*v, 1)) all.push_back({v, several_leaves, runs_on_gpu(*v) ? 24u : full ? 1000u : 64u});
  }
  return all;
}

Json found(const Question& q, std::uint64_t seed) {
  // Peers share short arrays out as their threads come; with one there is a tree to be seen.
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

std::string verdict(const Json& row) {
  if (!row["matches"].is_null()) return row["matches"] ? "as declared" : "NOT AS DECLARED";
  if (!row["difference"].is_null()) return "no tree";
  return row["masks"].is_null() ? "no order" : "drawn";
}

void ask(Study& study, const std::vector<Question>& all) {
  study.print(left("method", 29) + right("n", 6) + right("masks", 10) + right("sums", 8) +
              right("height", 8) + "  tree");
  std::map<std::string, std::vector<std::string>> drawn;  // who adds 32 elements in that tree
  for (const Question& q : all) {
    const Json key = {{"kind", "tree"},
                      {"method", q.method->name},
                      {"promise", name_of(q.method->promise)},
                      {"input_format", q.method->format->name},
                      {"n", q.n},
                      {"seed", study.seed()}};
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
                       " add 32 elements so: ";
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
      "A black box is asked for sums of masks. Units: FPRev (Xie et al. 2025) sums ones with M at i and "
      "-M at j, which absorb those that meet M first; what is returned counts the leaves that are not "
      "below the lowest common ancestor of i and j, and these sizes give the tree. In fp16 a one is "
      "the smallest subnormal number, and where there are more ones than the format can count, a part "
      "of them stands among zeros at a time. Overflow: where units are kept beside M, as "
      "by compensated merges, zeros with the largest number at i and j and its negative at k are summed: "
      "infinite where i and j meet before k meets one of them. All these triples give the tree (Aho et "
      "al. 1981). What sees none of both has no order.\n\n"
      "The tree of our methods is compared with that of their order's definition: whole for 32 and 600 "
      "elements (on a GPU for 32), at sampled places for 3 leaves + 5. Peers run on one thread, and "
      "theirs is drawn. Exit code 1 if a declared tree is not found.",
      {"tree"},
      "  reveal_order --filter 'tree/plain/*,eigen/*@peer'\n"
      "  reveal_order --filter 'pairwise/*@cpu' --json\n"
      "  reveal_order --full --out build/study"};
  return study.run(argc, argv, [](Study& s) {
    const std::vector<Question> all = questions(methods_in_own_format(s.filter()), s.full());
    s.expect(all.size());
    ask(s, all);
  });
}
