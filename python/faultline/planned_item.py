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

from . import growth_of_runs
from ._file_owner import is_library
from .expected_failures import hear_expected
from .growth_of_runs import GROWS, UNCLEAR, WARM_UP
from .rule_names import OUT_OF_MEMORY

_MOST_OUTPUT = 20_000
_LINES_TOLD = 5


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
        if planned is not None and call.when in planned.own_errors:
            report = outcome.get_result()
            if report.failed:
                report.longrepr = planned.own_errors[call.when]
        if planned is not None and call.when == "teardown":
            planned.give_back()


class _Planned:
    def __init__(self, item, limits: list):
        self.item, self.limits = item, limits
        self.own_errors: dict[
            str, str
        ] = {}  # "call", "teardown": how pytest shows an error that was raised in the copy
        self._is_set_up = False
        self._bad_end: dict | None = None  # what a fixture raised at its end, in the copy

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
            self.own_errors.pop("teardown", None)  # for real is what counts
            self.teardown()
        elif self._bad_end is not None:
            _raise_again(self._bad_end)

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
                + (f"\n  fails at {place}" if place else "")
                + (f"\n  this holds only {why}" if (why := _decided(plan)) else ""),
                _holders(report),
            )
        if budget.get("over"):
            least = "at least " if budget["at_least"] else ""
            self._tell(f"{least}{_words(budget['needed'])}{on}, over the budget of {_words(budget['bytes'])}")
            text = f"needs {least}{_words(budget['needed'])} of GPU memory{on}, {least}{_words(budget['over'])} over its budget of {_words(budget['bytes'])}"
            self._end_as_the_test_did(told, plan, f"\nBeside that it {text}.")
            fail(text + (f"\n  this holds only {why}" if (why := _decided(plan)) else ""), _holders(report))
        self._end_as_the_test_did(told, plan)
        if went_on := _went_on_after(report, told):
            words, asked = went_on
            self._tell(f"{_words(budget['needed'])}{on}, after an out-of-memory that the test caught")
            fail(
                f"{words}: what it requested then is not in the {_words(budget['needed'])} that it needs{on}",
                asked,
                "asked for (pytest.raises around it says that this is meant)",
            )
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
            self._tell(f"does not fit on {plan['gpu']['name']}, run again and again")
            fail(
                f"run {len(told['held']) or limit['repeat']} times, the test ran out of the memory of {plan['gpu']['name']}",
                _holders(report),
            )
        self._end_as_the_test_did(told, plan)
        if went_on := _went_on_after(report, told):
            asked = "; ".join(went_on[1])
            self.item.warn(
                pytest.PytestWarning(
                    f"{went_on[0]}: whether what it requested then would be kept is not judged ({asked})"
                )
            )
        if _uses_no_gpu(plan):
            self._tell("no GPU memory")
            self.item.warn(pytest.PytestWarning("marked no_gpu_leak, but it used no GPU: there was nothing to plan"))
            return
        if why := _why_unsure(plan):
            self._tell("not judged")
            fail(f"whether it leaks GPU memory could not be judged: {why}", [])
        self._judge_growth(report, told["held"])

    def _judge_growth(self, report: dict, held: list[dict[str, int]]) -> None:
        sizes = [sum(lines.values()) for lines in held]
        verdict, runs, rise = growth_of_runs.judged(sizes), len(held), growth_of_runs.last_rise(sizes)
        if verdict == UNCLEAR:
            self._tell("not judged")
            more = _words(max(sizes) - sizes[WARM_UP - 1])
            fail(
                f"whether it leaks GPU memory could not be judged: after {runs} runs up to {more} more were held than after run {WARM_UP}, "
                f"the last of it since run {rise}, and not with any regularity; a larger repeat= in the mark may tell",
                [],
            )
        if verdict == GROWS:
            with_each = growth_of_runs.grows_with_each(sizes)
            divisor, each = (runs - WARM_UP, " each") if with_each else (1, "")
            more = _words(growth_of_runs.growth(sizes) // divisor)
            self._tell(f"keeps {more} more with each run" if with_each else f"keeps {more} more after {runs} runs")
            of_lines = {line: [one.get(line, 0) for one in held] for lines in held for line in lines}
            kept = [(growth_of_runs.growth(of), line) for line, of in of_lines.items() if _is_kept(of)]
            known = [
                f"{_words(size // divisor)}{each}, made at {line}" for size, line in sorted(kept, reverse=True) if line
            ]
            fail(
                f"keeps GPU memory: {more} more after each of {runs} runs of the test"
                if with_each
                else f"keeps GPU memory: {more} more after {runs} runs of the test than after run {WARM_UP}",
                known or _holders(report, at_least=runs - WARM_UP if with_each else 2),
                "kept" if known else "lines with as many tensors at the peak" if with_each else "held at the peak",
            )
        since = f" since run {rise}" if rise else ""
        self._tell(f"{_words(sizes[-1] if sizes else 0)} held after {runs} runs, no growth{since}")

    # --- the dry run

    def _planned(self, limit: dict, times: int, budget: str | None = None) -> tuple[dict, dict]:
        from . import _confine, api

        with open(os.memfd_create("faultline-test"), "r+b", buffering=0) as shared:
            body = _Body(self, times, shared)
            _confine.heard_through.add(shared.fileno())
            try:
                plan = api.plan(
                    body, limit["gpu"], real=limit["real"], steps=0, seconds=limit["seconds"], budget=budget
                )
            except (ValueError, OSError) as problem:
                fail(f"its GPU memory could not be planned: {problem}", [])
            finally:
                _confine.heard_through.discard(shared.fileno())
            shared.seek(0)
            content = shared.read()
        told = pickle.loads(content) if content else {"outcome": "", "output": "", "held": [], "expected": []}
        if told["output"]:
            self.item.add_report_section("call", "stdout", told["output"])
        if told.get("teardown") and self._bad_end is None:
            self._bad_end = told["teardown"]
            self.own_errors["teardown"] = _shown(self._bad_end, plan.report["plan"])
        return plan.report, told

    def _end_as_the_test_did(self, told: dict, plan: dict, more: str = "") -> None:
        """Its own error is what is shown, as pytest shows it."""
        if told["outcome"] in ("skip", "xfail"):
            getattr(pytest, told["outcome"])(told["reason"])
        if told["outcome"] == "":
            fail("its dry run did not come to the end of the test: the process was killed in it", [])
        if told["outcome"] != "error":
            return
        self.own_errors["call"] = _shown(told, plan, more)
        _raise_again(told)

    def _tell(self, words: str) -> None:
        self.item.user_properties.append(("faultline", words))


class _Body:
    """The function that is planned: the test with its fixtures, so many times. What it does happens in the copy of the process."""

    def __init__(self, planned: _Planned, times: int, shared):
        self._planned, self._times, self._shared = planned, times, shared
        self.__name__ = planned.item.name

    def __call__(self) -> None:
        __tracebackhide__ = True
        item, output, failed = self._planned.item, io.StringIO(), None
        told = {"outcome": "passed", "held": [], "output": "", "expected": []}
        hear_expected(told["expected"])
        try:
            with contextlib.redirect_stdout(output):
                _make_fixtures_anew()
                self._planned.setup()
                self._run(self._times, told["held"])
                if self._times > 1:
                    self._run(growth_of_runs.further_runs([sum(one.values()) for one in told["held"]]), told["held"])
        except BaseException as problem:
            told.update(_as_told(item, problem))
            failed = problem
        told["output"] = output.getvalue()[-_MOST_OUTPUT:]
        self._write(told)
        try:
            item.session._setupstate.teardown_exact(_Rest(item))
        except BaseException as problem:
            end = _as_told(item, problem)
            if end["outcome"] == "error" and told["outcome"] != "not judged":
                told["teardown"] = end
                self._write(told)
        if failed is not None:
            raise failed

    def _run(self, times: int, held: list) -> None:
        __tracebackhide__ = True
        for _ in range(times):
            self._planned.runtest()
            self._raise_what_unittest_caught()
            if self._times > 1:
                held.append(_held_by_line())

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
    if type(problem).__module__.startswith(f"{__package__}.") or isinstance(problem, SystemExit) and _is_stopped():
        return {"outcome": "not judged"}  # the plan has its reason
    if "torch" in sys.modules:
        from .plan.session.unplannable import Unplannable
        from .plan.torch.operations.failures import of_lost_threads

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
        trace = _to_show(problem)
        shown = str(
            item.repr_failure(pytest.ExceptionInfo.from_exc_info((type(problem), problem.with_traceback(trace), trace)))
        )
    except Exception:
        shown = f"{type(problem).__name__}: {problem}"
    return {"outcome": "error", "exception": exception, "shown": shown}


def _to_show(problem: BaseException):
    """The traceback as it would be without Faultline; a mistake of the dry run's own keeps all of it."""
    from .plan.session.ending import without_own_frames
    from .plan.torch.operations.failures import of_own_mistake

    trace = problem.__traceback__
    return trace if of_own_mistake(problem, trace) else without_own_frames(trace) or trace


def _is_stopped() -> bool:
    """By the dry run, whose time is over."""
    from .plan.session.session import current

    return bool(getattr(current(), "stopped", None))


def _held_by_line() -> dict[str, int]:
    """In the copy: bytes of the GPU that tensors hold now, by the line of the program that made them."""
    from .plan.session.session import current

    gc.collect()
    session = current()
    memory = getattr(session, "memory", None)
    if memory is None:  # JAX or TensorFlow: its pool knows how much is held, and no line
        device = getattr(session, "device", None)
        return {"": device.stats().allocated_bytes} if device is not None else {}
    from .plan.torch.release.older_torch import notice_deaths

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


def _is_kept(sizes: list[int]) -> bool:
    return growth_of_runs.growth(sizes) > 0 and growth_of_runs.judged(sizes) == GROWS


def _went_on_after(report: dict, told: dict) -> tuple[str, list[str]] | None:
    """Requests that were refused, which the test did not expect and went on after: words, and what was asked for with its lines."""
    count, expected = report["plan"].get("caught_failures", 0), told["expected"]
    found = [one for one in report["findings"] if one["rule"] == OUT_OF_MEMORY]
    others = [
        one
        for one in found
        if not (place := one.get("location")) or (place["file"], place["line"]) not in map(tuple, expected)
    ]
    if not count or (count <= len(expected) and not others):
        return None
    unexpected = max(count - len(expected), 1)
    times = "once" if unexpected == 1 else f"{unexpected} times"
    asked = [
        "  ".join(part for part in (_words(one["bytes"]), _place(one["location"])) if part) for one in others or found
    ]
    return f"it ran out of memory {times} and went on", asked


def _shown(told: dict, plan: dict, more: str = "") -> str:
    """An error that was raised in the copy, with what may have to do with it."""
    shown = told["shown"] + "\n\nThis was raised in a dry run of the test by Faultline, without a GPU." + more
    if plan.get("unplanned") and not _uses_no_gpu(plan):
        shown += f"\nNot all of the test could be planned: {_why_unsure(plan)}."
    if plan.get("stand_in_line"):
        shown += f"\nBefore it, the test read a number that a dry run does not compute ({plan['stand_in_line']}): real=True in the mark computes it, on the CPU."
    if (torch := sys.modules.get("torch")) and torch.cuda.is_initialized():
        shown += "\nCUDA had begun in this process before: tensors that were made on the real GPU by then (in a module, by a library's fixture) cannot be used in a dry run."
    return shown


def _raise_again(told: dict) -> None:
    if told["exception"] is not None:
        raise pickle.loads(told["exception"])
    pytest.fail(told["shown"], pytrace=False)


def _uses_no_gpu(plan: dict) -> bool:
    return plan["verdict"] == "not-planned" and plan.get("nothing_seen", False)


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
    return f"it holds only {why}" if (why := _decided(plan)) else ""


def _decided(plan: dict) -> str:
    """By a number that is not computed, in words; empty: by none."""
    decided = [note["verdict"] for note in plan["notes"] if note["kind"] == "value" and note.get("verdict")]
    return f"{decided[0]}; real=True in the mark computes it" if decided else ""


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
    left = len(lines) - _LINES_TOLD
    more = f"\n    and {left} more line{'' if left == 1 else 's'}" if left > 0 else ""
    pytest.fail(
        f"{text}" + (f"\n  {label}:{rows}{more}" if lines else "") + "\n(planned by Faultline, without a GPU)",
        pytrace=False,
    )
