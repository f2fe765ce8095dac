/// Exact states and partials as elements of MPI's own collectives.
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "samesum/communicator/mpi/ranks.hpp"

namespace samesum::mpi {
namespace {

static_assert(std::is_trivially_copyable_v<Exact>, "samesum: MPI copies states as bytes");

MPI_Op new_op(MPI_User_function* function, bool commutes) {
  MPI_Op op = MPI_OP_NULL;
  check("MPI_Op_create", MPI_Op_create(function, commutes, &op));
  return op;
}

void add_exact(void* in, void* in_out, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(in_out);
  for (int i = 0; i < *count; ++i, from += sizeof(Exact), to += sizeof(Exact)) {
    Exact left, right;  // MPI's buffers need not be aligned
    std::memcpy(&left, from, sizeof left);
    std::memcpy(&right, to, sizeof right);
    left.merge(right);
    std::memcpy(to, &left, sizeof left);
  }
}

// A packed partial is the number of its bytes, these, and zeros. A number that no partial has means that a
// merge has failed: MPI's functions cannot throw.
using PackedSize = std::uint32_t;
constexpr PackedSize failed = 0xffffffff;

std::vector<std::byte> packed(const Partial& partial, std::size_t size) {
  const std::vector<std::byte> bytes = partial.serialise();
  const auto count = static_cast<PackedSize>(bytes.size());
  std::vector<std::byte> all(size);
  std::memcpy(all.data(), &count, sizeof count);
  std::memcpy(all.data() + sizeof count, bytes.data(), bytes.size());
  return all;
}

std::span<const std::byte> unpacked(std::span<const std::byte> all) {
  PackedSize count = failed;
  if (all.size() >= sizeof count) std::memcpy(&count, all.data(), sizeof count);
  if (all.size() < sizeof count || count > all.size() - sizeof count)
    throw std::invalid_argument(
        "samesum: the bytes are no packed partial, or partials that were merged were damaged or no "
        "neighbours");
  return all.subspan(sizeof count, count);
}

void merge_partials(void* in, void* in_out, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const auto size = static_cast<std::size_t>(bytes);
  for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i) {
    const auto at = [&](void* all) { return static_cast<std::byte*>(all) + i * size; };
    std::byte* const to = at(in_out);
    try {
      Partial left = Partial::deserialise(unpacked({at(in), size}));
      left.merge(Partial::deserialise(unpacked({to, size})));
      std::memcpy(to, packed(left, size).data(), size);
    } catch (const std::exception&) {
      std::memcpy(to, &failed, sizeof failed);
    }
  }
}

/// The bytes of a packed partial. All partials have one size but that of no elements, which is smaller.
std::size_t size_of_packed(const Method& method, std::optional<int> grid) {
  Partial partial{find_on("cpu", method), 0, grid};
  if (method.promise < Promise::order_free)
    throw std::invalid_argument("samesum: PackedPartials of " + method.name +
                                ": its partials have different sizes; call mpi::reduce");
  const std::uint64_t zero = 0;
  const Values one{*method.format, &zero, 1};
  if (method.inputs == 2)
    partial.add(one, one);
  else
    partial.add(one);
  return sizeof(PackedSize) + partial.serialise().size();
}

}  // namespace

// Types and operators without an owner live as long as MPI.
MPI_Datatype exact_type() {
  static const MPI_Datatype type = type_of_bytes(sizeof(Exact));
  return type;
}
MPI_Op exact_sum() {
  static const MPI_Op op = new_op(add_exact, true);
  return op;
}

PackedPartials::PackedPartials(const Method& method, std::optional<int> grid)
    : method_{find(method.name)},
      grid_{grid},
      size_{size_of_packed(method, grid)},
      type_{type_of_bytes(size_)},
      merge_{new_op(merge_partials, false)} {}

PackedPartials::~PackedPartials() {
  MPI_Type_free(&type_);
  MPI_Op_free(&merge_);
}

std::vector<std::byte> PackedPartials::pack(const Partial& partial) const {
  Partial same{method_, partial.end(), grid_};
  same.merge(Partial{partial.method(), partial.end(), partial.grid()});  // throws for another method or grid
  return packed(partial, size_);
}

Partial PackedPartials::unpack(std::span<const std::byte> bytes) const {
  return Partial::deserialise(unpacked(bytes), method_);
}

}  // namespace samesum::mpi
