"""A call is one value: few functions pass it on, and none of them takes its fields apart."""

from __future__ import annotations

import ast
import pathlib
import sys
from typing import Any, Callable, Iterator

import pytest

import samesum

np = pytest.importorskip("numpy")

PACKAGE = pathlib.Path(__file__).parents[2] / "lib/python/samesum"
PUBLIC_MODULES = ("jax.py", "mpi.py", "torch/__init__.py", "torch/distributed.py")
STANDS_FOR = {
    "_arrays/converted.py: __dlpack__": "the protocol of arrays, whose versions have other options",
    "_calls/arguments.py: __init__": "the fields of the call itself, where torch.compile traces them",
    "_cells/cells.py: _not_numbers": "any operation on numbers, which cells refuse",
    "_core.pyi: bound": "samesum.bound",
    "_core.pyi: choose": "samesum.choose",
    "_functions/nan.py: skipping": "nansum, nanmean, …",
    "dask/__init__.py: reduction": "samesum.dask.sum, samesum.dask.mean, …",
    "numba.py: add_exactly": "code of a kernel, which has no objects",
    "warp.py: _add_exactly": "code of a kernel, which has no objects",
}
"""Functions that pass on all arguments of another signature, and whose it is."""
OF_PYTORCH = ("custom_op", "register_fake", "_handles")
"""Decorators of functions whose signature PyTorch fixes."""
SEVERAL = ("arrays", "inputs", "others", "overloads", "parts", "error", "_")
"""Parameters that take any number of things of one kind."""


def public_names() -> set[str]:
    names = set(samesum.__all__)
    for module in PUBLIC_MODULES:
        tree = ast.parse((PACKAGE / module).read_text())
        named = [(getattr(n.targets[0], "id", ""), n.value) for n in tree.body if isinstance(n, ast.Assign)]
        found = [value for name, value in named if name == "__all__"]
        names |= {*ast.literal_eval(found[0])} if found else {"reduce", "all_reduce", "reduce_scatter"}
    return names | {"GroupBy"}


Scope = tuple[ast.ClassDef, ...]


def functions_in(tree: ast.AST, classes: Scope = ()) -> Iterator[tuple[Any, Scope, bool]]:
    """Yields all functions, the classes around each, and whether it is inside of another function."""
    for node in ast.iter_child_nodes(tree):
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if is_function:
            yield node, classes, False
        inside = functions_in(node, (*classes, node) if isinstance(node, ast.ClassDef) else classes)
        yield from ((each, scope, is_function or is_inner) for each, scope, is_inner in inside)


def has_fixed_signature(function: Any, file: str) -> bool:
    """Whether PyTorch fixes the signature: of an operator, or of what stands in for one of PyTorch's functions."""
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    return any(name in decorators for name in OF_PYTORCH) or (file.startswith("torch/") and function.name == "handler")


def fault_of(function: Any, in_class: bool) -> str:
    """Returns what is wrong with the parameters of a function that is not public; "" if nothing is."""
    a = function.args
    is_static = any(getattr(d, "id", "") == "staticmethod" for d in function.decorator_list)
    count = len([*a.posonlyargs, *a.args, *a.kwonlyargs]) + (a.vararg is not None) - (in_class and not is_static)
    if a.kwarg is not None:
        return f"takes **{a.kwarg.arg}"
    if a.vararg is not None and a.vararg.arg not in SEVERAL:
        return f"takes *{a.vararg.arg}"
    return f"takes {count} parameters" if count > 6 else ""


def faults(file: str, text: str, public: set[str]) -> dict[str, str]:
    found = {}
    for function, classes, is_inner in functions_in(ast.parse(text)):
        owner = classes[0].name if classes else function.name
        is_public = not is_inner and owner in public and (not function.name.startswith("_") or not classes)
        name = f"{file}: {function.name}"
        if not is_public and name not in STANDS_FOR and not has_fixed_signature(function, file):
            found[name] = fault_of(function, bool(classes) and not is_inner)
    return {name: fault for name, fault in found.items() if fault}


def test_no_function_of_the_package_that_is_not_public_takes_more_than_six_parameters() -> None:
    public = public_names()
    found: dict[str, str] = {}
    names = set()
    for path in (*PACKAGE.rglob("*.py"), PACKAGE / "_core.pyi"):
        file, text = str(path.relative_to(PACKAGE)), path.read_text()
        found |= faults(file, text, public if path.suffix == ".py" else set())
        names |= {f"{file}: {function.name}" for function, *_ in functions_in(ast.parse(text))}
    assert found == {}
    assert {*STANDS_FOR} <= names and len(names) > 700


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("def f(a, b, c, /, d, *, e, g, h): ...", "takes 7 parameters"),
        ("def f(a, b, c, d, e, g): ...", ""),
        ("class C:\n    def f(self, a, b, c, d, e, g): ...", ""),
        ("class C:\n    def f(self, a, b, c, d, e, g, h): ...", "takes 7 parameters"),
        ("def public(a):\n    def f(a, b, c, d, e, g, h): ...", "takes 7 parameters"),
        ("def f(a, **options): ...", "takes **options"),
        ("def f(a, *args): ...", "takes *args"),
        ("def f(a, *arrays): ...", ""),
    ],
)
def test_the_walk_finds_functions_with_many_parameters(text: str, fault: str) -> None:
    assert faults("a.py", text, {"public"}) == ({"a.py: f": fault} if fault else {})


X = np.arange(128.0)
WHERE = np.arange(64) % 2 == 0


def functions_of(call: Callable[[], Any]) -> list[str]:
    """Returns the functions of the package that a call runs, each once: comprehensions count, too."""
    found: dict[Any, str] = {}
    root = samesum.__path__[0]

    def seen(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            found[code] = f"{code.co_filename[len(root) + 1 :]}: {code.co_name}"

    call()  # the first call finds the method
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(before)
    return [*found.values()]


CALLS = {
    "strided": lambda: samesum.sum(X[::2]),
    "along an axis": lambda: samesum.sum(X.reshape(8, 16)[:, ::2], axis=1),
    "reversed": lambda: samesum.mean(X[::-1]),
    "where": lambda: samesum.sum(X[:64], where=WHERE),
    "where, broadcast": lambda: samesum.var(X[:64].reshape(8, 8), axis=0, where=WHERE[:8]),
    "where, strided": lambda: samesum.sum(X[::2], where=WHERE),
    "where, integers": lambda: samesum.sum(np.arange(64), where=WHERE),
    "masked": lambda: samesum.sum(np.ma.array(X[:64], mask=WHERE)),
    "masked, of integers": lambda: samesum.max(np.ma.array(np.arange(64), mask=WHERE)),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_passes_at_most_20_functions(kind: str) -> None:
    assert len(functions_of(CALLS[kind])) <= 20


@pytest.mark.parametrize("columns", [{"a": X}, {"a": X, "b": X[::-1]}, {"a": X, "n": np.arange(128)}])
def test_a_call_for_a_frame_passes_at_most_20_functions(columns: dict[str, Any]) -> None:
    frame = pytest.importorskip("pandas").DataFrame(columns)
    assert len(functions_of(lambda: samesum.sum(frame))) <= 20


def test_a_plain_call_passes_two_functions() -> None:
    found = functions_of(lambda: samesum.sum(X))
    if "torch" in sys.modules:  # which may want to see the call
        found = [name for name in found if name != "_arrays/pytorch.py: <lambda>"]
    assert found == ["_functions/reductions.py: sum", "_calls/reduction.py: reduce"]


def test_functions_are_counted() -> None:
    assert "_arrays/numpy.py: array" in functions_of(lambda: samesum.sum(X, dtype="float32"))


STRIDES: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "transposed": lambda a: a.transpose(2, 0, 1),
    "every second": lambda a: a[:, ::2, 1:],
    "reversed": lambda a: a[::-1, :, ::-3],
    "repeated": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "one": lambda a: a[1:2, 2:3],
}


@pytest.mark.parametrize("shape", [(3, 4, 5), (7, 31, 40)])  # with few elements and with more
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", STRIDES)
def test_arrays_of_any_strides_have_the_bits_of_a_contiguous_copy(kind: str, dtype: str, shape: Any) -> None:
    rng = np.random.default_rng(len(kind))
    a = STRIDES[kind](rng.standard_normal(shape).astype(dtype))
    mask = rng.random(a.shape) < 0.6
    masks = [None, mask, mask[0], mask[:, :1], np.asfortranarray(mask), mask[..., ::-1]]
    for axis in (None, 0, 1, -1, (0, 2), (2, 0), (1, 2)):
        reduced = {*range(3)} if axis is None else {d % 3 for d in np.atleast_1d(axis).tolist()}
        order = [d for d in range(3) if d not in reduced] + sorted(reduced)
        for where in masks:
            flags = np.broadcast_to(True if where is None else where, a.shape)
            for function in (samesum.sum, samesum.var, samesum.argmax):
                result = function(a, axis=axis, where=where)
                kept = tuple(a.shape[d] for d in order[: 3 - len(reduced)])
                rows = np.ascontiguousarray(a.transpose(order)).reshape(*kept, -1)
                taken = np.ascontiguousarray(flags.transpose(order)).reshape(*kept, -1)
                for place in np.ndindex(kept):
                    row = rows[place][taken[place]]
                    expected = function(row)
                    if function is samesum.argmax:
                        expected = np.flatnonzero(taken[place])[expected] if row.size else -1
                    found = np.asarray(result)[place]
                    assert found == expected or (np.isnan(found) and np.isnan(expected)), (axis, function)


@pytest.mark.parametrize("shape", [(3, 4, 5), (7, 31, 40)])
def test_tensors_of_any_strides_have_the_bits_of_arrays(shape: Any) -> None:
    torch = pytest.importorskip("torch")
    whole = torch.from_numpy(np.random.default_rng(1).standard_normal(shape))
    kinds = (whole, whole.permute(2, 0, 1), whole[:, ::2, 1:], whole[:, :1].expand(shape), whole[1:2])
    for a in kinds:
        for axis in (None, 0, 1, -1, (0, 2), (2, 0), (1, 2)):
            for function in (samesum.sum, samesum.var, samesum.max, samesum.softmax):
                if function is not samesum.softmax or axis in (0, 1, -1):
                    found, expected = function(a, axis=axis), function(a.numpy(), axis=axis)
                    assert found.numpy().tobytes() == np.ascontiguousarray(expected).tobytes(), (axis, function)


def test_a_call_has_defaults_and_copies() -> None:
    from samesum._calls.arguments import Call

    call = Call("sum", X, y=3)
    assert (call.operation, call.y, call.axis, call.threads, call.second) == ("sum", 3, None, 0, "y")
    copy = call.copy()
    copy.axis = 1
    assert (call.axis, copy.axis, copy.x) == (None, 1, X) if copy.x is X else False
    for wrong in (lambda: Call("sum", X, x=X), lambda: Call(nothing=1), lambda: Call(*range(99))):
        with pytest.raises(TypeError):
            wrong()


def test_a_field_of_another_type_is_named() -> None:
    with pytest.raises(TypeError, match="samesum: ddof is of a type that no call takes"):
        samesum.reduce_by_key([1, 1, 2], [1.0, 2.0, 3.0], operation="moments", ddof="one")


def test_a_call_frees_what_it_holds() -> None:
    from samesum._calls.arguments import Call

    held = object()
    before = sys.getrefcount(held)
    for _ in range(10):
        call = Call("sum", held, finish=held)
        call.y, call.x = held, None
        call.copy()
    del call
    assert sys.getrefcount(held) == before
