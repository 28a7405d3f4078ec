"""The pytest plugin from the outside: sessions of pytest with marked tests, without a GPU.

One session has many cases, because each imports PyTorch; a case is a test with what must come of it, a bug beside its clean twin.
"""

import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree

import pytest

from common import ROOT

sys.path.insert(0, str(ROOT / "python"))
from faultline import growth_of_runs, pytest_plugin  # noqa: E402

torch = pytest.importorskip("torch")
shares_session = pytest.mark.xdist_group("pytest_plugin")


def pytest_session(binary, folder, *options, **files):
    for name, content in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(content))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "faultline.pytest_plugin", "-p", "no:cacheprovider"]
        + ["-q", "--junitxml=told.xml", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "FAULTLINE": binary, "PYTEST_ADDOPTS": ""},
    )
    done.tests = {}
    if (folder / "told.xml").exists():
        for case in ElementTree.parse(folder / "told.xml").getroot().iter("testcase"):
            ends = [(part.tag, (part.get("message") or "") + (part.text or "")) for part in case]
            ends = [end for end in ends if end[0] in ("failure", "error", "skipped")]
            done.tests[case.get("name")] = ends[0] if ends else ("passed", "")
    return done


CONFTEST = """
import pytest

@pytest.fixture(scope="module")
def layer():
    import torch
    return torch.nn.Linear(4096, 4096, device="cuda")  # 64 MiB, made where a GPU is planned

@pytest.fixture(scope="session")
def device():
    import torch
    return "cuda" if torch.cuda.is_available() else pytest.skip("no GPU")

@pytest.fixture(scope="session")
def either():
    import torch
    return "cuda" if torch.cuda.is_available() else "cpu"

@pytest.fixture
def ends():
    yield
    raise RuntimeError("what a fixture does at its end")
"""

TESTS = """
import contextlib, unittest
import pytest, torch

GIB = 1 << 30
KEPT, BOUNDED, RUNS = [], [], []


def test_of_no_mark_that_comes_first(either, request):
    assert either == "cpu"
    request.getfixturevalue("device")


@pytest.mark.gpu_memory("1GiB")
def test_whose_fixtures_others_had(either, request):
    torch.empty(2 * GIB, dtype=torch.uint8, device=request.getfixturevalue("device"))
    assert either == "cuda"


@pytest.mark.gpu_memory("1GiB", gpu="T4")
def test_keeps_its_budget(layer, tmp_path):
    (tmp_path / "left").write_text("of no one else's business")
    layer(torch.randn(8, 4096, device="cuda")).sum().backward()


@pytest.mark.gpu_memory("1GiB", gpu="T4")
def test_is_over_its_budget(layer):
    large = torch.empty(GIB, dtype=torch.uint8, device="cuda")  # <- large
    large + 1


@pytest.mark.gpu_memory("100GiB", gpu="T4")
def test_does_not_fit():
    torch.empty(20 * GIB, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory("1500MiB", gpu="T4")
@pytest.mark.parametrize("size", [1, 2])
def test_of_several_sizes(size):
    torch.empty(size * GIB, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory("1GiB")
class TestOfAClass:
    def setup_method(self):
        self.size = 2 * GIB

    def test_method(self):
        torch.empty(self.size, dtype=torch.uint8, device="cuda")

    @pytest.mark.gpu_memory("4GiB")
    def test_with_its_own_budget(self):
        torch.empty(self.size, dtype=torch.uint8, device="cuda")


class TestOfUnittest(unittest.TestCase):
    def setUp(self):
        self.size = 1 << 20

    @pytest.mark.gpu_memory("1GiB")
    def test_its_own_failure(self):
        self.assertEqual(torch.empty(self.size, device="cuda").numel(), 3)


@pytest.mark.gpu_memory("1GiB")
def test_that_fails_by_itself(layer):
    print("said before")
    assert layer.weight.shape == (1, 2), "wrong shape"


@pytest.mark.gpu_memory("1GiB")
def test_whose_operands_are_refused():
    torch.nn.Linear(4, 4).cuda()(torch.ones(3, 5, device="cuda"))


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one)


@pytest.mark.gpu_memory("1GiB")
def test_that_is_over_and_fails_by_itself():
    torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
    raise Odd("an error that cannot be pickled", 2)


@pytest.mark.gpu_memory("1GiB")
@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
def test_that_is_expected_to_fail(layer):
    1 / 0


@pytest.mark.gpu_memory("1GiB")
@pytest.mark.xfail(strict=True)
def test_that_is_expected_to_be_over_its_budget():
    torch.empty(GIB, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory("1GiB")
def test_that_skips_itself(layer):
    pytest.skip("not today")


@pytest.mark.gpu_memory("1GiB")
@pytest.mark.skip(reason="by a mark")
def test_that_is_skipped():
    raise AssertionError("never run")


@pytest.mark.gpu_memory("1GiB")
def test_without_a_gpu():
    assert torch.ones(3).sum() == 3


@pytest.mark.gpu_memory("1GiB", gpu="T5")
def test_of_a_gpu_that_is_not_known():
    pass


@pytest.mark.gpu_memory("1GiB")
def test_with_a_fixture_that_ends_badly(layer, ends):
    pass


@pytest.mark.gpu_memory("1GiB", gpu="T4")
def test_that_swallows_an_out_of_memory():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, device="cuda")
    with contextlib.suppress(RuntimeError):
        torch.empty(1 << 34, device="cuda")  # <- swallowed


def ask_for_too_much():
    try:
        torch.empty(1 << 40, device="cuda")
    except RuntimeError as problem:
        raise ValueError("too much") from problem


class TestOfExpectedErrors(unittest.TestCase):
    @pytest.mark.gpu_memory("1GiB", gpu="T4")
    def test_that_expects_an_out_of_memory(self):
        with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
            torch.empty(1 << 40, device="cuda")
        pytest.raises(torch.OutOfMemoryError, torch.empty, 1 << 40, device="cuda")
        pytest.raises(ValueError, ask_for_too_much)
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(1 << 40, device="cuda")


@pytest.mark.gpu_memory("1GiB")
@pytest.mark.anyio
async def test_that_is_async(anyio_backend):
    import asyncio
    await asyncio.sleep(0)
    torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.no_gpu_leak
def test_that_leaks(layer):
    KEPT.append(layer(torch.randn(256, 4096, device="cuda")))  # <- kept


@pytest.mark.no_gpu_leak
def test_that_leaks_now_and_then():
    RUNS.append(0)
    if len(RUNS) % 4 == 0:
        KEPT.append(torch.empty(GIB, dtype=torch.uint8, device="cuda"))  # <- kept now and then


@pytest.mark.no_gpu_leak(gpu="T4")
def test_that_leaks_more_than_there_is():
    KEPT.append(torch.empty(2 * GIB, dtype=torch.uint8, device="cuda"))


@pytest.mark.no_gpu_leak
def test_that_fills_a_cache_slowly():
    BOUNDED.append(torch.empty(GIB, dtype=torch.uint8, device="cuda"))
    del BOUNDED[:-8]


@pytest.mark.no_gpu_leak(repeat=12)
def test_that_keeps_a_few(layer):
    BOUNDED.append(layer(torch.randn(256, 4096, device="cuda")).detach())
    del BOUNDED[:-3]


@pytest.mark.gpu_memory("1GiB")
def test_that_a_number_decides():
    if torch.randn(10**6, device="cuda").sum() > 0:
        torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory("1GiB")
def test_behind_a_real_backward(layer):  # as PyTorch says it in a copy of a process whose backward ran on a GPU
    layer(torch.randn(256, 4096, device="cuda"))
    raise RuntimeError("Unable to handle autograd's threading in combination with fork-based multiprocessing.")


def test_of_no_mark():
    assert not torch.cuda.is_available() and torch.save.__module__ == "torch.serialization"
    assert not KEPT and not BOUNDED
"""

PASS, FAIL, SKIP, ERROR = "passed", "failure", "skipped", "error"
OUTCOMES = {
    "test_keeps_its_budget": (PASS, []),
    "test_is_over_its_budget": (FAIL, ["over its budget of 1.00 GiB", "1.21 GiB", "test_marked.py:{large}"]),
    "test_does_not_fit": (FAIL, ["Tesla T4 has 14.56 GiB", "fails at test_marked.py:"]),
    "test_of_several_sizes[1]": (PASS, []),
    "test_of_several_sizes[2]": (FAIL, ["over its budget of 1.46 GiB"]),
    "test_method": (FAIL, ["over its budget of 1.00 GiB"]),
    "test_with_its_own_budget": (PASS, []),
    "test_its_own_failure": (FAIL, ["1048576 != 3"]),
    "test_that_fails_by_itself": (FAIL, ["AssertionError: wrong shape", "assert layer.weight.shape == (1, 2)"]),
    "test_whose_operands_are_refused": (FAIL, ["cannot be multiplied (3x5 and 4x4)", "linear.py:"]),
    "test_that_is_over_and_fails_by_itself": (FAIL, ["Odd: an error that", "Beside that it needs", "over its budget"]),
    "test_that_is_expected_to_fail": (SKIP, []),  # as JUnit's form tells an expected failure
    "test_that_is_expected_to_be_over_its_budget": (SKIP, []),
    "test_that_skips_itself": (SKIP, ["not today"]),
    "test_that_is_skipped": (SKIP, ["by a mark"]),
    "test_without_a_gpu": (PASS, []),
    "test_of_a_gpu_that_is_not_known": (FAIL, ["could not be planned: --gpu: 'T5' is no GPU that Faultline knows"]),
    "test_with_a_fixture_that_ends_badly": (
        ERROR,
        ["what a fixture does at its end", "raised in a dry run of the test"],
    ),
    "test_that_swallows_an_out_of_memory": (
        FAIL,
        [
            "ran out of memory once and went on: what it requested then is not in",
            "64.00 GiB  test_marked.py:{swallowed}",
        ],
    ),
    "test_that_expects_an_out_of_memory": (PASS, []),
    "test_that_is_async": (FAIL, ["over its budget"]),
    "test_of_no_mark_that_comes_first": (SKIP, ["no GPU"]),
    "test_whose_fixtures_others_had": (FAIL, ["over its budget"]),
    "test_that_leaks": (FAIL, ["more after each of 10 runs", "test_marked.py:{kept}"]),
    "test_that_leaks_now_and_then": (
        FAIL,
        ["10.00 GiB more after 40 runs of the test than after run 2", "test_marked.py:{kept now and then}"],
    ),
    "test_that_leaks_more_than_there_is": (FAIL, ["run 10 times, the test ran out of the memory of Tesla T4"]),
    "test_that_fills_a_cache_slowly": (PASS, []),
    "test_that_keeps_a_few": (PASS, []),
    "test_that_a_number_decides": (FAIL, ["this holds only with a branch decided by a value", "real=True"]),
    "test_behind_a_real_backward": (
        FAIL,
        ["could not be judged: ", "PyTorch ran a backward pass for real in this process"],
    ),
    "test_of_no_mark": (PASS, []),
}
LINES = {
    mark: next(number for number, line in enumerate(TESTS.split("\n")) if line.endswith(f"# <- {mark}"))
    for mark in ("large", "kept", "kept now and then", "swallowed")
}


ALWAYS = [
    "test_keeps_its_budget",
    "test_is_over_its_budget",
    "test_that_fails_by_itself",
    "test_whose_operands_are_refused",
    "test_without_a_gpu",
    "test_of_no_mark_that_comes_first",
    "test_whose_fixtures_others_had",
    "test_that_swallows_an_out_of_memory",
    "test_that_leaks",
    "test_that_leaks_more_than_there_is",
    "test_that_keeps_a_few",
    "test_of_no_mark",
]


@pytest.fixture(scope="module")
def session(request, binary, tmp_path_factory):
    """Only those cases are run that are looked at: each takes a second or two."""
    folder = tmp_path_factory.mktemp("marked")
    items = [item for item in request.session.items if item.name.startswith("test_what_comes_of_a_marked_test")]
    names = {*ALWAYS, *(item.callspec.params["name"] for item in items)}
    done = pytest_session(
        binary,
        folder,
        *("--faultline-summary", "-k", " or ".join(sorted(name.partition("[")[0] for name in names))),
        conftest=CONFTEST,
        test_marked=TESTS.lstrip("\n"),
    )
    done.names = names
    return done


@shares_session
@pytest.mark.parametrize("name", OUTCOMES)
def test_what_comes_of_a_marked_test(session, name):
    outcome, words = OUTCOMES[name]
    assert session.tests[name][0] == outcome, session.tests[name]
    for word in words:
        assert word.format(**LINES) in session.tests[name][1], session.tests[name]


@shares_session
def test_all_cases_are_looked_at_and_nothing_else_went_wrong(session):
    assert session.names <= set(session.tests) <= set(OUTCOMES), session.stdout + session.stderr
    assert session.returncode == 1 and "INTERNALERROR" not in session.stdout + session.stderr
    assert "said before" in session.stdout  # what the test printed
    assert "All traceback entries are hidden" not in session.stdout
    for own in ("planned_item.py", "dispatch_mode.py", "overrides.py"):
        assert own not in session.stdout, session.stdout  # ours is not what failed


@shares_session
def test_the_summary_tells_the_planned_memory(session):
    (summary,) = re.findall(r"=+ planned GPU memory =+\n(.*?)\n=", session.stdout, re.DOTALL)
    lines = dict(line.split("::")[-1].split(": ", 1) for line in summary.split("\n"))
    assert lines["test_keeps_its_budget"].endswith("of a budget of 1.00 GiB") and "Tesla T4" in summary
    assert "over the budget" in lines["test_is_over_its_budget"] and lines["test_without_a_gpu"] == "no GPU memory"
    assert "more with each run" in lines["test_that_leaks"]
    assert lines["test_that_swallows_an_out_of_memory"].endswith("after an out-of-memory that the test caught")
    assert lines["test_that_leaks_more_than_there_is"].startswith("does not fit on Tesla T4")
    assert lines["test_that_keeps_a_few"].endswith("held after 12 runs, no growth since run 3")
    assert "test_of_no_mark" not in lines


@shares_session
def test_a_test_that_uses_no_gpu_is_warned_about(session):
    assert "used no GPU: there was nothing to plan" in session.stdout


def test_through_xdist_with_what_could_not_be_judged(binary, tmp_path):
    done = pytest_session(
        binary,
        tmp_path,
        *("-n", "1", "-o", "faultline_summary=true"),
        test_more="""
        import pytest, torch

        @pytest.mark.gpu_memory("4GiB", gpu="T4")
        def test_over():
            torch.empty(5 << 30, dtype=torch.uint8, device="cuda")

        @pytest.mark.gpu_memory("4GiB")
        def test_of_an_operation_that_cannot_be_planned():
            torch.zeros(1 << 20, device="cuda")
            torch.quantize_per_tensor(torch.randn(1 << 20, device="cuda"), 0.1, 0, torch.qint8)

        @pytest.mark.gpu_memory("4GiB", gpu="T4")
        @pytest.mark.gpu_memory("4GiB", gpu="L4")
        @pytest.mark.no_gpu_leak
        def test_of_several_marks_after_it(capsys):
            print("x")
            assert capsys.readouterr().out == "x\\n"
            torch.zeros(1 << 20, device="cuda")

        @pytest.mark.gpu_memory("4GiB")
        def test_that_reads_a_number():
            assert torch.randn(4096, 4096, device="cuda").square().mean().item() < 0

        @pytest.mark.gpu_memory("4GiB")
        def test_that_exits():
            raise SystemExit(0)

        @pytest.mark.gpu_memory("4GiB")
        def test_that_ends_the_process():
            import os
            torch.zeros(1 << 20, device="cuda")
            os._exit(0)
        """,
    )
    assert done.tests["test_over"][0] == "failure" and "over its budget" in done.tests["test_over"][1]
    outcome, text = done.tests["test_of_an_operation_that_cannot_be_planned"]
    assert outcome == "failure" and "could not be judged" in text and "quantize_per_tensor" in text, text
    assert done.tests["test_of_several_marks_after_it"][0] == "passed", done.tests
    outcome, text = done.tests["test_that_reads_a_number"]
    assert outcome == "failure" and "a number that a dry run does not compute" in text and "real=True" in text, text
    assert done.tests["test_that_exits"][0] == "failure" and "SystemExit" in done.tests["test_that_exits"][1]
    outcome, text = done.tests["test_that_ends_the_process"]
    assert outcome == "failure" and "the process was killed in it" in text, text
    assert "planned GPU memory" in done.stdout and "over the budget of 4.00 GiB" in done.stdout


def test_on_a_machine_with_a_gpu_the_test_is_run_for_real_too(binary, tmp_path):
    """The machine says that it has one; what is run for real then is on the CPU."""
    done = pytest_session(
        binary,
        tmp_path,
        conftest="""
        import pathlib, pytest
        import faultline.planned_item
        faultline.planned_item._machine_has_gpu = lambda: True

        @pytest.fixture
        def told():
            yield pathlib.Path("began")
            pathlib.Path("ended").touch()
        """,
        test_both="""
        import pytest, torch

        @pytest.mark.gpu_memory("1GiB")
        def test_both(told, tmp_path_factory):
            assert not told.exists()  # what the dry run wrote was kept aside
            told.touch()
            torch.zeros(1 << 20, device="cuda" if torch.cuda.is_available() else "cpu")

        @pytest.mark.gpu_memory("1GiB")
        def test_that_fails_only_for_real():
            torch.zeros(1 << 20, device="cuda" if torch.cuda.is_available() else "cpu")
            assert torch.cuda.is_available(), "for real"

        @pytest.mark.gpu_memory("1GiB")
        def test_over():
            torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
        """,
    )
    assert done.tests["test_both"][0] == "passed" and {"began", "ended"} <= {path.name for path in tmp_path.iterdir()}
    outcome, text = done.tests["test_that_fails_only_for_real"]
    assert outcome == "failure" and "AssertionError: for real" in text and "dry run" not in text, text
    assert "over its budget" in done.tests["test_over"][1]


@pytest.mark.parametrize(
    "mark, words",
    [
        ('gpu_memory("14Gi")', "'14Gi' is not a size"),
        ('gpu_memory("")', "'' is not a size"),
        ('gpu_memory("-1GiB")', "'-1GiB' is not a size"),
        ("gpu_memory(14)", "not 14"),
        ("gpu_memory()", "missing a required argument: 'budget'"),
        ("gpu_memory", "missing a required argument: 'budget'"),
        ('gpu_memory("1GiB", "T4")', "too many positional arguments"),
        ('gpu_memory("1GiB", card="T4")', "unexpected keyword argument 'card'"),
        ('gpu_memory("1GiB", gpu=4)', "gpu is a name or a size"),
        ("no_gpu_leak(repeat=2)", "repeat is a number from 5 on"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_a_mark_that_cannot_be_understood_is_an_error_at_collection(mark, words):
    class Item:
        nodeid = "test_x.py::test_y"

        def iter_markers(self):
            yield eval(f"pytest.mark.{mark}").mark

    with pytest.raises(pytest.UsageError) as told:
        pytest_plugin.limits_of(Item())
    assert words in str(told.value) and "test_x.py::test_y: @pytest.mark." in str(told.value)


def test_a_session_with_a_wrong_mark_runs_nothing_and_one_without_marks_loads_nothing(binary, tmp_path):
    wrong = "import pytest\n@pytest.mark.gpu_memory('lots')\ndef test_it(): raise SystemExit('run')\n"
    done = pytest_session(binary, tmp_path, "--strict-markers", test_wrong=wrong)
    assert done.returncode == 4 and "test_wrong.py::test_it: @pytest.mark.gpu_memory: 'lots' is not a size" in (
        done.stderr + done.stdout
    )
    (tmp_path / "test_wrong.py").unlink()
    plain = """
        import sys
        def test_nothing_of_faultline_is_loaded():
            loaded = {name for name in sys.modules if name.startswith("faultline")}
            assert loaded == {"faultline", "faultline.pytest_plugin"} and "torch" not in sys.modules, loaded
    """
    done = pytest_session(binary, tmp_path, "--strict-markers", test_plain=plain)
    assert done.returncode == 0, done.stdout
    helped = pytest_session(binary, tmp_path, "--markers")
    assert "@pytest.mark.gpu_memory(budget, *, gpu=None" in helped.stdout


@pytest.mark.parametrize(
    "text, size",
    [
        ("14GiB", 14 << 30),
        (" 1.5 gib ", 3 << 29),
        ("24GB", 24 * 10**9),
        ("512m", 512 << 20),
        ("100", 100),
        ("2k", 2048),
        ("GiB", None),
        ("1GiBs", None),
        ("nan", None),
        ("1e3", None),
        ("٣GiB", None),
    ],
)
def test_sizes_are_read_as_on_the_command_line(binary, text, size):
    assert pytest_plugin.parsed_size(text) == size


def held_after(runs, *, every=1, limit=1000, first=0):
    return [first + min(run // every, limit) for run in range(1, runs + 1)]


@pytest.mark.parametrize(
    "sizes, verdict, further",
    [
        ([5, 6, 7, 8, 9, 10, 11, 12, 13, 14], "grows", 0),
        ([0, 0, 5, 5, 10, 10, 15, 15, 20, 20], "grows", 0),  # with every second run
        ([5, 9, 9, 9, 9, 9, 9, 9, 9, 9], "stays", 0),  # a cache that is made once
        ([1, 2, 3, 4, 5, 5, 5, 5, 5, 5], "stays", 0),  # one that has a limit
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 9], "unclear", 30),  # once, at the end
        ([4, 8, 4, 8, 4, 8, 4, 8, 4, 8], "stays", 0),
        ([0] * 10, "stays", 0),
        ([], "stays", 0),
        (held_after(10, every=4), None, 30),
        (held_after(5, every=3), None, 15),
        (held_after(100, every=60), None, 100),
        (held_after(200, every=150), None, 0),
        *((held_after(40, every=every), "grows", None) for every in (3, 4, 5, 7, 9, 12)),
        (held_after(20, every=3), "grows", None),
        (held_after(20, every=4), "grows", None),
        *((held_after(40, limit=limit), "stays", None) for limit in (6, 8, 10, 20, 29)),
        (held_after(40, every=2, limit=9, first=7), "stays", None),
        ([run // 2 + 4 * (run % 2) for run in range(40)], "grows", None),  # up and down, and up in the end
        ([4 + run * 7 % 5 + (run == 35) * 9 for run in range(40)], "unclear", None),
    ],
)
def test_growth_is_what_goes_on(sizes, verdict, further):
    assert verdict is None or growth_of_runs.judged(sizes) == verdict
    assert further is None or growth_of_runs.further_runs(sizes) == further
