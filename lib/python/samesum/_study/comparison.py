"""All methods of an operation, compared on given data."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Sequence

from .. import _core
from .._calls.arguments import Call
from .._calls.methods import check_operation
from .._calls.reduction import reduce
from .._elements.formats import method_format
from .arguments import checked_text, pair_on_host
from .bounds import bound, estimate
from .methods import methods


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
        import html  # takes a twentieth of the time of `import samesum`

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
    operation = checked_text(("sum" if y is None else "dot") if operation is None else operation, "operation")
    check_operation("compare", operation)
    a, b = pair_on_host("compare", x, y)
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
    truth = float(reduce(Call(operation, a, method=exact[0], y=b))) if exact else None
    rows = []
    for m in chosen:
        e = estimate(a, m, b)
        error = None if truth is None else 0.0 if e.value == truth else abs(e.value - truth)
        rows.append(Row(m.name, e.value, error, e.bound, m.promise))
    return Comparison(rows, "error: |value - exact result|; bound: no error exceeds it")
