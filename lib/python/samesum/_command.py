"""The command `samesum`: starts the tool that the package carries."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    folder = pathlib.Path(__file__).parent
    tool = folder / "bin" / "samesum"
    if not tool.exists():
        sys.exit(
            "samesum: this installation has no tool, since Boost, CLI11 or nlohmann-json was missing when it was "
            "built. Install libboost-dev, libcli11-dev and nlohmann-json3-dev, then install samesum again."
        )
    # `samesum report` runs python3, which shall be the interpreter of this environment.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    os.execve(tool, [str(tool), *sys.argv[1:]], os.environ | {"PATH": path})
