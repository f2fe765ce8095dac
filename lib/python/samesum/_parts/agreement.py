"""What connected ranks agree on before they exchange data, so that all of them raise if one does.

An engine that connects ranks is given as a `Ranks`: it carries arrays and objects, and computes nothing. If a rank
raised while others wait for its data, they would wait for ever. So before each exchange of data, the ranks do all that
may fail on one of them, the allocation of what they will receive included, in a step of `on_all_ranks`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import metadata
from typing import Any, Callable, Iterable, Protocol


class Ranks(Protocol):
    """Ranks that call the same functions in the same order."""

    rank: int
    size: int

    def all_gather(self, value: Any) -> list[Any]:
        """Returns the objects of all ranks, in rank order. They are small, and consist of built-in types."""

    def all_to_all(self, rows: Any, received: Any) -> None:
        """Sends row r of an array to rank r, and writes the rows that it gets to `received`, in rank order."""

    def all_gather_rows(self, row: Any, rows: Any) -> None:
        """Writes the rows of all ranks to `rows`, in rank order."""


_ERRORS: dict[str, type[Exception]] = {e.__name__: e for e in (TypeError, ValueError, OverflowError, MemoryError)}


def on_all_ranks(ranks: Ranks, function: str, step: Callable[[], Any]) -> list[Any]:
    """Returns what `step` returns on each rank: small objects of built-in types, which every rank can read.

    If it raises on one rank, every rank raises.
    """
    value, failure = None, None
    try:
        value = step()
    except Exception as error:  # the other ranks wait for this one: they must learn of any error
        failure = error
    found = ranks.all_gather((value, failure and (type(failure).__name__, str(failure))))
    for rank, (_, failed) in enumerate(found):
        if failed:
            kind, message = failed
            message = f"samesum: {function} failed on rank {rank}: {message.removeprefix('samesum: ')}"
            raise _ERRORS.get(kind, RuntimeError)(message) from failure
    return [value for value, _ in found]


@lru_cache(maxsize=None)
def _version() -> str:
    return metadata.version("samesum")


def agreed(ranks: Ranks, function: str, describe: Callable[[], tuple[dict[str, Any], Any]]) -> list[Any]:
    """Checks that all ranks describe their call in the same way.

    `describe` returns this rank's description, and a value that may differ between ranks. Returns these values, in
    rank order. If the text of a description differs, or `describe` raises on one rank, every rank raises.
    """

    def step() -> Any:
        description, value = describe()
        names = {"version of samesum": _version(), "function": function} | description
        return {argument: str(value) for argument, value in names.items()}, value

    found = on_all_ranks(ranks, function, step)
    first = found[0][0]
    for argument, value in first.items():
        for rank, (other, _) in enumerate(found):
            if other.get(argument) != value:
                raise ValueError(
                    f"samesum: {function}: the {argument} is {value} on rank 0 and {other.get(argument)} on rank "
                    f"{rank}; all ranks must have the same"
                )
    return [value for _, value in found]


_PIECE = 1 << 20  # bytes of each rank that an engine carries at once


def gathered(ranks: Ranks, function: str, step: Callable[[], bytes]) -> list[Any]:
    """Returns the bytes that `step` returns on each rank.

    Long ones travel in pieces, once all ranks have memory for them. If `step` raises on one rank, every rank raises.
    """
    mine = b""

    def begin() -> tuple[int, bytes]:
        nonlocal mine
        mine = step()
        return len(mine), mine if len(mine) <= _PIECE else b""

    found = on_all_ranks(ranks, function, begin)
    longest = max(size for size, _ in found)
    if longest <= _PIECE:
        return [data for _, data in found]
    whole: list[bytearray] = []
    on_all_ranks(ranks, function, lambda: whole.extend(bytearray(size) for size, _ in found))
    for at in range(0, longest, _PIECE):
        for data, piece in zip(whole, ranks.all_gather(mine[at : at + _PIECE])):
            data[at : at + len(piece)] = piece
    return whole


def are_long(gathered: Iterable[Any]) -> bool:
    """Whether bytes of the ranks are so long that a rank may lack memory for what is made of them."""
    return max(map(len, gathered)) > _PIECE
