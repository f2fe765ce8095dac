"""Writes a Parquet or Arrow file as comma-separated values, with pyarrow, or a Parquet file with duckdb.

The tool `samesum` carries this program and runs it with python3. Arguments: the file, its kind, parquet or arrow, and the
columns that are read, each by its name or number; the first is that of the elements, and empty if there is only one. The
first line of the output is the format of the elements if that is fp16 or fp32, and else empty. The header and the records
follow, all quoted, and without the texts of columns that are not read. The text of a null is empty, true is 1, and a float
is written as an fp64, so that reading the text rounds nothing.
"""

import sys

sys.path = [folder for folder in sys.path if folder]  # without the working directory, whose files may be named like modules


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
            self.file = pyarrow.parquet.ParquetFile(source)
            self.schema = self.file.schema_arrow
        else:
            import pyarrow.ipc
            magic = source.read(6)
            source.seek(0)
            self.file = (pyarrow.ipc.open_file if magic == b"ARROW1" else pyarrow.ipc.open_stream)(source)
            self.schema = self.file.schema
        self.names = self.schema.names

    def format(self, column):
        types = self.pyarrow.types
        kind = self.schema.types[column]
        return "fp16" if types.is_float16(kind) else "fp32" if types.is_float32(kind) else ""

    def batches(self, names):
        if hasattr(self.file, "iter_batches"):
            return self.file.iter_batches(columns=names)
        if hasattr(self.file, "get_batch"):
            return map(self.file.get_batch, range(self.file.num_record_batches))
        return self.file

    def text(self, name, values):
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
        pyarrow = self.pyarrow
        texts = pyarrow.schema([(name, pyarrow.string()) for name in self.names])
        read = {self.names[i] for i in columns}
        with pyarrow.csv.CSVWriter(sys.stdout.buffer, texts) as writer:
            for batch in self.batches(sorted(read)) if read else []:
                places = {name: [i for i, other in enumerate(batch.schema.names) if other == name] for name in read}
                writer.write_batch(pyarrow.RecordBatch.from_arrays(
                    [self.text(name, batch.column(places[name].pop(0))) if name in read else
                     pyarrow.nulls(batch.num_rows, pyarrow.string()) for name in self.names], schema=texts))


class WithDuckdb:
    def __init__(self, path, kind):
        import duckdb
        self.duckdb, self.file = duckdb.connect(), "read_parquet('" + path.replace("'", "''") + "')"
        described = self.duckdb.execute(f"DESCRIBE SELECT * FROM {self.file}").fetchall()
        self.names, self.types = [row[0] for row in described], [row[1] for row in described]

    def format(self, column):
        return "fp32" if self.types[column] == "FLOAT" else ""

    def text(self, column):
        name = '"' + self.names[column].replace('"', '""') + '"'
        for kind, wider in (("BOOLEAN", "UTINYINT"), ("FLOAT", "DOUBLE")):
            if self.types[column] == kind:
                return f"coalesce({name}::{wider}::VARCHAR, '') AS {name}"
        return f"coalesce({name}::VARCHAR, '') AS {name}"

    def write(self, columns):
        names = ['"' + name.replace('"', '""') + '"' for name in self.names]
        texts = [self.text(i) if i in columns else f"NULL AS {name}" for i, name in enumerate(names)]
        limit = "" if columns else " LIMIT 0"
        self.duckdb.execute(f"COPY (SELECT {', '.join(texts)} FROM {self.file}{limit}) TO '/dev/stdout' "
                            "(FORMAT csv, HEADER, FORCE_QUOTE *)")


def opened(path, kind):
    for reader in (WithPyarrow, WithDuckdb)[:2 if kind == "parquet" else 1]:
        try:
            return reader(path, kind)
        except ImportError:
            pass
    sys.exit(f"python3 has no package that reads it; install pyarrow{' or duckdb' if kind == 'parquet' else ''}: "
             f"{sys.executable} -m pip install pyarrow")


def main(path, kind, *wanted):
    file = opened(path, kind)
    chosen = [columns_named(some, file.names) for some in wanted]
    sys.stdout.write((file.format(chosen[0][0]) if chosen[0] else "") + "\n")
    sys.stdout.flush()
    file.write({i for some in chosen for i in some})


try:
    main(*sys.argv[1:])
except Exception as error:
    sys.exit(" ".join(str(error).split()) or type(error).__name__)
