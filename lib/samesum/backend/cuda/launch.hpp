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

/// kernel<<<blocks, threads, 0, stream>>>(arguments…). Returns the error of cudaLaunchKernel; does not read
/// cudaGetLastError, where an error of an earlier call may be pending. More than 2^31 - 1 blocks give
/// cudaErrorInvalidConfiguration.
template <class... Parameter, class... Argument>
cudaError_t launch(void (*kernel)(Parameter...), std::size_t blocks, int threads, cudaStream_t stream,
                   Argument... argument) {
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  std::tuple<Parameter...> parameters{argument...};
  return std::apply(
      [&](auto&... p) {
        std::array<void*, sizeof...(p)> pointers{&p...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
                                dim3(static_cast<unsigned>(threads)), pointers.data(), 0, stream);
      },
      parameters);
}

}  // namespace samesum::gpu
