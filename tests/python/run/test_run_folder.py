"""The folder of a run, or of a plan, belongs to its owner alone, whatever lies in the way."""

import shlex
import stat
import subprocess

import pytest

from common import FAULTLINE, PROGRAMS


def run(*options, cwd=None, command=("true",), umask=-1):
    return subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual:1GiB", *options, "--", *command],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=cwd,
        umask=umask,
    )


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_nobody_else_can_read_what_a_run_keeps(tmp_path, umask):
    (tmp_path / "deep").mkdir(mode=0o755)
    folder = tmp_path / "deep" / "run"
    done = run("-o", str(folder), command=[str(PROGRAMS / "double_free")], umask=umask)
    assert done.returncode == 0, done.stderr
    assert mode(folder) == 0o700
    assert (folder / "report.json").exists()
    # links/ is there where Faultline's own path has a space in it, and leads to Faultline's own files.
    kept = {path.name: oct(mode(path)) for path in folder.rglob("*") if "links" not in path.relative_to(folder).parts}
    assert {"command.json", "report.json"} < set(kept) and set(kept.values()) == {"0o600"}, kept


def test_a_folder_by_the_programs_name_is_always_a_new_one(tmp_path):
    names = set()
    for _ in range(3):
        assert run(cwd=tmp_path).returncode == 0
        assert [path.name for path in tmp_path.iterdir()] == [".faultline"]
        names = {path.name for path in (tmp_path / ".faultline").iterdir() if path.is_dir()}
    assert len(names) == 3
    assert all(mode(tmp_path / ".faultline" / name) == 0o700 for name in names)


def test_git_sees_nothing_of_it(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert run(cwd=tmp_path).returncode == 0
    asked = subprocess.run(
        ["git", "status", "--short", "-uall"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not asked.stdout and mode(tmp_path / ".faultline") == 0o700
    # somebody who wants them in git is not told otherwise again
    (tmp_path / ".faultline" / ".gitignore").unlink()
    assert run(cwd=tmp_path).returncode == 0 and not (tmp_path / ".faultline" / ".gitignore").exists()


@pytest.mark.parametrize("there", ["a file", "a folder", "a link", "another tool's mark", "an empty folder", "a run"])
def test_what_has_the_name_already_stays_as_it_is(tmp_path, there):
    """A folder that only has the name is not ours: the run lies beside it, as it would without."""
    name, elsewhere = tmp_path / ".faultline", tmp_path.parent / (tmp_path.name + "-elsewhere")
    elsewhere.mkdir()
    if there == "a file":
        name.write_text("mine")
    elif there == "a link":
        name.symlink_to(elsewhere)
    elif there == "a run":
        assert run("-o", str(name), cwd=tmp_path).returncode == 0
    else:
        name.mkdir()
        if there == "a folder":
            (name / "data.bin").write_text("mine")
        elif there == "another tool's mark":
            (name / "made-by-faultline.json").write_text('{"faultline": 1}')

    def all_of(path):
        return [(at, at.read_bytes()) for at in [path, *sorted(path.rglob("*"))] if at.is_file()]

    before = all_of(name)
    assert run(cwd=tmp_path).returncode == 0
    runs = [path for path in tmp_path.glob("faultline-*") if (path / "command.json").exists()]
    if there == "an empty folder":
        assert not runs and (name / ".gitignore").read_text() == "*\n" and list(name.glob("*/command.json"))
    else:
        assert len(runs) == 1 and all_of(name) == before and not list(elsewhere.iterdir())


def test_a_run_that_is_named_into_it_makes_it_as_ever(tmp_path):
    assert run("-o", ".faultline/mine", cwd=tmp_path).returncode == 0
    assert run(cwd=tmp_path).returncode == 0
    assert (tmp_path / ".faultline/mine/command.json").exists() and (tmp_path / ".faultline/.gitignore").exists()
    assert len(list((tmp_path / ".faultline").glob("*/command.json"))) == 2
    # the folder of all runs is no run, whatever is asked
    assert run("-o", ".faultline", "--force", cwd=tmp_path).returncode == 2
    assert len(list((tmp_path / ".faultline").glob("*/command.json"))) == 2


def test_a_file_in_the_way_is_replaced_and_not_written_into(tmp_path):
    """A report is written anew: what a name in the folder leads to is left alone."""
    outside = tmp_path / "outside"
    outside.write_text("precious")
    done = run(
        "-o",
        str(tmp_path / "run"),
        command=[
            "sh",
            "-c",
            f'ln -s {outside} "$FAULTLINE_RUN_FOLDER/report.json"; ln -sf {outside} "$FAULTLINE_RUN_FOLDER/report.json.part"; {shlex.quote(str(PROGRAMS / "double_free"))}',
        ],
    )
    assert done.returncode == 0
    assert outside.read_text() == "precious"
    assert not (tmp_path / "run" / "report.json").is_symlink()
