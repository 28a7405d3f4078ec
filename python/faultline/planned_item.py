"""Tests that are dry-run: what the pytest plugin does with a test that has one of its marks.

The test's fixtures and its body run in a copy of this process that is a dry run (api.py), so that fixtures may make models and tensors on the GPU, and nothing of it is seen
by other tests. Where the machine has a GPU the test is run for real as well, after its plan. What the copy has to tell comes back through memory that both share.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import sys

import pytest

from ._file_owner import is_library

_MOST_OUTPUT = 20_000
_LINES_TOLD = 5
_WARM_UP = 2  # runs in which caches are made that stay


class PlannedItems:
    """The hooks; registered only where a test is marked."""

    def __init__(self, limits: dict):
        self._limits = limits

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        if item in self._limits:
            _Planned(item, self._limits[item]).take_over()
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        planned = getattr(item, "_faultline", None)
        if planned is not None and call.when == "call":
            report = outcome.get_result()
            if planned.own_error and report.failed:
                report.longrepr = planned.own_error
        if planned is not None and call.when == "teardown":
            planned.give_back()


class _Planned:
    def __init__(self, item, limits: list):
        self.item, self.limits = item, limits
        self.own_error = ""  # how pytest shows an error of the test itself, which was raised in the copy
        self._is_set_up = False

    def take_over(self) -> None:
        item = self.item
        self.setup, self.runtest, self.teardown = item.setup, item.runtest, item.teardown
        item.setup, item.runtest, item.teardown = lambda: None, self._run, self._tear_down
        item._faultline = self

    def give_back(self) -> None:
        for name in ("setup", "runtest", "teardown"):
            self.item.__dict__.pop(name, None)
        self.item._faultline = None

    def _tear_down(self) -> None:
        if self._is_set_up:
            self.teardown()

    def _run(self) -> None:
        for name, limit in self.limits:
            (self._judge_memory if name == "gpu_memory" else self._judge_leak)(limit)
        if _machine_has_gpu():
            self._is_set_up = True
            self.setup()
            self.runtest()

    # --- the two limits

    def _judge_memory(self, limit: dict) -> None:
        report, told = self._planned(limit, 1, limit["budget"])
        plan = report["plan"]
        budget, gpu = plan.get("budget") or {}, (plan.get("gpu") or {}).get("name", "")
        on = f" on {gpu}" if gpu else ""
        if plan["verdict"] == "does-not-fit":
            self._tell(f"does not fit on {gpu}")
            missing = plan["needed"] - plan["gpu"]["capacity"]
            place = _place((plan.get("failure") or {}).get("location"))
            fail(
                f"needs {_words(plan['needed'])} of GPU memory, and {gpu} has {_words(plan['gpu']['capacity'])}"
                + (f": {_words(missing)} too little" if missing > 0 else "")
                + (f"\n  fails at {place}" if place else ""),
                _holders(report),
            )
        if budget.get("over"):
            least = "at least " if budget["at_least"] else ""
            self._tell(f"{least}{_words(budget['needed'])}{on}, over the budget of {_words(budget['bytes'])}")
            text = f"needs {least}{_words(budget['needed'])} of GPU memory{on}, {least}{_words(budget['over'])} over its budget of {_words(budget['bytes'])}"
            self._end_as_the_test_did(told, plan, f"\nBeside that it {text}.")
            fail(text, _holders(report))
        self._end_as_the_test_did(told, plan)
        if _uses_no_gpu(plan):
            self._tell("no GPU memory")
            self.item.warn(pytest.PytestWarning("marked gpu_memory, but it used no GPU: there was nothing to plan"))
            return
        if why := budget.get("why_not") or _why_unsure(plan):
            self._tell("not judged")
            fail(f"its GPU memory could not be judged: {why}", _holders(report))
        self._tell(f"{_words(budget['needed'])}{on}, of a budget of {_words(budget['bytes'])}")

    def _judge_leak(self, limit: dict) -> None:
        report, told = self._planned(limit, limit["repeat"])
        plan = report["plan"]
        if plan["verdict"] == "does-not-fit":
            fail(
                f"run {limit['repeat']} times, the test ran out of the memory of {plan['gpu']['name']}",
                _holders(report),
            )
        self._end_as_the_test_did(told, plan)
        if _uses_no_gpu(plan):
            self.item.warn(pytest.PytestWarning("marked no_gpu_leak, but it used no GPU: there was nothing to plan"))
            return
        if why := _why_unsure(plan):
            fail(f"whether it leaks GPU memory could not be judged: {why}", [])
        held = told["held"]
        if grows([sum(lines.values()) for lines in held]):
            each = _growth([sum(lines.values()) for lines in held])
            self._tell(f"keeps {_words(each)} more with each run")
            lines = {line for lines in held for line in lines}
            kept = [(_growth(sizes), line) for line in lines if grows(sizes := [one.get(line, 0) for one in held])]
            known = [f"{_words(size)} each, made at {line}" for size, line in sorted(kept, reverse=True) if line]
            fail(
                f"keeps GPU memory: {_words(each)} more after each of {len(held)} runs of the test",
                known or _holders(report, at_least=len(held) - _WARM_UP),
                "kept" if known else "lines with as many tensors at the peak",
            )
        self._tell(f"{_words(sum(held[-1].values()) if held else 0)} held after {limit['repeat']} runs, no growth")

    # --- the dry run

    def _planned(self, limit: dict, times: int, budget: str | None = None) -> tuple[dict, dict]:
        from . import api

        with open(os.memfd_create("faultline-test"), "r+b", buffering=0) as shared:
            body = _Body(self, times, shared)
            try:
                plan = api.plan(
                    body, limit["gpu"], real=limit["real"], steps=0, seconds=limit["seconds"], budget=budget
                )
            except (ValueError, OSError) as problem:
                fail(f"its GPU memory could not be planned: {problem}", [])
            shared.seek(0)
            content = shared.read()
        told = pickle.loads(content) if content else {"outcome": "", "output": "", "held": []}
        if told["output"]:
            self.item.add_report_section("call", "stdout", told["output"])
        return plan.report, told

    def _end_as_the_test_did(self, told: dict, plan: dict, more: str = "") -> None:
        """Its own error is what is shown, as pytest shows it."""
        if told["outcome"] in ("skip", "xfail"):
            getattr(pytest, told["outcome"])(told["reason"])
        if told["outcome"] == "":
            fail("its dry run did not come to the end of the test: the process was ended in it", [])
        if told["outcome"] != "error":
            return
        self.own_error = told["shown"] + "\n\nThis was raised in a dry run of the test by Faultline, without a GPU."
        self.own_error += more
        if plan.get("unplanned") and not _uses_no_gpu(plan):
            self.own_error += f"\nNot all of the test could be planned: {_why_unsure(plan)}."
        if plan.get("stand_in_line"):
            self.own_error += f"\nBefore it, the test read a number that a dry run does not compute ({plan['stand_in_line']}): real=True in the mark computes it, on the CPU."
        if (torch := sys.modules.get("torch")) and torch.cuda.is_initialized():
            self.own_error += "\nCUDA had begun in this process before: tensors that were made on the real GPU by then (in a module, by a library's fixture) cannot be used in a dry run."
        if told["exception"] is not None:
            raise pickle.loads(told["exception"])
        pytest.fail(told["shown"], pytrace=False)

    def _tell(self, words: str) -> None:
        self.item.user_properties.append(("faultline", words))


class _Body:
    """The function that is planned: the test with its fixtures, so many times. What it does happens in the copy of the process."""

    def __init__(self, planned: _Planned, times: int, shared):
        self._planned, self._times, self._shared = planned, times, shared
        self.__name__ = planned.item.name

    def __call__(self) -> None:
        item, output = self._planned.item, io.StringIO()
        told = {"outcome": "passed", "held": [], "output": ""}
        try:
            with contextlib.redirect_stdout(output):
                _make_fixtures_anew()
                self._planned.setup()
                for _ in range(self._times):
                    self._planned.runtest()
                    self._raise_what_unittest_caught()
                    if self._times > 1:
                        told["held"].append(_held_by_line())
        except BaseException as problem:
            told.update(_as_told(item, problem))
            raise
        finally:
            told["output"] = output.getvalue()[-_MOST_OUTPUT:]
            self._write(told)
            with contextlib.suppress(BaseException):  # what a fixture does at its end is for the real run
                item.session._setupstate.teardown_exact(_Rest(item))

    def _raise_what_unittest_caught(self) -> None:
        caught = self._planned.item.__dict__.pop("_excinfo", None)
        if caught:
            raise caught[0].value

    def _write(self, told: dict) -> None:
        content = pickle.dumps(told)
        os.ftruncate(self._shared.fileno(), 0)
        os.pwrite(self._shared.fileno(), content, 0)


class _Rest:
    """For pytest, a test that comes next and has all that this one has but itself: only what is this test's own is torn down."""

    def __init__(self, item):
        self._chain = item.listchain()[:-1]

    def listchain(self) -> list:
        return self._chain


def _make_fixtures_anew() -> None:
    """In the copy: what an earlier test got from the program's own fixtures, without a GPU or for a real one, says nothing of this one ("cpu", a skip, a failure)."""
    from _pytest.fixtures import FixtureDef

    execute, met = FixtureDef.execute, set()

    def faultline(definition, *args, **kwargs):
        file = getattr(getattr(definition.func, "__code__", None), "co_filename", "")
        is_setup = definition.argname.startswith(("_xunit_setup", "_unittest_set"))  # of a module or class
        if id(definition) not in met and (is_setup or file and not is_library(file)):
            definition.cached_result = None
            getattr(definition, "_finalizers", []).clear()  # what an earlier test had is not this copy's to end
        met.add(id(definition))
        return execute(definition, *args, **kwargs)

    FixtureDef.execute = faultline


def _as_told(item, problem: BaseException) -> dict:
    if isinstance(problem, pytest.skip.Exception):
        return {"outcome": "skip", "reason": str(problem.msg or "")}
    if type(problem).__module__.startswith("faultline.") or isinstance(problem, SystemExit) and _is_stopped():
        return {"outcome": "not judged"}  # the plan has its reason
    from .plan.unplannable import Unplannable, of_lost_threads

    if lost := of_lost_threads(problem):
        Unplannable(lost)
        return {"outcome": "not judged"}
    if isinstance(problem, pytest.xfail.Exception):
        return {"outcome": "xfail", "reason": str(problem.msg or "")}
    exception = None
    with contextlib.suppress(Exception):
        pickled = pickle.dumps(problem)
        pickle.loads(pickled)
        exception = pickled
    try:
        shown = str(
            item.repr_failure(pytest.ExceptionInfo.from_exc_info((type(problem), problem, problem.__traceback__)))
        )
    except Exception:
        shown = f"{type(problem).__name__}: {problem}"
    return {"outcome": "error", "exception": exception, "shown": shown}


def _is_stopped() -> bool:
    """By the dry run, whose time is over."""
    from .plan import dry_run_session

    return bool(getattr(dry_run_session.current(), "stopped", None))


def _held_by_line() -> dict[str, int]:
    """In the copy: bytes of the GPU that tensors hold now, by the line of the program that made them."""
    from .plan import dry_run_session

    gc.collect()
    session = dry_run_session.current()
    memory = getattr(session, "memory", None)
    if memory is None:  # JAX or TensorFlow: its pool knows how much is held, and no line
        device = getattr(session, "device", None)
        return {"": device.stats().allocated_bytes} if device is not None else {}
    from .plan.older_torch import notice_deaths

    notice_deaths()
    held: dict[str, int] = {}
    for record in list(memory.records.values()):
        if record.allocation:
            line = _line_of(session, record.stack)
            held[line] = held.get(line, 0) + record.size_bytes
    return held


def _line_of(session, stack: int) -> str:
    lines = session.holders._lines(stack)
    return os.path.relpath(lines[0]) if lines else ""


def grows(sizes: list[int]) -> bool:
    """Run after run, up to the last: in both halves of what comes after the first runs, and never back."""
    sizes = sizes[_WARM_UP - 1 :]
    steps = [after - before for before, after in zip(sizes, sizes[1:])]
    half = len(steps) // 2
    return (
        bool(steps)
        and min(steps) >= 0
        and 2 * sum(step > 0 for step in steps) >= len(steps)
        and any(step > 0 for step in steps[:half])
        and any(step > 0 for step in steps[-2:])
    )


def _growth(sizes: list[int]) -> int:
    return (sizes[-1] - sizes[_WARM_UP - 1]) // (len(sizes) - _WARM_UP)


def _uses_no_gpu(plan: dict) -> bool:
    return plan["verdict"] == "not-planned" and plan.get("unplanned", "").startswith("nothing was seen on the GPU")


def _why_unsure(plan: dict) -> str:
    if plan["verdict"] == "not-planned":
        line = plan.get("unplanned_line")
        return plan.get("unplanned", "it was not planned") + (f" ({line})" if line else "")
    if plan["verdict"] in ("program-error", "interrupted"):
        return "the dry run of the test did not come to its end"
    if plan["stopped"]:
        return f"the dry run was stopped {plan['stopped']}; seconds= in the mark gives it more time"
    if plan["verdict"] == "fits-until":
        return "its memory grows with every step"
    decided = [f"{note['verdict']}" for note in plan["notes"] if note["kind"] == "value" and note.get("verdict")]
    return f"it holds only {decided[0]}; real=True in the mark computes it" if decided else ""


def _machine_has_gpu() -> bool:
    """Asked only where there can be one: a framework that is asked may begin to use it."""
    if not any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))):
        return False
    if torch := sys.modules.get("torch"):
        return torch.cuda.is_available()
    return False


def _holders(report: dict, at_least: int = 0) -> list[str]:
    device = report["plan"].get("device", 0)
    holders = next((one["holders"] for one in report["devices"] if one["index"] == device), [])
    return [
        f"{_words(one['bytes'])}  {one['category']}  {place}"
        for one in holders
        if one["count"] >= at_least and (place := _place(one["location"]) or one["detail"])
    ]


def _place(location: dict | None) -> str:
    if not location or not location["file"]:
        return ""
    file = location["file"]
    below = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
    return f"{below}:{location['line']}"


def _words(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"


def fail(text: str, lines: list[str], label: str = "held at the peak") -> None:
    rows = "".join(f"\n    {line}" for line in lines[:_LINES_TOLD])
    more = f"\n    and {len(lines) - _LINES_TOLD} more lines" if len(lines) > _LINES_TOLD else ""
    pytest.fail(
        f"{text}" + (f"\n  {label}:{rows}{more}" if lines else "") + "\n(planned by Faultline, without a GPU)",
        pytrace=False,
    )
