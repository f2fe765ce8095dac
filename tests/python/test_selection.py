"""Elements that take no part are as if absent: `where=`, `skipna=`, the functions nan…, and masked arrays."""

from fractions import Fraction

import numpy as np
import pytest
import samesum
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

DTYPES = (np.float16, np.float32, np.float64)
SHAPES_AND_AXES = [
    ((40,), None), ((100_000,), None), ((7, 33), 1), ((7, 33), 0), ((3, 5, 7), (0, 2)), ((3, 5, 7), 1),
    ((2, 50_000), 1), ((50_000, 2), 0), ((0,), None), ((4, 0), 1), ((4, 0), 0),
]  # fmt: skip
FUNCTIONS = ("sum", "mean", "var", "std", "prod", "norm", "min", "max", "argmin", "argmax", "logsumexp")


def data(shape, dtype, seed=0):
    """Numbers, a mask that leaves out the first five, and the numbers with NaN where the mask is false."""
    random = np.random.default_rng(seed)
    x = (random.standard_normal(shape) * np.exp(random.standard_normal(shape))).astype(dtype)
    mask = random.random(shape) < 0.6
    mask.reshape(-1)[:5] = False
    return x, mask, np.where(mask, x, dtype(np.nan))


def bits(x):
    return np.asarray(x).tobytes()


def packed(name, x, mask, axis, **keywords):
    """The results of the elements that take part, one call for each."""
    axes = tuple(range(x.ndim)) if axis is None else np.atleast_1d(axis)
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = [x.shape[d] for d in kept] + [-1 if x.size else 0]
    rows = x.transpose((*kept, *axes)).reshape(shape)
    flags = mask.transpose((*kept, *axes)).reshape(rows.shape)
    results = []
    for index in np.ndindex(rows.shape[:-1]):
        result = getattr(samesum, name)(rows[index][flags[index]], **keywords)
        if name.startswith("arg") and result >= 0:
            result = np.flatnonzero(flags[index])[result]
        results.append(result)
    return np.array(results).reshape(rows.shape[:-1])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape, axis", SHAPES_AND_AXES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_selection_has_the_bits_of_the_packed_elements_whatever_the_others_hold(name, shape, axis, dtype):
    x, mask, nans = data(shape, dtype)
    function = getattr(samesum, name)
    selected = np.asarray(function(x, axis=axis, where=mask))
    assert bits(packed(name, x, mask, axis).astype(selected.dtype)) == bits(selected)
    assert bits(function(nans, axis=axis, where=mask)) == bits(selected)
    assert bits(function(nans, axis=axis, skipna=True)) == bits(selected)


@pytest.mark.parametrize("method", ["tree", "pairwise/kahan", "serial/plain", "fixed_point", "tree/double_word"])
@pytest.mark.parametrize("shape, axis", SHAPES_AND_AXES)
def test_every_method_selects(method, shape, axis):
    x, mask, _ = data(shape, np.float32)
    selected = samesum.sum(x, axis=axis, where=mask, method=method)
    assert bits(packed("sum", x, mask, axis, method=method).astype(np.float32)) == bits(selected)


numbers = st.one_of(
    st.floats(width=64), st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324]),
    st.floats(-1e3, 1e3).map(lambda x: round(x, 2)),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(arrays.arrays(np.float64, st.integers(0, 40), elements=numbers), st.data())
def test_exact_results_agree_with_fractions(x, draw):
    mask = draw.draw(arrays.arrays(bool, x.shape))
    y = np.where(mask, x, draw.draw(numbers))
    kept = [Fraction(v) for v in x[mask & ~np.isnan(x)].tolist() if np.isfinite(v)]
    if len(kept) < np.count_nonzero(mask & ~np.isnan(x)):
        return  # infinities have no fraction
    total = sum(kept)
    try:
        expected = float(total)
    except OverflowError:
        expected = np.inf if total > 0 else -np.inf
    assert samesum.sum(y, where=mask, skipna=True) == expected
    assert samesum.nansum(np.where(mask, y, np.nan)) == expected
    if kept:
        mean = total / len(kept)
        assert samesum.nanmean(y, where=mask) == float(mean)
        variance = sum((v - mean) ** 2 for v in kept) / len(kept)
        if variance < Fraction(1e308):
            assert samesum.nanvar(y, where=mask) == float(variance)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("shape, axis", [((500,), None), ((7, 33), 1), ((7, 33), 0), ((3, 5, 7), 1), ((4, 6), None)])
def test_a_scan_has_the_result_of_the_elements_before(name, shape, axis, exclusive):
    x, mask, nans = data(shape, np.float64)
    scan = getattr(samesum, name)
    found = scan(x, axis=axis, where=mask, exclusive=exclusive)
    assert bits(scan(nans, axis=axis, skipna=True, exclusive=exclusive)) == bits(found)
    along = 0 if axis is None else axis
    rows, flags = (np.moveaxis(a.reshape(-1) if axis is None else a, along, -1) for a in (x, mask))
    found = np.moveaxis(found, along, -1)
    for index in np.ndindex(rows.shape[:-1]):
        taken = rows[index][flags[index]]
        of_first = np.concatenate([scan(np.ones(1), exclusive=True), scan(taken)])
        count = np.cumsum(flags[index]) - (flags[index] if exclusive else 0)
        assert bits(of_first[count]) == bits(found[index])


def test_cumulative_sums_include_the_initial_result():
    x = np.array([[1.0, np.nan, 3.0], [np.nan, 2.0, 4.0]])
    found = samesum.cumulative_sum(x, axis=1, include_initial=True, skipna=True)
    assert found.tolist() == [[0, 1, 1, 4], [0, 0, 2, 6]]


def test_two_inputs_are_left_out_together():
    x, mask, nans = data((6, 50), np.float64, 1)
    y = data((6, 50), np.float64, 2)[0]
    expected = [samesum.dot(a[m], b[m]) for a, b, m in zip(x, y, mask)]
    assert samesum.vecdot(x, y, where=mask).tolist() == expected
    assert samesum.vecdot(nans, y, skipna=True).tolist() == expected
    assert samesum.vecdot(y, nans, skipna=True).tolist() == expected
    assert samesum.dot(x[0], y[0], where=mask[0]) == expected[0]


def test_a_mask_is_broadcast_and_the_layout_of_x_does_not_matter():
    x, _, _ = data((20, 30), np.float64)
    columns = np.arange(30) % 3 == 0
    expected = samesum.sum(x[:, columns].copy(), axis=1)
    for a in (x, np.asfortranarray(x), np.pad(x, 1)[1:-1, 1:-1], x[::-1][::-1]):
        assert bits(samesum.sum(a, axis=1, where=columns)) == bits(expected)
    rows = (np.arange(20) % 2 == 0)[:, None]
    assert samesum.sum(x, where=rows) == samesum.sum(x[::2])
    assert samesum.sum(np.broadcast_to(x[0], (9, 30)), axis=1, where=columns).tolist() == [expected[0]] * 9
    assert samesum.sum(x, where=True) == samesum.sum(x)
    assert samesum.sum([1.0, 2.0, 4.0], where=[True, False, True]) == 5


def test_no_elements_have_the_result_of_an_empty_array_and_numpys_in_the_nan_functions():
    nothing = [np.nan, np.nan]
    assert bits(samesum.nansum(nothing)) == bits(0.0)
    assert samesum.nanprod(nothing) == 1
    assert all(np.isnan(f(nothing)) for f in (samesum.nanmean, samesum.nanvar, samesum.nanstd))
    assert samesum.min(nothing, skipna=True) == np.inf and samesum.argmin(nothing, skipna=True) == -1
    assert np.isnan(samesum.nanmin(nothing)) and np.isnan(samesum.nanmax(nothing))
    x = np.array([[1.0, np.nan], [np.nan, np.nan], [np.inf, np.nan]])
    np.testing.assert_array_equal(samesum.nanmin(x, axis=1), [1, np.nan, np.inf])
    np.testing.assert_array_equal(samesum.nanmax(-x, axis=1, keepdims=True), [[-1], [np.nan], [-np.inf]])
    for function in (samesum.nanargmin, samesum.nanargmax):
        with pytest.raises(ValueError, match="all elements of a result are NaN or left out"):
            function(x, axis=1)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "prod", "min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_nan_functions_mean_what_numpys_mean(name, axis):
    x, name = data((30, 40), np.float64)[2], f"nan{name}"
    np.testing.assert_allclose(getattr(samesum, name)(x, axis), getattr(np, name)(x, axis), rtol=1e-12)


def test_the_nan_scans_mean_what_numpys_mean():
    x = data((30, 40), np.float64)[2]
    for name in ("nancumsum", "nancumprod"):
        np.testing.assert_allclose(getattr(samesum, name)(x, 1), getattr(np, name)(x, 1), rtol=1e-10)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int64])
def test_integers_are_selected(name, dtype):
    random = np.random.default_rng(1)
    x = random.integers(0, 2 if dtype is bool else 100, (20, 30)).astype(dtype)
    mask = random.random(x.shape) < 0.3
    mask[:, 4] = True
    assert np.array_equal(getattr(samesum, name)(x, axis=1, where=mask), packed(name, x, mask, 1))
    assert np.array_equal(getattr(samesum, name)(x, axis=1, skipna=True), getattr(samesum, name)(x, axis=1))
    with pytest.raises(ValueError, match="must leave at least one"):
        samesum.max(x, axis=1, where=np.zeros(30, bool))


def test_masked_arrays_are_reduced_over_what_their_mask_shows():
    x, mask, _ = data((6, 20), np.float64)
    masked = np.ma.masked_array(x, ~mask)
    assert bits(samesum.mean(masked, axis=1)) == bits(samesum.mean(x, axis=1, where=mask))
    assert bits(samesum.cumsum(masked, axis=1)) == bits(samesum.cumsum(x, axis=1, where=mask))
    other = np.arange(20) % 2 == 0
    assert samesum.sum(masked, where=other) == samesum.sum(x, where=mask & other)
    assert samesum.sum(np.ma.masked_array(x)) == samesum.sum(x)


@pytest.mark.parametrize("inner", [1, 3])
def test_by_key_an_element_that_takes_no_part_has_no_key(inner):
    x, mask, nans = data((400, inner), np.float64)
    random = np.random.default_rng(2)
    keys = np.where(mask.any(1), random.integers(0, 9, 400), -77)
    before = random.standard_normal((9, inner))
    columns = [samesum.scatter_add(before[:, i], keys[mask[:, i]], x[mask[:, i], i]) for i in range(inner)]
    expected = bits(np.stack(columns, 1))
    assert bits(samesum.scatter_add(before, keys, x, where=mask)) == expected
    assert bits(samesum.scatter_add(before, keys, nans, skipna=True)) == expected


def test_bad_masks_are_refused_with_the_remedy():
    x = np.ones((2, 3))
    for where, error, message in [
        (np.ones(3), TypeError, "where has elements of type float64; pass booleans"),
        ([True, None, True], TypeError, "where has elements that are not numbers; pass booleans, such as x > 0"),
        ("ab", TypeError, "where has elements of type str.*pass booleans, such as x > 0"),
        (np.ones(2, bool), ValueError, r"where has shape \(2,\) and x \(2, 3\)"),
        (np.ones((1, 2, 3), bool), ValueError, r"where has shape \(1, 2, 3\)"),
    ]:
        for function in (samesum.sum, samesum.argmax, samesum.cumsum):
            with pytest.raises(error, match=message):
                function(x, where=where)
    with pytest.raises(ValueError, match="where has shape"):
        samesum.scatter_add(np.zeros(2), [0, 1], [1.0, 2.0], where=[True] * 3)


def test_tensors_are_selected():
    torch = pytest.importorskip("torch", reason="needs PyTorch; pip install torch")
    x, mask, nans = data((6, 50), np.float32)
    for name in ("sum", "mean", "var", "argmax", "cumsum"):
        function = getattr(samesum, name)
        expected = function(x, axis=1, where=mask)
        assert bits(function(torch.tensor(x), axis=1, where=torch.tensor(mask))) == bits(expected)
        assert bits(function(torch.tensor(nans), axis=1, skipna=True)) == bits(expected)
    with pytest.raises(TypeError, match="where and skipna do not go with tracing or gradients"):
        samesum.sum(torch.ones(3, requires_grad=True), skipna=True)


def test_masks_of_two_inputs_leave_out_pairs():
    x, y = np.ma.masked_array([1.0, 2.0, 4.0], [0, 1, 0]), np.ma.masked_array([1.0, 1.0, 8.0], [0, 0, 1])
    assert samesum.dot(x, y) == 1
    assert samesum.dot(np.asarray(x.data), y) == 3
    with pytest.raises(ValueError, match="x has 1 axes and y 2; inputs with masks or nulls must agree"):
        samesum.vecdot(x, np.ones((3, 3)), axis=0)


def test_the_nan_functions_take_frames_and_arrays_of_jax():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]})
    least = samesum.nanmin(frame)
    assert np.isnan(least["a"]) and least["b"] == 1 and list(least.index) == ["a", "b"]
    with pytest.raises(ValueError, match="all elements of a result"):
        samesum.nanargmin(frame)
    out = np.empty(())
    samesum.nanmin(np.array([np.nan]), out=out)
    assert np.isnan(out)
    jnp = pytest.importorskip("jax").numpy
    assert np.isnan(float(samesum.nanmax(jnp.array([np.nan], np.float32))))


def test_integers_without_results_have_none():
    x = np.zeros((0, 3), int)
    assert samesum.max(x, axis=1, where=np.ones((0, 3), bool)).shape == (0,)
    with pytest.raises(ValueError, match="must leave at least one"):
        samesum.max(np.zeros((2, 0), int), axis=1, where=np.ones((2, 0), bool))


def test_a_mask_of_a_frame_has_its_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(ValueError, match="x 2 columns; pass a flag for each row, or for each element"):
        samesum.sum(frame, where=np.ones((2, 3), bool))
    for function in (samesum.cumsum, samesum.nancumsum):
        with pytest.raises(TypeError, match="x is a frame; pass one of its columns"):
            function(frame)
    with pytest.raises(TypeError, match="x is a frame"):
        samesum.rolling_sum(frame, 2)


def test_parts_of_a_long_call_have_their_flags():
    x, where = np.zeros((3, 1 << 24), np.float16), np.ones((3, 1 << 24), bool)
    x[:, :2], where[[0, 1, 2], [0, 1, 0]] = [[1, 2], [4, 8], [16, 32]], False
    assert samesum.sum(x, axis=1, where=where).tolist() == [2, 4, 32]


# --- by key ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [1, 3])
def test_sums_by_key_are_those_of_the_elements_that_take_part(inner):
    x, mask, nans = data((300, inner), np.float32)
    mask[:5] = False
    nans[:5] = np.nan
    keys = np.random.default_rng(3).integers(0, 9, 300)
    keys[:5] = 20  # a key without values
    unique, sums = samesum.groupby_sum(keys, x, where=mask)
    expected = [[samesum.sum(x[(keys == k) & mask[:, i], i]) for i in range(inner)] for k in np.unique(keys)]
    assert (
        unique.tolist() == np.unique(keys).tolist() and sums.tolist() == expected and sums[-1].tolist() == [0.0] * inner
    )
    for found in (
        samesum.groupby_sum(keys, nans, skipna=True), samesum.groupby_sum(keys, np.ma.masked_array(x, ~mask)),
        samesum.groupby_sum(keys, np.ma.masked_array(x, ~mask), where=np.ones(inner, bool)),
    ):  # fmt: skip
        assert bits(found[1]) == bits(sums)


def test_keys_that_take_no_part_are_not_counted():
    x, mask, nans = data((200,), np.float64)
    keys = np.where(mask, np.random.default_rng(4).integers(0, 7, 200), -5)
    assert samesum.bincount(keys, where=mask).tolist() == samesum.bincount(keys[mask]).tolist()
    expected = bits(samesum.bincount(keys[mask], x[mask]))
    for found in (
        samesum.bincount(keys, x, where=mask), samesum.bincount(keys, nans, skipna=True),
        samesum.bincount(keys, np.ma.masked_array(x, ~mask)),
    ):  # fmt: skip
        assert bits(found) == expected
    nothing = np.zeros(200, bool)
    assert samesum.bincount(keys, where=nothing).tolist() == [] == samesum.bincount(keys, x, where=nothing).tolist()
    assert samesum.bincount(keys, x, 2, where=nothing).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"where has shape \(3,\) and keys \(2,\).*the last ones of keys"):
        samesum.bincount([0, 1], where=[True] * 3)
    for argument, call in (
        ("weights", lambda **mask: samesum.bincount([0, 1], x[:2], **mask)),
        ("values", lambda **mask: samesum.groupby_sum([0, 1], x[:2], **mask)),
        ("values", lambda **mask: samesum.reduce_by_key([0, 1], x[:2], **mask)),
        ("values", lambda **mask: samesum.scatter_add(np.zeros(2), [0, 1], x[:2], **mask)),
    ):
        with pytest.raises(ValueError, match=rf"where has shape \(3,\) and {argument} \(2,\)"):
            call(where=[True] * 3)


@pytest.mark.parametrize("inner", [(), (2,)])
@pytest.mark.parametrize("operation", ["sum", "mean", "dot", "moments", "max", "argmin", "norm"])
def test_runs_of_keys_are_reduced_over_the_elements_that_take_part(operation, inner):
    x, mask, nans = data((120, *inner), np.float64)
    mask[:4], nans[:4] = False, np.nan
    keys = np.repeat(np.arange(30), 4)
    y = x[::-1].copy() if operation == "dot" else None
    found = samesum.reduce_by_key(keys, x, y, operation=operation, where=mask)
    assert found[0].tolist() == list(range(30))
    for other in (
        samesum.reduce_by_key(keys, nans, y, operation=operation, skipna=True),
        samesum.reduce_by_key(keys, np.ma.masked_array(x, ~mask), y, operation=operation),
    ):  # fmt: skip
        assert bits(other[1]) == bits(found[1])
    for run in range(30):
        for index in np.ndindex(inner):
            part = (slice(4 * run, 4 * run + 4), *index)
            flags, inputs = mask[part], [a[part] for a in (x, y) if a is not None]
            packed = [a[flags] for a in inputs]
            expected = samesum.reduce_by_key(np.zeros(len(packed[0])), *packed, operation=operation)[1]
            result = found[1][(run, *index)]
            if operation == "argmin":
                assert result == samesum.argmin(inputs[0], where=flags)
            elif len(expected):
                assert bits(result) == bits(expected[0])
            else:
                assert bits(result) == bits(
                    samesum.reduce_by_key(keys[:4], *inputs, operation=operation, where=flags)[1][0]
                )
    if operation in ("sum", "mean"):
        assert bits(found[1][0]) == bits(np.full(inner, 0.0 if operation == "sum" else np.nan))


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.float64, st.integers(0, 30), elements=numbers), st.data())
def test_sums_of_groups_and_runs_agree_with_fractions(x, draw):
    mask = draw.draw(arrays.arrays(bool, x.shape))
    keys = np.sort(draw.draw(arrays.arrays(np.int64, x.shape, elements=st.integers(0, 3))))
    kept = mask & ~np.isnan(x)
    if not np.isfinite(x[kept]).all():
        return
    unique, sums = samesum.groupby_sum(keys, x, where=mask, skipna=True)
    assert unique.tolist() == np.unique(keys).tolist()
    runs, means = samesum.reduce_by_key(keys, x, operation="mean", where=mask, skipna=True)
    assert runs.tolist() == unique.tolist()
    for key, found, mean in zip(unique, sums, means):
        values = [Fraction(v) for v in x[kept & (keys == key)].tolist()]
        total = sum(values)
        if abs(total) < Fraction(2) ** 1023:
            assert found == float(total)
            assert mean == float(total / len(values)) if values else np.isnan(mean)


def test_masked_values_of_groups_take_no_part():
    masked = np.ma.masked_array([1.0, 2.0, 3.0, np.nan], [1, 0, 0, 1])
    groups = samesum.groupby([1, 1, 2, 2])
    for call, expected in (("sum", [2, 3]), ("max", [2, 3]), ("first", [2, 3]), ("count", [1, 1]), ("var", [0, 0])):
        assert getattr(groups, call)(masked).tolist() == expected
    assert np.isnan(groups.sum(masked, skipna=False)).all()
    integers = np.ma.masked_array([1, 2, 3, 4], [1, 0, 1, 1])
    assert groups.sum(integers).tolist() == [2, 0] and groups.dot(masked, integers).tolist() == [4, 0]


def test_a_masked_mask_is_refused_with_its_remedy():
    where = np.ma.masked_array([True, False, True], [0, 0, 1])
    x, column = np.ones(3), pytest.importorskip("pandas").array([1.0, None, 2.0], "Float64")
    calls = [
        lambda: samesum.sum(x, where=where), lambda: samesum.cumsum(x, where=where),
        lambda: samesum.sum(np.ma.masked_array(x), where=where), lambda: samesum.sum(column, where=where),
        lambda: samesum.average(x, weights=x, where=where), lambda: samesum.bincount([0, 1, 2], where=where),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match=r"where is a masked array.*pass where\.filled\(False\)"):
            call()
    assert samesum.sum(x, where=where.filled(False)) == 1


def test_fsum_and_exact_sums_leave_out_what_masks_hide():
    masked = np.ma.masked_array([1e16, 5.0, 1.0, -1e16], [0, 1, 0, 0])
    assert samesum.fsum(masked) == 1.0 == samesum.Exact(masked).value()
    assert samesum.fsum(np.ma.masked_array([1.0])) == 1.0 and samesum.fsum(np.ma.masked_all(2)) == 0.0
    for name, make in (
        ("pandas", lambda m: m.Series([0.5, None], dtype="Float64")),
        ("polars", lambda m: m.Series([0.5, None])),
        ("pyarrow", lambda m: m.array([0.5, None])),
    ):
        column = make(pytest.importorskip(name))
        assert samesum.fsum(column) == 0.5 == samesum.Exact(column).value()
        frame = pytest.importorskip(name)
        frame = frame.table({"x": column}) if name == "pyarrow" else frame.DataFrame({"x": column})
        with pytest.raises(TypeError):  # a frame is no iterable of numbers, with nulls or without
            samesum.fsum(frame)
    assert np.isnan(samesum.fsum(np.array([1.0, np.nan])))


# --- arguments of the functions nan… ----------------------------------------------------------------------------------

NAN_FUNCTIONS = [name for name in samesum.__all__ if name.startswith("nan")]


@pytest.mark.parametrize("name", NAN_FUNCTIONS)
def test_a_nan_function_names_itself_where_arguments_do_not_fit(name):
    function = getattr(samesum, name)
    for call, message in (
        (lambda: function(), "missing a required argument: 'x'"),
        (lambda: function([1.0], 0, 1), "too many positional arguments"),
        (lambda: function([1.0], skipna=False), "got an unexpected keyword argument 'skipna'"),
        (lambda: function([1.0], axes=0), "got an unexpected keyword argument 'axes'"),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == f"{name}() {message}"
    with pytest.raises(TypeError, match="samesum: axis is 'first'"):  # which the signature allows
        function([1.0], axis="first")


def test_a_scan_names_the_function_that_was_called():
    pandas = pytest.importorskip("pandas")
    for name in ("cumsum", "nancumsum", "cumulative_sum", "nancumprod", "cumulative_prod"):
        with pytest.raises(TypeError, match=rf"samesum: axis is \(0, 1\); {name} takes one axis"):
            getattr(samesum, name)(np.ones((2, 2)), axis=(0, 1))
        with pytest.raises(TypeError, match=f"samesum: {name}: x is a frame"):
            getattr(samesum, name)(pandas.DataFrame({"a": [1.0]}))
