// Vectors over all GPUs of this machine, one thread per GPU. Several processes work alike.
#include <cuda_runtime.h>

#include <cstdio>
#include <samesum/nccl.hpp>
#include <thread>
#include <vector>

void run(int rank, int gpus, ncclComm_t comm) {
  cudaSetDevice(rank);
  cudaStream_t stream;
  cudaStreamCreate(&stream);

  // The vector 1, 1/2, 1/3, … is cut into a block per GPU, of any length.
  std::vector<float> block;
  for (int i = 100000 * rank / gpus; i < 100000 * (rank + 1) / gpus; ++i)
    block.push_back(1.0f / static_cast<float>(i + 1));
  float *x, *out, result[2];
  cudaMalloc(&x, block.size() * sizeof *x);
  cudaMalloc(&out, sizeof result);
  cudaMemcpy(x, block.data(), block.size() * sizeof *x, cudaMemcpyHostToDevice);

  // A plan is made once, by all ranks. Its calls are asynchronous, and can be captured in a CUDA graph.
  const samesum::FormatInfo& fp32 = samesum::format_info<float>();
  const samesum::Method& kahan = samesum::gpu::find("tree/kahan/fp32");
  samesum::nccl::Plan sum = samesum::nccl::Plan::reduce(kahan, fp32, block.size(), comm);
  sum.enqueue({fp32, x, block.size()}, {&fp32, out, 1}, stream);
  cudaMemcpyAsync(&result[0], out, sizeof *out, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);

  // Element by element: each GPU contributes a vector, such as a gradient, and gets the mean of all.
  const float gradient = 0.1f;
  cudaMemcpy(x, &gradient, sizeof gradient, cudaMemcpyHostToDevice);
  samesum::nccl::all_reduce(samesum::gpu::find("mean/exact/fp32"), {fp32, x, 1}, {&fp32, out, 1}, comm,
                            stream);
  cudaMemcpy(&result[1], out, sizeof *out, cudaMemcpyDeviceToHost);
  if (rank == 0) std::printf("one vector  %.9g\nelements    %g\n", result[0], result[1]);
}

int main() {
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  std::vector<ncclComm_t> comms(gpus);
  ncclCommInitAll(comms.data(), gpus, nullptr);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < gpus; ++rank) threads.emplace_back(run, rank, gpus, comms[rank]);
}
