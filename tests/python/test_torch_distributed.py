"""Reductions over the ranks of torch.distributed: three processes that gloo connects, or one per GPU by NCCL."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import pathlib
import subprocess
import sys
from typing import Any, Callable
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not (dist.is_available() and dist.is_gloo_available()):
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

import samesum  # noqa: E402
import samesum.torch.distributed as same  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
SIZES, GPUS = (1, 2, 3), (1, 2)


def serve(rank: int, backend: str, sizes: tuple[int, ...], store: str, connection: Any) -> None:
    """Calls functions on one rank until there are no more."""
    torch.set_num_threads(1)
    if backend == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=max(sizes))
    groups = {size: dist.new_group(list(range(size))) for size in sizes}
    connection.send("ready")
    while (message := connection.recv()) is not None:
        size, function, arguments = message
        try:
            result = function(groups[size], *arguments)
        except Exception as error:
            result = error
        connection.send(result)
    dist.destroy_process_group()


@contextlib.contextmanager
def workers(backend: str, sizes: tuple[int, ...], store: pathlib.Path) -> Any:
    """A function that calls another one on the first ranks, with their group, and returns what it returns or raises."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(max(sizes))]
    processes = [
        context.Process(target=serve, args=(rank, backend, sizes, str(store), there), daemon=True)
        for rank, (_, there) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for here, _ in pipes:
        assert here.poll(60) and here.recv() == "ready"

    def call(size: int, function: Callable[..., Any], *arguments: Any, seconds: int = 60) -> list[Any]:
        for here, _ in pipes[:size]:
            here.send((size, function, arguments))
        results = []
        for rank, (here, _) in enumerate(pipes[:size]):
            assert here.poll(seconds), f"rank {rank} hangs"
            results.append(here.recv())
        return results

    yield call
    for here, _ in pipes:
        here.send(None)
    for process in processes:
        process.join(20)
        process.kill()


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    with workers("gloo", SIZES, tmp_path_factory.mktemp("gloo") / "store") as call:
        yield call


@pytest.fixture(scope="module")
def on_gpus(tmp_path_factory):
    """A function as that of `on_ranks`, for ranks with a GPU each that NCCL connects."""
    if torch.cuda.device_count() < max(GPUS) or not dist.is_nccl_available():
        pytest.skip(f"needs {max(GPUS)} GPUs and NCCL")
    with workers("nccl", GPUS, tmp_path_factory.mktemp("nccl") / "store") as call:
        yield call


def here(group: Any, x: Any) -> Any:
    """Returns a tensor or a module in the memory that the group connects."""
    return x.cuda() if dist.get_backend(group) == "nccl" else x


def numbers(*shape: int, dtype=torch.float32, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * 1000).to(dtype)


def bits(t: Any) -> tuple:
    return t.dtype, tuple(t.shape), t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).tolist()


# --- reductions -----------------------------------------------------------------------------------------------


def reduced(group: Any, method: str) -> Any:
    x = numbers(20_011)
    block = x.tensor_split(dist.get_world_size(group))[dist.get_rank(group)]
    return same.reduce(here(group, block), method=method, group=group)


@pytest.mark.parametrize("method", ["exact", "tree/kahan", "pairwise/plain", "mean/exact", "norm/tree", "argmax"])
def test_the_number_of_ranks_changes_no_bit(on_ranks, method):
    function = getattr(samesum, method.split("/")[0], samesum.sum)
    expected = function(numbers(20_011), **({} if method == "argmax" else {"method": method})).item()
    assert [on_ranks(size, reduced, method) for size in SIZES] == [[expected] * size for size in SIZES]


def all_reduced(group: Any, x: Any, method: str, check: bool) -> Any:
    mine = here(group, x[dist.get_rank(group)].clone()).requires_grad_(x.dtype.is_floating_point)
    found = same.all_reduce(mine, method=method, group=group, check=check)
    assert found is mine
    return bits(found)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("size", SIZES)
def test_contributions_have_the_bits_of_one_machine(on_ranks, size, dtype):
    for shape in ((11,), (3, 4), (), (0,)):
        x = numbers(size, *shape, dtype=dtype)
        for method in ("exact", "tree/kahan", "max", "mean/exact")[: 1 if dtype == torch.int64 else 4]:
            function = getattr(samesum, method.split("/")[0], samesum.sum)
            expected = function(x, axis=0, method=method)
            assert on_ranks(size, all_reduced, x, method, shape != (11,)) == [bits(expected)] * size


def transposed(group: Any, x: Any) -> Any:
    mine = x[dist.get_rank(group)].clone().t()  # the ranks share the memory of x
    same.all_reduce(mine, group=group)
    return bits(mine)


def test_a_tensor_that_is_not_contiguous_is_reduced_in_place(on_ranks):
    x = numbers(3, 4, 5)
    assert on_ranks(3, transposed, x) == [bits(samesum.sum(x, axis=0).t())] * 3


def scattered(group: Any, x: Any) -> Any:
    out = here(group, torch.empty(6 // dist.get_world_size(group), 5))
    assert (
        same.reduce_scatter(here(group, x[dist.get_rank(group)].bfloat16()), out, method="tree/plain/fp32", group=group)
        is out
    )
    return bits(out)


def test_each_rank_gets_its_share_of_the_results(on_ranks):
    x = numbers(3, 6, 5)
    expected = samesum.sum(x.bfloat16(), axis=0, method="tree/plain/fp32")
    assert on_ranks(3, scattered, x) == [bits(part) for part in expected.split(2)]


# --- errors ---------------------------------------------------------------------------------------------------


def other_method(group: Any) -> Any:
    same.reduce(torch.ones(9), method="tree/plain" if dist.get_rank(group) == 2 else "exact", group=group)


def other_shape(group: Any) -> Any:
    same.all_reduce(torch.ones(9 - dist.get_rank(group)), group=group)


def other_type(group: Any) -> Any:
    same.all_reduce(torch.ones(9, dtype=torch.float64 if dist.get_rank(group) == 1 else torch.float32), group=group)


def no_tensor(group: Any) -> Any:
    same.all_reduce([1.0] if dist.get_rank(group) == 1 else torch.ones(1), group=group)


def other_micro_batches(group: Any) -> Any:
    same.FixedPointGradients([torch.nn.Parameter(torch.ones(3))], 4 + dist.get_rank(group), group=group)


def other_correction(group: Any) -> Any:
    correction = (lambda: 1) if dist.get_rank(group) == 1 else 1
    same.reduce(torch.ones(9), method="moments/exact", correction=correction, group=group)


def no_parameters(group: Any) -> Any:
    parameters = None if dist.get_rank(group) == 1 else [torch.nn.Parameter(torch.ones(3))]
    same.FixedPointGradients(parameters, 4, group=group)


def no_leaf(group: Any) -> Any:
    parameter = torch.nn.Parameter(torch.ones(3))
    same.FixedPointGradients([parameter * 2 if dist.get_rank(group) == 1 else parameter], 4, group=group)


def no_grids(group: Any) -> Any:
    gradients = same.FixedPointGradients([torch.nn.Parameter(torch.ones(3))], 4, group=group)
    if dist.get_rank(group) == 1:
        gradients.grids = ["fine"]
    gradients.reduce()


def shared_out(group: Any) -> Any:
    out = torch.ones(1).expand(9) if dist.get_rank(group) == 1 else torch.ones(9)
    same.all_reduce(torch.ones(9), out=out, group=group)


def sparse_out(group: Any) -> Any:
    out = torch.ones(3)
    same.reduce_scatter(torch.ones(9), out.to_sparse() if dist.get_rank(group) == 1 else out, group=group)


def out_of_inference_mode(group: Any) -> Any:
    with torch.inference_mode(dist.get_rank(group) == 1):
        x = torch.ones(9)
    same.all_reduce(x, group=group)


def damaged(group: Any) -> Any:
    to_bytes = samesum.Partial.to_bytes
    if dist.get_rank(group) == 1:
        samesum.Partial.to_bytes = lambda self: to_bytes(self)[:-1]
    try:
        same.reduce(torch.ones(9), group=group)
    finally:
        samesum.Partial.to_bytes = to_bytes


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (other_method, ValueError, "the method is sum/exact/fp32 on rank 0 and sum/tree/plain/fp32 on rank 2"),
        (other_shape, ValueError, r"the shape is \(9,\) on rank 0 and \(8,\) on rank 1"),
        (other_type, ValueError, "the method is sum/exact/fp32 on rank 0 and sum/exact/fp64 on rank 1"),
        (no_tensor, TypeError, "all_reduce failed on rank 1: x is a list; pass a tensor"),
        (other_micro_batches, ValueError, "the number of micro_batches is 4 on rank 0 and 5 on rank 1"),
        (damaged, ValueError, "the partial of rank 1 did not arrive whole"),
        (other_correction, TypeError, "reduce failed on rank 1: float"),
        (no_parameters, TypeError, "FixedPointGradients failed on rank 1: 'NoneType' object is not iterable"),
        (no_leaf, RuntimeError, "FixedPointGradients failed on rank 1: .* non-leaf"),
        (no_grids, TypeError, "FixedPointGradients.reduce failed on rank 1: bad operand type"),
        (shared_out, ValueError, "all_reduce failed on rank 1: out is sparse, or its elements share memory"),
        (sparse_out, ValueError, "reduce_scatter failed on rank 1: out is sparse, or its elements share memory"),
        (out_of_inference_mode, ValueError, "all_reduce failed on rank 1: out is a tensor of inference mode"),
    ],
)
def test_an_error_on_one_rank_is_raised_on_every_rank(on_ranks, call, error, message):
    for raised in on_ranks(3, call, seconds=10):
        with pytest.raises(error, match=message):
            raise raised


class LittleMemory(torch.overrides.TorchFunctionMode):
    """Lets PyTorch allocate some tensors, and then no more. What connects the ranks keeps its own memory."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left, self.is_carrying = left, False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        allocates = {
            "arange",
            "cat",
            "clone",
            "contiguous",
            "empty",
            "empty_like",
            "full",
            "new_empty",
            "tensor",
            "zeros",
        }
        if function.__name__ in allocates and not self.is_carrying:
            self.left -= 1
            if self.left < 0:
                raise torch.OutOfMemoryError("the memory is full")
        return function(*args, **(kwargs or {}))

    def carrying(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def carry(*arguments: Any, **options: Any) -> Any:
            self.is_carrying = True
            try:
                return function(*arguments, **options)
            finally:
                self.is_carrying = False

        return carry


def with_little_memory(group: Any, call: Callable[[Any], Any], left: int) -> Any:
    if dist.get_rank(group) != 1:
        return bits(call(group))
    memory = LittleMemory(left)
    names = ("all_gather_object", "all_to_all_single", "all_gather_into_tensor", "all_reduce")
    with mock.patch.multiple(dist, **{name: memory.carrying(getattr(dist, name)) for name in names}), memory:
        result = call(group)
    return bits(result)


def reduced_padded(group: Any) -> Any:
    return same.all_reduce(numbers(2, 5).t(), group=group)


def reduced_into_shares(group: Any) -> Any:
    return same.reduce_scatter(numbers(9), torch.as_tensor([0.0] * 3), group=group)


def one_step(group: Any) -> Any:
    p = torch.nn.Parameter(torch.as_tensor([1.0, 2.0]))
    gradients = same.FixedPointGradients([p], 2, group=group)
    gradients.grids = [-30]
    if dist.get_rank(group) < 2:
        p.sum().backward()
    assert gradients.reduce()
    return p.grad


@pytest.mark.parametrize(("call", "least"), [(reduced_padded, 4), (reduced_into_shares, 2), (one_step, 6)])
def test_memory_that_one_rank_lacks_raises_on_every_rank(on_ranks, call, least):
    for allocations in itertools.count():
        found = on_ranks(3, with_little_memory, call, allocations, seconds=10)
        if not any(isinstance(f, Exception) for f in found):
            break
        for raised in found:
            with pytest.raises(RuntimeError, match="failed on rank 1: the memory is full"):
                raise raised
    assert allocations >= least


def outside(group: Any) -> Any:
    pair = dist.new_group([0, 1])
    return dist.get_rank(group) < 2 or same.all_reduce(torch.ones(3), group=pair)


def test_a_rank_outside_the_group_is_told_so(on_ranks):
    with pytest.raises(ValueError, match="this rank is not in the group"):
        raise on_ranks(3, outside)[2]


# --- training -------------------------------------------------------------------------------------------------


def model(**options: Any) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7, **options), torch.nn.Tanh(), torch.nn.Linear(7, 1, **options))


def batch(i: int) -> tuple[Any, Any]:
    x = numbers(4, 5, seed=i) / 1000
    return x, x.sum(1, keepdim=True).sin()


def loss_of(network: Any, i: int) -> Any:
    x, y = (t.to(next(network.parameters()).device) for t in batch(i))
    return (network(x) - y).square().mean()


def hooked(group: Any) -> Any:
    network = torch.nn.parallel.DistributedDataParallel(here(group, model()), process_group=group)
    network.register_comm_hook(group, same.exact_mean_hook)
    loss_of(network, dist.get_rank(group)).backward()
    return [bits(p.grad) for p in network.parameters()]


def mean_gradients(group: Any, size: int) -> Any:
    """What the hook gives on so many ranks, found on one."""
    gradients = []
    for rank in range(size):
        network = here(group, model())
        loss_of(network, rank).backward()
        gradients.append([p.grad.cpu() for p in network.parameters()])
    return [bits(samesum.mean(torch.stack(g), axis=0)) for g in zip(*gradients)]


@pytest.mark.parametrize("size", SIZES)
def test_the_hook_gives_the_rounded_mean_of_all_gradients(on_ranks, size):
    expected = on_ranks(1, mean_gradients, size)
    assert on_ranks(size, hooked) == expected * size


MICRO_BATCHES = 6


def accumulated(group: Any, steps: int = 3, order: int = 1, scale: tuple[float, ...] = (1.0, 1.0, 1.0)) -> Any:
    """Trains for some steps; returns the bits of parameters, the grids, and how often each step was run."""
    network = here(group, model())
    gradients = same.FixedPointGradients(network.parameters(), MICRO_BATCHES, group=group)
    runs = []
    for step in range(steps):
        runs.append(0)
        done = False
        while not done:
            runs[-1] += 1
            for i in range(MICRO_BATCHES)[dist.get_rank(group) :: dist.get_world_size(group)][::order]:
                (loss_of(network, step * MICRO_BATCHES + i) * scale[step]).backward()
                assert all(p.grad is None for p in network.parameters())
            done = gradients.reduce()
        for p in network.parameters():
            p.data -= 0.1 * p.grad
        network.zero_grad()
    gradients.remove()
    return [bits(p) for p in network.parameters()], gradients.grids, runs


def test_the_number_of_ranks_and_the_order_of_micro_batches_change_no_bit_of_accumulated_gradients(on_ranks):
    first = on_ranks(1, accumulated)[0]
    assert first[2] == [2, 1, 1]  # the first step finds the grids
    for size in SIZES:
        for order in (1, -1):
            assert on_ranks(size, accumulated, 3, order) == [first] * size


def test_an_overflow_of_the_grid_is_found_and_the_step_done_again_on_every_rank(on_ranks):
    scale = (1.0, 1e6, 1e-3)
    first = on_ranks(1, accumulated, 3, 1, scale)[0]
    assert first[2] == [2, 2, 1]
    assert on_ranks(3, accumulated, 3, 1, scale) == [first] * 3


def train_on(network: Any, gradients: Any, steps: range) -> None:
    for step in steps:
        done = False
        while not done:
            for i in range(MICRO_BATCHES):
                loss_of(network, step * MICRO_BATCHES + i).backward()
            done = gradients.reduce()
        for p in network.parameters():
            p.data -= 0.1 * p.grad
        network.zero_grad()


def test_training_that_resumes_with_the_grids_has_the_same_bits():
    whole, first, second = model(), model(), model()
    train_on(whole, same.FixedPointGradients(whole.parameters(), MICRO_BATCHES), range(4))
    before = same.FixedPointGradients(first.parameters(), MICRO_BATCHES)
    train_on(first, before, range(2))
    second.load_state_dict(first.state_dict())
    after = same.FixedPointGradients(second.parameters(), MICRO_BATCHES)
    after.grids = before.grids
    train_on(second, after, range(2, 4))
    assert [bits(p) for p in second.parameters()] == [bits(p) for p in whole.parameters()]


def test_accumulated_gradients_are_sums_on_the_grid_divided_once():
    network = model()
    each = []
    for i in range(MICRO_BATCHES):
        loss_of(network, i).backward()
        each.append([p.grad for p in network.parameters()])
        network.zero_grad()
    gradients = same.FixedPointGradients(network.parameters(), MICRO_BATCHES, headroom=0)
    for i in range(MICRO_BATCHES):
        loss_of(network, i).backward()
    assert not gradients.reduce()
    grids = gradients.grids
    for i in range(MICRO_BATCHES):
        loss_of(network, i).backward()
    assert gradients.reduce()
    for p, g, grid in zip(network.parameters(), zip(*each), grids):
        stacked = torch.stack(g).double()
        assert stacked.abs().max() < 2.0 ** (grid + 62 - 3)
        on_grid = samesum.sum(stacked, axis=0, method="fixed_point", grid=grid)
        assert bits(p.grad) == bits((on_grid / MICRO_BATCHES).float())
        # The grid is much finer than fp32: the bits are those of the rounded mean but for ties.
        assert (p.grad - samesum.mean(torch.stack(g), axis=0)).abs().max() <= p.grad.abs().max() * 2.0**-24


def test_coarse_terms_are_rounded_once_to_the_grid_ties_to_even():
    p = torch.nn.Parameter(torch.zeros(5))
    gradients = same.FixedPointGradients([p], 3)
    gradients.grids = [0]
    for factor in (1.0, 1.0, 3.0):
        (p * torch.tensor([0.5, 1.5, -0.5, 0.3, 2.0**30])).sum().mul(factor).backward()
    assert gradients.reduce()
    assert p.grad.tolist() == torch.tensor([2.0 / 3, 8 / 3, -2 / 3, 1 / 3, 5 * 2.0**30 / 3]).tolist()


def test_gradients_that_are_not_finite_make_the_gradient_of_their_parameter_nan():
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    for special in (torch.inf, torch.nan):
        gradients = same.FixedPointGradients([a, b], 2)
        done = False
        while not done:
            (a * special + b).sum().backward()
            (a + b).sum().backward()
            done = gradients.reduce()
        assert a.grad.isnan().all() and b.grad.tolist() == [1, 1]
        gradients.remove()
        a.grad = b.grad = None


def test_a_gradient_of_the_step_before_is_refused():
    p = torch.nn.Parameter(torch.ones(2))
    gradients = same.FixedPointGradients([p], 1)
    for _ in range(2):
        p.sum().backward()
        gradients.reduce()
    with pytest.raises(RuntimeError, match=r"the gradient of the step before; call zero_grad\(\) first"):
        p.sum().backward()


def test_parameters_without_gradients_keep_none():
    a, b, frozen = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    frozen.requires_grad_(False)
    gradients = same.FixedPointGradients([a, b, frozen], 2)
    for _ in range(2):
        for _ in range(2):
            (a * frozen).sum().backward()
        done = gradients.reduce()
    assert done and a.grad.tolist() == [1, 1] and b.grad is None and frozen.grad is None


def missing_one(group: Any) -> Any:
    network = model()
    gradients = same.FixedPointGradients(network.parameters(), MICRO_BATCHES, group=group)
    loss_of(network, 0).backward()
    gradients.reduce()


def other_grids(group: Any) -> Any:
    network = model()
    gradients = same.FixedPointGradients(network.parameters(), 3, group=group)
    gradients.grids = [-40 - dist.get_rank(group)] * 4
    loss_of(network, 0).backward()
    gradients.reduce()


def test_micro_batches_that_are_missing_and_grids_that_differ_raise_on_every_rank(on_ranks):
    for raised in on_ranks(3, missing_one):
        with pytest.raises(ValueError, match="3 micro-batches were run on all ranks together, and micro_batches is 6"):
            raise raised
    for raised in on_ranks(3, other_grids):
        with pytest.raises(ValueError, match="the grids differ between ranks; load the same checkpoint on all"):
            raise raised


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 3), ValueError, "no parameter needs a gradient"),
        (([torch.nn.Parameter(torch.ones(2))], 0), ValueError, "micro_batches is 0; use 1 or more"),
        (([torch.nn.Parameter(torch.ones(2).double())], 3), TypeError, "elements of type torch.float64"),
    ],
)
def test_a_wrong_argument_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        same.FixedPointGradients(*arguments)


@pytest.mark.parametrize("on_gpus", [False, True])
def test_the_example_prints_one_hash_for_any_number_of_ranks(on_gpus):
    if on_gpus and torch.cuda.device_count() < 2:
        pytest.skip("needs 2 GPUs")
    command = [sys.executable, ROOT / "lib/python/examples/train_on_any_ranks.py", *["--gpus"] * on_gpus]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    word = "GPU" if on_gpus else "rank"
    ranks = range(1, (torch.cuda.device_count() if on_gpus else 3) + 1)
    assert [line[:2] for line in lines] == [[str(n), f"{word}{'s' * (n > 1)}:"] for n in ranks]
    assert len({line[2] for line in lines}) == 1 and len(lines[0][2]) == 64


# --- a GPU per rank -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "tree/kahan", "mean/exact", "norm/tree", "argmax"])
def test_the_number_of_gpus_changes_no_bit_of_the_cpu(on_gpus, method):
    function = getattr(samesum, method.split("/")[0], samesum.sum)
    expected = function(numbers(20_011), **({} if method == "argmax" else {"method": method})).item()
    assert [on_gpus(size, reduced, method) for size in GPUS] == [[expected] * size for size in GPUS]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", GPUS)
def test_contributions_on_gpus_have_the_bits_of_the_cpu(on_gpus, size, dtype):
    for shape in ((11,), (300, 401), (), (0,)):
        x = numbers(size, *shape, dtype=dtype)
        for method in ("exact", "tree/kahan", "max", "mean/exact"):
            function = getattr(samesum, method.split("/")[0], samesum.sum)
            expected = function(x, axis=0, method=method)
            for check in (True, False):
                assert on_gpus(size, all_reduced, x, method, check) == [bits(expected)] * size


def test_each_gpu_gets_its_share_of_the_results(on_gpus):
    x = numbers(2, 6, 5)
    expected = samesum.sum(x.bfloat16(), axis=0, method="tree/plain/fp32")
    assert on_gpus(2, scattered, x) == [bits(part) for part in expected.split(3)]


def test_the_hook_gives_the_rounded_mean_of_all_gradients_on_gpus(on_gpus):
    assert on_gpus(2, hooked) == on_gpus(1, mean_gradients, 2) * 2


def test_the_number_of_gpus_changes_no_bit_of_accumulated_gradients(on_gpus):
    first = on_gpus(1, accumulated)[0]
    assert first[2] == [2, 1, 1]
    for order in (1, -1):
        assert on_gpus(2, accumulated, 3, order) == [first] * 2


def with_little_memory_on_gpu(group: Any, scatters: bool) -> list[str]:
    """Repeats a call with more and more memory on GPU 1; returns what it raised, and at last nothing."""
    n = 1 << 24
    x = torch.ones(1, device="cuda").expand(2 * n)
    out = torch.zeros(n if scatters else 2 * n, device="cuda")
    total = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    errors = []
    for room in range(1 << 24, 1 << 30, 1 << 25):  # besides tensors, what connects the ranks needs some
        torch.cuda.empty_cache()
        most = torch.cuda.memory_reserved() + room if dist.get_rank(group) == 1 else total
        torch.cuda.set_per_process_memory_fraction(most / total)
        try:
            same.reduce_scatter(x, out, group=group) if scatters else same.all_reduce(x, out=out, group=group)
            errors.append("")
        except RuntimeError as error:
            errors.append(str(error))
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        if not errors[-1]:
            break
    assert (out == 2).all()
    return errors


@pytest.mark.parametrize("scatters", [False, True])
def test_memory_that_one_gpu_lacks_raises_on_every_one(on_gpus, scatters):
    first, second = on_gpus(2, with_little_memory_on_gpu, scatters, seconds=10)
    assert first == second and len(first) > 4 and first[-1] == ""
    assert all("failed on rank 1: " in error and "out of memory" in error for error in first[:-1])


def test_an_error_on_one_gpu_is_raised_on_every_one(on_gpus):
    for raised in on_gpus(2, other_methods_on_gpus, seconds=10):
        with pytest.raises(
            ValueError, match="the method is sum/exact/fp32 on rank 0 and sum/tree/plain/fp32 on rank 1"
        ):
            raise raised


def other_methods_on_gpus(group: Any) -> Any:
    method = "tree/plain" if dist.get_rank(group) == 1 else "exact"
    same.all_reduce(here(group, torch.ones(9)), method=method, group=group)
