"""Writes protocol 4 pickles with the bytes CPython's C pickler would write, without holding the whole object graph.

`encode` turns one object into its opcodes and remembers, as the pickler does, every object it has met. It also notes the offsets at which
the pickler would look whether its frame is full: those of every object inside. `put` lays such pieces into frames. Between the two a
caller may change bytes of the same length, which is how a long periodic trace is written from one period.
"""

import struct

FRAME_TARGET = 64 * 1024
BATCH = 1000  # items between a MARK and its APPENDS or SETITEMS

MEMOIZE = b"\x94"
MARK = b"("


class PickleStream:
    def __init__(self, write):
        self.memo_count = 0
        self.bytes_written = 0
        self._write = write
        self._memo = {}  # id -> index
        self._met = []  # keeps what the memo names alive, so that no id is used twice
        self._frame = []
        self._frame_bytes = 0
        self._emit(b"\x80\x04")

    def encode(self, value):
        """Returns (opcodes, offsets where a frame may end)."""
        out, offsets = bytearray(), []
        self._encode(value, out, offsets)
        return bytes(out), offsets

    def save(self, value):
        self.put(*self.encode(value))

    def put(self, piece, offsets=()):
        if self._frame_bytes + len(piece) >= FRAME_TARGET:
            start = 0
            for offset in offsets:
                if self._frame_bytes + offset - start >= FRAME_TARGET:
                    self._frame.append(piece[start:offset])
                    self._frame_bytes += offset - start
                    self._close_frame()
                    start = offset
            piece = piece[start:]
        self._frame.append(piece)
        self._frame_bytes += len(piece)

    def open_container(self, opcode):
        """An empty list or dict whose items the caller will save."""
        self.put(opcode + MEMOIZE, (0,))
        self.memo_count += 1

    def close(self):
        self.put(b".")
        self._close_frame()

    def _emit(self, piece):
        self._write(piece)
        self.bytes_written += len(piece)

    def _close_frame(self):
        # The pickler leaves out the header of a frame of fewer than four bytes.
        if self._frame_bytes >= 4:
            self._emit(b"\x95" + struct.pack("<Q", self._frame_bytes))
        self._emit(b"".join(self._frame))
        self._frame.clear()
        self._frame_bytes = 0

    def _memoize(self, value, out):
        out += MEMOIZE
        self._memo[id(value)] = self.memo_count
        self._met.append(value)
        self.memo_count += 1

    def _encode(self, value, out, offsets):
        offsets.append(len(out))
        index = self._memo.get(id(value))
        if index is not None:
            out += b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)
        elif type(value) is int:
            encode_int(value, out)
        elif value is False or value is True:
            out += b"\x88" if value else b"\x89"
        elif type(value) is float:
            out += b"G" + struct.pack(">d", value)
        elif type(value) is str:
            text = value.encode("utf-8", "surrogatepass")
            out += b"\x8c" + bytes([len(text)]) if len(text) < 256 else b"X" + struct.pack("<I", len(text))
            out += text
            self._memoize(value, out)
        elif type(value) is tuple and len(value) == 2:
            for item in value:
                self._encode(item, out, offsets)
            out += b"\x86"
            self._memoize(value, out)
        elif type(value) is list:
            out += b"]"
            self._memoize(value, out)
            self._encode_items([(item,) for item in value], b"a", b"e", out, offsets)
        elif type(value) is dict:
            out += b"}"
            self._memoize(value, out)
            self._encode_items(list(value.items()), b"s", b"u", out, offsets)
        else:
            raise TypeError("no snapshot holds a %s" % type(value).__name__)

    def _encode_items(self, items, one, many, out, offsets):
        if len(items) == 1:
            for part in items[0]:
                self._encode(part, out, offsets)
            out += one
            return
        for start in range(0, len(items), BATCH):
            out += MARK
            for item in items[start : start + BATCH]:
                for part in item:
                    self._encode(part, out, offsets)
            out += many


def encode_int(value, out):
    if 0 <= value < 1 << 8:
        out += b"K" + bytes([value])
    elif 0 <= value < 1 << 16:
        out += b"M" + struct.pack("<H", value)
    elif -(1 << 31) <= value < 1 << 31:
        out += b"J" + struct.pack("<i", value)
    else:
        size = value.bit_length() // 8 + 1
        out += b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)
