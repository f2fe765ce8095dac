"""The examples of sums in one's own kernels: one result each, which is that of calls; and what the guide quotes."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

np = pytest.importorskip("numpy")

import samesum  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]


def example(name: str, folder: str = "lib/python/examples"):
    specification = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def torch_for_triton():
    how = "run it by 'pip install torch triton && python -m pytest tests/python/test_own_kernels.py'"
    torch = pytest.importorskip("torch", reason=how)
    pytest.importorskip("triton", reason=how)
    return torch


def test_molecular_forces_have_the_same_bits_for_any_order_of_pairs(capsys):
    results, of_floats, _ = example("molecular_forces").main(orders=5)
    assert results == 1 and of_floats > 1 and "floats gave" in capsys.readouterr().out


def test_molecular_forces_have_the_same_bits_on_a_gpu():
    how = "needs PyTorch, a GPU and a samesum that was built with CUDA"
    torch = pytest.importorskip("torch", reason=how)
    if not (torch.cuda.is_available() and samesum._core.has_cuda):
        pytest.skip(how)
    module = example("molecular_forces")
    *_, total = module.main(orders=1)
    position = np.random.default_rng(1).random((40, 3))
    pairs = np.triu_indices(40, 1)
    on_gpu, _ = module.forces(*(torch.from_numpy(a).cuda() for a in (position, *pairs)))
    assert on_gpu.cpu().numpy().tobytes() == total.tobytes()


def test_a_weighted_histogram_has_one_result_for_any_threads(capsys):
    pytest.importorskip("numba", reason="run it by 'pip install numba && pytest tests/python/test_own_kernels.py'")
    results, of_floats, histogram = example("weighted_histogram").main(runs=5)
    random = np.random.default_rng(1)
    bins, weights = random.integers(0, 50, 20_000), random.random(20_000, np.float32)
    expected = samesum.scatter_add(np.zeros(50, np.float32), bins, weights, method="fixed_point", grid=-30)
    assert results == 1 and of_floats > 1 and "cells 1" in capsys.readouterr().out
    assert histogram.tobytes() == expected.tobytes()


def test_splatted_points_give_one_image_and_gather_its_gradient(capsys):
    torch = torch_for_triton()
    module = example("splatting")
    on_gpu = torch.cuda.is_available()
    results, of_floats = module.main(runs=20 if on_gpu else 2, n=20_000 if on_gpu else 300)
    assert results == 1 and "cells 1" in capsys.readouterr().out and (of_floats > 1 or not on_gpu)
    x, y, weight = module.points("cuda" if on_gpu else "cpu", 300)
    image = module.Splat.apply(x, y, weight)
    assert torch.allclose(image, module.Splat.apply(x, y, weight, False), atol=1e-5)
    assert torch.isclose(image.sum(), weight.sum(), rtol=1e-5)
    (image * torch.arange(float(module.SIZE), device=image.device)).sum().backward()
    assert torch.allclose(weight.grad, x, rtol=1e-5, atol=1e-4)  # d(sum of column times pixel) / d(weight) = x


def test_the_gradient_of_an_embedding_is_that_of_scatter_add(capsys):
    torch = torch_for_triton()
    module = example("embedding_gradient")
    on_gpu = torch.cuda.is_available()
    results, of_floats, token, gradient = module.main(runs=20 if on_gpu else 2, n=4096 if on_gpu else 100)
    assert results == 1 and "cells 1" in capsys.readouterr().out and (of_floats > 1 or not on_gpu)
    found = module.embedding_gradient(token, gradient, 50).cpu().numpy()
    expected = samesum.scatter_add(np.zeros((50, 64), np.float32), token.cpu().numpy(), gradient.cpu().numpy())
    assert found.tobytes() == expected.tobytes()


def compile_kernels():
    """Compiles the kernels of Triton in the examples and in the experiment for GPUs of compute capability 9.0."""
    import torch
    import triton

    import samesum.triton

    on_grid, exact = (
        samesum.triton.cells(samesum.cells(9, "float32", like=torch.empty(0), grid=grid)) for grid in (-30, None)
    )
    floats, ints, n = "*fp32", "*i32", "i32"
    calls = {
        "splatting": [
            ("gather", floats, floats, floats, n, floats, 64, 256),
            *(("splat", floats, floats, floats, n, floats, on_grid, 64, 256, is_exact) for is_exact in (True, False)),
        ],
        "embedding_gradient": [("add_rows", "*i64", floats, exact, n, 64, 16)],
        "own_kernels": [
            *(("triton_floats", ints, floats, floats, n, 512, order) for order in ("relaxed", "acq_rel")),
            *(("triton_cells", ints, floats, cells, n, 512) for cells in (on_grid, exact)),
        ],
    }
    sys.path.append(str(ROOT / "experiments"))
    of_examples = {file.stem for file in (ROOT / "lib/python/examples").glob("*.py") if "@triton" in file.read_text()}
    assert {*calls} == of_examples | {"own_kernels"}
    for name, all_arguments in calls.items():
        module = example(name, "experiments" if name == "own_kernels" else "lib/python/examples")
        kernels = {k: v for k, v in vars(module).items() if isinstance(v, triton.JITFunction)}
        assert {*kernels} == {kernel for kernel, *_ in all_arguments}
        for kernel, *arguments in all_arguments:
            signature, constants = {}, {}
            for place, (parameter, argument) in enumerate(zip(kernels[kernel].params, arguments)):
                if parameter.is_constexpr:
                    signature[parameter.name], constants[place,] = "constexpr", argument
                elif isinstance(argument, str):
                    signature[parameter.name] = argument
                else:  # cells: words, and constants
                    signature[parameter.name] = type(argument)("*i64", *["constexpr"] * len(argument[1:]))
                    constants |= {(place, field): value for field, value in enumerate(argument[1:], 1)}
            source = triton.compiler.ASTSource(kernels[kernel], signature, constants)
            target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
            assert f".entry {kernel}(" in triton.compile(source, target=target).asm["ptx"]


def test_kernels_of_triton_compile_for_a_gpu(tmp_path):
    torch_for_triton()
    package = str(pathlib.Path(samesum.__file__).parents[1])
    compiled = subprocess.run(
        [sys.executable, "-c", "import test_own_kernels; test_own_kernels.compile_kernels()"],
        cwd=ROOT / "tests/python",
        env={**os.environ, "PYTHONPATH": package, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert compiled.returncode == 0, compiled.stderr


def test_a_raw_kernel_of_cupy_has_the_bits_of_scatter_add(capsys):
    cupy = pytest.importorskip("cupy", reason="needs CuPy and a GPU")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("CuPy finds no GPU")
    module = example("raw_kernel")
    results, of_floats, i, x = module.main()
    assert results == 1 and of_floats > 1 and "cells 1" in capsys.readouterr().out
    expected = samesum.scatter_add(np.zeros(50, np.float32), i.get(), x.get(), method="fixed_point", grid=-40)
    assert module.sums(i, x, 50).get().tobytes() == expected.tobytes()


def test_the_guide_quotes_kernels_that_are_tested():
    tested = "\n".join(
        file.read_text() for folder in ("lib/python/examples", "tests/python") for file in (ROOT / folder).glob("*.py")
    )
    guide = (ROOT / "lib/guides/own_kernels.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", guide, re.M | re.S)
    parts = [part.strip("\n") for block in blocks for part in block.split("\n\n\n")]
    found = [part in tested or textwrap.indent(part, "    ") in tested for part in parts]
    assert len(parts) > 5 and [part for part, is_tested in zip(parts, found) if not is_tested] == []
