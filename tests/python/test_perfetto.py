"""--format perfetto: read with Perfetto's own schema (the `perfetto` package), it holds what the report says."""

import json
import lzma
import subprocess

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

from common import FAULTLINE, RECORDINGS, ROOT, refusal, write

INPUTS = [*sorted(RECORDINGS.glob("*.xz"))[::9], *sorted((ROOT / "tests/fixtures/tensorflow").glob("*.xz"))[:2]]


def faultline(*arguments):
    return subprocess.run([FAULTLINE, *map(str, arguments)], capture_output=True, cwd=ROOT)


def unknown_fields(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            count += sum(unknown_fields(item) for item in (value if field.is_repeated else [value]))
    return count


class Drawn:
    """A trace as Perfetto reads it: tracks by their path, events with their strings."""

    def __init__(self, data):
        trace = Trace()
        trace.ParseFromString(data)
        assert unknown_fields(trace) == 0
        self.events, paths, self.units = {}, {}, {}
        names, texts, keys, levels = {}, {}, {}, {}
        assert trace.packet[0].sequence_flags == TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        times = [packet.timestamp for packet in trace.packet if packet.HasField("track_event")]
        assert times == sorted(times)
        for packet in trace.packet:
            for string in packet.interned_data.event_names:
                names[string.iid] = string.name
            for string in packet.interned_data.event_categories:
                levels[string.iid] = string.name
            for string in packet.interned_data.debug_annotation_names:
                keys[string.iid] = string.name
            for string in packet.interned_data.debug_annotation_string_values:
                texts[string.iid] = string.str.decode()
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                above = paths[track.parent_uuid] + "/" if track.parent_uuid else ""
                paths[track.uuid] = above + track.name
                self.events.setdefault(paths[track.uuid], [])
                self.units[paths[track.uuid]] = track.counter.unit
            if packet.HasField("track_event"):
                event = packet.track_event
                about = {
                    keys[one.name_iid]: texts[one.string_value_iid]
                    if one.HasField("string_value_iid")
                    else one.uint_value
                    for one in event.debug_annotations
                }
                self.events[paths[event.track_uuid]].append(
                    (packet.timestamp, event.type, names.get(event.name_iid), event.counter_value, about)
                )

    def highest(self, path):
        return max(value for *_, value, _ in self.events[path])

    def named(self, word):
        return [event for path, events in self.events.items() if word in path.rpartition("/")[2] for event in events]


def drawn(*arguments):
    done = faultline(*arguments, "--format", "perfetto")
    assert done.returncode in (0, 1), done.stderr
    return Drawn(done.stdout), done.returncode


@pytest.mark.parametrize("input", INPUTS, ids=lambda path: path.name)
def test_the_trace_says_what_the_report_says(input):
    told = faultline("explain", "--format", "json", input)
    report = json.loads(told.stdout)
    trace, status = drawn("explain", input)
    assert status == told.returncode
    for device in report["devices"]:
        if not device["peak"]["allocated"]:
            continue
        name = f"GPU {device['index']}" + (f" ({device['name']})" if device["name"] else "")
        for what in ("allocated", "reserved"):
            assert trace.highest(f"{name}/{what}") == device["peak"][what]
            assert trace.units[f"{name}/{what}"] == 3  # bytes
    shown = trace.named("findings")
    assert len(shown) == len(report["findings"])
    for finding in report["findings"]:
        (one,) = [about for *_, about in shown if about["message"] == " ".join(finding["message"].split())[:1000]]
        assert (one["rule"], one["severity"]) == (finding["rule"], finding["severity"])


def test_slices_lie_within_one_another():
    trace, _ = drawn("explain", RECORDINGS / "gpt_oom.pickle.xz")
    for path in ("GPU 0/steps", "GPU 0/operations/operations"):
        depth = 0
        for _, kind, *_ in trace.events[path]:
            depth += {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}[kind]
            assert depth >= 0
        assert depth == 0 and trace.events[path]


def test_a_replay_is_drawn_as_it_would_have_been():
    recording = RECORDINGS / "gpt.pickle.xz"
    arguments = ["replay", recording, "--set", "expandable_segments=True"]
    trace, status = drawn(*arguments)
    (row,) = json.loads(faultline(*arguments, "--format", "json").stdout)["replays"]
    assert trace.highest("GPU 0/reserved") == row["peak_reserved"] and status == 0
    assert "--search" in refusal(faultline("replay", recording, "--search", "--format", "perfetto"))


def test_several_inputs_are_one_trace():
    trace, _ = drawn("explain", *INPUTS[:2])
    assert {path.partition(" · ")[0] for path in trace.events if "/allocated" in path and " · GPU" in path}
    assert sum(path.endswith("/allocated") for path in trace.events) >= 2


def test_what_has_no_recording_is_refused(tmp_path):
    report = write(tmp_path / "report.json", faultline("explain", "--format", "json", INPUTS[0]).stdout)
    assert "a report holds no events" in refusal(faultline("explain", "--format", "perfetto", report))
    message = write(
        tmp_path / "log.txt",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.00 GiB is free.\n",
    )
    assert "there is nothing to draw" in refusal(faultline("explain", "--format", "perfetto", message))


def test_hostile_names_are_text(tmp_path):
    lines = (
        'faultline-trace-text 1\nalloc #a 1MiB at "x\\xff\\x1b[31m\\n<b>.py":7 "f\\xe2\\x80\\xae"\nop-begin "\\xc3"\n'
    )
    trace, _ = drawn("explain", write(tmp_path / "trace.txt", lines))
    assert trace.highest("GPU 0/allocated") == 1 << 20
    assert not any("\x1b" in path or "\n" in path for path in trace.events)


def test_the_size_does_not_grow_with_the_recording(tmp_path):
    def size(pairs):
        lines = ["faultline-trace-text 1"]
        for at in range(pairs):
            lines += [f"alloc #a{at} {1 + at % 97}KiB at train.py:{at % 5} step", f"free #a{at}"]
        path = tmp_path / f"{pairs}.xz"
        path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=0))
        return len(faultline("explain", path, "--format", "perfetto").stdout)

    assert size(120_000) < 1.5 * size(30_000) < 9_000_000
