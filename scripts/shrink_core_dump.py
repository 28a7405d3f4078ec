#!/usr/bin/env python3
"""Makes a small GPU core dump out of a large one, for tests and bug reports.

What tells of the fault stays: devices, grids with their parameters, multiprocessors, blocks and warps with an error, the cubin that holds the faulting
code, and the threads of the first warps of each different fault. Everything else goes: other cubins, threads that did nothing wrong, memory.

    scripts/shrink_core_dump.py core.cuda small.core.xz --rewrite /data/experiments/train=/home/user/project

A path may be rewritten to one that is not longer: it is filled up with slashes, which change no path's meaning.
"""

import argparse
import collections
import gzip
import lzma
import struct
import sys

USER = 0x80000000
(
    REGISTERS,
    IMAGE,
    DEVICES,
    CONTEXTS,
    SMS,
    GRIDS,
    BLOCKS,
    WARPS,
    LANES,
    MODULES,
    PREDICATES,
    PARAMETERS,
    UNIFORMS,
    META,
) = (USER + n for n in (5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22))
STRINGS, EXECUTABLE = 3, 4

Section = collections.namedtuple("Section", "name type flags address offset size link info align entry")
HEADER = struct.Struct("<IIQQQQIIQQ")


def read(path):
    with open(path, "rb") as file:
        head = file.read(6)
    opener = lzma.open if head == b"\xfd7zXZ\0" else gzip.open if head[:2] == b"\x1f\x8b" else open
    with opener(path, "rb") as file:
        return file.read()


def sections_of(elf):
    start, count, names = struct.unpack_from("<Q", elf, 40)[0], *struct.unpack_from("<HH", elf, 60)
    if start == 0:
        return [], 0
    first = Section(*HEADER.unpack_from(elf, start))
    count = count or first.size
    names = first.link if names == 0xFFFF else names
    return [Section(*fields) for fields in HEADER.iter_unpack(elf[start : start + count * HEADER.size])], names


def rows(elf, section):
    return (
        [elf[at : at + section.entry] for at in range(section.offset, section.offset + section.size, section.entry)]
        if section.entry
        else []
    )


def holds(image, addresses):
    code = [s for s in sections_of(image)[0] if s.flags & EXECUTABLE]
    return any(s.address <= address < s.address + s.size for s in code for address in addresses)


def chosen_sections(elf, sections, warps_each):
    """Which sections stay, by index."""
    addresses, of_fault, told_lanes, warp_tables = set(), collections.Counter(), set(), set()
    exceptions = {}
    lanes_of = {(s.link, s.info): i for i, s in enumerate(sections) if s.type == LANES}
    for index, section in enumerate(sections):
        if section.type == SMS:
            for number, row in enumerate(rows(elf, section)):
                if section.entry >= 24:
                    exceptions[index, number], valid, pc = struct.unpack_from("<IIQ", row, 8)
                    addresses |= {pc} if valid else set()
        elif section.type == GRIDS:
            addresses |= {struct.unpack_from("<Q", row, 24)[0] for row in rows(elf, section)}
    for index, section in enumerate(sections):
        if section.type != WARPS:
            continue
        block = sections[section.link]
        for number, row in enumerate(rows(elf, section)):
            (pc,) = struct.unpack_from("<Q", row)
            (valid,) = struct.unpack_from("<I", row, 24)
            lanes = lanes_of.get((index, number))
            exception = 0
            if lanes is not None:
                exception = next(
                    (e for e in (struct.unpack_from("<I", lane, 32)[0] for lane in rows(elf, sections[lanes])) if e), 0
                )
            if not valid and not exception:
                continue
            warp_tables.add(index)
            addresses |= {pc} if valid else set()
            fault = (exception or exceptions.get((block.link, block.info), 0), pc if valid else None)
            of_fault[fault] += 1
            if of_fault[fault] <= warps_each:
                told_lanes |= {(index, number)}
    kept_lanes = {lanes_of[warp] for warp in told_lanes if warp in lanes_of}
    kept = set()
    for index, section in enumerate(sections):
        kind = section.type
        if kind in (DEVICES, CONTEXTS, MODULES, SMS, GRIDS, PARAMETERS, META, STRINGS):
            kept.add(index)
        elif kind == IMAGE and holds(elf[section.offset : section.offset + section.size], addresses):
            kept.add(index)
        elif kind == WARPS and index in warp_tables:
            kept |= {index, section.link}
        elif kind == UNIFORMS and (section.link, section.info) in told_lanes:
            kept.add(index)
        elif kind == LANES and index in kept_lanes:
            kept.add(index)
        elif kind in (REGISTERS, PREDICATES) and section.link in kept_lanes:
            kept.add(index)
    return sorted(kept)


def write(elf, sections, names_index, kept, rewrites):
    old_names = sections[names_index]
    name_bytes = elf[old_names.offset : old_names.offset + old_names.size]
    new_index = {old: new for new, old in enumerate(kept, 1)}
    body, names, headers = bytearray(elf[:64]), bytearray(b"\0"), []
    for index in kept:
        section = sections[index]
        content = elf[section.offset : section.offset + section.size]
        if index == names_index:
            headers.append((section, None, None))
            continue
        for old, new in rewrites:
            content = content.replace(old, new)
        body += b"\0" * (-len(body) % 8)
        headers.append((section, len(body), len(names)))
        body += content
        names += name_bytes[section.name : name_bytes.index(b"\0", section.name)] + b"\0"
    names_offset = len(body)
    body += names
    body += b"\0" * (-len(body) % 8)
    start = len(body)
    body += HEADER.pack(0, 0, 0, 0, 0, len(kept) + 1, new_index[names_index], 0, 0, 0)
    for section, offset, name in headers:
        if offset is None:
            body += HEADER.pack(0, STRINGS, section.flags, 0, names_offset, len(names), 0, 0, 0, 0)
            continue
        link = new_index.get(section.link, 0)
        body += HEADER.pack(
            name,
            section.type,
            section.flags,
            section.address,
            offset,
            section.size,
            link,
            section.info,
            section.align,
            section.entry,
        )
    struct.pack_into("<Q", body, 40, start)
    struct.pack_into("<HH", body, 60, 0, 0xFFFF)  # the numbers stand in the first header, as in dumps of full size
    return bytes(body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump")
    parser.add_argument("small", help="compressed where its name ends in .xz")
    parser.add_argument(
        "--warps", type=int, default=8, help="of each different fault, how many warps keep their threads (default: 8)"
    )
    parser.add_argument("--rewrite", action="append", default=[], metavar="OLD=NEW", help="rewrite a path")
    options = parser.parse_args()
    rewrites = []
    for rewrite in options.rewrite:
        old, _, new = rewrite.encode().partition(b"=")
        if not new or len(new) > len(old):
            sys.exit(f"{rewrite}: the new path must be there and must not be longer than the old one")
        rewrites.append((old, new + b"/" * (len(old) - len(new))))
    elf = read(options.dump)
    if elf[:4] != b"\x7fELF" or struct.unpack_from("<HH", elf, 16) != (4, 0xBE):
        sys.exit(f"{options.dump}: no GPU core dump")
    sections, names_index = sections_of(elf)
    kept = chosen_sections(elf, sections, options.warps)
    small = write(elf, sections, names_index, kept, rewrites)
    with (lzma.open if options.small.endswith(".xz") else open)(options.small, "wb") as file:
        file.write(small)
    print(f"{len(elf)} bytes in {len(sections)} sections became {len(small)} bytes in {len(kept) + 1} sections")


if __name__ == "__main__":
    main()
