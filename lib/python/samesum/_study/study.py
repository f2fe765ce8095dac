"""Methods, their error bounds, the choice between them, and their comparison on data."""

from __future__ import annotations

import fnmatch
import html
import math
import operator
from typing import Any, Iterator, NamedTuple, Sequence

from .. import _core
from .._arrays.inputs import array_of
from .._calls.reduction import Method, check_operation, default_method, find_method, reduce, same_type
from .._elements.formats import format_of, method_format, without_address
from .._elements.in_floats import adds_exactly, held_floats, in_floats, in_two_floats
from .._elements.library import library_of
from .._frames.frames import present


def methods(pattern: str = "*") -> list[Method]:
    """Returns the methods of this machine that a text selects.

    A pattern with * and ? selects those whose full name matches it, perhaps none. Another text selects those whose
    full name begins with it as with whole fields, such as "dot" or "sum/tree", or else those that contain it.

    >>> [m.name for m in methods("dot/*/fp64@cpu")][:2]
    ['dot/tree/plain/fp64@cpu', 'dot/tree/kahan/fp64@cpu']
    >>> {m.accumulator for m in methods("kahan")}
    {'kahan'}

    Raises ValueError if a text without * and ? selects nothing; the message says why.
    """
    every = _core.methods()
    found = [m for m in every if fnmatch.fnmatchcase(m.name, _text(pattern, "pattern"))]
    if found or any(c in pattern for c in "*?["):
        return found
    found = [m for m in every if m.name.startswith((f"{pattern}/", f"{pattern}@"))]
    return found or [m for m in every if pattern in m.name] or [_core.find(pattern, "sum", "fp64", "cpu")]


def _shown(value: Any) -> str:
    """Returns an argument as a message shows it."""
    return without_address(value, repr(value))


class Estimate(NamedTuple):
    """A result with a rigorous bound on its error."""

    value: float
    """What the method returns; a float holds it exactly in every format."""
    bound: float
    """At least |value - exact result|; infinity if an overflow cannot be excluded."""
    magnitudes: float
    """Σ|x|, for dot Σ|xy|, rounded up."""
    method: Method


def estimate(x: Any, method: str | Method | None = None, y: Any = None) -> Estimate:
    """Returns the bits that a method returns for all elements of x, and a bound on their error.

    The bound is rigorous: |value - exact result for x as given| <= bound, also where a method rounds integers to fp64.
    For plain sums it is u·Σ|partial sum| over the nodes of the tree (Higham, Accuracy and Stability, §4.2, eq. 4.3), or
    the a-priori bound if that is smaller; for other methods it is the a-priori bound (`bound`) for Σ|x| of the data.
    Elements on a GPU are copied to the host, whose bits are the same.

    >>> e = estimate([0.1] * 10, "tree/plain")
    >>> abs(e.value - 1) <= e.bound < 1e-15
    True

    Raises ValueError for a method that promises nothing, since it has no fixed tree, and OverflowError for integers
    that fp64 does not hold, if no bound is known for what rounding them changes.
    """
    a, b = _pair_on_host("estimate", x, y)
    format = method_format(a.dtype)
    operation = "sum" if y is None else "dot"
    if isinstance(method, Method):
        method = method.name
    if method is not None and method.split("/")[0] in {m.operation for m in _core.methods()}:
        operation = method.split("/")[0]
    found = find_method(method, operation, format, "cpu") if method else default_method(operation, format, "cpu")
    if format_of(a.dtype) == "int":
        return _estimate_of_integers(found, a, b)
    return _estimate_of_floats(found, a, b)


def _estimate_of_floats(method: Method, a: Any, b: Any) -> Estimate:
    numpy = library_of(a)
    addresses = numpy.view(a).address, 0 if b is None else numpy.view(b).address
    return Estimate(*_core.estimate(method.name, format_of(a.dtype), *addresses, a.size), method)


_STEADY = ("sum", "mean", "norm", "sum_of_magnitudes", "logsumexp")
"""Operations whose result changes by no more than the sum of the changes of the elements."""


def _estimate_of_integers(method: Method, a: Any, b: Any) -> Estimate:
    """Returns an estimate whose bound covers the rounding of integers to fp64. Raises OverflowError if it cannot."""
    numpy = library_of(a)
    if adds_exactly(method) and held_floats(numpy, a) is None:
        e = _estimate_of_floats(method, numpy.np.concatenate(in_two_floats(numpy, a)), None)
        return e if method.operation != "mean" else e._replace(value=2 * e.value, bound=2 * e.bound)
    is_covered = b is None and method.operation in _STEADY
    floats = in_floats(numpy, a, method=method if is_covered else None)
    e = _estimate_of_floats(method, floats, None if b is None else in_floats(numpy, b, "y"))
    if not is_covered or a.dtype.itemsize < 8:
        return e
    changes = float(numpy.np.abs(in_two_floats(numpy, a)[1]).sum())  # exact: of integers below 2^10
    if changes == 0:
        return e
    bound, magnitudes = (math.nextafter(x + changes, math.inf) for x in (e.bound, e.magnitudes))
    return e._replace(bound=bound, magnitudes=magnitudes)


def _pair_on_host(function: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Returns the elements of two inputs as contiguous NumPy vectors of one type. The second one may be None."""
    if y is None:
        return _on_host(present(x), "x"), None
    a = _on_host(x, "x")
    b = _on_host(y, "y")
    if b.size != a.size:
        raise ValueError(f"samesum: {function}: x has {a.size} elements and y has {b.size}; pass inputs of one length")
    return same_type(library_of(a), a, b)


def _on_host(x: Any, argument: str) -> Any:
    """Returns the elements of x as a contiguous NumPy vector."""
    library, a = array_of(x, argument)
    numpy = library_of([])
    format_of(a.dtype, argument)  # raises for what has no numbers
    if library.name == "torch":
        a = numpy.converted(a.cpu())
    elif library.name == "cupy":
        a = a.get()
    return numpy.contiguous(a).reshape(-1)


def bound(
    method: str | Method, n: int, result: float | Sequence[float] = 0.0, *, input: str | None = None,
    magnitudes: float | None = None, probability: float = 1.0, index: int = 0, ddof: float = 0.0,
) -> float:  # fmt: skip
    """Returns a rigorous bound on |result - exact result| for n elements.

    >>> bound("tree/plain/fp32", 1000, magnitudes=1000) < 0.003
    True

    Parameters
    ----------
    method
        name with a format, such as "sum/tree/kahan/fp32".
    n
        number of elements.
    result
        what the method returned; for moments mean and variance. Bounds that depend on Σ|x| do not need it.
    input
        format of the elements; default: that of the method.
    magnitudes
        an upper bound on Σ|x|, for dot on Σ|xy|, for softmax on the largest minus the smallest element. The bounds
        of sum, mean and dot need it: without it, ValueError.
    probability
        below 1, for sums: the error exceeds the bound with a probability of at most 1 - probability if each
        rounding has mean 0 (Higham and Mary 2019; Hallman and Ipsen 2022).
    index
        which result: for moments 0 is the mean and 1 the variance.
    ddof
        for moments, as in `var`.
    """
    if not isinstance(method, Method):
        method = _core.find(method, "sum", "", "cpu")
    n, index = _count(n, "n"), _count(index, "index")
    results = [float(r) for r in result] if isinstance(result, (tuple, list)) else [float(result)]
    if len(results) == 1:
        results *= method.results
    return _core.bound(method, input or method.format, n, results, magnitudes, probability, index, ddof)


def _count(n: Any, name: str) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"samesum: {name} is {_shown(n)}; it must be a whole number") from None
    if not 0 <= count < 2**64:
        raise ValueError(f"samesum: {name} is {count}; it must be at least 0 and below 2**64")
    return count


def _number(x: Any, name: str) -> float:
    try:
        return math.ldexp(x, 0)  # unlike float(), refuses texts
    except TypeError:
        raise TypeError(f"samesum: {name} is {_shown(x)}; it must be a number") from None


def _text(x: Any, name: str) -> str:
    if not isinstance(x, str):
        raise TypeError(f"samesum: {name} is {_shown(x)}; it must be a text")
    return x


class Candidate(NamedTuple):
    """A method, and what `choose` knows of it."""

    method: Method
    bound: float
    """Relative to |result|; infinity if there is none."""
    ulps: float
    """The same bound in units in the last place of the result, in the format of the elements."""
    seconds: float | None
    """Measured time on the machine whose costs the library ships; None if unknown."""
    reason: str


class Choice(NamedTuple):
    """The cheapest method that fulfils the requirements, and all others with the reasons against them."""

    method: Method
    bound: float
    ulps: float
    seconds: float | None
    reason: str
    others: list[Candidate]

    def __repr__(self) -> str:
        time = "" if self.seconds is None else f", {self.seconds:.3g} s"
        return (
            f"{self.method.name}: {self.reason}\n"
            f"error of at most {self.bound:.3g} relative to |result|, {self.ulps:.3g} ulps{time}\n"
            f"others: {len(self.others)} methods"
        )


def choose(
    n: int, *, relative_error: float | None = None, ulps: float | None = None, operation: str = "sum",
    input: Any = "fp64", promise: str = "everywhere", condition: float = 1.0, magnitudes: float | None = None,
    probability: float = 1.0, backend: str = "cpu",
) -> Choice:  # fmt: skip
    """Returns the cheapest method whose error bound and promise suffice for n elements.

    Exactly one of `relative_error` (of the result) and `ulps` (units in the last place of the result) is given.

    >>> choose(10**6, relative_error=1e-12).method.name
    'sum/pairwise/plain/fp64@cpu'

    Parameters
    ----------
    input
        type of the elements: "fp32", or a data type of an array library.
    promise
        the least promise about the bits: "none", "run_to_run", "everywhere" or "order_free".
    condition
        upper bound on Σ|x| / |Σx|; 1 if all terms have one sign. The more they cancel, the larger it is.
    magnitudes
        Σ|x|; matters only if a sum may overflow or elements are subnormal. Default: n.
    probability
        1 for rigorous bounds; below 1 as for `bound`.
    backend
        "cpu", "cuda", or "" for both.

    Raises ValueError if no method fulfils the requirements; the message names the one with the smallest bound.
    """
    error, units, size = (
        None if x is None else _number(x, name)
        for x, name in ((relative_error, "relative_error"), (ulps, "ulps"), (magnitudes, "magnitudes"))
    )
    best, others = _core.choose(
        _text(operation, "operation"), _count(n, "n"), format_of(input, "input"), _text(promise, "promise"), error,
        units, _number(probability, "probability"), _text(backend, "backend"), _number(condition, "condition"), size
    )
    return Choice(*best, [Candidate(*c) for c in others])


class Row(NamedTuple):
    """What one method returned."""

    method: str
    value: float
    error: float | None
    bound: float
    promise: str


class Comparison(Sequence[Row]):
    """A table of methods. It prints as text, shows as HTML in notebooks, and converts to pandas."""

    def __init__(self, rows: list[Row], note: str) -> None:
        self._rows = rows
        self.note = note

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def _cells(self) -> list[list[str]]:
        def short(x: float | None) -> str:
            return "" if x is None else f"{x:.2g}"

        return [list(Row._fields)] + [
            [r.method, f"{r.value:.17g}", short(r.error), short(r.bound), r.promise] for r in self._rows
        ]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(len(row[i]) for row in cells) for i in range(len(Row._fields))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells]
        return "\n".join([*lines, self.note])

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        rows = ["<tr>" + "".join(f"<th>{html.escape(c)}</th>" for c in head) + "</tr>"]
        rows += ["<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in body]
        return f"<table>{''.join(rows)}</table><p>{html.escape(self.note)}</p>"

    def to_pandas(self) -> Any:
        """Returns the table as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self._rows, columns=list(Row._fields))


def compare(x: Any, y: Any = None, *, operation: str | None = None, pattern: str | None = None) -> Comparison:
    """Returns the results of every method of an operation for all elements of x, with errors and bounds.

    The error is |value - exact result|, where the exact result is that of the operation's exact method in fp64;
    operations without one have no errors. Methods that promise nothing about their bits are left out.

    >>> compare([1e16, 1.0, 1.0, -1e16], pattern="*/tree/*/fp64@cpu")  # doctest: +NORMALIZE_WHITESPACE
    method                         value  error  bound    promise
    sum/tree/plain/fp64@cpu        0      2      2.2      everywhere
    sum/tree/kahan/fp64@cpu        2      0      6.1e-15  everywhere
    sum/tree/neumaier/fp64@cpu     2      0      1.7e-15  everywhere
    sum/tree/double_word/fp64@cpu  2      0      1.7e-15  everywhere
    error: |value - exact result|; bound: no error exceeds it

    Parameters
    ----------
    operation
        one with a single number as its result; default: "sum", for two inputs "dot".
    pattern
        text that selects methods as in `methods`; default: the methods in the format of x.
    """
    operation = _text(("sum" if y is None else "dot") if operation is None else operation, "operation")
    check_operation("compare", operation)
    a, b = _pair_on_host("compare", x, y)
    format = method_format(a.dtype)
    pattern = pattern or f"*/{format}@cpu"
    chosen = [
        m
        for m in methods(pattern)
        if m.operation == operation and m.backend == "cpu" and m.accepts(format) and m.promise != "none"
    ]
    if not chosen:
        raise ValueError(f"samesum: compare: no method of {operation} for {format} matches {pattern!r}; see methods()")
    if chosen[0].results != 1 or chosen[0].has_result_per_element or chosen[0].returns_index:
        raise ValueError(f"samesum: compare: {operation} does not return one number")
    exact = [m for m in _core.methods() if m.name == f"{operation}/exact/fp64@cpu"]
    truth = float(reduce(operation, a, b, method=exact[0])) if exact else None
    rows = []
    for m in chosen:
        e = estimate(a, m, b)
        error = None if truth is None else 0.0 if e.value == truth else abs(e.value - truth)
        rows.append(Row(m.name, e.value, error, e.bound, m.promise))
    return Comparison(rows, "error: |value - exact result|; bound: no error exceeds it")
