"""Which ranks of a program of many are run, and what they leave for one another.

A few stand for all: the first, one between and the last. They are started one after the other, because the first has what the others are told (an object
that it broadcasts, a key of the store): it is kept in files in the plan's folder. A rank that has ended waits, with its trace still open, until
the last one has: so each can note how its peak compares.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time

from ...._private import private
from ....common.stacks import user_line

_STARTED = "FAULTLINE_RANK"  # "rank round", set for ranks that a launcher of launchers.py starts: they wait for the others before they end
_GRACE_S = 10  # how long a rank that was started by the program itself may be behind another


def representatives(world: int) -> list[int]:
    return sorted({0, world // 2, world - 1} if world > 2 else range(world))


def listed(ranks: list[int]) -> str:
    words = [str(rank) for rank in ranks]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def environment(
    rank: int,
    world: int,
    per_node: int,
    address: str = "127.0.0.1",
    port: int = 29500,
    run_id: str = "none",
    role: str = "default",
    restarts: int = 0,
) -> dict:
    """What torchrun gives a worker."""
    nodes = -(-world // per_node)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % per_node),
        "GROUP_RANK": str(rank // per_node),
        "ROLE_RANK": str(rank),
        "ROLE_NAME": role,
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(min(per_node, world)),
        "GROUP_WORLD_SIZE": str(nodes),
        "ROLE_WORLD_SIZE": str(world),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(restarts),
        "TORCHELASTIC_RUN_ID": run_id,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }


def started(rank: int, turn: str) -> dict:
    """For the environment of a rank that is started in turn with others."""
    return {_STARTED: f"{rank} {turn}"}


def _own_start() -> tuple[int | None, str]:
    rank, _, turn = os.environ.get(_STARTED, "").partition(" ")
    return (int(rank), turn) if rank else (None, "")


class Shared:
    """Files in the plan's folder that the ranks of one program share; of one turn, where it starts them more than once."""

    def __init__(self, folder: str, turn: str):
        self._folder = os.path.join(folder, "ranks" + turn)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32])

    def put(self, name: str, content: bytes) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(name)
        with open(f"{path}-{os.getpid()}", "wb", opener=private) as file:
            file.write(content)
        os.replace(f"{path}-{os.getpid()}", path)

    def get(self, name: str) -> bytes | None:
        try:
            with open(self._path(name), "rb") as file:
                return file.read()
        except OSError:
            return None

    def await_from(self, rank: int, name: str) -> bytes | None:
        """What that rank leaves under a name; None where it ended, or does not come, without having left it."""
        began = time.monotonic()
        while (content := self.get(name)) is None:
            ended = self.get(f"ended {rank}") is not None
            if (
                ended
                or self.get(f"begun {rank}") is None
                and (os.environ.get(_STARTED) or time.monotonic() - began > _GRACE_S)
            ):
                return self.get(name)
            time.sleep(0.05)
        return content


class Collectives:
    """The order of collectives in each group: all of its ranks must have the same, or they wait for one another for ever."""

    _MOST = 5000

    def __init__(self):
        self.groups: dict[str, list] = {}

    def add(self, group: str, kind: str) -> None:
        told = self.groups.setdefault(group, [])
        if len(told) < self._MOST:
            told.append((kind, user_line()))

    def parting(self, other: dict, to_the_end: bool) -> tuple | None:
        """Where another rank's order differs: which collective it is, and what each of the two does, with its line."""
        for group in self.groups.keys() & other.keys():
            own, others = self.groups[group], other[group]
            for number, (here, there) in enumerate(zip(own, others), 1):
                if here[0] != there[0]:
                    return number, here, there
            if to_the_end and len(own) != len(others):
                number = min(len(own), len(others))
                nothing = ("nothing more", "")
                return (
                    number + 1,
                    own[number] if len(own) > number else nothing,
                    others[number] if len(others) > number else nothing,
                )
        return None


class Rank:
    """This process as a rank of the program: from its process group on."""

    def __init__(self, session):
        self._session = session
        self._parent = os.getppid()
        self.number = self.world = None
        self.collectives = Collectives()

    @functools.cached_property
    def shared(self) -> Shared:
        return Shared(self._session.options["folder"], _own_start()[1])

    def begin(self, number: int, world: int) -> None:
        self.number, self.world = number, world
        self.shared.put(f"begun {number}", b"")
        chosen = representatives(world)
        if number in chosen and world > len(chosen):
            text = f"of {world} ranks, {listed(chosen)} are run, and the others are taken to be like them; this is about rank {number}"
            self._session.notes.add("mode", text, line="")

    def end(self, peaks: dict) -> None:
        """Before the trace is closed: the peaks of all ranks that are run are compared."""
        told = _own_start()[0]
        number = told if self.number is None else self.number
        if number is None:
            return
        problem = self._session.problem
        self.shared.put(
            f"ended {number}",
            json.dumps(
                {
                    "peak": peaks["peak_reserved"],
                    "problem": problem,
                    "stopped": self._session.stopped,
                    "collectives": self.collectives.groups,
                }
            ).encode(),
        )
        while told is not None and self.shared.get("all have ended") is None and os.getppid() == self._parent:
            time.sleep(0.02)
        self._compare(number)

    def _compare(self, number: int) -> None:
        ended = {
            rank: json.loads(content)
            for rank in representatives(self.world or 1)
            if (content := self.shared.get(f"ended {rank}")) is not None
        }
        for rank, end in ended.items():
            if end["problem"] and rank != number:
                problem = end["problem"]
                self._session.notes.add(
                    "mode",
                    f"rank {rank} ended with {problem['type']}: {problem['message']}",
                    line=f"{problem['file']}:{problem['line']}",
                )
        if number in ended:
            self._find_parting(number, ended)
        peaks = {rank: end["peak"] for rank, end in ended.items() if not end["problem"]}
        if len(peaks) > 1 and max(peaks.values()) > 1.01 * min(peaks.values()):
            each = ", ".join(f"rank {rank} {peak / (1 << 30):.2f} GiB" for rank, peak in peaks.items())
            text = f"the ranks differ in the memory they take from the GPU: {each}; ranks that were not run can take another amount"
            self._session.notes.add("mode", text, line="")

    def _find_parting(self, number: int, ended: dict) -> None:
        from ...session.unplannable import Unplannable

        for rank, end in ended.items():
            whole = not any(e["problem"] or e["stopped"] for e in (end, ended[number]))
            found = self.collectives.parting(end["collectives"], whole) if rank != number else None
            if found is not None:
                at, here, there = found
                text = (
                    f"ranks {number} and {rank} do not make the same collectives: the {_ordinal(at)} of a group is {_told(here)} on rank {number} "
                    f"and {_told(there)} on rank {rank}, where the program would wait for ever"
                )
                Unplannable(text, here[1] or there[1])  # nobody is to catch it: that it was made is enough
                return


def _told(collective) -> str:
    kind, line = collective
    return f"{kind.strip('_')} at {os.path.basename(line)}" if line else kind.strip("_")


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
