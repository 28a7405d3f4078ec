"""The command line: exit statuses, one-sentence errors, and reports that keep their promises on every recording."""

import gzip
import json
import lzma
import os
import pickle
import pty
import re
import resource
import stat
import subprocess

import jsonschema
import pytest

from common import RECORDINGS, ROOT, SCHEMA, refusal, write
import pickles

SNAPSHOTS = sorted(RECORDINGS.glob("*.pickle.xz"))
ERRORS = ROOT / "tests" / "fixtures" / "errors"
WITH_FINDINGS = RECORDINGS / "oom_outside_memory.pickle.xz"
CLEAN = RECORDINGS / "train_clean.pickle.xz"


def name_of(path):
    return path.name.removesuffix(".pickle.xz")


@pytest.fixture
def run(binary):
    def run(*args, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([binary, *map(str, args)], **options)

    return run


@pytest.fixture
def refused(run):
    """Runs and expects status 2, nothing on standard output, and one line that says why; returns that line."""

    def refused(*args, **options):
        return refusal(run(*args, **options))

    return refused


# ---- inputs that cannot be read


def test_a_missing_file_is_named(refused, tmp_path):
    assert (
        refused("explain", tmp_path / "absent.pickle")
        == f"faultline: {tmp_path}/absent.pickle: there is no such file. Check the path.\n"
    )
    assert "there is no such file" in refused("replay", tmp_path / "absent.pickle")


def test_a_directory_without_a_run_is_no_input(refused, tmp_path):
    assert "holds no run" in refused("explain", tmp_path)
    assert "holds no run" in refused("replay", tmp_path)


def test_a_file_without_permission_says_so(refused, tmp_path):
    path = write(tmp_path / "secret.pickle", b"x")
    path.chmod(0)
    options = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        assert "permission denied" in refused("explain", path, **options)
    except PermissionError:
        pytest.skip("the binary stands where another user cannot run it")


def test_an_empty_file_says_so(refused, tmp_path):
    assert "the file is empty" in refused("explain", write(tmp_path / "empty", b""))
    assert "the file is empty" in refused("explain", write(tmp_path / "empty.gz", gzip.compress(b"")))


@pytest.mark.parametrize("part", [0.001, 0.3, 0.999])
def test_a_cut_snapshot_is_refused_with_its_offset(refused, tmp_path, part):
    whole = lzma.open(CLEAN).read()
    sentence = refused("explain", write(tmp_path / "cut.pickle", whole[: int(len(whole) * part)]))
    assert " at byte " in sentence and "cut short" in sentence
    packed = CLEAN.read_bytes()
    assert "xz data ends too early at byte" in refused(
        "explain", write(tmp_path / "cut.xz", packed[: max(20, int(len(packed) * part))])
    )


@pytest.mark.parametrize("name", sorted(pickles.another_programs()))
def test_another_programs_pickle_is_no_snapshot(refused, tmp_path, name):
    assert "snapshot" in refused("explain", write(tmp_path / name, pickles.another_programs()[name]))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("verb", ["explain", "replay"])
def test_code_in_a_pickle_is_refused_and_not_run(refused, tmp_path, protocol, verb):
    marker = tmp_path / "was-run"
    sentence = refused(verb, write(tmp_path / "evil.pickle", pickles.runs_command(f"touch {marker}", protocol)))
    assert "GLOBAL" in sentence and "Nothing in it was executed" in sentence and " at byte " in sentence
    assert not marker.exists()


@pytest.mark.parametrize("text", ["{", "[1, 2", "{\"segments\": [}", "{} {}", "{\"a\": \"\x1b[31m\x07\"}"])
def test_wrong_json_is_refused_with_its_offset(refused, tmp_path, text):
    sentence = refused("explain", write(tmp_path / "wrong.json", text.encode()))
    assert "this is not valid JSON" in sentence and " at byte " in sentence
    assert "\x1b" not in sentence


@pytest.mark.parametrize("verb", ["explain", "replay"])
@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"nothing to see here\n", "no GPU memory error was found in this text"),
        (bytes(range(256)) * 20, "this is no input that Faultline knows"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 500, "this is no input that Faultline knows"),
    ],
    ids=["text", "bytes", "elf"],
)
def test_anything_else_is_refused(refused, tmp_path, verb, content, sentence):
    assert f"{tmp_path}/else: {sentence}" in refused(verb, write(tmp_path / "else", content))


def test_a_path_with_line_ends_and_codes_stays_one_line(refused, tmp_path):
    assert "\x1b" not in refused("explain", tmp_path / "two\nlines\x1b[31m")


def test_one_bad_file_of_two_is_named_and_the_other_explained(run, tmp_path):
    done = run("explain", CLEAN, tmp_path / "absent")
    assert done.returncode == 2
    assert done.stdout == run("explain", CLEAN).stdout
    assert done.stderr.decode() == f"faultline: {tmp_path}/absent: there is no such file. Check the path.\n"


# ---- bad usage

BAD_USAGE = {
    "": "a verb is missing: explain, replay, run, plan, view, diff, pack",
    "explode": "there is neither a verb nor a file explode",
    "explain": "FILE is required",
    "replay": "FILE is required",
    "explain --frobnicate CLEAN": "there is no option --frobnicate. faultline explain --help lists them",
    "explain CLEAN --format xml": "--format: xml not in {terminal,json,sarif,markdown,github,junit,perfetto,text-trace}",
    "explain CLEAN --gpu nonsense": "--gpu: 'nonsense' is no GPU",
    "explain CLEAN --gpu -1GiB": "--gpu: '-1GiB' is no GPU",
    "replay CLEAN --gpu big": "--gpu: 'big' is no GPU",
    "replay CLEAN --gpu 1MiB": "--gpu: 1.00 MiB leave nothing beside the CUDA context",
    "replay CLEAN --context x --gpu 8GiB": "--context: 'x' is not a size",
    "replay CLEAN --set no_such_setting=1": "--set: 'no_such_setting' is not a setting",
    "replay CLEAN --set expandable_segments=perhaps": "--set: 'perhaps' is not a value for expandable_segments. It takes True or False",
    "replay CLEAN --set =": "--set: '' is not a setting",
    "replay CLEAN --device 7": "the recording has no device 7",
    "replay CLEAN --device -1": "--device = -1",
    "replay CLEAN --device x": "--device = x",
    "explain CLEAN CLEAN --save-trace both.trace": "--save-trace takes one input",
    "replay CLEAN -o /nonexistent/folder/out.trace": "/nonexistent/folder/out.trace: the trace file cannot be created",
    "plan --gup T4 -- true": "there is no option --gup; the nearest is --gpu. faultline plan --help lists them",
    "plan --gpu=T4 --step=3 -- true": "the nearest is --steps",
    "--versoin": "the nearest is --version",
    "plan --hlep": "the nearest is --help",
    "run --outptu x -- true": "the nearest is --output",
    "replay --set=a=b --serach CLEAN": "the nearest is --search",
    "doctor --fromat json": "the nearest is --format",
    "plan python train.py --batch 3": "the program stands behind --",
    "explain CLEAN --save-trace": "faultline explain --help shows what it takes",
    "plan --seconds x -- true": "faultline plan --help shows",
    "plan --gpu 24 -- true": "a size has its unit with it: 24GiB",
    "replay CLEAN --gpu 80": "a size has its unit with it: 80GiB",
    "plan --budget 600 -- true": "--budget: '600' has no unit. Write 600GiB or 600MiB",
    "plan --gpu T4 --context 640 -- true": "--context: '640' has no unit. Write 640GiB or 640MiB",
    "replay CLEAN --gpu T4 --context 640": "--context: '640' has no unit",
    "run --keep 2 -- true": "--keep: '2' has no unit",
    "plan --gpu T4x2 -- true": "several are 2xT4",
    "replay CLEAN --set expandable_segment=True": "the nearest is expandable_segments",
    "plan -- ./nb.ipynb": "jupyter nbconvert --to script ./nb.ipynb",
    "plan -- nb.ipynb": "jupyter nbconvert",
    "explain CLEAN --save-trace /nonexistent/folder/out.trace": "/nonexistent/folder/out.trace: the trace file cannot be created",
}


@pytest.mark.parametrize("words", BAD_USAGE)
def test_bad_usage_is_one_sentence_that_says_what_is_wrong(refused, words, tmp_path):
    assert BAD_USAGE[words] in refused(
        *(str(CLEAN) if word == "CLEAN" else word for word in words.split()), cwd=tmp_path
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["explain", "replay"])
def test_an_unknown_gpu_is_answered_with_the_closest_names_and_with_sizes(refused, verb):
    assert (
        refused(verb, CLEAN, "--gpu", "RTX 4091")
        == "faultline: --gpu: 'RTX 4091' is no GPU that Faultline knows (close to it: RTX-4090); a size such as 24GiB works too.\n"
    )


def test_every_gpu_that_is_listed_can_be_named(run):
    listed = run("gpus").stdout.decode().splitlines()
    rows = [line.split() for line in listed[1 : listed.index("")]]
    assert len(rows) > 30 and ["T4", "14.56", "GiB", "14.42", "GiB", "7.5", "Tesla", "T4"] in rows
    for name, memory, *_ in rows:
        answer = json.loads(run("replay", CLEAN, "--gpu", name, "--format", "json").stdout)
        assert f"{answer['gpu']['capacity'] / 2**30:.2f}" == memory, name


@pytest.mark.parametrize("name", ["T4", "tesla t4", "NVIDIA-T4"])
def test_replay_knows_a_gpu_by_name(run, name):
    done = run("replay", CLEAN, "--gpu", name, "--format", "json")
    assert done.returncode == 0 and not done.stderr, done.stderr
    answer = json.loads(done.stdout)
    gpu = answer["gpu"]
    assert gpu["name"] == "Tesla T4" and gpu["capacity"] == int(14.56 * 2**30)
    assert answer["segment_budget"] == gpu["capacity"] - gpu["context"] and gpu["context_source"] == "published"
    assert "on Tesla T4, 14.56 GiB (published)" in " ".join(run("replay", CLEAN, "--gpu", name).stdout.decode().split())


@pytest.mark.parametrize(
    "name", ["oom_first_forward", "gpt_oom", "oom_fragmented", "oom_optimizer_state", "lengths_limit_0.0055"]
)
def test_a_recording_that_ran_out_of_memory_fits_only_as_far_as_it_goes(run, name):
    path = RECORDINGS / f"{name}.pickle.xz"
    text = run("replay", path, "--gpu", "H200").stdout.decode()
    assert "fits as far as it was recorded" in text and "had it been served is not known" in text
    assert [
        row["as_far_as_recorded"]
        for row in json.loads(run("replay", path, "--gpu", "H200", "--format", "json").stdout)["replays"]
    ] == [True]
    clean = run("replay", CLEAN, "--gpu", "H200").stdout.decode()
    assert "fits" in clean and "as far as" not in clean


@pytest.mark.parametrize(
    "case, args, fits",
    [
        ("far-too-large-in-pieces", [], False),
        ("far-too-large-in-pieces", ["--set", "expandable_segments=True"], False),
        ("far-too-large-in-pieces", ["--gpu", "40GiB"], True),
        ("pieces-of-a-dry-run", [], False),
        ("pieces-of-a-dry-run", ["--set", "expandable_segments=True"], True),
    ],
)
def test_a_plan_is_replayed_on_its_own_gpu_and_to_its_end(run, case, args, fits):
    done = run(
        "replay", ROOT / "tests" / "golden" / "memory-out-of-memory" / case / "trace.txt", *args, "--format", "json"
    )
    row = json.loads(done.stdout)["replays"][0]
    assert (row["fits"], row["as_far_as_recorded"], done.returncode) == (fits, False, 0 if fits else 1)


def test_the_context_given_is_the_context_used(run):
    answer = json.loads(run("replay", CLEAN, "--gpu", "T4", "--context", "2GiB", "--format", "json").stdout)
    assert answer["gpu"]["context"] == 2 << 30 and answer["gpu"]["context_source"] == "given"
    assert json.loads(run("replay", CLEAN, "--gpu", "24GiB", "--format", "json").stdout)["segment_budget"] == (
        24 << 30
    ) - (640 << 20)


def test_a_gpu_name_that_fits_two_cards_is_the_smaller_and_says_so(run):
    done = run("replay", CLEAN, "--gpu", "A100", "--format", "json")
    assert json.loads(done.stdout)["gpu"]["name"] == "NVIDIA A100-SXM4-40GB"
    assert done.stderr.decode() == "faultline: --gpu: A100 is read as the 40 GB card; A100-80GB is the other.\n"


def test_explain_takes_the_name_and_the_capacity_of_a_gpu(run):
    device = json.loads(run("explain", CLEAN, "--gpu", "H200", "--format", "json").stdout)["devices"][0]
    assert device["name"] == "NVIDIA H200" and device["account"]["capacity"] == 150109880320


def test_an_unknown_setting_names_the_known_ones(refused):
    assert "max_split_size_mb" in refused("replay", CLEAN, "--set", "no_such_setting=1")


@pytest.mark.parametrize("words", [["help"], ["help", "plan"], ["help", "explain"]])
def test_help_is_a_word_too(run, words):
    assert run(*words).stdout == run(*words[1:], "--help").stdout and run(*words).returncode == 0


def test_a_python_file_that_is_no_program_gets_python_before_it(run, tmp_path):
    write(tmp_path / "leak.py", "print(1)\n")
    for word in ("leak.py", "./leak.py"):
        for verb in ("plan", "run"):
            done = run(verb, "--", word, cwd=tmp_path)
            assert done.returncode in (2, 126, 127), done
            assert f"put python before it (python {word})".encode() in done.stderr


def test_a_notebook_is_no_program(run, tmp_path):
    write(tmp_path / "a.ipynb", "{}")
    for verb in ("plan", "run"):
        done = run(verb, "--", "a.ipynb", cwd=tmp_path)
        assert done.returncode == 2 and b"jupyter nbconvert --to script a.ipynb" in done.stderr


def test_one_trace_is_saved_of_one_process(run, tmp_path):
    trace = "faultline-trace-text 1\nheap driver\nalloc #x 4MiB driver @0x7f0000000000 at a.py:1 f\nfree #x\n"
    folder = tmp_path / "run"
    folder.mkdir()
    for process in ("process-7.faultline", "process-8.faultline"):
        text = write(tmp_path / "trace.txt", trace)
        assert run("explain", text, "--save-trace", folder / process).returncode == 0
    done = run("explain", folder, "--save-trace", tmp_path / "both.faultline")
    assert done.returncode == 2 and b"this has 2 (process 7, process 8)" in done.stderr, done
    assert not (tmp_path / "both.faultline").exists()
    assert run("explain", folder / "process-7.faultline", "--save-trace", tmp_path / "one.faultline").returncode == 0


def test_an_error_message_is_not_replayed(refused):
    path = sorted(ERRORS.glob("*oom*.txt"))[0] if sorted(ERRORS.glob("*oom*.txt")) else sorted(ERRORS.rglob("*.txt"))[0]
    assert "is an error message, not a recording" in refused("replay", path)


def test_help_and_version_are_no_errors(run):
    assert run("-V").stdout == run("--version").stdout
    done = run("--version")
    assert done.returncode == 0 and re.fullmatch(rb"faultline \d+\.\d+\.\d+\n", done.stdout) and not done.stderr


VERBS = {
    "": "VERB",
    "explain": "[OPTIONS] FILE...",
    "replay": "[OPTIONS] FILE",
    "run": "[OPTIONS] -- CMD...",
    "plan": "[OPTIONS] -- CMD...",
    "doctor": "[OPTIONS]",
}


@pytest.mark.parametrize("columns", [60, 80, 120, 200, None])
@pytest.mark.parametrize("verb", VERBS)
def test_help_is_as_wide_as_the_terminal(run, verb, columns):
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | (
        {"COLUMNS": str(columns)} if columns else {}
    )
    done = run(*verb.split(), "--help", env=environment)
    lines = done.stdout.decode().splitlines()
    assert (
        done.returncode == 0
        and not done.stderr
        and any(line.startswith("Usage: faultline") and line.endswith(VERBS[verb]) for line in lines)
    ), lines
    assert max(map(len, lines)) <= min(columns or 80, 120)
    words = " ".join(" ".join(lines).split())
    assert "Exit status:" in words and ("program's own" in words) == (verb in ("", "run"))
    assert [name for name in VERBS if name and not verb and not re.search(rf"^  {name} ", "\n".join(lines), re.M)] == []
    page = (ROOT / "docs" / "cli.md").read_text()
    assert [
        option
        for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", "\n".join(lines), re.M)
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", page)
    ] == []


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
@pytest.mark.parametrize(
    "args", [["--search"], ["--gpu", "T4"], ["--set", "expandable_segments=True"]], ids=lambda args: args[0]
)
def test_a_replays_table_is_as_wide_as_the_terminal(run, args, columns):
    path = RECORDINGS / "churn_tight.pickle.xz"
    wide = run("replay", path, *args, env={**os.environ, "COLUMNS": "120"}).stdout.decode()
    text = run("replay", path, *args, env={**os.environ, "COLUMNS": str(columns)}).stdout.decode()
    assert max(map(len, text.splitlines())) <= columns
    rows = json.loads(run("replay", path, *args, "--format", "json").stdout)["replays"]
    assert rows and all(row["settings"] in "".join(page.split()) for row in rows for page in (text, wide))
    assert text.count("peak reserved") == 1 and text.count("GiB") >= 2 * (1 + len(rows))


# ---- where the output goes


def test_a_full_disk_is_an_error(refused):
    with open("/dev/full", "wb") as full:
        for args in (["explain", CLEAN], ["explain", CLEAN, "--format", "json"], ["replay", CLEAN]):
            assert "could not be written: No space left on device" in refused(*args, stdout=full)


@pytest.mark.parametrize("path, status", [(CLEAN, 0), (WITH_FINDINGS, 1)], ids=["clean", "findings"])
def test_a_closed_pipe_is_the_readers_choice(binary, path, status):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([binary, "explain", str(path), "--format", "json"], stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (status, b"")


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
def test_standard_input_is_read_like_a_file(run, pack):
    whole = lzma.open(WITH_FINDINGS).read()
    from_input = run("explain", "-", "--format", "json", input=pack(whole))
    from_file = run("explain", WITH_FINDINGS, "--format", "json")
    assert from_input.returncode == from_file.returncode == 1
    assert without_path(from_input.stdout) == without_path(from_file.stdout)


def test_errors_of_standard_input_name_it(refused):
    assert refused("explain", "-", input=b"").startswith("faultline: standard input: the file is empty")
    assert "standard input" in refused("replay", "-", input=b"\x80\x04c")


def shown_on_terminal(binary, *args, **environment):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [binary, *map(str, args)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "TERM": "xterm", **environment},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal's other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    process.wait()
    return shown


def test_colour_is_for_terminals_that_want_it(binary, run):
    assert b"\x1b[" in shown_on_terminal(binary, "explain", WITH_FINDINGS)
    assert b"\x1b[" not in shown_on_terminal(binary, "explain", WITH_FINDINGS, NO_COLOR="1")
    assert b"\x1b[" not in shown_on_terminal(binary, "explain", WITH_FINDINGS, TERM="dumb")
    assert b"\x1b[" not in shown_on_terminal(binary, "explain", "--no-color", WITH_FINDINGS)
    assert b"\x1b[" not in run("explain", WITH_FINDINGS).stdout


@pytest.mark.parametrize("form", ["json", "sarif", "markdown", "github", "junit", "perfetto", "text-trace", "terminal"])
def test_the_format_may_come_from_the_environment(run, form):
    environment = {**os.environ, "FAULTLINE_FORMAT": form}
    done = run("explain", CLEAN, env=environment)
    assert done.returncode == 0 and done.stdout == run("explain", CLEAN, "--format", form).stdout
    assert run("explain", CLEAN, "--format", "terminal", env=environment).stdout == run("explain", CLEAN).stdout
    for verb, forms in (
        (["replay", CLEAN], "terminal,json,perfetto"),
        (["doctor"], "terminal,json"),
    ):  # which have fewer
        done = run(*verb, env=environment)
        if form in forms.split(","):
            assert done.stdout and not done.stderr.startswith(b"faultline: FAULTLINE_FORMAT"), done.stderr
        else:
            assert refusal(done).startswith(f"faultline: FAULTLINE_FORMAT: {form} not in {{{forms}}}")


def test_a_report_that_was_written_is_shown_in_any_form(run, tmp_path):
    written = run("explain", WITH_FINDINGS, "--format", "json").stdout
    for name, data in (("report.json", written), ("no-ending", written), ("packed.gz", gzip.compress(written))):
        (tmp_path / name).write_bytes(data)
        done = run("explain", tmp_path / name)
        assert done.stdout == run("explain", WITH_FINDINGS).stdout and done.returncode == 1
    both = json.loads(run("explain", "--format", "json", tmp_path / "report.json", CLEAN).stdout)
    assert both[0] == json.loads(written) and len(both) == 2
    (tmp_path / "cut.json").write_bytes(written[: len(written) // 2])
    assert "this report of Faultline's is not whole" in refusal(run("explain", tmp_path / "cut.json"))
    assert "holds no events" in refusal(run("replay", tmp_path / "report.json"))
    assert "holds no events" in refusal(run("explain", "--format", "text-trace", tmp_path / "report.json"))
    assert "holds no events" in refusal(run("explain", "--save-trace", tmp_path / "t", tmp_path / "report.json"))


# ---- hostile inputs are cheap


def within_two_gibibytes():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


@pytest.mark.parametrize("length", [10_000_000_000, (1 << 63) - 1, (1 << 64) - 1])
@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress], ids=["plain", "gzip"])
def test_a_huge_length_field_costs_nothing(refused, tmp_path, length, pack):
    path = write(tmp_path / "long.pickle", pack(pickles.claims_string(length)))
    assert f"claims {length} bytes" in refused("explain", path, preexec_fn=within_two_gibibytes)


def test_a_bomb_of_zeros_is_refused_in_little_memory(refused, tmp_path):
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
    path = write(tmp_path / "bomb.gz", bomb)
    assert "no input that Faultline knows" in refused("explain", path, preexec_fn=within_two_gibibytes)


def test_a_bomb_inside_a_pickle_is_refused_in_little_memory(refused, tmp_path):
    path = write(tmp_path / "bomb.pickle.gz", gzip.compress(b"\x80\x04]" + b"(" * 40_000_000, compresslevel=1))
    assert "the pickle is made of empty objects" in refused("explain", path, preexec_fn=within_two_gibibytes)


# ---- every recording


def report_of(run, path, *args):
    done = run("explain", path, "--format", "json", *args)
    assert done.returncode in (0, 1), done.stderr.decode()
    assert not done.stderr
    return done, json.loads(done.stdout)


def without_path(text):
    report = json.loads(text)
    report["input"]["path"] = ""
    return report


@pytest.mark.parametrize("path", SNAPSHOTS, ids=name_of)
def test_the_report_keeps_its_schema_and_adds_up(run, path):
    done, report = report_of(run, path)
    jsonschema.validate(report, SCHEMA)
    assert report["input"]["kind"] == "torch-snapshot" and report["input"]["lost"] == {} and len(report["devices"]) == 1
    for device in report["devices"]:
        account = device["account"]
        assert account["capacity"] == sum(account["live"].values()) + sum(
            account[part] for part in ("cached", "outside_framework", "free", "unknown")
        )
        assert device["peak"]["allocated"] <= device["peak"]["reserved"]
    serious = any(finding["severity"] != "note" for finding in report["findings"])
    assert done.returncode == (1 if serious else 0)
    assert run("explain", path, "--format", "json").stdout == done.stdout


@pytest.mark.parametrize("path", SNAPSHOTS, ids=name_of)
def test_the_account_adds_up_to_the_stated_capacity(run, path):
    _, report = report_of(run, path, "--gpu", "143771MiB")
    for device in report["devices"]:
        account = device["account"]
        assert account["capacity_known"] and account["capacity"] == 143771 << 20
        assert account["capacity"] == sum(account["live"].values()) + sum(
            account[part] for part in ("cached", "outside_framework", "free", "unknown")
        )


@pytest.mark.parametrize("path", SNAPSHOTS, ids=name_of)
def test_the_json_form_gives_the_same_report(run, tmp_path, path):
    text = json.dumps(pickle.loads(lzma.open(path).read()))
    from_json = run("explain", write(tmp_path / "snapshot.json", text.encode()), "--format", "json")
    assert without_path(from_json.stdout) == without_path(run("explain", path, "--format", "json").stdout)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=name_of)
def test_a_saved_trace_gives_the_same_findings(run, tmp_path, path):
    done, report = report_of(run, path, "--save-trace", tmp_path / "saved.trace")
    _, again = report_of(run, tmp_path / "saved.trace")
    assert again["findings"] == report["findings"]
    assert again["devices"] == report["devices"]


# What PyTorch's own counters said when these were recorded: entries, peak allocated, peak reserved.
COUNTED = {
    "big_then_small": (2369, 3738189824, 3745513472),
    "churn_default": (1846, 3455533056, 4328521728),
    "churn_expandable": (1849, 3445140992, 4359979008),
    "churn_expandable_large_segment": (1846, 3445140992, 4380950528),
    "churn_expandable_max_split": (1931, 3445140992, 11112808448),
    "churn_expandable_roundup": (1849, 3625674240, 4129292288),
    "churn_gc_60": (1758, 2935830528, 3485466624),
    "churn_gc_80_max_split": (1921, 3497072640, 3579838464),
    "churn_large_segment_40": (1845, 3454607360, 4435476480),
    "churn_max_split_21_rounding": (1873, 3711026176, 4758437888),
    "churn_max_split_64": (1869, 3553768960, 5997854720),
    "churn_roundup_1": (1846, 3455533056, 4328521728),
    "churn_roundup_4": (1847, 3758420480, 5062524928),
    "churn_roundup_list": (1846, 3804684288, 5333057536),
    "churn_tight": (1605, 2754454016, 3349151744),
    "churn_tight_expandable": (1770, 3157253120, 3311403008),
    "churn_tight_max_split": (1804, 3222604288, 3382706176),
    "deep_forward_only": (426, 162652160, 163577856),
    "empty_cache_calls": (1393, 1829216768, 2187329536),
    "eval_keeps_graph": (743, 156778496, 161480704),
    "eval_no_grad_clean": (2188, 52969984, 58720256),
    "expandable_grow_shrink": (638, 1639682560, 1977614336),
    "graphs": (348, 181149696, 188743680),
    "graphs_expandable": (347, 181149696, 222298112),
    "growing_cache_by_shape": (574, 1923014656, 2006974464),
    "hook_keeps_activations": (1306, 106971136, 113246208),
    "kv_cache_clean": (2395, 4096000, 6291456),
    "mem_pool": (949, 399760384, 509607936),
    "model_load_only": (89, 167936000, 169869312),
    "no_context": (486, 1170185728, 1377828864),
    "oom_device_full": (137, 149250113536, 149250113536),
    "oom_fragmented": (3426, 4487905280, 4487905280),
    "oom_fragmented_expandable": (3426, 4487905280, 4487905280),
    "oom_idle_other_stream": (911, 2453667840, 2726297600),
    "oom_outside_memory": (18, 12884901888, 12886999040),
    "oom_retry_batch": (241, 2819670016, 2820669440),
    "oom_too_large_ever": (33, 4000004096, 4003463168),
    "rebind_loop_clean": (1801, 50331648, 54525952),
    "stacks_all": (317, 152388096, 155189248),
    "streams_many": (1508, 421385728, 1073741824),
    "streams_many_expandable": (1499, 415637504, 870318080),
    "train_accumulated_loss": (4865, 152388608, 155189248),
    "train_accumulated_value": (5001, 152388608, 155189248),
    "train_clean": (1487, 152388096, 155189248),
    "train_keeps_outputs": (3357, 183845376, 186646528),
    "with_user_metadata": (434, 152388096, 155189248),
}


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_the_peaks_are_those_that_pytorch_counted(run, name):
    _, report = report_of(run, ROOT / "tests" / "fixtures" / "torch" / f"{name}.pickle.xz")
    peak = report["devices"][0]["peak"]
    assert (report["input"]["events"], peak["allocated"], peak["reserved"]) == COUNTED[name]


FULL = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.56 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 13.36 GiB memory in use. "
    "Of the allocated memory 13.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
)


def failing(count, name, words):
    """A cell that ended in an exception, as IPython keeps it: without the traceback's head."""
    return {
        "cell_type": "code",
        "source": "x",
        "execution_count": count,
        "metadata": {},
        "outputs": [
            {
                "output_type": "error",
                "ename": name,
                "evalue": words,
                "traceback": [f"Cell In[{count}], line 1\n----> 1 x\n", f"{name}: {words}"],
            }
        ],
    }


def printing(count, words):
    return {
        "cell_type": "code",
        "source": "x",
        "execution_count": count,
        "metadata": {},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": words + "\n"}],
    }


SHAPES = "mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"


@pytest.mark.parametrize(
    "cells, rule, severity, file, says",
    [
        (
            [failing(9, "RuntimeError", SHAPES), failing(2, "OutOfMemoryError", FULL)],
            "tensor/shape-mismatch",
            "error",
            "cell [9]",
            "Also in this text: cell [2]:1: CUDA out of memory",
        ),
        (
            [printing(1, FULL), failing(2, "KeyError", "'k'")],
            "memory/out-of-memory",
            "warning",
            None,
            "ended in KeyError: 'k' (cell [2]:1)",
        ),
        (
            [failing(2, "OutOfMemoryError", FULL), failing(3, "KeyError", "'k'")],
            "memory/out-of-memory",
            "warning",
            "cell [2]",
            "ended in KeyError: 'k' (cell [3]:1)",
        ),
        (
            [failing(2, "OutOfMemoryError", FULL), printing(3, "ok")],
            "memory/out-of-memory",
            "warning",
            "cell [2]",
            "survived",
        ),
        (
            [printing(1, "ok"), failing(2, "OutOfMemoryError", FULL)],
            "memory/out-of-memory",
            "error",
            "cell [2]",
            "2.00 GiB was requested",
        ),
    ],
    ids=["order", "printed", "key", "went-on", "twin"],
)
def test_the_cells_of_a_notebook_are_apart(run, tmp_path, cells, rule, severity, file, says):
    done = run(
        "explain",
        write(
            tmp_path / "a.ipynb",
            json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode(),
        ),
        "--format",
        "json",
    )
    *ended, finding = json.loads(done.stdout)["findings"]
    assert [note["rule"] for note in ended] == ["program/other-error"] * says.startswith("ended in")
    assert (finding["rule"], finding["severity"]) == (rule, severity)
    assert ((finding.get("location") or {}).get("file") or None) == file
    assert says in (ended or [finding])[0]["message"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_logs_in_utf_16_are_read(run, tmp_path, encoding):
    text = f'Übung 🙂\nTraceback (most recent call last):\n  File "übung.py", line 3, in f\n    x()\ntorch.OutOfMemoryError: {FULL}\n'
    done = run("explain", write(tmp_path / "a.log", ("\ufeff" + text).encode(encoding)), "--format", "json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["rule"], finding["location"]["file"], finding["location"]["line"]) == (
        "memory/out-of-memory",
        "übung.py",
        3,
    )


@pytest.mark.parametrize(
    "words, said",
    [
        ("RuntimeError: x has been modified by an inplace operation: y", "changed in place"),
        ("RuntimeError: Trying to backward through the graph a second time", "backward called twice"),
        ("Segmentation fault (core dumped)", "segmentation fault"),
    ],
)
def test_errors_that_are_not_about_gpu_memory_are_called_what_they_are(run, tmp_path, words, said):
    sentence = refusal(run("explain", write(tmp_path / "a.log", words.encode())))
    assert said in sentence and "Paste the message" not in sentence


@pytest.mark.parametrize("path", sorted(ERRORS.glob("*.txt")), ids=lambda path: path.stem)
def test_every_error_text_gets_the_verdict_that_stands_beside_it(run, path):
    """The claims themselves are held by src/rules/stated_error_test.cpp; here, what becomes of them outside."""
    claims = path.with_suffix(".expect").read_text().splitlines()
    done = run("explain", path, "--format", "json")
    if claims == ["silent"]:
        assert ("no GPU memory error was found in" if path.stat().st_size else "the file is empty") in refusal(done)
        return
    report = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMA)
    claimed = dict(claim.split(": ", 1) for claim in claims if claim)
    ended = [finding for finding in report["findings"] if finding["rule"] == "program/other-error"]
    finding, *further = report["findings"][len(ended) :]
    assert report["findings"][: len(ended)] == ended and len(ended) == any("ended" in name for name in claimed)
    assert len(further) == sum(claim.startswith("further: ") for claim in claims)
    assert done.returncode == (0 if finding["severity"] == "note" else 1)
    for name in ("rule", "cause", "severity", "confidence"):
        assert name not in claimed or (finding.get(name) or "none") == claimed[name], name
    for device in report["devices"]:
        account = device["account"]
        assert account["capacity"] == sum(account["live"].values()) + sum(
            account[part] for part in ("cached", "outside_framework", "free", "unknown")
        )


def test_a_hand_made_snapshot_is_explained(run, tmp_path):
    path = write(tmp_path / "small.pickle", pickle.dumps(pickles.small_snapshot()))
    _, report = report_of(run, path)
    assert report["input"]["events"] == 2
    assert report["devices"][0]["peak"] == {
        "allocated": 1 << 20,
        "reserved": 2 << 20,
        "event": report["devices"][0]["peak"]["event"],
    }


@pytest.mark.parametrize("arguments", [["explain", "--save-trace"], ["replay", "-o"]])
def test_nothing_is_saved_over_the_input(refused, tmp_path, arguments):
    path = write(tmp_path / "a.pickle.xz", CLEAN.read_bytes())
    assert "is the input itself" in refused(arguments[0], path, arguments[1], path)
    assert path.read_bytes() == CLEAN.read_bytes()


@pytest.mark.parametrize("arguments", [["explain", "--save-trace"], ["replay", "-o"]])
def test_what_is_no_trace_is_not_saved_over(run, refused, tmp_path, arguments):
    mine = write(tmp_path / "mine.txt", "my own notes\n")
    assert "is there already and is no Faultline trace" in refused(arguments[0], CLEAN, arguments[1], mine)
    assert mine.read_text() == "my own notes\n"
    trace = tmp_path / "a.trace"
    for _ in range(2):  # a trace is renewed
        assert run(arguments[0], CLEAN, arguments[1], trace).returncode == 0 and trace.stat().st_size > 100


@pytest.mark.parametrize("arguments", [["explain", "--save-trace"], ["replay", "-o"]])
def test_devices_pipes_and_links_are_not_replaced(run, refused, tmp_path, arguments):
    pipe, folder, nowhere = tmp_path / "pipe", tmp_path / "folder", tmp_path / "nowhere"
    os.mkfifo(pipe)
    folder.mkdir()
    nowhere.symlink_to(tmp_path / "missing")
    device = tmp_path / "device"
    device.symlink_to("/dev/null")
    for target in (pipe, folder, nowhere, device):
        before = target.lstat()
        assert "is there already and is no Faultline trace" in refused(arguments[0], CLEAN, arguments[1], target)
        assert (target.lstat().st_ino, target.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    trace, link = tmp_path / "a.trace", tmp_path / "link"
    assert run(arguments[0], CLEAN, arguments[1], trace).returncode == 0
    link.symlink_to(trace)
    before = trace.stat().st_ino
    assert run(arguments[0], CLEAN, arguments[1], link).returncode == 0
    assert link.is_symlink() and trace.stat().st_ino != before


def test_a_message_about_another_failure_says_nothing_of_a_recording(run, tmp_path):
    message = write(
        tmp_path / "error.txt",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 400.00 MiB is free.\n",
    )
    recording = RECORDINGS / "oom_outside_memory.pickle.xz"
    alone, beside = (
        json.loads(run("explain", recording, "--format", "json").stdout),
        json.loads(run("explain", recording, message, "--format", "json").stdout)[0],
    )
    assert beside["devices"] == alone["devices"] and beside["findings"] == alone["findings"]


def test_different_failures_of_a_folder_are_told_apart(run, tmp_path):
    for name, request, capacity in (("rank0.log", "2.00", "80.00"), ("rank1.log", "4.00", "8.00")):
        write(
            tmp_path / name,
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {request} GiB. GPU 0 has a total capacity of {capacity} GiB of which 400.00 MiB is free.\n",
        )
    page = " ".join(run("explain", tmp_path).stdout.decode().split())
    assert (
        "2.00 GiB" in page and "4.00 GiB" in page and "2 errors" in page and "rank0.log" in page and "rank1.log" in page
    )


def test_a_trace_as_text_is_read_again(run, refused, tmp_path):
    text = write(tmp_path / "trace.txt", run("explain", "--format", "text-trace", CLEAN).stdout)
    assert (
        json.loads(run("explain", "--format", "json", text).stdout)["devices"]
        == json.loads(run("explain", "--format", "json", CLEAN).stdout)["devices"]
    )
    assert "several" in refused("explain", "--format", "text-trace", CLEAN, CLEAN)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["explian", "x"], "there is no verb explian; the nearest is explain"),
        (["reply", "x"], "the nearest is replay"),
        (["run", "python", "train.py"], "faultline run -- python train.py"),
        (["plan", "--gpu", "T4", "train.py"], "faultline plan -- python train.py"),
        (["train.py"], "faultline plan -- python train.py"),
        (["log"], "faultline explain log"),
        (["something"], "there is neither a verb nor a file something; the verbs are explain,"),
    ],
)
def test_words_that_are_not_understood_are_answered_with_what_to_type(binary, tmp_path, words, sentence):
    write(tmp_path / "log", "x")
    assert sentence in refusal(subprocess.run([binary, *words], cwd=tmp_path, capture_output=True))
