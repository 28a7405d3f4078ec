"""What the dry run of one process leaves beside its trace, in process-PID.json: the one table of its keys.

Whoever writes a summary gives the keys it has something to say under; the others are written as they are by default. It is read in src/process/dry_run_files.cpp, with the names that
stand here, and docs/run-folder.md lists them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from ..._private import private

# What a value can be: one of these words; a dictionary is an object with just these members; a list of one kind holds values of it.
WORDS = {
    "bytes": int,
    "count": int,
    "seconds": (int, float),
    "share": (int, float),
    "number": (int, float),
    "flag": bool,
    "text": str,
    "line": str,  # "train.py:12", with its folder; empty: none
}


@dataclass(frozen=True)
class Map:
    """An object with any members, all of one kind."""

    of: object


EDIT = {"file": "text", "line": "count", "old": ["text"], "new": ["text"]}
PLACE = {
    "name": "text",
    "file": "text",
    "line": "count",
    "column": "count",
    "end": "count",
    "value": "number",
    "what": "text",
}
OFFER = {
    "name": "text",
    "value": "text",
    "label": "text",
    "what": "text",
    "cost": "count",
    "keeps": Map("share"),
    "dose": "share",
    "excludes": ["text"],
    "wants": "text",
    "compute": "count",
    "edits": [EDIT],
    "many": "count",
    "beside": "text",
    "number": "text",
    "cost_step": "count",
    "answers": "flag",
    "is_searched": "flag",
    "computes_another": "flag",
    "tells": "flag",
    "wants_more_gpus": "flag",
}


@dataclass(frozen=True)
class Key:
    kind: object
    means: str
    default: object
    is_read: bool = True  # by the verb; else it is there for whoever looks into the folder


KEYS = {
    "framework": Key("text", "whose dry run it was, with its version: `PyTorch 2.13.0`", ""),
    "unsupported": Key(
        {"text": "text", "of": "text"},
        "why the dry run could not begin; `of`: `framework` where it is the framework as it is installed, `folder` where the run's folder takes no trace, else empty",
        None,
    ),
    "unplanned": Key(
        {"text": "text", "line": "line", "gpus": "count"},
        "what could not be planned first, and where; `gpus`: how many the program uses, where those are more than the plan has",
        None,
    ),
    "exception": Key(
        {"type": "text", "message": "text", "file": "text", "line": "count", "function": "text"},
        "what ended the program, and its line",
        None,
    ),
    "died_of_memory": Key("flag", "the exception was an out-of-memory, or was raised while one was handled", False),
    "last_was_out_of_memory": Key("flag", "nothing was served after the last request that failed", False),
    "stand_in": Key(
        "line", "where a value that is not computed was read last, if the program's end may come of that", ""
    ),
    "stopped": Key("text", "after what the dry run stopped the program", None),
    "stopped_by": Key("text", "what made it do so: `steps`, `alike`, `loop` or `seconds`", None),
    "peak_allocated": Key("bytes", "the most that was allocated at once, on the GPU that took most", 0, is_read=False),
    "peak_reserved": Key("bytes", "the most that was reserved at once, on that GPU", 0),
    "allocations": Key("count", "requests that were served, on all GPUs", 0),
    "ooms": Key("count", "requests that failed", 0),
    "operations": Key("count", "what the program did on the GPU", 0),
    "steps": Key("count", "optimizer steps; of JAX and TensorFlow rounds of what is called again and again", 0),
    "optimizers": Key("count", "optimizers that take part in each step", 0),
    "most_turns": Key("count", "steps of the optimizer that made most", 0),
    "least_turns": Key("count", "steps of the one that made least", 0),
    "alike_from": Key("count", "the last step that was unlike the one before it", 0),
    "loop": Key(
        {"where": "text", "rounds": "count", "steps": "count", "begun": "count"},
        "the loop around the steps: how many rounds and steps it makes in all; without steps, how many rounds were begun",
        None,
    ),
    "rising": Key(
        [{"where": "text", "number": "count", "begun": "count", "rounds": "count"}],
        "loops over data that were ended early while memory rose in them; `number`: of their marks in the trace",
        [],
    ),
    "training_batch": Key("count", "the batch of the loader that the steps take batches of", 0),
    "phases": Key(["text"], "what the program came to: training, evaluation, saving", []),
    "not_reached": Key(["text"], "what its own files have and it did not come to", []),
    "uses": Key(["text"], "what the program does by itself: autocast, checkpoint, foreach", []),
    "lasting": Key(Map("bytes"), "what stays from step to step: parameters, gradients, optimizer", {}),
    "token_lengths": Key(["count"], "lengths of what it looked up in embeddings", []),
    "asked_free": Key("line", "where it asked how much memory is free", None),
    "ranks": Key("count", "ranks of the program that this process is one of", 0),
    "changes": Key(Map("text"), "what this run was asked to do otherwise, and did: remedies by name", {}),
    "edited": Key(
        {"remedies": ["text"], "edits": [EDIT]},
        "remedies that were tried as edits of the program's source, and all these edits together, which were run",
        None,
    ),
    "vary": Key({"found": [PLACE]}, "where the number stood that was given another value", None),
    "offers": Key([OFFER], "changes that apply to what it did, to be tried", []),
    "number_offers": Key([OFFER], "what may be done with numbers of the program, wherever they stand", []),
    "numbers": Key(
        [{**PLACE, "edits": [EDIT]}], "numbers of its own files that are called as batches and lengths are", []
    ),
    "accumulation": Key([EDIT], "its loop with gradients accumulated over several batches", []),
    "began": Key("seconds", "when the process was started, since the machine was; 0: not known", 0),
    "ended": Key("seconds", "when it ended, on the same clock", 0),
}


def leave(options: dict, told: dict) -> None:
    """In the run's folder."""
    whole = {**{name: key.default for name, key in KEYS.items()}, **told}
    try:
        path = os.path.join(options["folder"], f"process-{os.getpid()}.json")
        with open(path, "w", encoding="utf-8", opener=private) as file:
            json.dump(whole, file)
    except OSError:
        pass  # the verb finds none, and says so


def wrong_in(summary: dict) -> list[str]:
    """Where a summary is not as the table has it."""
    wrong = [f"{name} is no key" for name in summary if name not in KEYS]
    for name, key in KEYS.items():
        if name not in summary:
            wrong.append(f"{name} is missing")
        elif summary[name] is not None or key.default is not None:
            wrong += _wrong(name, key.kind, summary[name])
    return wrong


def _wrong(name: str, kind, value) -> list[str]:
    if isinstance(kind, str):
        is_flag = isinstance(value, bool)
        fits = isinstance(value, WORDS[kind]) and is_flag == (kind == "flag")
        return [] if fits else [f"{name} is not {kind}: {value!r}"]
    if isinstance(kind, list):
        if not isinstance(value, list):
            return [f"{name} is no list: {value!r}"]
        return [found for at, each in enumerate(value) for found in _wrong(f"{name}[{at}]", kind[0], each)]
    if not isinstance(value, dict):
        return [f"{name} is no object: {value!r}"]
    if isinstance(kind, Map):
        return [found for at, each in value.items() for found in _wrong(f"{name}.{at}", kind.of, each)]
    wrong = [f"{name} has {more}" for more in value if more not in kind]
    return wrong + [
        found for at, each in value.items() if at in kind for found in _wrong(f"{name}.{at}", kind[at], each)
    ]


def in_words(kind) -> str:
    """A kind as the page has it."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return f"list of {in_words(kind[0])}"
    if isinstance(kind, Map):
        return f"{in_words(kind.of)} by name"
    return "{" + ", ".join(kind) + "}"
