"""What would make a PyTorch program need less: a class for each row of the table (plan/remedies/table.py) that is PyTorch's. plan/remedies/remedy.py says what one is; the search among them is
src/plan/remedies.cpp."""

from __future__ import annotations

from dataclasses import asdict

from ...remedies.table import TORCH, numbers_of
from ...source import names, vary
from ...source.changed_source import MANY
from ...source.edits import numbers_in_source
from .accumulating import accumulation_edits
from .adapters import Lora
from .checkpointing import Checkpoint
from .fused_attention import Contiguous
from .no_grad import NoGrad
from .numbers import Accumulate, Batch, Sequence
from .optimizers import Foreach, SetToNone, States
from .precision import Autocast, CacheInHalf, HalfWeights
from .seen import Seen
from .sharding import Fsdp
from .switches import switch

REMEDIES = (
    NoGrad,
    Contiguous,
    SetToNone,
    Foreach,
    Batch,
    Accumulate,
    Autocast,
    Checkpoint,
    States,
    CacheInHalf,
    HalfWeights,
    Sequence,
    Lora,
    Fsdp,
)


class Remedies:
    def __init__(self, session):
        self._session = session
        self._wanted = session.options.get("changes") or {}
        self.seen = Seen(session)
        self._all = [kind(session, self.seen) for kind in REMEDIES]

    def install(self) -> None:
        self.seen.install()
        for remedy in self._all:
            remedy.install()
            if remedy.name in self._wanted:
                remedy.apply(self._wanted[remedy.name])

    def model_found(self, root) -> None:
        self.seen.model_found(root)
        for remedy in self._all:
            if remedy.name in self._wanted:
                remedy.model_found(root)

    def applied(self) -> dict[str, str]:
        """What was done, in words; a number only where the program's source had it."""
        found = {place["name"] for place in vary.found}
        return {
            name: words
            for name, words in self.seen.applied.items()
            if name not in ("batch", "sequence") or words.partition("=")[0].lower() in found
        }

    def of_numbers(self) -> list[dict]:
        return numbers_of(TORCH)

    def accumulation(self) -> list[dict]:
        """The lines of the program's own loop with gradients accumulated over so many batches."""
        if not self.seen.trains() or "accumulates" in self.seen.uses:
            return []
        try:
            if by_switch := switch("accumulate", MANY, self.seen.step_place)[1]:
                return [asdict(edit) for edit in by_switch]
            return [asdict(edit) for edit in accumulation_edits(self.seen.step_place, MANY, self.seen.have_length)]
        except Exception:  # of ours: nothing is shown
            return []

    def offers(self) -> list[dict]:
        """What applies to the program as it was seen. A remedy that cannot tell offers nothing."""
        self.seen.numbers = numbers_in_source(names.ALL)
        found = []
        for remedy in self._all:
            try:
                found += [offer.told(remedy.name, TORCH) for offer in remedy.offers()]
            except Exception as problem:  # of ours: the plan is whole without it
                self._session.notes.add("mode", f"whether {remedy.name} would help could not be told: {problem}", "")
        return found
