"""Code of the user's folders: none of it is run by Faultline's own Python, and the user's own sitecustomize is as without Faultline."""

import json
import os
import subprocess
import sys
import venv

import pytest

from common import FAULTLINE, ROOT

# modules of Python's own that something of Faultline's imports, or may come to import
NAMES = "json importlib site os re enum functools types socket subprocess shutil tempfile random queue token".split()
BOOBY_TRAP = "import os\nopen(os.environ['SPRUNG'], 'a').write(__name__ + ' ')\n"


@pytest.fixture
def trapped(tmp_path):
    """A folder with a module of the user's for each of these names; the file tells which were executed."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(BOOBY_TRAP)
    return folder


def sprung(tmp_path):
    file = tmp_path / "sprung"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("path", [None, ".", "", "project"], ids=["", "PYTHONPATH=.", "PYTHONPATH=", "PYTHONPATH=abs"])
@pytest.mark.parametrize(
    "command",
    [
        ["doctor"],
        ["demo", "--no-plan"],
        ["demo"],
        ["completion", "bash"],
        ["run", "--gpu", "virtual:1GiB", "--", "true"],
        ["plan", "--", "true"],
    ],
    ids=" ".join,
)
def test_nothing_of_the_folder_is_executed(tmp_path, trapped, command, path):
    variables = {**os.environ, "SPRUNG": str(tmp_path / "sprung")}
    variables.pop("PYTHONPATH", None)
    if path is not None:
        variables["PYTHONPATH"] = str(trapped) if path == "project" else path
    if command == ["demo"]:  # its plan, with an interpreter that has PyTorch
        variables["PATH"] = os.path.dirname(sys.executable) + ":" + variables["PATH"]
        if path != "project":
            pytest.skip("it takes half a minute: once")
    done = subprocess.run(
        [FAULTLINE, *command], cwd=trapped, env=variables, capture_output=True, text=True, timeout=600
    )
    assert done.returncode in (0, 1, 2, 4), done.stderr
    assert sprung(tmp_path) == [], done.stdout


def test_python_dash_m_does_not_execute_what_lies_beside_the_user(tmp_path, trapped):
    """What runpy itself imports before is Python's own affair."""
    variables = {**os.environ, "SPRUNG": str(tmp_path / "sprung"), "PYTHONPATH": str(ROOT / "python")}
    for name in NAMES:
        if name not in ("json", "shutil", "tempfile", "subprocess"):
            (trapped / f"{name}.py").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "faultline", "--version"], cwd=trapped, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert sprung(tmp_path) == []


def test_doctor_still_finds_packages_of_pythonpath_and_of_the_user(tmp_path):
    packages = tmp_path / "packages" / "torch-9.9.9.dist-info"
    packages.mkdir(parents=True)
    (packages / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")
    variables = {**os.environ, "PYTHONPATH": "packages"}
    done = subprocess.run([FAULTLINE, "doctor"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert "9.9.9" in done.stdout


# --- the user's own sitecustomize

SHOWS = """
import sys, os
entries = [entry for entry in sys.path if "_inject" not in entry]
try:
    import sitecustomize
    print("values", getattr(sitecustomize, "VALUE", None), type(sitecustomize).__name__)
    print("file", getattr(sitecustomize, "__file__", None), getattr(getattr(sitecustomize, "__spec__", None), "name", None))
    print("same", sys.modules["sitecustomize"] is sitecustomize)
except BaseException as problem:
    print("error", type(problem).__name__, problem, getattr(problem, "name", None))
try:
    import usercustomize
    print("user", usercustomize.VALUE)
except ImportError as problem:
    print("user error", problem)
import json
print("json", json.__file__)
print("path", sys.path == entries, sys.path)
print("in modules", "sitecustomize" in sys.modules)
"""

USERS = {
    "none": {},
    "values": {"a": "VALUE = 42\nNAME = __name__\n"},
    "several": {"a": "VALUE = 'first'\n", "b": "VALUE = 'second'\n"},
    "second only": {"b": "VALUE = 'second'\n"},
    "raises": {"a": "VALUE = 1\nraise ValueError('mine')\n"},
    "raises ImportError": {"a": "import no_such_module\n"},
    "raises its own absence": {"a": "raise ImportError('odd', name='sitecustomize')\n"},
    "exits": {"a": "raise SystemExit(7)\n"},
    "replaces itself": {"a": "import sys, types\nsys.modules[__name__] = types.SimpleNamespace(VALUE='replaced')\n"},
    "removes itself": {"a": "import sys\nVALUE = 3\ndel sys.modules[__name__]\n"},
    "imports itself": {"a": "VALUE = 5\nimport sitecustomize\nassert sitecustomize.VALUE == 5\n"},
    "changes the path": {"a": "import sys\nVALUE = 6\nsys.path.append('/nowhere')\n"},
    "package": {"a/sitecustomize": "VALUE = 'package'\nfrom . import part\n"},
    "reads PYTHONPATH": {"a": "import sys\nVALUE = [e for e in sys.path if e.endswith('/a')]\n"},
}


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize("options", [[], ["-S"], ["-E"], ["-I"], ["-s"]], ids=lambda options: "".join(options))
@pytest.mark.parametrize("case", USERS)
def test_a_sitecustomize_of_the_users_is_as_without(tmp_path, case, options, verb):
    if options and case not in ("values", "none", "raises"):
        pytest.skip("with options: three of them")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    for folder, text in USERS[case].items():
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / ("__init__.py" if "/" in folder else "sitecustomize.py")).write_text(text)
        (tmp_path / folder / "part.py").write_text("")
    (tmp_path / "b" / "usercustomize.py").write_text("VALUE = 'users'\n")
    (tmp_path / "program.py").write_text(SHOWS)
    (tmp_path / "json.py").write_text("")
    variables = {**os.environ, "PYTHONPATH": f"{tmp_path / 'a'}:{tmp_path / 'b'}"}
    command = [sys.executable, *options, "program.py"]

    def told(before):
        done = subprocess.run([*before, *command], cwd=tmp_path, env=variables, capture_output=True, text=True)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("faultline: ")]
        return done.stdout, lines, done.returncode

    without = told([])
    run_options = ["--gpu", "virtual:1GiB"] if verb == "run" else []
    out, lines, status = told([FAULTLINE, verb, *run_options, "-o", str(tmp_path / "d"), "--"])
    if case == "exits":  # Python prints a traceback of its own start, in which Faultline's frames stand too
        lines, without[1][:] = lines[-2:], without[1][-2:]
    assert (out, lines) == without[:2]
    assert verb == "plan" or status == without[2]


@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_virtual_environments_sitecustomize_and_its_children(tmp_path, verb):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    packages = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (packages / "sitecustomize.py").write_text("VALUE = 'of the environment'\n")
    program = (
        "import subprocess, sys, sitecustomize; print(sitecustomize.VALUE, sitecustomize.__file__, flush=True); "
        "subprocess.run([sys.executable, '-c', 'import sitecustomize, sys; print(sitecustomize.VALUE, sys.path)'])"
    )
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    without = subprocess.run([python, "-c", program], capture_output=True, text=True, env=variables, cwd=tmp_path)
    under = [FAULTLINE, verb, *(["--gpu", "virtual:1GiB"] if verb == "run" else []), "-o", str(tmp_path / "d"), "--"]
    done = subprocess.run([*under, python, "-c", program], capture_output=True, text=True, env=variables, cwd=tmp_path)
    assert done.stdout == without.stdout and "of the environment" in done.stdout


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize("how", ["script", "-c", "-m", "folder", "PYTHONPATH"])
def test_a_module_of_the_programs_with_a_name_of_pythons_is_the_programs(tmp_path, how, verb):
    """What Faultline imported for itself does not hide it, and it is not executed before the program asks for it."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("json", "functools", "re", "gc_", "queue"):
        (home / f"{name}.py").write_text(
            "MINE = 1\nimport builtins\nbuiltins.executed = getattr(builtins, 'executed', []) + [__name__]\n"
        )
    text = "import builtins\nassert not hasattr(builtins, 'executed'), builtins.executed\nimport json, queue\nprint(json.MINE, queue.MINE)\n"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    (home / "program.py").write_text(text)
    (home / "__main__.py").write_text(text)
    (tmp_path / "elsewhere.py").write_text(text)
    words = {"script": ["home/program.py"], "-c": ["-c", text], "-m": ["-m", "program"], "folder": ["home"]}
    words["PYTHONPATH"] = ["elsewhere.py"]
    if how == "PYTHONPATH":
        variables["PYTHONPATH"] = str(home)
    here = home if how in ("-c", "-m") else tmp_path
    command = [sys.executable, *words[how]]
    without = subprocess.run(command, cwd=here, env=variables, capture_output=True, text=True)
    if without.returncode != 0:
        pytest.skip("this does not work without Faultline either: " + without.stderr)
    under = [FAULTLINE, verb, *(["--gpu", "virtual:1GiB"] if verb == "run" else []), "-o", str(tmp_path / "d"), "--"]
    done = subprocess.run([*under, *command], cwd=here, env=variables, capture_output=True, text=True)
    assert done.stdout == without.stdout == "1 1\n", done.stderr


def test_under_run_the_recording_is_still_there(tmp_path):
    """A child of the program has the Python side too: it is armed, though nothing of it is on the path."""
    program = "import sys, subprocess; a = 'faultline' in sys.modules; b = subprocess.run([sys.executable, '-c', 'import sys; sys.exit(\"faultline\" in sys.modules)']).returncode; print(a, b)"
    done = subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual:1GiB", "-o", str(tmp_path / "d"), "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True 1\n", json.dumps([done.stdout, done.stderr])


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize("how", ["beside the program", "PYTHONPATH"])
def test_a_module_of_the_programs_that_is_called_faultline_is_the_programs(tmp_path, how, verb):
    home = tmp_path if how == "beside the program" else tmp_path / "lib"
    home.mkdir(exist_ok=True)
    (home / "faultline.py").write_text("MINE = 1\n")
    program = "import faultline\nprint(faultline.MINE)\nimport torch\nprint(torch.ones(3).sum().item())\n"
    program += "from multiprocessing import get_context\nwith get_context('spawn').Pool(1) as pool: print(pool.apply(abs, (-2,)))\n"
    program = "if __name__ == '__main__':\n    " + program.replace("\n", "\n    ")
    (tmp_path / "program.py").write_text(program + ("torch.ones(4, device='cuda')\n" if verb == "plan" else "\n"))
    pytest.importorskip("torch")
    variables = {**os.environ, "PYTHONPATH": str(home) if how == "PYTHONPATH" else ""}
    under = [FAULTLINE, verb, *(["--gpu", "virtual:1GiB"] if verb == "run" else ["--gpu", "T4"]), "-o", "d", "--"]
    done = subprocess.run(
        [*under, sys.executable, "program.py"], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600
    )
    assert done.stdout.startswith("1\n3.0\n2\n") and done.returncode in (0, 1), done.stderr
    if verb == "plan":
        report = json.loads((tmp_path / "d" / "report.json").read_text())
        assert report["plan"]["verdict"].startswith("fits"), report["plan"]
    else:
        assert not list((tmp_path / "d").glob("notes-*"))
        assert any('"torch": "' in path.read_text() for path in (tmp_path / "d").glob("process-*.json"))
