"""The switches that libraries have for a remedy: an argument of the call with which a program sets up its training. A program that has such a call is told the switch, and no lines of
a training loop that it does not have."""

from __future__ import annotations

import ast
import os

from ...source.edits import Edit, behind_arguments, is_installed, name_called, spans_edit
from ...source.reader import program_sources
from .accumulating import accelerated_edits

_ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "ORPOConfig", "KTOConfig")
_LIGHTNING = ("Trainer",)
_ACCELERATE = ("Accelerator",)
# remedy → the calls that have a switch for it, and the switch; of Lightning's Trainer the module that has it must be imported
_SWITCHES = {
    "checkpoint": ((_ARGUMENTS, "gradient_checkpointing=True"),),
    "autocast bfloat16": (
        (_ARGUMENTS, "bf16=True"),
        (_ACCELERATE, 'mixed_precision="bf16"'),
        (_LIGHTNING, 'precision="bf16-mixed"'),
    ),
    "autocast float16": (
        (_ARGUMENTS, "fp16=True"),
        (_ACCELERATE, 'mixed_precision="fp16"'),
        (_LIGHTNING, 'precision="16-mixed"'),
    ),
    "accumulate": (
        (_ARGUMENTS, "gradient_accumulation_steps={}"),
        (_ACCELERATE, "gradient_accumulation_steps={}"),
        (_LIGHTNING, "accumulate_grad_batches={}"),
    ),
    "8bit": ((_ARGUMENTS, 'optim="adamw_bnb_8bit"'),),
}
_NEEDED = {"8bit": ("bitsandbytes",)}


def switch(remedy: str, many="", step_place="") -> tuple[str, list[Edit]]:
    """As an instruction, with the lines; empty: the program sets up its training otherwise, or has the argument already. step_place: of the loop, where the switch wants other lines there."""
    for source in program_sources():
        file, tree = source.file, source.tree
        lightning = _imports(tree, ("lightning", "pytorch_lightning"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for names, words in _SWITCHES[remedy]:
                if name_called(call) not in names or names is _LIGHTNING and not lightning:
                    continue
                words = words.format(many)
                given = {keyword.arg for keyword in call.keywords}
                if words.partition("=")[0] in given or None in given:
                    return "", []
                if remedy == "accumulate" and names is _ACCELERATE:
                    loop = accelerated_edits(step_place)
                    return "", [] if loop is None else _with_argument(file, call, words) + loop
                where = f"{os.path.basename(file)}:{call.lineno}"
                edits = _with_argument(file, call, words) if _can_be_run(remedy) else []
                return f"Pass {words} to {name_called(call)} ({where})", edits
    return "", []


def _can_be_run(remedy: str) -> bool:
    """Some switches want a library of their own."""
    return all(is_installed(library) for library in _NEEDED.get(remedy, ()))


def _imports(tree, packages: tuple) -> bool:
    named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] in packages for name in named)


def _with_argument(file: str, call: ast.Call, words: str) -> list[Edit]:
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    span = behind_arguments(file, call, arguments, words)
    return spans_edit(file, span.line, span.end_line, [span])
