"""Changes to a TensorFlow program that a dry run tries. Each is an edit of the program's source: nothing is changed behind its back."""

from __future__ import annotations

import ast
import re
import sys

from ...remedies.remedy import Offer
from ...remedies.table import TENSORFLOW
from ...source.edits import Edit
from ...source.reader import program_sources


class TensorFlowRemedies:
    def __init__(self, session):
        self._session = session

    def offers(self) -> list[dict]:
        return [offer.told(name, TENSORFLOW) for name, offer in self._mixed_precision() if offer.edits]

    def _mixed_precision(self):
        """Keras layers that are made from then on compute in 16 bits, and keep their variables in 32."""
        if _policy() != "float32":
            return
        half = "bfloat16" if self._session.gpu.compute_capability[0] >= 8 else "float16"
        for source in program_sources():
            keras, line = _name_of_keras(source.tree)
            if not keras or not any(re.search(r"\bkeras\b", text) for text in source.lines):
                continue  # TensorFlow brings Keras with it, used or not
            call = f'{keras}.mixed_precision.set_global_policy("mixed_{half}")'
            yield (
                "mixed_precision",
                Offer(
                    half,
                    f"mixed precision in {half}",
                    f"Make the model with {call}: layers compute in {half}, and keep their variables in float32",
                    keeps={"running": 0.6},
                    edits=[Edit(source.file, line + 1, [], [call])],
                    compute=8 if half == "bfloat16" else 0,
                ),
            )
            return


def _policy() -> str:
    """Of Keras's, for layers that say none of their own; empty: the program has no Keras, or an older one."""
    keras = sys.modules.get("keras")
    config = getattr(keras, "config", None)
    return config.dtype_policy().name if hasattr(config, "dtype_policy") else ""


def _name_of_keras(tree: ast.Module) -> tuple[str, int]:
    """As the file calls it, and the last line of its imports; empty: it does not."""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in imports:
        for alias in node.names:
            is_from = isinstance(node, ast.ImportFrom)
            whole = f"{node.module}.{alias.name}" if is_from else alias.name
            if whole not in ("tensorflow", "tensorflow.keras", "keras"):
                continue
            name = alias.asname or alias.name
            return f"{name}.keras" if whole == "tensorflow" else name, imports[-1].end_lineno
    return "", 0
