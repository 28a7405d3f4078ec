"""The check that the modules of the Python package import each other in order, on packages that are in order and on ones that are not."""

import sys

import pytest
from common import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import python_imports

GOOD = {
    "__init__": '"""The package."""\n',
    "_private": "",
    "report": "from ._private import a\n",
    "api": "from . import report\ndef f():\n    from .plan.torch import session\n    from .notebook.cells import Cells\n",
    "run/__init__": "ALL = ()\n",
    "run/process": "from . import ALL\nfrom .._private import a\n",
    "plan/__init__": '"""Folders.\n\n    source/  reads\n    torch/   PyTorch (see source/)\n"""\n',
    "plan/begin": "def f():\n    from .torch import session\n",
    "plan/source/__init__": "",
    "plan/source/reader": "import ast\nfrom ..._private import a\n",
    "plan/torch/__init__": "",
    "plan/torch/session": "from ..source.reader import read\nfrom ..source import reader\n",
    "notebook/__init__": "",
    "notebook/cells": "from ..report import a\n",
    "notebook/extension": "from .. import api\nfrom . import cells\n",
}


@pytest.fixture
def check(tmp_path):
    def of(**changed):
        for name, text in {**GOOD, **{name.replace("__of__", "/"): text for name, text in changed.items()}}.items():
            path = tmp_path / "python/faultline" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return python_imports.check(tmp_path / "python")

    return of


def test_a_package_in_order_is_silent(check):
    assert check() == []


def test_the_package_is_in_order():
    assert python_imports.check(ROOT / "python") == []


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("plan/source/reader", "from ..torch import session\n", "plan.source.reader imports faultline.plan.torch.session"),
        ("plan/source/reader", "def f():\n    from ..torch.session import a\n", "plan.source.reader imports faultline.plan.torch.session"),
        ("plan/source/reader", "def f():\n    import faultline.plan.begin\n", "plan.source.reader imports faultline.plan.begin"),
        ("plan/source/reader", "from .. import begin\n", "plan.source.reader imports faultline.plan.begin"),
        ("run/process", "from ..plan.source import reader\n", "run.process imports faultline.plan.source.reader"),
        ("_private", "from . import report\n", "_private imports faultline.report"),
        ("plan/begin", "from .. import api\n", "plan.begin imports faultline.api"),
        ("api", "from .notebook import extension\n", "api imports faultline.notebook.extension"),
        ("report", "def f():\n    from . import api\n", "in a circle: faultline.api → faultline.notebook.cells → faultline.report → faultline.api"),
        ("run/__init__", "def f():\n    from .process import a\n", "in a circle: faultline.run → faultline.run.process → faultline.run"),
        ("plan/jax/__init__", "", "lists the folders ['source', 'torch'], and there are ['jax', 'source', 'torch']"),
        ("other/thing", "", "other.thing has no place in the order"),
    ],
)  # fmt: skip
def test_what_is_out_of_order_is_told(check, name, text, said):
    wrong = check(**{name: text})
    assert any(said in sentence for sentence in wrong), wrong
