"""The columns that methods of groups take: arrays, columns of frames, or their names, with a row for each key."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from .._arrays.selection import is_masked
from .._elements.library import library_of
from .._frames.reading import named_columns
from .columns import Frame, Values, family_of, is_frame, name_of, not_skipped, values_of


class Pairs(NamedTuple):
    """The numbers of two columns, and of weights if there are any, and what is skipped of each."""

    values: list[Values]
    skips: list[tuple[bool, bool]]


class GroupColumns:
    """Reads columns of values for groups of the rows of a frame, or of arrays without names.

    `kept` tells which rows belong to a group; None if all do.
    """

    def __init__(self, frame: Frame | None, keys: list[tuple[Any, Any]], kept: Any) -> None:
        self.frame, self.kept = frame, kept
        self._others = [] if frame is None else frame.without(keys)
        self._rows = len(keys[0][1])

    def read(self, argument: str, column: Any) -> Values:
        """Returns the numbers of a column in the rows that belong to a group."""
        read = values_of("groupby", argument, column)
        a = read.array
        if a.ndim == 0 or a.shape[0] != self._rows:
            raise self._length_error(argument, a.shape[0] if a.ndim else "no")
        if self.kept is None:
            return read
        return Values(a[self.kept], None if read.valid is None else read.valid[self.kept])

    def not_skipped(self, argument: str, column: Any, skipna: bool | None) -> Any:
        """Returns which values in rows of groups are not skipped."""
        takes = not_skipped(column, *skipped(column, skipna))
        if takes.ndim == 0 or takes.shape[0] != self._rows:
            raise self._length_error(argument, takes.shape[0] if takes.ndim else "no")
        return takes if self.kept is None else takes[self.kept]

    def _length_error(self, argument: str, n: Any) -> ValueError:
        return ValueError(
            f"samesum: groupby: {argument} has {n} rows, and there are {self._rows} keys; pass a row for each key"
        )

    def read_pair(self, x: Any, y: Any, weights: Any, skipna: bool | None) -> tuple[Any, Pairs]:
        """Returns x as a column, and the numbers of x and y, and those of weights if there are any."""
        columns = {name: self.column(name, column) for name, column in (("x", x), ("y", y))}
        if weights is not None:
            columns["weights"] = self.column("weights", weights)
        read = [self.read(name, column) for name, column in columns.items()]
        if read[0].array.shape != read[1].array.shape:
            raise ValueError(
                f"samesum: groupby: x has shape {read[0].array.shape} and y {read[1].array.shape}; pass arrays of "
                "one shape"
            )
        read[2:] = [self.spread(w, read[0]) for w in read[2:]]
        return columns["x"], Pairs(read, [skipped(column, skipna) for column in columns.values()])

    def spread(self, weights: Values, x: Values) -> Values:
        """Returns weights, of which there is one for each row or for each value, for each value."""
        w, shape = weights.array, x.array.shape
        if w.shape not in (shape, shape[:1]):
            given, values = ((self._rows, *a.shape[1:]) for a in (w, x.array))
            raise ValueError(
                f"samesum: groupby: weights has shape {given} and the values {values}; pass a weight for each row, or "
                "for each value"
            )
        whole = (slice(None), *(None,) * (len(shape) - w.ndim))
        return Values(*(a if a is None else library_of([]).np.broadcast_to(a[whole], shape) for a in weights))

    def is_name(self, x: Any) -> bool:
        """Whether x is the name of a column of the frame, or a text that ought to be one."""
        if self.frame is None or family_of(x) or hasattr(x, "ndim"):
            return False
        return isinstance(x, str) or x in self.frame

    def _named_column(self, argument: str, values: Any) -> Any:
        return self.frame.one(argument, values) if self.frame and self.is_name(values) else values

    def column(self, argument: str, values: Any) -> Any:
        """Returns a column, which may be given by its name."""
        if is_frame(values) or self._are_names(argument, values):
            raise ValueError(f"samesum: groupby: {argument} is a frame; pass one column")
        return self._named_column(argument, values)

    def _are_names(self, argument: str, values: Any) -> bool:
        """Whether values are a list of names of columns. Raises ValueError if these are numbers, one for each row."""
        if self.frame is None or not isinstance(values, list) or not all(map(self.is_name, values)):
            return False
        if values and len(values) == self._rows and all(isinstance(v, (int, float)) for v in values):
            raise ValueError(
                f"samesum: groupby: {argument} is a list of a number for each row, which all are names of columns too; "
                "pass an array of values, or a frame of these columns"
            )
        return True

    def named(
        self, argument: str, values: Any, left_out: Sequence[Any] = ()
    ) -> tuple[Any, list[tuple[Any, Any]], Any]:
        """Returns the library of frames to which values belong, their columns, and whether these are a frame.

        Without values, they are the columns of the frame that are no keys, but for the names that are left out.
        """
        frame = self.frame
        if values is None and frame is None:
            raise TypeError(f"samesum: groupby: {argument} is None; pass the values, a number for each key")
        if frame is not None and values is None:
            return frame.family, [(n, c) for n, c in self._others if n not in left_out], True
        if frame is not None and self._are_names(argument, values):
            return frame.family, [column for name in values for column in frame.all(argument, name)], True
        column = self._named_column(argument, values)
        if is_frame(column):
            return family_of(column), named_columns(column), True
        family, name = family_of(column), values if self.is_name(values) else name_of(column)
        return "" if family == "pyarrow" and frame is None else family, [(name, column)], False


def skipped(column: Any, skipna: bool | None) -> tuple[bool, bool]:
    """Whether null elements of a column are skipped, and whether NaN are."""
    if skipna is not None:
        return bool(skipna), bool(skipna)
    return bool(family_of(column)) or is_masked(column), family_of(column) == "pandas"
