#include "samesum/communicator/mpi/ranks.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "samesum/base/serial_form.hpp"

namespace samesum::mpi {
namespace {

// A receiver can take in a piece without allocating memory.
constexpr std::size_t piece = std::size_t{1} << 16;
// MPI counts in int.
constexpr std::size_t most_broadcast = std::size_t{1} << 30;

// The attribute of a communicator is the handle of its duplicate itself, so that keeping it allocates
// nothing.
static_assert(sizeof(MPI_Comm) <= sizeof(void*) && std::is_trivially_copyable_v<MPI_Comm>);
void* attribute_of(MPI_Comm comm) {
  void* attribute = nullptr;
  std::memcpy(&attribute, &comm, sizeof comm);
  return attribute;
}
MPI_Comm comm_of(void* attribute) {
  MPI_Comm comm;
  std::memcpy(&comm, &attribute, sizeof comm);
  return comm;
}

int free_duplicate(MPI_Comm, int, void* attribute, void*) {
  MPI_Comm duplicate = comm_of(attribute);
  return MPI_Comm_free(&duplicate);
}

/// The key of the attribute with which a communicator keeps its duplicate. It lives as long as MPI.
int key_of_duplicate() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    check("MPI_Comm_create_keyval",
          MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_duplicate, &made, nullptr));
    return made;
  }();
  return key;
}

}  // namespace

void check(const char* call, int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> reason{};
  int length = 0;
  MPI_Error_string(code, reason.data(), &length);
  throw Error{std::string{"samesum: "} + call + " failed: " + reason.data()};
}

MPI_Datatype type_of_bytes(std::size_t bytes) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check("MPI_Type_contiguous", MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type));
  check("MPI_Type_commit", MPI_Type_commit(&type));
  return type;
}

Ranks::Ranks(MPI_Comm of_user) {
  int is_running = 0, is_between_groups = 0, is_known = 0;
  MPI_Initialized(&is_running);
  if (!is_running) throw Error{"samesum: MPI does not run; call MPI_Init first"};
  check("MPI_Comm_test_inter", MPI_Comm_test_inter(of_user, &is_between_groups));
  if (is_between_groups) throw Error{"samesum: comm connects two groups of ranks; pass an intracommunicator"};
  void* attribute = nullptr;
  check("MPI_Comm_get_attr", MPI_Comm_get_attr(of_user, key_of_duplicate(), &attribute, &is_known));
  if (is_known) {
    comm_ = comm_of(attribute);
  } else {
    check("MPI_Comm_dup", MPI_Comm_dup(of_user, &comm_));
    check("MPI_Comm_set_attr", MPI_Comm_set_attr(of_user, key_of_duplicate(), attribute_of(comm_)));
  }
  check("MPI_Comm_rank", MPI_Comm_rank(comm_, &rank_));
  check("MPI_Comm_size", MPI_Comm_size(comm_, &size_));
}

void Ranks::send(std::span<const std::byte> bytes, int to) const {
  for (;;) {  // a piece that is not full is the last one
    const std::size_t n = std::min(bytes.size(), piece);
    check("MPI_Send", MPI_Send(bytes.data(), static_cast<int>(n), MPI_BYTE, to, 0, comm_));
    if (n < piece) return;
    bytes = bytes.subspan(n);
  }
}

std::optional<std::vector<std::byte>> Ranks::receive(int from) const {
  std::optional<std::vector<std::byte>> all{std::in_place};
  std::array<std::byte, piece> buffer;
  for (;;) {
    MPI_Status status;
    int n = 0;
    check("MPI_Recv", MPI_Recv(buffer.data(), static_cast<int>(piece), MPI_BYTE, from, 0, comm_, &status));
    check("MPI_Get_count", MPI_Get_count(&status, MPI_BYTE, &n));
    try {
      if (all) all->insert(all->end(), buffer.data(), buffer.data() + n);
    } catch (const std::exception&) {
      all.reset();
    }
    if (static_cast<std::size_t>(n) < piece) return all;
  }
}

void Ranks::broadcast(std::span<std::byte> bytes, int root) const {
  for (std::size_t at = 0; at < bytes.size(); at += most_broadcast)
    check("MPI_Bcast",
          MPI_Bcast(bytes.data() + at, static_cast<int>(std::min(most_broadcast, bytes.size() - at)),
                    MPI_BYTE, root, comm_));
}

void Ranks::agree(const Report& mine) const {
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const auto lowest = [&](auto words) {
    check("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, words.data(), static_cast<int>(words.size()),
                                         MPI_UINT64_T, MPI_MIN, comm_));
    return words;
  };
  const auto report_of_rank = [&](std::uint64_t rank) {
    Report report = mine;
    broadcast(std::as_writable_bytes(std::span{&report, 1}), static_cast<int>(rank));
    return report;
  };
  const auto me = static_cast<std::uint64_t>(rank_);
  const auto [failed, least, complement] = lowest(std::array{mine.failed ? me : none, mine.call, ~mine.call});
  if (failed != none) throw Error{message_of_failure(failed, report_of_rank(failed))};
  if (least == ~complement) return;
  const Report first = report_of_rank(0);
  const auto [other] = lowest(std::array{first.call == mine.call ? none : me});
  throw Error{message_of_difference(first, other, report_of_rank(other))};
}

std::string description(std::string_view function, const Method& method, const Options& options) {
  return description_of_call(function, method, options) + ", states of version " +
         std::to_string(serial_version);
}

void together(MPI_Comm comm, std::string_view call, const std::function<void()>& work) {
  Ranks{comm}.agree(report_of([&] {
    work();
    return call;
  }));
}

}  // namespace samesum::mpi
