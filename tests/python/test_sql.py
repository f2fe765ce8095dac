"""samesum.sql loads the extensions that the package carries, or says why it cannot."""

from __future__ import annotations

import pathlib
import shutil
import sqlite3
import subprocess
import sys

import pytest

import samesum.sql

VALUES = [1e16, 1.0, 0.1, 3e-300, -1e16]


def has_extension(name: str) -> None:
    if not (samesum.sql._EXTENSIONS / name).exists():
        pytest.skip(f"the package was built without {name}")


@pytest.fixture
def duck():
    duckdb = pytest.importorskip("duckdb")
    has_extension("samesum.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        yield connection


def test_duckdb_has_the_bits_of_the_package(duck):
    samesum.sql.load(duck)
    duck.execute("create table t as select unnest(?::DOUBLE[]) x", [VALUES])
    found = duck.execute("select exact_sum(x), exact_avg(x), exact_dot(x, x) from t").fetchone()
    assert found == (
        samesum.fsum(VALUES), samesum.mean(VALUES, method="exact"), samesum.dot(VALUES, VALUES, method="exact")
    )  # fmt: skip


def test_a_cursor_of_duckdb_is_a_connection_and_may_load_twice(duck):
    samesum.sql.load(duck.cursor())
    samesum.sql.load(duck)
    assert duck.execute("select exact_sum(1e300::DOUBLE)").fetchone() == (1e300,)


def test_duckdb_without_unsigned_extensions_names_the_remedy():
    duckdb = pytest.importorskip("duckdb")
    has_extension("samesum.duckdb_extension")
    with duckdb.connect() as connection, pytest.raises(RuntimeError, match='"allow_unsigned_extensions": "true"'):
        samesum.sql.load(connection)


SQLITE = """
import sqlite3, sys
sys.path.insert(0, sys.argv[1])
import samesum.sql
class Connection(sqlite3.Connection):
    pass
for connection in sqlite3.connect(":memory:"), sqlite3.connect(":memory:", factory=Connection):
    samesum.sql.load(connection)
    connection.execute("create table t(x)")
    connection.executemany("insert into t values (?)", [[float(x)] for x in sys.argv[2:]])
    [total] = connection.execute("select exact_sum(x) from t").fetchone()
    assert total == samesum.fsum(map(float, sys.argv[2:])), total
    try:
        connection.load_extension("samesum_sqlite")
    except sqlite3.OperationalError as error:
        assert "not authorized" in str(error), error
    else:
        raise AssertionError("extensions can still be loaded")
"""
ABILITY = """
import sqlite3, sys
sys.exit(not hasattr(sqlite3.Connection, "enable_load_extension") or sys.argv[1] != str(sys.version_info[:2]))
"""


def test_sqlite_has_the_bits_of_the_package_and_loads_no_other_extension():
    has_extension("samesum_sqlite.so")
    # Some interpreters cannot load extensions. The modules of the package fit others of the same version.
    for python in filter(None, (sys.executable, shutil.which("python3"), "/usr/bin/python3")):
        ability = [python, "-c", ABILITY, str(sys.version_info[:2])]
        if subprocess.run(ability, capture_output=True).returncode == 0:
            break
    else:
        pytest.skip("no Python of this version has a sqlite3 with enable_load_extension")
    folder = pathlib.Path(samesum.__path__[0]).parent
    done = subprocess.run([python, "-c", SQLITE, folder, *map(str, VALUES)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


class OtherConnection(sqlite3.Connection):
    """One of a Python whose sqlite3 cannot load extensions."""

    def __getattribute__(self, name):
        if name == "enable_load_extension":
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_a_python_whose_sqlite3_loads_no_extensions_names_the_remedy():
    has_extension("samesum_sqlite.so")
    can_load = hasattr(sqlite3.Connection, "enable_load_extension")
    factory = OtherConnection if can_load else sqlite3.Connection
    with pytest.raises(RuntimeError, match="Debian's /usr/bin/python3"):
        samesum.sql.load(sqlite3.connect(":memory:", factory=factory))


def test_an_installation_without_extensions_names_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(samesum.sql, "_EXTENSIONS", tmp_path)
    with pytest.raises(RuntimeError, match="no extension of SQLite.*libsqlite3-dev"):
        samesum.sql.load(sqlite3.connect(":memory:"))
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        with pytest.raises(RuntimeError, match="no extension of DuckDB.*SAMESUM_SQL_FETCH=ON"):
            samesum.sql.load(connection)


@pytest.mark.parametrize("other", [None, "file.db", sqlite3, sqlite3.connect(":memory:").cursor()])
def test_what_is_no_connection_is_refused(other):
    with pytest.raises(TypeError, match="a connection of the package duckdb or sqlite3"):
        samesum.sql.load(other)
