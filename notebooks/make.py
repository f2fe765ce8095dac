"""Makes what is committed beside the results: the outputs of the notebooks, figures/same_bits.svg, the paper, and the
tables of results in README.md and other pages.

Run it after the committed results or the notebooks have changed, with the packages of experiments/requirements.txt and
tests/requirements.txt: build/venv/bin/python notebooks/make.py. The tests compare.
"""

import os
import pathlib
import tempfile

import nbclient
import nbformat

import pages
import paper
import same_bits_figure
import tool

FOLDER = pathlib.Path(__file__).parent


def executed(path):
    """The notebook with the outputs of all its cells, from the committed results alone. A cell whose output depends on
    the machine keeps the one that it has; so does one that runs the tool, if that is not built."""
    book = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    keep = {"varies"} if tool.PROGRAM.exists() else {"varies", "tool"}
    kept = {cell.id: cell.outputs for cell in book.cells if keep & set(cell.metadata.get("tags", [])) and cell.outputs}
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", record_timing=False, coalesce_streams=True,
                            resources={"metadata": {"path": str(FOLDER)}}).execute()
    for cell in book.cells:
        if cell.id in kept:
            cell.outputs = kept[cell.id]
    book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                     "language_info": {"name": "python"}}
    return book


def main():
    with tempfile.TemporaryDirectory() as empty:
        os.environ.update(SAMESUM_STUDY=empty, IPYTHONDIR=empty, JUPYTER_CONFIG_DIR=empty,
                          PYDEVD_DISABLE_FILE_VALIDATION="1")
        for path in sorted(FOLDER.glob("*.ipynb")):
            nbformat.write(executed(path), path)
            print(path.name, f"{path.stat().st_size:,} bytes")
    pages.main()
    same_bits_figure.main()
    paper.main([])


if __name__ == "__main__":
    main()
