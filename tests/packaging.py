"""The recipe for conda and the port for vcpkg agree with CMakeLists.txt and pyproject.toml.

Usage: tests/packaging.py SOURCES. Prints each difference; exits with 1 if there is one. Needs PyYAML and Python 3.11.
"""

import json
import pathlib
import re
import sys
import tomllib

import yaml

# Packages that CMake finds, and their names in conda-forge.
IN_CONDA = {"Boost": "libboost-headers", "CLI11": "cli11", "nlohmann_json": "nlohmann_json", "ZLIB": "zlib"}


def requirement(text):
    """Name and versions of a requirement, of pip or of conda: 'nanobind>=2.4' or 'nanobind >=2.4'."""
    return re.fullmatch(r"([\w-]+) *(.*)", text).groups()


def differences(root):
    read = {path: (root / path).read_text() for path in (
        "CMakeLists.txt", "experiments/CMakeLists.txt", "lib/packaging/conda/recipe.yaml",
        "lib/packaging/vcpkg/samesum/vcpkg.json", "lib/packaging/vcpkg/samesum/portfile.cmake")}
    cmake, recipe_text, portfile = (read[p] for p in ("CMakeLists.txt", "lib/packaging/conda/recipe.yaml",
                                                      "lib/packaging/vcpkg/samesum/portfile.cmake"))
    recipe, port = yaml.safe_load(recipe_text), json.loads(read["lib/packaging/vcpkg/samesum/vcpkg.json"])
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    project, build = pyproject["project"], pyproject["tool"]["scikit-build"]
    version = re.search(
        build["metadata"]["version"]["regex"], (root / build["metadata"]["version"]["input"]).read_text()
    )
    library, package = recipe["outputs"]

    def same(what, ours, theirs):
        if ours != theirs:
            yield f"{what}: {ours!r} in the sources, but {theirs!r}"

    for name, other in (("recipe.yaml", recipe["context"]["version"]), ("vcpkg.json", port["version-semver"])):
        yield from same(
            f"version of {name}", build["metadata"]["version"]["result"].format(**version.groupdict()), other
        )
    for name, license, about in (("recipe.yaml", recipe["about"]["license"], recipe["about"]["summary"]),
                                 ("vcpkg.json", port["license"], port["description"])):
        yield from same(f"license of {name}", project["license"], license)
        yield from same(f"description of {name}", project["description"], about)

    host = dict(map(requirement, package["requirements"]["host"]))
    for name, versions in map(requirement, pyproject["build-system"]["requires"]):
        yield from same(f"{name} of recipe.yaml", versions, host.get(name))
    optional = dict(map(requirement, project["optional-dependencies"]["numpy"]))
    yield from same(
        "numpy of recipe.yaml", optional, dict(map(requirement, package["requirements"]["run_constraints"]))
    )
    yield from same(
        "Python that recipe.yaml skips",
        [f'match(python, "{project["requires-python"].replace(">=", "<")}")'],
        package["build"]["skip"],
    )
    found = re.findall(r"(\w+)=", re.search(r"foreach\(package (.*)\)", cmake)[1])
    found += re.findall(r"find_package\((ZLIB)", read["experiments/CMakeLists.txt"])
    yield from same("packages of recipe.yaml for the command samesum", {IN_CONDA[name] for name in found},
                    host.keys() & set(IN_CONDA.values()))
    minimum = ">=" + re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", cmake)[1]
    yield from same("cmake of pyproject.toml", minimum, build["cmake"]["version"])
    for output in recipe["outputs"]:
        needed = (r for r in output["requirements"]["build"] if not r.startswith("$"))
        yield from same(f"cmake of {output['package']['name']}", minimum, dict(map(requirement, needed)).get("cmake"))

    options = set(re.findall(r"^(?:option\(|set\()(SAMESUM_\w+)[ \n]", cmake, re.M))
    # CUDA code takes most of an hour, so that pip compiles it only on request.
    yield from same("SAMESUM_CUDA of pyproject.toml", "OFF", build["cmake"]["define"].get("SAMESUM_CUDA"))
    defined = " ".join(build["cmake"]["define"])
    for name, text in (("recipe.yaml", recipe_text), ("portfile.cmake", portfile), ("pyproject.toml", defined)):
        used = set(re.findall(r"SAMESUM_[A-Z_]+", text))
        yield from same(f"options of {name} that CMakeLists.txt lacks", set(), used - options)
    yield from same(
        "features of vcpkg.json", set(re.findall(r"FEATURES (\w+) SAMESUM", portfile)), set(port["features"])
    )
    for part in library["tests"]:
        for header in part.get("package_contents", {}).get("include", []):
            yield from same(f"{header} of recipe.yaml", True, (root / "lib" / header).exists())
        for folder in part.get("files", {}).get("source", []):
            yield from same(f"{folder} of recipe.yaml", True, (root / folder).is_dir())


def main():
    wrong = list(differences(pathlib.Path(sys.argv[1])))
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
