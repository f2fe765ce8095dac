"""The tool that the package carries reads Parquet and Arrow files with the pyarrow or duckdb beside it."""

import csv
import fractions
import os
import pathlib
import re
import subprocess
import sys

import pytest

import samesum

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

TOOL = pathlib.Path(samesum.__path__[0]) / "bin/samesum"
if not TOOL.exists():
    pytest.skip("this installation has no tool", allow_module_level=True)

BIG = 2**53
TABLE = pa.table({
    "number": pa.array([1.5, None, float("nan"), 1e16, -1e16]),
    "half": pa.array([0.1, 1, None, 2, 3], pa.float16()),
    "single": pa.array([0.1, None, 0.2, 0.3, 1], pa.float32()),
    "id": [BIG + 1, None, -BIG, 7, 9],
    "unsigned": pa.array([2**64 - 1, None, 1, 2, 3], pa.uint64()),
    "flag": [True, None, False, True, True],
    "price": pa.array([1, 2, None, 3, 4], pa.decimal128(20, 2)),
    "city": ["Oslo", None, 'a "b", c', "Oslo", ""],
    "coded": pa.array(["x", "y", None, "x", "y"]).dictionary_encode(),
    "list": [[1], [2], None, [], [3]],
})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    parquet.write_table(TABLE, path / "t.parquet", row_group_size=2)
    feather.write_feather(TABLE, path / "t.feather", chunksize=2)
    with pa.ipc.new_stream(str(path / "t.arrow"), TABLE.schema) as stream:
        stream.write_table(TABLE, max_chunksize=3)
    parquet.write_table(TABLE.select(["single"]), path / "one.parquet")
    return path


@pytest.fixture
def run(folder):
    environment = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(*arguments):
        done = subprocess.run([TOOL, *arguments], cwd=folder, text=True, capture_output=True, env=environment)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow"])
def test_a_null_is_missing_and_not_nan(run, name):
    code, out, err = run("sum", name, "--column", "number")
    assert (code, out) == (2, "")
    assert err.startswith(f"samesum: {name}: record 2: the number is null; pass --skip-missing"), err


SMALLEST = repr(float(TABLE["single"][0].as_py()))  # 0.1 of fp32


@pytest.mark.parametrize("arguments, expected", [
    (["t.feather", "--column", "id", "--where", "flag >= 0"], str(BIG + 1 - BIG + 7 + 9)),
    (["t.parquet", "--column", "5", "--where", f"unsigned == {2**64 - 1}"], "1.8446744073709552e+19"),
    (["t.parquet", "--column", "5", "--where", f"unsigned == {2**64 - 2}"], "0"),
    (["t.arrow", "--column", "single", "--where", "single < 0.15", "--format", "fp64"], SMALLEST),
    (["one.parquet"], "1.6"),
    (["t.arrow", "--column", "half"], "6.1"),
    (["t.parquet", "--column", "flag"], "3"),
    (["t.feather", "--column", "price"], "10"),
    (["t.parquet", "--column", "single", "--weights", "flag", "--where", "id == 9007199254740993"], SMALLEST),
])  # fmt: skip
def test_columns_of_every_type_are_read_without_rounding(run, arguments, expected):
    code, out, err = run("sum", *arguments, "--skip-missing")
    assert (code, out.strip()) == (0, expected), err


def test_texts_are_keys_and_null_is_the_empty_text(run):
    assert run("scatter_count", "t.parquet", "--by", "city")[1] == 'Oslo\t2\n\t2\na "b", c\t1\n'
    assert run("scatter_add", "t.feather", "--by", "coded", "--column", "price", "--skip-missing")[1] == "x\t4\ny\t6\n"


def test_columns_are_chosen_as_those_of_other_tables(run):
    assert "has 10 columns: 'number', 'half'" in run("sum", "t.parquet")[2]
    assert "no column 'x'; it has 10 columns" in run("sum", "t.feather", "--column", "x")[2]
    assert "the column 'list' holds list<" in run("sum", "t.parquet", "--column", "list")[2]


def test_pairs_of_two_files_are_pairs_of_records(run, folder):
    (folder / "y.csv").write_text("price\n1\n2\n3\n\n5\n")
    code, out, err = run("dot", "t.parquet", "y.csv", "--column", "price", "--skip-missing")
    assert (code, out) == (0, f"{1 * 1 + 2 * 2 + 4 * 5}\n"), err


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_damaged_file_is_refused_in_one_line(run, folder, name):
    (folder / f"cut-{name}").write_bytes((folder / name).read_bytes()[:200])
    code, out, err = run("sum", f"cut-{name}", "--column", "id")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"samesum: cut-{name}: "), err


def test_duckdb_reads_parquet_as_pyarrow_does(folder):
    pytest.importorskip("duckdb")
    script = (pathlib.Path(__file__).parents[2] / "experiments/harness/arrow_as_csv.py").read_text()
    without = "import sys; sys.modules['pyarrow'] = None\n"
    name = "t[1]*?.parquet"  # no pattern
    (folder / name).write_bytes((folder / "t.parquet").read_bytes())

    def written(program):
        arguments = [name, "parquet", "single", "number", "city", "id", "flag", "unsigned", "price"]
        done = subprocess.run([sys.executable, "-c", program + script, *arguments], cwd=folder, capture_output=True)
        assert done.returncode == 0, done.stderr
        first, *records = done.stdout.decode().splitlines()
        return first, [[as_number(field) for field in record] for record in csv.reader(records)]

    assert written(without) == written("")


def as_number(field):
    """The value of a number, which the two may write with other digits."""
    return fractions.Fraction(field) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", field) else field
