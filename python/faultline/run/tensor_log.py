"""A framework's tensors over time, as a trace in its text form (docs/trace-format.md): <folder>/tensors-<pid>.txt.

Each line is written at once and whole, so that a killed process leaves all of them. Threads and finalizers write as they come: nothing here waits for another.
"""

import itertools
import os
import time

from .process import room_in

_MOST_BYTES = 64 << 20
_MOST_TENSORS = 20000  # that are told with their operation
_LOOK_AT_DISK = 1 << 20  # after so many bytes


class TensorLog:
    def __init__(self, process, head):
        self._process = process
        self._numbers, self._stacks = itertools.count(1), itertools.count(1)
        self._tensors, self._asked = {}, set()
        self._written = self._disk_seen = 0
        self._file = None
        if room_in(process.folder) < 2 * _LOOK_AT_DISK:
            return self._process.note("tensors are not recorded: the rest of the disk is left to the program")
        self._file = os.open(
            os.path.join(process.folder, f"tensors-{process.pid}.txt"),
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC,
            0o600,
        )
        self._write("faultline-trace-text 1\n" + head)

    def close(self):
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    # --- what happens

    def tensor(self, dtype, sides, operation=""):
        """Its name in the log."""
        key = (dtype, sides, operation)
        known = self._tensors.get(key)
        if known is None:
            known = f"{dtype}[{','.join(map(str, sides))}]"
            if operation and len(self._tensors) < _MOST_TENSORS:
                name = f"t{next(self._stacks)}"
                self._write(f"tensor {name} = {known} op={quoted(operation)}\n")
                known = self._tensors[key] = name
        return known

    def made(self, pool, size, stack, tensor):
        number = next(self._numbers)
        self._write(f"alloc #{number} {size} {pool} stack=s{stack} tensor={tensor} t={time.time_ns()}\n")
        return number

    def ended(self, number):
        self._write(f"free #{number} t={time.time_ns()}\n")

    def refused(self, pool, size, stack, operation):
        """A request for memory that failed."""
        if pool not in self._asked:
            self._asked.add(pool)
            self._write(f"property bfc.{pool}.asked_by = {quoted(operation)}\n" if operation else "")
        self._write(f"alloc-failed {size} {pool} stack=s{stack} t={time.time_ns()}\n")

    def failed(self, operation, operands, words, stack):
        """An operation that refused its operands: pairs of an allocation, or 0, and its tensor."""
        now = time.time_ns()
        lines = [f"op-begin {quoted(operation)} stack=s{stack} t={now}\n"]
        for number, tensor in operands:
            lines.append(f"tensor-note {f'#{number} ' if number else ''}tensor={tensor} t={now}\n")
        lines.append(f"op-end {quoted(words)} failed stack=s{stack} t={now}\n")
        self._write("".join(lines))

    # --- stacks, for plan.stacks.Stacks

    def frame(self, function, file, line):
        return f"{quoted(file)}:{line} {quoted(function)}"

    def stack(self, caller, place):
        number = next(self._stacks)
        self._write(f"stack s{number} = {f's{caller} > ' if caller else ''}{place}\n")
        return number

    def _write(self, text):
        file = self._file
        if file is None:
            return
        data = text.encode("utf-8", "replace")
        try:
            if self._written - self._disk_seen >= _LOOK_AT_DISK:
                self._disk_seen = self._written
                if room_in(self._process.folder) < 2 * _LOOK_AT_DISK:
                    return self._end("because the rest of the disk is left to the program")
            if self._written + len(data) > _MOST_BYTES:
                return self._end(f"when the {_MOST_BYTES >> 20} MiB that it may take were full")
            if os.write(file, data) < len(data):
                os.ftruncate(file, self._written)  # never half a line
                return self._end("because the disk was full")
            self._written += len(data)
        except OSError as problem:
            self._end(f"because it could not be written ({problem})")

    def _end(self, why):
        """Nothing more is written but that."""
        file, self._file = self._file, None
        if file is None:
            return
        last = (
            f"property capture.recorded_until_ns = {time.time_ns()}\nproperty capture.ended_because = {quoted(why)}\n"
        )
        try:
            if os.write(file, last.encode()) < len(last.encode()):
                os.ftruncate(file, self._written)
        except OSError:
            pass
        os.close(file)
        self._process.note(f"the log of tensors ends before the program did, {why}")


def quoted(text):
    """As the text form wants a name."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(letter if letter >= " " else f"\\x{ord(letter):02x}" for letter in plain) + '"'
