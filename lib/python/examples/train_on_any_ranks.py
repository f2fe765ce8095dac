"""Trains a small network on 1, 2 and 3 ranks, and prints a hash of its parameters: one hash.

    python train_on_any_ranks.py            on the CPU, connected by gloo
    python train_on_any_ranks.py --gpus     on 1, 2, … GPUs of this machine, connected by NCCL

Each step has a fixed list of 12 micro-batches, which the ranks share. The gradient of each is computed by one rank, and
FixedPointGradients sums them as integers, so it does not matter which rank that is. The hash is the same for any number
of ranks because PyTorch computes the gradient of a micro-batch with the same bits on each of them: on one machine, by
kernels that are deterministic, with one thread, since the number of threads may change how PyTorch adds. On another
machine, with another version of PyTorch, or on a GPU instead of a CPU the hash may differ, but not between numbers of
ranks: forward and backward are PyTorch's, and only the sum of the gradients is samesum's.
"""

import argparse
import hashlib
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import samesum.torch.distributed as same

STEPS, MICRO_BATCHES, BATCH_SIZE = 5, 12, 16


def micro_batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the same points for the same number on every rank."""
    generator = torch.Generator().manual_seed(number)
    x = torch.rand(BATCH_SIZE, 2, generator=generator)
    return x, (6 * x[:, :1]).sin() * x[:, 1:]


def train(rank: int, ranks: int, folder: str, on_gpus: bool) -> None:
    device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group(
        "nccl" if on_gpus else "gloo", init_method=f"file://{folder}/store{ranks}", rank=rank, world_size=ranks
    )
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.GELU(), torch.nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.Adam(network.parameters())
    gradients = same.FixedPointGradients(network.parameters(), MICRO_BATCHES)
    for step in range(STEPS):
        optimizer.zero_grad()
        complete = False
        while not complete:  # the first step is run twice: once to find the grids
            for i in range(rank, MICRO_BATCHES, ranks):
                x, y = micro_batch(step * MICRO_BATCHES + i)
                torch.nn.functional.mse_loss(network(x.to(device)), y.to(device)).backward()
            complete = gradients.reduce()
        optimizer.step()
    if rank == 0:
        parameters = b"".join(p.detach().cpu().numpy().tobytes() for p in network.parameters())
        print(
            f"{ranks} {'GPU' if on_gpus else 'rank'}{'s' * (ranks > 1)}:",
            hashlib.sha256(parameters).hexdigest(),
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", action="store_true", help="train on GPUs")
    on_gpus = parser.parse_args().gpus
    if on_gpus and not torch.cuda.is_available():
        parser.error("PyTorch finds no GPU; leave out --gpus")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic algorithms need it
    with tempfile.TemporaryDirectory() as folder:
        for ranks in range(1, torch.cuda.device_count() + 1) if on_gpus else (1, 2, 3):
            mp.spawn(train, (ranks, folder, on_gpus), nprocs=ranks)
