"""Sums and reductions in progress: `fsum`, exact sums and partials."""

from __future__ import annotations

import binascii
import operator
from array import array
from typing import Any, NamedTuple, TypeVar

from .. import _core
from .._arrays.inputs import array_of, second_array
from .._calls.arguments import Call, check_grid, check_threads
from .._calls.inputs import same_type
from .._calls.methods import Method
from .._elements.formats import DTYPES, INTEGERS, dtype_name, format_of
from .._elements.in_floats import in_floats, in_two_floats
from .._frames.kinds import has_arrow
from .._frames.reading import present

fsum = _core.fsum

__test__ = {"fsum": fsum.__doc__}  # doctest finds no docstrings of compiled functions

S = TypeVar("S", bound="_State")


def _is_array(x: Any) -> bool:
    kind = type(x)
    protocols = ("__array__", "__dlpack__", "__cuda_array_interface__", "__array_interface__")
    return issubclass(kind, (memoryview, array)) or has_arrow(kind) or any(hasattr(kind, p) for p in protocols)


class _State:
    """A state in C++ that can be stored, sent and copied."""

    __slots__ = ("_state",)
    __hash__ = None  # type: ignore[assignment]  # states change
    _state: Any

    def to_bytes(self) -> bytes:
        """Returns the state as bytes, in the format of C++'s `serialise`, for `from_bytes` on any machine."""
        return self._state.serialise()

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    @classmethod
    def _holding(cls: type[S], state: Any) -> S:
        new = cls.__new__(cls)
        new._state = state
        return new

    def copy(self: S) -> S:
        """Returns an independent copy."""
        return self._holding(self._state.copy())

    def __copy__(self: S) -> S:
        return self.copy()

    def __deepcopy__(self: S, memo: Any) -> S:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()


class Exact(_State):
    """An exact sum of any number of elements of any formats, which is rounded only when it is read.

    The state is an integer of 2176 bits. The sum does not depend on the order of the elements, nor on how
    they were distributed over arrays, states, processes and machines: promise `order_free`. Threads may add
    to one state at the same time.

    >>> e = Exact([1e16, 1.0, -1e16])
    >>> e += 2**-60
    >>> e.value(), e.value("fp32")
    (1.0, 1.0)
    >>> e.merge(Exact(-1))
    >>> e.value() == 2**-60
    True

    Two states are equal if they hold the same sum: every value, now and after the same further elements, is
    the same. States can be copied and pickled; an altered pickle raises ValueError.

    Parameters
    ----------
    x
        first elements, as for `add`. Without them, the sum is that of no elements, +0.
    """

    __slots__ = ()

    def __init__(self, x: Any = (), /) -> None:
        self._state = _core.Exact()
        self.add(x)

    def add(self, x: Any, /, *, threads: int = 0) -> None:
        """Adds all elements of x exactly. If it raises, the sum is unchanged.

        Parameters
        ----------
        x
            an array of NumPy, PyTorch, CuPy, JAX or any library with DLPack, or a buffer, of floating-point
            numbers, integers or booleans; a number of Python, or an iterable of such numbers; or an `Exact`.
            Elements on a GPU are added there, and the call waits for them. Numbers other than floats and
            integers are rounded to fp64 first, as `float(x)` does.
        threads
            most threads on the host; 0 for one per processor. They never change the sum.
        """
        count = check_threads(threads)
        if isinstance(x, (float, int)):
            self._state.add_number(x)
        elif isinstance(x, Exact):
            self.merge(x)
        elif _is_array(x):
            self._add_array(x, count)
        elif hasattr(x, "__float__"):
            self._state.add_number(x)
        elif hasattr(x, "__iter__") or hasattr(x, "__getitem__"):
            self._state.add_numbers(x)
        else:
            kinds = "an array, a real number, an iterable of numbers, or an Exact"
            raise TypeError(f"samesum: x is a {type(x).__name__}; use {kinds}")

    def _add_array(self, x: Any, threads: int) -> None:
        library, a = array_of(present(x), wide=True)
        if getattr(a.dtype, "hasobject", False):  # integers of Python
            return self._state.add_numbers(a.ravel().tolist())
        if a.ndim > 1:  # the order does not matter: axes may be permuted until the elements are contiguous
            strides = library.strides(a)
            a = library.transposed(a, sorted(range(a.ndim), key=lambda axis: -strides[axis]))
        sum = _core.Exact()
        for format, part in _exact_parts(library, library.contiguous(a)):
            sum.add_elements(Call(x=part, threads=threads, library=library, format=format))
        self._state.merge(sum)

    def __iadd__(self, x: Any) -> Exact:
        self.add(x)
        return self

    def merge(self, other: Exact, /) -> None:
        """Adds the sum of another state."""
        if not isinstance(other, Exact):
            raise TypeError(f"samesum: other is a {type(other).__name__}; use an Exact, or add for elements")
        self._state.merge(other._state)

    def value(self, dtype: Any = "fp64") -> float:
        """Returns the sum, correctly rounded to a format: the error is at most half a unit in the last place.

        Ties are rounded to even. The result is a Python float, which holds numbers of every format exactly.
        It is NaN if a NaN or both infinities were added, infinite if the sum is beyond the format, and -0 if
        all elements were -0.

        >>> e = Exact([0.1, 0.2, 0.3])
        >>> e.value()
        0.6
        >>> e.value("bf16")
        0.6015625

        Parameters
        ----------
        dtype
            "fp16", "bf16", "fp32", "fp64", or such a type of any array library, as `numpy.float32`.
        """
        format = format_of(dtype, "dtype")
        if format == "int":
            raise TypeError(f"samesum: dtype is {dtype_name(dtype)}; use one of {', '.join(DTYPES)}")
        return self._state.value(format)

    @property
    def is_empty(self) -> bool:
        """Whether no element has been added."""
        return self._state.is_empty

    @classmethod
    def from_bytes(cls, data: Any, /) -> Exact:
        """Returns the state with the bytes of `to_bytes`, or of C++'s `Exact::serialise`.

        Raises ValueError if they are not those of a state. The bytes have no checksum, so some alterations
        give another sum; pickles have one.

        >>> Exact.from_bytes(Exact(0.5).to_bytes()) == Exact(0.5)
        True
        """
        return cls._holding(_core.Exact.deserialise(memoryview(data).tobytes()))

    @classmethod
    def _from_pickle(cls, data: bytes, checksum: int) -> Exact:
        if binascii.crc32(data) != checksum:
            raise ValueError("samesum: the pickle of an Exact is damaged: its checksum does not match")
        return cls.from_bytes(data)

    def __reduce__(self) -> Any:
        data = self.to_bytes()
        return type(self)._from_pickle, (data, binascii.crc32(data))

    def __repr__(self) -> str:
        return f"<samesum.Exact, value {self.value()!r}>"


def _exact_parts(library: Any, a: Any) -> list[tuple[str, Any]]:
    """Returns floating-point arrays that have the exact sum of a together, and their formats."""
    name = dtype_name(a.dtype)
    if name in ("int64", "uint64"):
        return [("fp64", part) for part in in_two_floats(library, a)]
    if name in INTEGERS:
        return [("fp64", library.astype(a, "float64"))]
    return [(format_of(name), a)]


class Moments(NamedTuple):
    """Mean and variance."""

    mean: float
    variance: float


class Partial(_State):
    """A reduction of consecutive elements of a vector, to be continued, merged and finished.

    A partial takes in elements in portions of any size, and merges with the partial that begins where it
    ends. Once it covers the vector from element 0 on, `finish` returns the bits that the method returns for
    the whole vector, however the vector was cut, and wherever the parts were computed. The number of states
    that it holds grows as the logarithm of its length; only in the order serial, a partial that does not
    begin at element 0 holds all its elements.

    >>> left, right = Partial("tree/kahan/fp32"), Partial("tree/kahan/fp32", begin=3)
    >>> right.add([0.4, 0.5])
    >>> left.add([0.1, 0.2, 0.3])
    >>> left.merge(right)
    >>> left
    <samesum.Partial of sum/tree/kahan/fp32@cpu, elements 0 to 5>
    >>> left.finish()
    1.5

    Partials can be copied and pickled; an altered pickle raises ValueError. Partials of the same method,
    range and elements are equal. Threads may use one partial at the same time: their calls run one after
    another.

    Parameters
    ----------
    method
        name of a method with its format, such as "tree/kahan/fp32" or "dot/exact/fp64", or a `Method`. Every
        deterministic method with one result per vector has partials, except hopper: not softmax, nor the orders atomic.
    begin
        index of the first element in the vector.
    grid
        for the accumulator fixed_point, which needs it: terms are rounded to multiples of 2^grid. Partials that merge
        have one grid.
    """

    __slots__ = ()

    def __init__(self, method: str | Method, begin: int = 0, *, grid: int | None = None) -> None:
        if isinstance(method, str):
            method = _core.find(method, "sum", "", "cpu")
        if not isinstance(method, Method):
            raise TypeError(f"samesum: method is {method!r}; use a name like 'tree/kahan/fp32', or a Method")
        begin = operator.index(begin)
        if not 0 <= begin < 2**63:
            raise ValueError(f"samesum: begin is {begin}; use the index of an element, from 0 to 2**63 - 1")
        self._state = _core.Partial(method, begin, check_grid(grid))

    def add(self, x: Any, y: Any = None, /, *, threads: int = 0) -> None:
        """Takes in the next elements. If it raises, the partial is unchanged.

        Parameters
        ----------
        x
            an array as for `samesum.sum`, or a list; its elements are taken in row-major order. Integers are
            converted to fp64; those that it does not hold are rounded by methods that round, and refused by
            exact ones, in place of which `Exact` takes them. Elements on a GPU are reduced there, and the call waits
            for them.
        y
            second input of dot, of the shape of x.
        threads
            most threads on the host; 0 for one per processor. They never change the bits.
        """
        count = check_threads(threads)
        library, a = array_of(x)
        b = None if y is None else second_array(library, a, y)
        if b is not None:
            if tuple(b.shape) != tuple(a.shape):
                shapes = f"y has shape {tuple(b.shape)} and x {tuple(a.shape)}"
                raise ValueError(f"samesum: {shapes}; pass arrays of one shape")
            a, b = same_type(library, a, b)
        format = format_of(a.dtype)
        if format == "int":
            format, a = "fp64", in_floats(library, a, method=self.method)
            b = None if b is None else in_floats(library, b, "y", self.method)
        b = None if b is None else library.contiguous(b)
        self._state.add(Call(x=library.contiguous(a), y=b, threads=count, library=library, format=format))

    def merge(self, next: Partial, /) -> None:
        """Merges with the partial that begins where this one ends. If it raises, this partial is unchanged.

        Raises ValueError if the methods differ in more than the backend, or if `next` begins elsewhere.
        """
        if not isinstance(next, Partial):
            raise TypeError(f"samesum: next is a {type(next).__name__}; use a Partial, or add for elements")
        self._state.merge(next._state)

    def finish(self, *, correction: float = 0) -> Any:
        """Returns the result for the vector; the partial can go on taking in elements.

        It is a float, which holds numbers of every format exactly; an int for argmin and argmax; and for
        moments a named tuple of mean and variance.

        >>> p = Partial("moments/exact/fp64")
        >>> p.add([1.0, 2.0, 3.0, 4.0])
        >>> p.finish(correction=1)
        Moments(mean=2.5, variance=1.6666666666666667)

        Raises ValueError if the partial does not begin at element 0.

        Parameters
        ----------
        correction
            for moments, as in `samesum.var`.
        """
        result = self._state.finish(float(correction))
        return Moments(*result) if isinstance(result, tuple) else result

    @property
    def method(self) -> Method:
        """The method."""
        return self._state.method

    @property
    def begin(self) -> int:
        """Index of the first element in the vector."""
        return self._state.begin

    @property
    def end(self) -> int:
        """Index after the last element: where the next portion or partial begins."""
        return self._state.end

    def __len__(self) -> int:
        return self.end - self.begin

    def __bool__(self) -> bool:
        return True  # a partial of no elements is a partial

    @classmethod
    def from_bytes(cls, data: Any, /, *, backend: str = "cpu") -> Partial:
        """Returns the partial with the bytes of `to_bytes`, or of C++'s `Partial::serialise`.

        They may come from any backend; the partial continues on `backend`. Raises ValueError if they are
        damaged.

        >>> p = Partial("max/fp64")
        >>> p.add([1.0, 3.0])
        >>> Partial.from_bytes(p.to_bytes()).finish()
        3.0
        """
        return cls._holding(_core.Partial.deserialise(memoryview(data).tobytes(), backend))

    @classmethod
    def _from_pickle(cls, data: bytes, backend: str) -> Partial:
        return cls.from_bytes(data, backend="cpu" if backend in _core.absent() else backend)

    def __reduce__(self) -> Any:
        return type(self)._from_pickle, (self.to_bytes(), self.method.backend)

    def __repr__(self) -> str:
        return f"<samesum.Partial of {self.method.name}, elements {self.begin} to {self.end}>"
