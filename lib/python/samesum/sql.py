"""Exact aggregate functions in SQL: loads the extension that the package carries into a connection of DuckDB or SQLite.

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    samesum.sql.load(connection)
    connection.sql("select exact_sum(x) from t")

Both engines have exact_sum, exact_avg, exact_var_samp, exact_var_pop, exact_stddev_samp, exact_stddev_pop, exact_dot,
exact_covar_samp, exact_covar_pop and exact_corr.
"""

from __future__ import annotations

import pathlib
from typing import Any

__all__ = ["load"]

_EXTENSIONS = pathlib.Path(__file__).parent / "extensions"


def load(connection: Any) -> None:
    """Loads the functions into a connection.

    Args:
        connection: a connection of the package duckdb or sqlite3. A connection of DuckDB must have been opened with
            config={"allow_unsigned_extensions": "true"}, which cannot be changed later and lets the connection load
            every file without a signature. In a connection of SQLite, the loading of extensions is off afterwards.

    Raises:
        TypeError: `connection` is not such a connection.
        RuntimeError: the connection, its Python or this installation cannot load the extension; the message names the
            remedy.
        duckdb.Error, sqlite3.Error: the engine refuses the extension, for example a version of DuckDB that it was not
            tested with.
    """
    types = {f"{base.__module__}.{base.__name__}" for base in type(connection).__mro__}
    if types & {"_duckdb.DuckDBPyConnection", "duckdb.duckdb.DuckDBPyConnection"}:
        _load_into_duckdb(connection)
    elif "sqlite3.Connection" in types:
        _load_into_sqlite(connection)
    else:
        raise TypeError(f"samesum: connection is {connection!r}; use a connection of the package duckdb or sqlite3")


def _load_into_duckdb(connection: Any) -> None:
    file = _file("samesum.duckdb_extension", "DuckDB", "with --config-settings=cmake.define.SAMESUM_SQL_FETCH=ON")
    [(admits,)] = connection.cursor().execute("select current_setting('allow_unsigned_extensions')").fetchall()
    if not admits:
        raise RuntimeError(
            "samesum: the connection admits no extension without a signature, as that of samesum is; open it with "
            'duckdb.connect(..., config={"allow_unsigned_extensions": "true"}), which admits every such file'
        )
    connection.load_extension(file)


def _load_into_sqlite(connection: Any) -> None:
    file = _file("samesum_sqlite.so", "SQLite", "where libsqlite3-dev is installed")
    if not hasattr(connection, "enable_load_extension"):
        raise RuntimeError(
            "samesum: the sqlite3 of this Python was built without enable_load_extension; use another one, such "
            "as Debian's /usr/bin/python3, or build this one with --enable-loadable-sqlite-extensions"
        )
    connection.enable_load_extension(True)
    try:
        connection.load_extension(file)
    finally:
        connection.enable_load_extension(False)


def _file(name: str, engine: str, how: str) -> str:
    """Returns the path of an extension. Raises RuntimeError, with a message on how to install it, if it is absent."""
    file = _EXTENSIONS / name
    if not file.exists():
        raise RuntimeError(
            f"samesum: this installation has no extension of {engine}, whose headers were missing when it was built; "
            f"install samesum again, {how}"
        )
    return str(file)
