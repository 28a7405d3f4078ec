"""Inputs that want to take time, memory or the terminal: small to make, meant to be expensive to read."""

import gzip
import lzma
import struct

MARK = "faultline-trace-text 1\n"


def names(count, what):
    return (f"{what}{i}" for i in range(count))


# -- traces in text, each with one thing far too often


def many_devices(count):
    heaps = "".join(f"device {i}\nheap d{i} kind=driver device={i}\n" for i in range(count))
    return (
        MARK
        + heaps
        + "".join(
            f"alloc #a{i} 1MiB d{i} @{0x7F0000000000 + i * (2 << 20):#x} at train.py:{i + 1} f\n" for i in range(count)
        )
    )


def many_heaps(count):
    heaps = "device 0\nheap driver\n" + "".join(f"heap h{i} kind=torch below=driver pool=1.{i}\n" for i in range(count))
    return (
        MARK + heaps + "".join(f"alloc 512 h{i} @{0x7F0000000000 + i * 512:#x} at a.py:{i} f\n" for i in range(count))
    )


def tower_of_heaps(count):
    heaps = "device 0\nheap h0 kind=driver\n" + "".join(
        f"heap h{i} kind=other below=h{i - 1}\n" for i in range(1, count)
    )
    return MARK + heaps + f"alloc 512 h{count - 1} @0x7f0000000000\n"


def many_streams(count):
    return (
        MARK
        + "".join(f"stream {i} handle={i * 16:#x}\n" for i in range(1, count))
        + "".join(f"alloc 512 stream={i} @{0x7F0000000000 + i * 512:#x}\n" for i in range(1, count))
    )


def many_threads(count):
    return MARK + "".join(
        f"op-begin aten::mm thread={i % 65536} device=0\nop-end \"shapes cannot be multiplied\" failed thread={i % 65536}\n"
        for i in range(count)
    )


def deep_stack(depth, events):
    stack = "stack s = " + " > ".join(f"/usr/lib/libcudart.so.12 f{i}" for i in range(depth)) + "\n"
    return (
        MARK
        + stack
        + "".join(
            f"alloc-failed {i + 1}MiB driver stack=s\nalloc {i + 1}MiB driver @{0x7F0000000000 + (i << 30):#x} stack=s\n"
            for i in range(events)
        )
    )


def recursion(depth):
    """A function that calls itself, and allocates on each level."""
    return (
        MARK
        + "can addresses stacks complete-from-start events\nproperty process.ended = exit\nstack s0 = main.py:1 f\n"
        + "".join(f"stack s{i} = s{i - 1} > main.py:{i} f\n" for i in range(1, depth))
        + "".join(f"alloc 1KiB driver @{0x7F0000000000 + (i << 10):#x} stack=s{i}\n" for i in range(depth))
    )


def stacks_within_stacks(count):
    stacks = "stack s0 = main.py:1 f\n" + "".join(
        f"stack s{i} = s{i - 1} > main.py:{i} f{i}\n" for i in range(1, count)
    )
    return (
        MARK
        + stacks
        + "property process.ended = exit\n"
        + "".join(f"alloc 1MiB driver @{0x7F0000000000 + (i << 20):#x} stack=s{i}\n" for i in range(count))
    )


def many_lines_over_many_steps(lines, steps):
    text = [MARK]
    for i in range(lines):
        text.append(f"stack s{i} = train.py:{i + 1} f{i}\n")
    for step in range(steps):
        text.append(f"step {step}\n")
        if step % (steps // 8) == 0:
            text.extend(f"alloc 1MiB stack=s{i}\n" for i in range(lines))
    return "".join(text)


def many_growing_lines(lines, rounds):
    text = [MARK] + [f"stack s{i} = train.py:{i + 1} f{i}\n" for i in range(lines)]
    for r in range(rounds):
        text.append(f"step {r}\n")
        text.extend(f"alloc {2**44} stack=s{i}\n" if r == 0 else f"alloc 1MiB stack=s{i}\n" for i in range(lines))
    return "".join(text)


def many_faults(count):
    calls = "".join(
        f"call f{i} = fault \"Warp Illegal Address\" kernel=k{i} file=k.cu line={i + 1} addresses={0x7F0000000000 + i:#x}\n"
        for i in range(count)
    )
    return (
        MARK
        + "device 0\n"
        + "".join(f"alloc 512 @{0x7F0000000000 + i * 512:#x}\n" for i in range(count))
        + calls
        + "".join(f"fault call=f{i} @{0x7F0000000000 + i:#x} 4\n" for i in range(count))
    )


def equal_faults_but_for_their_line(count):
    return MARK + "".join(f"call f{i} = fault X line={i + 1}\nfault call=f{i}\n" for i in range(count))


def many_refused_frees(count):
    return MARK + "".join(
        f"alloc 512 driver @{0x7F0000000000 + i * 512:#x}\nfree failed driver @{0x7E0000000000 + i:#x} at a.py:{i + 1} f{i}\n"
        for i in range(count)
    )


def many_failed_operations(count):
    return MARK + "".join(
        f"op-begin aten::mm at a.py:{i + 1} f{i}\ntensor-note tensor=float32[8,{i + 1}]\ntensor-note tensor=float32[7,8]\nop-end \"mat1 and mat2 shapes cannot be multiplied (8x{i + 1} and 7x8)\" failed\n"
        for i in range(count)
    )


def many_launches(count):
    calls = "".join(
        f"call k{i} = launch kernel{i} grid={i + 1} block=32 arguments=0:{0x7F0000000000 + i:#x}\n"
        for i in range(count)
    )
    return (
        MARK
        + calls
        + "".join(f"launch call=k{i} at a.py:{i + 1} f\n" for i in range(count))
        + "call seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuStreamSynchronize code=700\nfault call=seen\n"
    )


def many_counters(count):
    return MARK + "".join(f"lost counter{i} 1\n" for i in range(count)) + "alloc 512\n"


def many_libraries(count):
    return (
        MARK
        + "device 0 capacity=80GiB\n"
        + "heap driver\nheap torch below=driver\nheap out kind=driver below=driver\n"
        + "".join(f"alloc 512 out @{0x7F0000000000 + i * 512:#x} at /opt/lib{i}.so f\n" for i in range(count))
        + "alloc 512 torch @0x7e0000000000\nalloc-failed 1GiB torch\n"
    )


def many_tensors(count, operands=""):
    tensors = "".join(
        f"tensor t{i} = float32[{i + 1},{i + 1}] op=aten::mse_loss operands=\"float32[{i + 1},1]{operands} float32[{i + 1}]{operands}\"\n"
        for i in range(count)
    )
    return MARK + tensors + "".join(f"alloc 1MiB tensor=t{i} at a.py:{i + 1} f{i}\n" for i in range(count))


def long_name_on_every_event(length, events):
    return (
        MARK
        + f"tensor t = float32[4] op=\"{'x' * length}\" operands=\"{'float32[4] ' * (length // 11)}\"\n"
        + f"stack s = \"{'d' * length}.py\":3 \"{'f' * length}\"\n"
        + "alloc 1MiB tensor=t stack=s\n" * events
    )


def tensors_chosen_to_fall_together(count):
    """Extents that cancel in a hash of one multiplication, which anybody can look up."""
    factor = 0x9E3779B97F4A7C15
    signed = [(-i * factor) % 2**64 for i in range(1, count + 1)]
    return MARK + "".join(
        f"alloc 512 tensor=float32[{i},{b - 2**64 if b >= 2**63 else b}]\n" for i, b in enumerate(signed, 1)
    )


def words_of_faults(faults, words):
    """Kernels that were given far more pointers than any has."""
    parameters = ",".join(f"{i * 8}:{0x7E0000000000 + i:#x}" for i in range(words))
    calls = "".join(
        f"call f{i} = fault \"Warp Illegal Address\" kernel=k file=k.cu line={i + 1} addresses={0x7F0000000000 + i:#x} parameters={parameters}\n"
        for i in range(faults)
    )
    return (
        MARK
        + "".join(f"alloc 512 @{0x7F0000000000 + i * 512:#x}\n" for i in range(50_000))
        + calls
        + "".join(f"fault call=f{i} @{0x7D0000000000 + i:#x} 4\n" for i in range(faults))
    )


def fragmented(count):
    text = [MARK, "device 0 capacity=80GiB\nalloc #s 1GiB driver @0x7f0000000000\n"]
    text.extend(f"alloc #b{i} 512 @{0x7F0000000000 + i * 512:#x}\n" for i in range(count))
    text.extend(f"free #b{i}\n" for i in range(0, count, 2))
    return "".join(text) + "alloc-failed 600MiB\n"


def allocated_among_mappings(count):
    """Each request passes over every range that was mapped."""
    return (
        MARK
        + "device 0\n"
        + "".join(f"map 2MiB driver @{0x7F0000000000 + i * (4 << 20):#x}\n" for i in range(count))
        + "".join(f"alloc 1MiB torch @{0x7E0000000000 + i * (2 << 20):#x}\n" for i in range(count))
    )


def mapped_bit_by_bit(count):
    return (
        MARK
        + "device 0\n"
        + "".join(f"map 2MiB driver @{0x7F0000000000 + i * (4 << 20):#x}\n" for i in range(count))
        + "alloc 512 @0x7f0000000000\nalloc-failed 1TiB\n"
        + "".join(f"unmap 2MiB driver @{0x7F0000000000 + i * (4 << 20):#x}\n" for i in range(count))
    )


def sizes_beyond_all_memory(count):
    return (
        MARK
        + "device 0 capacity=18446744073709551615\n"
        + "".join(f"alloc {2**64 - 1 - i} @{i:#x} at a.py:{i + 1} f\n" for i in range(count))
        + f"alloc-failed {2**64 - 1}\n"
    )


def kernel_name_that_grows(levels):
    """A mangled name of a few hundred bytes that stands for one of 2^levels."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def reference(number):
        if number == 0:
            return "S_"
        number -= 1
        text = digits[number % 36]
        while number >= 36:
            number = number // 36
            text = digits[number % 36] + text
        return f"S{text}_"

    name = "_Z1f1aIiiE" + "".join(f"S_I{reference(i) * 2}E" for i in range(1, levels + 1))
    return (
        MARK
        + f"call k = launch {name} grid=1 block=1\nlaunch call=k at a.py:1 f\ncall seen = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuStreamSynchronize code=700\nfault call=seen\n"
    )


# -- JSON


def nested_json(depth):
    return "[" * depth + "]" * depth


def nested_objects(depth):
    return '{"a":' * depth + "1" + "}" * depth


def json_of_many_members(count):
    return "{" + ",".join(f'"k{i}":{i}' for i in range(count)) + "}"


# -- what unpacks to much


def gzip_bomb(start, filler, size_bytes):
    """`start`, then `filler` again and again, packed about a thousandfold."""
    piece = filler * (1 + (1 << 20) // len(filler))
    return gzip.compress(start + piece * (size_bytes // len(piece)), 9)


def empty_findings(count):
    return gzip.compress(b'{"schema":"faultline.report/1","findings":[{}' + b",{}" * (count - 1) + b"]}", 9)


def notebook_of_cells(count):
    """The last of them fails."""
    cell = '{"cell_type":"code","execution_count":%d,"metadata":{},"source":["x"],"outputs":[%s]}'
    stream = '{"output_type":"stream","name":"stdout","text":["step\\n"]}'
    error = '{"output_type":"error","ename":"RuntimeError","evalue":"CUDA error: out of memory","traceback":["RuntimeError: CUDA error: out of memory"]}'
    cells = [cell % (at, stream) for at in range(count)] + [cell % (count, error)]
    return '{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[' + ",".join(cells) + "]}"


def xz_bomb(start, filler, size_bytes):
    piece = filler * (1 + (1 << 20) // len(filler))
    packer = lzma.LZMACompressor(preset=0)
    packed = packer.compress(start)
    for _ in range(size_bytes // len(piece)):
        packed += packer.compress(piece)
    return packed + packer.flush()


# -- ELF


def section(kind, offset, size, name=0, flags=0, link=0, info=0, entry=0, address=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, link, info, 0, entry)


def elf(body, sections, machine=0xBE, kind=4, abi=0x33, names=0):
    """An ELF file: its header, `body` from byte 64 on, then the section headers."""
    header = (
        b"\x7fELF\x02\x01\x01"
        + bytes([abi])
        + bytes(8)
        + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(sections), names)
    )
    return header + body + b"".join(sections)


DEVICES, SMS, GRIDS, BLOCKS, WARPS, IMAGE, MODULES, CONTEXTS = (
    0x80000009,
    0x8000000B,
    0x8000000C,
    0x8000000D,
    0x8000000E,
    0x80000007,
    0x80000010,
    0x8000000A,
)


def overlapping_tables(count, body_bytes):
    """A core dump of `count` tables that all claim the same bytes."""
    body = bytes(body_bytes)
    sections = [section(0, 0, 0), section(DEVICES, 64, 128, entry=128)]
    sections += [section((SMS, GRIDS, CONTEXTS)[i % 3], 64, body_bytes, entry=8) for i in range(count)]
    return elf(body, sections)


def device_with_a_name_for_every_row(rows):
    """Each row of eight bytes names a text as long as the table of texts."""
    strings = b"n" * (rows * 8 - 1) + b"\0"
    body = strings + bytes(rows * 8)
    return elf(
        body, [section(0, 0, 0), section(3, 64, len(strings)), section(DEVICES, 64 + len(strings), rows * 8, entry=8)]
    )
