/// Reductions of the states of states.hpp, and of any other state with a `merge` that may be called in any
/// order, by the threads of a warp or of a block. Include this header only in CUDA source files.
#pragma once

#include "samesum/backend/cuda/device/warp.cuh"
#include "samesum/states.hpp"

namespace samesum::gpu {

/// Merges the states of the 32 threads of a warp, all of which call it. Thread 0 of the warp gets the result;
/// the states of the others have no meaning.
///
/// Shuffles each word of the state five times. State is trivially copyable, and its size is a multiple of 4
/// bytes.
template <class State> __device__ State warp_reduce(State state) {
  merge_across(state, warp);
  return state;
}

/// Merges the states of all threads of a block, all of which call it. Thread 0 of the block gets the result;
/// the states of the others have no meaning.
///
/// The block is one-dimensional, of a multiple of 32 threads, at most 1024. Takes 32 states in static shared
/// memory, and begins with a barrier.
template <class State> __device__ State block_reduce(State state) {
  __shared__ alignas(State) unsigned char room[warp * sizeof(State)];
  state = warp_reduce(state);
  merge_warps(state, warps(), reinterpret_cast<State*>(room));
  return state;
}

}  // namespace samesum::gpu
