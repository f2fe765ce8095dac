"""Checks what README.md shows: readme.py README FOLDER PREFIX CXX TOOL CUDA

Each ```cpp block is a program that is built against the package installed in PREFIX; what it prints must be the
```text block that follows. A ```cuda block is one too, built if CUDA is ON and run where there is a GPU, by the CUDA
compiler where it includes a .cuh. Each
```console block is a session with the tool in an empty folder: lines that start with "$ " are typed, the others must
be what comes back. "…" stands for anything on the rest of its line, and a line "…" for any lines.
"""

import os
import pathlib
import re
import subprocess
import sys


def matches(shown, got):
    def pattern(line):
        return "(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n"
    return re.fullmatch("".join(map(pattern, shown.rstrip("\n").split("\n"))), got.rstrip("\n") + "\n") is not None


def main():
    readme, folder, prefix, cxx, tool, cuda = sys.argv[1:]
    folder = pathlib.Path(folder)
    (folder / "session").mkdir(parents=True, exist_ok=True)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", pathlib.Path(readme).read_text(), re.M | re.S)
    of_programs = ("cpp", "cuda")
    programs = [(kind, code, expected) for (kind, code), (follows, expected) in zip(blocks, blocks[1:] + [("", "")])
                if kind in of_programs and follows == "text"]
    sessions = [text for kind, text in blocks if kind == "console"]
    if len(programs) != sum(kind in of_programs for kind, _ in blocks) or not programs or not sessions:
        sys.exit("README.md: there is a ```cpp block without the ```text block of what it prints, or nothing to check")

    cmake = ["cmake_minimum_required(VERSION 3.22)", "project(readme LANGUAGES CXX)",
             "find_package(samesum CONFIG REQUIRED)"]
    programs = sorted((p for p in programs if p[0] == "cpp" or cuda == "ON"), key=lambda p: p[0] == "cuda")
    for i, (_, code, _) in enumerate(programs):
        kernels = ".cuh" in code  # templates of kernels need a CUDA compiler, everything else does not
        if kernels and "enable_language(CUDA)" not in cmake:
            cmake += ['set(CMAKE_CUDA_FLAGS "-std=c++20 --expt-relaxed-constexpr")', "set(CMAKE_CUDA_ARCHITECTURES 90-real)",
                      "enable_language(CUDA)"]
        source = folder / f"program_{i}.{'cu' if kernels else 'cpp'}"
        if not source.exists() or source.read_text() != code:
            source.write_text(code)
        cmake += [f"add_executable(program_{i} {source.name})",
                  f"target_link_libraries(program_{i} PRIVATE samesum::samesum)"]
    (folder / "CMakeLists.txt").write_text("\n".join(cmake) + "\n")
    for command in (["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
                     f"-DCMAKE_CXX_COMPILER={cxx}"],
                    ["cmake", "--build", folder / "build"]):
        subprocess.run(command, check=True)

    wrong = 0

    def check(what, shown, got):
        nonlocal wrong
        if not matches(shown, got):
            wrong += 1
            print(f"README.md: {what}\n--- shown\n{shown}--- got\n{got}")

    gpu = "no methods @cuda" not in subprocess.run([tool, "list"], stdout=subprocess.PIPE, text=True).stdout
    programs = [p for p in programs if p[0] == "cpp" or gpu]
    for i, (_, code, expected) in enumerate(programs):
        done = subprocess.run([folder / "build" / f"program_{i}"], stdout=subprocess.PIPE, text=True)
        check(f"program {i}, exit code {done.returncode}:\n{code}", expected, done.stdout)

    environment = dict(os.environ, PATH=f"{pathlib.Path(tool).parent}:{os.environ['PATH']}")
    for session in sessions:
        for typed, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.M):
            done = subprocess.run(["bash", "-c", typed], cwd=folder / "session", env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            check(f"$ {typed}", shown, done.stdout)
    print(f"{len(programs)} programs, {len(sessions)} sessions, {wrong} differences")
    sys.exit(1 if wrong else 0)


main()
