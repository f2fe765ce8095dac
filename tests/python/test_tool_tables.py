"""The tool that the package carries reads Parquet and Arrow files with the pyarrow or duckdb beside it."""

import pathlib
import subprocess
import sys

import pytest

import samesum

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

if not (pathlib.Path(samesum.__path__[0]) / "bin/samesum").exists():
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
NAMES = ("t.parquet", "t.feather", "t.arrow")


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
    def run(*arguments):
        command = [sys.executable, "-c", "from samesum._command import main; main()", *arguments]
        done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("name", NAMES)
def test_a_null_is_missing_and_not_nan(run, name):
    code, out, err = run("sum", name, "--column", "number")
    assert (code, out) == (2, "")
    assert err.startswith(f"samesum: {name}: record 2: the number is null; pass --skip-missing"), err
    assert run("sum", name, "--column", "number", "--skip-missing")[:2] == (0, "1.5\n")
    assert run("argmax", name, "--column", "4", "--skip-missing")[1] == "0\n"


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_every_type_are_read_without_rounding(run, name):
    def of(column, command="sum", *more):
        code, out, err = run(command, name, "--column", column, "--skip-missing", *more)
        assert code == 0, err
        return out.strip()

    assert of("id", "sum", "--where", "flag >= 0") == str(1 + 7 + 9)
    assert of("unsigned", "sum", "--where", f"unsigned == {2**64 - 1}") == "1.8446744073709552e+19"
    assert of("unsigned", "sum", "--where", f"unsigned == {2**64 - 2}") == "0"
    assert '"input_format":"fp16"' in of("half", "sum", "--json")
    assert '"input_format":"fp32"' in of("single", "sum", "--json")
    assert of("single", "max", "--format", "fp64") == "1"
    assert of("single", "min", "--format", "fp64") == repr(float(TABLE["single"][0].as_py()))
    assert of("flag") == "3"
    assert of("price") == "10"
    assert of("id", "sum", "--weights", "flag") == str(BIG + 16)


@pytest.mark.parametrize("name", NAMES)
def test_texts_and_nulls_are_keys(run, name):
    assert run("scatter_count", name, "--by", "city")[1] == 'Oslo\t2\n\t2\na "b", c\t1\n'
    assert run("scatter_add", name, "--by", "coded", "--column", "id", "--skip-missing")[1] == (
        f"x\t{BIG + 8}\n\t-{BIG}\ny\t9\n")


def test_columns_are_chosen_as_those_of_other_tables(run):
    assert run("sum", "one.parquet", "--skip-missing")[1] == "1.6\n"
    assert "has 10 columns: 'number', 'half'" in run("sum", "t.parquet")[2]
    assert "no column 'x'; it has 10 columns" in run("sum", "t.feather", "--column", "x")[2]
    assert "the column 'list' holds list<" in run("sum", "t.parquet", "--column", "list")[2]
    assert "record 1: 'Oslo' is not a number" in run("sum", "t.parquet", "--column", "city")[2]


def test_pairs_of_two_files_are_pairs_of_records(run, folder):
    (folder / "y.csv").write_text("price\n1\n2\n3\n\n5\n")
    code, out, err = run("dot", "t.parquet", "y.csv", "--column", "price", "--skip-missing")
    assert (code, out) == (0, f"{1 * 1 + 2 * 2 + 4 * 5}\n"), err


def test_damaged_files_are_refused_in_one_line(run, folder):
    for name in NAMES:
        (folder / f"cut-{name}").write_bytes((folder / name).read_bytes()[:200])
        code, out, err = run("sum", f"cut-{name}", "--column", "id")
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith(f"samesum: cut-{name}: "), err


def test_duckdb_reads_parquet_as_pyarrow_does(folder):
    pytest.importorskip("duckdb")
    script = (pathlib.Path(__file__).parents[2] / "experiments/harness/arrow_as_csv.py").read_text()
    without = "import sys; sys.modules['pyarrow'] = None\n"

    def written(program):
        arguments = ["t.parquet", "parquet", "single", "city", "id", "flag", "unsigned", "price"]
        done = subprocess.run([sys.executable, "-c", program + script, *arguments], cwd=folder, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert written(without) == written("")
