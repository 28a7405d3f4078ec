#!/usr/bin/env python3
"""Writes a snapshot with PyTorch's own C++ pickler: python3 scripts/device/cpp_pickle.py OUT_FILE (needs a compiler and a GPU)."""

import sys

import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <torch/csrc/cuda/memory_snapshot.h>
py::bytes pickled() { return py::bytes(torch::cuda::_memory_snapshot_pickled()); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("pickled", &pickled); }
"""
module = load_inline("faultline_cpp_pickle", cpp_sources=[source], with_cuda=True, functions=None)
torch.cuda.memory._record_memory_history(max_entries=10000, stacks="python")
kept = []
for i in range(40):
    kept.append(torch.empty(300_000 + i * 7777, device="cuda"))
    if i % 3 == 0:
        kept.pop(0)
with open(sys.argv[1], "wb") as f:
    f.write(module.pickled())
print("wrote", sys.argv[1])
