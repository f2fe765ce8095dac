"""Writes a Parquet or Arrow file as comma-separated values, with pyarrow, or a Parquet file with duckdb.

The tool `samesum` carries this program and runs it with python3. Arguments: the file, its kind, parquet or arrow, and
the columns that are read, each by its name or number; the first is that of the elements, empty if there is only one.

The first line of the output is the format of the elements if that is fp16 or fp32, else empty. The header and the
records follow, without the texts of columns that are not read. A null is the empty text, quoted, true is 1, and a float
is written as an fp64, so that reading the text rounds nothing.
"""

import sys

sys.path = [folder for folder in sys.path if folder]  # a file of the working directory may be named like a module


def columns_named(wanted, names):
    """The indices of the columns that the tool may mean; it checks that there is only one."""
    if not wanted and len(names) == 1:
        return [0]
    return [i for i, name in enumerate(names)
            if name.strip() == wanted.strip() or wanted.isdecimal() and int(wanted) == i + 1]


class WithPyarrow:
    def __init__(self, path, kind):
        import pyarrow
        self.pyarrow, source = pyarrow, pyarrow.memory_map(path)
        if kind == "parquet":
            import pyarrow.parquet
            file = pyarrow.parquet.ParquetFile(source)
            self.schema, self.batches = file.schema_arrow, lambda names: file.iter_batches(columns=names)
        elif source.read(6) == b"ARROW1":
            file = pyarrow.ipc.open_file(source)
            self.schema, self.batches = file.schema, lambda _: map(file.get_batch, range(file.num_record_batches))
        else:
            source.seek(0)
            file = pyarrow.ipc.open_stream(source)
            self.schema, self.batches = file.schema, lambda _: file
        self.names = self.schema.names

    def format(self, column):
        return {"halffloat": "fp16", "float": "fp32"}.get(str(self.schema.types[column]), "")

    def texts(self, name, values):
        pyarrow = self.pyarrow
        if pyarrow.types.is_boolean(values.type):
            values = values.cast(pyarrow.uint8())
        if pyarrow.types.is_floating(values.type):
            values = values.cast(pyarrow.float64())
        try:
            return values.cast(pyarrow.string()).fill_null("")
        except pyarrow.ArrowNotImplementedError:
            raise ValueError(f"the column '{name}' holds {values.type}, not numbers or texts") from None

    def write(self, columns):
        import pyarrow.csv
        pyarrow, read = self.pyarrow, {self.names[i] for i in columns}
        schema = pyarrow.schema([(name, pyarrow.string()) for name in self.names])
        with pyarrow.csv.CSVWriter(sys.stdout.buffer, schema) as writer:
            for batch in self.batches(sorted(read)) if read else []:
                places = {name: [i for i, other in enumerate(batch.schema.names) if other == name] for name in read}
                writer.write_batch(pyarrow.RecordBatch.from_arrays(
                    [self.texts(name, batch.column(places[name].pop(0))) if name in read else
                     pyarrow.nulls(batch.num_rows, pyarrow.string()) for name in self.names], schema=schema))


class WithDuckdb:
    WIDER = {"BOOLEAN": "UTINYINT", "FLOAT": "DOUBLE"}

    def __init__(self, path, kind):
        import duckdb
        name = "".join(f"[{c}]" if c in "*?[" else c for c in path)  # a pattern, which only this file matches
        self.duckdb, self.file = duckdb.connect(), "read_parquet('" + name.replace("'", "''") + "')"
        described = self.duckdb.execute(f"DESCRIBE SELECT * FROM {self.file}").fetchall()
        self.names, self.types = [row[0] for row in described], [row[1] for row in described]

    def format(self, column):
        return "fp32" if self.types[column] == "FLOAT" else ""

    def write(self, columns):
        names = ['"' + name.replace('"', '""') + '"' for name in self.names]
        texts = [f"coalesce({name}::{self.WIDER.get(kind, kind)}::VARCHAR, '') AS {name}" if i in columns else
                 f"NULL AS {name}" for i, (name, kind) in enumerate(zip(names, self.types))]
        self.duckdb.execute(f"COPY (SELECT {', '.join(texts)} FROM {self.file}{'' if columns else ' LIMIT 0'}) "
                            "TO '/dev/stdout' (FORMAT csv, HEADER, FORCE_QUOTE *)")


def opened(path, kind):
    readers = {WithPyarrow: "pyarrow"} | ({WithDuckdb: "duckdb"} if kind == "parquet" else {})
    for reader in readers:
        try:
            return reader(path, kind)
        except ImportError:
            pass
    sys.exit(f"reading it needs the Python package {' or '.join(readers.values())}; install it with "
             f"{sys.executable} -m pip install pyarrow")


def main(path, kind, *wanted):
    file = opened(path, kind)
    chosen = [columns_named(some, file.names) for some in wanted]
    print(file.format(chosen[0][0]) if chosen[0] else "", flush=True)
    file.write({i for some in chosen for i in some})


try:
    main(*sys.argv[1:])
except Exception as error:
    sys.exit(" ".join(str(error).split()) or type(error).__name__)
