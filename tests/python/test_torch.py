"""samesum and PyTorch: operators, gradients, and the manager that routes PyTorch's own reductions."""

from __future__ import annotations

import inspect
import random
import threading

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch._prims_common import suggest_memory_format  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch_transformer import Transformer, train  # noqa: E402

import samesum  # noqa: E402
import samesum.torch  # noqa: E402
from samesum._arrays.numpy import NumPy  # noqa: E402
from samesum._arrays.pytorch import Torch  # noqa: E402
from samesum._calls.arguments import Call  # noqa: E402
from samesum._calls.reduction import reduce  # noqa: E402
from samesum._functions import nan, reductions  # noqa: E402
from samesum._torch.methods import FORMATS, closest  # noqa: E402

deterministic = samesum.torch.deterministic
has_gpu = torch.cuda.is_available()
on_gpu = pytest.mark.skipif(not has_gpu, reason="PyTorch sees no GPU")
devices = ["cpu", pytest.param("cuda", marks=on_gpu)]
METHODS = ["tree/plain", "tree/kahan", "pairwise/plain", "exact"]


def numbers(*shape: int, dtype=torch.float32, seed: int = 0, device: str = "cpu") -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * 8).to(dtype).to(device)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(*[t.detach().cpu().flatten().contiguous().view(torch.uint8) for t in (a, b)])


# Operators

ops = torch.ops.samesum


def operator_calls(device: str) -> list[tuple]:
    x, y = numbers(3, 4, 5, device=device), numbers(4, 1, seed=1, device=device)
    integers = torch.arange(12, device=device).reshape(3, 4)
    weight, bias = numbers(5, seed=2, device=device), numbers(5, seed=3, device=device)
    inverse = torch.ones(3, 4, 1, device=device)
    image = numbers(2, 3, 4, 5, device=device).to(memory_format=torch.channels_last)
    reductions = [
        (ops.reduce, (x, operation, axes, keepdims, method, 0, 0.5))
        for operation, method in [
            ("sum", None), ("sum", "tree/kahan"), ("mean", "tree/plain"), ("moments", "tree"),
            ("norm", "tree"), ("min", None), ("prod", "pairwise"), ("logsumexp", "tree"), ("max", None),
            ("argmin", None), ("squared_norm", "exact"), ("sum_of_magnitudes", "exact"), ("sum", "exact/fp64"),
        ]
        for axes, keepdims in [([2], False), ([0, 2], True), ([0, 1, 2], False), ([], False)]
    ]  # fmt: skip
    return reductions + [
        (ops.reduce, (x.bfloat16(), "sum", [1], False, "tree/plain/fp32")),
        (ops.reduce, (integers, "sum", [], False, None)),
        (ops.reduce, (integers, "max", [1], True, None)),
        (ops.reduce, (integers, "mean", [1], True, None)),
        (ops.reduce, (integers.mT, "sum", [], False, None)),
        (ops.reduce, (integers.mT.to(torch.uint64), "min", [], True, None)),
        (ops.reduce, (integers.to(torch.uint16), "argmax", [0], True, None)),
        (ops.reduce, (integers.to(torch.uint32), "sum", [0], False, None)),
        (ops.reduce_pair, (x, x.flip(0), "dot", [2], False, "exact")),
        (ops.reduce_pair, (x, y, "dot", [0, 1], True, "tree/kahan")),
        (ops.square_root, (x.abs(),)),
        (ops.softmax, (x, "softmax", [1], "tree/plain")),
        (ops.softmax, (x, "log_softmax", [0, 2], None)),
        (ops.softmax, (x.half(), "softmax", [2], "online/fp32")),
        (ops.layer_norm, (x, 1, weight, bias, 1e-5, "tree/plain")),
        (ops.layer_norm, (x.bfloat16(), 2, None, None, 1e-5, "exact")),
        (ops.layer_norm_backward, (x, x, 1, inverse, inverse, weight, [True, True, True], "tree/plain")),
        (ops.layer_norm_backward, (x, x, 1, inverse, inverse, None, [True, False, False], "tree/plain")),
        (ops.rms_norm, (x, 1, weight, 1e-5, "tree/plain")),
        (ops.rms_norm_backward, (x, x, 1, inverse, weight, [True, True], "exact")),
        (ops.rms_norm_backward, (x, x, 1, inverse, weight, [False, True], "exact")),
        (ops.reduce, (x.mT, "sum", [1], False, "tree/plain")),
        (ops.softmax, (x.mT, "softmax", [1], "tree/plain")),
        (ops.softmax, (x.mT, "softmax", [2], "tree/plain")),
        (ops.reduce_pair, (x.mT, y.mT, "dot", [0], False, "tree/plain")),
        (ops.layer_norm, (x.mT, 2, None, None, 1e-5, "tree/plain")),
        (ops.rms_norm, (x.mT, 2, None, 1e-5, "tree/plain")),
        (
            ops.layer_norm_backward,
            (x.mT, x.mT, 1, inverse.mT[..., :1], inverse.mT[..., :1], None, [True, True, True], "exact"),
        ),
        (ops.rms_norm_backward, (x.mT, x.mT, 1, inverse.mT[..., :1], None, [True, False], "exact")),
        (ops.softmax, (image, "softmax", [1], "tree/plain")),
        (ops.layer_norm, (image, 1, weight, bias, 1e-5, "tree/plain")),
        (ops.rms_norm, (image, 1, weight, 1e-5, "tree/plain")),
        (ops.rms_norm_backward, (image, image, 1, inverse, weight, [True, True], "exact")),
        (ops.rms_norm_backward, (image.contiguous(), image, 1, inverse, None, [True, False], "exact")),
        (ops.rms_norm_backward, (image, image.contiguous(), 1, inverse, weight, [True, True], "exact")),
    ]


def differentiable(argument):
    return (
        argument.detach().requires_grad_()
        if isinstance(argument, torch.Tensor) and argument.is_floating_point()
        else argument
    )


@pytest.mark.parametrize("device", devices)
def test_operators_pass_opcheck(device):
    has_gradient = {ops.reduce, ops.reduce_pair, ops.softmax, ops.layer_norm, ops.rms_norm}
    for operator, arguments in operator_calls(device):
        torch.library.opcheck(operator.default, arguments)
        if operator in has_gradient and "argmin" not in arguments:
            torch.library.opcheck(operator.default, tuple(differentiable(a) for a in arguments))


FUNCTIONS = {
    "sum": lambda x: samesum.sum(x, axis=1, method="tree/kahan"),
    "sum of all, exact": lambda x: samesum.sum(x),
    "mean": lambda x: samesum.mean(x, axis=(0, 2), keepdims=True),
    "var": lambda x: samesum.var(x, axis=-1, correction=1),
    "std": lambda x: samesum.std(x, axis=(0, 1)),
    "norm": lambda x: samesum.norm(x, axis=2),
    "prod": lambda x: samesum.prod(x, axis=1),
    "min": lambda x: samesum.min(x, axis=0),
    "max": lambda x: samesum.max(x, keepdims=True),
    "vecdot": lambda x: samesum.vecdot(x, 2 * x.flip(0), axis=1),
    "vecdot, broadcast": lambda x: samesum.vecdot(x, x[0, :, :1], axis=-2, keepdims=True),
    "dot": lambda x: samesum.dot(x.reshape(-1), x.reshape(-1) + 1),
    "magnitudes": lambda x: ops.reduce(x, "sum_of_magnitudes", [1], False, "exact"),
    "squares": lambda x: ops.reduce(x, "squared_norm", [0, 1], True, "tree/plain"),
    "layer_norm": lambda x: ops.layer_norm(x, 2, x[0] + 1, x[1], 1e-5, "tree/kahan")[0],
    "rms_norm": lambda x: ops.rms_norm(x, 1, x[0, 0] + 1, 1e-5, "exact")[0],
}


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_pass_gradcheck(name, device):
    x = (numbers(2, 3, 4, dtype=torch.float64, device=device) / 8).requires_grad_()
    assert torch.autograd.gradcheck(FUNCTIONS[name], (x,))


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"layer_norm", "rms_norm", "min", "max"}))
def test_second_derivatives_pass_gradgradcheck(name):
    x = (numbers(2, 3, 4, dtype=torch.float64) / 8).requires_grad_()
    assert torch.autograd.gradgradcheck(FUNCTIONS[name], (x,))


def test_the_gradient_of_a_product_is_right_where_elements_are_zero():
    x = torch.tensor(
        [[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]], dtype=torch.float64, requires_grad=True
    )
    samesum.prod(x, axis=1).sum().backward()
    assert x.grad.tolist() == [[0, 6, 0], [0, 0, 0], [12, 8, 6]]


def test_the_gradient_of_a_product_does_not_form_the_whole_product():
    for elements, expected in [
        ([1e200, 1e200], [1e200, 1e200]),
        ([1e-200, 1e-200, 1.0], [1e-200, 1e-200, 0.0]),
        ([3.0], [1.0]),
    ]:
        x = torch.tensor(elements, dtype=torch.float64, requires_grad=True)
        samesum.prod(x).backward()
        assert x.grad.tolist() == expected
    x = torch.empty(2, 0, requires_grad=True)
    samesum.prod(x, axis=1).sum().backward()
    assert x.grad.shape == (2, 0)
    x = torch.empty(0, 3, requires_grad=True)
    samesum.prod(x, axis=1).sum().backward()
    assert x.grad.shape == (0, 3)


def test_equal_extrema_share_the_gradient():
    x = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
    samesum.max(x).backward()
    assert x.grad.tolist() == [0.5, 0, 0.5]


def test_the_gradient_of_the_norm_of_zeros_is_zero():
    x = torch.zeros(3, requires_grad=True)
    samesum.norm(x).backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("function", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2)])
def test_gradients_of_softmax_and_its_relatives_are_those_of_fp64(function, axis):
    x = numbers(3, 4, 5).requires_grad_()
    y = getattr(samesum, function)(x, axis=axis)
    weights = numbers(*y.shape, seed=1)
    y.backward(weights)
    wide = x.detach().double().requires_grad_()
    axes = axis if isinstance(axis, tuple) else (axis,)
    total = torch.logsumexp(wide, axes, keepdim=True)
    expected = {
        "softmax": (wide - total).exp(),
        "log_softmax": wide - total,
        "logsumexp": total.reshape(y.shape) if function == "logsumexp" else 0,
    }
    expected[function].backward(weights.double())
    torch.testing.assert_close(y.double(), expected[function].detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", devices)
def test_gradients_at_infinities_and_of_equal_elements_are_pytorchs(device):
    inf, nan = float("inf"), float("nan")
    functions = [
        (samesum.logsumexp, torch.logsumexp), (samesum.softmax, torch.softmax),
        (samesum.log_softmax, torch.log_softmax),
        (samesum.std, lambda x, axis: torch.std(x, axis, correction=0)), (samesum.max, torch.amax),
        (samesum.norm, lambda x, axis: torch.linalg.vector_norm(x, 2, axis)),
    ]  # fmt: skip
    for of_samesum, of_torch in functions:
        for rows in (
            [[inf, 1.0]], [[1.0, inf, -inf]], [[inf, inf, 2.0]], [[-inf, -inf]], [[-inf, 1.0]], [[nan, inf, 1.0]],
            [[inf, 1.0], [2.0, 1.0], [-inf, -inf]], [[2.0, 2.0, 2.0]], [[0.0, 0.0], [1.0, 2.0]],
        ):  # fmt: skip
            for axis in (0, 1):
                gradients = []
                for function in (of_samesum, of_torch):
                    x = torch.tensor(rows, device=device, requires_grad=True)
                    y = function(x, axis)
                    y.backward(torch.arange(1.0, y.numel() + 1, device=device).reshape(y.shape))
                    gradients.append(x.grad)
                torch.testing.assert_close(*gradients, equal_nan=True)
    x = torch.tensor([inf, 1.0], device=device, requires_grad=True)
    with deterministic():
        x.logsumexp(0).backward()
    assert x.grad.isnan().tolist() == [True, False] and x.grad[1] == 0


def test_gradients_are_reduced_by_methods_of_samesum():
    x, row = numbers(1000, 3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    samesum.vecdot(x, row, method="tree/kahan").sum().backward()
    assert same_bits(row.grad, samesum.sum(x.detach(), axis=0, method="tree/kahan"))


PAIRS = [
    ((3,), (3, 2), 0), ((2, 3), (2, 4, 3), 0), ((4, 2), (3, 4, 2), -2), ((2, 3, 4), (1, 3, 4), 1), ((3,), (2, 3), -1),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "axis"), PAIRS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_an_axis_counts_in_each_input_as_in_numpy(first, second, axis, keepdims):
    x, y = numbers(*first), numbers(*second, seed=1)
    expected = torch.as_tensor(samesum.vecdot(x.numpy(), y.numpy(), axis=axis, keepdims=keepdims))
    for a, b in ((x, y), (y, x)):
        for call in (samesum.vecdot, torch.compile(samesum.vecdot, backend="eager")):
            assert same_bits(call(a, b, axis=axis, keepdims=keepdims), expected)
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        result = samesum.vecdot(a, b, axis=axis, keepdims=keepdims)
        assert same_bits(result, expected)
        result.sum().backward()
        assert a.grad.shape == a.shape and b.grad.shape == b.shape


@pytest.mark.parametrize("traced", [False, True])
def test_the_reduced_axis_is_not_broadcast(traced):
    def ones(*shape):
        return torch.ones(shape, requires_grad=traced)

    for x, y, axis in ((ones(1, 3), ones(4, 3), 0), (ones(1, 3), ones(4, 3), -2), (ones(4, 1), ones(3), -1)):
        with pytest.raises(ValueError, match="samesum: x has . elements along axis .*; pass inputs of one length"):
            samesum.vecdot(x, y, axis=axis)
    with pytest.raises(IndexError, match="axis -2 is out of range for y with 1 axes"):
        samesum.vecdot(ones(2, 3), ones(3), axis=-2)
    with pytest.raises(ValueError, match="dot: y has 2 axes; use vecdot"):
        samesum.dot(ones(3), ones(1, 3))


def test_inputs_on_two_devices_are_refused_by_name():
    def operator(a, b):
        return ops.reduce_pair(a, torch.as_tensor(b), "dot", [0], False, None)

    x, meta = torch.ones(3), torch.ones(3, device="meta")
    for a, b in ((x, meta), (meta, x), (meta, [1.0, 1.0, 1.0]), (x.clone().requires_grad_(), meta)):
        for function in (samesum.vecdot, samesum.dot, operator):
            with pytest.raises(ValueError, match="samesum: y is on (meta|cpu) and x on (cpu|meta); pass inputs on one"):
                function(a, b)
    with pytest.raises(TypeError, match="x is a ndarray, and PyTorch traces y; pass tensors, such as torch.as_tensor"):
        samesum.vecdot(x.numpy(), meta)
    partial = samesum.Partial("dot/exact/fp32")
    for call in (lambda: partial.add(x, meta), lambda: samesum.estimate(x, "exact", meta)):
        with pytest.raises(TypeError, match="y is on the device meta; move it"):
            call()
    assert samesum.vecdot(meta, torch.ones(2, 3, device="meta")).shape == (2,)


def test_weights_of_a_tensor_with_gradients_that_are_refused_are_named_weights():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for error, weights in ((OverflowError, torch.tensor([2**53 + 1, 1])), (TypeError, torch.tensor([1j, 2]))):
        with pytest.raises(error, match="samesum: weights has"):
            samesum.sum(x, weights=weights)


def test_no_data_moves_between_the_host_and_a_gpu(monkeypatch):
    x = torch.ones(3)
    for library, places in ((Torch, ("cuda:0", "cpu")), (NumPy, ("cpu", "cuda:0"))):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(library, "place", lambda self, a: "cuda:0")
            partial = samesum.Partial("dot/exact/fp64")
            for call in (samesum.vecdot, samesum.dot, lambda a, b: partial.add(a, b)):
                for a, b in ((x, x.double().numpy()), (x, [1.0] * 3)):
                    with pytest.raises(ValueError, match="samesum: y is on {1} and x on {0}; pass".format(*places)):
                        call(a, b)
                with pytest.raises(ValueError, match="samesum: y is on {0} and x on {1}; pass".format(*places)):
                    call(x.numpy(), x)


@pytest.mark.parametrize("traced", [False, True])
def test_a_second_input_becomes_a_tensor(traced):
    x = torch.tensor([2.0, 4.0, 8.0], requires_grad=traced)
    read_only = torch.ones(3).numpy()
    read_only.flags.writeable = False
    lists = ([1.5, 2.0, 0.5], 15.0), ((3, 0, 1), 14.0), (range(3), 20.0)
    for y, expected in (*lists, (read_only, 14.0), (read_only[::-1], 14.0)):
        for function in (samesum.vecdot, samesum.dot):
            result = function(x, y)
            assert isinstance(result, torch.Tensor) and result == expected and result.requires_grad == traced
    sparse = torch.ones(3).to_sparse()
    for y, message in ((None, "y is None"), (["a"] * 3, "y has texts"), (sparse, "y is a sparse tensor")):
        with pytest.raises(TypeError, match="samesum: " + message):
            samesum.vecdot(x, y)


def test_tensors_that_are_not_aligned_have_the_results_of_their_copies():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64):
        x = torch.frombuffer(bytearray(12 * dtype.itemsize + 1), dtype=dtype, count=12, offset=1).reshape(3, 4)
        assert x.data_ptr() % dtype.itemsize
        x.copy_(torch.arange(12).reshape(3, 4) - 3)
        functions = [samesum.sum, samesum.mean, samesum.max, samesum.argmin, lambda x: samesum.sum(x, axis=0)]
        functions += [lambda x: samesum.vecdot(x, x), lambda x: torch.tensor(samesum.Exact(x).value())]
        functions += [lambda x: samesum.vecdot(x.clone(), x.numpy()) if x.dtype != torch.bfloat16 else x[0]]
        if dtype.is_floating_point:
            functions += [samesum.cumsum, samesum.norm, lambda x: samesum.scatter_add(x, [0, 2, 2], x)]
            functions += [lambda x: samesum.sum(x.requires_grad_()), lambda x: samesum.vecdot(x, x.requires_grad_())]
            functions += [lambda x: samesum.softmax(x, axis=1)]
        for function in functions:
            for _ in range(2):  # the first call takes the long way
                assert same_bits(function(x), function(x.detach().clone()))
            x = x.detach()
        with deterministic():
            assert same_bits(x.double().sum(), x.clone().double().sum())
            if dtype.is_floating_point:
                assert same_bits(x.sum(0), x.clone().sum(0)) and same_bits(x.cumsum(0), x.clone().cumsum(0))
                out = torch.zeros(5, 4, dtype=dtype)
                index = torch.tensor([0, 2, 2])
                assert same_bits(out.index_add(0, index, x), out.index_add(0, index, x.clone()))
    out = torch.frombuffer(bytearray(17), dtype=torch.float32, count=4, offset=1)
    assert samesum.sum(numbers(3, 4), axis=0, out=out) is out
    assert same_bits(out, samesum.sum(numbers(3, 4), axis=0))


def test_results_are_not_written_to_what_has_no_memory():
    x = numbers(3, 4)
    for out, message in (
        (torch.empty(4, device="meta"), "out is on the device meta"),
        (torch.empty(4).to_sparse(), "out is a sparse tensor"),
        (torch.empty(4).numpy(), "out is a ndarray; it must be an array of the library of x"),
    ):
        for function in (samesum.sum, samesum.argmax):
            with pytest.raises(TypeError, match="samesum: " + message):
                wide = out.to(torch.int64) if function is samesum.argmax and "ndarray" not in message else out
                function(x, axis=0, out=wide)


# Names of PyTorch


REDUCTIONS = reductions.FUNCTIONS + nan.FUNCTIONS


def called(function, x, **keywords):
    return function(x, x, **keywords) if function is samesum.vecdot else function(x, **keywords)


def parameters_of(function):
    return inspect.signature(function).parameters


def test_every_reduction_and_scan_has_pytorchs_names_of_its_axis_and_of_keeping_it():
    for function in REDUCTIONS:
        names = set(parameters_of(function))
        assert ("axis" in names, "keepdims" in names) == ("dim" in names, "keepdim" in names)
        assert function is samesum.dot or "dim" in names


@pytest.mark.parametrize("function", [f for f in REDUCTIONS if f is not samesum.dot], ids=lambda f: f.__name__)
def test_dim_and_keepdim_are_axis_and_keepdims(function):
    names = parameters_of(function)
    takes_several = "keepdim" in names and function is not samesum.vecdot
    for x in (numbers(2, 3, 4), numbers(2, 3, 4).to("meta")) if "cum" not in function.__name__ else (numbers(2, 3, 4),):
        if x.is_meta and function in nan.FUNCTIONS:
            continue
        for d in (1, -1, *([(0, 2)] if takes_several else [])):
            for keep in (False, True) if "keepdim" in names else (None,):
                ours = {"axis": d} if keep is None else {"axis": d, "keepdims": keep}
                theirs = {"dim": d} if keep is None else {"dim": d, "keepdim": keep}
                found, expected = called(function, x, **theirs), called(function, x, **ours)
                assert found.shape == expected.shape and (x.is_meta or same_bits(found, expected))
    if takes_several:
        assert called(function, numbers(2, 3), dim=(), keepdim=True).shape == (1, 1)
        assert function(numbers(2, 3), 1, keepdim=True).shape == (2, 1)


@pytest.mark.parametrize("function", [f for f in REDUCTIONS if f is not samesum.dot], ids=lambda f: f.__name__)
def test_two_names_of_one_argument_and_names_of_pytorch_for_other_arrays_are_refused(function):
    x, names = numbers(2, 3), parameters_of(function)
    with pytest.raises(ValueError, match="samesum: axis is 0 and dim 1; they are two names of one argument"):
        called(function, x, axis=0, dim=1)
    if "keepdim" in names:
        with pytest.raises(ValueError, match="samesum: keepdims and keepdim are two names of one argument; pass one"):
            called(function, x, keepdims=True, keepdim=True)
    for other in (x.numpy(), x.tolist()):
        for keywords in ({"dim": 0}, {"keepdim": True}) if "keepdim" in names else ({"dim": 0},):
            with pytest.raises(TypeError, match="dim and keepdim are for PyTorch's tensors; pass axis and keepdims"):
                called(function, other, **keywords)


@pytest.mark.filterwarnings("ignore")
def test_dim_and_keepdim_go_with_gradients_and_compilation():
    def function(x):
        return samesum.sum(x * 2, dim=1, keepdim=True) + samesum.softmax(x, dim=0)

    x, y = numbers(2, 3).requires_grad_(), numbers(2, 3).requires_grad_()
    function(x).sum().backward()
    torch.compile(function, backend="eager", fullgraph=True)(y).sum().backward()
    assert same_bits(x.grad, y.grad)


# Tensors that are more than strided elements


SPECIAL = {
    "nested": (
        lambda **k: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], **k),
        r"is a nested tensor; pass torch.nested.to_padded_tensor\({0}, 0\), or each of {0}.unbind\(\)",
    ),
    "jagged": (
        lambda **k: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, **k),
        "is a nested tensor",
    ),
    "masked": (
        lambda **k: torch.masked.masked_tensor(torch.tensor([1.0, 2, 4]), torch.tensor([True, False, True]), **k),
        r"is a masked tensor; pass {0}.get_data\(\), and {0}.get_mask\(\) as where=",
    ),
    "sparse": (lambda requires_grad: torch.ones(3).to_sparse().requires_grad_(requires_grad), "is a sparse tensor"),
}  # fmt: skip
SPECIAL_CALLS = [
    ("x", samesum.sum), ("x", samesum.mean), ("x", samesum.softmax), ("x", samesum.argmax), ("x", samesum.nanmax),
    ("x", samesum.var), ("x", lambda x: samesum.sum(x, dim=0)), ("x", lambda x: samesum.rolling_sum(x, 2)),
    ("x", samesum.estimate), ("x", samesum.compare), ("x", samesum.Exact), ("x", samesum.average), ("x", samesum.cov),
    ("x", lambda x: samesum.Partial("sum/exact/fp64").add(x)), ("y", lambda x: samesum.vecdot(torch.ones(3), x)),
    ("y", lambda x: samesum.vecdot(torch.ones(3).numpy(), x)), ("where", lambda x: samesum.sum(torch.ones(3), where=x)),
    ("weights", lambda x: samesum.mean(torch.ones(3), weights=x)), ("keys", samesum.bincount),
    ("values", lambda x: samesum.groupby([1, 1, 1]).sum(x)), ("values", lambda x: samesum.reduce_by_key([1, 1, 1], x)),
    ("values", lambda x: samesum.scatter_add(torch.zeros(3), [0, 1, 2], x)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("kind", SPECIAL)
def test_nested_masked_and_sparse_tensors_are_refused_by_name(kind, traced):
    make, message = SPECIAL[kind]
    x = make(requires_grad=traced)
    for argument, call in SPECIAL_CALLS if kind != "sparse" else SPECIAL_CALLS[:4]:
        with pytest.raises(TypeError, match=f"samesum: {argument} " + message.format(argument)):
            call(x)
    if kind == "masked":
        for function in (samesum.fsum, samesum.cumsum):
            with pytest.raises(TypeError, match=r"samesum: .* masked tensor; pass x.get_data\(\)"):
                function(x)
        assert samesum.sum(x.get_data().detach(), where=x.get_mask()) == 5


def test_an_index_has_no_gradient():
    x = numbers(5).requires_grad_()
    assert not samesum.argmax(x).requires_grad


def test_forward_mode_derivatives_raise_an_error():
    forward = torch.autograd.forward_ad
    x = numbers(3, 2).mT
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones_like(x))
        for function in (samesum.sum, samesum.std, samesum.softmax, lambda d: samesum.vecdot(x, d)):
            with pytest.raises(NotImplementedError, match="samesum: forward-mode"):
                function(dual)
        assert same_bits(samesum.sum(x), samesum.sum(x.contiguous()))


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f, x: torch.vmap(f)(x.mT),
        lambda f, x: torch.func.grad(lambda x: f(x).sum())(x),
        lambda f, x: torch.func.jvp(f, (x,), (x,)),
        lambda f, x: torch.func.jacrev(f)(x),
    ],
)
@pytest.mark.parametrize("function", [samesum.sum, samesum.norm, lambda x: samesum.vecdot(x, x)])
def test_transforms_of_functions_raise_an_error(function, transformed):
    with pytest.raises(NotImplementedError, match="samesum: .*torch.func"):
        transformed(function, numbers(2, 3, 4).mT)


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_integers_have_the_results_of_python(bits, device):
    dtype, top = getattr(torch, f"uint{bits}"), 2**bits - 1
    for rows in ([[3, 1, 2]], [[1, 0, top], [top, top - 1, top // 2]], [[top // 2 + 1, top // 2, 5], [7, 7, 2]]):
        x = torch.tensor(rows, dtype=dtype, device=device)
        for a, lists in ((x, rows), (x.mT, [list(column) for column in zip(*rows)])):
            for keepdims in (False, True):
                shape = (len(lists), 1) if keepdims else (len(lists),)
                for function, expected, result in [
                    (samesum.min, min, dtype), (samesum.max, max, dtype),
                    (samesum.argmin, lambda row: row.index(min(row)), torch.int64),
                    (samesum.argmax, lambda row: row.index(max(row)), torch.int64),
                ] + [(samesum.sum, sum, torch.uint64)] * (max(sum(row) for row in lists) < 2**64):  # fmt: skip
                    found = function(a, axis=1, keepdims=keepdims)
                    assert found.dtype == result and found.shape == shape
                    assert found.flatten().tolist() == [expected(row) for row in lists], (function, lists)
                    without_data = function(a.to("meta"), axis=1, keepdims=keepdims)
                    assert (without_data.dtype, without_data.shape) == (found.dtype, found.shape)
        assert samesum.Exact(x).value() == float(sum(map(sum, rows)))
        assert same_bits(samesum.mean(x, axis=1), samesum.mean(x.double(), axis=1))
    assert samesum.min(torch.zeros(2, 0, dtype=dtype, device=device), axis=0).shape == (0,)
    with pytest.raises(ValueError, match="at least one element"):
        samesum.max(torch.zeros(2, 0, dtype=dtype, device=device), axis=1)


def test_the_sum_of_uint64_raises_an_error_beyond_64_bits():
    assert samesum.sum(torch.tensor([2**64 - 2, 1], dtype=torch.uint64)).item() == 2**64 - 1
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        samesum.sum(torch.tensor([2**64 - 1, 1], dtype=torch.uint64))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("other", [torch.uint8, torch.int64, torch.uint64, torch.bool])
def test_dot_products_of_different_integers_are_those_of_fp64(other):
    x, y = torch.tensor([3, 5], dtype=torch.uint32), torch.tensor([1, 1], dtype=other)
    for found in (samesum.dot(x, y), samesum.dot(y, x), torch.compile(samesum.dot, backend="eager")(x, y)):
        assert found.dtype == torch.float64 and found.item() == 8
    assert samesum.dot(x.to("meta"), y.to("meta")).dtype == torch.float64


def test_out_does_not_go_with_gradients():
    with pytest.raises(ValueError, match="out"):
        samesum.sum(numbers(5).requires_grad_(), out=torch.empty(()))


def test_tensors_without_data_have_the_shape_and_type_of_the_result():
    x = torch.empty(3, 4, dtype=torch.bfloat16, device="meta")
    result = samesum.sum(x, axis=1, method="tree/plain/fp32")
    assert result.device.type == "meta" and result.shape == (3,) and result.dtype == torch.float32


# Routed operators. Each: a function of PyTorch, the same by samesum, and the names under which it is counted.

SIX = {"shape": (6,)}


def rounded(result, x):
    return result.to(x.dtype)


def wide(method: str, operation: str, x) -> str:
    """The method of samesum that the manager uses: 16-bit elements are accumulated in fp32."""
    return closest(method, operation, FORMATS[x.dtype])


def by(operation: str, **keywords):
    """Calls a function of samesum by the method that the manager uses, and rounds to the type of x."""

    def call(x, method):
        catalogue = {"var": "moments", "std": "moments"}.get(operation, operation)
        return rounded(getattr(samesum, operation)(x, method=wide(method, catalogue, x), **keywords), x)

    return call


def mean_and(function, **keywords):
    return lambda x, m: (by(function, **keywords)(x, m), rounded(reduce(Call(
        "moments", x, keywords.get("axis"), method=wide(m, "moments", x)))[..., 0], x))  # fmt: skip


def normalised_by_layer(x, m):
    w = x if x.dtype == torch.float64 else x.float()
    moments = reduce(Call("moments", x, -1, keepdims=True, method=wide(m, "moments", x)))
    return ((w - moments[..., 0]) * (1 / ops.square_root(moments[..., 1] + 1e-5)) * 2 + 1).to(x.dtype)


def normalised_by_rms(x, m):
    w = x if x.dtype == torch.float64 else x.float()
    squares = reduce(Call("squared_norm", x, -1, keepdims=True, method=wide(m, "squared_norm", x)))
    return (w * (1 / ops.square_root(squares * (1 / x.shape[-1]) + 1e-5)) * 2).to(x.dtype)


def filled(x, value):
    return torch.full((x.shape[-1],), value, dtype=x.dtype, device=x.device)


def cross_entropy_by_samesum(x, m):
    log = by("log_softmax", axis=1)(x, m)
    terms = log.gather(1, targets(x).unsqueeze(1)).squeeze(1).neg()
    total = samesum.sum(torch.ones_like(terms), method=wide(m, "sum", terms))
    return rounded(samesum.sum(terms, method=wide(m, "sum", terms)) / total, x)


def keys_of(x, *shape):
    generator = torch.Generator().manual_seed(7)
    return torch.randint(0, 20, shape or x.shape[:1], generator=generator).to(x.device)


def added_by_key(x, m, keys, values):
    wider = x if x.dtype == torch.float64 else x.float()
    return rounded(samesum.scatter_add(wider, keys, values.contiguous(), method=wide(m, "scatter_add", x)), x)


def elements_added_by_key(x, m):
    places = keys_of(x, *x.shape) + x.shape[1] * torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    return added_by_key(x.reshape(-1), m, places.reshape(-1), x.flip(0).reshape(-1)).reshape(x.shape)


def targets(x):
    return torch.arange(x.shape[0], device=x.device) % x.shape[1]


ROUTED = {
    "sum": (lambda x: x.sum(), by("sum"), "sum"),
    "sum over rows": (lambda x: torch.sum(x, -1), by("sum", axis=-1), "sum"),
    "sum over columns": (lambda x: x.sum(0, keepdim=True), by("sum", axis=0, keepdims=True), "sum"),
    "sum of a transpose": (lambda x: x.t().sum(0), lambda x, m: by("sum", axis=0)(x.t(), m), "sum"),
    "sum into out": (lambda x: torch.sum(x, 1, out=x.new_empty(0)), by("sum", axis=1), "sum"),
    "mean": (lambda x: x.mean(), by("mean"), "mean"),
    "mean over rows": (lambda x: x.mean(1), by("mean", axis=1), "mean"),
    "var": (lambda x: x.var(), by("var", correction=1), "var"),
    "var over columns": (lambda x: torch.var(x, 0, correction=0), by("var", axis=0), "var"),
    "std": (lambda x: x.std(1, keepdim=True), by("std", axis=1, keepdims=True, correction=1), "std"),
    "var_mean": (lambda x: torch.var_mean(x, 1), mean_and("var", axis=1, correction=1), "var_mean"),
    "std_mean": (lambda x: torch.std_mean(x, 0, correction=0), mean_and("std", axis=0), "std_mean"),
    "norm": (lambda x: x.norm(), by("norm"), "norm"),
    "vector_norm": (lambda x: torch.linalg.vector_norm(x, dim=1), by("norm", axis=1), "norm"),
    "frobenius norm": (lambda x: torch.linalg.matrix_norm(x), by("norm"), "norm"),
    "softmax": (lambda x: x.softmax(-1), by("softmax", axis=-1), "softmax"),
    "softmax over columns": (lambda x: F.softmax(x, 0), by("softmax", axis=0), "softmax"),
    "log_softmax": (lambda x: F.log_softmax(x, 1), by("log_softmax", axis=1), "log_softmax"),
    "logsumexp": (lambda x: x.logsumexp(1), by("logsumexp", axis=1), "logsumexp"),
    "cumsum": (lambda x: x.cumsum(1), by("cumsum", axis=1), "cumsum"),
    "cumsum over columns": (lambda x: torch.cumsum(x, 0), by("cumsum", axis=0), "cumsum"),
    "index_add": (
        lambda x: x.index_add(0, keys_of(x), x, alpha=2), lambda x, m: added_by_key(x, m, keys_of(x), 2 * x),
        "index_add",
    ),
    "index_add to columns": (
        lambda x: x.t().index_add(1, keys_of(x), x.t()), lambda x, m: added_by_key(x, m, keys_of(x), x).t(),
        "index_add",
    ),
    "scatter_add of rows": (
        lambda x: x.scatter_add(0, keys_of(x).unsqueeze(1).expand_as(x), x),
        lambda x, m: added_by_key(x, m, keys_of(x), x), "scatter_add",
    ),
    "scatter_add of elements": (
        lambda x: x.scatter_add(1, keys_of(x, *x.shape), x.flip(0)), elements_added_by_key, "scatter_add",
    ),
    "layer_norm": (
        lambda x: F.layer_norm(x, (x.shape[-1],), filled(x, 2), filled(x, 1)), normalised_by_layer,
        "layer_norm",
    ),
    "rms_norm": (lambda x: F.rms_norm(x, (x.shape[-1],), filled(x, 2), 1e-5), normalised_by_rms, "rms_norm"),
    "cross_entropy": (lambda x: F.cross_entropy(x, targets(x)), cross_entropy_by_samesum, "nll_loss"),
    "mse_loss": (
        lambda x: F.mse_loss(x, x.flip(0)), lambda x, m: by("mean")((x - x.flip(0)).square(), m), "mse_loss",
    ),
    "l1_loss": (lambda x: F.l1_loss(x, x.flip(0)), lambda x, m: by("mean")((x - x.flip(0)).abs(), m), "mean"),
}  # fmt: skip


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ROUTED)
def test_a_routed_operator_is_counted_and_has_the_bits_of_samesum(name, method, device):
    by_torch, by_samesum, counted = ROUTED[name]
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        x = numbers(32, 1025, dtype=dtype, device=device)
        plain, accurate = as_tuple(by_torch(x)), as_tuple(by_torch(x.double()))
        with deterministic(method) as routing:
            found = as_tuple(by_torch(x))
        assert routing.calls[counted] == 1
        for result, expected, usual, wide in zip(found, as_tuple(by_samesum(x, method)), plain, accurate):
            assert result.shape == usual.shape and result.dtype == usual.dtype
            assert same_bits(result, expected), (name, dtype)
            # Not with PyTorch's own result, which some operators accumulate in 16 bits.
            tolerance = 2e-2 if dtype.itemsize == 2 else 1e-4
            torch.testing.assert_close(result.double(), wide.double(), rtol=tolerance, atol=2e-2)


def forward_and_backward(function, x):
    x = x.clone().requires_grad_()
    results = as_tuple(function(x))
    weights = [
        numbers(*y.shape, dtype=y.dtype, seed=i + 1, device=x.device.type) for i, y in enumerate(results)
    ]
    torch.autograd.backward(results, weights)
    return *results, x.grad


@pytest.mark.parametrize("name", sorted(set(ROUTED) - {"sum into out"}))
def test_gradients_under_the_manager_are_close_to_pytorchs(name):
    x = numbers(32, 1025)
    usual = forward_and_backward(ROUTED[name][0], x)
    with deterministic():
        found = forward_and_backward(ROUTED[name][0], x)
    for a, b in zip(found, usual):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@on_gpu
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", sorted(set(ROUTED) - {"sum into out"}))
def test_cpu_and_gpu_have_the_same_bits_forward_and_backward(name, method):
    # Powers of two, since PyTorch divides gradients of means by n, on a GPU by multiplication. The gradient
    # of logsumexp is computed by PyTorch's exp, which differs between the two.
    for dtype in (torch.float32, torch.bfloat16):
        x = numbers(64, 2048, dtype=dtype)
        with deterministic(method):
            host = forward_and_backward(ROUTED[name][0], x)
            device = forward_and_backward(ROUTED[name][0], x.cuda())
        for i, (a, b) in enumerate(zip(host, device)):
            if name == "logsumexp" and i == 1:
                continue
            assert same_bits(a, b), (name, dtype, i)


@pytest.mark.parametrize("device", devices)
def test_sums_that_autograd_makes_are_routed(device):
    x, bias = numbers(1000, 7, device=device), numbers(7, seed=1, device=device).requires_grad_()
    gradient = numbers(1000, 7, seed=2, device=device)
    with deterministic("tree/kahan") as routing:
        (x + bias).backward(gradient)
    assert routing.calls == {"sum": 1}
    assert same_bits(bias.grad, samesum.sum(gradient, axis=0, method="tree/kahan"))


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_of_an_embedding_does_not_depend_on_the_order_of_the_tokens(dtype, device):
    words = numbers(30, 5, dtype=dtype, device=device).requires_grad_()
    tokens, gradient = keys_of(words, 400), numbers(400, 5, dtype=dtype, seed=1, device=device)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(3))
    for keywords in ({}, {"padding_idx": 4}, {"scale_grad_by_freq": True}):
        found = []
        for places in (torch.arange(400), order.to(device)):
            words.grad = None
            with deterministic() as routing:
                F.embedding(tokens[places], words, **keywords).backward(gradient[places])
            assert routing.calls == {"embedding_backward": 1}
            found.append(words.grad)
        assert same_bits(*found)
        words.grad = None
        F.embedding(tokens, words, **keywords).backward(gradient)
        near = dict(rtol=2e-2, atol=0.5) if dtype.itemsize == 2 else dict(rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found[0], words.grad, **near)
        if not keywords:
            expected = samesum.scatter_add(torch.zeros(30, 5, device=device), tokens, gradient, method="exact/fp32")
            assert same_bits(found[0], expected.to(dtype))


@pytest.mark.parametrize("device", devices)
def test_gradients_of_gather_and_index_select_are_routed(device):
    x, places = numbers(8, 3, device=device).requires_grad_(), torch.tensor([1, 1, 5, 1], device=device)
    gradient = torch.tensor([1e8, 1.0, 5.0, -1e8], device=device).unsqueeze(1).expand(4, 3)
    for select, counted in (
        (lambda: x.index_select(0, places), "index_add"),
        (lambda: x.gather(0, places.unsqueeze(1).expand(4, 3)), "scatter_add"),
        (lambda: x[places], "index_put"), (lambda: x[places - 8], "index_put"),
    ):
        x.grad = None
        with deterministic() as routing:
            select().backward(gradient)
        assert routing.calls == {counted: 1}
        assert x.grad[1].tolist() == [1, 1, 1] and x.grad[5].tolist() == [5, 5, 5]


def test_sums_by_key_in_place_into_out_and_of_integers_are_as_in_pytorch():
    x, keys, values = numbers(20, 3), keys_of(torch.empty(50)), numbers(50, 3, seed=1)
    expanded, put = keys.unsqueeze(1).expand(50, 3), torch.ops.aten.index_put
    for function in (
        lambda x, v: x.clone().index_add_(0, keys, v), lambda x, v: x.clone().scatter_add_(0, expanded, v),
        lambda x, v: torch.index_add(x, 0, keys, v, out=torch.empty_like(x)), lambda x, v: x.clone().cumsum_(0),
        lambda x, v: torch.scatter_add(x, 0, expanded[:7, :2], v, out=torch.empty_like(x)),
        lambda x, v: x.scatter_add(0, expanded[:0], v), lambda x, v: x[0, 0].index_add(0, 0 * keys[0], v[0, 0]),
        lambda x, v: x[0, 0].cumsum(0), lambda x, v: torch.cumsum(x, 0, dtype=torch.float64),
        lambda x, v: x.index_put((keys,), v, accumulate=True), lambda x, v: x.index_put((keys,), v[0], accumulate=True),
        lambda x, v: x.clone().index_put_((keys % 20, keys % 3), v[:, 0], accumulate=True),
        lambda x, v: put(x, (None, keys % 3), v.t()[:1], True),
        lambda x, v: put(x.reshape(4, 5, 3), (None, keys[:6].reshape(2, 3) % 5, keys[0] % 3), v[0, 0], True),
        lambda x, v: put(x.reshape(4, 5, 3), (keys % 4, None, keys % 3), v[:, :1], True),
        lambda x, v: x.index_put((keys[:3],), v[:3]), lambda x, v: x.index_put((x > 0,), v[0, 0], accumulate=True),
        lambda x, v: x[:0].index_add(0, keys[:0], v[:0]), lambda x, v: x[:, :0].scatter_add(0, expanded[:, :0], v),
    ):  # fmt: skip
        for convert in (lambda t: t, lambda t: t.long()):
            usual = function(convert(x), convert(values))
            with deterministic() as routing:
                found = function(convert(x), convert(values))
            assert routing.calls
            torch.testing.assert_close(found, usual)


def test_indices_out_of_range_raise_pytorchs_error():
    x = torch.zeros(3, 2)
    for function in (
        lambda: x.index_add(0, torch.tensor([0, 3]), torch.ones(2, 2)),
        lambda: x.scatter_add(0, torch.tensor([[0, -1]]), torch.ones(1, 2)),
        lambda: x.index_put((torch.tensor([3]),), torch.ones(1, 2), accumulate=True),
        lambda: x.scatter_add(0, torch.tensor([[1], [3]]).expand(2, 2), torch.ones(2, 2)),
    ):
        with pytest.raises(IndexError, match="samesum: .* (is 3|element 3|-1)"), deterministic():
            function()
    with pytest.raises(RuntimeError, match="shape"), deterministic():
        x.index_add(0, torch.tensor([0]), torch.ones(1, 3))


@pytest.mark.parametrize("device", devices)
def test_the_bias_of_a_linear_layer_is_routed(device):
    layer = torch.nn.Linear(5, 7, device=device)
    gradient = numbers(100, 10, 7, device=device)
    with deterministic() as routing:
        layer(numbers(100, 10, 5, device=device)).backward(gradient)
    assert routing.calls == {"sum": 1}
    assert same_bits(layer.bias.grad, samesum.sum(gradient.reshape(-1, 7), axis=0, method="tree/plain"))


def test_integers_are_left_to_pytorch_which_adds_them_exactly():
    with deterministic():
        assert torch.arange(10).sum().item() == 45
        assert torch.arange(10).sum(dtype=torch.float32).item() == 45
        assert torch.ones(3, dtype=torch.bool).sum().item() == 3


def test_what_has_no_method_raises_an_error():
    with deterministic():
        with pytest.raises(TypeError, match="complex64 is not routed"):
            torch.ones(3, dtype=torch.complex64).sum()
        with pytest.raises(NotImplementedError, match="dense"):
            torch.ones(3).to_sparse().sum()


def test_ignored_and_weighted_targets_are_as_in_pytorch():
    x, weight = numbers(6, 4, 5), torch.tensor([1.0, 2.0, 0.5, 4.0])
    target = torch.arange(30).reshape(6, 5) % 4
    target[2] = -100
    for keywords in (
        {},
        {"weight": weight},
        {"reduction": "sum"},
        {"reduction": "none"},
        {"label_smoothing": 0.1},
    ):
        usual = forward_and_backward(lambda x: F.cross_entropy(x, target, **keywords), x)
        with deterministic():
            found = forward_and_backward(lambda x: F.cross_entropy(x, target, **keywords), x)
        torch.testing.assert_close(found, usual, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_default_eps_of_rms_norm_is_pytorchs(dtype, device):
    x = torch.full((8,), 2.0**-11, dtype=dtype, device=device)
    usual = F.rms_norm(x, (8,))
    with deterministic():
        found = F.rms_norm(x, (8,))
    torch.testing.assert_close(found, usual, rtol=1e-2, atol=0)


@pytest.mark.parametrize("keywords", [{}, {"ignore_index": 1}, {"weight": torch.tensor([1.0, 2.0, 0.5, 4.0])}])
def test_classes_in_bytes_are_as_in_pytorch(keywords):
    x, classes = numbers(300, 4), torch.arange(300) % 4
    for dtype in (torch.uint8, torch.int64):
        for loss in (F.nll_loss, F.cross_entropy):
            for reduction in ("mean", "sum", "none"):
                def function(x, loss=loss, target=classes.to(dtype), reduction=reduction):
                    return loss(x, target, reduction=reduction, **keywords)

                usual = forward_and_backward(function, x)
                with deterministic():
                    found = forward_and_backward(function, x)
                torch.testing.assert_close(found, usual, rtol=1e-5, atol=1e-5)


def test_classes_of_types_that_pytorch_refuses_raise_its_error():
    for x, dtype in [(numbers(3, 4), d) for d in (torch.int32, torch.int8, torch.bool, torch.float32)] + [
        (numbers(3, 4, 2), d) for d in (torch.int32, torch.uint8)
    ]:
        target = torch.zeros(3, *x.shape[2:], dtype=dtype)
        with pytest.raises(RuntimeError, match="expected (scalar type|target dtype to be) Long"), deterministic():
            F.nll_loss(x, target)


@on_gpu
def test_autocast_on_a_gpu_is_as_in_pytorch():
    x = numbers(4, 8, device="cuda").bfloat16()
    layer = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.RMSNorm(8)).cuda()
    for function in (layer, lambda x: layer(x).softmax(-1), lambda x: (x @ x.T).sum(), lambda x: x.norm()):
        with torch.autocast("cuda", torch.bfloat16):
            usual = function(x)
            with deterministic() as routing:
                found = function(x)
        assert found.dtype == usual.dtype and routing.calls
        torch.testing.assert_close(found, usual, rtol=2e-2, atol=2e-2)


def test_edge_shapes_are_as_in_pytorch():
    functions = [
        lambda x: x.sum(), lambda x: x.softmax(0), lambda x: x.mean(), lambda x: x.norm(),
        lambda x: x.log_softmax(0), lambda x: x.sum(0), lambda x: x.logsumexp(0),
        lambda x: F.mse_loss(x, x + 1),
    ]  # fmt: skip
    for x in (torch.tensor(2.0), torch.tensor([2.0]), torch.ones(0), torch.ones(0, 3), torch.ones(3, 0)):
        for function in functions:
            usual = function(x)
            with deterministic():
                found = function(x)
            torch.testing.assert_close(found, usual, equal_nan=True)


# Strides


def any_layout(choose, device):
    """A tensor of one to five axes: contiguous, permuted, channels_last, expanded, with gaps between its elements, or
    with another stride than usual along axes of length 1."""
    shape = [choose.choice([1, 2, 3, 4]) for _ in range(choose.choice([1, 2, 3, 4, 4, 5]))]
    shape[0] *= choose.random() < 0.95
    axes, d = len(shape), choose.randrange(len(shape))
    dtype = choose.choice([torch.float32, torch.bfloat16])
    x = numbers(*shape, dtype=dtype, seed=choose.randrange(100), device=device)
    layout = choose.choice(["contiguous", "permuted", "permuted", "channels_last", "expanded", "gaps", "short axes"])
    if layout == "channels_last" and axes >= 4:
        return x.to(memory_format=torch.channels_last if axes == 4 else torch.channels_last_3d)
    if layout == "expanded":
        return x.narrow(d, 0, min(1, shape[d])).expand(shape)
    if layout == "short axes":
        return x.as_strided(shape, [7 if n == 1 else stride for n, stride in zip(shape, x.stride())])
    if layout in ("permuted", "gaps"):
        order = choose.sample(range(axes), axes)
        x = x.permute(order).contiguous().permute([order.index(i) for i in range(axes)])
    return torch.stack([x, x], d + 1).select(d + 1, 0) if layout == "gaps" else x


def layouts(name, device):
    """Tensors of many layouts, each with an axis, and whether to keep that."""
    choose = random.Random(name)
    image, volume = numbers(2, 3, 4, 5, device=device), numbers(2, 3, 4, 2, 2, device=device)
    images = [image.to(memory_format=torch.channels_last), volume.to(memory_format=torch.channels_last_3d)]
    for x in (*images, *(any_layout(choose, device) for _ in range(20))):
        yield x, choose.randrange(x.dim()), choose.random() < 0.5


def places(x, d):
    return torch.tensor([0, 1, 0] if x.shape[d] else [], dtype=torch.long, device=x.device) % max(1, x.shape[d])


def places_along(x, d):
    """One place for each row along the axis d, expanded along the others."""
    shape = [3 * bool(size) if i == d else size for i, size in enumerate(x.shape)]
    return places(x, d).reshape([-1 if i == d else 1 for i in range(x.dim())]).expand(shape)


def first_classes(x):
    return torch.zeros([*x.shape[:1], *x.shape[2:]] if x.dim() > 1 else [], dtype=torch.long, device=x.device)


def ones(x, d):
    return x.new_ones(x.shape[d:])


def empty(x):
    return x.new_empty(0)


def outs(x, *names):
    return {name: empty(x.float()) for name in names}


def norms_into_list(tensors):
    found = [empty(x) for x in tensors]
    aten._foreach_norm.Scalar_out(tensors, 2, out=found)
    return found


def rows(x):
    return x.detach().float().reshape(x.shape[0], -1) if x.numel() else x.new_ones(2, 3).float()


aten = torch.ops.aten
LOSSES = (
    F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss, F.binary_cross_entropy_with_logits,
    F.kl_div, lambda x, y, reduction: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=reduction),
)  # fmt: skip
# The losses as operators, and the arguments before the reduction.
LOSSES_OF_ATEN = [
    (aten.mse_loss, ()), (aten.smooth_l1_loss, ()), (aten.huber_loss, ()), (aten.soft_margin_loss, ()),
    (aten.binary_cross_entropy, (None,)), (aten.binary_cross_entropy_with_logits, (None, None)),
]  # fmt: skip
# Functions of a tensor, an axis, and whether that is kept.
OF_ANY_LAYOUT = {
    "sum": lambda x, d, k: (x.sum(), x.sum(d, k), x.sum((), k)),
    "mean": lambda x, d, k: (x.mean(), x.mean(d, k)),
    "var": lambda x, d, k: (x.var(), x.var(d, keepdim=k), *torch.var_mean(x, d, keepdim=k)),
    "std": lambda x, d, k: (x.std(), x.std(d, keepdim=k), *torch.std_mean(x, d, keepdim=k)),
    "norm": lambda x, d, k: (
        torch.linalg.vector_norm(x, 2, d, k), torch.norm(x, 1, d, k), aten.norm.Scalar(x, 2),
        aten.norm.ScalarOpt_dim(x, 2, [d], k), aten.norm.ScalarOpt_dtype(x, 2, dtype=torch.float32),
        aten.norm.ScalarOpt_dim_dtype(x, 2, [d], k, dtype=torch.float32), *torch._foreach_norm([x, x.detach()], 1),
    ),
    "softmax": lambda x, d, k: (x.softmax(d), x.softmax(d, dtype=torch.float32), aten._safe_softmax(x, d)),
    "log_softmax": lambda x, d, k: (x.log_softmax(d), x.log_softmax(d, dtype=torch.float32)),
    "softmax_backward": lambda x, d, k: (
        aten._softmax_backward_data(x, x, d, x.dtype), aten._softmax_backward_data(x, x.contiguous(), d, x.dtype),
        aten._log_softmax_backward_data(x, x, d, x.dtype),
        aten._log_softmax_backward_data(x, x.contiguous(), d, x.dtype),
    ),
    "logsumexp": lambda x, d, k: x.logsumexp(d, k),
    "layer_norm": lambda x, d, k: (
        *aten.native_layer_norm(x, x.shape[d:], None, None, 1e-5), F.layer_norm(x, x.shape[d:], ones(x, d), ones(x, d)),
    ),
    "rms_norm": lambda x, d, k: (F.rms_norm(x, x.shape[d:]), F.rms_norm(x, x.shape[d:], ones(x, d))),
    "cross_entropy": lambda x, d, k: tuple(
        F.cross_entropy(x, first_classes(x), **keywords)
        for keywords in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"label_smoothing": 0.5})
    ),
    "cross_entropy of shares": lambda x, d, k: F.cross_entropy(x, x.detach()),
    "nll_loss": lambda x, d, k: F.nll_loss(x, first_classes(x)),
    "losses": lambda x, d, k: tuple(
        loss(x, x.detach().flip(d), reduction=reduction) for loss in LOSSES for reduction in ("none", "mean", "sum")
    ),
    "cumsum": lambda x, d, k: (x.cumsum(d), x.cumsum(d, dtype=torch.float64)),
    "index_add": lambda x, d, k: x.index_add(d, places(x, d), x.index_select(d, places(x, d))),
    "scatter_add of rows": lambda x, d, k: x.scatter_add(d, places_along(x, d), x.gather(d, places_along(x, d))),
    "scatter_add of elements": lambda x, d, k: x.scatter_add(
        d, places_along(x, d).contiguous(), x.gather(d, places_along(x, d))
    ),
    "scatter_add of nothing": lambda x, d, k: x.detach().scatter_add(d, places_along(x, d).narrow(d, 0, 0), x.detach()),
    "index_put": lambda x, d, k: (
        aten.index_put(x, [None] * d + [places(x, d)], x.new_ones(()), True),
        aten.index_put(x, [places(x, 0), *[None] * (d - 1), places(x, d)][: d + 1], x.new_ones(()), True),
    ),
    "indexing": lambda x, d, k: (x.index_select(d, places(x, d)), x.gather(d, places_along(x, d)), x[places(x, 0)]),
    "embedding": lambda x, d, k: F.embedding(places(x, 0), x.flatten(1) if x.dim() > 1 else x.unsqueeze(1)),
}  # fmt: skip
# Functions that write to a tensor, and have no gradients.
WRITING = {
    "sum": lambda x, d, k: (torch.sum(x, d, k, out=empty(x)), aten.sum.out(x, out=empty(x))),
    "mean": lambda x, d, k: (torch.mean(x, d, k, out=empty(x)), aten.mean.dtype_out(x, out=empty(x))),
    "moments": lambda x, d, k: (
        torch.var(x, d, keepdim=k, out=empty(x)), torch.std(x, d, keepdim=k, out=empty(x)),
        *aten.var_mean.correction_out(x, [d], keepdim=k, out0=empty(x), out1=empty(x)),
        *aten.std_mean.correction_out(x, [d], keepdim=k, out0=empty(x), out1=empty(x)),
    ),
    "norm": lambda x, d, k: (
        aten.norm.Scalar_out(x, 1, out=empty(x)), aten.norm.ScalarOpt_dtype_out(x, 1, dtype=x.dtype, out=empty(x)),
        torch.linalg.vector_norm(x, 2, d, k, out=empty(x)), aten.norm.out(x, 2, [d], k, out=empty(x)),
        aten.norm.dtype_out(x, 2, [d], k, dtype=x.dtype, out=empty(x)), *norms_into_list([x, x.clone()]),
    ),
    "softmax": lambda x, d, k: (
        torch.softmax(x, d, out=empty(x)), aten._softmax.out(x, d, False, out=empty(x)),
        torch.log_softmax(x, d, out=empty(x)), aten._log_softmax.out(x, d, False, out=empty(x)),
        torch.logsumexp(x, d, k, out=empty(x)),
    ),
    "softmax_backward": lambda x, d, k: (
        aten._softmax_backward_data.out(x, x, d, x.dtype, grad_input=empty(x)),
        aten._log_softmax_backward_data.out(x, x, d, x.dtype, out=empty(x)),
    ),
    "layer_norm": lambda x, d, k: aten.native_layer_norm.out(
        rows(x), rows(x).shape[1:], None, None, 1e-5, **outs(x, "out0", "out1", "out2")
    ),
    "gradients of layer_norm": lambda x, d, k: aten.native_layer_norm_backward.out(
        rows(x), rows(x), rows(x).shape[1:], *aten.native_layer_norm(rows(x), rows(x).shape[1:], None, None, 1e-5)[1:],
        ones(rows(x), 1), ones(rows(x), 1), [True] * 3, **outs(x, "out0", "out1", "out2"),
    ),
    "nll_loss": lambda x, d, k: (
        *aten.nll_loss_forward.output(
            rows(x), first_classes(rows(x)), None, 1, -100, **outs(x, "output", "total_weight")
        ),
        *aten.nll_loss2d_forward.output(
            rows(x)[..., None, None], first_classes(rows(x)[..., None, None]), None, 2, -100,
            **outs(x, "output", "total_weight"),
        ),
    ),
    "gradient of embedding": lambda x, d, k: aten.embedding_dense_backward.out(
        rows(x), torch.arange(len(rows(x)), device=x.device) % 2, 2, -1, False, **outs(x, "out")
    ),
    "losses": lambda x, d, k: tuple(
        loss.out(x.sigmoid(), x.sigmoid(), *middle, reduction, out=empty(x))
        for loss, middle in LOSSES_OF_ATEN for reduction in (0, 1, 2)
    ),
    "cumsum": lambda x, d, k: (torch.cumsum(x, d, out=empty(x)), x.clone().cumsum_(d)),
    "index_add": lambda x, d, k: (
        torch.index_add(x, d, places(x, d), x.index_select(d, places(x, d)), out=empty(x)),
        x.clone().index_add_(d, places(x, d), x.index_select(d, places(x, d))),
    ),
    "scatter_add": lambda x, d, k: (
        torch.scatter_add(x, d, places_along(x, d), x.gather(d, places_along(x, d)), out=empty(x)),
        x.clone().scatter_add_(d, places_along(x, d), x.gather(d, places_along(x, d))),
    ),
    "index_put": lambda x, d, k: (
        aten.index_put.out(x, [None] * d + [places(x, d)], x.new_ones(()), True, out=empty(x)),
        x.clone().index_put_([places(x, 0)], x.new_ones(()), True),
    ),
}  # fmt: skip


class Operators(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func))
        return func(*args, **(kwargs or {}))


def strides_of(results, is_exact):
    """Shapes, strides and memory formats. Unless they are exact, strides along axes of length 1 do not count."""
    return [
        (tuple(y.shape), [s for s, n in zip(y.stride(), y.shape) if is_exact or (n != 1 and y.numel())],
         suggest_memory_format(y) if is_exact or 1 not in y.shape else None)
        for y in results
    ]  # fmt: skip


def results_or_error(function):
    try:
        return as_tuple(function())
    except (RuntimeError, IndexError):
        return None


def gradients_of(results, x):
    found = []
    for y in results:
        if not y.requires_grad:
            continue
        contiguous = torch.ones_like(y, memory_format=torch.contiguous_format)
        transposed = y.new_ones(y.shape[::-1]).permute(list(range(y.dim()))[::-1])
        for gradient in (torch.ones_like(y), contiguous, transposed, y.new_ones(()).expand(y.shape)):
            of_x = results_or_error(lambda: torch.autograd.grad(y, x, gradient, retain_graph=True))
            found += of_x or [torch.empty(0)]
    return found


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("name", OF_ANY_LAYOUT)
def test_results_and_gradients_have_the_strides_of_pytorch(name, device):
    compared = 0
    for x, d, keepdim in layouts(name, device):
        found = []
        for mode in (Operators(), deterministic()):  # under any mode, PyTorch adds up gradients in new tensors
            y = x.detach().requires_grad_()
            with mode:
                results = results_or_error(lambda: OF_ANY_LAYOUT[name](y, d, keepdim))
                gradients = gradients_of(results or (), y)
            found.append(results and (strides_of(results, name != "rms_norm"), strides_of(gradients, False)))
        assert found[0] == found[1], (x.dtype, x.shape, x.stride(), d, keepdim)
        compared += found[0] is not None
    assert compared >= 15


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize("name", WRITING)
def test_tensors_that_are_written_have_the_strides_of_pytorch(name, device):
    for x, d, keepdim in layouts(name, device):
        usual = as_tuple(WRITING[name](x, d, keepdim))
        with deterministic():
            found = as_tuple(WRITING[name](x, d, keepdim))
        assert strides_of(found, True) == strides_of(usual, True), (x.dtype, x.shape, x.stride(), d, keepdim)
        if name not in ("losses", "softmax_backward"):  # PyTorch's binary_cross_entropy with out is wrong
            torch.testing.assert_close(found, usual, rtol=0.1, atol=0.5, equal_nan=True)


@pytest.mark.parametrize("device", devices)
def test_losses_and_softmax_into_out_have_the_bits_of_their_other_forms(device):
    x = numbers(6, 5, device=device).sigmoid()
    with deterministic() as routing:
        for loss, middle in LOSSES_OF_ATEN:
            for reduction in (1, 2):
                arguments = (x, x.flip(0), *middle, reduction)
                assert same_bits(loss.out(*arguments, out=empty(x)), loss.default(*arguments))
        assert same_bits(torch.softmax(x, 0, out=empty(x)), x.softmax(0))
        assert same_bits(torch.log_softmax(x, 1, dtype=torch.float32, out=empty(x)), x.log_softmax(1))
    assert routing.calls["softmax"] == routing.calls["log_softmax"] == 2 and routing.calls["huber_loss"] == 4


def test_the_strides_of_all_routed_operators_are_compared():
    with Operators() as called:
        for x in (numbers(2, 3), numbers(2, 3, 4, 5)):
            for function in OF_ANY_LAYOUT.values():
                y = x.detach().requires_grad_()
                gradients_of(as_tuple(function(y, 1, True)), y)
            for function in WRITING.values():
                function(x, 1, True)
    on_a_gpu_only = {"aten._fused_rms_norm.default", "aten._fused_rms_norm_backward.default"}
    assert set(samesum.torch.routed()) - on_a_gpu_only <= called.names


@pytest.mark.parametrize("device", devices)
def test_operators_have_the_same_strides_with_and_without_data(device):
    calls = operator_calls(device)  # opcheck compares strides on a GPU only
    for x, d, keepdim in layouts("operators", device):
        axes, weight, row = x.dim() - d, ones(x, d), x.new_ones([*x.shape[:d], *[1] * (x.dim() - d)]).float()
        calls += [
            (ops.reduce, (x, "mean", [d], keepdim, None)), (ops.reduce, (x, "moments", sorted({0, d}), keepdim, None)),
            (ops.softmax, (x, "softmax", sorted({0, d}), None)), (ops.square_root, (x,)),
            (ops.layer_norm, (x, axes, weight, weight, 1e-5, "tree/plain")),
            (ops.rms_norm, (x, axes, weight, 1e-5, "tree/plain")),
        ]  # fmt: skip
        for gradient in (x, torch.ones_like(x, memory_format=torch.contiguous_format), x.new_ones(()).expand(x.shape)):
            calls += [
                (ops.layer_norm_backward, (gradient, x, axes, row, row, weight, [True] * 3, "exact")),
                (ops.rms_norm_backward, (gradient, x, axes, row, weight, [True, True], "exact")),
                (ops.rms_norm_backward, (gradient, x, axes, row, None, [True, False], "exact")),
            ]
    for operator, arguments in calls:
        with FakeTensorMode() as mode:
            without = operator(*[mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments])
        found, without = as_tuple(operator(*arguments)), as_tuple(without)
        assert strides_of(found, False) == strides_of(without, False), (operator, arguments[0].stride(), arguments[1:])
        assert [y.dtype for y in found] == [y.dtype for y in without]


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
def test_a_segmentation_network_is_trained_under_the_manager(format):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.GELU(), torch.nn.Conv2d(5, 4, 1))
    network.to(memory_format=format)
    images, classes = numbers(2, 3, 6, 6).to(memory_format=format), torch.arange(32).reshape(2, 4, 4) % 4
    gradients = []
    for mode in (Operators(), deterministic()):
        network.zero_grad()
        with mode:
            scores = network(images)
            (F.cross_entropy(scores, classes) + scores.softmax(1).view(2, 4, -1).square().mean()).backward()
        gradients.append([p.grad for p in network.parameters()])
    for found, usual in zip(*gradients):
        torch.testing.assert_close(found, usual, rtol=1e-4, atol=1e-5)
        assert found.stride() == usual.stride()


# Scope


AXES = {
    "sum": lambda x, dim: x.sum(dim),
    "sum into out": lambda x, dim: torch.sum(x, dim, out=torch.empty(0)),
    "mean": lambda x, dim: x.mean(dim, keepdim=True),
    "var": lambda x, dim: torch.var(x, dim),
    "std": lambda x, dim: torch.std(x, dim, correction=0),
    "var_mean": lambda x, dim: torch.var_mean(x, dim, correction=0),
    "std_mean": lambda x, dim: torch.std_mean(x, dim),
    "vector norm": lambda x, dim: torch.linalg.vector_norm(x, 1, dim),
    "norm": lambda x, dim: torch.norm(x, dim=dim),
    "logsumexp": lambda x, dim: torch.logsumexp(x, dim),
    "softmax": lambda x, dim: torch.softmax(x, dim),
    "log_softmax": lambda x, dim: F.log_softmax(x, dim, dtype=torch.float32),
    "safe softmax": lambda x, dim: torch.ops.aten._safe_softmax(x, dim),
    "softmax gradient": lambda x, dim: torch.ops.aten._softmax_backward_data(x, x, dim, x.dtype),
    "cumsum": lambda x, dim: torch.cumsum(x, dim),
    "log_softmax gradient": lambda x, dim: torch.ops.aten._log_softmax_backward_data(x, x, dim, x.dtype),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_that_do_not_exist_raise_pytorchs_errors(name):
    function = AXES[name]
    bad = [(numbers(2, 3), dim) for dim in (2, -3, 5, -7, 9)] + [(torch.tensor(1.0), dim) for dim in (1, -2, 5)]
    for x, dim in bad:
        with pytest.raises(IndexError, match="samesum: dim is"), deterministic():
            function(x, dim)
    with deterministic():
        for dim in (0, -1):
            assert as_tuple(function(torch.tensor(1.0), dim))[0].numel() == 1
    if "softmax" in name or name == "cumsum":
        return
    for x, dims, error in [
        (numbers(2, 3), (0, 0), RuntimeError), (numbers(2, 3), (1, -1), RuntimeError),
        (numbers(2, 3), (0, 2), IndexError), (torch.tensor(1.0), (0, -1), RuntimeError),
    ]:  # fmt: skip
        with pytest.raises(error, match="samesum: dim is"), deterministic():
            function(x, dims)


def test_the_manager_is_reversible_and_nests():
    x = torch.tensor([1.0, 1e8, -1e8])
    usual = x.sum()
    before = torch.are_deterministic_algorithms_enabled()
    with deterministic("tree/plain") as outer:
        assert x.sum() == 0
        with deterministic("exact") as inner:
            assert x.sum() == 1
        assert x.sum() == 0
        with pytest.raises(KeyError):
            with outer:
                raise KeyError
        assert x.sum() == 0
    assert outer.calls == {"sum": 3} and inner.calls == {"sum": 1}
    x.sum()
    assert outer.calls == {"sum": 3}
    assert same_bits(x.sum(), usual)
    assert torch._C._len_torch_dispatch_stack() == 0 and torch._C._len_torch_function_stack() == 0
    assert torch.are_deterministic_algorithms_enabled() == before


@pytest.mark.parametrize("compiled", [False, True])
def test_corrections_are_as_in_pytorch_or_named_in_the_error(compiled):
    x = numbers(2, 5)

    def variance(x, correction):
        return torch.var(x, 1, correction=correction)

    function = torch.compile(variance, backend="eager") if compiled else variance
    for correction in (0, 0.5, 1.5, 2):
        with deterministic("exact"):
            result = function(x, correction)
        assert torch.allclose(result, variance(x, correction))
        with deterministic("tree/plain"):
            assert correction == int(correction) or same_bits(result, function(x, correction))
    for correction in (-1, -0.5):
        with pytest.raises(Exception, match="samesum: correction is"), deterministic("exact"):
            function(x, correction)


def test_managers_are_left_in_the_reverse_order():
    with pytest.raises(RuntimeError, match="samesum: this manager was not entered"):
        deterministic().__exit__(None, None, None)
    a, b = deterministic(), deterministic("exact")
    a.__enter__()
    b.__enter__()
    with pytest.raises(RuntimeError, match="samesum: .* reverse order"):
        a.__exit__(None, None, None)
    torch.ones(2).sum()
    b.__exit__(None, None, None)
    torch.ones(2).sum()
    a.__exit__(None, None, None)
    torch.ones(2).sum()
    assert (a.calls["sum"], b.calls["sum"]) == (1, 1)


def test_the_manager_takes_a_method_and_no_other_objects():
    chosen = next(m for m in samesum.methods() if m.name == "sum/tree/kahan/fp32@cpu")
    assert deterministic(chosen).method == "tree/kahan"
    for method in (5, None, samesum):
        with pytest.raises(TypeError, match="samesum: method is"):
            deterministic(method)
    with pytest.raises(ValueError, match="samesum: method is"):
        deterministic(next(m for m in samesum.methods() if m.operation == "dot"))


def test_only_methods_with_the_same_bits_everywhere_are_accepted():
    with pytest.raises(ValueError, match="promise"):
        deterministic("atomic/plain")
    with pytest.raises(ValueError, match="tree/kahan"):
        deterministic("tree/plain/fp32")


def run_in_thread(function):
    found = []

    def run():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_another_thread_is_not_routed():
    x = torch.tensor([1.0, 1e8, -1e8])
    with deterministic("exact") as routing:
        run_in_thread(lambda: x.sum())
        assert not routing.calls


@pytest.mark.parametrize("device", devices)
@pytest.mark.parametrize(
    "function",
    [lambda x: (x + x[0]).sum(), lambda x: x.softmax(-1), lambda x: F.layer_norm(x, (4,)),
     lambda x: F.rms_norm(x, (4,)),
     lambda x: torch.var_mean(x, 1), lambda x: F.linear(x, x), lambda x: x.split(1)[0], lambda x: x.T],
)  # fmt: skip
def test_a_backward_pass_outside_the_manager_raises_an_error(function, device):
    x = numbers(4, 4, device=device).requires_grad_()
    with deterministic():
        results = as_tuple(function(x))

    def backward():
        torch.autograd.backward(results, [torch.ones_like(y) for y in results])

    with pytest.raises(RuntimeError, match="outside"):
        backward()
    assert x.grad is None
    assert isinstance(run_in_thread(backward), RuntimeError)
    # What is recorded later reaches the same operators.
    with pytest.raises(RuntimeError, match="outside"):
        (2 * results[0]).sum().backward()


def assign(y, b):
    y[:] = b


def assign_to_a_view(y, b):
    y[0].add_(b)


def add_in_place(y, b):
    y += b


@pytest.mark.parametrize(
    "write",
    [
        add_in_place, assign, assign_to_a_view, lambda y, b: y.add_(b), lambda y, b: y.copy_(b),
        lambda y, b: y.mT.add_(b[0]), lambda y, b: torch._foreach_add_([y], [b]),
    ],
)  # fmt: skip
def test_a_backward_pass_outside_the_manager_raises_an_error_for_what_was_written_in_place(write):
    b, y = torch.ones(2, requires_grad=True), torch.zeros(3, 2)
    with deterministic():
        write(y, b)
    with pytest.raises(RuntimeError, match="samesum: this backward pass"):
        y.sum().backward()
    with deterministic():
        write(z := torch.zeros(3, 2), b)
        z.sum().backward()
    assert b.grad is not None


def test_calls_that_write_nothing_watch_nothing():
    b = torch.ones(2, requires_grad=True)
    y = b.expand(3, 2) * 2
    with deterministic():
        assert y.to(torch.float32) is y and y.contiguous() is y
        with torch.no_grad():
            y.mul_(2)
    y.sum().backward()
    assert b.grad.tolist() == [6, 6]


@pytest.mark.parametrize("device", devices)
def test_a_backward_pass_in_another_manager_or_thread_is_routed(device):
    bias = torch.zeros(3, device=device, requires_grad=True)
    gradient = torch.tensor([1.0, 1e8, -1e8], device=device).reshape(3, 1).expand(3, 3)
    for run in (lambda f: f(), run_in_thread):
        bias.grad = None
        with deterministic():
            y = torch.zeros(3, 3, device=device) + bias

        def backward():
            with deterministic("exact") as routing:
                y.backward(gradient)
            return routing.calls

        assert run(backward) == {"sum": 1}
        assert bias.grad.tolist() == [1, 1, 1]


@on_gpu
def test_autograds_threads_are_routed():
    # The backward pass of a GPU runs in a thread of autograd.
    threads = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            threads.append(threading.get_ident())
            return gradient + 0 * gradient.sum()

    x = numbers(100, 3, device="cuda").requires_grad_()
    with deterministic() as routing:
        y = Spy.apply(x).sum()
        y.backward()
    assert threads != [threading.get_ident()]
    assert routing.calls == {"sum": 2}


def test_what_was_recorded_before_the_manager_is_routed_inside_and_free_outside():
    x = numbers(4, 3).requires_grad_()
    y = x + x[0]
    with deterministic() as routing:
        y.contiguous().sum().backward(retain_graph=True)
        assert routing.calls["sum"] == 2
        assert y.contiguous() is y
    y.sum().backward()


def test_double_backward_is_routed():
    x = numbers(4, 3).requires_grad_()
    with deterministic() as routing:
        (gradient,) = torch.autograd.grad(x.softmax(-1).square().sum(), x, create_graph=True)
        routing.calls.clear()
        gradient.square().sum().backward()
    assert routing.calls["sum"] and routing.calls["softmax_backward"]


def test_recomputed_activations_are_routed():
    from torch.utils.checkpoint import checkpoint

    x = numbers(4, 3).requires_grad_()
    with deterministic() as routing:
        y = checkpoint(lambda x: x.softmax(-1), x, use_reentrant=False)
        y.sum().backward()
    assert routing.calls["softmax"] == 2


def test_autocast_is_as_in_pytorch():
    x = numbers(4, 8)
    layer = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        usual = layer(x).softmax(-1).dtype
        with deterministic() as routing:
            found = layer(x).softmax(-1).dtype
    assert found == usual and routing.calls["softmax"] == 1


# torch.compile


def graphs_of(function):
    """Compiles a function by a backend that keeps the operators of each graph: forward and backward ones."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    torch._dynamo.reset()
    graphs: list[list[str]] = []

    def keep(graph, inputs):
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return make_boxed_func(graph.forward)

    return torch.compile(function, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep)), graphs


ADDING = ("aten.sum", "aten.mean", "aten.var", "aten.std", "aten.linalg_vector_norm", "aten._softmax",
          "aten._log_softmax", "aten.logsumexp", "aten.native_layer_norm",
          "aten._fused_rms_norm", "aten.nll_loss")  # fmt: skip


def adds_by_pytorch(graphs):
    return [name for graph in graphs for name in graph if name.startswith(ADDING)]


def block(x, w):
    y = F.layer_norm(x, (8,), w, w)
    y = (y @ y.T).softmax(-1) @ y
    y = F.rms_norm(F.gelu(x * 2 + y), (8,), w)
    return y.std(-1).mean() + y.log_softmax(-1).sum() + y.logsumexp(0).var()


def inputs():
    return numbers(16, 8).requires_grad_(), (numbers(8, seed=1) / 8).requires_grad_()


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_function_is_compiled_again_inside_and_its_graphs_have_samesums_operators():
    compiled, graphs = graphs_of(block)
    outside = inputs()
    compiled(*outside).backward()
    assert adds_by_pytorch(graphs)
    graphs.clear()
    found, expected = inputs(), inputs()
    with deterministic() as routing:
        compiled(*found).backward()
    assert graphs and not adds_by_pytorch(graphs)
    names = {name for graph in graphs for name in graph}
    assert {"samesum.layer_norm.default", "samesum.layer_norm_backward.default", "samesum.softmax.default",
            "samesum.reduce.default", "samesum.reduce_pair.default",
            "samesum.rms_norm.default"} <= names  # fmt: skip
    assert routing.calls["layer_norm"] == 1 and routing.calls["layer_norm_backward"] == 1
    with deterministic():
        block(*expected).backward()
    for a, b in zip(found, expected):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
    compiles = len(graphs)
    with deterministic():  # again: nothing is compiled
        compiled(*inputs()).backward()
    assert len(graphs) == compiles
    compiled(*inputs()).backward()  # outside: the first graphs are used again
    assert len(graphs) == compiles


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_function_is_compiled_again_for_another_method():
    compiled, graphs = graphs_of(lambda x: x.sum() * 1)
    x = torch.tensor([1.0, 1e8, -1e8])
    for method, value in (("tree/plain", 0), ("exact", 1), ("tree/plain", 0)):
        with deterministic(method):
            assert compiled(x) == value
    assert len(graphs) == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [lambda x, w: F.linear(x, x[:3] * 1, w[:3]), lambda x, w: x + w, lambda x, w: w * x, lambda x, w: x @ w,
     lambda x, w: F.normalize(x * 2), lambda x, w: F.mse_loss(x, x * 2), lambda x, w: torch.norm(x * 2),
     lambda x, w: x.expand(3, 16, 8) * 2, lambda x, w: F.cross_entropy(x, torch.arange(16) % 8),
     lambda x, w: torch.cumsum(x, 0).sum(1), lambda x, w: torch.matmul(x.T, x.reshape(2, 16, 4)).sum()],
)  # fmt: skip
def test_graphs_have_no_sums_of_pytorch(function):
    compiled, graphs = graphs_of(lambda x, w: function(x * 1, w) * 1)
    results = []
    for f in (function, compiled):
        x, w = inputs()
        with deterministic():
            y = f(x, w)
            y.backward(torch.ones_like(y))
        results.append((y, x.grad, w.grad))
    assert not adds_by_pytorch(graphs)
    for a, b in zip(*results):
        assert (a is None) == (b is None) and (a is None or same_bits(a, b))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["contiguous", "permuted", "channels_last"])
def test_results_of_graphs_have_the_strides_of_pytorch(layout):
    def function(x):
        x = x * 1
        return (
            x.softmax(1), x.log_softmax(2), F.softmax(x, 3), x.sum(1), x.mean(2, keepdim=True), x.var(1), x.std(2),
            *torch.var_mean(x, 1), *torch.std_mean(x, 0, keepdim=True), x.logsumexp(1), F.layer_norm(x, x.shape[1:]),
            F.rms_norm(x, x.shape[3:]),
        )  # fmt: skip

    x = numbers(2, 3, 4, 5)
    if layout == "permuted":
        x = numbers(5, 3, 2, 4).permute(2, 1, 3, 0)
    if layout == "channels_last":
        x = x.to(memory_format=torch.channels_last)
    compiled, graphs = graphs_of(function)
    usual = function(x)
    with deterministic():
        found = compiled(x)
    assert len(graphs) == 1 and not adds_by_pytorch(graphs)
    assert strides_of(found, True) == strides_of(usual, True)
    torch.testing.assert_close(found, usual, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_functions_run_eagerly_outside_graphs_are_routed_below_any_python_code():
    # F.normalize is Python code that calls a norm; where a graph breaks, it must not be compiled by itself.
    compiled, graphs = graphs_of(lambda x: F.normalize(torch.cumsum(x, 0) * 2) * 2)
    with deterministic() as routing:
        compiled(numbers(4, 8))
    assert routing.calls["norm"] == 1 and not adds_by_pytorch(graphs)


@pytest.mark.filterwarnings("ignore")
def test_a_manager_inside_a_compiled_function_is_in_force():
    def function(x):
        with deterministic("exact"):
            y = x.sum()
        return y + 1

    compiled, graphs = graphs_of(function)
    assert compiled(torch.tensor([1.0, 1e8, -1e8])) == 2
    assert not adds_by_pytorch(graphs)
    assert torch._C._len_torch_dispatch_stack() == 0


@pytest.mark.filterwarnings("ignore")
def test_functions_of_samesum_can_be_called_in_a_compiled_function():
    compiled, _ = graphs_of(lambda x: samesum.softmax(x * 2, method="tree/plain") + samesum.sum(x))
    x = numbers(4, 8).requires_grad_()
    assert same_bits(compiled(x), samesum.softmax(x * 2, method="tree/plain") + samesum.sum(x))


@pytest.mark.filterwarnings("ignore")
def test_operators_of_samesum_are_part_of_one_compiled_graph():
    compiled, graphs = graphs_of(lambda x: ops.reduce(x * 2, "sum", [1], False, "tree/kahan"))
    x = numbers(4, 8)
    assert same_bits(compiled(x), samesum.sum(x * 2, axis=1, method="tree/kahan"))
    assert graphs == [["aten.mul.Tensor", "samesum.reduce.default"]]


# Training


@pytest.mark.parametrize("device", devices)
def test_a_transformer_is_trained_under_the_manager(device):
    with deterministic() as routing:
        first = train(Transformer(), device)
    with deterministic():
        second = train(Transformer(), device)
    assert [a.hex() for a in first] == [b.hex() for b in second]
    assert first[-1] < 0.7 * first[0]
    assert {
        "layer_norm",
        "layer_norm_backward",
        "softmax",
        "softmax_backward",
        "log_softmax",
        "nll_loss",
        "sum",
    } <= set(routing.calls)
    usual = train(Transformer(), device)
    assert usual == pytest.approx(first, rel=1e-3)


class ProductsInOneThread(TorchDispatchMode):
    """Matrix products are not routed; on the CPU their bits can depend on the number of threads."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        threads = torch.get_num_threads()
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm):
            torch.set_num_threads(1)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            torch.set_num_threads(threads)


def test_the_number_of_threads_does_not_change_what_is_learned():
    threads = torch.get_num_threads()
    try:
        losses = []
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            with ProductsInOneThread(), deterministic():
                losses.append([loss.hex() for loss in train(Transformer(), "cpu")])
    finally:
        torch.set_num_threads(threads)
    assert losses[0] == losses[1] == losses[2]


def test_the_examples_in_docstrings_are_right():
    import doctest

    failed, tried = doctest.testmod(samesum.torch)
    assert tried and not failed


def test_what_is_routed_and_what_is_not_can_be_listed():
    assert "aten.sum.dim_IntList" in samesum.torch.routed()
    assert "matrix products" in samesum.torch.not_routed() and "attention" in samesum.torch.not_routed()
