"""The installed package: what an import loads, processes, threads and signals, and what a wheel carries."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import samesum

MB = 1e6


def run(code: str, *, program: str = sys.executable, **environment: str) -> str:
    """Runs a Python program in a new process, and returns what it prints."""
    command = [program, "-X", "faulthandler", "-c", code]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- import ---------------------------------------------------------------------------------------------------


def test_an_import_loads_no_array_library():
    milliseconds, *loaded = run("""
import sys, time
start = time.perf_counter()
import samesum
print(1e3 * (time.perf_counter() - start))
print(*{"numpy", "torch", "jax", "cupy", "ml_dtypes", "dask", "mpi4py"} & set(sys.modules))
""").split()
    print(f"import samesum: {float(milliseconds):.0f} ms")  # not a test: other processes would decide
    assert not loaded


def test_fsum_and_exact_sums_need_no_array_library():
    assert run("""
import sys
sys.modules["numpy"] = None  # an import raises ImportError
import samesum
print(samesum.fsum([1e16, 1, 1, -1e16]), samesum.Exact([0.5, 2**-60]).value())
""").split() == ["2.0", "0.5"]


def test_sums_work_without_a_gpu():
    pytest.importorskip("numpy")
    assert run("""
import samesum
print(samesum.sum([1e16, 1, 1, -1e16]), [m.name for m in samesum.methods("*@cuda")])
""", CUDA_VISIBLE_DEVICES="-1").strip() == "2.0 []"


# --- processes, threads and interpreters ----------------------------------------------------------------------

SUMS = """
import numpy, os, samesum, threading
x = numpy.random.default_rng(1).standard_normal(1 << 21)
def sums():
    return [samesum.sum(x, method=m, threads=4).hex() for m in ("exact", "tree/plain", "tree/kahan")]
expected = sums()
"""


def test_a_process_made_by_fork_sums_with_threads():
    pytest.importorskip("numpy")
    assert run(SUMS + """
import signal, warnings
warnings.simplefilter("ignore")
for i in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is killed
        os._exit(sums() != expected)
    print(os.waitpid(child, 0)[1])
""").split() == ["0"] * 4


def test_threads_that_sum_at_the_same_time_get_the_same_bits():
    pytest.importorskip("numpy")
    assert run(SUMS + """
found = []
def work():
    for i in range(5):
        found.append(sums())
threads = [threading.Thread(target=work) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join(60)
print(len(found), all(f == expected for f in found))
""").split() == ["40", "True"]


def test_a_subinterpreter_sums_or_raises_import_error():
    out = run("""
import samesum
expected = samesum.fsum([1e16, 1, 1, -1e16])
code = '''
try:
    import samesum
except ImportError:
    pass
else:
    assert samesum.fsum([1e16, 1, 1, -1e16]) == 2
'''
try:
    import _interpreters as interpreters  # Python 3.13 and later
except ImportError:
    import _xxsubinterpreters as interpreters
for i in range(2):
    one = interpreters.create()
    failure = interpreters.run_string(one, code)
    assert failure is None, failure
    interpreters.destroy(one)
print(samesum.fsum([1e16, 1, 1, -1e16]))
""")
    assert out.strip() == "2.0"


# --- signals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    "samesum.sum(x, method='serial/kahan/fp16', threads=1)",
    "samesum.sum(x.reshape(64, -1), axis=1, method='serial/kahan/fp16', threads=1, where=[True])",
])  # fmt: skip
def test_control_c_interrupts_a_long_sum(call):
    pytest.importorskip("numpy")
    whole, interrupted = map(float, run(f"""
import numpy, os, samesum, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background processes ignore the signal
x = numpy.ones(1 << 26, numpy.float16)
start = time.process_time()
{call}
print(time.process_time() - start)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.process_time()
try:
    {call}
    time.sleep(10)
except KeyboardInterrupt:
    print(time.process_time() - start)
""").split())
    # In processor time, so that a busy machine does not matter.
    assert interrupted < 0.7 * whole


# --- the wheel ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel() -> pathlib.Path:
    if "SAMESUM_WHEEL" not in os.environ:
        pytest.skip("SAMESUM_WHEEL does not name a wheel; tests/run builds one")
    return pathlib.Path(os.environ["SAMESUM_WHEEL"])


def environment_of(folder: pathlib.Path) -> str:
    """Makes a virtual environment without packages, and returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin/python")


def pip(python: str, *arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def files_below(folder: pathlib.Path) -> set[pathlib.Path]:
    return set(folder.rglob("*"))


def test_uninstalling_leaves_nothing(wheel, tmp_path):
    python = environment_of(tmp_path / "environment")
    before = files_below(tmp_path)
    pip(python, "install", "--no-deps", "--no-index", wheel)
    assert run("import samesum; print(samesum.fsum([0.1] * 10))", program=python).strip() == "1.0"
    pip(python, "uninstall", "--yes", "samesum")
    assert files_below(tmp_path) == before


def test_the_installed_command_sums_and_reports(wheel, tmp_path):
    python = environment_of(tmp_path / "environment")
    pip(python, "install", "--no-deps", "--no-index", wheel)
    (tmp_path / "x.txt").write_text("1e16 1 1 -1e16\n")

    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [tmp_path / "environment/bin/samesum", *arguments]
        return subprocess.run(command, text=True, capture_output=True, cwd=tmp_path, env={"PATH": ""})

    summed = typed("sum", "x.txt")
    if "this installation has no tool" in summed.stderr:
        pytest.skip("packages of the tool were missing when the wheel was built")
    assert (summed.returncode, summed.stdout.split()[:1]) == (0, ["2"])
    results = typed("compare", "x.txt", "--methods", "*/tree/*fp64@cpu", "--repeat", "1", "--json").stdout
    (tmp_path / "results.jsonl").write_text(results)
    # The wheel has the scripts of the report; the packages that they need are not installed here.
    report = typed("report", ".")
    assert report.returncode == 2
    assert report.stderr.endswith(f"install them with {python}3 -m pip install jsonschema plotly\n"), report.stderr
    [share] = tmp_path.glob("environment/lib/python*/site-packages/samesum/share/samesum")
    assert (share / "notebooks/report.py").exists()


def test_a_command_without_its_tool_names_the_remedy(tmp_path):
    copy = tmp_path / "_command.py"
    copy.write_text(pathlib.Path(samesum.__path__[0], "_command.py").read_text())
    done = subprocess.run([sys.executable, "-c", "import _command; _command.main()"], cwd=tmp_path, text=True,
                          capture_output=True)
    assert done.returncode == 1 and "Install libboost-dev" in done.stderr


def test_the_wheel_carries_types_and_no_library_of_nvidia(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    assert {"samesum/__init__.py", "samesum/py.typed"} <= set(names)
    names = [n for n in names if not n.startswith("samesum/include/")]  # headers for kernels of the caller
    assert [n for n in names if re.search(r"cuda|nvidia|cudart|\.a$|\.hpp$|__pycache__", n.lower())] == []
    [module] = tmp_path.glob("samesum/_core*.so")
    # A wheel for other machines is built without MPI, and without OpenMP, TBB and BLAS, with which the tool
    # compares. libz is one of the libraries that PEP 599 lets wheels expect.
    usual = {"libstdc", "libm", "libmvec", "libgcc_s", "libc", "libdl", "librt", "libpthread", "ld", "ld-linux-x86-64"}
    for program, extra in (
        (module, set()),
        *((tool, {"libz", "libgomp", "libtbb", "libopenblas", "libmpi"}) for tool in tmp_path.glob("samesum/bin/*")),
    ):
        needed = subprocess.run(["readelf", "--dynamic", program], text=True, capture_output=True, check=True).stdout
        libraries = set(re.findall(r"NEEDED.*\[([\w-]+)", needed))
        assert libraries and libraries <= usual | extra, program


def test_a_module_exports_its_entry_point_only(wheel, tmp_path):
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    modules = list(tmp_path.glob("samesum/*.so"))
    assert modules
    for module in modules:
        symbols = subprocess.run(
            ["nm", "--dynamic", "--defined-only", module], text=True, capture_output=True, check=True
        )
        assert symbols.stdout.split()[2:] == [f"PyInit_{module.name.partition('.')[0]}"]
        assert "no symbols" in subprocess.run(["nm", module], text=True, capture_output=True).stderr


def test_the_wheel_is_small(wheel):
    without_cuda = "built without CUDA" in samesum._core.absent().get("cuda", "")
    assert wheel.stat().st_size < (13 * MB if without_cuda else 60 * MB)
