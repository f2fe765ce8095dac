#include <algorithm>
#include <cstdlib>
#include <utility>

#include "samesum/mpi.hpp"
#include "tool/ranks.hpp"

namespace samesum::harness {
namespace {

/// Whether a launcher has started this process: Open MPI, one with PMIx (also Slurm), or one of MPICH's kind.
bool is_launched() {
  const char* const set_by_launchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  return std::ranges::any_of(set_by_launchers, [](const char* name) { return std::getenv(name) != nullptr; });
}

class World : public Ranks {
 public:
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~World() override { MPI_Finalize(); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void together(const std::string& what, const std::function<void()>& work) const override {
    mpi::together(MPI_COMM_WORLD, what, work);
  }
  std::uint64_t total(std::uint64_t number) const override {
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return number;
  }
  Number sum(const Method& method, std::uint64_t count, const std::function<void(Partial&)>& fill,
             const Options& options) const override {
    std::uint64_t bits = 0;
    mpi::reduce(method, count, fill, {method.format, &bits, 1}, MPI_COMM_WORLD, options);
    return {method.format, bits};
  }
  [[noreturn]] void abort(int code) const override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::abort();
  }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<Ranks> start_ranks() {
  if (!is_launched()) return nullptr;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);  // the library's threads make no calls
  auto world = std::make_unique<World>();
  return world->size() > 1 ? std::move(world) : nullptr;
}

}  // namespace samesum::harness
