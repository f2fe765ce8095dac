"""The words of cells in the memory of an array library."""

from __future__ import annotations

import contextlib
import operator
import sys
from typing import Any, Iterator

from .._arrays.converted import Converted
from .._arrays.inputs import array_of
from .._elements.library import View, library, library_of


def is_warp(x: Any) -> bool:
    """Whether x is an array of Warp."""
    warp = sys.modules.get("warp")
    return warp is not None and isinstance(x, warp.array)


def zero_words(shape: tuple[int, ...], like: Any) -> Any:
    """Returns an array of int64, all 0, of the library and on the device of `like`."""
    if is_warp(like):
        warp = sys.modules["warp"]
        return warp.zeros(shape, dtype=warp.int64, device=like.device)
    if like is None or isinstance(like, (list, tuple)):
        like = library("numpy").np.empty(0)
    owner = library_of(like)
    if isinstance(owner, Converted):
        raise TypeError(
            f"samesum: like is a {type(like).__name__}; cells change in place, so pass an array of NumPy, PyTorch, "
            "CuPy or Warp"
        )
    words = owner.empty(shape, "int64", owner.array(like, "like"))
    clear(words)
    return words


def clear(words: Any) -> None:
    """Sets all words to 0."""
    if is_warp(words):
        words.zero_()
    else:
        words[...] = 0


def filled(array: Any, given: Any) -> Any:
    """Returns an array of any library and device after copying the elements of one of NumPy to it."""
    if is_warp(array):
        array.assign(given)
    elif library_of(array).name == "torch":
        array.copy_(library("torch").converted(given))
    else:
        array[...] = library_of(array).namespace.asarray(given)
    return array


def as_warp(result: Any, words: Any) -> Any:
    """Returns an array of NumPy, or one of another library on the device of the words, as one of Warp."""
    warp = sys.modules["warp"]
    is_numpy = library_of(result).name == "numpy"
    return warp.array(result, device=words.device) if is_numpy else warp.from_dlpack(result)


def on_host(words: Any) -> Any:
    """Returns the words as an array of NumPy; a copy if they are in the memory of a GPU."""
    if is_warp(words):
        return words.numpy()
    if library_of(words).name == "torch":
        return words.detach().cpu().numpy()
    return words.get() if library_of(words).name == "cupy" else words


def view(words: Any) -> View:
    """Returns where the words are."""
    reader, array = array_of(words, "words")
    return reader.view(array)  # type: ignore[no-any-return]


@contextlib.contextmanager
def in_order(*arrays: tuple[Any, Any, Any]) -> Iterator[None]:
    """Waits for the streams of arrays before and after a call, unless the call is in the one stream of all of them.

    Each array is given as the caller has it, with the library that reads it and the array that this has read. The
    owner of an array that is read by DLPack, such as Warp, does not know of the reading stream.
    """
    streams = {reader.view(a).stream for _, reader, a in arrays}
    waits = len(streams) > 1 or any(isinstance(library_of(x), Converted) for x, *_ in arrays)
    for _, reader, a in arrays if waits else ():
        reader.wait(a)
    yield
    for _, reader, a in arrays if waits else ():
        reader.wait(a)


def shape_of(shape: Any) -> tuple[int, ...]:
    """Returns the shape of cells. Raises TypeError or ValueError if it is none."""
    lengths = (shape,) if hasattr(shape, "__index__") else shape
    try:
        result = tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise TypeError(f"samesum: shape is {shape!r}; pass a whole number, or a tuple of them") from None
    if not result or min(result) < 0:
        raise ValueError(f"samesum: shape is {shape!r}; pass at least one length, none of them negative")
    return result
