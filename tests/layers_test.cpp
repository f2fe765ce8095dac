/// Folders are layers: includes between them form no cycle, so that each folder has a floor above all that it
/// includes. The folder of a backend has rooms, which are layers like all folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const fs::path root = SAMESUM_SOURCE_DIR;
const std::string library = "lib/samesum", backends = library + "/backend/";

/// Most files in a room, its README.md included: about as many as a listing shows at one glance; and most
/// lines in a file.
constexpr std::size_t most_files_in_a_room = 20, most_lines_in_a_file = 400;

/// Files of the repository that each file includes by a name in quotation marks.
using Includes = std::map<std::string, std::set<std::string>>;

/// The file that an include of that name means; empty if it is generated.
std::string included_file(const fs::path& from, const std::string& name) {
  for (const fs::path& folder :
       {fs::path{"lib"}, fs::path{"experiments"}, fs::path{"tests"}, from.parent_path()})
    if (fs::exists(root / folder / name)) return (folder / name).lexically_normal();
  return {};
}

Includes read_includes() {
  const std::regex include{R"re(^\s*#include ["<]([^">]+)[">])re"};
  Includes all;
  for (const char* top : {"lib", "experiments", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator{root / top}) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".hpp" && extension != ".cpp" && extension != ".cu" &&
          extension != ".cuh")
        continue;
      const fs::path path = fs::relative(entry.path(), root);
      std::set<std::string>& files = all[path];
      std::ifstream file{entry.path()};
      for (std::string line; std::getline(file, line);)
        if (std::smatch match; std::regex_search(line, match, include))
          if (const std::string target = included_file(path, match[1]); !target.empty()) files.insert(target);
    }
  }
  return all;
}

const Includes& includes() {
  static const Includes all = read_includes();
  return all;
}

/// The folder of a file. All tests are one folder, since they may include each other's support.
std::string folder_of(const std::string& file) {
  return file.starts_with("tests/") ? "tests" : fs::path{file}.parent_path().string();
}

/// The backend of a file: the folder below `backends`; empty if it belongs to none.
std::string backend_of(const std::string& file) {
  return file.starts_with(backends) ? file.substr(0, file.find('/', backends.size())) : "";
}

/// The folders of backends and their rooms, with the names of their files.
std::map<std::string, std::set<std::string>> files_of_rooms() {
  std::map<std::string, std::set<std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator{root / backends})
    if (const fs::path path = fs::relative(entry.path(), root); entry.is_regular_file())
      files[path.parent_path()].insert(path.filename());
    else
      files[path];
  return files;
}

/// Files that declare each type at namespace scope: in the backends "cpu" and "cuda", and in the folders
/// below them. Declarations at namespace scope are not indented.
std::map<std::string, std::set<std::string>> files_of_types() {
  const std::regex type{
      R"re(^(?:template <.*> )?(?:(?:struct|class|union|enum|enum class) (?:alignas\(.*\) )?(\w+)(?: :.*| \{.*)?|using (\w+) =.*)$)re"};
  const std::regex above{"/(reference|interface|communicator)/"};
  std::map<std::string, std::set<std::string>> files;
  for (const auto& [path, targets] : includes()) {
    if (!path.starts_with(library + "/") || folder_of(path) == library || std::regex_search(path, above))
      continue;
    std::ifstream file{root / path};
    for (std::string line; std::getline(file, line);)
      if (std::smatch match; std::regex_match(line, match, type))
        files[match[1].matched ? match[1] : match[2]].insert(path);
  }
  return files;
}

/// All files that a file includes, directly or not.
std::set<std::string> closure(const std::string& file) {
  std::set<std::string> all;
  std::vector<std::string> open{file};
  while (!open.empty()) {
    const std::string next = open.back();
    open.pop_back();
    for (const std::string& target : includes().at(next))
      if (all.insert(target).second) open.push_back(target);
  }
  return all;
}

TEST(Folders, IncludeOnlyFoldersOfLowerFloors) {
  std::map<std::string, std::map<std::string, std::string>>
      below;  // folder, folder that it includes, an example
  for (const auto& [file, targets] : includes())
    for (const std::string& target : targets) {
      below[folder_of(target)];
      if (folder_of(file) != folder_of(target))
        below[folder_of(file)].emplace(folder_of(target), file + " includes " + target);
    }
  ASSERT_GT(below.size(), 10u);

  std::set<std::string> placed;  // folders whose floor is known, because that of all that they include is
  for (int floor = 0; placed.size() < below.size(); ++floor) {
    std::vector<std::string> here;
    for (const auto& [folder, lower] : below)
      if (!placed.contains(folder) &&
          std::ranges::all_of(lower, [&](const auto& other) { return placed.contains(other.first); }))
        here.push_back(folder);
    if (here.empty()) break;
    for (const std::string& folder : here) {
      placed.insert(folder);
      std::printf("floor %2d: %s\n", floor, folder.c_str());
    }
  }
  for (const auto& [folder, lower] : below)
    for (const auto& [other, example] : lower)
      if (!placed.contains(folder) && !placed.contains(other))
        ADD_FAILURE() << "in or above a cycle: " << example;
}

TEST(Folders, OfTheLibraryIncludeNothingOutsideIt) {
  for (const auto& [file, targets] : includes()) {
    if (!file.starts_with(library)) continue;
    for (const std::string& target : targets) EXPECT_THAT(target, StartsWith(library)) << file;
  }
}

TEST(Folders, OfDatabasesIncludeTheCInterfaceAlone) {
  std::size_t files = 0;
  for (const auto& [file, targets] : includes()) {
    if (!file.starts_with("lib/sql/")) continue;
    EXPECT_THAT(targets, testing::Each(testing::AnyOf(library + "/samesum.h", StartsWith("lib/sql/"))))
        << file;
    ++files;
  }
  EXPECT_GT(files, 0u);
}

TEST(Backends, IncludeNoOtherBackend) {
  for (const auto& [file, targets] : includes()) {
    if (backend_of(file).empty()) continue;
    for (const std::string& target : targets)
      EXPECT_TRUE(backend_of(target).empty() || backend_of(file) == backend_of(target))
          << file << " includes " << target;
  }
}

TEST(TheInterface, IncludesOnlyTheEntryPointsOfBackends) {
  for (const auto& [file, targets] : includes()) {
    if (folder_of(file) != library + "/interface") continue;
    for (const std::string& target : targets) {
      if (backend_of(target).empty()) continue;
      EXPECT_THAT(target, testing::AnyOf(backends + "cpu/schedule/methods.hpp",
                                         backends + "cuda/device/device_input.hpp"))
          << file;
    }
  }
}

TEST(Rooms, AreFoldersOfTheCpuAndOfTheGpu) {
  for (const char* backend : {"cpu", "cuda"})
    EXPECT_GT(std::ranges::count_if(
                  files_of_rooms(),
                  [&](const auto& room) { return room.first.starts_with(backends + backend + "/"); }),
              5)
        << backend;
}

TEST(Rooms, SayInAReadmeWhatHappensThereAndWhoCallsIt) {
  for (const auto& [room, files] : files_of_rooms()) EXPECT_THAT(files, Contains("README.md")) << room;
}

TEST(Rooms, HaveFewFiles) {
  for (const auto& [room, files] : files_of_rooms())
    EXPECT_LE(files.size(), most_files_in_a_room)
        << room << ": divide it by subject, so that the new rooms form no cycle";
}

TEST(Rooms, HaveShortFiles) {
  for (const auto& [file, targets] : includes()) {
    if (backend_of(file).empty()) continue;
    std::ifstream stream{root / file};
    const auto lines = std::count(std::istreambuf_iterator<char>{stream}, {}, '\n');
    EXPECT_LE(lines, std::ptrdiff_t{most_lines_in_a_file}) << file << ": divide it by subject";
  }
}

TEST(Types, OfTheBackendsHaveOneMeaning) {
  const std::map<std::string, std::string> exceptions{
      {"F", "the format that a file is compiled for"},
      {"ExactState", "the state of an exact sum; that of a GPU is one for elements of any format"},
      {"RollingTask", "the options of a rolling call that states need; each backend has its states"},
      {"RollingExtremum", "the state of a rolling minimum or maximum"},
      {"SortedRows", "the rows of a call in the order of their keys; each backend sorts its own"},
  };
  const auto is_of_backend = [](const std::string& file) { return !backend_of(file).empty(); };
  const auto types = files_of_types();
  EXPECT_GT(std::ranges::count_if(
                types, [&](const auto& t) { return std::ranges::any_of(t.second, is_of_backend); }),
            200);
  for (const auto& [type, files] : types) {
    const bool has_several = files.size() > 1 && std::ranges::any_of(files, is_of_backend);
    EXPECT_EQ(has_several, exceptions.contains(type))
        << type << (has_several ? " means several things, in " : " is no exception any more: ")
        << testing::PrintToString(files) << ": give each meaning a name of its own";
  }
}

TEST(TheLibrarysFolder, HasThePublicHeadersAlone) {
  std::set<std::string> files;
  for (const auto& [file, targets] : includes())
    if (folder_of(file) == library) files.insert(fs::path{file}.filename());
  EXPECT_THAT(files, UnorderedElementsAre("samesum.hpp", "samesum.h", "samesum_mpi.h", "gpu.hpp", "mpi.hpp",
                                          "nccl.hpp", "reducer.hpp", "reducer.cuh", "states.hpp",
                                          "states.cuh", "statistics.hpp", "version.hpp"));
}

/// All arithmetic of accumulators, reducers and kernels is that of pack.hpp, and that of bounds is in
/// bound.hpp. So the flags of a program that includes only these headers cannot change a bit.
TEST(AnUmbrellaHeader, IncludesNothingThatComputesInFloatingPoint) {
  EXPECT_THAT(closure(library + "/states.hpp"), Not(Contains(library + "/format/pack.hpp")));
  for (const char* header : {"/samesum.hpp", "/statistics.hpp", "/gpu.hpp", "/mpi.hpp", "/nccl.hpp"}) {
    const std::set<std::string> files = closure(library + header);
    EXPECT_THAT(files, Contains(library + "/call/method.hpp"));
    EXPECT_THAT(files, Not(Contains(library + "/format/pack.hpp"))) << header;
    EXPECT_THAT(files, Not(Contains(library + "/bound/bound.hpp"))) << header;
  }
  EXPECT_THAT(closure(library + "/reducer.hpp"), Contains(library + "/order/tree.hpp"));
}

TEST(AnUmbrellaHeader, IncludesNoTemplateOfABackend) {
  for (const char* header : {"/samesum.hpp", "/statistics.hpp", "/gpu.hpp", "/mpi.hpp", "/nccl.hpp"})
    for (const std::string& file : closure(library + header))
      if (file.starts_with(library + "/backend/")) {
        std::ifstream stream{root / file};
        const std::string text{std::istreambuf_iterator<char>{stream}, {}};
        EXPECT_EQ(text.find("template"), text.npos) << header << " includes " << file;
      }
}

}  // namespace
