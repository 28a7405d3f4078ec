"""The folder of a run, or of a plan, belongs to its owner alone, whatever lies in the way."""

import os
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
        timeout=60,
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
        names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 3
    assert all(mode(tmp_path / name) == 0o700 for name in names)


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
