"""Reductions of Dask arrays: the bits of the whole array in memory, for any chunks, schedulers and workers."""

from __future__ import annotations

import inspect
import itertools
import multiprocessing
import warnings

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
da = pytest.importorskip("dask.array")

import dask  # noqa: E402

import samesum  # noqa: E402
import samesum.dask  # noqa: E402
from samesum._elements.layout import VECTOR  # noqa: E402
from samesum.dask._weights import WeightedPartial  # noqa: E402

N = 20_011
CHUNKS = [N, 10_000, 4096, 1000, 333, (1, 4095, 4097, 1, 0, 11_817)]


def numbers(*shape: int, dtype="float32", seed: int = 0):
    return (np.random.default_rng(seed).standard_normal(shape) * 1000).astype(dtype)


def same_bits(a, b) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def inputs_of(function: str) -> int:
    return 2 if function in ("dot", "vecdot") else 1


def computed(x, **options):
    return x.compute(scheduler="sync", **options)


@pytest.mark.parametrize(("scheduler", "counts"), [("threads", (1, 3)), ("processes", (2,))])
def test_neither_chunks_nor_workers_change_a_bit(scheduler, counts):
    x = numbers(N)
    methods = {"exact": {}, "tree/kahan": {}, "pairwise/plain": {}, "fixed_point": {"grid": -30}}
    cells = list(itertools.product(methods, CHUNKS))
    lazy = [samesum.dask.sum(da.from_array(x, chunks=c), method=m, **methods[m]) for m, c in cells]
    patterns = {m: {samesum.sum(x, method=m, **methods[m]).tobytes()} for m in methods}
    multiprocessing.set_forkserver_preload(["samesum.dask"])  # two seconds, once for all processes
    with dask.config.set({"multiprocessing.context": "forkserver"}):
        for workers in counts:
            for (method, _), found in zip(cells, dask.compute(*lazy, scheduler=scheduler, num_workers=workers)):
                patterns[method].add(found.tobytes())
    assert {m: len(p) for m, p in patterns.items()} == dict.fromkeys(methods, 1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("function", samesum.dask.__all__)
def test_a_function_has_the_bits_of_the_whole_array(function, dtype):
    inputs = [numbers(400, dtype=dtype, seed=i) for i in range(inputs_of(function))]
    for chunks in (400, 150, 7, (0, 399, 1)):
        arrays = [da.from_array(a, chunks=c) for a, c in zip(inputs, (chunks, 90))]
        found = getattr(samesum.dask, function)(*arrays)
        expected = getattr(samesum, function)(*inputs)
        assert found.shape == () and found.dtype == expected.dtype
        assert same_bits(computed(found), expected), chunks


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2), (2, 0), ()])
@pytest.mark.parametrize("method", ["exact", "tree/plain"])
def test_any_axes_may_be_reduced_and_kept(method, axis):
    x = numbers(5, 6, 7)
    # Chunks that cut the first reduced axis and the kept ones.
    reduced = tuple(range(3)) if axis is None else tuple(a % 3 for a in ((axis,) if isinstance(axis, int) else axis))
    chunks = [-1 if a in reduced and a != min(reduced) else 2 for a in range(3)]
    for keepdims in (False, True):
        found = samesum.dask.sum(da.from_array(x, chunks=chunks), axis=axis, method=method, keepdims=keepdims)
        expected = samesum.sum(x, axis=axis, method=method, keepdims=keepdims)
        assert found.shape == expected.shape and same_bits(computed(found), expected)


@pytest.mark.parametrize("function", ["sum", "mean", "var", "std", "max", "vecdot"])
def test_order_free_methods_take_chunks_that_cut_every_axis(function):
    x = numbers(9, 10, 11)
    cut = da.from_array(x, chunks=(4, (3, 7), 5))
    inputs, axis = ([cut], (0, 2)) if function != "vecdot" else ([cut, cut], 1)
    memory = [x] * len(inputs)
    found = getattr(samesum.dask, function)(*inputs, axis=axis)
    assert same_bits(computed(found), getattr(samesum, function)(*memory, axis=axis))


def test_an_order_refuses_chunks_that_are_not_consecutive():
    x = da.from_array(numbers(8, 9, 10), chunks=(4, 3, 10))
    with pytest.raises(
        ValueError,
        match=r"sum: the order of method sum/tree/kahan/fp32@cpu .* x\.rechunk\(\{1: -1, 2: -1\}\), or method='exact'",
    ):
        samesum.dask.sum(x, method="tree/kahan")
    with pytest.raises(ValueError, match=r"argmax: an index needs .* x\.rechunk\(\{1: -1, 2: -1\}\)$"):
        samesum.dask.argmax(x)
    with pytest.raises(ValueError, match="norm.*rechunk.*1: -1"):
        samesum.dask.norm(x)
    rechunked = x.rechunk({1: -1, 2: -1})
    assert same_bits(computed(samesum.dask.norm(rechunked)), samesum.norm(x.compute()))


@pytest.mark.parametrize("chunks", [(1, 1, 5), (1, 4, -1), (3, -1, -1), ((0, 3, 5), -1, -1)])
def test_chunks_that_hold_consecutive_elements_are_taken_in_their_order(chunks):
    x = numbers(8, 9, 10)
    x[7, 8, 9] = x[7, 8, 4] = x.max() + 1
    cut = da.from_array(x, chunks=chunks)
    for function, method in [
        ("sum", "tree/kahan"),
        ("sum", "serial/plain"),
        ("norm", None),
        ("argmax", None),
        ("prod", None),
    ]:
        found = getattr(samesum.dask, function)(cut, method=method)
        assert same_bits(computed(found), getattr(samesum, function)(x, method=method)), function


def test_the_number_of_partials_that_a_task_merges_changes_no_bit():
    x = numbers(700)
    cut = da.from_array(x, chunks=11)
    found = {computed(samesum.dask.sum(cut, method="tree/plain", split_every=s)).tobytes() for s in (2, 3, 8, 1000)}
    assert found == {samesum.sum(x, method="tree/plain").tobytes()}
    with pytest.raises(ValueError, match="split_every is 1; use a whole number, 2 or more"):
        samesum.dask.sum(cut, split_every=1)


# --- integers, special numbers, no elements -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64"])
@pytest.mark.parametrize("function", ["sum", "min", "max", "argmin", "argmax"])
def test_integers_stay_integers(function, dtype):
    x = np.random.default_rng(1).integers(0, 2**57 if dtype.endswith("t64") else 2, size=(30, 3)).astype(dtype)
    for axis in (None, 0, 1):
        found = getattr(samesum.dask, function)(da.from_array(x, chunks=(7, -1)), axis=axis)
        expected = getattr(samesum, function)(x, axis=axis)
        assert found.dtype == expected.dtype and same_bits(computed(found), expected)


def test_a_sum_of_integers_may_leave_64_bits_on_the_way():
    x = np.array([2**63 - 1, 2**63 - 1, -(2**63), -5], np.int64)
    assert computed(samesum.dask.sum(da.from_array(x, chunks=2))) == -7 + 2**63
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        computed(samesum.dask.sum(da.from_array(x[:2], chunks=1)))


def test_special_numbers_are_those_of_the_whole_array():
    for special in ([np.nan], [np.inf], [np.inf, -np.inf], [-0.0] * 6):
        x = np.array([*special, *([-0.0] * 5)], np.float32)
        for function in ("sum", "mean", "max", "argmin", "norm", "var"):
            found = computed(getattr(samesum.dask, function)(da.from_array(x, chunks=3)))
            assert same_bits(found, getattr(samesum, function)(x)), (function, special)


def test_chunks_may_be_empty():
    for function in ("sum", "mean", "max", "argmax", "norm"):
        found = computed(getattr(samesum.dask, function)(da.from_array(np.zeros(0, np.float32), chunks=((0, 0),))))
        assert same_bits(found, getattr(samesum, function)(np.zeros(0, np.float32)))
    with pytest.raises(ValueError, match="max of no integers"):
        computed(samesum.dask.max(da.from_array(np.zeros(0, np.int32), chunks=((0, 0),))))


# --- arguments ------------------------------------------------------------------------------------------------


def test_two_inputs_may_differ_in_chunks_types_and_shape():
    x, y = numbers(6, 8), numbers(8, dtype="float16", seed=1)
    found = samesum.dask.vecdot(da.from_array(x, chunks=(4, 3)), da.from_array(y, chunks=5), method="tree/kahan")
    assert same_bits(computed(found), samesum.vecdot(x, y, method="tree/kahan"))
    with pytest.raises(ValueError, match="x has 8 elements along axis -1 and y has 7"):
        samesum.dask.vecdot(da.ones((6, 8)), da.ones(7))
    with pytest.raises(ValueError, match="dot: x has 3 elements and y 4"):
        samesum.dask.dot(da.ones(3), da.ones(4))
    with pytest.raises(ValueError, match="dot: x has 2 axes"):
        samesum.dask.dot(da.ones((3, 3)), da.ones(4))


@pytest.mark.parametrize(
    ("first", "second", "axis"),
    [((3,), (3, 2), 0), ((2, 3), (2, 4, 3), 0), ((4, 2), (3, 4, 2), -2), ((2, 3, 4), (1, 3, 4), 1), ((3,), (2, 3), -1)],
)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("chunks", [1, -1])
def test_an_axis_counts_in_each_input_as_in_numpy(first, second, axis, keepdims, chunks):
    x, y = numbers(*first), numbers(*second, seed=1)
    expected = samesum.vecdot(x, y, axis=axis, keepdims=keepdims)
    for a, b in ((x, y), (y, x)):
        found = samesum.dask.vecdot(*(da.from_array(v, chunks=chunks) for v in (a, b)), axis=axis, keepdims=keepdims)
        assert same_bits(computed(found), expected)


def test_the_reduced_axis_is_not_broadcast():
    for x, y, axis in ((da.ones((1, 3)), da.ones((4, 3)), 0), (da.ones((4, 1)), da.ones(3), -1)):
        with pytest.raises(ValueError, match="samesum: x has . elements along axis .*; pass inputs of one length"):
            samesum.dask.vecdot(x, y, axis=axis)
    with pytest.raises(IndexError, match="axis 1 is out of range for y with 1 axes"):
        samesum.dask.vecdot(da.ones((2, 2)), da.ones(2), axis=1)
    with pytest.raises(TypeError, match="y is a NoneType; pass a Dask array"):
        samesum.dask.vecdot(da.ones(3), None)


def test_options_are_those_of_the_function_in_memory():
    x = numbers(100, dtype="float16")
    cut = da.from_array(x, chunks=30)
    for options in ({"ddof": 1}, {"correction": 2.5, "method": "tree"}, {"dtype": "float64"}, {"method": "exact/fp64"}):
        for function in ("var", "std"):
            found = computed(getattr(samesum.dask, function)(cut, **options))
            assert same_bits(found, getattr(samesum, function)(x, **options))
    for function in samesum.dask.__all__:
        parameters = inspect.signature(getattr(samesum.dask, function)).parameters
        in_memory = {*inspect.signature(getattr(samesum, function)).parameters}
        assert {*parameters} - {"split_every"} == in_memory - {"out", "threads", "check", "dim", "keepdim"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: samesum.dask.sum(x, method="tree/khan"), ValueError, "did you mean 'kahan'"),
        (lambda x: samesum.dask.sum(x, method="atomic/plain"), ValueError, "differ from run to run"),
        (lambda x: samesum.dask.sum(x, method="fixed_point"), ValueError, "grid"),
        (lambda x: samesum.dask.sum(x, axis=1), IndexError, "axis 1 is out of range"),
        (lambda x: samesum.dask.sum(x.astype(complex)), TypeError, "complex128"),
        (
            lambda x: samesum.dask.sum(x[x > 0]),
            ValueError,
            r"x has chunks of unknown size; call x\.compute_chunk_sizes\(\)",
        ),
        (lambda x: samesum.dask.sum(numbers(3)), TypeError, "x is a ndarray; pass a Dask array"),
        (lambda x: samesum.dask.softmax(x), AttributeError, "no attribute 'softmax'; its functions are sum, mean"),
        (
            lambda x: samesum.dask.sum(x, method="fixed_point", grid=-900).compute(scheduler="sync"),
            OverflowError,
            "grid",
        ),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_computed(call, error, message):
    with pytest.raises(error, match=message):
        call(da.from_array(numbers(100), chunks=30))


MASKED = np.ma.masked_greater(np.arange(6.0).reshape(2, 3), 3)


def masked_blocks(chunks, is_known: bool):
    """A Dask array of masked blocks, of which Dask knows or not."""
    if is_known:
        return da.from_array(MASKED, chunks=chunks)
    return da.from_array(MASKED.data, chunks=chunks).map_blocks(np.ma.masked_greater, 3, meta=np.empty((0, 0)))


@pytest.mark.parametrize("chunks", [(2, 3), (1, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("function", samesum.dask.__all__)
def test_masked_blocks_use_their_mask_or_are_refused_by_name(function, chunks):
    calls = [("x", [0])] if inputs_of(function) == 1 else [("x", [0]), ("y", [1]), ("x", [0, 1])]
    for name, masked in calls:
        plain, places = da.from_array(MASKED.data, chunks=2), range(inputs_of(function))
        blocks = [
            [masked_blocks(chunks, is_known) if i in masked else plain for i in places] for is_known in (True, False)
        ]
        here = [MASKED if i in masked else MASKED.data for i in range(inputs_of(function))]
        if function == "dot":
            *blocks, here = ([a[1] for a in inputs] for inputs in (*blocks, here))
        ours, whole = getattr(samesum.dask, function), getattr(samesum, function)
        options = {} if function.startswith("arg") else {"dtype": "float32"}
        told = [da.ma.masked_array(a) if i in masked else a for i, a in enumerate(blocks[1])]
        for inputs in (blocks[0], told):
            assert same_bits(computed(ours(*inputs, **options)), whole(*here, **options))
        with pytest.raises(
            TypeError, match=rf"{name} has masked blocks.*pass dask\.array\.ma\.masked_array\({name}\), or dask"
        ):
            computed(ours(*blocks[1], **options))


def test_masked_blocks_are_never_broadcast_without_their_mask():
    batch, row = da.ones((4, 2, 3), chunks=1), masked_blocks((2, 1), is_known=False)
    for name, inputs in (("x", (row, batch)), ("y", (batch, row))):
        with pytest.raises(TypeError, match=f"{name} has masked blocks"):
            computed(samesum.dask.vecdot(*inputs))
    row = masked_blocks((2, 1), is_known=True)
    with pytest.raises(ValueError, match="inputs with masks or nulls must agree in their axes"):
        samesum.dask.vecdot(batch, row)
    found = samesum.dask.vecdot(batch, row[None])
    assert same_bits(computed(found), samesum.vecdot(np.ones((4, 2, 3)), MASKED[None]))


# --- elements that take no part -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("function", samesum.dask.__all__)
def test_elements_that_take_no_part_are_those_of_the_whole_array(function, dtype):
    inputs = [numbers(60, 4, dtype=dtype, seed=i) for i in range(inputs_of(function))]
    where = np.random.default_rng(2).random((60, 4)) < 0.6
    where[:25, 0] = False
    where[3] = True  # for extrema of integers
    options = {"dtype": "float64"} if function == "prod" else {}
    axes = [None, 0, 1] if function != "dot" else [VECTOR]
    if function == "dot":
        inputs, where = [a[:, 1] for a in inputs], where[:, 1]
    ours, whole = getattr(samesum.dask, function), getattr(samesum, function)
    spoilt = [np.where(where, a, np.nan) if dtype == "float32" else a for a in inputs]
    for axis in axes:
        options = options if axis is VECTOR else {**options, "axis": axis}
        if axis == 1 and dtype == "int64":
            where[:, 2] = True
        expected = whole(*inputs, where=where, **options)
        chunks = ((60, 2) if axis == 1 else (25, -1))[: where.ndim]
        cut = [da.from_array(a, chunks=chunks) for a in inputs]
        masked = da.from_array(np.ma.masked_array(inputs[0], ~where), chunks=chunks)
        calls = [(cut, {"where": da.from_array(where, chunks=40)}), ([masked, *cut[1:]], {})]
        if dtype == "float32":
            calls.append(([da.from_array(spoilt[0].astype(dtype), chunks=chunks), *cut[1:]], {"skipna": True}))
        for found in dask.compute(*[ours(*arrays, **masks, **options) for arrays, masks in calls], scheduler="sync"):
            assert same_bits(found, expected), axis


@pytest.mark.parametrize("method", ["tree/kahan", "serial/plain", "pairwise", "exact"])
def test_orders_are_those_of_the_packed_elements(method):
    x, where = numbers(3000), np.random.default_rng(5).random(3000) < 0.5
    for chunks in (1000, 333, (0, 2, 2998)):
        cut = da.from_array(x, chunks=chunks)
        found = samesum.dask.sum(cut, method=method, where=da.from_array(where, chunks=100))
        assert same_bits(computed(found), samesum.sum(x[where], method=method))
    grid = {"method": "fixed_point", "grid": -30}
    assert same_bits(computed(samesum.dask.sum(cut, where=where, **grid)), samesum.sum(x[where], **grid))


def test_results_of_no_elements_and_indices_count_all_elements():
    x = np.array([5.0, np.nan, -0.0, 0.0, np.inf, np.inf])
    cut, nothing = da.from_array(x, chunks=2), np.zeros(6, bool)
    for function in ("sum", "mean", "max", "argmax", "norm", "std"):
        ours, whole = getattr(samesum.dask, function), getattr(samesum, function)
        for options in ({"where": nothing}, {"skipna": True}, {"where": x > 1, "skipna": True}):
            assert same_bits(computed(ours(cut, **options)), whole(x, **options)), (function, options)
    for i in range(6):
        for function in ("argmin", "argmax"):
            where = np.arange(6) >= i
            assert computed(getattr(samesum.dask, function)(cut, where=where)) == getattr(samesum, function)(
                x, where=where
            )
    with pytest.raises(ValueError, match="argmin of no integers has no value"):
        computed(samesum.dask.argmin(da.ones(6, dtype=int, chunks=2), where=nothing))


@settings(max_examples=40)
@given(st.data())
def test_masked_sums_in_any_chunks_agree_with_fractions(draw):
    special = st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 1e300, -1e300, 5e-324])
    x = np.array(draw.draw(st.lists(st.floats(-1e3, 1e3) | special, min_size=1, max_size=12)))
    where = np.array(draw.draw(st.lists(st.booleans(), min_size=len(x), max_size=len(x))))
    cut = da.from_array(np.ma.masked_array(x, ~where), chunks=draw.draw(st.integers(1, 5)))
    kept = x[where & ~np.isnan(x)]
    found = computed(samesum.dask.sum(cut, skipna=True))
    assert same_bits(found, samesum.sum(kept))
    if np.isfinite(kept).all():
        assert found == float(sum(map(Fraction, kept.tolist())))
        if len(kept):
            assert computed(samesum.dask.mean(cut, skipna=True)) == float(sum(map(Fraction, kept.tolist())) / len(kept))


def test_masks_that_do_not_fit_are_refused_when_the_graph_is_made():
    x = da.ones((4, 3), chunks=2)
    for where, error, message in [
        (np.ones((4, 3)), TypeError, "where has elements of type float64; pass booleans"),
        (da.ones(4, dtype=bool), ValueError, r"where has shape \(4,\) and x \(4, 3\)"),
        (da.ma.masked_array(da.ones(3, dtype=bool)), TypeError, r"where is a masked array.*where\.filled\(False\)"),
        (x[:, 0][x[:, 0] > 0] > 0, ValueError, r"where has chunks of unknown size; call where\.compute_chunk_sizes"),
    ]:
        with pytest.raises(error, match=message):
            samesum.dask.sum(x, where=where)
    hidden = da.ones(3, dtype=bool, chunks=1).map_blocks(np.ma.masked_array, mask=True, meta=np.empty(0, bool))
    for axis in (0, 1):
        with pytest.raises(TypeError, match=r"where has masked blocks.*pass dask\.array\.ma\.filled\(where, False\)"):
            computed(samesum.dask.sum(x, axis=axis, where=hidden))
    assert computed(samesum.dask.sum(x, where=[True, False, True])) == 8.0


# --- weights --------------------------------------------------------------------------------------------------


DTYPES = ["float16", "float32", "float64"]
SPECIAL = st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e300, -1e300, 5e-324, 2.0**-1022, 1.0, 3.0])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3) | SPECIAL, st.floats(0, 1e3) | SPECIAL), max_size=7),
    st.integers(0, 7),
    st.sampled_from(DTYPES),
)
def test_weighted_results_of_parts_are_those_of_the_whole(rows, cut, dtype):
    with np.errstate(over="ignore"):
        x, w = (np.array([row[i] for row in rows], dtype) for i in (0, 1))
    for name, weights_are, correction in (("mean", "", 0), ("var", "frequencies", 1), ("var", "reliabilities", 0.5)):
        weights = w if name == "mean" else abs(w)
        options = {} if name == "mean" else {"weights_are": weights_are, "correction": correction}
        left, right = (WeightedPartial(name, weights_are, dtype) for _ in range(2))
        left.add(x[:cut], weights[:cut])
        right.add(x[cut:], weights[cut:])
        left.merge(right)
        try:
            expected = getattr(samesum, name)(x, weights=weights, **options)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                left.finish(correction=correction)
        else:
            found = left.finish(correction=correction)
            assert same_bits(np.array(found, dtype), np.asarray(expected)) or np.isnan([found, expected]).all(), name


def test_weighted_results_are_those_of_the_whole_array():
    x, w = numbers(30, 6, dtype="float32"), np.abs(numbers(30, 6, dtype="float64", seed=1))
    where = np.random.default_rng(3).random((30, 6)) < 0.7
    for name in ("sum", "mean", "var", "std"):
        ours, whole = getattr(samesum.dask, name), getattr(samesum, name)
        for axis, weights, chunks in [(1, w, (7, -1)), (1, w[0], (7, -1)), (None, w, -1), (0, w[:, 0], (-1, 4))]:
            for options, of_call in (
                ({}, weights),
                ({"where": where, "keepdims": True}, da.from_array(weights, chunks=13)),
            ):
                found = ours(da.from_array(x, chunks=chunks), axis, weights=of_call, **options)
                assert same_bits(computed(found), whole(x, axis, weights=weights, **options)), (name, axis, options)
    cut = da.from_array(x, chunks=(7, 4))
    for name, options in [
        ("sum", {}), ("sum", {"method": "exact/fp32"}), ("mean", {}), ("mean", {"method": "exact/fp16"}),
        ("std", {"ddof": 1}),
        ("var", {"correction": 2.5}), ("var", {"correction": 1, "weights_are": "reliabilities"}),
    ]:  # fmt: skip
        axis, told = (0, {}) if name == "mean" else (None, {"where": where, "keepdims": True})
        found = getattr(samesum.dask, name)(cut, axis, weights=w, **options, **told)
        assert same_bits(computed(found), getattr(samesum, name)(x, axis, weights=w, **options, **told)), (name, axis)
    narrow = w.astype("float16")
    assert same_bits(computed(samesum.dask.var(cut, weights=narrow)), samesum.var(x, weights=narrow))
    assert same_bits(
        computed(samesum.dask.mean(cut.astype(int), 0, weights=w)), samesum.mean(x.astype(int), 0, weights=w)
    )
    with pytest.raises(TypeError, match="weights is a masked array"):
        samesum.dask.mean(cut, weights=da.ma.masked_array(w))
    for lazy, error, message in [
        (samesum.dask.var(cut, weights=-w), ValueError, "weights has negative numbers"),
        (samesum.dask.mean(cut, weights=np.zeros((30, 6))), ZeroDivisionError, "weights sum to zero"),
        (
            samesum.dask.mean(cut, weights=da.from_array(w, chunks=7).map_blocks(np.ma.masked_array, meta=w[:0, :0])),
            TypeError, "weights has masked blocks",
        ),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            computed(lazy)
    with pytest.raises(ValueError, match=r"weights has shape \(5,\) and x \(30, 6\)"):
        samesum.dask.sum(cut, weights=np.ones(5))
    hidden = da.from_array(w, chunks=7).map_blocks(np.ma.masked_array, meta=w[:0, :0])
    for function in (samesum.dask.sum, samesum.dask.mean):
        with pytest.raises(TypeError, match="weights is a masked array"):
            function(cut, weights=np.ma.masked_less(w, w.mean()))
        with pytest.raises(TypeError, match=r"weights has masked blocks.*pass dask\.array\.ma\.filled\(weights, 0\)$"):
            computed(function(cut, weights=hidden))


def test_functions_for_arrays_in_memory_refuse_masked_blocks_too():
    x, y, keys, out = masked_blocks(2, is_known=True)[0], [1.0, 2.0, 3.0], [0, 0, 0], np.zeros(1)
    for argument, call in (
        ("x", lambda: samesum.sum(x)), ("x", lambda: samesum.std(x)), ("x", lambda: samesum.cumsum(x)),
        ("x", lambda: samesum.softmax(x, dtype="float32")), ("x", lambda: samesum.Exact(x)),
        ("x", lambda: samesum.vecdot(x, y)), ("x", lambda: samesum.estimate(x, "tree/plain")),
        ("values", lambda: samesum.scatter_add(out, keys, x)),
        ("keys", lambda: samesum.bincount(x.astype(int))), ("keys", lambda: samesum.groupby_sum(x, y)),
        ("keys", lambda: samesum.reduce_by_key(x, y)), ("weights", lambda: samesum.bincount(keys, x)),
    ):  # fmt: skip
        remedy = "filled" if argument == "weights" else "compressed"
        with pytest.raises(TypeError, match=rf"{argument} is a masked array; pass {argument}\.{remedy}"):
            call()


def test_what_fills_masked_blocks_is_accepted():
    for is_known in (True, False):
        filled = da.ma.filled(masked_blocks((1, 2), is_known), 0)
        assert computed(samesum.dask.sum(filled)) == computed(samesum.dask.max(filled)) * 2 == 6


def test_nothing_is_computed_before_dask_computes():
    def raising(block):
        raise RuntimeError("computed")

    lazy = da.ones(100, chunks=30).map_blocks(raising, meta=np.empty(0))
    total = samesum.dask.sum(lazy) + 1
    with pytest.raises(RuntimeError, match="computed"):
        computed(total)


def test_equal_calls_are_computed_once():
    x = da.from_array(numbers(100), chunks=30)
    assert samesum.dask.sum(x, method="tree/plain").name == samesum.dask.sum(x, method="tree/plain").name
    assert samesum.dask.sum(x, method="tree/plain").name != samesum.dask.sum(x, method="tree/kahan").name


def test_a_result_is_part_of_a_larger_graph():
    x = numbers(40, 50)
    cut = da.from_array(x, chunks=(40, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centred = cut - samesum.dask.mean(cut, axis=0)
        found = computed(samesum.dask.std(centred, axis=0).sum())
    assert found == samesum.std(x - samesum.mean(x, axis=0), axis=0).sum()


# --- integers ---------------------------------------------------------------------------------------------------

LARGE = 2**53 + 1


def test_integers_that_take_no_part_need_not_be_held():
    x, y = da.from_array(np.array([LARGE, 1, 2]), chunks=2), np.array([np.nan, 1.0, 2.0])
    shown, cut = np.array([False, True, True]), da.from_array(y, chunks=2)
    masked = da.from_array(np.ma.array([LARGE, 1, 2], mask=~shown), chunks=2)
    for inputs in ((x, cut), (cut, x)):
        for options in ({"where": shown}, {"skipna": True}):
            assert computed(samesum.dask.vecdot(*inputs, **options)) == 5
        with pytest.raises(OverflowError, match="has integers that float64 does not hold"):
            computed(samesum.dask.dot(*inputs))
    assert computed(samesum.dask.dot(masked, cut)) == 5
    assert computed(samesum.dask.sum(cut, weights=x, where=shown)) == 5
    for name in ("mean", "var"):
        expected = getattr(samesum, name)(y[1:], weights=[1, 2])
        assert computed(getattr(samesum.dask, name)(cut, weights=x, where=shown)) == expected


@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_weighted_results_of_chunks_refuse_integers_that_they_would_round(name):
    large, ones = da.from_array(np.array([LARGE, 1, 2]), chunks=2), da.ones(3, chunks=2)
    function = getattr(samesum.dask, name)
    for argument, x, weights in (("x", large, ones), ("weights", ones, large)):
        with pytest.raises(OverflowError, match=f"samesum: {argument} has integers that float64 does not hold"):
            computed(function(x, weights=weights))


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "argmin", "argmax", "var", "norm", "prod"])
def test_a_column_of_a_frame_without_integers_is_null(name):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    nothing = pandas.array([None] * 3, "Int64")
    for frame in (
        pandas.DataFrame({"a": nothing, "b": [1, 2, 3], "c": [1.0, 2.0, 3.0]}),
        pandas.DataFrame({"a": [1]})[:0],
    ):
        expected = getattr(samesum, name)(frame)
        found = getattr(samesum.dask, name)(frames.from_pandas(frame, npartitions=2)).compute(scheduler="sync")
        pandas.testing.assert_series_equal(found, expected)
    if name in ("min", "argmax"):
        with pytest.raises(ValueError, match=f"{name} of no integers has no value"):
            computed(getattr(samesum.dask, name)(frames.from_pandas(pandas.Series(nothing), npartitions=2)))


def test_arguments_that_do_not_fit_are_those_of_the_function_that_was_called():
    with pytest.raises(TypeError, match=r"^mean\(\) got an unexpected keyword argument 'dim'"):
        samesum.dask.mean(da.ones(3), dim=0)
