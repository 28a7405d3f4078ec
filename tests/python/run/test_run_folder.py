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


def test_an_empty_folder_of_ones_own_is_taken_and_closed(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    done = run("-o", str(folder))
    assert done.returncode == 0 and "nothing will be recorded" not in done.stderr
    assert mode(folder) == 0o700 and (folder / "command.json").exists()


@pytest.mark.parametrize(
    "made, why", [(0o777, "others can write"), (0o770, "others can write"), (0o755, "others can read")]
)
def test_a_folder_that_others_see_into_is_refused_in_one_sentence(tmp_path, made, why):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "something").write_text("of others")
    folder.chmod(made)
    done = run("-o", str(folder), command=["sh", "-c", "exit 4"])
    assert done.returncode == 4
    assert "nothing will be recorded" in done.stderr and why in done.stderr
    assert [path.name for path in folder.iterdir()] == ["something"]
    assert mode(folder) == made
    planned = subprocess.run(
        [FAULTLINE, "plan", "-o", str(folder), "--", "true"], capture_output=True, text=True, timeout=60
    )
    assert planned.returncode == 2 and why in planned.stderr


def test_a_link_of_ones_own_is_followed(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    run("-o", str(tmp_path / "link"))
    assert (tmp_path / "real" / "command.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave what is another user's")
def test_what_another_user_left_is_never_written_through(tmp_path):
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to("target")
    os.lchown(link, 12345, 12345)
    done = run("-o", str(link))
    assert "symbolic link that belongs to another user" in done.stderr
    assert list(target.iterdir()) == []
    os.chown(target, 12345, 12345)
    done = run("-o", str(target))
    assert "belongs to another user" in done.stderr
    assert list(target.iterdir()) == []


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
