"""What others say of the programs that were recorded: beside the plan and the GPU's own peak, as a table.

  python peers.py tests/fixtures/plan/h200 [NAME…]

  parameters   their bytes, as the program makes them: what "will the model fit" comes down to
  accelerate   what `accelerate estimate-memory` prints for training with Adam: four times the parameters in float32 (commands/estimate.py)
  MemTracker   torch.distributed._tools.mem_tracker of PyTorch, with fake tensors: the program's own code under FakeTensorMode, its modules and
               optimizers tracked. It needs lines in the program; they are put in here from outside, and "cuda" is read as "cpu", because a build
               without CUDA makes no fake tensors for it; .item() gives 1, and a module is not moved. "fails": it ends with an error, which is named.

Runs without a GPU, each program in a process of its own.
"""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_inside(program):
    """In the process of one program: prints a line of JSON."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    found, tracker = {"modules": []}, MemTracker()
    original = torch.nn.Module.__call__

    def first_call(module, *args, **kwargs):
        """The outermost module that is called is the model."""
        if not any(module is known for known in found["modules"]) and not found.get("inside"):
            found["modules"].append(module)
            tracker.track_external(module)
        outermost, found["inside"] = not found.get("inside"), True
        try:
            return original(module, *args, **kwargs)
        finally:
            if outermost:
                found["inside"] = False

    torch.nn.Module.__call__ = first_call
    made = torch.optim.Optimizer.__init__

    def with_tracker(optimizer, *args, **kwargs):
        made(optimizer, *args, **kwargs)
        tracker.track_external(optimizer)
        optimizer.register_step_post_hook(lambda *_: tracker.reset_mod_stats())  # it is asked for between steps

    torch.optim.Optimizer.__init__ = with_tracker
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_args, **_options: self
    torch.Tensor.item = lambda _self: 1.0  # a fake tensor has no value, and most programs print one
    to = torch.nn.Module.to  # a module of fake tensors cannot be moved, and is where it should be
    torch.nn.Module.to = lambda self, *given, **named: (
        self if given == ("cpu",) and not named else to(self, *given, **named)
    )
    source = (
        Path(program)
        .read_text()
        .replace('"cuda"', '"cpu"')
        .replace("cuda:0", "cpu")
        .replace("torch.cuda.synchronize()", "pass")
    )
    sys.path.insert(0, os.path.dirname(program))
    sys.argv = [program]
    answer = {}
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), tracker:
            exec(compile(source, program, "exec"), {"__name__": "__main__", "__file__": program})
    except BaseException as problem:  # what it says of itself
        answer["failed"] = f"{type(problem).__name__}: {str(problem).splitlines()[0][:80] if str(problem) else ''}"
    try:
        peaks = tracker.get_tracker_snapshot("peak")
        answer["peak"] = max((sum(kinds.values()) // 2 for kinds in peaks.values()), default=0)
    except Exception as problem:
        answer.setdefault("failed", str(problem)[:80])
    seen = {}
    for module in found["modules"]:
        for parameter in module.parameters():
            seen[id(parameter)] = parameter
    answer["parameter_bytes"] = sum(p.numel() * p.element_size() for p in seen.values())
    answer["parameters"] = sum(p.numel() for p in seen.values())
    print("\n" + json.dumps(answer))


def main():
    recorded = Path(sys.argv[1])
    print("| program | real allocated | parameters | accelerate, training with Adam | MemTracker |")
    print("|---|---|---|---|---|")
    for path in sorted(recorded.glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        with gzip.open(path, "rt") as file:
            real = json.load(file)["peak_allocated"]
        done = subprocess.run(
            [sys.executable, __file__, "--inside", str(HERE / "programs" / f"{name}.py")],
            capture_output=True,
            text=True,
            timeout=600,
        )
        lines = done.stdout.strip().splitlines()
        try:
            answer = json.loads(lines[-1])
        except (IndexError, ValueError):
            print(
                f"| {name} | {real:,} | | | fails: {done.stderr.strip().splitlines()[-1][:90] if done.stderr else done.returncode} |",
                flush=True,
            )
            continue

        def off(value):
            return f"{value:,} ({100 * (value / real - 1):+.0f} %)" if value else "–"

        tracked = f"fails: {answer['failed']}" if "failed" in answer else off(answer["peak"])
        print(
            f"| {name} | {real:,} | {off(answer['parameter_bytes'])} | {off(16 * answer['parameters'])} | {tracked} |",
            flush=True,
        )


if sys.argv[1:2] == ["--inside"]:
    run_inside(sys.argv[2])
else:
    main()
