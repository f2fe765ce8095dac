"""The class Cells, and the function that makes them."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import _core
from .._arrays.inputs import array_of
from .._calls.arguments import whole_number
from .._calls.results import delivered
from .._elements.formats import DTYPES, dtype_name, format_of
from .._elements.library import library, library_of
from .layout import exponents_of
from .words import as_warp, clear, filled, in_order, is_warp, on_host, shape_of, view, zero_words

def _format(dtype: Any, argument: str) -> str:
    """Returns the format of a data type of floats. Raises TypeError for every other data type."""
    format = format_of(dtype, argument)
    if format == "int":
        raise TypeError(
            f"samesum: {argument} {'is' if argument == 'dtype' else 'has elements of type'} {dtype_name(dtype)}; use "
            "float16, bfloat16, float32 or float64"
        )
    return format


def _grid(grid: Any, format: str) -> int | None:
    """Returns the exponent of a grid. Raises ValueError if no sum in the format has a use for it."""
    if grid is None:
        return None
    exponent = whole_number("grid", grid, ", the exponent of 2")
    least, most = exponents_of("float64")[0], exponents_of(DTYPES[format])[1]
    if not least <= exponent <= most:
        raise ValueError(
            f"samesum: grid is {exponent}; for results of {DTYPES[format]} choose an exponent from {least} to {most}, "
            "at most 62 below that of the largest element or sum"
        )
    return exponent


def _holds(state: str, element: str) -> bool:
    """Whether an exact sum of one format holds all elements of another."""
    (least, most), (lowest, highest) = exponents_of(DTYPES[state]), exponents_of(DTYPES[element])
    return least <= lowest and highest <= most and (state, element) != ("bf16", "fp16")


def _not_numbers(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("samesum: cells are sums in progress, not numbers; call cells.finish(), which rounds them")


class Cells:
    """Sums in progress, to which kernels and threads may add in any order. `samesum.cells` makes them.

    Attributes
    ----------
    words
        the states, an array of int64 with one axis more than the cells, of the library of `like`. All 0 is empty.
    shape
        the shape of the cells.
    dtype
        the name of the type of the results, and of the elements of exact sums: 'float32'.
    grid
        the exponent of the grid; None for exact sums.
    """

    __slots__ = ("words", "shape", "dtype", "grid", "_format")
    __hash__ = None  # type: ignore[assignment]  # cells change

    def __init__(self, shape: Any, dtype: Any, like: Any, grid: Any) -> None:
        self.shape = shape_of(shape)
        self._format = _format(dtype, "dtype")
        self.dtype = DTYPES[self._format]
        self.grid = _grid(grid, self._format)
        self.words = zero_words((*self.shape, _core.cell_words(self._format, self.grid is not None)), like)

    def add(self, i: Any, x: Any) -> None:
        """Adds element or row x[k] to cell or row of cells i[k], for all k.

        >>> import samesum
        >>> c = samesum.cells(3, "float64")
        >>> c.add([2, 0, 2, 2], [1e16, 5.0, 1.0, -1e16])
        >>> c.finish().tolist()
        [5.0, 0.0, 1.0]

        Other threads and kernels may add to the cells at the same time. On a GPU, the call is enqueued in the current
        stream of the library of the cells; if i or x are in another stream, or in memory of Warp, it waits for both.

        Parameters
        ----------
        i
            whole numbers of any shape, from 0 to shape[0] - 1.
        x
            floats, of the shape of i followed by that of the cells without its first axis. Exact sums take the type
            of the cells, and types whose numbers are all numbers of it; a grid takes all.

        Raises
        ------
        IndexError
            if an index is out of range. Nothing has been added then.
        TypeError
            if elements have a type that the cells do not take, or the arrays are not where the cells are.
        ValueError
            if shapes do not agree.
        """
        reader, values = array_of(x)
        format = _format(values.dtype, "x")
        if self.grid is None and not _holds(self._format, format):
            raise TypeError(
                f"samesum: x has elements of type {DTYPES[format]}, and the cells hold {self.dtype}; convert x, or "
                f"make cells of {DTYPES[format]}"
            )
        index_reader, index = array_of(i, "i")
        if format_of(index.dtype, "i") != "int" or str(index.dtype).endswith("bool"):
            raise TypeError("samesum: i has elements that are no integers; pass the indices of cells")
        here, row = array_of(self.words), self.shape[1:]
        for name, owner, array in (("x", reader, values), ("i", index_reader, index)):
            if owner.place(array) != here[0].place(here[1]):
                raise TypeError(
                    f"samesum: {name} is on {owner.place(array)} and the cells on {here[0].place(here[1])}; move one"
                )
        if tuple(values.shape) != (*index.shape, *row):
            raise ValueError(
                f"samesum: x has shape {tuple(values.shape)}; with i of shape {tuple(index.shape)} and cells of shape "
                f"{self.shape} it must be {(*index.shape, *row)}"
            )
        if bool(((index < 0) | (index >= self.shape[0])).any()):
            raise IndexError(f"samesum: i has an index out of range; use 0 to {self.shape[0] - 1}")
        if self.grid is None:
            values, format = reader.astype(values, self.dtype), self._format
        index, values = index_reader.contiguous(index_reader.astype(index, "int64")), reader.contiguous(values)
        with in_order((self.words, *here), (i, index_reader, index), (x, reader, values)):
            _core.add_to_cells(*self._states(), tuple(index_reader.view(index)), tuple(reader.view(values)), format)

    def merge(self, other: Cells) -> None:
        """Adds what other cells of the same shape, dtype and grid hold. On a GPU, in the stream that `add` has.

        >>> import samesum
        >>> a, b = samesum.cells(2, "float32", grid=-20), samesum.cells(2, "float32", grid=-20)
        >>> b.add([1], [0.5])
        >>> a.merge(b), a.finish().tolist()
        (None, [0.0, 0.5])
        """
        if not isinstance(other, Cells):
            raise TypeError(f"samesum: other is a {type(other).__name__}; pass cells, or call add for elements")
        mine, theirs = ((c.shape, c.dtype, c.grid) for c in (self, other))
        if mine != theirs:
            raise ValueError(
                "samesum: cells merge with those of the same shape, dtype and grid; these have {}, {}, {} and {}, {}, "
                "{}".format(*mine, *theirs)
            )
        if view(self.words).device != view(other.words).device:
            raise TypeError("samesum: other is on another device; pass from_bytes(other.to_bytes(), like=x)")
        if other is self:  # a carry would change what has not been added yet
            other = Cells.from_bytes(self.to_bytes(), like=self.words)
        with in_order(*((c.words, *array_of(c.words)) for c in (self, other))):
            _core.merge_cells(*self._states(), tuple(view(other.words)))

    def finish(self, dtype: Any = None) -> Any:
        """Returns the sums, rounded once to `dtype`, as an array of the library of `like`. Default: that of the cells.

        The cells stay as they are. An empty cell gives +0. With a grid, a sum or an element that is too large gives
        NaN.
        """
        format = self._format if dtype is None else _format(dtype, "dtype")
        reader, words = array_of(self.words)
        if not _core.has_cuda and reader.view(words).device >= 0:  # then a copy is rounded on the host
            rounded = Cells.from_bytes(self.to_bytes()).finish(DTYPES[format])
            if is_warp(self.words):
                return as_warp(rounded, self.words)
            return filled(library_of(self.words).empty(self.shape, DTYPES[format], self.words), rounded)
        result = reader.empty(self.shape, DTYPES[format], words)
        _core.finish_cells(tuple(reader.view(words)), self._format, self.grid, tuple(reader.view(result)), format)
        result = delivered(reader, result, self.words)
        return as_warp(result, self.words) if is_warp(self.words) else result

    def reset(self) -> None:
        """Empties all cells."""
        clear(self.words)

    def to_bytes(self) -> bytes:
        """Returns the cells as bytes, for `samesum.Cells.from_bytes` on any machine.

        Cells to which the same elements were added give the same bytes, whatever the order, the language and the
        machine: "SSUM", a version (1), the length of a name, the name "cells"; the index of the type in float16,
        bfloat16, float32, float64 (1 byte); whether there is a grid (1); the grid (4); the number of axes (1); the
        length of each (8); the words (8 each), whose digits are in [0, 2**32) but for the last one; a CRC-32 (4). All
        are little-endian.
        """
        words = on_host(self.words)  # kept until its address has been used
        return _core.serialise_cells(
            tuple(library("numpy").view(words)), self._format, self.grid, list(self.shape)
        )

    @staticmethod
    def from_bytes(data: Any, *, like: Any = None) -> Cells:
        """Returns the cells with the bytes of `to_bytes`, in memory of the library and on the device of `like`.

        Raises ValueError if the bytes are damaged.

        >>> import samesum
        >>> c = samesum.cells(2, "float64")
        >>> c.add([1, 1], [0.5, 0.25])
        >>> samesum.Cells.from_bytes(c.to_bytes()).finish().tolist()
        [0.0, 0.75]
        """
        format, grid, shape, words = _core.deserialise_cells(memoryview(data).tobytes())
        cells = Cells(tuple(shape), DTYPES[format], like, grid)
        filled(cells.words, library("numpy").np.frombuffer(words, "int64").reshape(tuple(cells.words.shape)))
        return cells

    def __reduce__(self) -> Any:  # with the words as they are, so that a copy stays in the memory of the original
        return _restored, (self.shape, self.dtype, self.grid, self.words)

    def _states(self) -> tuple[tuple[Any, ...], str, int | None]:
        return tuple(view(self.words)), self._format, self.grid

    def __repr__(self) -> str:
        kind = "exact" if self.grid is None else f"grid 2**{self.grid}"
        return f"<samesum.Cells of shape {self.shape}, {self.dtype}, {kind}>"

    __array__ = __float__ = __int__ = __index__ = __complex__ = __bool__ = _not_numbers
    __len__ = __iter__ = __getitem__ = _not_numbers
    __add__ = __radd__ = __iadd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _not_numbers
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __neg__ = __abs__ = _not_numbers
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _not_numbers
    __array_ufunc__ = _not_numbers


def _restored(shape: tuple[int, ...], dtype: str, grid: int | None, words: Any) -> Cells:
    cells = Cells.__new__(Cells)
    cells.shape, cells.dtype, cells.grid, cells.words, cells._format = shape, dtype, grid, words, format_of(dtype)
    return cells


def cells(shape: Any, dtype: Any, *, like: Any = None, grid: int | None = None) -> Cells:
    """Returns empty cells: sums to which kernels and threads may add, with the same bits in every order.

    A cell is a few integers, whatever the number of additions. Adding is adding integers, so the sums do not depend on
    the order of the elements, nor on how threads, blocks, launches, languages and machines share them: promise
    `order_free`. They have the bits of `scatter_add` by the method 'exact' or, with a grid, 'fixed_point'.

    >>> import samesum
    >>> c = samesum.cells(2, "float32", grid=-40)
    >>> c.add([0, 1, 0], [0.1, 0.2, 0.3])
    >>> c.finish().tolist(), c.words.nbytes
    ([0.4000000059604645, 0.20000000298023224], 48)

    Parameters
    ----------
    shape
        a whole number or a tuple: (n, 3) are n rows of three sums.
    dtype
        type of the results: float16, bfloat16, float32 or float64, also of the elements of exact sums.
    like
        an array of NumPy, PyTorch, CuPy or Warp, in whose library and on whose device the cells are. Default: NumPy.
    grid
        the exponent g of a grid. Each element is rounded to a multiple of 2**g, to nearest, ties to even, and added
        exactly from then on: the error of n elements is at most n * 2**(g - 1), and that of rounding the sum. Such a
        cell has 24 bytes and is the fastest. An element or a sum beyond 2**(g + 62), and for results of float64 a sum
        beyond 2**(g + 126), makes the result NaN. So g must be at least floor(log2(m)) - 61 for sums up to m.
        Default: exact sums, of 48 (float16), 96 (bfloat16), 104 (float32) or 552 bytes (float64).

    Raises
    ------
    TypeError
        if a type is not supported, or `like` is of a library whose arrays do not change in place.
    ValueError
        if the shape or the grid does not fit.
    """
    return Cells(shape, dtype, like, grid)
