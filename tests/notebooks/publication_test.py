"""Tests of experiments/run --publish, in a clone whose programs are made up.

Run by ctest, or: build/venv/bin/python tests/notebooks/publication_test.py
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import made_up


class Publication(unittest.TestCase):
    """experiments/run --publish in a clone whose experiments, CMake and Python are made up."""

    MEASURES = """#!/bin/sh
case "$*" in --help) echo "{help}"; exit ;; esac
for out; do :; done
echo '{{"options":"'"$*"'","commit":"'$(git describe --always --dirty --abbrev=40)'"}}' >"$out/{name}.jsonl"
"""

    PYTHON = """#!/bin/sh
case "$1" in
  experiments/datasets.py) echo data.npy ;;
  experiments/*.py) name=$(basename "$1" .py); shift; exec build/release/bin/$name "$@" ;;
esac
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.bin = pathlib.Path(folder.name, "clone"), pathlib.Path(folder.name, "bin")
        for name in ("bin", "clone/experiments/results", "clone/build/release/bin", "clone/build/venv/bin",
                     "clone/tests/python"):
            (self.root.parent / name).mkdir(parents=True)
        for name in ("experiments/run", "experiments/setup", "experiments/requirements.txt",
                     "tests/python/requirements.txt"):
            shutil.copy(made_up.ROOT / name, self.root / name)
        (self.root / ".gitignore").write_text("/build/\n")
        for name in ("speed_vs_length", "error_vs_length"):
            (self.root / f"experiments/{name}.cpp").touch()
        for name in ("speed_vs_length", "python_speed", "databases", "own_kernels", "torch_speed"):
            self.experiment(name, "--processes N")
        for name in ("error_vs_length", "python_orders", "data_frames", "matrix_products"):
            self.experiment(name, "--seed N")
        self.make("clone/build/release/bin/samesum", """#!/bin/sh
            echo '{"options":"compare","commit":"'$(git describe --always --dirty --abbrev=40)'"}'""")
        self.make("clone/build/venv/bin/python", self.PYTHON)
        packages = hashlib.sha256((self.root / "experiments/requirements.txt").read_bytes()).hexdigest()
        (self.root / f"build/venv/{packages[:16]}.installed").touch()
        self.make("bin/cmake", """#!/bin/sh
            case "$*" in
              --version) echo cmake version 3.22.0 ;;
              *-DNAMES=*) mkdir -p "$4"; printf '%s=1\n' Boost CLI11 nlohmann_json Eigen3 TBB ZLIB >"$4/found" ;;
            esac""")
        for name in ("ninja", "c++", "nvidia-smi"):
            self.make(f"bin/{name}", "#!/bin/sh\n")
        for name in ("bash", "sh", "cat", "cp", "cut", "dirname", "basename", "git", "grep", "head", "id", "ls",
                     "mkdir", "mktemp", "mv", "rm", "sed", "sha256sum", "sort", "stat", "tail", "tee", "touch"):
            (self.bin / name).symlink_to(shutil.which(name))
        self.git("init", "--quiet")
        self.commit = self.committed()

    def make(self, name, text):
        path = self.root.parent / name
        path.write_text(text)
        path.chmod(0o755)

    def experiment(self, name, help):
        self.make(f"clone/build/release/bin/{name}", self.MEASURES.format(name=name, help=help))

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", self.root, "-c", "user.name=made up", "-c", "user.email=", *arguments],
                              capture_output=True, text=True, check=True,
                              env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull})
        return done.stdout.strip()

    def committed(self):
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "All")
        return self.git("rev-parse", "HEAD")

    def run_with(self, *arguments):
        done = subprocess.run([self.root / "experiments/run", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env={"PATH": str(self.bin), "HOME": str(self.root)})
        return done.returncode, done.stdout

    def published(self):
        return {path.name: json.loads(path.read_text()) for path in (self.root / "experiments/results").iterdir()}

    def test_writes_the_results_of_every_experiment_and_times_from_ten_processes(self):
        code, printed = self.run_with("--publish", "epyc2")
        self.assertEqual(code, 0, printed)
        folder = f"build/published/{self.commit}"
        many, one = f"--quick --processes 10 --out {folder}", f"--quick --out {folder}"
        expected = {"speed_vs_length": many, "python_speed": many, "databases": many, "error_vs_length": one, "data_frames": one,
                    "own_kernels": many, "matrix_products": one,
                    "torch_speed": f"--processes 10 {folder}", "python_orders": folder, "compare": "compare"}
        self.assertEqual(self.published(), {f"epyc2.{name}.jsonl": {"options": options, "commit": self.commit}
                                            for name, options in expected.items()})

    def test_refuses_names_of_other_characters(self):
        for name in ("a.b", "../a", "é", "a b"):
            code, printed = self.run_with("--publish", name)
            refused = f"experiments/run: --publish needs a NAME of letters and digits, not '{name}'\n"
            self.assertEqual((code, printed), (2, refused))
        self.assertEqual(self.run_with("--publish"), (2, "experiments/run: --publish needs a value; see --help\n"))

    def test_refuses_a_tree_with_changes_before_it_measures(self):
        (self.root / "new.cpp").touch()
        (self.root / "experiments/speed_vs_length.cpp").write_text("changed")
        code, printed = self.run_with("--publish", "epyc")
        self.assertEqual((code, printed.splitlines()[1:]), (2, ["experiments/speed_vs_length.cpp", "new.cpp"]))
        self.assertIn("commit or remove:", printed)
        self.assertEqual(self.published(), {})

    def test_refuses_a_folder_without_git(self):
        refused = (2, "experiments/run: --publish: needs git and a clone, whose commit results name\n")
        (self.bin / "git").unlink()
        self.assertEqual(self.run_with("--publish", "epyc"), refused)
        shutil.rmtree(self.root / ".git")
        self.assertEqual(self.run_with("--publish", "epyc"), refused)

    def test_publishes_nothing_if_an_experiment_in_python_fails_without_results(self):
        self.make("clone/build/release/bin/data_frames", "#!/bin/sh\nexit 1\n")
        code, printed = self.run_with("--publish", "epyc")
        self.assertEqual((code, self.published()), (1, {}))
        self.assertIn("data_frames did not finish", printed)

    def test_publishes_nothing_if_a_check_fails_or_the_tree_changes_meanwhile(self):
        broken = self.PYTHON.replace("experiments/datasets", "notebooks/report.py) exit 1 ;;\n  experiments/datasets")
        self.make("clone/build/venv/bin/python", broken)
        code, printed = self.run_with("--publish", "epyc")
        self.assertEqual((code, self.published()), (1, {}))
        self.assertIn("nothing is published, because checks failed", printed)
        self.make("clone/build/venv/bin/python", self.PYTHON)
        self.make("clone/build/release/bin/price_of_promise", f"#!/bin/sh\necho >>{self.root}/experiments/setup\n")
        (self.root / "experiments/price_of_promise.cpp").touch()
        self.committed()
        code, printed = self.run_with("--publish", "epyc")
        self.assertEqual((code, self.published()), (1, {}))
        self.assertIn("data_frames.jsonl does not name", printed)


if __name__ == "__main__":
    unittest.main()
