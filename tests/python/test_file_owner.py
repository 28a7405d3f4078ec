"""Whose a line is: Faultline's, a library's or the program's. Folders decide, not words in a path: a program may lie in one called faultline."""

import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from faultline._file_owner import is_library, is_own  # noqa: E402

OWN = Path(sys.modules[is_own.__module__].__file__).resolve().parent


def test_only_files_in_faultlines_own_folder_are_its_own():
    assert is_own(str(OWN / "api.py")) and is_own(str(OWN / "plan" / "stacks.py"))
    for path in (
        f"{OWN}-course/train.py",
        f"{OWN}_run.py",
        str(OWN.parent / "train.py"),
        "/home/ada/faultline/train.py",
        "/home/ada/faultline/python/faultline/train.py",
        "<string>",
        "train.py",
    ):
        assert not is_own(path), path


def test_python_and_installed_packages_are_libraries_and_nothing_else_is():
    for path in (
        threading.__file__,
        pytest.__file__,
        "<frozen runpy>",
        "/v/lib/python3.12/site-packages/torch/nn/functional.py",
        "/usr/lib/python3/dist-packages/numpy/x.py",
    ):
        assert is_library(path), path
    for path in (
        "/home/ada/lib/python3_course/train.py",
        "/home/ada/lib/python3/train.py",
        "/home/ada/faultline/train.py",
        "<stdin>",
        "train.py",
    ):
        assert not is_library(path), path
