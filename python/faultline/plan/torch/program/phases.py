"""Which phase the program is in, told from what it does: building until a model runs; training (a model that computes gradients, a backward pass, an optimizer's step);
evaluation (a model that is trained runs in eval mode or without gradients); generation (that inside a function called generate); saving (torch.save, safetensors). A
model that is not trained, run without gradients in a training step, is a part of the step; after the last step it is evaluation too (src/plan/phases.cpp knows which was the last). Each change is a mark in the trace: an operation "phase NAME".
"""

from __future__ import annotations

import functools
import sys

import torch

from ...session import marks
from ...session.weak_by_id import WeakById

_MOST_MARKS = 20_000
BUILDING, TRAINING, EVALUATION, GENERATION, SAVING = "building", "training", "evaluation", "generation", "saving"
_UNTRAINED = "untrained"  # after a step: of the next one, or of an evaluation if none comes


class Phases:
    def __init__(self, memory):
        self._memory = memory
        self._marks = 0
        self.now = ""
        self._trained = WeakById()
        self._optimized: set[int] = set()  # parameters that an optimizer has
        self.seen: list[str] = []
        self._has_stepped = self._untrained_in_steps = False
        self.enter(BUILDING)

    def enter(self, name: str) -> None:
        if name == self.now or self._marks > _MOST_MARKS:
            return
        self._marks += 1
        self._untrained_in_steps |= self.now == _UNTRAINED and name == TRAINING
        self.now = name
        if name not in self.seen and name != _UNTRAINED:
            self.seen.append(name)
        self._memory.device.mark(marks.PHASE + name, self._memory.stacks.here())

    def model_runs(self, root) -> None:
        """A model is called by the program itself."""
        if torch.is_grad_enabled() and root.training:
            if any(p.requires_grad for p in root.parameters()):
                self._trained.add(root)
                self.trains()
        elif self._is_trained(root) or self.now not in (TRAINING, _UNTRAINED) and self._may_be_trained(root):
            self.enter(GENERATION if _is_generating() else EVALUATION)
        elif self.now == TRAINING and self._has_stepped:
            self.enter(_UNTRAINED)

    def was_trained(self, root) -> bool:
        return root in self._trained

    def all_seen(self, stopped: bool) -> list[str]:
        """At the end of the program."""
        evaluates = self.now == _UNTRAINED and not (stopped and self._untrained_in_steps)
        return self.seen + [EVALUATION] * (evaluates and EVALUATION not in self.seen)

    @property
    def has_optimizer(self) -> bool:
        return bool(self._optimized)

    def _is_trained(self, root) -> bool:
        """Itself, or as a part of a model."""
        return root in self._trained or any(id(p) in self._optimized for p in root.parameters())

    def optimizes(self, parameters) -> None:
        self._optimized.update(id(p) for p in parameters)

    def _may_be_trained(self, root) -> bool:
        return not self._optimized or any(id(p) in self._optimized for p in root.parameters())

    def trains(self, stepped: bool = False) -> None:
        """A pass of a model that is trained, a backward pass, or a step."""
        self._has_stepped = stepped
        self.enter(TRAINING)

    def around_save(self, save):
        @functools.wraps(save)
        def faultline(*args, **kwargs):
            before = self.now
            self.enter(SAVING)
            try:
                return save(*args, **kwargs)
            finally:
                self.enter(before)

        return faultline

    def install(self) -> None:
        torch.save = torch.serialization.save = self.around_save(torch.save)


def _is_generating() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "generate":
            return True
        frame = frame.f_back
    return False
