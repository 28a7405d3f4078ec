"""The same with the real PyTorch. Its CPU build has no CUDA to initialise, so where that moment matters the call that waits for it is made by hand."""

import subprocess

import pytest

from test_shim import OWN, both, run

pytest.importorskip("torch")

CUDA_BEGINS = "[call() for call, _ in torch.cuda._queued_calls if call.__module__.startswith('faultline')]\n"
MARKS = r"""
#include <stdint.h>
#include <stdio.h>
void faultline_mark_step(const char* name, uint64_t number) { printf("step %s %llu\n", name, (unsigned long long)number); fflush(stdout); }
void faultline_mark_begin(const char* name) { printf("begin %s\n", name); fflush(stdout); }
void faultline_mark_end(const char* name) { printf("end %s\n", name); fflush(stdout); }
"""


@pytest.fixture(scope="session")
def marking_library(tmp_path_factory):
    """Stands where the capture library does: preloaded, with its three functions."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "marks.c").write_text(MARKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libmarks.so", folder / "marks.c"], check=True)
    return str(folder / "libmarks.so")


def test_importing_torch_is_seen_once_and_other_frameworks_are_waited_for(tmp_path):
    ran = both(
        tmp_path,
        """
        import os, sys
        before = len(sys.meta_path)
        import torch
        assert len(sys.meta_path) == before
        print(torch.ones(3).sum().item(), torch.cuda.is_available(), torch.cuda.is_initialized())
    """,
    )
    assert ran.process["frameworks"]["torch"] and ran.process["torch"]["initialized_ns"] is None and ran.notes == ""
    assert not [name for name in ran.files if name.endswith(".pickle")]


def test_torch_imported_in_a_thread(tmp_path):
    ran = both(
        tmp_path,
        """
        import threading
        def work():
            import torch
            print(torch.zeros(2).tolist())
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """,
    )
    assert ran.process["frameworks"]["torch"]


def test_the_history_functions_own_errors_look_the_same(tmp_path):
    ran = both(
        tmp_path,
        """
        import inspect, torch, traceback
        print(inspect.signature(torch.cuda.memory._record_memory_history), torch.cuda.memory._record_memory_history.__name__)
        for arguments in ({"enabled": "all", "nonsense": 3}, {"enabled": "all", "stacks": "python"}):
            try:
                torch.cuda.memory._record_memory_history(**arguments)
            except Exception:
                traceback.print_exc()
    """,
    )
    assert "nonsense" in ran.err and "the program switches PyTorch's memory history itself" in ran.notes


def test_steps_and_backward_arrive_at_the_capture_library(tmp_path, marking_library):
    ran = run(
        tmp_path,
        f"""
        import torch
        {CUDA_BEGINS}
        model = torch.nn.Linear(4, 4)
        for kind in (torch.optim.SGD, torch.optim.AdamW):
            optimizer = kind(model.parameters(), 0.1)
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        torch.autograd.grad(model(torch.ones(2, 4)).sum(), model.weight)
    """,
        LD_PRELOAD=marking_library,
    )
    assert ran.status == 0, ran.err
    assert ran.out.splitlines() == [
        "begin backward",
        "end backward",
        "step optimizer.step 0",
        "begin backward",
        "end backward",
        "step optimizer.step 1",
        "begin backward",
        "end backward",
    ]


def test_the_library_is_found_by_its_path_only_where_it_is_loaded(tmp_path, marking_library):
    program = f"""
        import ctypes, sys, torch
        if sys.argv[1:]:
            ctypes.CDLL(sys.argv[1])
        {CUDA_BEGINS}
        torch.ones(1, requires_grad=True).sum().backward()
    """
    assert run(tmp_path, program, FAULTLINE_CAPTURE_LIBRARY=marking_library).out == ""
    assert (
        run(tmp_path, program, marking_library, FAULTLINE_CAPTURE_LIBRARY=marking_library).out
        == "begin backward\nend backward\n"
    )


def test_marks_end_and_tracebacks_are_the_same_when_backward_fails(tmp_path, marking_library):
    program = f"""
        import os, torch, traceback, warnings
        if "FAULTLINE_RUN_FOLDER" in os.environ:
            {CUDA_BEGINS}
        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 2
            @staticmethod
            def backward(context, gradient):
                raise ValueError("in backward")
        x = torch.ones(3, requires_grad=True)
        for attempt in (lambda: Fails.apply(x).sum().backward(), lambda: torch.ones(2).sum().backward(), lambda: torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True))):
            try:
                attempt()
            except Exception:
                traceback.print_exc()
        (x * x).sum().backward(create_graph=True)
        Fails.apply(x).sum().backward()
    """
    without, ran = run(tmp_path, program, watched=False), run(tmp_path, program, LD_PRELOAD=marking_library)
    assert (
        (ran.status, ran.err) == (without.status, without.err)
        and "in backward" in ran.err
        and "_engine_run_backward" in ran.err
    )
    assert ran.out.count("begin backward") == ran.out.count("end backward") >= 4
    assert ran.process["exception"]["at"]["line"] == 12 and not any(
        frame["file"].startswith(OWN) for frame in ran.process["exception"]["frames"]
    )


def test_a_training_step_compiles_into_the_same_graphs(tmp_path, marking_library):
    program = f"""
        import os, torch
        if "FAULTLINE_RUN_FOLDER" in os.environ:
            {CUDA_BEGINS}
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.AdamW(model.parameters(), 0.1)
        @torch.compile(backend="eager", fullgraph=True)
        def forward(x):
            return model(x).square().sum()
        @torch.compile(backend="eager")
        def update():
            optimizer.step()
        for _ in range(3):
            optimizer.zero_grad()
            loss = forward(torch.ones(2, 4))
            loss.backward()
            update()
            print("said", loss.item())
        print("said", {{name: dict(torch._dynamo.utils.counters[name]) for name in ("stats", "graph_break")}})
    """
    without, ran = run(tmp_path, program, watched=False), run(tmp_path, program, LD_PRELOAD=marking_library)
    assert without.status == ran.status == 0, ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("said")] == without.out.splitlines()
    assert ran.out.count("begin backward") == 3


def test_a_forked_child_takes_no_snapshot_of_its_parents_memory_and_marks_nothing(tmp_path, marking_library):
    ran = run(
        tmp_path,
        f"""
        import os, sys, torch
        {CUDA_BEGINS}
        child = os.fork()
        torch.ones(1, requires_grad=True).sum().backward()
        if child:
            os.waitpid(child, 0)
    """,
        LD_PRELOAD=marking_library,
    )
    assert ran.out == "begin backward\nend backward\n"
    parent, child = sorted(ran.processes, key=lambda known: known["start_ns"])
    assert parent["torch"]["initialized_ns"] and child["torch"]["initialized_ns"] is None
    assert (
        ran.notes.count("PyTorch gave no snapshot of its memory") == 1 and f"notes-{child['pid']}.txt" not in ran.files
    )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_workers_run_as_without_us(tmp_path, method):
    ran = both(
        tmp_path,
        f"""
        import torch
        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return torch.tensor(index * index)
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context={method!r})
            print([batch.tolist() for batch in loader])
    """,
    )
    assert ran.out == "[[0, 1, 4, 9], [16, 25, 36, 49]]\n" and ran.notes == ""


def test_a_child_of_torch_multiprocessing_that_fails_is_told_as_without_us(tmp_path):
    ran = both(
        tmp_path,
        """
        import torch
        def work(rank):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if __name__ == "__main__":
            try:
                torch.multiprocessing.spawn(work, nprocs=1)
            except Exception as problem:
                print(type(problem).__name__)
    """,
    )
    assert ran.out == "ProcessRaisedException\n"


def test_what_a_build_without_a_history_cannot_do_is_noted(tmp_path):
    ran = run(tmp_path, f"import torch\n{CUDA_BEGINS}")
    assert ran.status == 0 and "records no memory history here" in ran.notes and ran.process["torch"]["history"] is None
    assert (
        "records no memory history"
        not in run(
            tmp_path, f"import torch\n{CUDA_BEGINS}", folder=tmp_path / "left2", options={"history": False}
        ).notes
    )
