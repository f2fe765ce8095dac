"""What samesum.torch.deterministic leaves to PyTorch: what adds is routed, or is listed and counted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from test_torch import ROUTED, as_tuple, numbers, same_bits  # noqa: E402

import samesum  # noqa: E402
import samesum.torch  # noqa: E402
from samesum.torch import _operators as operators  # noqa: E402
from samesum.torch._handlers import _HANDLERS  # noqa: E402

deterministic = samesum.torch.deterministic
inf = float("inf")


# Lists of operators


def has_kernel(name: str, key: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def reaching_operators():
    """The operators of the installed PyTorch with tensors among their arguments that are not made of others."""
    for name in torch._C._dispatch_get_all_op_names():
        if not torch._C._dispatch_has_kernel(name) or has_kernel(name, "CompositeImplicitAutograd"):
            continue
        namespace, _, packet = name.partition("::")
        packet, _, overload = packet.partition(".")
        operator = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
        if any("Tensor" in str(a.type) for a in operator._schema.arguments):
            yield operator


def without_a_place() -> set[str]:
    """Operators of aten that nothing knows. Those of other packages come with imports, and count as missed."""
    left = (o for o in reaching_operators() if o not in _HANDLERS and str(o).startswith("aten."))
    return {str(o) for o in left if operators.family_of(o) == operators.UNKNOWN}


def test_every_operator_of_pytorch_is_routed_or_listed_or_adds_nothing():
    assert without_a_place() == set()


def test_a_new_operator_of_pytorch_is_noticed():
    library = torch.library.Library("aten", "FRAGMENT")
    try:
        for name in ("sum_of_a_later_version", "index_sum_"):
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, lambda x: x.clone(), "CPU")
        assert without_a_place() == {"aten.sum_of_a_later_version.default", "aten.index_sum_.default"}
    finally:
        library._destroy()


def test_operators_that_pytorch_tags_as_reductions_are_routed_or_listed_unless_no_order_matters_to_them():
    harmless = {
        operators.name_of(o) for o in reaching_operators()
        if torch.Tag.reduction in o.tags and o not in _HANDLERS and operators.family_of(o) is None
    }  # fmt: skip
    assert harmless == {
        "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "max", "min",
    }  # fmt: skip


# PyTorch 2.11 or 2.15 lacks them.
OF_SOME_VERSIONS = {"_foreach_mm", "_scaled_addmm", "_philox_*", "shallow_copy_data", "prepacked.*"}


def test_no_name_is_that_of_an_operator_which_pytorch_lacks():
    names = {operators._short(name.partition(".")[0]) for name in torch._C._dispatch_get_all_op_names()}
    for pattern in {*operators._FAMILIES, *operators._HARMLESS} - OF_SOME_VERSIONS:
        name = pattern.partition(".")[0] if pattern.startswith("scatter.") else pattern
        assert any(operators.fnmatchcase(n, name) for n in names), pattern


def test_all_forms_of_a_routed_operator_are_routed():
    routed = {operators.name_of(o) for o in _HANDLERS}
    left = {str(o) for o in reaching_operators() if o not in _HANDLERS and operators.name_of(o) in routed}
    assert not left
    assert sum("out" in o._overloadname for o in _HANDLERS) > 20


def test_what_is_left_is_listed_by_its_names_in_the_installed_pytorch():
    families = {family: names.split() for family, names in samesum.torch.not_routed().items()}
    assert {"mm", "conv2d", "index_reduce", "histogram", "batch_norm", "prod"} <= set(sum(families.values(), []))
    assert "scatter" in families["writes where an index repeats"] and "c10d.*reduce*" in families["sums over ranks"]
    assert all(families.values())


# Calls


def keys():
    return torch.tensor([0, 0, 2])


def tokens():
    return torch.tensor([[0, 1, 1]])


MISSED = {
    "mm": lambda x: x @ x, "bmm": lambda x: torch.bmm(x[None], x[None]), "addmm": lambda x: torch.addmm(x, x, x),
    "mv": lambda x: x @ x[0], "dot": lambda x: x[0].dot(x[1]),
    "convolution": lambda x: F.conv1d(x, torch.ones(3, 3, 1)),
    "prod": lambda x: x.prod(0), "cumprod": lambda x: x.clone().cumprod_(0), "trace": lambda x: x.trace(),
    "nansum": lambda x: x.nanmean(), "linalg_vector_norm": lambda x: x.norm(3),
    "_foreach_norm": lambda x: torch._foreach_norm([x, x], 3),
    "index_reduce": lambda x: x.index_reduce(0, keys(), x, "mean"),
    "scatter_reduce": lambda x: x.scatter_reduce(0, keys().expand(3, 3), x, "sum"),
    "scatter": lambda x: x.scatter(0, keys().expand(3, 3), x, reduce="add"),
    "put": lambda x: x.put(keys(), x[0], accumulate=True), "bincount": lambda x: torch.bincount(keys(), x[0]),
    "histogram": lambda x: torch.histogram(x, 3, weight=x),
    "_embedding_bag_forward_only": lambda x: F.embedding_bag(tokens(), x),
    "native_batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "native_group_norm": lambda x: F.group_norm(x, 3), "_cdist_forward": lambda x: torch.cdist(x, x, p=3.0),
    "renorm": lambda x: x.renorm(2, 0, 1.0), "avg_pool2d": lambda x: F.avg_pool2d(x[None], 2),
    "upsample_linear1d": lambda x: F.interpolate(x[None], 2, mode="linear"), "_fft_r2c": lambda x: torch.fft.fft(x),
    "_ctc_loss": lambda x: F.ctc_loss(x, keys()[None, :1] + 1, torch.tensor([3]), torch.tensor([1])),
    "linalg_inv_ex": lambda x: torch.linalg.inv(x), "multinomial": lambda x: x.abs().multinomial(1),
    "col2im": lambda x: F.fold(x.new_ones(4, 1), (2, 2), (2, 2)),
}  # fmt: skip
"""Functions that call one operator that adds and is not routed, by the name of the operator."""

HARMLESS = {
    "integers": lambda x: (x.long() @ x.long(), x.long().prod(), torch.bincount(keys()), x.bool().cumprod(0)),
    "extrema": lambda x: (x.amax(0), x.sort(), x.median(), x.cummax(0), F.max_pool1d(x, 2), x.norm(inf), x.norm(0)),
    "extrema by key": lambda x: x.scatter_reduce(0, keys().expand(3, 3), x, "amax").index_reduce(0, keys(), x, "amin"),
    "elementwise": lambda x: (F.gelu(x), torch.addcmul(x, x, x), torch._foreach_add([x], [x]), F.glu(x[:, :2])),
    "moves": lambda x: (
        x.flip(0), torch.cat([x, x]), x[keys()], x.put(keys(), x[0]), x.scatter(0, keys()[None], 1.0), x.tril(),
    ),
    "views": lambda x: (x.mT.reshape(9), x.unfold(0, 2, 1), x.diagonal(), x.expand(2, 3, 3), x.split(1)),
    "random numbers": lambda x: (F.dropout(x), torch.randn(3), torch.bernoulli(x.sigmoid()), x.clone().uniform_()),
    "normalisation by given statistics": lambda x: F.batch_norm(x, x[0], x[1].abs()),
    "tensors without data": lambda x: x.to("meta") @ x.to("meta"),
    "operators that are routed": lambda x: (x.sum(), torch._foreach_norm([x, x]), x.index_add(0, keys(), x)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSED)
def test_a_call_that_adds_and_is_not_routed_is_counted_and_refused_by_a_strict_manager(name):
    x = numbers(3, 3) / 8
    with deterministic() as routing:
        found = as_tuple(MISSED[name](x))
    assert routing.missed == {name: 1}
    for a, b in zip(found, as_tuple(MISSED[name](x)) if name != "multinomial" else found):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    family = next(family for family, names in samesum.torch.not_routed().items() if name in names.split())
    with pytest.raises(RuntimeError, match=rf"samesum: {name} is not routed \({family}\)"), deterministic(strict=True):
        MISSED[name](x)
    assert torch._C._len_torch_dispatch_stack() == 0


@pytest.mark.parametrize("name", HARMLESS)
def test_a_call_whose_result_does_not_depend_on_an_order_is_not_counted_as_missed(name):
    with deterministic(strict=True) as routing:
        HARMLESS[name](numbers(3, 3))
    assert not routing.missed


def test_a_strict_manager_raises_before_anything_is_written():
    x, y = numbers(3, 3), numbers(3, 3)
    with pytest.raises(RuntimeError, match="index_reduce is not routed"), deterministic(strict=True):
        y.index_reduce_(0, keys(), x, "mean")
    assert same_bits(x, y)


def test_norms_of_other_orders_are_missed_and_do_not_look_covered():
    x = numbers(3, 3)
    for norm in (lambda p: x.norm(p), lambda p: torch._foreach_norm([x], p), lambda p: torch.linalg.vector_norm(x, p)):
        for order in (3, 0.5, inf, -inf, 0):
            with deterministic() as routing:
                norm(order)
            assert not routing.calls and sum(routing.missed.values()) == (order in (3, 0.5))


def test_a_backward_pass_counts_and_refuses_too():
    x = numbers(3, 3).requires_grad_()
    y = (x @ x.T)[0].relu()
    with deterministic() as routing:
        y.sum().backward(retain_graph=True)
    assert routing.missed == {"mm": 2} and routing.calls["sum"] == 1
    with pytest.raises(RuntimeError, match="mm is not routed"), deterministic(strict=True):
        y.sum().backward()


def test_what_an_inner_manager_misses_the_outer_one_misses_too():
    x = numbers(3, 3)
    with deterministic() as outer, deterministic() as inner:
        x @ x, x.sum()
    assert inner.missed == outer.missed == {"mm": 1} and inner.calls == {"sum": 1} and not outer.calls
    with pytest.raises(RuntimeError, match="mm is not routed"), deterministic(strict=True), deterministic():
        x @ x


def test_operators_of_other_packages_are_missed_unless_they_are_made_of_pytorchs():
    library = torch.library.Library("another_package", "DEF")
    try:
        library.define("total(Tensor x, bool training=False) -> Tensor")
        library.impl("total", lambda x, training=False: x.sum(), "CPU")
        library.define("made_of_others(Tensor x) -> Tensor")
        library.impl("made_of_others", lambda x: x.sum(), "CompositeImplicitAutograd")
        library.define("twice(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
        library.impl("twice", lambda x: 2 * x, "CPU")
        for mode in (torch.enable_grad(), torch.inference_mode()):
            with mode, deterministic() as routing:
                for operator in (torch.ops.another_package.made_of_others, torch.ops.another_package.twice):
                    operator(torch.ones(3))
                torch.ops.another_package.total(torch.ones(3))
            assert routing.missed == {"another_package.total": 1} and routing.calls == {"sum": 1}
        message = "another_package.total is not routed .operators that samesum does not know"
        with pytest.raises(RuntimeError, match=message), deterministic(strict=True):
            torch.ops.another_package.total(torch.ones(3))
    finally:
        library._destroy()


@pytest.mark.filterwarnings("ignore")
def test_what_a_compiled_function_misses_is_counted_and_refused():
    compiled = torch.compile(lambda x: (x @ x).sum(), backend="aot_eager")
    with deterministic() as routing:
        compiled(numbers(3, 3))
    assert routing.missed == {"mm": 1} and routing.calls == {"sum": 1}
    with pytest.raises(RuntimeError, match="samesum: mm is not routed"), deterministic(strict=True):
        compiled(numbers(3, 3))


# Operators that once were missed


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_norms_of_gradients_are_routed(foreach, order):
    parameters = [numbers(50, 7, seed=i).requires_grad_() for i in range(3)]
    for i, parameter in enumerate(parameters):
        parameter.grad = numbers(50, 7, seed=9 - i)
    norms = [torch.tensor([p.grad.abs().double().sum(), samesum.norm(p.grad, method="tree")]) for p in parameters]
    with deterministic(strict=True) as routing:
        total = torch.nn.utils.clip_grad_norm_(parameters, 1.0, order, foreach=foreach)
    assert routing.calls == {"norm": 2 if foreach is not False else 4}
    if order == 2:
        assert same_bits(total, samesum.norm(torch.stack([n[1] for n in norms]).float(), method="tree"))
    torch.testing.assert_close(total, sum(n[0] for n in norms).float() if order == 1 else total)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_norms_of_lists_have_the_bits_of_single_norms(order, dtype):
    tensors = [numbers(*shape, dtype=dtype) for shape in ((), (0,), (5,), (3, 1000))] + [numbers(30, 4, dtype=dtype).mT]
    for result in (None, torch.float32) if dtype != torch.float64 else (None,):
        usual = torch._foreach_norm(tensors, order, dtype=result)
        with deterministic() as routing:
            found = torch._foreach_norm(tensors, order, dtype=result)
            single = [torch.linalg.vector_norm(x, order, dtype=result) for x in tensors]
        assert routing.calls == {"norm": 6} and not routing.missed
        for a, b, c in zip(found, single, usual):
            assert same_bits(a, b)
            torch.testing.assert_close(a, c, rtol=1e-2 if dtype.itemsize == 2 else 1e-5, atol=0)


def test_norms_of_lists_can_be_written_to_a_list():
    tensors, into = [numbers(50, 3), numbers(7)], torch.ops.aten._foreach_norm.Scalar_out
    for order in (1, 2, 3):
        outs = [torch.empty(()), torch.empty(3)]  # one of which is resized
        with deterministic() as routing:
            expected = torch._foreach_norm(tensors, order)
            assert into(tensors, order, out=outs) is None
        assert sum(routing.calls.values()) == (2 if order < 3 else 0) and sum(routing.missed.values()) == 2 * (
            order == 3
        )
        assert all(same_bits(a, b) for a, b in zip(outs, expected))


def test_norms_of_lists_refuse_what_single_norms_refuse():
    x = torch.ones(3)
    with deterministic():
        with pytest.raises(RuntimeError, match="at least one tensor"):
            torch._foreach_norm([])
        with pytest.raises(NotImplementedError, match="samesum: .* is not routed"):
            torch._foreach_norm([x, x.to_sparse()])
        with pytest.raises(TypeError, match="complex64 is not routed"):
            torch._foreach_norm([x, x.to(torch.complex64)])
        assert torch._foreach_norm([x.to("meta")])[0].is_meta


@pytest.mark.parametrize("name", sorted(set(ROUTED) - {"sum into out"}))
def test_inference_mode_has_the_bits_and_counts_of_other_modes(name):
    # In this mode, PyTorch does not decompose softmax, layer_norm, cross_entropy and others into operators.
    x = numbers(32, 25)
    with deterministic() as usual:
        expected = as_tuple(ROUTED[name][0](x))
    with torch.inference_mode(), deterministic(strict=True) as routing:
        found = as_tuple(ROUTED[name][0](x))
    assert routing.calls == usual.calls
    assert all(same_bits(a.clone(), b) for a, b in zip(found, expected))


def test_sums_by_key_into_a_number_are_routed():
    values = torch.tensor([1e8, 1.0, -1e8])
    with deterministic("exact") as routing:
        assert torch.tensor(0.0).scatter_add(0, torch.zeros(3, dtype=torch.long), values) == 1
        assert torch.tensor(2.0).scatter_add(0, torch.tensor(0), values[0]) == 1e8
    assert routing.calls == {"scatter_add": 2}
    for x in (torch.tensor(0.0), torch.zeros(1)):
        with pytest.raises(RuntimeError, match="shape"), deterministic():
            x.index_add(0, torch.zeros(3, dtype=torch.long), torch.ones(3, 2) if x.dim() else torch.ones(3))


# The decorator


def test_the_manager_decorates_functions_and_counts_all_their_calls():
    manager = deterministic("exact")

    @manager
    def total(x, *, twice=False):
        """Adds."""
        return total(x) + total(x) if twice else x.sum()

    x = torch.tensor([1.0, 1e8, -1e8])
    assert total(x) == 1 and total(x, twice=True) == 2 and manager.calls == {"sum": 3}
    assert (total.__name__, total.__doc__) == ("total", "Adds.")
    with pytest.raises(ZeroDivisionError):
        manager(lambda: 1 / 0)()
    assert torch._C._len_torch_dispatch_stack() == 0 and torch._C._len_torch_function_stack() == 0


def test_a_decorated_function_runs_in_several_threads_at_once():
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

    @deterministic("exact")
    def total(x, entered, goes_on):
        entered.set()
        assert goes_on.wait(10)
        return x.sum().item()

    def second():
        return first_in.wait(10) and total(x, second_in, first_out)

    x = torch.tensor([1.0, 1e8, -1e8])
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(total, x, first_in, second_in), pool.submit(second)]
        calls[0].add_done_callback(lambda _: first_out.set())  # the first one to enter leaves first
        assert [call.result() for call in calls] == [1.0, 1.0]


def test_the_manager_decorates_methods_and_objects_that_are_called():
    class Layer(torch.nn.Module):
        @deterministic("exact")
        def forward(self, x):
            return x.sum()

    x = torch.tensor([1.0, 1e8, -1e8])
    assert Layer()(x) == 1 and deterministic("exact")(torch.nn.L1Loss(reduction="sum"))(x, 0 * x) == 200000001


def test_what_runs_after_its_call_or_makes_objects_is_not_decorated():
    def generator():
        yield 1

    async def coroutine():
        pass

    async def asynchronous_generator():
        yield 1

    for function in (generator, coroutine, asynchronous_generator):
        with pytest.raises(TypeError, match="whose body runs after the call; decorate the functions that it calls"):
            deterministic()(function)
    with pytest.raises(TypeError, match="samesum: deterministic decorates Linear, a class; decorate its methods"):
        deterministic()(torch.nn.Linear)
    with pytest.raises(TypeError, match="samesum: method is"):
        deterministic(generator)  # without parentheses


@pytest.mark.filterwarnings("ignore")
def test_a_decorated_function_can_be_compiled():
    function = torch.compile(deterministic("exact")(lambda x: x.sum() + 1), backend="eager")
    for _ in range(2):
        assert function(torch.tensor([1.0, 1e8, -1e8])) == 2
    assert torch._C._len_torch_dispatch_stack() == 0
