"""scripts/fuzz_seeds.py FOLDER: for each fuzz target that needs them, seeds of the shapes that changing single bytes does not lead to."""

import gzip
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
sys.path.insert(0, str(ROOT / "scripts" / "bfc"))
import dump_forms  # noqa: E402
import hostile  # noqa: E402


def packed():
    for name, start, filler in (
        ("pickle", b"\x80\x04", b"}"),
        ("json", b"[", b"[],"),
        ("log", b"CUDA error: out of memory\n", b"."),
        ("trace", hostile.MARK.encode(), b"#\n"),
    ):
        for size in (1 << 16, 80 << 20):
            yield f"gzip-{name}-{size}", hostile.gzip_bomb(start, filler, size)
            yield f"xz-{name}-{size}", hostile.xz_bomb(start, filler, size)
    yield "gzip-twice", gzip.compress(gzip.compress(bytes(1 << 20)))


def documents():
    for depth in (10, 64, 65, 5000):
        yield f"lists-{depth}", hostile.nested_json(depth).encode()
        yield f"objects-{depth}", hostile.nested_objects(depth).encode()
        yield f"plan-{depth}", ('{"verdict":"fits","gpu":' + hostile.nested_objects(depth) + "}").encode()
    yield "members", hostile.json_of_many_members(600).encode()


def folders():
    for name, text in documents():
        for number in (0, 1):
            yield f"{name}-{number}", bytes([number]) + text + b"\n----\n\x03" + b"\x80\x04}."


def dumps():
    yield "overlap", hostile.overlapping_tables(200, 2000)
    yield "names", hostile.device_with_a_name_for_every_row(500)


def traces():
    yield "devices", hostile.many_devices(300)
    yield "heaps", hostile.many_heaps(300)
    yield "tower", hostile.tower_of_heaps(300)
    yield "deep", hostile.deep_stack(300, 30)
    yield "steps", hostile.many_lines_over_many_steps(100, 200)
    yield "faults", hostile.many_faults(100)
    yield "libraries", hostile.many_libraries(200)
    yield "sizes", hostile.sizes_beyond_all_memory(50)
    yield "name", hostile.kernel_name_that_grows(14)


def maps():
    for form in dump_forms.FORMS:
        for situation in dump_forms.SITUATIONS:
            yield f"{form}-{situation}", dump_forms.dump(dump_forms.situation(situation), form)


TARGETS = {
    "dump_text_fuzz": maps,
    "error_text_fuzz": maps,
    "byte_stream_fuzz": packed,
    "safe_text_fuzz": documents,
    "plan_json_fuzz": documents,
    "run_folder_fuzz": folders,
    "core_dump_fuzz": dumps,
    "elf_fuzz": dumps,
    "symbolise_fuzz": dumps,
    "judged_trace_fuzz": traces,
    "view_page_fuzz": traces,
    "torch_snapshot_fuzz": documents,
}

for target, make in TARGETS.items():
    folder = Path(sys.argv[1]) / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in make():
        (folder / f"seed-{name}").write_bytes(content if isinstance(content, bytes) else content.encode())
