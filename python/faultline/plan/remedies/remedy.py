"""A remedy: one change to a program that would make it need less, as its user would make it. Each is one row of the table (table.py) and one class of its framework.

A run offers what applies to the program it has seen (offers). Where the change can be written as an edit of the program's source (source/edits.py) the offer has it: another run runs the edited
source, and the edit is what is printed. Where it cannot, that run is asked for one value of the remedy and makes the change itself (apply).

What is offered says how much of the memory that lasts (parameters, gradients, the optimizer's state) stays with it, never more than it really does: what cannot fit by that sum is not tried. The
share of the rest ("running") is a guess that only decides what is tried first. Nothing here says that anything fits: the run with it does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from ..source.edits import Edit, whole
from .table import TABLE


@dataclass
class Offer:
    value: str
    label: str  # in a row of several: "checkpointing of 6 of 12 layers"
    what: str  # as an instruction
    more_cost: int = 0  # than the table says
    keeps: dict[str, float] = field(default_factory=dict)
    dose: float = 1.0  # how much of the remedy it is: the share "running" is that of all of it
    edits: list[Edit] = field(default_factory=list)  # all of the change, or none
    many: int = 0  # what MANY in them stands for (source/changed_source.py)
    excludes: tuple = ()  # remedies that it does not go with, beside those of the table
    wants: str = ""  # one that it needs beside it
    compute: int = 0  # the compute capability it needs

    def told(self, name: str, framework: str) -> dict:
        """As the summary has it, with the traits of its row."""
        traits = TABLE[name].traits(framework)
        own = asdict(self)
        cost = traits["cost"] + own.pop("more_cost")
        excludes = [*traits["excludes"], *own.pop("excludes")]
        wants = own.pop("wants") or traits["wants"]
        edits = [asdict(edit) for edit in whole(self.edits)]
        return {**traits, **own, "cost": cost, "excludes": excludes, "wants": wants, "edits": edits}


class Remedy:
    name = ""  # of its row in the table

    def __init__(self, session, seen):
        self.session, self.seen = session, seen

    def offers(self):
        """What of it applies to the program that has run, nothing where it does not."""
        return ()

    def install(self) -> None:
        """What it looks at while the program runs, in every run."""

    def apply(self, value) -> None:
        """Before the program goes on, where the change is no edit."""

    def model_found(self, root) -> None:
        """Once for each model, before it first runs."""

    def done(self, words: str) -> None:
        self.seen.applied[self.name] = words

    def half_type(self) -> str:
        """The type of 16 bits that the GPU is good at."""
        return "bfloat16" if self.session.gpus[0].compute_capability[0] >= 8 else "float16"
