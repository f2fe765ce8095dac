#include "samesum/communicator/mpi/ranks.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "samesum/base/serial_form.hpp"

namespace samesum::mpi {
namespace {

// Longer messages are sent in pieces: MPI counts in int.
constexpr std::size_t piece = std::size_t{1} << 30;
constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

int free_duplicate(MPI_Comm, int, void* duplicate, void*) {
  auto* const comm = static_cast<MPI_Comm*>(duplicate);
  const int code = MPI_Comm_free(comm);
  delete comm;
  return code;
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
  MPI_Comm* duplicate = nullptr;
  check("MPI_Comm_get_attr", MPI_Comm_get_attr(of_user, key_of_duplicate(), &duplicate, &is_known));
  if (!is_known) {
    check("MPI_Comm_dup", MPI_Comm_dup(of_user, &comm_));
    duplicate = new MPI_Comm{comm_};
    check("MPI_Comm_set_attr", MPI_Comm_set_attr(of_user, key_of_duplicate(), duplicate));
  }
  comm_ = *duplicate;
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

std::vector<std::byte> Ranks::receive(int from) const {
  std::vector<std::byte> bytes;
  for (;;) {
    MPI_Message message;
    MPI_Status status;
    int n = 0;
    check("MPI_Mprobe", MPI_Mprobe(from, 0, comm_, &message, &status));
    check("MPI_Get_count", MPI_Get_count(&status, MPI_BYTE, &n));
    const std::size_t before = bytes.size(), more = static_cast<std::size_t>(n);
    bytes.resize(before + more);
    check("MPI_Mrecv", MPI_Mrecv(bytes.data() + before, n, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    if (more < piece) return bytes;
  }
}

void Ranks::broadcast(std::span<std::byte> bytes, int root) const {
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    check("MPI_Bcast", MPI_Bcast(bytes.data() + at, static_cast<int>(std::min(piece, bytes.size() - at)),
                                 MPI_BYTE, root, comm_));
}

std::string Ranks::broadcast(std::string text, int root) const {
  std::uint64_t size = text.size();
  broadcast(std::as_writable_bytes(std::span{&size, 1}), root);
  text.resize(static_cast<std::size_t>(size));
  broadcast(std::as_writable_bytes(std::span{text}), root);
  return text;
}

void Ranks::refuse(int rank, std::string_view message) {
  throw Error{"samesum: rank " + std::to_string(rank) + ": " + std::string{without_prefix(message)}};
}

void Ranks::agree(std::string_view call, const std::string& error) const {
  const auto lowest = [&](auto words) {
    check("MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, words.data(), static_cast<int>(words.size()),
                                         MPI_UINT64_T, MPI_MIN, comm_));
    return words;
  };
  const auto me = static_cast<std::uint64_t>(rank_);
  const std::uint64_t hash = hash_of(call);
  const auto [failed, least, complement] = lowest(std::array{error.empty() ? none : me, hash, ~hash});
  if (failed != none) {
    const int rank = static_cast<int>(failed);
    refuse(rank, broadcast(error, rank));
  }
  if (least == ~complement) return;
  const std::string first = broadcast(std::string{call}, 0);
  const auto [other] = lowest(std::array{first == call ? none : me});
  const std::string second = broadcast(std::string{call}, static_cast<int>(other));
  throw Error{"samesum: rank 0 calls " + first + ", but rank " + std::to_string(other) + " calls " + second +
              "; make the same call on all ranks"};
}

std::string description(std::string_view function, const Method& method, const Options& options) {
  return description_of_call(function, method, options) + ", states of version " +
         std::to_string(serial_version);
}

void together(MPI_Comm comm, std::string_view call, const std::function<void()>& work) {
  Ranks{comm}.agree(call, message_of(work));
}

}  // namespace samesum::mpi
