#include "harness/provenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/schema.hpp"

namespace samesum::harness {
namespace {

Json processor_of(const std::string& cpuinfo) {
  std::istringstream in{cpuinfo};
  return processor(in);
}

TEST(AProcessor, IsIdentifiedByFamilyModelAndSteppingAndItsCoresAreCountedOverAllSockets) {
  const auto thread = [](int socket, int core) {
    return "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: "
           "Intel(R) "
           "Xeon(R) Processor\nstepping\t: 8\nphysical id\t: " +
           std::to_string(socket) + "\ncore id\t\t: " + std::to_string(core) + "\n\n";
  };
  const std::string two_sockets_of_two_cores = thread(0, 0) + thread(0, 1) + thread(1, 0) + thread(1, 1);
  EXPECT_EQ(processor_of(two_sockets_of_two_cores + thread(1, 1)), Json({{"vendor", "GenuineIntel"},
                                                                         {"family", 6},
                                                                         {"model", 143},
                                                                         {"stepping", 8},
                                                                         {"sockets", 2},
                                                                         {"cores", 4}}));
}

TEST(AProcessor, OfArmIsIdentifiedToo) {
  const Json found =
      processor_of("CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\nCPU revision\t: 1\n");
  EXPECT_EQ(found, Json({{"vendor", "0x41"},
                         {"family", 8},
                         {"model", 0xd40},
                         {"stepping", 1},
                         {"sockets", nullptr},
                         {"cores", nullptr}}));
}

TEST(AProcessor, ThatTellsNothingIsUnknown) {
  const Json unknown = processor_of("");
  EXPECT_EQ(unknown.size(), 6u);
  for (const auto& [name, value] : unknown.items()) EXPECT_TRUE(value.is_null()) << name;
}

TEST(ClocksOfAGpu, AreThoseThatTheDriverTells) {
  Json about;
  add_gpu(about, "580.95.05, 345, 1980, 3201, 3201, 700.00\n");
  EXPECT_EQ(about, Json({{"gpu_driver", "580.95.05"},
                         {"clocks",
                          {{"gpu_sm_mhz", 345},
                           {"gpu_sm_max_mhz", 1980},
                           {"gpu_memory_mhz", 3201},
                           {"gpu_memory_max_mhz", 3201},
                           {"gpu_power_limit_w", 700}}}}));
}

TEST(ClocksOfAGpu, AreNullIfTheDriverDoesNotTellThem) {
  for (const std::string line : {"", "[N/A], [N/A], [N/A], [N/A], [N/A], [N/A]\n",
                                 "NVIDIA-SMI has failed because it found no driver\n"}) {
    Json about;
    add_gpu(about, line);
    EXPECT_TRUE(about["gpu_driver"].is_null()) << line;
    EXPECT_EQ(about["clocks"].size(), 5u) << line;
    for (const auto& [name, value] : about["clocks"].items())
      EXPECT_TRUE(value.is_null()) << name << ' ' << line;
  }
}

TEST(Libraries, AreKnownByName) {
  EXPECT_EQ(libraries("Boost 1.83.0, Eigen3 3.4.0, , OpenMP 4.5"),
            Json({{"Boost", "1.83.0"}, {"Eigen3", "3.4.0"}, {"OpenMP", "4.5"}}));
  EXPECT_EQ(libraries(""), Json::object());
}

TEST(Provenance, HasTheProcessorTheClocksAndTheLibrariesOfThisMachine) {
  const Json here = provenance();
  EXPECT_EQ(schema().problem(here, "provenance"), "");
  for (const char* name : {"processor", "clocks", "libraries"}) EXPECT_TRUE(here.contains(name)) << name;
  EXPECT_TRUE(here["libraries"].contains("Boost"));
  EXPECT_EQ(here["gpu"].is_null(), !here.contains("gpu_driver"));
}

}  // namespace
}  // namespace samesum::harness
