#!/usr/bin/env python3
"""Makes a large PyTorch memory snapshot out of a real, short recording.

    scripts/bench/make_snapshot.py --events 300000 [-o FILE]
    scripts/bench/make_snapshot.py --bytes 1GiB [-o FILE]

The recording is a GPT that trains for four steps; after the first, its steps 2 to 4 are repeated. Each request is placed as PyTorch's
allocator would place it, each stack is deepened to the depth of a real training job, and the file has the bytes CPython's pickler would
write for torch.cuda.memory._snapshot(). Once a repetition leaves the allocator as it found it, all later ones have the same addresses and
are written from the same bytes, so a gibibyte takes seconds. The file is kept under .cache/bench/ and made only once.
"""

import argparse
import hashlib
import lzma
import os
import pickle
import re
import sys
from collections import namedtuple

from caching_allocator import CachingAllocator
from pickle_stream import BATCH, MARK, PickleStream
from stacks import Stacks, fresh

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORDING = os.path.join(ROOT, "tests", "fixtures", "torch", "gpt.pickle.xz")
CACHE = os.path.join(ROOT, ".cache", "bench")

# One alloc, or one free with its completion. `key` names the allocation: its place in the recording.
Request = namedtuple("Request", "is_free key size stream time_us completed_us frames")

# The trace is head, then `repeats` times the last repetition of the head, each `period_us` later, then tail.
Plan = namedtuple("Plan", "segments head period repeats period_us tail annotations settings")


def read_recording(path=RECORDING):
    with lzma.open(path) as file:
        return pickle.load(file)


def requests_of(trace):
    requests, live = [], {}
    for i, event in enumerate(trace):
        action, frames = event["action"], event["frames"]
        if action == "alloc":
            live[event["addr"]] = i
            requests.append(Request(False, i, event["size"], event["stream"], event["time_us"], None, frames))
        elif action == "free_requested":
            key = live.pop(event["addr"])
            requests.append(
                Request(True, key, event["size"], event["stream"], event["time_us"], trace[i + 1]["time_us"], frames)
            )
    return requests


class Workload:
    """The recording as a beginning and a cycle of steps that can follow itself."""

    def __init__(self, recording):
        ends = [
            a["time_us"] for a in recording["external_annotations"] if a["stage"] == "END" and "zero_grad" in a["name"]
        ]
        self.begin_us, self.period_us = ends[0], ends[-1] - ends[0]
        trace = recording["device_traces"][0]
        requests = requests_of(trace)
        self.setup = [r for r in requests if r.time_us <= ends[0]]
        self.cycle = [r for r in requests if ends[0] < r.time_us <= ends[-1]]
        self.annotations = recording["external_annotations"]
        self.settings = recording["allocator_settings"]
        self.segment_addresses = [e["addr"] for e in trace if e["action"] == "segment_alloc"]
        # What the cycle leaves alive stands for what it found alive and freed: the last batch and its loss.
        made = {r.key: r for r in self.cycle if not r.is_free}
        freed = {r.key: r for r in self.cycle if r.is_free}
        left = sorted(made.keys() - freed.keys())
        found = sorted(freed.keys() - made.keys())
        if [made[key].size for key in left] != [freed[key].size for key in found]:
            raise ValueError("the recording's steps cannot follow themselves")
        self.handed_on = list(zip(left, found))


class Simulation:
    """Plays requests, and keeps the allocator's state and the events so far."""

    def __init__(self, workload):
        self.workload = workload
        self.allocator = CachingAllocator(workload.segment_addresses)
        self.stacks = Stacks()
        self.live = {}  # key -> Block
        self.events = []

    def play(self, requests, shift_us, stop_at=None):
        """False if it stopped because there are `stop_at` events."""
        for r in requests:
            if stop_at is not None and len(self.events) >= stop_at:
                return False
            frames = list(self.stacks.deepen(r.frames, r.is_free, r.size))
            if r.is_free:
                block = self.live.pop(r.key)
                address = block.address
                self.allocator.free(block)
                self._record("free_requested", address, r.size, r.stream, r.time_us + shift_us, frames)
                self._record("free_completed", address, r.size, r.stream, r.completed_us + shift_us, frames)
            else:
                block, segment = self.allocator.alloc(r.size, r.stream, frames)
                self.live[r.key] = block
                if segment:
                    self._record("segment_alloc", segment.address, segment.size, r.stream, r.time_us + shift_us, frames)
                self._record("alloc", block.address, r.size, r.stream, r.time_us + shift_us, frames)
        return True

    def play_cycle(self, number, stop_at=None):
        whole = self.play(self.workload.cycle, number * self.workload.period_us, stop_at)
        if whole:
            for left, found in self.workload.handed_on:
                self.live[found] = self.live.pop(left)
        return whole

    def state(self):
        blocks = [(b.address, b.size, b.requested, b.frames is not None) for b in self.allocator.blocks()]
        kept = [(s.address, s.frames is not None) for s in self.allocator.segments]
        return blocks, kept, sorted((key, block.address) for key, block in self.live.items())

    def segments(self):
        """As a snapshot shows them. A segment or block without a stack gets the one shared empty list, and there it comes before the blocks."""
        nothing, shown = [], []
        for segment in sorted(self.allocator.segments, key=lambda s: s.address):
            blocks, block = [], segment.first
            while block:
                active = block.frames is not None
                blocks.append(
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": "active_allocated" if active else "inactive",
                        "frames": block.frames if active else nothing,
                    }
                )
                block = block.after
            used = [b for b in blocks if b["state"] == "active_allocated"]
            entry = {
                "device": 0,
                "address": segment.address,
                "total_size": segment.size,
                "allocated_size": sum(b["size"] for b in used),
                "active_size": sum(b["size"] for b in used),
                "requested_size": sum(b["requested_size"] for b in used),
                "stream": segment.stream,
                "segment_type": "small" if segment.small else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
            }
            entry.update(
                {"blocks": blocks, "frames": segment.frames}
                if segment.frames is not None
                else {"frames": nothing, "blocks": blocks}
            )
            shown.append(entry)
        return shown

    def _record(self, action, address, size, stream, time_us, frames):
        self.events.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": stream,
                "time_us": time_us,
                "compile_context": fresh("N/A"),
                "user_metadata": "",
                "frames": frames,
            }
        )


def annotations_until(workload, last_us):
    """The recording's annotations, and those of its cycle again for each repetition, up to a time."""
    shown, cycle = [], 0
    while True:
        for a in workload.annotations:
            time_us = a["time_us"] + cycle * workload.period_us
            if cycle and a["time_us"] <= workload.begin_us:
                continue
            if time_us > last_us:
                return shown
            shown.append(
                {
                    fresh("stage"): fresh(a["stage"]),
                    fresh("name"): fresh(a["name"]),
                    "device": a["device"],
                    "time_us": time_us,
                }
            )
        cycle += 1


def make_plan(workload, events=None, repeats=0):
    """A trace of at least `events` events, or one whose period is repeated `repeats` times."""
    sim = Simulation(workload)
    whole = sim.play(workload.setup, 0, events)
    cycle, period, before = 0, 0, None
    while whole and sim.state() != before:
        before, start = sim.state(), len(sim.events)
        whole = sim.play_cycle(cycle, events)
        cycle, period = cycle + 1, len(sim.events) - start
    head, sim.events = sim.events, []
    if whole:
        if events is not None:
            repeats = max(0, (events - len(head)) // period - 1)
        # The last whole cycle is played, not repeated: the final blocks share the lists of its events.
        stop_at = None if events is None else events - len(head) - repeats * period
        cycle += repeats
        while sim.play_cycle(cycle, stop_at) and stop_at is not None:
            cycle += 1
    last_us = (sim.events or head)[-1]["time_us"]
    return Plan(
        sim.segments(),
        head,
        period,
        repeats if whole else 0,
        workload.period_us,
        sim.events,
        annotations_until(workload, last_us),
        workload.settings,
    )


class EventList:
    """The items of one long list, with the marks CPython sets around each thousand."""

    def __init__(self, stream):
        self.stream, self.count = stream, 0

    def put(self, piece, offsets):
        if self.count % BATCH == 0:
            self.stream.put(b"e" + MARK if self.count else MARK)
        self.count += 1
        self.stream.put(piece, offsets)

    def close(self):
        self.stream.put(b"e")


def put_repeats(plan, stream, events):
    """Encodes the period once; of its bytes only the times and the look-ups of its own lists change from one repetition to the next."""
    templates, frames, first = [], None, stream.memo_count
    for event in plan.head[-plan.period :]:
        # New lists and strings, shared among each other as the originals are.
        is_second = event["action"] == "free_completed"
        frames = frames if is_second else list(event["frames"])
        piece, offsets = stream.encode({**event, "compile_context": fresh("N/A"), "frames": frames})
        time = b"\x8a\x07" + event["time_us"].to_bytes(7, "little")
        before, after = piece.split(time)
        looked_up = int.from_bytes(after[-5:-1], "little") if is_second else None
        if is_second:
            after = after[:-5]
        templates.append((before + time[:2], event["time_us"], after, offsets, looked_up))
    memo_step = stream.memo_count - first
    for repeat in range(plan.repeats):
        later_us, later_memo = (repeat + 1) * plan.period_us, repeat * memo_step
        for before, time_us, after, offsets, looked_up in templates:
            piece = before + (time_us + later_us).to_bytes(7, "little") + after
            if looked_up is not None:
                piece += (looked_up + later_memo).to_bytes(4, "little") + b"u"
            events.put(piece, offsets)
    stream.memo_count = first + plan.repeats * memo_step


def write_snapshot(plan, write):
    """Returns (events, bytes)."""
    stream = PickleStream(write)
    stream.open_container(b"}")
    stream.put(MARK)
    stream.save("segments")
    stream.save(plan.segments)
    stream.save("device_traces")
    stream.open_container(b"]")
    stream.open_container(b"]")
    events = EventList(stream)
    for event in plan.head:
        events.put(*stream.encode(event))
    if plan.repeats:
        put_repeats(plan, stream, events)
    for event in plan.tail:
        events.put(*stream.encode(event))
    events.close()
    stream.put(b"a")
    for key, value in (("allocator_settings", plan.settings), ("external_annotations", plan.annotations)):
        stream.save(key)
        stream.save(value)
    stream.put(b"u")
    stream.close()
    return events.count, stream.bytes_written


def plan_of_bytes(workload, size_bytes):
    """At least `size_bytes`, and about one period more at most."""
    sizes = [write_snapshot(make_plan(workload, repeats=n), lambda piece: None)[1] for n in (1, 2)]
    period_bytes = sizes[1] - sizes[0] - 32  # a period may hold a few frame headers and marks fewer than this one
    return make_plan(workload, repeats=max(1, 1 - (sizes[0] - size_bytes) // period_bytes))


def parse_bytes(text):
    match = re.fullmatch(r"(\d+)\s*([KMG]i?B|B)?", text)
    if not match:
        raise argparse.ArgumentTypeError("a size such as 300MiB or 1GiB is needed, not %r" % text)
    unit = match.group(2) or "B"
    return int(match.group(1)) * (1024 if "i" in unit else 1000) ** " KMG".index(unit[0].replace("B", " "))


def sources_digest():
    """Of the recording and of the code that makes files from it: a kept file is used only if both are what they were."""
    digest = hashlib.sha256()
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (
        RECORDING,
        *(
            os.path.join(here, name)
            for name in ("caching_allocator.py", "make_snapshot.py", "pickle_stream.py", "stacks.py")
        ),
    ):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


def make_file(events=None, size_bytes=None, path=None):
    """Path of a snapshot with that many events or bytes; made unless it is there already."""
    name = "%d-%s.pickle" % (events or size_bytes, "events" if events else "bytes")
    path = path or os.path.join(CACHE, sources_digest() + "-" + name)
    if os.path.exists(path) and path.startswith(CACHE):
        return path
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    workload = Workload(read_recording())
    plan = make_plan(workload, events=events) if events else plan_of_bytes(workload, size_bytes)
    unfinished = path + ".part"
    with open(unfinished, "wb") as file:
        count, written = write_snapshot(plan, file.write)
    os.replace(unfinished, path)
    print("%s: %d events, %d bytes, %.0f bytes per event" % (path, count, written, written / count), file=sys.stderr)
    return path


def main():
    parser = argparse.ArgumentParser(
        description="Makes a large PyTorch memory snapshot out of a real, short recording."
    )
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--events", type=int, help="at least this many events")
    size.add_argument("--bytes", type=parse_bytes, help="at least this size, for example 1GiB")
    parser.add_argument("-o", "--output", help="where to put it (default: a name of its own under .cache/bench/)")
    args = parser.parse_args()
    print(make_file(args.events, args.bytes, args.output))


if __name__ == "__main__":
    main()
