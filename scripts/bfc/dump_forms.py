#!/usr/bin/env python3
"""Writes a pool's map in the words of each time since 2016, behind any prefix: what tests read, and logs to measure with.

    python3 scripts/bfc/dump_forms.py FORM SITUATION [--prefix PREFIX] > log.txt
    python3 scripts/bfc/dump_forms.py --list

A pool is regions of chunks; the words around them are those of the frameworks' logs, by year: docs/tensorflow-jax.md lists which release has which.
"""

import argparse
from dataclasses import dataclass, field

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NONE = 18446744073709551615
FORMS = ["2016", "2018", "2019", "2021", "2023", "2025", "2026"]
PREFIXES = ["tensorflow", "absl", "none", "colour", "docker", "kubernetes", "rank"]


@dataclass
class Pool:
    """regions: lists of (bytes, in use) or (bytes, in use, asked for, operation)."""

    regions: list
    limit: int
    request: int
    name: str = "GPU_0_bfc"
    op: str = "model/conv2d/Conv2D"
    refused: int = 0
    next_region: int = 0
    bases: list = field(default_factory=list)

    def chunks(self):
        """(region, address, bytes, in use, asked for, operation) of each; regions lie apart."""
        address = 0x7F9400000000
        for index, region in enumerate(self.regions):
            start = address
            for chunk in region:
                size, used = chunk[0], chunk[1]
                yield (
                    index,
                    address,
                    size,
                    used,
                    chunk[2] if len(chunk) > 2 else size,
                    chunk[3] if len(chunk) > 3 else "",
                )
                address += size
            address = start + (address - start + 2 * MIB) // (2 * MIB) * (2 * MIB) + 2 * MIB

    @property
    def taken(self):
        return sum(chunk[0] for region in self.regions for chunk in region)

    @property
    def in_use(self):
        return sum(chunk[0] for region in self.regions for chunk in region if chunk[1])

    @property
    def free(self):
        return self.taken - self.in_use

    @property
    def largest_free(self):
        return max((chunk[0] for region in self.regions for chunk in region if not chunk[1]), default=0)

    @property
    def rounded(self):
        return (self.request + 255) // 256 * 256


def human(count):
    """As TensorFlow prints a size: cut while it is scaled, then rounded."""
    if count < KIB:
        return f"{count}B"
    units = "KMGTPE"
    scaled, unit = count, 0
    while scaled >= MIB and unit < 5:
        scaled //= 1024
        unit += 1
    return f"{scaled / 1024:.{1 if unit == 0 else 2}f}{units[unit]}iB"


def situation(name):
    """Pools by the reason for which the request failed."""
    used, free = True, False
    if name == "fragmented":  # 600 MiB are free, none of it in more than 200 MiB
        region = [
            (300 * MIB, used),
            (200 * MIB, free),
            (100 * MIB, used),
            (200 * MIB, free),
            (24 * MIB, used),
            (200 * MIB, free),
        ]
        return Pool([region], limit=1024 * MIB, request=400 * MIB)
    if name == "exhausted":  # the same in use, and the request is more than what is left in all
        region = [(300 * MIB, used), (200 * MIB, free), (524 * MIB, used)]
        return Pool([region], limit=1024 * MIB, request=400 * MIB)
    if name == "regions":  # what growth costs: 214 MiB free in five regions, 250 not taken, 300 asked for
        regions = [
            [(256, used), (2 * MIB - 256, free)],
            [(4 * MIB, used, 3 * MIB)],
            [(128 * MIB, used, 100 * MIB)],
            [(128 * MIB, used, 100 * MIB)],
            [(300 * MIB, used), (212 * MIB, free)],
        ]
        return Pool(regions, limit=1024 * MIB, request=300 * MIB, next_region=512 * MIB)
    if name == "slack":  # chunks half as large again as what was asked for
        region = [(180 * MIB, used, 100 * MIB) for _ in range(5)] + [(100 * MIB, free)]
        return Pool([region], limit=1000 * MIB, request=200 * MIB)
    if name == "refused":  # the limit left room, and the driver did not
        return Pool([[(500 * MIB, used), (12 * MIB, free)]], limit=8192 * MIB, request=700 * MIB, refused=700 * MIB)
    raise SystemExit(f"no situation {name}")


SITUATIONS = ["fragmented", "exhausted", "regions", "slack", "refused"]


def bins(pool, form):
    for number in range(21):
        low = 256 << number
        here = [c for c in pool.chunks() if low <= c[2] and (number == 20 or c[2] < 2 * low)]
        used = [c for c in here if c[3]]
        asked = human(sum(c[4] for c in used))
        total, taken = human(sum(c[2] for c in here)), human(sum(c[2] for c in used))
        counts = f"Bin ({low}): \tTotal Chunks: {len(here)}, Chunks in use: {len(used)}"
        if form == "2016":
            yield f"{counts} {total} allocated for chunks. {asked} client-requested for chunks. {taken} in use in bin. {asked} client-requested in use in bin."
        else:
            yield f"{counts}. {total} allocated for chunks. {taken} in use in bin. {asked} client-requested in use in bin."


def chunk_lines(pool, form):
    chunks = list(pool.chunks())
    region = -1
    for index, (at, address, size, used, _, op) in enumerate(chunks):
        last = index + 1 == len(chunks) or chunks[index + 1][0] != at
        following = NONE if last else index + 2
        if at != region and form not in ("2016", "2018"):
            yield f"Next region of size {sum(c[0] for c in pool.regions[at])}"
        region = at
        word = ("Chunk" if form in ("2016", "2018") else "InUse") if used else "Free "
        if form in ("2016", "2018"):
            yield f"{word} at 0x{address:x} of size {size}"
        elif form == "2019":
            yield f"{word} at {address:016X} next {following} of size {size}"
        elif form == "2026":
            note = f" allocation_annotation {op}" if op and used else ""
            yield f"{word} at {address:x} of size {size} tag kLower{note} next {following}"
        else:
            yield f"{word} at {address:x} of size {size} next {following}"


def statistics(pool, form):
    shown = human if form in ("2025", "2026") else str
    rows = [
        ("Limit", shown(pool.limit)),
        ("InUse", shown(pool.in_use)),
        ("MaxInUse", shown(pool.in_use)),
        ("NumAllocs", "121"),
        ("MaxAllocSize", shown(300 * MIB)),
    ]
    if form not in ("2016", "2018"):
        rows += [("Reserved", shown(0)), ("PeakReserved", shown(0)), ("LargestFreeBlock", shown(0))]
    return [f"{name + ':':<17}{value:>20}" for name, value in rows]


def lines(pool, form):
    """(a level and a file, the words) of each line; without a level it has no prefix of the logger's."""
    log, warn = ("I", "bfc_allocator.cc:1049"), ("W", "bfc_allocator.cc:502")
    if pool.refused:
        yield (
            ("I", "cuda_driver.cc:924"),
            f"failed to allocate {human(pool.refused).replace('iB', '')} ({pool.refused} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        )
    size = human(pool.request)
    if form == "2018":
        yield (
            warn,
            f"Allocator ({pool.name}) ran out of memory trying to allocate {size}.  Current allocation summary follows.",
        )
    elif form == "2019":
        yield (
            warn,
            f"Allocator ({pool.name}) ran out of memory trying to allocate {size} (rounded to {pool.rounded}).  Current allocation summary follows.",
        )
    elif form in ("2021", "2023", "2025"):
        yield (
            warn,
            f"Allocator ({pool.name}) ran out of memory trying to allocate {size} (rounded to {pool.rounded})requested by op {pool.op}",
        )
        yield (
            None,
            "If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. ",
        )
        yield None, "Current allocation summary follows."
        yield None, "Current allocation summary follows."
    elif form == "2026":
        yield (
            warn,
            f"Allocator ({pool.name}) ran out of memory trying to allocate {size} (rounded to {pool.rounded}) from the lower end requested by op {pool.op}",
        )
        yield (
            None,
            "If this is caused by memory fragmentation, the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the situation. ",
        )
    if form not in ("2016", "2018"):
        yield log, f"BFCAllocator dump for {pool.name}"
    for line in bins(pool, form):
        yield log, line
    yield log, f"Bin for {size} was {human(256 << 20)}, Chunk State: "
    for _, _, size_bytes, used, _, _ in pool.chunks():
        if size_bytes >= 256 << 20 and not used:
            yield (
                log,
                f"  Size: {human(size_bytes)} | Requested Size: 1.0KiB | in_use: 0 | bin_num: 20, prev:   Size: 1.0KiB | Requested Size: 1.0KiB | in_use: 1 | bin_num: -1",
            )
    for line in chunk_lines(pool, form):
        yield log, line
    yield log, "     Summary of in-use Chunks by size: "
    sizes = sorted({chunk[2] for chunk in pool.chunks() if chunk[3]})
    for chunk in sizes:
        count = sum(1 for other in pool.chunks() if other[3] and other[2] == chunk)
        yield log, f"{count} Chunks of size {chunk} totalling {human(count * chunk)}"
    yield log, f"Sum Total of in-use chunks: {human(pool.in_use)}"
    left, grown = pool.limit - pool.taken, pool.next_region or pool.limit
    if form in ("2019", "2021"):
        yield (
            log,
            f"total_region_allocated_bytes_: {pool.taken} memory_limit_: {pool.limit} available bytes: {left} curr_region_allocation_bytes_: {grown}",
        )
    elif form == "2023":
        yield (
            log,
            f"Total bytes in pool: {pool.taken} memory_limit_: {pool.limit} available bytes: {left} curr_region_allocation_bytes_: {grown}",
        )
    elif form in ("2025", "2026"):
        yield (
            log,
            f"Total size in pool: {human(pool.taken)} memory_limit_: {human(pool.limit)} available size: {human(left)} curr_region_allocation_bytes_: {human(grown)}",
        )
    if form == "2026":
        yield (
            log,
            f"Allocator memory summary: rounded request {human(pool.rounded)}, total free in pool {human(pool.free)}, largest free chunk usable by lower end {human(pool.largest_free)}, unallocated bytes {human(left)}, pool size {human(pool.taken)}, pool limit {human(pool.limit)}",
        )
        yield log, f"Allocator region growth hint: next region {human(grown)}"
    yield log, "Stats: "
    for line in statistics(pool, form):
        yield None, line
    yield None, ""
    bar = "".join(
        "*" if chunk[3] else "_" for chunk in pool.chunks() for _ in range(max(1, 100 * chunk[2] // pool.taken))
    )
    yield warn, bar[:100]
    if form == "2016":
        yield warn, f"Ran out of memory trying to allocate {size}.  See logs for memory state"


def prefixed(pairs, prefix, rank=0):
    """The lines of a log behind one of the prefixes."""
    for at, (source, words) in enumerate(pairs):
        time = f"12:34:56.{100000 + at:06d}"
        logger = f"2024-05-01 {time}: {source[0]} external/local_tsl/tsl/framework/{source[1]}] " if source else ""
        if prefix == "tensorflow":
            yield logger + words
        elif prefix == "absl":
            yield (
                f"{source[0]}0000 00:00:1794822347.{100000 + at:06d}   {13205 + rank} {source[1]}] " if source else ""
            ) + words
        elif prefix == "none":
            yield words
        elif prefix == "colour":
            yield f"\x1b[33m{logger}\x1b[0m{words}"
        elif prefix == "docker":
            yield f"2024-05-01T{time}789Z {logger}{words}"
        elif prefix == "kubernetes":
            yield f"2024-05-01T{time}789Z stderr F {logger}{words}"
        elif prefix == "rank":
            yield f"[rank{rank}]: {logger}{words}"
        else:
            raise SystemExit(f"no prefix {prefix}")


def dump(pool, form, prefix="tensorflow", rank=0):
    return "\n".join(prefixed(lines(pool, form), prefix, rank)) + "\n"


def failure(pool, framework="tensorflow", line=41):
    """What the program prints when the request has failed: its traceback, and the exception with its message."""
    head = f'Traceback (most recent call last):\n  File "/home/user/project/train.py", line {line}, in <module>\n    step(batch)\n'
    if framework == "jax":
        return (
            head
            + f"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate {pool.request} bytes.\n"
        )
    return head + (
        f"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[{pool.request // 4}] and type float "
        f"on /job:localhost/replica:0/task:0/device:GPU:0 by allocator {pool.name}\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", nargs="?", choices=FORMS)
    parser.add_argument("situation", nargs="?", choices=SITUATIONS)
    parser.add_argument("--prefix", default="tensorflow", choices=PREFIXES)
    parser.add_argument("--framework", default="tensorflow", choices=["tensorflow", "jax"])
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        return print("forms", *FORMS, "\nsituations", *SITUATIONS, "\nprefixes", *PREFIXES)
    pool = situation(arguments.situation)
    print(dump(pool, arguments.form, arguments.prefix) + failure(pool, arguments.framework), end="")


if __name__ == "__main__":
    main()
