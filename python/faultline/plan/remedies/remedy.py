"""A remedy: one change to a program that would make it need less, as its user would make it. Each is one class, and one entry in its framework's table (torch/remedies).

A run offers what applies to the program it has seen (offers), and another run is asked for with one value of it (apply). What is offered says how much of
the memory that lasts (parameters, gradients, the optimizer's state) stays with it, never more than it really does: what cannot fit by that sum is not tried.
The share of the rest ("running") is a guess that only decides what is tried first. Nothing here says that anything fits: the run with it does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from ..source.edits import Edit


@dataclass
class Offer:
    value: str
    label: str  # in a row of several: "checkpointing of 6 of 12 layers"
    what: str  # as an instruction
    cost: int  # how much it asks of the user; the least is tried first
    keeps: dict[str, float] = field(default_factory=dict)
    dose: float = 1.0  # how much of the remedy it is: the share "running" is that of all of it
    edits: list[Edit] = field(default_factory=list)
    excludes: tuple = ()  # names of remedies that it does not go with
    wants: str = ""  # one that it needs beside it
    compute: int = 0  # the compute capability it needs

    def told(self, name: str) -> dict:
        return {"name": name, **asdict(self)}


class Remedy:
    name = ""

    def __init__(self, session, seen):
        self.session, self.seen = session, seen

    def offers(self):
        """What of it applies to the program that has run, nothing where it does not."""
        return ()

    def install(self) -> None:
        """What it looks at while the program runs, in every run."""

    def apply(self, value) -> None:
        """Before the program goes on."""

    def model_found(self, root) -> None:
        """Once for each model, before it first runs."""

    def done(self, words: str) -> None:
        self.seen.applied[self.name] = words

    def half_type(self) -> str:
        """The type of 16 bits that the GPU is good at."""
        return "bfloat16" if self.session.gpus[0].compute_capability[0] >= 8 else "float16"
