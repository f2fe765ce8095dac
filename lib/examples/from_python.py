# The C interface from Python, by ctypes alone: a sum with its bound, rows, a state that is split and merged, and an
# error. (The Python package `samesum` is the comfortable way; this is how any language can call the library.)
import array
import ctypes as c

library = c.CDLL("libsamesum.so.0")
NONE, FP64, STRIDED = 0, 4, 1


# The structures of samesum.h, as far as they are used. Their sizes are compared with those of the library below.
class Values(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t), ("format", c.c_int32)]


class Keys(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t), ("format", c.c_int32)]


class Layout(c.Structure):
    _fields_ = [("offsets", c.c_void_p), ("outer", c.c_size_t), ("n", c.c_size_t), ("inner", c.c_size_t),
                ("outer_stride", c.c_size_t), ("stride", c.c_size_t), ("kind", c.c_int32)]


class Results(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t), ("row_stride", c.c_size_t), ("format", c.c_int32)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("ddof", c.c_double), ("threads", c.c_int32), ("exclusive", c.c_int32),
                ("combine", c.c_int32), ("has_grid", c.c_int32), ("grid", c.c_int32), ("skip_nan", c.c_int32),
                ("where", c.c_void_p), ("window", c.c_uint64), ("min_periods", c.c_uint64),
                ("has_min_periods", c.c_int32), ("centred", c.c_int32)]


class Call(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("method", c.c_void_p), ("x", Values), ("y", Values), ("keys", Keys),
                ("layout", Layout), ("out", Results), ("options", c.POINTER(Options))]


def call(name, *arguments):
    """Calls a function that takes a buffer for a message, and raises its message if it fails."""
    message = c.create_string_buffer(200)
    if status := getattr(library, name)(*arguments, message, c.c_size_t(len(message))):
        raise ValueError(f"{library.samesum_status_name(status).decode()}: {message.value.decode()}")


def find(name):
    method = c.c_void_p()
    call("samesum_find", name.encode(), FP64, c.byref(method))
    return method


def values(x):
    return Values(x.buffer_info()[0], len(x), FP64)


library.samesum_status_name.restype = library.samesum_method_name.restype = c.c_char_p
library.samesum_state_bytes.restype = library.samesum_sizeof.restype = c.c_size_t
assert library.samesum_abi_version() == 0
for structure in Values, Keys, Layout, Results, Options, Call:
    size = library.samesum_sizeof(f"samesum_{structure.__name__.lower()}".encode())
    assert c.sizeof(structure) == size, (
        f"{structure.__name__} has {size} bytes in the library, not {c.sizeof(structure)}"
    )

x = array.array("d", [1e16, 1, 1, -1e16, 0.1, 0.2])
kahan, value, bound = find("tree/kahan"), c.c_double(), c.c_double()
call("samesum_estimate", kahan, c.byref(values(x)), None, c.byref(value), c.byref(bound), None)
print(f"{library.samesum_method_name(kahan).decode()} {value.value}, off by at most {bound.value:.1g}")

sums = array.array("d", [0, 0])
threads = Options(c.sizeof(Options), threads=1)
rows = Call(c.sizeof(Call), find("exact"), values(x), layout=Layout(None, 2, 3, 1, 3, 1, STRIDED),
            out=Results(sums.buffer_info()[0], 2, 0, FP64), options=c.pointer(threads))
call("samesum_run", c.byref(rows))
print("rows", *sums)

kind, states = (c.c_uint64 * 2)(), []
call("samesum_state_kind_find", b"exact/fp64", NONE, None, kind)
for part in x[:2], x[2:]:
    states.append((c.c_uint64 * (library.samesum_state_bytes(kind) // 8))())  # aligned to 8 bytes
    call("samesum_state_init", kind, states[-1], c.c_size_t(c.sizeof(states[-1])), None)
    call("samesum_state_add", states[-1], c.byref(values(part)))
call("samesum_state_merge", states[1], states[0])
call("samesum_state_finish", states[1], FP64, c.byref(value))
print("merged", value.value)

try:
    find("tree/khan")
except ValueError as error:
    print(error)
