/// What the backends give to the table of softmaxes.
#pragma once

#include "samesum/operation/softmax.hpp"

namespace samesum {

namespace reference {
/// The definition, read out loud: loops over the elements of one row after the other.
void softmax(const SoftmaxCall& call);
}  // namespace reference

namespace cpu {
void softmax(const SoftmaxCall& call);
}  // namespace cpu

namespace gpu {
/// Whether there is a GPU, and kernels for it.
bool has_softmax();
}  // namespace gpu

}  // namespace samesum
