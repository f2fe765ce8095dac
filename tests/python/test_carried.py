"""Masks and units of foreign arrays are refused by name, or kept, but never dropped."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402


class Masked(np.ndarray):
    """An array with a mask of its own, as those of astropy."""

    mask: Any

    def __new__(cls, values: Any, mask: Any) -> Any:
        new = np.asarray(values, float).view(cls)
        new.mask = np.asarray(mask)
        return new


class Length(np.ndarray):
    """An array with a unit, as a Quantity of astropy."""

    unit: Any

    def __new__(cls, values: Any, unit: str = "m") -> Any:
        new = np.asarray(values, float).view(cls)
        new.unit = unit
        return new

    def __array_finalize__(self, other: Any) -> None:
        self.unit = getattr(other, "unit", None)

    def __array_wrap__(self, result: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return type(self)(result, self.unit)


class Quantity:
    """A number or an array with units, which is no array of NumPy, as those of pint."""

    def __init__(self, magnitude: Any) -> None:
        self.magnitude = magnitude

    @property
    def units(self) -> str:
        return "m"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.magnitude)


class ReadAsMasked:
    """What NumPy reads as a masked array, as a variable of netCDF4. Its mask is a switch."""

    mask = True

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ma.array([1.0, 2.0], mask=[False, True])


class Labelled:
    """An array with attributes of a data set, as those of xarray."""

    def __init__(self, data: Any) -> None:
        self.data, self.units, self.mask = data, "m", "land"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.data)


MASKED = Masked([1.0, 2.0, 4.0], [False, True, False])
ONES = np.ones(3)
CALLS = {
    "sum": samesum.sum,
    "mean": samesum.mean,
    "argmax": samesum.argmax,
    "var": samesum.var,
    "softmax": samesum.softmax,
    "cumsum": samesum.cumsum,
    "rolling_sum": lambda x: samesum.rolling_sum(x, 2),
    "nanmax": samesum.nanmax,
    "first input": lambda x: samesum.vecdot(x, ONES),
    "second input": lambda x: samesum.vecdot(ONES, x),
    "where": lambda x: samesum.sum(ONES, where=x),
    "weights": lambda x: samesum.sum(ONES, weights=x),
    "average": lambda x: samesum.average(x, weights=ONES),
    "average by weights": lambda x: samesum.average(ONES, weights=x),
    "cov": samesum.cov,
    "linear_regression": lambda x: samesum.linear_regression(ONES, x),
    "groupby": lambda x: samesum.groupby([1, 1, 1]).sum(x),
    "first": lambda x: samesum.groupby([1, 1, 1]).first(x),
    "count": lambda x: samesum.groupby([1, 1, 1]).count(x),
    "keys": lambda x: samesum.groupby(x),
    "groupby_sum": lambda x: samesum.groupby_sum([1, 1, 1], x),
    "keys of runs": lambda x: samesum.reduce_by_key(x, ONES),
    "scatter_add": lambda x: samesum.scatter_add(ONES, [0, 1, 2], x),
    "out of scatter_add": lambda x: samesum.scatter_add(x, [0, 1, 2], ONES),
    "bincount": lambda x: samesum.bincount([0, 1, 2], weights=x),
    "Exact": samesum.Exact,
    "fsum": samesum.fsum,
    "Partial": lambda x: samesum.Partial("exact/fp64").add(x),
    "estimate": samesum.estimate,
    "compare": samesum.compare,
    "list": lambda x: samesum.sum([x, x]),
    "list of lists": lambda x: samesum.sum([[x[0], x[2]]]),
    "out": lambda x: samesum.cumsum(ONES, out=x),
    "wrapped": lambda x: samesum.sum(Labelled(x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mask_that_is_not_understood_is_refused_by_name(name: str) -> None:
    x = MASKED
    if name == "list of lists":
        x = [MASKED, MASKED, MASKED]
    with pytest.raises(
        TypeError, match="samesum: .* with the attribute mask, which would be lost; pass numpy.ma.array"
    ):
        CALLS[name](x)


KEPT = ("sum", "mean", "cumsum", "rolling_sum", "nanmax")


@pytest.mark.parametrize("name", [name for name in CALLS if name not in KEPT and name != "list of lists"])
def test_a_unit_that_results_do_not_have_is_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match=r"samesum: .* attribute unit, which would be lost; pass .*value, and give"):
        CALLS[name](Length([1.0, 2.0, 4.0]))
    if name == "out":
        return
    with pytest.raises(
        TypeError, match=r"samesum: .* attribute units, which would be lost; pass .*magnitude, and give"
    ):
        CALLS[name](Quantity(np.ones(3)))


@pytest.mark.parametrize("name", KEPT)
def test_a_unit_that_results_have_is_kept(name: str) -> None:
    values = np.array([1.0, 2.0, 4.0])
    result = CALLS[name](Length(values, "km"))
    assert result.unit == "km"
    np.testing.assert_array_equal(np.asarray(result), CALLS[name](values))


def test_no_unit_is_converted_by_writing_to_another_array() -> None:
    for x, out in ((Length([1.0]), np.zeros(())), (np.ones(1), Length(0.0)), (Length([1.0]), Length(0.0, "km"))):
        with pytest.raises(TypeError, match="samesum: (x|out) is a Length with the attribute unit"):
            samesum.sum(x, out=out)


def test_what_numpy_reads_as_a_masked_array_is_refused() -> None:
    for call in (
        samesum.sum,
        samesum.cumsum,
        samesum.Exact,
        samesum.estimate,
        lambda x: samesum.sum([1.0, 2.0], where=x),
    ):
        with pytest.raises(TypeError, match=r"that NumPy reads as a masked array; pass numpy.asanyarray\("):
            call(ReadAsMasked())


def test_attributes_that_are_no_masks_or_units_of_the_elements_are_no_reason_to_refuse() -> None:
    assert samesum.sum(Labelled(np.ones(3))) == 3
    assert samesum.sum(np.matrix([[1.0, 2.0]])) == 3
    assert samesum.sum(Masked([1.0], None).view(np.ndarray)) == 1
    assert samesum.sum(Length([1.0, 2.0]).view(np.ndarray)) == 3
    assert samesum.sum(np.ma.array([1.0, 2.0], mask=[True, False])) == 2
    pd = pytest.importorskip("pandas")
    assert samesum.sum(pd.Series([1.0])) == 1  # mask is a method there
    assert samesum.groupby(pd.date_range("2026-01-01", periods=2)).count([1.0, 2.0]).tolist() == [
        1,
        1,
    ]  # and unit a text


def test_a_sparse_matrix_is_refused_with_a_remedy() -> None:
    class Sparse:
        def __iter__(self) -> Any:
            return iter(())

        def toarray(self) -> Any:
            return np.eye(2)

    with pytest.raises(
        TypeError, match=r"x is a Sparse; pass x\.toarray\(\), or x\.data for the elements that are stored"
    ):
        samesum.sum(Sparse())


def test_masked_and_nested_tensors_are_refused_by_name() -> None:
    torch = pytest.importorskip("torch")
    masked = torch.masked.masked_tensor(torch.ones(3), torch.tensor([True, False, True]))
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    calls = (
        samesum.sum, samesum.mean, samesum.cumsum, samesum.fsum, lambda x: samesum.average(x, weights=x),
        lambda x: samesum.rolling_sum(x, 2), lambda x: samesum.groupby_sum([1, 2, 3], x),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError, match=r"masked tensor; pass .*\.get_data\(\)"):
            call(masked)
        for x in (nested, jagged):
            with pytest.raises(TypeError, match=r"is a nested tensor; pass .*to_padded_tensor"):
                call(x)


def test_blocks_of_dask_with_masks_of_their_own_are_refused() -> None:
    da = pytest.importorskip("dask.array")
    import samesum.dask

    x = da.from_array(np.ones(6), chunks=3).map_blocks(lambda block: Masked(block, False), dtype=float)
    for method in (None, "tree/plain"):
        with pytest.raises(TypeError, match="attribute mask, which would be lost"):
            samesum.dask.sum(x, method=method).compute(scheduler="sync")
