# Written by hand from the output of nanobind.stubgen, which knows no names of unnamed parameters.
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsIndex

has_cuda: bool
format_bytes: dict[str, int]
run_foreign_call: Any
"""A capsule with the function through which other extension modules call samesum."""

class Method:
    """A reduction method: what is computed, in which order, and how terms are added."""

    @property
    def name(self) -> str:
        """Full name: operation/order/accumulator/format@backend."""
    @property
    def operation(self) -> str:
        """ "sum", "dot", …"""
    @property
    def order(self) -> str:
        """Order of the additions; "" if the method has none."""
    @property
    def accumulator(self) -> str:
        """How terms are added; "" if the operation has a state of its own."""
    @property
    def format(self) -> str:
        """Format of the accumulator and the results."""
    @property
    def backend(self) -> str:
        """ "cpu", "cuda" or "reference"."""
    @property
    def promise(self) -> str:
        """Guarantee about the bits: none < run_to_run < everywhere < order_free."""
    @property
    def inputs(self) -> int:
        """Number of inputs: 2 for dot."""
    @property
    def results(self) -> int:
        """Numbers per result: 2 for moments."""
    @property
    def returns_index(self) -> bool:
        """Whether results are indices (int64)."""
    @property
    def has_result_per_element(self) -> bool:
        """Whether each element has a result, as in softmax."""
    @property
    def keeps_format(self) -> bool:
        """Whether the results have the format of the elements, as in softmax."""
    @property
    def takes_keys(self) -> bool:
        """Whether elements are reduced by key, as in scatter_add."""
    @property
    def takes_window(self) -> bool:
        """Whether each result is that of a window of elements, as in rolling_sum."""
    @property
    def is_scan(self) -> bool:
        """Whether result i is that of the first i + 1 elements."""
    @property
    def is_slow(self) -> bool:
        """Whether the method is slow by design and exists for the study."""
    @property
    def height_formula(self) -> str:
        """Formula of `height` in n."""
    def height(self, n: int) -> int:
        """Number of additions on the longest path from an element to the result."""
    def accepts(self, format: str) -> bool:
        """Whether the method accepts elements of a format."""

class CallMaker(type):
    """The type of the class that makes calls."""

call_fields: dict[str, Any]
"""The fields of a call in their order, and their values unless given."""

class Call:
    """A call of a public function: built once, and passed down to the library.

    Its fields are what the caller gives, in the order of the constructor, `samesum._calls.arguments.Call`. On the way, x,
    y, `where` and the method become arrays of one library and a method of the catalogue, and the fields from `library`
    on are found.
    """

    operation: str
    x: Any
    axis: Any
    dtype: Any
    out: Any
    keepdims: bool
    method: Any
    threads: Any
    where: Any
    skipna: Any
    dim: Any
    keepdim: Any
    grid: Any
    check: bool
    ddof: Any
    """What is subtracted from the number of elements in a divisor: the correction."""
    finish: Any
    """finish(namespace, result) computes further from the results, in the caller's array library."""
    y: Any
    second: str
    """The name under which the caller knows y."""
    weights: Any
    weights_are: str
    as_numpy: bool
    """Whether results for no elements are those of NumPy's nan-functions: extrema NaN, and indices errors."""
    is_detached: bool
    """Whether autograd need not see the call."""
    function: Any
    """The name of the public function, if it is not that of the operation."""
    exclusive: Any
    include_initial: Any
    window: Any
    min_periods: Any
    center: Any
    keys: Any
    key_format: Any
    combine: bool
    """Whether results by key are combined with the numbers that are there."""
    library: Any
    """The library of the arrays."""
    format: Any
    """The format of the elements, or "int"."""
    axes: Any
    """The reduced axes in ascending order, not negative."""
    layout: Any
    offsets: Any
    """In place of a layout: where the elements of each result begin."""
    result: Any
    """The array to which the results are written. It, and the other arrays, may be given as a View."""
    result_stride: int
    second_result: Any
    """The array of the second results of a statistic: the intercepts of lines, or for means the sums of the weights."""
    result_format: Any
    """The format of the results of a statistic. Those of other calls have that of the method."""

    def copy(self) -> Call:
        """Returns a call with the same fields, to change some of them."""

class Exact:
    """The state of an exact sum."""

    def __init__(self) -> None: ...
    def add_elements(self, call: Call) -> None:
        """Adds x, whose elements are contiguous, exactly."""
    def add_number(self, number: SupportsFloat) -> None:
        """Adds a number; an int exactly."""
    def add_numbers(self, numbers: Iterable[SupportsFloat | SupportsIndex]) -> None:
        """Adds the numbers of an iterable, all of them or, if it raises, none."""
    def merge(self, other: Exact) -> None:
        """Adds the sum of another state."""
    def value(self, format: str) -> float:
        """Returns the sum, rounded once to a format."""
    @property
    def is_empty(self) -> bool:
        """Whether no element has been added."""
    def copy(self) -> Exact:
        """Returns an independent state of the same sum."""
    def serialise(self) -> bytes:
        """Returns the state as 284 bytes."""
    @staticmethod
    def deserialise(data: bytes) -> Exact:
        """Restores a state from the bytes of `serialise`."""

class Partial:
    """The state of a reduction of consecutive elements."""

    def __init__(self, method: Method, begin: int, grid: int | None) -> None: ...
    def add(self, call: Call) -> None:
        """Takes in x, and y for two inputs. Their elements are contiguous."""
    def merge(self, next: Partial) -> None:
        """Merges with the partial that begins where this one ends."""
    def finish(self, ddof: float) -> float | int | tuple[float, float]:
        """Returns the result for the vector."""
    @property
    def method(self) -> Method:
        """The method."""
    @property
    def begin(self) -> int:
        """Index of the first element."""
    @property
    def end(self) -> int:
        """Index after the last element."""
    def copy(self) -> Partial:
        """Returns an independent partial of the same elements."""
    def serialise(self) -> bytes:
        """Returns the partial as bytes."""
    @staticmethod
    def deserialise(data: bytes, backend: str) -> Partial:
        """Restores a partial from the bytes of `serialise`."""

def methods() -> list[Method]: ...
def absent() -> dict[str, str]: ...
def find(name: str, operation: str, format: str, backend: str, /) -> Method: ...
def default_method(operation: str, format: str, backend: str, /) -> Method | None: ...
def accepts_layout(method: Method, format: str, layout: Sequence[int], /) -> bool: ...
def layout_of(
    shape: Sequence[int], strides: Sequence[int], reduced: Sequence[int], /
) -> tuple[int, int, int, int, int] | None:
    """Returns the layout that reduces these axes in row-major order; None if there is none."""

def run(call: Call, /) -> None:
    """Runs a call whose method, format and layout are known, and whose arrays are in one memory."""

def estimate(name: str, format: str, x: int, y: int, size: int, /) -> tuple[float, float, float]: ...
def bound(
    method: Method, input: str, n: int, results: Sequence[float], magnitudes: float | None, probability: float,
    index: int, ddof: float, /,
) -> float: ...  # fmt: skip
def choose(
    operation: str, n: int, input: str, promise: str, relative_error: float | None, ulps: float | None,
    probability: float, backend: str, condition: float, magnitudes: float | None, /,
) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]: ...  # fmt: skip
def fsum(iterable: Iterable[SupportsFloat | SupportsIndex], /) -> float:
    """Returns the correctly rounded sum of an iterable of numbers, as `math.fsum` does."""

def finish_by(finished: Callable[[Any, Any, Any], Any], /) -> None:
    """Registers the function of x, `finish` and a result of `fast` that computes further."""

def fast(call: Call, /) -> Any:
    """Returns the result, or None if the call needs Python's side: with `as_numpy`, also if an extremum may be of
    nothing.
    """

def statistics(call: Call, /) -> bool:
    """Computes the statistic that the operation names, `samesum::run` of C++.

    x, y and the weights are vectors, or have a row of contiguous elements for each result or, for a matrix, for each
    variable. The flags `where` are those of x, and contiguous. Returns whether Σw = 0 for a result with elements.
    """

def square_root(format: str, x: int, n: int, /) -> None:
    """Replaces numbers in host memory by their correctly rounded square roots."""

def remember(operation: str, name: str, format: str, backend: str, method: Method, /) -> None: ...
def know_numpy(
    array: type, empty: Callable[..., Any], scalars: Mapping[str, type], integers: Mapping[str, type], /
) -> None: ...
def know_torch(tensor: type, dtypes: Mapping[str, Any], stream: Callable[[int], int] | None, /) -> None: ...
integer_types: Sequence[str]
"""The types of integers that reduce_integers takes."""

def reduce_integers(
    operation: str, dtype: str, x: int, where: int, axes: Sequence[tuple[int, int, int, bool]], out: int, /
) -> bool:
    """Reduces integers by sum, min, max, argmin or argmax, and returns whether a result is not valid: a sum beyond
    64 bits, or an extremum of nothing. An axis is its length, its strides in elements of x and of `where`, and whether
    it is reduced.
    """

def number_groups(keys: int, n: int, sorted: bool, threads: int, format: str, numbers: int, /) -> bytes:
    """Writes the number of the group of each of n keys of 64 bits, as integers of the format int32 or int64.
    Returns the index of the first key of each group, as integers of 64 bits.
    """

def sort_by_group(format: str, numbers: int, n: int, groups: int, indices: int, offsets: int, /) -> None:
    """Writes the indices of n numbers in the order of these, and where those of each group begin and end."""

# Cells: `words` and `other` are views of their words, `grid` is None for exact sums.
def cell_words(format: str, has_grid: bool, /) -> int:
    """Returns the number of words of 64 bits of a cell."""

def add_to_cells(
    words: tuple[Any, ...], format: str, grid: int | None, rows: tuple[Any, ...], x: tuple[Any, ...], x_format: str, /
) -> None:
    """Adds each row of x to the row of cells whose index (int64) is at the same place of `rows`."""

def merge_cells(words: tuple[Any, ...], format: str, grid: int | None, other: tuple[Any, ...], /) -> None: ...
def finish_cells(
    words: tuple[Any, ...], format: str, grid: int | None, out: tuple[Any, ...], out_format: str, /
) -> None: ...
def serialise_cells(words: tuple[Any, ...], format: str, grid: int | None, shape: Sequence[int], /) -> bytes: ...
def deserialise_cells(data: bytes, /) -> tuple[str, int | None, list[int], bytes]:
    """Returns the format, the grid, the shape, and the words."""
