"""Programs that start their ranks themselves: torchrun and what stands on it, torch.multiprocessing.spawn. A few ranks are started in the place of all."""

from __future__ import annotations

import functools
import itertools
import json
import multiprocessing.process
import os
import pickle
import subprocess
import sys
import time

from .... import _import_watch
from ...session.session import current
from ...session.unplannable import Unplannable
from ..tensors import places
from . import ranks

_LAUNCHER = "torch.distributed.launcher.api"


def _noting_death(function):
    """What calls it in a process of its own prints the exception, or sends it to the parent, and ends the process."""

    @functools.wraps(function)
    def faultline(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as problem:
            if (session := current()) is not None:
                session.note_death(problem, problem.__traceback__)
            raise

    return faultline


class _Chosen:
    """What spawn() calls in a process of a rank that stands for others: the number it is given is that of its place in the list."""

    def __init__(self, function, rank: int, turn: str, of: int):
        self.function, self.rank, self.turn, self.of = function, rank, turn, of

    def __call__(self, _index, *args):
        places.started = self.of
        os.environ.update(ranks.started(self.rank, self.turn))
        return _noting_death(self.function)(self.rank, *args)


def _next_turn(count=itertools.count(1)) -> str:
    return f"-{os.getpid()}-{next(count)}"


def _in_turn(shared: ranks.Shared, chosen: list[int], start, running) -> None:
    """Starts the ranks, each when the one before has come to its end; none after one that failed."""
    try:
        for rank in chosen:
            process = start(rank)
            while shared.get(f"ended {rank}") is None and running(process):
                time.sleep(0.02)
            end = shared.get(f"ended {rank}")
            if end is None or json.loads(end)["problem"]:
                break
    finally:
        shared.put("all have ended", b"")


def _launch(session, config, entrypoint, args) -> dict:
    """In the place of torch.distributed.launcher.api.launch_agent."""
    world = session.options.get("ranks") or config.nproc_per_node * config.max_nodes
    per_node = min(world, config.nproc_per_node)
    address, _, port = (config.rdzv_endpoint or "").partition(":")
    turn, processes = _next_turn(), []

    def start(rank):
        given = ranks.environment(
            rank,
            world,
            per_node,
            address or "127.0.0.1",
            int(port) if port.isdigit() and int(port) else 29500,
            config.run_id or "none",
            config.role,
            config.max_restarts,
        )
        command = [entrypoint, *map(str, args)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            **given,
            **ranks.started(rank, turn),
        }
        processes.append(
            subprocess.Popen([part.replace("${local_rank}", given["LOCAL_RANK"]) for part in command], env=environment)
        )
        return processes[-1]

    if callable(entrypoint):
        return _launch_function(session, world, per_node, entrypoint, args)
    chosen = ranks.representatives(world)
    _in_turn(ranks.Shared(session.options["folder"], turn), chosen, start, lambda process: process.poll() is None)
    status = max((_status(process.wait()) for process in processes), default=0)
    if status:
        sys.exit(status)
    return {}


def _status(returned: int) -> int:
    return returned if returned >= 0 else 128 - returned


class _WithEnvironment:
    """A function that a launcher calls in each rank, which finds its rank in the environment."""

    def __init__(self, function, world: int, per_node: int):
        self.function, self.world, self.per_node = function, world, per_node

    def __call__(self, rank, *args):
        os.environ.update(ranks.environment(rank, self.world, self.per_node))
        return self.function(*args)


def _launch_function(session, world, per_node, function, args) -> dict:
    import torch.multiprocessing

    torch.multiprocessing.spawn(_WithEnvironment(function, world, per_node), tuple(args), nprocs=world)
    return {}


def _spawn_few(session, start_processes):
    """In the place of torch.multiprocessing.start_processes."""

    def faultline(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", *rest, **options):
        if nprocs == 1:
            return start_processes(fn, args, nprocs, join, daemon, start_method, *rest, **options)
        turn, contexts = _next_turn(), []

        def start(rank):
            try:
                contexts.append(start_processes(_Chosen(fn, rank, turn, nprocs), args, 1, False, daemon, "spawn"))
            except (AttributeError, TypeError, pickle.PicklingError) as problem:
                if start_method == "spawn":
                    raise
                raise Unplannable(
                    f"start_processes() with the start method {start_method!r}: a dry run starts ranks by 'spawn', and what is to be run "
                    f"there cannot be handed over ({problem})"
                ) from None
            return contexts[-1]

        shared = ranks.Shared(session.options["folder"], turn)
        _in_turn(
            shared,
            ranks.representatives(nprocs),
            start,
            lambda context: any(process.is_alive() for process in context.processes),
        )
        for context in contexts if join else contexts[:-1]:
            while not context.join():
                pass
        return None if join else contexts[-1]

    return faultline


def install(session) -> None:
    import torch.multiprocessing as processes

    spawning = sys.modules[processes.spawn.__module__]
    few = _spawn_few(session, spawning.start_processes)
    spawning.start_processes = processes.start_processes = few
    multiprocessing.process.BaseProcess.run = _noting_death(multiprocessing.process.BaseProcess.run)

    def watched(_name, api):
        def launch_agent(config, entrypoint, args, *_rest, **_options):
            return _launch(session, config, entrypoint, args)

        api.launch_agent = launch_agent

    if _LAUNCHER in sys.modules:
        watched(_LAUNCHER, sys.modules[_LAUNCHER])
    else:
        _import_watch.ImportWatch((_LAUNCHER,), watched)
