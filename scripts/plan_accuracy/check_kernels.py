"""Compares the kernel models of a plan with what a real GPU took, operation by operation.

  python check_kernels.py OPS.json.gz ... [--op REGEX] [--misses N]     recordings of record.py --ops
  python check_kernels.py --bounds [--op REGEX] OPS.json.gz ...        how many lie between the ends of their estimates
  python check_kernels.py --fixture OUT.json.gz OPS.json.gz ...          writes the distinct rows, for the tests

For each recorded operation the temporaries (blocks taken and returned inside it) are compared with the model's: an
exact hit when the sizes agree one by one, otherwise by the most bytes that are taken at once.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import os
import re
import sys
from types import SimpleNamespace

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from faultline.plan.torch.kernels import temporaries  # noqa: E402
from faultline.plan.torch.release import releases  # noqa: E402

H200 = SimpleNamespace(
    compute_capability=(9, 0),
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    warp_size=32,
    l2_cache_size=60 << 20,
    name="NVIDIA H200",
)
SLACK_BYTES = 4096
_TENSOR = re.compile(r"^([a-z]+[0-9]*)\[([0-9, ]*)\]\[([0-9, ]*)\](@cpu)?$")


def parse_tensor(text: str) -> torch.Tensor | None:
    found = _TENSOR.match(text)
    if not found:
        return None
    size, stride = ([int(n) for n in group.split(",")] if group.strip() else [] for group in found.group(2, 3))
    tensor = torch.empty_strided(size, stride, dtype=getattr(torch, found.group(1)), device="meta")
    if found.group(4):
        tensor = SimpleNamespace(
            device=torch.device("cpu"),
            dtype=tensor.dtype,
            shape=tensor.shape,
            stride=tensor.stride,
            numel=tensor.numel,
            dim=tensor.dim,
            size=tensor.size,
        )
    return tensor


def split_list(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def parse(text: str):
    """A value as record.py writes it; raises ValueError for a list that was cut short."""
    tensor = parse_tensor(text)
    if tensor is not None:
        return tensor
    if text.startswith("[") and text.endswith("]"):
        parts = split_list(text[1:-1])
        if any("…" in p for p in parts):
            raise ValueError("cut short")
        return [parse(p) for p in parts]
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if text.startswith("torch."):
        return getattr(torch, text[6:])
    if text.startswith("device("):
        return torch.device("cuda" if "cuda" in text else "cpu")
    try:
        return int(text)
    except ValueError:
        return float(text) if re.match(r"^-?[0-9.]+(e-?[0-9]+)?$", text) else text.strip("'")


def find_op(name: str):
    space, op, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, space), op), overload)


def call_of(row: dict):
    args, kwargs = [], {}
    for text in row["in"]:
        name = re.match(r"^([a-z_]+)=(.*)$", text, re.S)
        if name:
            kwargs[name.group(1)] = parse(name.group(2))
        else:
            args.append(parse(text))
    out = parse(row["out"])
    outputs = [o for o in (out if isinstance(out, list) else [out]) if hasattr(o, "numel")]
    return find_op(row["op"]), args, kwargs, outputs


def recorded(row: dict) -> tuple[list[int], int]:
    """Temporaries in order, and the most bytes of them taken at once."""
    open_at, temporary, sizes, order = {}, set(), {}, []
    for i, (action, size, address) in enumerate(row["events"]):
        if action == "+":
            open_at[address] = i
            sizes[i] = size
            order.append(i)
        elif action == "-" and address in open_at:
            temporary.add(open_at.pop(address))
    now = most = 0
    live = {}
    for i, (action, size, address) in enumerate(row["events"]):
        if action == "+" and i in temporary:
            live[address] = sizes[i]
            now += sizes[i]
            most = max(most, now)
        elif action == "-" and address in live:
            now -= live.pop(address)
    return [sizes[i] for i in order if i in temporary], most


def modelled(steps) -> tuple[list[int], int]:
    taken, now, most = [], 0, 0
    for step in steps or []:
        if step is temporaries.OUT:
            continue
        if step > 0:
            taken.append(step)
            now += step
            most = max(most, now)
        elif step < 0:
            now -= taken[-step - 1]
    return taken, most


def modelled_end(steps, end: str) -> int:
    """The most bytes at once with every estimate at its least, or its most."""
    taken, now, most = [], 0, 0
    for step in steps or []:
        if step is temporaries.OUT:
            continue
        if step < 0:
            now -= taken[-step - 1]
            continue
        size = getattr(step, end, step)
        most = max(most, now + size)
        if step > 0:
            taken.append(size)
            now += size
    return most


def bounds(rows) -> None:
    """How many rows lie between the two ends of their estimate, and how wide those are."""
    inside = count = 0
    sums = [0, 0, 0]
    for row in rows:
        try:
            func, args, kwargs, outputs = call_of(row)
        except (ValueError, AttributeError):
            continue
        steps = temporaries.steps(func, args, kwargs, outputs, H200)
        least, most, truth = modelled_end(steps, "least"), modelled_end(steps, "most"), recorded(row)[1]
        count += 1
        inside += least - SLACK_BYTES <= truth <= most + SLACK_BYTES
        sums = [sums[0] + least, sums[1] + truth, sums[2] + most]
    print(f"{inside} of {count} inside; least {sums[0]:,}, recorded {sums[1]:,}, most {sums[2]:,} bytes")


def rows_of(path: str):
    with gzip.open(path, "rt") as file:
        content = json.load(file)
    return content["ops"] if isinstance(content, dict) else content


def distinct(paths: list[str], pattern: str = ""):
    seen = {}
    for path in paths:
        for row in rows_of(path):
            if row["op"].startswith("aten.") and re.search(pattern, row["op"]):
                key = (row["op"], tuple(row["in"]))
                if key in seen:
                    seen[key]["count"] += row.get("count", 1)
                    if len(row["events"]) < len(seen[key]["events"]):  # without the workspaces that are taken once
                        seen[key]["events"] = row["events"]
                else:
                    seen[key] = {**{k: row[k] for k in ("op", "in", "out", "events")}, "count": row.get("count", 1)}
    return list(seen.values())


def compare(row: dict):
    """(exact, recorded most, modelled most, recorded sizes, modelled sizes), None when the row cannot be rebuilt."""
    try:
        func, args, kwargs, outputs = call_of(row)
    except (ValueError, AttributeError):
        return None
    if outputs and all(o.device.type == "cpu" for o in outputs):
        return None
    want, want_most = recorded(row)
    have, have_most = modelled(temporaries.steps(func, args, kwargs, outputs, H200))
    return want == have, want_most, have_most, want, have


def report(rows, misses: int) -> None:
    table = collections.defaultdict(lambda: [0, 0, 0, 0, 0, 0])
    wrong = []
    for row in rows:
        result = compare(row)
        if result is None:
            continue
        exact, want_most, have_most, want, have = result
        line = table[row["op"]]
        line[0] += 1
        line[1] += exact
        line[2] += want_most
        line[3] += min(want_most, have_most)
        line[4] += abs(want_most - have_most)
        line[5] += have_most
        if not exact:
            wrong.append((abs(want_most - have_most), row, want, have))
    for op, (count, exact, bytes_recorded, _, error, bytes_modelled) in sorted(
        table.items(), key=lambda item: -item[1][2]
    ):
        if bytes_recorded or bytes_modelled:
            print(
                f"{op:62} rows {count:5} exact {exact:5}  recorded {bytes_recorded:14}  error {error:13} ({100 * error / max(bytes_recorded, 1):.1f} %)"
            )
    total, off = sum(v[2] for v in table.values()), sum(v[4] for v in table.values())
    print(
        f"all: rows {sum(v[0] for v in table.values())} exact {sum(v[1] for v in table.values())} recorded {total} error {off} ({100 * off / max(total, 1):.2f} %)"
    )
    for error, row, want, have in sorted(wrong, key=lambda w: -w[0])[:misses]:
        print(
            f"\noff by {error}: {row['op']} {' '.join(row['in'])[:300]}\n  recorded {want[:20]}\n  modelled {have[:20]}"
        )


def write_fixture(rows, path: str) -> None:
    """Rows with temporaries or a model, plus one of each other operation; addresses become small numbers."""
    kept, others = [], set()
    for row in rows:
        result = compare(row)
        if result is None:
            continue
        _, want_most, have_most, _, _ = result
        if not want_most and not have_most:
            if row["op"] in others:
                continue
            others.add(row["op"])
        names = {}
        events = [[a, s, names.setdefault(p, len(names))] for a, s, p in row["events"] if a in "+-"]
        kept.append({**row, "events": events})
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(kept, separators=(",", ":")).encode())
    print(len(kept), "rows", os.path.getsize(path), "bytes")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--op", default="")
    parser.add_argument("--misses", type=int, default=15)
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--fixture")
    parser.add_argument("--release", default="2.11.0+cu130", help="of PyTorch, with which they were recorded")
    options = parser.parse_args()
    rows = distinct(options.recordings, options.op)
    with releases.assumed(options.release):
        if options.fixture:
            write_fixture(rows, options.fixture)
        elif options.bounds:
            bounds(rows)
        else:
            report(rows, options.misses)


if __name__ == "__main__":
    main()
