"""Checks the programs and sessions that the Markdown files show: readme.py ROOT FOLDER PREFIX CXX TOOL CUDA NCCL
MPIEXEC

The programs are the files in lib/examples. Each is built in FOLDER against the package that is installed in PREFIX,
and must print its NAME.txt; those in Python and Fortran are tested by interface/example. Programs for a GPU are built
if CUDA is ON, and run where there is a GPU. Those that need NCCL are built unless NCCL, the folder of its header and
its library with a ":" between them, is empty. Programs for several ranks are built, and run on four, unless MPIEXEC is
empty.

Each ```cpp, ```c, ```cuda and ```fortran block of a Markdown file must be a program or consecutive lines of it,
indented or not, and a ```text block right after it must be its NAME.txt. Each ```console block is a session with the
tool, in a folder that is empty at the top of the file: lines that start with "$ " are typed, the others must be the
output.

In all outputs "…" stands for anything on the rest of its line, and a line "…" for any lines.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap


def matches(shown, got):
    def pattern(line):
        return "(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n"
    return re.fullmatch("".join(map(pattern, shown.rstrip("\n").split("\n"))), got.rstrip("\n") + "\n") is not None


def is_part(block, program):
    lines, count = program.read_text().splitlines(), block.count("\n")
    return any(textwrap.dedent("\n".join(lines[i:i + count])) + "\n" == block for i in range(len(lines) - count + 1))


def output_of(program):
    return program.with_suffix(".txt").read_text()


def needs_gpu(program):
    return program.suffix == ".cu" or "samesum/gpu.hpp" in program.read_text() or needs_nccl(program)


def needs_nccl(program):
    return "samesum/nccl.hpp" in program.read_text()


def needs_mpi(program):
    return re.search(r"samesum/(mpi\.hpp|samesum_mpi\.h)", program.read_text()) is not None


def target_of(program):
    if needs_nccl(program):
        return "nccl"
    return (
        "mpi"
        if needs_mpi(program)
        else "reducers"
        if re.search(r"samesum/(reducer|states)\.", program.read_text())
        else "samesum"
    )


def build(programs, folder, prefix, cxx, nccl):
    components = ["mpi"] * any(map(needs_mpi, programs)) + ["nccl"] * any(map(needs_nccl, programs))
    wanted = " ".join(["", "COMPONENTS", *components]) if components else ""
    cmake = ["cmake_minimum_required(VERSION 3.22)", "project(examples LANGUAGES CXX C)",
             f"find_package(samesum CONFIG REQUIRED{wanted})",
             # Compiles as fast as -O0, and the longest programs run in a quarter of the time.
             "add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Og>)"]
    if any(p.suffix == ".cu" for p in programs):
        cmake += ['set(CMAKE_CUDA_FLAGS -std=c++20)', "set(CMAKE_CUDA_ARCHITECTURES 90-real)",
                  "enable_language(CUDA)"]
    for p in programs:
        cmake += [f"add_executable({p.stem} {p})", f"target_link_libraries({p.stem} PRIVATE samesum::{target_of(p)})"]
    # Programs that include this header share it precompiled, which takes half as long.
    header = "<samesum/samesum.hpp>"
    first, *others = [p.stem for p in programs if target_of(p) == "samesum" and f"#include {header}\n" in p.read_text()]
    cmake += [f"target_precompile_headers({first} PRIVATE {header})",
              *(f"target_precompile_headers({other} REUSE_FROM {first})" for other in others)]
    (folder / "CMakeLists.txt").write_text("\n".join(cmake) + "\n")
    for command in (["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
                     f"-DCMAKE_CXX_COMPILER={cxx}",
                     *(f"-DNCCL_{k}={v}" for k, v in zip(["INCLUDE_DIR", "LIBRARY"], filter(None, nccl.split(":"))))],
                    ["cmake", "--build", folder / "build"]):
        subprocess.run(command, check=True)


def main():
    root, folder, prefix, cxx, tool, cuda, nccl, mpiexec = sys.argv[1:]
    root, folder, session = pathlib.Path(root), pathlib.Path(folder), pathlib.Path(folder) / "session"
    folder.mkdir(parents=True, exist_ok=True)
    programs = sorted(p for p in (root / "lib/examples").iterdir() if p.suffix in (".cpp", ".c", ".cu"))
    shown = [*programs, *(root / "lib/examples").glob("*.f90")]
    built = [p for p in programs if (cuda == "ON" or not needs_gpu(p)) and (mpiexec or not needs_mpi(p))
             and (nccl or not needs_nccl(p))]
    build(built, folder, prefix, cxx, nccl)

    wrong = []

    def check(holds, what, shown="", got=""):
        if not holds:
            wrong.append(what)
            print(what + (f"\n--- shown\n{shown}--- got\n{got}" if shown or got else ""))

    listed = subprocess.run([tool, "list", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout
    gpu = "cuda" not in (absent["backend"] for absent in json.loads(listed)["absent"])
    run = [p for p in built if gpu or not needs_gpu(p)]
    for p in run:
        launcher = [mpiexec, "-n", "4"] if needs_mpi(p) else []
        done = subprocess.run([*launcher, folder / "build" / p.stem], stdout=subprocess.PIPE, text=True)
        check(done.returncode == 0 and matches(output_of(p), done.stdout),
              f"{p}: exit code {done.returncode}, or not the output of NAME.txt", output_of(p), done.stdout)

    environment = dict(os.environ, PATH=f"{pathlib.Path(tool).parent}:{os.environ['PATH']}")
    typed = blocks = 0
    for file in sorted(
        [*root.glob("*.md"), *root.glob("lib/*.md"), *root.glob("lib/guides/*.md"), *root.glob("experiments/*.md")]
    ):
        shutil.rmtree(session, ignore_errors=True)
        session.mkdir()
        text = file.read_text()
        for block in re.finditer(r"^```(\w+)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", text, re.M | re.S):
            kind, code, output = block.groups()
            place = f"{file}:{text.count(chr(10), 0, block.start()) + 1}"
            if kind in ("cpp", "c", "cuda", "fortran"):
                blocks += 1
                sources = [p for p in shown if is_part(code, p)]
                check(sources, f"{place}: these are not consecutive lines of a program in lib/examples")
                if sources and output is not None:
                    check(output in map(output_of, sources), f"{place}: the output is not its NAME.txt", output,
                          output_of(sources[0]))
            if kind == "console":
                for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.M):
                    typed += 1
                    done = subprocess.run(["bash", "-c", command], cwd=session, env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    check(matches(expected, done.stdout), f"{place}: $ {command}", expected, done.stdout)
    check(run and blocks and typed, "there is nothing to check")
    print(f"{len(built)} programs built, {len(run)} run; {blocks} blocks of code, {typed} commands; {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


main()
