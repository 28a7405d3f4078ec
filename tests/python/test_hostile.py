"""Hostile input: whatever it is, it is read or refused within bounds that stand in relation to its size, and nothing of it acts on who reads the report."""

import gzip
import json
import os
import pickle
import re
import resource
import struct
import subprocess
import xml.etree.ElementTree
import zlib

import pytest

from common import RECORDINGS, refusal, write
import hostile
import pickles

GIB = 1 << 30


def within(memory=GIB, seconds=20):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return limit


@pytest.fixture
def bounded(binary):
    """Runs within 1 GiB and 20 seconds of processor time; neither a signal nor an internal error is an answer."""

    def bounded(*args, memory=GIB, **options):
        options = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "stdin": subprocess.DEVNULL,
            "timeout": 1200,
            "preexec_fn": within(memory),
            **options,
        }
        done = subprocess.run([binary, *map(str, args)], **options)
        assert done.returncode in (0, 1, 2), (done.returncode, done.stderr[-400:])
        assert b"not enough memory" not in done.stderr
        return done

    return bounded


@pytest.fixture
def refused(bounded):
    """… and it is refused, in one sentence."""

    def refused(*args, **options):
        return refusal(bounded(*args, **options))

    return refused


# -- one thing far too often

# What each is made of, and the rules that have something to say of it.
TRACES = {
    "devices": (lambda: hostile.many_devices(60_000), ""),
    "heaps": (lambda: hostile.many_heaps(60_000), ""),
    "tower of heaps": (lambda: hostile.tower_of_heaps(60_000), ""),
    "streams": (lambda: hostile.many_streams(60_000), ""),
    "threads": (lambda: hostile.many_threads(60_000), "tensor/shape-mismatch"),
    "deep stack": (lambda: hostile.deep_stack(50_000, 5_000), ""),
    "stacks within stacks": (lambda: hostile.stacks_within_stacks(20_000), ""),
    "recursion": (lambda: hostile.recursion(40_000), ""),
    "lines and steps": (lambda: hostile.many_lines_over_many_steps(20_000, 40_000), ""),
    "growing lines": (lambda: hostile.many_growing_lines(20_000, 12), ""),
    "faults": (lambda: hostile.many_faults(60_000), "access/illegal-address"),
    "equal faults": (lambda: hostile.equal_faults_but_for_their_line(100_000), "api/launch-error"),
    "refused frees": (lambda: hostile.many_refused_frees(40_000), "api/bad-free"),
    "failed operations": (lambda: hostile.many_failed_operations(20_000), "tensor/shape-mismatch"),
    "launches": (lambda: hostile.many_launches(40_000), "access/illegal-address"),
    "counters": (lambda: hostile.many_counters(150_000), ""),
    "libraries": (lambda: hostile.many_libraries(40_000), "memory/out-of-memory"),
    "tensors": (lambda: hostile.many_tensors(20_000), "tensor/broadcast-blowup"),
    "operands": (lambda: hostile.many_tensors(200, " float32[1]" * 4_000), ""),
    "tensors that fall together": (lambda: hostile.tensors_chosen_to_fall_together(100_000), ""),
    "words of faults": (lambda: hostile.words_of_faults(20, 20_000), "access/illegal-address"),
    "long names": (lambda: hostile.long_name_on_every_event(1_000_000, 50_000), "memory/leak"),
    "fragments": (lambda: hostile.fragmented(60_000), "memory/out-of-memory memory/fragmentation"),
    "requests among mappings": (lambda: hostile.allocated_among_mappings(50_000), ""),
    "mappings": (lambda: hostile.mapped_bit_by_bit(40_000), "memory/out-of-memory"),
    "a kernel's name that grows": (lambda: hostile.kernel_name_that_grows(60), "access/illegal-address"),
}


def test_sizes_beyond_all_memory_are_refused_in_one_sentence(bounded, tmp_path):
    path = write(tmp_path / "trace.txt", hostile.sizes_beyond_all_memory(20_000))
    done = bounded("explain", path)
    assert done.returncode == 2 and not done.stdout
    assert b"the memory of device 0 is negative" in done.stderr and b"beyond all memory" in done.stderr


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_with_far_too_many_is_explained_within_bounds(bounded, tmp_path, name):
    make, rules = TRACES[name]
    path = write(tmp_path / "trace.txt", make())
    shown, told = bounded("explain", path), bounded("explain", "--format", "json", path)
    assert shown.returncode == told.returncode == (1 if rules else 0), told.stderr
    assert {finding["rule"] for finding in json.loads(told.stdout)["findings"]} == set(rules.split())
    assert len(shown.stdout) < 1 << 20
    assert len(told.stdout) < (1 << 20) + 8 * path.stat().st_size and json.loads(told.stdout)["input"]


def test_devices_beyond_those_looked_at_are_counted(bounded, tmp_path):
    path = write(tmp_path / "trace.txt", hostile.many_devices(1_000))
    report = json.loads(bounded("explain", "--format", "json", path).stdout)
    assert len(report["devices"]) == 64
    assert report["input"]["lost"]["devices beyond the 64 with the most events, which are not looked at"] == 936
    assert "and 60 more GPUs" in " ".join(bounded("explain", path).stdout.decode().split())


# -- JSON of others


def test_json_nested_far_too_deep_is_refused(refused, tmp_path):
    for text in (hostile.nested_json(100_000), '{"segments":' + hostile.nested_objects(100_000)):
        assert "nested more than 64 deep" in refused("explain", write(tmp_path / "snapshot.json", text))


@pytest.mark.parametrize(
    "text",
    [
        hostile.nested_json(100_000),
        hostile.nested_objects(100_000),
        '{"plan":' + hostile.nested_objects(10_000) + "}",
        '{"plan":{"notes":' + hostile.nested_json(10_000) + "}}",
    ],
    ids=["lists", "objects", "plan", "notes"],
)
def test_a_folders_report_nested_far_too_deep_is_refused(refused, tmp_path, text):
    write(tmp_path / "report.json", text)
    sentence = refused("explain", tmp_path)
    assert "report.json" in sentence and "nested more than 64 deep" in sentence


@pytest.mark.parametrize("name", ["process-7.json", "command.json", "report.json"])
@pytest.mark.parametrize(
    "text",
    [
        hostile.nested_json(100_000),
        hostile.nested_objects(100_000),
        hostile.json_of_many_members(300_000),
        "[" + "0," * 3_000_000 + "0]",
    ],
    ids=["lists", "objects", "members", "values"],
)
def test_json_of_a_run_beyond_bounds_is_counted_and_the_rest_explained(bounded, tmp_path, name, text):
    write(tmp_path / "torch-7-exit.pickle", pickle.dumps(pickles.small_snapshot()))
    write(tmp_path / name, text)
    done = bounded("explain", "--format", "json", tmp_path)
    report = json.loads(done.stdout)
    assert [name in counter for counter in report["input"]["lost"]] == [True], report["input"]["lost"]
    assert done.returncode == 0 and report["input"]["events"] == 2 and report["findings"] == []


def test_a_plan_with_far_too_much_in_it_is_shown_in_short(bounded, tmp_path):
    item = '{"kind":"k","what":"w","text":"t","line":"l","path":"p","fits":true,"tried":true,"detail":"d"}'
    write(tmp_path / "trace-1.faultline", b"")
    plan = ",".join(f'"{name}":[{",".join([item] * 15_000)}]' for name in ("fits", "modules", "changes", "notes"))
    write(tmp_path / "report.json", f'{{"plan":{{"verdict":"fits","trace":"t.txt",{plan}}}}}')
    write(tmp_path / "t.txt", hostile.MARK + "alloc 512\n")
    done = bounded("explain", "-v", tmp_path)
    assert (
        done.returncode == 0
        and done.stdout.startswith(b"FITS")
        and b"and 14998 more; -vv lists them" in done.stdout
        and done.stdout.count(b"\n") < 60
    ), done


def test_empty_findings_without_end_are_refused(refused, tmp_path):
    for name, content in (("a", hostile.empty_findings(990_000)), ("b", hostile.empty_findings(100_000))):
        path = write(tmp_path / name, content)
        for extra in ([], ["--format", "json"]):
            assert "objects" in refused("explain", *extra, path, memory=GIB // 2)


def test_a_notebook_of_many_cells_is_read(bounded, tmp_path):
    path = write(tmp_path / "many.ipynb", hostile.notebook_of_cells(200_000))
    done = bounded("explain", path, memory=2 * GIB)
    assert done.returncode == 1 and b"memory/out-of-memory" in done.stdout, done


# -- what unpacks to much


@pytest.mark.parametrize(
    "pack, start, filler",
    [
        pytest.param(hostile.gzip_bomb, b"\x80\x04", b"}", id="empty dicts"),
        pytest.param(hostile.xz_bomb, b"\x80\x04](", b"N", id="Nones"),
        pytest.param(hostile.gzip_bomb, b"\x80\x04", b"(", id="marks"),
        pytest.param(hostile.xz_bomb, b"[", b"[],", id="empty lists"),
        pytest.param(hostile.gzip_bomb, b"[", b" ", id="blanks"),
        pytest.param(hostile.xz_bomb, b"[", b"0,", id="zeros"),
        pytest.param(hostile.gzip_bomb, b"log\n", b".", id="log"),
        pytest.param(hostile.xz_bomb, b"faultline-trace-text 1\n", b"#", id="comments"),
        pytest.param(hostile.gzip_bomb, b"\x89FLTRACE\x01\0\0\0\0\0\0\0\0\0\x01\0" + bytes(44), b"\0", id="trace"),
    ],
)
def test_what_unpacks_to_hundreds_of_megabytes_of_nothing_is_refused(refused, tmp_path, start, filler, pack):
    packed = write(tmp_path / "packed", pack(start, filler, 320 << 20))
    assert packed.stat().st_size < 2 << 20
    sentence = refused("explain", packed)
    assert "over 512 times its size" in sentence or "made of empty objects" in sentence


def test_a_text_that_unpacks_beyond_bounds_is_read_at_its_ends(refused, tmp_path):
    line = b"".join(b"%032x step\n" % (at * 2654435761 % 2**97) for at in range(20_000))
    packed = write(tmp_path / "log.gz", gzip.compress(line * (600 * (1 << 20) // len(line)), 1))
    assert "no GPU memory error" in refused("explain", packed)  # within the memory that every test here has


def test_a_recording_that_packs_well_is_read(bounded, tmp_path):
    """Far better than any real one: the same step ten thousand times."""
    entries = [
        pickles.entry(action, 0x7F0000000000, 1 << 20)
        for _ in range(10_000)
        for action in ("alloc", "free_requested", "free_completed")
    ]
    packed = write(
        tmp_path / "steps.pickle.gz", gzip.compress(pickle.dumps({"segments": [], "device_traces": [entries]}), 9)
    )
    done = bounded("explain", packed, "--format", "json")
    assert done.returncode == 0 and json.loads(done.stdout)["input"]["events"] == 30_000, done.stderr


def test_streams_chosen_to_fall_together_do_not(bounded, tmp_path):
    """The handles are multiples of a number of buckets that GCC's hash tables grow to; a table without a secret would have them all in one."""
    entries = [
        {"action": "alloc", "addr": 512 * i, "size": 512, "stream": 172_933 * i, "time_us": i, "frames": []}
        for i in range(1, 170_000)
    ]
    done = bounded(
        "explain",
        "--format",
        "json",
        write(tmp_path / "streams.pickle", pickle.dumps({"segments": [], "device_traces": [entries]})),
    )
    assert json.loads(done.stdout)["input"]["events"] == len(entries), done.stderr


def test_a_log_of_one_endless_line_is_read(bounded, tmp_path):
    path = write(
        tmp_path / "log",
        b"x" * (200 << 20) + b" CUDA error: an illegal memory access was encountered\n" + b"y" * (100 << 20),
    )
    done = bounded("explain", path, "--format", "json")
    assert done.returncode == 1 and [finding["rule"] for finding in json.loads(done.stdout)["findings"]] == [
        "access/illegal-address"
    ], done.stderr


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04" + b"}" * (48 << 20),
        b"\x80\x04" + b"(" * (48 << 20),
        b"\x80\x04]" + b"\x94" * (48 << 20),
        b"[" + b"[]," * (16 << 20),
    ],
    ids=["dicts", "marks", "memo", "lists"],
)
def test_empty_objects_without_end_are_refused(refused, tmp_path, content):
    assert "made of empty objects" in refused("explain", write(tmp_path / "snapshot", content))


# -- ELF: core dumps, and modules that a trace names


def test_tables_of_a_core_dump_over_the_same_bytes_are_refused(refused, tmp_path):
    dump = write(tmp_path / "dump", hostile.overlapping_tables(2_000, 200_000))
    assert "overlap" in refused("explain", dump)


def test_a_name_for_every_row_costs_no_more_than_the_rows(bounded, tmp_path):
    done = bounded("explain", write(tmp_path / "dump", hostile.device_with_a_name_for_every_row(200_000)))
    assert (
        done.returncode == 0
        and b"holds no exception" in done.stdout
        and b"1,023 core-dump.equal_device_numbers" in done.stdout
    ), done


def module_with_lines(line_section, flags=0, extra=()):
    """A shared library with .debug_line and nothing else."""
    names = b"\0.debug_line\0.names\0"
    body = names + line_section
    sections = [
        hostile.section(0, 0, 0),
        hostile.section(1, 64 + len(names), len(line_section), name=1, flags=flags),
        hostile.section(3, 64, len(names), name=13),
        *extra,
    ]
    return hostile.elf(body, sections, machine=62, kind=3, abi=0, names=2)


def folder_with_module(folder, module, frames=1):
    """A run whose native frames lie in `module`."""
    os.utime(write(folder / "module.so", module), (0, 0))  # one that is newer than the trace is not looked at
    trace = "".join(f"alloc 512 driver at \"{folder / 'module.so'}\" \"+0x{0x1000 + i:x}\"\n" for i in range(frames))
    write(folder / "trace.txt", hostile.MARK + trace)
    return folder / "trace.txt"


@pytest.fixture
def explain_with_module(bounded, tmp_path):
    """The module is only looked at in a run's folder, where the record is a trace file."""

    def explain(module, frames=1):
        text = folder_with_module(tmp_path, module, frames)
        assert bounded("explain", text, "--save-trace", tmp_path / "process-7.faultline").returncode == 0
        text.unlink()
        done = bounded("explain", "--format", "json", tmp_path)
        report = json.loads(done.stdout)
        assert done.returncode == 0 and report["findings"] == [] and report["input"]["events"] == frames, done.stderr
        return report, bounded("explain", "--format", "text-trace", tmp_path).stdout.decode()

    return explain


def test_a_line_table_that_unpacks_to_gigabytes_is_left_alone(explain_with_module):
    unit = struct.pack("<IHI", (1 << 31) - 4, 2, 20) + b"\x01\x01\xfb\x0e\x0a" + bytes(9) + b"\x00\x00" + bytes(4)

    def piece(content):  # of a stream: it stands alone, and may be repeated
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH)

    section = (
        struct.pack("<IIQQ", 1, 0, (1 << 31) - 1, 1) + b"\x78\xda" + piece(unit) + piece(b"\x01" * (1 << 20)) * 2048
    )
    _, text = explain_with_module(module_with_lines(section, flags=0x800))
    assert "+0x1000" in text  # the frame has no line


def test_lines_that_cover_every_frame_again_and_again_are_answered_once(explain_with_module):
    code = (
        b"\x00\x09\x02" + struct.pack("<Q", 0x1000) + b"\x01" + b"\x02\xff\xff\x7f" + b"\x00\x01\x01"
    )  # a sequence: 2 MiB from 0x1000 on, all line 1
    header = b"\x01\x01\xfb\x0e\x0a" + b"\x00\x01\x01\x01\x01\x00\x00\x00\x01" + b"\x00" + b"a.c\x00\x00\x00\x00\x00"
    body = b"\x02\x00" + struct.pack("<I", len(header)) + header + code * 600_000
    _, text = explain_with_module(module_with_lines(struct.pack("<I", len(body)) + body), frames=40_000)
    assert re.findall(r"^stack \S+ = (\S+)", text, re.M) == ["a.c:1"] * 40_000


# -- files that are none


def test_a_sparse_file_of_200_gibibytes_is_refused(refused, tmp_path):
    for start in (b"\x89FLTRACE\x01\0\0\0\0\0\0\0\0\0\x01\0" + bytes(44), b"\x80\x04", b"[", b"log line\n" * 1000, b""):
        path = write(tmp_path / "sparse", start)
        os.truncate(path, 200 * GIB)
        if path.stat().st_size != 200 * GIB:
            pytest.skip("this file system has no sparse files")
        assert "holes" in refused("explain", path)


@pytest.mark.parametrize(
    "name", ["process-7.faultline", "process-7.json", "command.json", "report.json", "torch-7-exit.pickle", "core-7"]
)
@pytest.mark.parametrize("make", ["pipe", "zero", "loop"])
def test_a_folder_with_pipes_devices_and_loops_does_not_hang(bounded, tmp_path, name, make):
    write(tmp_path / "torch-7-oom.pickle", pickle.dumps(pickles.small_snapshot()))
    path = tmp_path / name
    if make == "pipe":
        os.mkfifo(path)
    elif make == "zero":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path)
    done = bounded("explain", "--format", "json", tmp_path, timeout=600)
    told = json.loads(done.stdout)["input"]
    assert done.returncode == 0 and told["events"] == 2, done.stderr
    if name == "torch-7-exit.pickle":  # of two snapshots that of the failure is read, and the other not opened
        assert told["lost"] == {}
    else:
        assert list(told["lost"].values()) == [1] and (
            "leads back to itself" if make == "loop" else "is not a plain file"
        ) in "".join(told["lost"]), told["lost"]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_devices_without_end_are_refused(refused, device):
    assert "this is no input that Faultline knows" in refused("explain", device)


def test_a_module_that_is_a_pipe_does_not_hang(bounded, tmp_path):
    os.mkfifo(tmp_path / "module.so")
    write(tmp_path / "trace.txt", hostile.MARK + f"alloc 512 driver at \"{tmp_path / 'module.so'}\" \"+0x10\"\n")
    assert bounded("explain", tmp_path / "trace.txt", "--save-trace", tmp_path / "process-7.faultline").returncode == 0
    done = bounded("explain", "--format", "json", tmp_path, timeout=600)
    assert done.returncode == 0, done
    # One module is missing: what was counted when the trace was saved is not counted again.
    assert json.loads(done.stdout)["input"]["lost"] == {"symbolise.missing_modules": 1}


def test_what_the_user_names_may_be_a_pipe(binary, tmp_path):
    command = f"exec '{binary}' explain <(xzcat '{RECORDINGS / 'train_clean.pickle.xz'}')"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=600)
    plain = subprocess.run([binary, "explain", RECORDINGS / "train_clean.pickle.xz"], capture_output=True)
    assert (
        done.returncode == 0
        and done.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1]
        and b"placements exact" in plain.stdout
    ), done.stderr


def test_thousands_of_processes_in_a_folder_are_read_within_bounds(bounded, tmp_path):
    content = pickle.dumps(pickles.small_snapshot())
    for number in range(3_000):
        write(tmp_path / f"torch-{number}-exit.pickle", content)
    report = json.loads(bounded("explain", "--format", "json", tmp_path).stdout)
    assert len(report["input"]["parts"]) == 1024
    assert any(counter.startswith("processes beyond the first 1024") for counter in report["input"]["lost"])
    assert bounded("explain", tmp_path).stdout.count(b"\n") < 200


def test_folders_that_hold_themselves_are_not_entered(bounded, refused, tmp_path):
    for number in range(12):
        (tmp_path / f"process-{number}.faultline").symlink_to(".")
    assert "nothing in this folder could be read" in refused("explain", tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write(other / "report.json", '{"schema": "faultline.report/1", "plan": {"trace": "."}}')
    assert "is not a plain file" in refused("explain", other)


# -- text that acts

NASTY = "\x1b]0;title\x07\x1b[2J\u202egnp.\u2066\x9b31m\u200b\u2028\ufeff\u00ad\U000e0041"
HARMFUL = [c for c in NASTY if ord(c) < 0x20 or ord(c) > 0x7E]


def harmless(text):
    return not any(c in text for c in HARMFUL)


def test_a_files_name_cannot_act_on_the_terminal(refused, tmp_path):
    folder = tmp_path / ("f" + NASTY)
    folder.mkdir()
    for path in (folder / "missing", folder, write(folder / NASTY, "no error in here")):
        sentence = refused("explain", path)
        assert harmless(sentence.rstrip("\n")) and "\\u202e" in sentence


def test_bytes_that_are_no_text_are_shown_as_such(bounded, tmp_path):
    name = os.fsencode(tmp_path) + b"/\xc0\xaf\xff\xed\xa0\x80"
    done = bounded("explain", os.fsdecode(name))
    assert done.returncode == 2 and done.stderr.decode().endswith(
        "/" + "\ufffd" * 6 + ": there is no such file. Check the path.\n"
    )


def nasty_trace():
    quoted = "".join(c if 0x20 <= ord(c) < 0x7F else "".join(f"\\x{b:02x}" for b in c.encode()) for c in NASTY)
    return (
        hostile.MARK
        + f"device 0 name=\"{quoted}\" capacity=1GiB\nproperty \"{quoted}\" = \"{quoted}\"\nlost \"{quoted}\" 3\n"
        f"alloc 1GiB tensor=\"{quoted}\"[4] at \"{quoted}.py\":3 \"{quoted}\"\nalloc-failed 1GiB at \"{quoted}.py\":4 \"{quoted}\"\n"
        f"call k = fault \"{quoted}\" kernel=\"{quoted}\" file=\"{quoted}.cu\" line=3 instruction=\"{quoted}\"\nfault call=k at \"{quoted}.py\":9 f\n"
    )


@pytest.mark.parametrize("extra", [[], ["--verbose"], ["--format", "json"]])
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_nothing_of_a_trace_can_act_on_the_terminal(bounded, tmp_path, extra, locale):
    done = bounded(
        "explain", *extra, write(tmp_path / f"{NASTY}.txt", nasty_trace()), env={**os.environ, "LC_ALL": locale}
    )
    text = done.stdout.decode()
    assert done.returncode == 1 and text.count("202e") >= 2
    assert all(harmless(line) for line in text.split("\n"))
    if "json" in extra:
        assert json.loads(text)["devices"][0]["name"] == NASTY


COMMANDS = "::stop-commands::x at::native::f ##[error]y ##vso[task.z] " * 4


# Servers take such lines of a program's output for commands, also behind blanks.
@pytest.mark.parametrize("columns", [40, 57, 80, 120])
def test_no_line_of_a_report_is_a_command_of_a_server(bounded, tmp_path, columns):
    quoted = COMMANDS.strip()
    text = (
        hostile.MARK + f'device 0 name="{quoted}" capacity=1GiB\nproperty "{quoted}" = "{quoted}"\nlost "{quoted}" 3\n'
        f'alloc 1GiB tensor="{quoted}"[4] at "{quoted}.py":3 "{quoted}"\nalloc-failed 1GiB at "{quoted}.py":4 "{quoted}"\n'
        f'call k = fault "{quoted}" kernel="{quoted}" file="{quoted}.cu" line=3 instruction="{quoted}"\nfault call=k at "{quoted}.py":9 f\n'
    )
    path = write(tmp_path / "trace.txt", text)
    for extra in ([], ["--verbose"]):
        done = bounded("explain", *extra, path, env={**os.environ, "COLUMNS": str(columns)})
        for line in done.stdout.decode().splitlines():
            assert not line.strip().startswith("::"), line
            assert "##[" not in line and "##vso[" not in line, line


@pytest.mark.parametrize("form", ["junit", "text-trace"])
def test_documents_hold_what_their_readers_take(bounded, tmp_path, form):
    path = write(tmp_path / "trace.txt", nasty_trace().replace("f\n", 'f\nlost "\\xef\\xbf\\xbe\\xff\\xfe" 2\n', 1))
    document = bounded("explain", "--format", form, path).stdout.decode()  # is UTF-8
    assert all(harmless(line) for line in document.split("\n"))
    if form == "junit":
        xml.etree.ElementTree.fromstring(document)
    else:
        again = bounded("explain", "--format", form, write(tmp_path / "again.txt", document)).stdout.decode()
        assert again.splitlines()[2:] == document.splitlines()[2:]


def test_replay_shows_nothing_that_acts(bounded, tmp_path):
    path = write(tmp_path / f"{NASTY}.pickle", pickle.dumps(pickles.small_snapshot()))
    for extra in ([], ["--format", "json"]):
        done = bounded("replay", path, "--gpu", "8GiB", *extra)
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == 0 and "202e" in text and all(harmless(line) for line in text.split("\n"))
