"""CUDA extensions that are compiled while the program runs: nothing is compiled, and what their functions give is read from the sources or told."""

import pytest
from dry import T4

pytest.importorskip("torch")

PROGRAM = '''
        import torch
        from torch.utils.cpp_extension import {what}
        CUDA = """
        #include <torch/extension.h>
        __global__ void kernel(float* x) {{ x[0] = 1; }}
        void scale_(torch::Tensor x, double by) {{ kernel<<<1, 1>>>(x.data_ptr<float>()); }}
        torch::Tensor scaled(torch::Tensor x) {{ return x; }}
        PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
          m.def("scale_", &scale_, "in place");
          m.def("scaled_by_two", &scaled);
        }}
        """
        x = torch.ones(1 << 20, device="cuda")
{use}
'''
FILES = """
        open("kernels.cu", "w").write(CUDA)
        module = load(name="own_kernels", sources=["kernels.cu"])
"""
INLINE = """
        module = load_inline(name="own_kernels", cpp_sources="void scale_(torch::Tensor x, double by); torch::Tensor scaled_by_two(torch::Tensor x);",
                             cuda_sources="void scale_(torch::Tensor x, double by) {} torch::Tensor scaled_by_two(torch::Tensor x) { return x; }", functions=["scale_", "scaled_by_two"])
"""
WAYS = {"load": FILES, "load_inline": INLINE}


@pytest.mark.parametrize("what", WAYS)
def test_a_function_that_returns_nothing_takes_nothing(dry_run, tmp_path, monkeypatch, what):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    ran = dry_run(PROGRAM.format(what=what, use=WAYS[what] + "        module.scale_(x, 2.0)\n        y = x * 2\n"))
    assert ran.status == 0, ran.err
    assert [note["verdict"] for note in ran.notes() if note["kind"] == "instead"] == ["with a stand-in for own_kernels"]
    assert ran.summary["peak_allocated"] == 2 << 22


RETURNS = "        y = module.scaled_by_two(x)\n        print(tuple(y.shape), y.device.type)\n"


@pytest.mark.parametrize("what", WAYS)
def test_one_that_returns_a_tensor_ends_the_plan(dry_run, tmp_path, monkeypatch, what):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    ran = dry_run(PROGRAM.format(what=what, use=WAYS[what] + RETURNS))
    assert "own_kernels::scaled_by_two is CUDA code that the program compiles" in ran.summary["unplanned"]["text"]


@pytest.mark.parametrize("what", WAYS)
def test_one_that_returns_a_tensor_can_be_told(dry_run, tmp_path, monkeypatch, what):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    told = [{"op": "own_kernels::scaled_by_two", "scratch_bytes": 1 << 20, "results": [{"like": 0}]}]
    ran = dry_run(PROGRAM.format(what=what, use=WAYS[what] + RETURNS), gpu=T4, op_memory=told)
    assert ran.status == 0 and ran.out.strip() == "(1048576,) cuda", ran.err
    assert ran.summary["peak_allocated"] == (2 << 22) + (1 << 20)


def test_a_name_that_it_does_not_have_is_the_programs_mistake(dry_run, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    ran = dry_run(PROGRAM.format(what="load", use=FILES + "        module.skale_(x)\n"))
    assert ran.status != 0 and ran.summary["unplanned"] is None and ran.summary["exception"]["type"] == "AttributeError"


def test_operators_that_it_registers_are_known_by_their_schemas(dry_run, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    ran = dry_run(
        """
        import torch
        from torch.utils.cpp_extension import load
        open("ops.cu", "w").write('TORCH_LIBRARY(own_ops, m) {\\n  m.def("twice(Tensor x) -> Tensor");\\n}\\n')
        load(name="own_ops_library", sources=["ops.cu"], is_python_module=False)
        torch.ops.own_ops.twice(torch.ones(4, device="cuda"))
        """
    )
    assert "own_ops::twice is not known to a dry run" in ran.summary["unplanned"]["text"]
