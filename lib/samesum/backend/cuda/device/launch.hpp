/// Kernel launches, and attributes of the device.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <tuple>

namespace samesum::gpu {

/// Reads an attribute of the current device.
inline cudaError_t look_up(cudaDeviceAttr attribute, int& value) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  return cudaDeviceGetAttribute(&value, attribute, device);
}

/// Sets `count` to the number of blocks of a kernel that run at once on the current device.
template <class... Parameter>
cudaError_t resident_blocks(void (*kernel)(Parameter...), int threads, std::size_t& count,
                            std::size_t shared = 0) {
  int processors = 0, per_processor = 0;
  cudaError_t error = look_up(cudaDevAttrMultiProcessorCount, processors);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &per_processor, reinterpret_cast<const void*>(kernel), threads, shared);
  count = static_cast<std::size_t>(processors) * static_cast<std::size_t>(per_processor);
  return error;
}

/// Lets a kernel use so many bytes of dynamic shared memory; more than 48 KiB need that.
inline cudaError_t allow_shared(const void* kernel, std::size_t bytes) {
  if (bytes <= std::size_t{48} << 10) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

/// Calls enqueue(pointers) with pointers to the parameters of a kernel.
template <class... Parameter, class Enqueue, class... Argument>
cudaError_t with_parameters(void (*)(Parameter...), Enqueue enqueue, Argument... argument) {
  std::tuple<Parameter...> parameters{argument...};
  return std::apply(
      [&](auto&... p) {
        std::array<void*, sizeof...(p)> pointers{&p...};
        return enqueue(pointers.data());
      },
      parameters);
}

/// kernel<<<blocks, threads, shared, stream>>>(arguments…). Returns the error of cudaLaunchKernel; does not
/// read cudaGetLastError, where an error of an earlier call may be pending. More than 2^31 - 1 blocks give
/// cudaErrorInvalidConfiguration.
template <class... Parameter, class... Argument>
cudaError_t launch_with(std::size_t shared, void (*kernel)(Parameter...), std::size_t blocks, int threads,
                        cudaStream_t stream, Argument... argument) {
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  const auto* const of = reinterpret_cast<const void*>(kernel);
  if (const cudaError_t error = allow_shared(of, shared)) return error;
  return with_parameters(
      kernel,
      [&](void** parameters) {
        return cudaLaunchKernel(of, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                                parameters, shared, stream);
      },
      argument...);
}

/// Launches a cooperative kernel, as launch_with. All of its blocks must run at once.
template <class... Parameter, class... Argument>
cudaError_t launch_cooperative(void (*kernel)(Parameter...), std::size_t blocks, int threads,
                               cudaStream_t stream, Argument... argument) {
  return with_parameters(
      kernel,
      [&](void** parameters) {
        return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel),
                                           dim3(static_cast<unsigned>(blocks)),
                                           dim3(static_cast<unsigned>(threads)), parameters, 0, stream);
      },
      argument...);
}

/// kernel<<<blocks, threads, 0, stream>>>(arguments…), as launch_with.
template <class... Parameter, class... Argument>
cudaError_t launch(void (*kernel)(Parameter...), std::size_t blocks, int threads, cudaStream_t stream,
                   Argument... argument) {
  return launch_with(0, kernel, blocks, threads, stream, argument...);
}

}  // namespace samesum::gpu
