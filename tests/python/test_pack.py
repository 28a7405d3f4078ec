"""faultline pack: one file for a bug report. What tells whose it is, is gone from every file in it; what was found is found again; nothing else is touched."""

import gzip
import json
import os
import re
import resource
import signal
import stat
import struct
import subprocess
import time
import zipfile
from pathlib import Path

import pytest
from common import PROGRAMS, RECORDINGS, ROOT, refusal

BODY = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5"  # of made-up tokens, which are put together here
SECRETS = [
    f"hf_{BODY}",
    f"ghp_{BODY}",
    f"github_pat_{BODY}",
    f"sk-{BODY}",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "0123456789abcdef" * 2 + "01234567",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{BODY}",
    "anna.smith@acme.example.com",
    "203.0.113.77",
    "hunter2pass",
    "annasmith",
    "secretcustomer",
    "my private prompt",
    "/home/annasmith/work",
]
IN_TEXT = [
    *SECRETS[:9],
    "https://annasmith:hunter2pass@git.acme.example.com/x.git",
    "--password hunter2pass",
    "HF_TOKEN=hunter2pass",
    "/home/annasmith/secretcustomer/train.py",
    "/mnt/secretcustomer/data.bin",
    f"Authorization: Bearer {BODY}",
]
TRACEBACK = """Traceback (most recent call last):
  File "/home/annasmith/secretcustomer/train.py", line 9, in <module>
    x = tf.ones([1 << 20, 1 << 20])
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[1048576,1048576] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Fill]
"""
TENSORS = """faultline-trace-text 1
source tensors
property bfc.framework = tensorflow
property note = "line one\\nhf_{body} and /home/annasmith/secretcustomer/x.py"
device 0 name="NVIDIA H200"
heap driver0 kind=driver device=0 name=driver
heap GPU_0_bfc kind=bfc device=0 below=driver0
stack s1 = "/home/annasmith/secretcustomer/train.py":4 "<module>"
alloc #1 4000000 GPU_0_bfc stack=s1 tensor=float32[1000,1000] t=1
""".replace("{body}", BODY)


@pytest.fixture
def faultline(binary, tmp_path):
    """Calls it as Anna, from a folder of her own, with a folder for temporary files that has to be empty afterwards."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def call(*arguments, **options):
        own = {"HOME": "/home/annasmith", "USER": "annasmith", "TMPDIR": str(temporary)}
        done = subprocess.run(
            [binary, *map(str, arguments)],
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **own, **options.pop("env", {})},
            **options,
        )
        assert not list(temporary.iterdir())
        return done

    return call


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "left"
    folder.mkdir()
    (folder / "command.json").write_text(
        json.dumps(
            {
                "verb": "run",
                "command": [
                    "/home/annasmith/work/.venv/bin/python",
                    "train.py",
                    "--batch-size",
                    "16",
                    "--dtype=bf16",
                    "--customer",
                    "secretcustomer",
                    "--prompt=my private prompt",
                    "--token",
                    "hunter2pass",
                    *IN_TEXT,
                ],
                "exit_status": 1,
                "environment": {"WANDB_API_KEY": "hunter2pass", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
                "password": "hunter2pass",
            }
        )
    )
    (folder / "failure-7.txt").write_text(TRACEBACK + "\n".join(IN_TEXT))
    (folder / "tensors-7.txt").write_text(TENSORS)
    (folder / "notes-7.txt").write_text("\n".join(IN_TEXT) + "\n")
    (folder / "process-7.json").write_text(json.dumps({"exception": {"message": "\n".join(IN_TEXT)}, "says": IN_TEXT}))
    return folder


def contents(pack):
    with zipfile.ZipFile(pack) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def state(folder):
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.is_symlink() or path.read_bytes())
        for path in folder.rglob("*")
        if not path.is_dir()
    }


def report(done):
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def alike(value):
    """Without what a stand-in may change: the folders of a path, and what quotes it."""
    if isinstance(value, list):
        return [alike(one) for one in value]
    if not isinstance(value, dict):
        return value
    quotes = ("message", "tries", "fingerprint")
    return {
        name: os.path.basename(one) if name == "file" and one.endswith((".py", ".cpp", ".h")) else alike(one)
        for name, one in value.items()
        if name not in quotes
    }


def findings(told):
    return alike(told["findings"])


def test_no_secret_is_left_in_any_file(faultline, run_folder, tmp_path):
    before = state(run_folder)
    done = faultline("pack", run_folder)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert state(run_folder) == before
    packed = contents(tmp_path / "left.pack.zip")
    assert {"folder/command.json", "folder/failure-7.txt", "folder/tensors-7.txt", "taken-out.json"} <= set(packed)
    for name, content in {**packed, "what is printed": done.stdout}.items():
        for secret in SECRETS:
            assert secret.encode() not in content, (name, secret)
    command = json.loads(packed["folder/command.json"])
    assert command["command"][1:5] == ["train.py", "--batch-size", "16", "--dtype=bf16"]
    assert command["command"][9:10] == ["<password-1>"] or "<" in command["command"][9]
    assert command["environment"]["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    counted = {one["kind"]: one for one in json.loads(packed["taken-out.json"])["taken_out"]}
    assert counted["tokens and keys"]["times"] > 30 and counted["e-mail addresses"]["different"] == 1
    # one path has one stand-in, wherever it stands
    assert packed["folder/tensors-7.txt"].count(b"/home/user/folder-1/train.py") == 1
    assert packed["folder/failure-7.txt"].count(b"/home/user/folder-1/train.py") == 2


def test_a_folder_is_explained_as_before(faultline, run_folder, tmp_path):
    assert faultline("pack", run_folder, "-o", "x.zip").returncode == 0
    one, other = (report(faultline("explain", "--format", "json", path)) for path in (run_folder, "x.zip"))
    assert one["findings"] and findings(one) == findings(other)
    assert one["input"]["kind"] == other["input"]["kind"] == "run"
    # unpacked by hand it is the same
    zipfile.ZipFile(tmp_path / "x.zip").extractall(tmp_path / "by hand")
    assert findings(report(faultline("explain", "--format", "json", tmp_path / "by hand" / "folder"))) == findings(one)


@pytest.mark.parametrize("program", ["double_free", "copy_overrun", "leak_at_exit", "all_well"])
def test_a_run_is_explained_as_before(faultline, program, tmp_path):
    faultline("run", "--gpu", "virtual:1GiB", "-o", "kept", "--", PROGRAMS / program)
    assert faultline("pack", "kept").returncode == 0
    one, other = (report(faultline("explain", "--format", "json", path)) for path in ("kept", "kept.pack.zip"))
    assert findings(one) == findings(other) and bool(findings(one)) == (program != "all_well")
    page = faultline("view", "kept.pack.zip", "-o", "page.html")
    assert page.returncode == 0 and (tmp_path / "page.html").stat().st_size > 10000


FILES = [
    *(RECORDINGS / f"{name}.pickle.xz" for name in ("gpt_oom", "oom_outside_memory", "train_clean")),
    ROOT / "tests/fixtures/coredump/triton_oob.core.xz",
    ROOT / "tests/fixtures/errors/cublas_alloc.txt",
    *sorted((ROOT / "tests/golden").glob("*/*/trace.txt"))[:3],
]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.parent.name + "-" + path.name)
def test_a_file_is_explained_as_before(faultline, file):
    assert faultline("pack", file, "-o", "x.zip").returncode == 0
    one, other = (report(faultline("explain", "--format", "json", path)) for path in (file, "x.zip"))
    assert findings(one) == findings(other)
    assert one["input"]["kind"] == other["input"]["kind"]


def test_a_text_with_nothing_in_it_stays_as_it_is(faultline, tmp_path):
    text = "RuntimeError: CUDA error: out of memory\nmax_new_tokens=2048 pad_token='<pad>' at::native 12:34:56\n"
    (tmp_path / "oom.log").write_text(text)
    done = faultline("pack", "oom.log")
    assert b"Nothing had to be taken out, as far as Faultline knows: look through it." in done.stdout
    assert contents(tmp_path / "oom.log.pack.zip")["file/oom.log"].decode() == text


def test_arguments_are_kept_where_that_is_asked_for(faultline, run_folder, tmp_path):
    faultline("pack", run_folder, "--keep-arguments", "--take-out", "bf16")
    words = json.loads(contents(tmp_path / "left.pack.zip")["folder/command.json"])["command"]
    assert words[5:8] == ["--customer", "secretcustomer", "--prompt=my private prompt"]
    assert words[4] == "--dtype=<word-1>" and "hunter2pass" not in json.dumps(words)


def test_links_and_what_is_no_part_of_it_stay_out(faultline, run_folder, tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text('{"x": "outside"}')
    (run_folder / "process-8.json").symlink_to(outside)
    (run_folder / "again").symlink_to("/etc")
    (run_folder / "input").write_text("typed")
    (run_folder / "id_rsa").write_text("key")
    (run_folder / "page.html").write_text("<html>")
    os.mkfifo(run_folder / "notes-9.txt")
    (run_folder / "core-7").write_bytes(b"\x7fELF" + bytes(range(256)) * 8)
    done = faultline("pack", run_folder)
    assert done.returncode == 0
    packed = contents(tmp_path / "left.pack.zip")
    assert not [
        name
        for name in packed
        if any(word in name for word in ("process-8", "again", "input", "id_rsa", "core", "notes-9"))
    ]
    for name in ("process-8.json", "again", "input", "id_rsa", "page.html", "notes-9.txt", "core-7"):
        assert f"  {name}: ".encode() in done.stdout, done.stdout


@pytest.mark.parametrize(
    "name", [b"failure-8.txt\n\x1b[31m", b"process-8.json \xff\xfe", b"notes-8..\\..\\x", "notes-8\u202e.txt".encode()]
)
def test_hostile_names_are_made_plain(faultline, run_folder, tmp_path, name):
    with open(os.path.join(os.fsencode(run_folder), name), "w") as file:
        file.write("{}")
    done = faultline("pack", run_folder)
    assert done.returncode == 0 and b"\x1b" not in done.stdout
    for packed in contents(tmp_path / "left.pack.zip"):
        assert packed.isascii() and packed.isprintable() and "\\" not in packed and "/../" not in packed
    assert faultline("explain", "left.pack.zip").returncode == 1


def test_nothing_of_others_is_overwritten(faultline, run_folder, tmp_path):
    theirs = tmp_path / "theirs.zip"
    for content in (b"mine", b"PK\x03\x04" + bytes(40)):
        theirs.write_bytes(content)
        assert "is no pack of Faultline's" in refusal(faultline("pack", run_folder, "-o", theirs))
        assert theirs.read_bytes() == content
    theirs.unlink()
    theirs.symlink_to(tmp_path / "nowhere")
    assert "is no pack" in refusal(faultline("pack", run_folder, "-o", theirs))
    assert "is a folder" in refusal(faultline("pack", run_folder, "-o", tmp_path))
    assert "would lie in what is packed" in refusal(faultline("pack", run_folder, "-o", run_folder / "x.zip"))
    assert "could not be written" in refusal(faultline("pack", run_folder, "-o", tmp_path / "no" / "x.zip"))
    for _ in range(2):  # a pack is replaced
        assert faultline("pack", run_folder).returncode == 0


def test_a_full_disk_leaves_nothing(faultline, run_folder, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))}
    assert "could not be written" in refusal(faultline("pack", run_folder, **limit))
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00\x01\x02"])
def test_what_is_no_recording_is_not_packed(faultline, tmp_path, content):
    (tmp_path / "file.txt").write_bytes(content)
    refusal(faultline("pack", "file.txt"))
    refusal(faultline("pack", "absent"))
    (tmp_path / "empty").mkdir()
    refusal(faultline("pack", "empty"))
    assert not list(tmp_path.glob("*.zip"))


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 14.58 GiB of which 9.38 MiB is free.\n"


@pytest.mark.parametrize(
    "text",
    [
        f"[rank0]: Traceback\n[rank0]: hf_{BODY} at /mnt/secretcustomer/x.py\n" + OOM,
        f"[2026-01-31 12:00:00] annasmith ghp_{BODY}\n" + OOM,
        "{torchrun} annasmith --password hunter2pass\n" + OOM,
        OOM + "\x1b[32mhf_" + BODY + "\x1b[0m \x1b[1mannasmith\x1b[0m\n",
        OOM + "%2Fhome%2Fannasmith%2Fsecretcustomer%2Fx.py '\\nhf_" + BODY + "'\n",
        OOM + "x\n" * 4000 + "\0".join(f"hf_{BODY} annasmith") + "\0",
        OOM + "ANNASMITH and Annasmith\n",
    ],
)
def test_logs_of_every_form_are_scrubbed(faultline, tmp_path, text):
    (tmp_path / "a.log").write_text(text)
    assert faultline("pack", "a.log").returncode == 0
    packed = contents(tmp_path / "a.log.pack.zip")["file/a.log"].decode()
    for secret in SECRETS:
        assert secret.lower() not in packed.lower().replace("\0", ""), secret
    assert "CUDA out of memory" in packed


def test_users_are_known_before_files_are_named(faultline, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a-zqbobby.log").write_text("user zqbobby and zqcarla start\n" + OOM)
    (folder / "zqcarla.txt").write_text("/home/zqbobby/x.py\n" + OOM)
    (folder / "z.log.gz").write_bytes(gzip.compress(("/Users/zqcarla/x.py\n" + OOM).encode()))
    os.utime(folder / "a-zqbobby.log", (1e9, 1e9))
    done = faultline("pack", "logs")
    packed = contents(tmp_path / "logs.pack.zip")
    assert len(packed) == 5
    for name, content in {**packed, "printed": done.stdout}.items():
        assert "zq" not in name and b"zqbobby" not in content and b"zqcarla" not in content


def test_a_place_keeps_its_name(faultline, tmp_path):
    frames = "".join(
        f'  File "{path}", line 9, in <module>\n    x = f()\n' for path in ("/data/bin/torchrun", "/mnt/acme/go")
    )
    (tmp_path / "a.log").write_text("Traceback (most recent call last):\n" + frames + OOM)
    assert faultline("pack", "a.log").returncode == 0
    packed = contents(tmp_path / "a.log.pack.zip")["file/a.log"].decode()
    assert '"/data/bin/torchrun", line 9' in packed and '/go", line 9' in packed and "acme" not in packed


def test_many_traces_are_counted(faultline, tmp_path):
    (tmp_path / "many").mkdir()
    content = (RECORDINGS / "train_clean.pickle.xz").read_bytes()
    for i in range(30):
        (tmp_path / "many" / f"s{i:02}.pickle.xz").write_bytes(content)
        (tmp_path / "many" / f"x{i:02}.html").write_text("x")
    done = faultline("pack", "many").stdout.decode()
    assert "Written again as Faultline traces: s00.pickle, s01.pickle, s02.pickle and 27 more." in done
    assert "and 10 more, which taken-out.json names" in done


def interrupt(binary, tmp_path, arguments, signals):
    """Ends it by a signal as soon as it is at work, and gives what is left in its folder for temporary files."""
    temporary = tmp_path / "temporary"
    for one in signals:
        process = subprocess.Popen(
            [binary, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        yield process, one, temporary
        process.stderr.close()


def until_heard(process, one):
    """Until the process has a handler for the signal."""
    caught = 0
    while not caught >> (one - 1) & 1:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(re.search(r"^SigCgt:\s*(\w+)$", status, re.M)[1], 16)
        time.sleep(0.001)


def test_an_interrupted_pack_is_not_written(binary, faultline, tmp_path):
    (tmp_path / "a.log").write_text(OOM + "10.1.2.3 /mnt/x/y.py password=abc\n" * 1_000_000)
    for process, one, _ in interrupt(binary, tmp_path, ["pack", "a.log"], [signal.SIGINT, signal.SIGTERM]):
        until_heard(process, one)
        process.send_signal(one)
        assert process.wait() == 2
        assert b"interrupted; nothing was written" in process.stderr.read()
        assert not list(tmp_path.glob("*.zip"))


@pytest.mark.parametrize("one", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_explain_leaves_no_folder(binary, faultline, tmp_path, one):
    (tmp_path / "a.log").write_text(OOM + "10.1.2.3 x\n" * 400_000)
    assert faultline("pack", "a.log").returncode == 0
    for process, _, temporary in interrupt(binary, tmp_path, ["explain", "a.log.pack.zip"], [one]):
        for _ in range(300_000):
            if list(temporary.glob("faultline-*")) or process.poll() is not None:
                break
            time.sleep(0.001)
        process.send_signal(one)
        assert process.wait() == -one
        assert not list(temporary.iterdir())


# ---- packs that others made


def hostile(tmp_path, entries, change=lambda archive: archive):
    path = tmp_path / "hostile.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("FAULTLINE-PACK.txt", "x")
        for name, content in entries:
            archive.writestr(name, content)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "entries, says",
    [
        ([("../evil.txt", "x")], "a name that no pack has"),
        ([("folder/../../evil.txt", "x")], "a name that no pack has"),
        ([("/tmp/evil.txt", "x")], "a name that no pack has"),
        ([("folder//x", "x")], "a name that no pack has"),
        ([("folder/a\\b", "x")], "a name that no pack has"),
        ([("folder/" + "a/" * 20 + "x", "x")], "a name that no pack has"),
        ([("folder/notes-1.txt", "x"), ("folder/notes-1.txt", "y")], "twice"),
        ([("folder/a", "x"), ("folder/a/b", "y")], ""),
        ([("file/a", "x"), ("folder/b", "x")], "more than one recording"),
        ([("folder/b", "x"), ("file/a", "x")], "more than one recording"),
        ([("file/a", "x"), ("file/b", "x")], "more than one recording"),
        ([], "nothing to read"),
        ([("other.txt", "x")], "a name that no pack has"),
        ([("file/x", bytes(200 << 20))], "over 512 times its size"),
        ([(f"folder/{i}", "x") for i in range(9000)], "too many files"),
    ],
)
def test_hostile_packs_are_refused(faultline, tmp_path, entries, says):
    path = hostile(tmp_path, entries)
    assert says in refusal(faultline("explain", path))
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_pack_in_a_pack_and_an_encrypted_one_are_refused(faultline, tmp_path):
    (tmp_path / "oom.log").write_text("RuntimeError: CUDA error: out of memory\n")
    assert faultline("pack", "oom.log", "-o", "inner.zip").returncode == 0
    inner = (tmp_path / "inner.zip").read_bytes()
    assert "a pack in a pack" in refusal(faultline("explain", hostile(tmp_path, [("file/x", inner)])))
    assert "already" in refusal(faultline("pack", "inner.zip"))
    at = inner.rindex(b"PK\x01\x02")
    locked = inner[: at + 8] + struct.pack("<H", 1) + inner[at + 10 :]
    (tmp_path / "locked.zip").write_bytes(locked)
    assert "encrypted" in refusal(faultline("explain", "locked.zip"))
    for size in range(60, len(inner), 97):
        (tmp_path / "cut.zip").write_bytes(inner[:size])
        refusal(faultline("explain", "cut.zip"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
@pytest.mark.parametrize("name", ["folder/process-9.json", "file/x", "folder/a/b"])
def test_links_and_devices_in_a_pack_are_refused(faultline, tmp_path, kind, name):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (kind | 0o777) << 16
    entry.create_system = 3
    path = hostile(tmp_path, [("folder/notes-1.txt", "x"), (entry, "/etc/passwd")])
    assert "a link or a device" in refusal(faultline("explain", path))


def test_a_pack_anywhere_in_a_pack_is_refused(faultline, tmp_path):
    (tmp_path / "oom.log").write_text(OOM)
    assert faultline("pack", "oom.log", "-o", "inner.zip").returncode == 0
    inner = (tmp_path / "inner.zip").read_bytes()
    for name in ("folder/process-9.pack.zip", "folder/again/x", "folder/notes-2.txt"):
        path = hostile(tmp_path, [("folder/notes-1.txt", "x"), (name, inner)])
        assert "a pack in a pack" in refusal(faultline("explain", path))


def test_other_archives_are_no_input(faultline, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
    assert "no input that Faultline knows" in refusal(faultline("explain", "x.zip"))
