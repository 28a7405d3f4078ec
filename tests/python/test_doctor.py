"""faultline doctor on the machine at hand: with whatever it has, without a Python, where nothing can be written."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest


def doctor(binary, *options, **how):
    return subprocess.run([binary, "doctor", *options], capture_output=True, text=True, **how)


def abilities(run):
    told = json.loads(run.stdout)
    assert told["schema"] == "faultline.doctor/1"
    return {one["name"]: one for one in told["abilities"]}


def without_python(tmp_path):
    """A PATH with the few tools that doctor asks, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("cat", "sh"):
        (folder / tool).symlink_to(shutil.which(tool))
    return {**os.environ, "PATH": str(folder)}


def test_every_line_has_a_mark_a_name_and_a_sentence(binary, tmp_path):
    run = doctor(binary, cwd=tmp_path)
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert len(lines) >= 12
    for line in lines:
        assert line.split()[0] in ("ok", "partly", "no"), line
        assert line.endswith("."), line
    assert lines[0].startswith("ok") and "explain, replay" in lines[0]
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_json_tells_the_same_as_the_page(binary, tmp_path):
    page = doctor(binary, cwd=tmp_path)
    data = doctor(binary, "--format", "json", cwd=tmp_path)
    assert page.returncode == data.returncode
    told = json.loads(data.stdout)
    assert [line.split()[0] for line in page.stdout.splitlines()] == [one["mark"] for one in told["abilities"]]
    assert told["works"] == (data.returncode == 0)
    assert told["works"] == all(one["mark"] != "no" for one in told["abilities"] if one["main"])


def test_lack_of_a_gpu_is_said_and_is_no_failure(binary, tmp_path):
    told = json.loads(doctor(binary, "--format", "json", cwd=tmp_path).stdout)
    if told["machine"]["driver"]["gpus"]:
        pytest.skip("this machine has a GPU")
    by_name = {one["name"]: one for one in told["abilities"]}
    assert by_name["driver"]["mark"] == "no"
    assert by_name["run"]["mark"] == "no"
    assert not by_name["driver"]["main"] and not by_name["run"]["main"]


def test_python_and_its_packages_are_found(binary, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    run = doctor(binary, "--format", "json", cwd=tmp_path, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    told = json.loads(run.stdout)
    assert told["machine"]["python"]["version"] == "%d.%d.%d" % sys.version_info[:3]


def test_a_torch_is_told_by_its_metadata_and_never_imported(binary, tmp_path):
    site = tmp_path / "site"
    metadata = site / "torch-9.8.7+cpu.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.8.7+cpu\n")
    (site / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    run = doctor(binary, "--format", "json", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)})
    told = abilities(run)
    assert "9.8.7+cpu" in told["plan"]["says"]
    assert told["frameworks"]["mark"] == "partly" and "without CUDA" in told["frameworks"]["says"]


def test_no_python_on_the_path(binary, tmp_path):
    run = doctor(binary, "--format", "json", cwd=tmp_path, env=without_python(tmp_path))
    told = abilities(run)
    assert run.returncode == 1
    assert told["plan"]["mark"] == "no" and "no python3 on PATH" in told["plan"]["says"]
    assert told["explain, replay"]["mark"] == "ok"


def test_a_python_that_hangs_or_breaks_is_waited_for_no_longer_than_seconds(binary, tmp_path):
    environment = without_python(tmp_path)
    python = tmp_path / "bin" / "python3"
    for script, says in (
        ("#!/bin/sh\nexec /bin/sleep 600\n", "did not answer within 10 s"),
        ("#!/bin/sh\nexit 3\n", "ended with status 3"),
        ("#!/bin/sh\necho hello\n", "did not answer as Python does"),
    ):
        python.write_text(script)
        python.chmod(0o755)
        told = abilities(doctor(binary, "--format", "json", cwd=tmp_path, env=environment))
        assert told["plan"]["mark"] == "no" and says in told["plan"]["says"]


def test_a_folder_that_cannot_be_written_is_said(binary, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):
        folder = Path("/proc")  # root may write anywhere but here
    told = abilities(doctor(binary, "--format", "json", cwd=folder))
    assert told["run folder"]["mark"] == "no"
    assert told["run --gpu virtual"]["mark"] == "partly" and "nothing can be kept in" in told["run folder"]["says"]


def test_a_driver_that_crashes_hurts_only_its_own_line(binary, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make such a driver with")
    source = tmp_path / "driver.c"
    for body, says in (
        ("int cuInit(unsigned f) { *(volatile int*)0 = 1; return 0; }", "signal 11"),
        (
            "int cuInit(unsigned f) { return 100; } int cuDriverGetVersion(int* v) { *v = 12020; return 0; }"
            "int cuGetErrorName(int e, const char** n) { *n = \"CUDA_ERROR_NO_DEVICE\"; return 0; }",
            "CUDA_ERROR_NO_DEVICE",
        ),
        ("int other(void) { return 0; }", "it has no cuInit"),
    ):
        source.write_text(body + "\n")
        library = tmp_path / "libcuda.so.1"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        run = doctor(binary, "--format", "json", cwd=tmp_path, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
        told = abilities(run)
        assert told["driver"]["mark"] == "no" and says in told["driver"]["says"], told["driver"]
        assert str(library) in told["driver"]["says"]
    library.write_text("this is no library")
    told = abilities(
        doctor(binary, "--format", "json", cwd=tmp_path, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    )
    assert "cannot be loaded" in told["driver"]["says"]


def test_parts_that_are_not_built_are_said(binary, tmp_path):
    alone = tmp_path / "faultline"
    shutil.copy(binary, alone)
    environment = {name: value for name, value in os.environ.items() if name != "FAULTLINE_HOME"}
    run = doctor(str(alone), "--format", "json", cwd=tmp_path, env=environment)
    told = abilities(run)
    assert run.returncode == 1
    assert told["recorder"]["mark"] == "no" and told["virtual driver"]["mark"] == "no"
    assert told["run --gpu virtual"]["mark"] == "no" and "recorder" in told["run --gpu virtual"]["says"]


def test_bad_usage_is_a_sentence(binary):
    run = doctor(binary, "--format", "xml")
    assert run.returncode == 2 and run.stdout == ""
    assert (
        run.stderr == "faultline: --format: xml not in {terminal,json}. faultline doctor --help shows what it takes.\n"
    )


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_page_for_eyes_is_as_wide_as_they_have_it(binary, tmp_path, columns):
    """In a pipe each ability keeps its line, for grep; where a width is stated it is kept to."""
    narrow = doctor(binary, cwd=tmp_path, env={**os.environ, "COLUMNS": str(columns)}).stdout
    assert max(map(len, narrow.splitlines())) <= columns
    one_each = doctor(
        binary, cwd=tmp_path, env={name: value for name, value in os.environ.items() if name != "COLUMNS"}
    ).stdout

    def words(page):
        return "".join(re.sub(r"[\d.]+ GiB is free", "", " ".join(page.split())).split())  # that changes meanwhile

    assert words(narrow) == words(one_each) and len(narrow.splitlines()) > len(one_each.splitlines())
