"""No graph where no backward pass comes to it: in an evaluation between steps of training, or in a program that never trains."""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_right

import torch

from ....common.stacks import user_line
from ...remedies.remedy import Offer, Remedy
from ...source.edits import Statement, all_or_none
from ...source.reader import program_frames

_sequence = torch.autograd._get_sequence_nr
_MOST_CALLS = 200_000
_MOST_SITES = 12
_MANY = 8  # calls in eval mode after which a program that was stopped is taken to go on like that


class Site:
    """One way to a call of a model that makes a graph: the program's lines to it, and the model's mode."""

    def __init__(self, place: str, evaluates: bool):
        self.place, self.evaluates = place, evaluates
        self.calls, self.reached = 0, False
        self.backward_after = self.after_training = False


class ModelCalls:
    """Which calls of models made a graph, and to which of the graphs a backward pass came: a graph's nodes have numbers, one after the other."""

    def __init__(self, session):
        self._progress = session.progress
        self.sites: dict[str, Site] = {}
        self._begin: int | None = None
        self._begins: list[int] = []
        self._calls: list[tuple[int, Site]] = []  # where the numbers end

    def key(self, module) -> str:
        """The same in every run of the program."""
        lines = [f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in program_frames()]
        return f"{zlib.crc32(' '.join(lines).encode()):08x}{'' if module.training else 'e'}"

    def watches(self, module) -> bool:
        return (
            torch.is_grad_enabled()
            and not self._progress.depth
            and not self._progress.in_backward
            and threading.current_thread() is threading.main_thread()
            and any(p.requires_grad for p in module.parameters())
        )

    def enter(self, module) -> None:
        """The program calls a model."""
        self._begin = _sequence() if self.watches(module) else None

    def leave(self, module) -> None:
        begin, self._begin = self._begin, None
        after = _sequence()
        if begin is None or after <= begin or len(self._begins) >= _MOST_CALLS:
            return
        key = self.key(module)
        site = self.sites.get(key)
        if site is None:
            site = self.sites[key] = Site(user_line(), not module.training)
        site.calls += 1
        site.after_training = site.after_training or self._progress.phases.was_trained(module)
        self._begins.append(begin)
        self._calls.append((after, site))

    def backward_reaches(self, number: int) -> None:
        at = bisect_right(self._begins, number) - 1
        if at >= 0 and number < self._calls[at][0]:
            self._calls[at][1].reached = True

    def backward_began(self) -> None:
        for site in self.sites.values():
            site.backward_after = True


class NoGrad(Remedy):
    name = "no_grad"

    def __init__(self, session, seen):
        super().__init__(session, seen)
        self.calls = ModelCalls(session)

    def install(self) -> None:
        self.session.progress.calls = self.calls

    def _without_backward(self) -> dict[str, Site]:
        """What runs on to its end comes to no backward any more; what was stopped may, unless one passed the call by, or the model is evaluated."""
        whole = not self.session.stopped and self.session.problem is None
        serves = not self.seen.trains() and not self.seen.optimizers

        def is_known(site: Site) -> bool:
            goes_on = site.evaluates and (site.after_training or serves and site.calls >= _MANY)
            return whole or site.backward_after or goes_on

        return {key: site for key, site in self.calls.sites.items() if not site.reached and is_known(site)}

    def offers(self):
        sites = self._without_backward()
        if not sites or len(sites) > _MOST_SITES:
            return
        all_of_them = not self.seen.trains() and len(sites) == len(self.calls.sites)
        places = list(dict.fromkeys(site.place for site in sites.values()))
        if all_of_them:
            what = "Call the model under torch.no_grad(): the program never calls backward"
            if self.session.stopped:
                what = "Call the model under torch.no_grad(): no backward pass was seen"
        else:
            named = ", ".join(f"{place.rpartition('/')[2]}" for place in places[:3])
            left = len(places) - 3
            more = f" and {left} more line{'' if left == 1 else 's'}" if left > 0 else ""
            what = f"Run the forward passes that no backward pass follows under torch.no_grad(): {named}{more}"
        needed = {site.place for key, site in self.calls.sites.items() if key not in sites}
        edits = all_or_none([Statement(place).wrapped("with torch.no_grad():") for place in places])
        yield Offer(
            "true" if all_of_them else "+".join(sorted(sites)),
            "torch.no_grad()" if all_of_them else "torch.no_grad() where no backward follows",
            what,
            keeps={"running": 0.1},
            edits=[] if needed & set(places) else edits,  # the line is on the way to a backward pass, too
        )

    def apply(self, value) -> None:
        calls, call = self.calls, torch.nn.Module.__call__
        wanted = None if value in (True, "true") else set(str(value).split("+"))

        def faultline(module, *args, **kwargs):
            if not calls.watches(module) or wanted is not None and calls.key(module) not in wanted:
                return call(module, *args, **kwargs)
            self.done("the model was called under torch.no_grad()")
            with torch.no_grad():
                return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = faultline
