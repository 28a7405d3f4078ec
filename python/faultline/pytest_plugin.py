"""The pytest plugin: budgets of GPU memory for tests, without a GPU.

    @pytest.mark.gpu_memory("14GiB", gpu="T4")    # fails where the test needs more than that
    @pytest.mark.no_gpu_leak                      # fails where the test, run again and again, keeps GPU memory

A test with such a mark is dry-run as faultline.plan() does it; docs/ci.md tells how. Here is only what every session of pytest loads: without a marked test nothing else
of Faultline's is imported, and no hook looks at a test that runs.
"""

from __future__ import annotations

import inspect
import math
import re

import pytest

MARKS = ("gpu_memory", "no_gpu_leak")
_UNITS = {"": 1, "b": 1, **{unit + end: 1024**power for power, unit in enumerate("kmgt", 1) for end in ("", "ib")}}
_UNITS.update({unit + "b": 1000**power for power, unit in enumerate("kmgt", 1)})


def gpu_memory(budget, *, gpu=None, real=False, seconds=120):
    """A mark's arguments, as they may be given."""
    if not isinstance(budget, str):
        raise ValueError(f'the budget is a text such as "14GiB", not {budget!r}')
    if (size := parsed_size(budget)) is None:
        raise ValueError(f'{budget!r} is not a size; write for example "14GiB", "512MiB" or "24GB"')
    return {"budget": budget, "budget_bytes": size, **_options(gpu, real, seconds)}


def no_gpu_leak(repeat=10, *, gpu=None, real=False, seconds=120):
    if not isinstance(repeat, int) or isinstance(repeat, bool) or not 5 <= repeat <= 10_000:
        raise ValueError(f"repeat is a number from 5 on (fewer show no growth), not {repeat!r}")
    return {"repeat": repeat, **_options(gpu, real, seconds)}


def _options(gpu, real, seconds) -> dict:
    if gpu is not None and (not isinstance(gpu, str) or not gpu.strip()):
        raise ValueError(f'gpu is a name or a size, such as "T4" or "24GiB", not {gpu!r}')
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 0:
        raise ValueError(f"seconds is a whole number, 0 for no limit, not {seconds!r}")
    return {"gpu": gpu, "real": bool(real), "seconds": seconds}


def parsed_size(text: str) -> int | None:
    """As the command line reads sizes."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", text.strip().lower(), re.ASCII)
    if match is None or match[2] not in _UNITS:
        return None
    size = float(match[1]) * _UNITS[match[2]]
    return int(size) if math.isfinite(size) and size < 2**63 else None


def limits_of(item) -> list:
    """(mark's name, its arguments), of each GPU that is named the closest mark. Raises UsageError where a mark cannot be understood."""
    found = {}
    for mark in item.iter_markers():
        if mark.name not in MARKS:
            continue
        reader = globals()[mark.name]
        try:
            inspect.signature(reader).bind(*mark.args, **mark.kwargs)
            arguments = reader(*mark.args, **mark.kwargs)
        except (TypeError, ValueError) as problem:
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.{mark.name}: {problem}") from None
        found.setdefault((mark.name, arguments["gpu"]), arguments)
    return [(name, arguments) for (name, _gpu), arguments in found.items()]


def pytest_addoption(parser):
    words = "tell the planned GPU memory of every test that is marked gpu_memory or no_gpu_leak"
    parser.getgroup("faultline").addoption("--faultline-summary", action="store_true", help=words)
    parser.addini("faultline_summary", words, type="bool", default=False)


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        'gpu_memory(budget, *, gpu=None, real=False, seconds=120): dry-run the test with Faultline, without a GPU; fail it where it needs more of a GPU\'s memory than budget ("14GiB")',
    )
    config.addinivalue_line(
        "markers",
        "no_gpu_leak(repeat=10, *, gpu=None, real=False, seconds=120): dry-run the test so many times with Faultline, without a GPU; fail it where GPU memory is kept from run to run",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    marked = {item: limits for item in items if (limits := limits_of(item))}
    if marked:
        from .planned_item import PlannedItems

        config.pluginmanager.register(PlannedItems(marked), "faultline-planned-items")


def pytest_terminal_summary(terminalreporter, config):
    if not (config.getoption("faultline_summary") or config.getini("faultline_summary")):
        return
    told = [
        (report.nodeid, words)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, words in report.user_properties
        if name == "faultline"
    ]
    if told:
        terminalreporter.section("planned GPU memory")
        for nodeid, words in sorted(told):
            terminalreporter.write_line(f"{nodeid}: {words}")
