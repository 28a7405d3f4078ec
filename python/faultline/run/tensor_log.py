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
        self._disk_seen = 0
        self._file = []  # its descriptor while it is written: taking it out is one step
        if room_in(process.folder) < 2 * _LOOK_AT_DISK:
            return self._process.note("tensors are not recorded: the rest of the disk is left to the program")
        self._path, file = _new_file(process)
        about = os.fstat(file)
        self._is = (about.st_dev, about.st_ino)
        self._file.append(file)
        self._write("faultline-trace-text 1\n" + head)

    def close(self):
        for file in self._taken_out():
            self._put_away(file)

    def _taken_out(self):
        try:
            return [self._file.pop()]
        except IndexError:
            return []

    def _about(self, file):
        """None where the descriptor is not ours any more: the program may close all that there are, and gets the number for a file of its own. Asked right before each use; nothing can make the two one step."""
        try:
            about = os.fstat(file)
        except OSError:
            return None
        return about if (about.st_dev, about.st_ino) == self._is else None

    def _put_away(self, file):
        """Its number stays taken: another thread may be about to write there."""
        if self._about(file) is None:
            return
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, file, inheritable=False)
        os.close(nowhere)

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
        # Part of a name: of two threads the later one may be the first to write, and the log may end between them.
        number = next(self._numbers)
        self._write(f"alloc #a{number} {size} {pool} stack=s{stack} tensor={tensor} t={time.time_ns()}\n")
        return number

    def ended(self, number):
        self._write(f"free #a{number} t={time.time_ns()}\n")

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
            lines.append(f"tensor-note {f'#a{number} ' if number else ''}tensor={tensor} t={now}\n")
        lines.append(f"op-end {quoted(words)} failed stack=s{stack} t={now}\n")
        self._write("".join(lines))

    # --- stacks, for common.stacks.Stacks

    def frame(self, function, file, line):
        return f"{quoted(file)}:{line} {quoted(function)}"

    def stack(self, caller, place):
        number = next(self._stacks)
        self._write(f"stack s{number} = {f's{caller} > ' if caller else ''}{place}\n")
        return number

    def _write(self, text):
        try:
            file = self._file[0]
        except IndexError:
            return
        data = text.encode("utf-8", "replace")
        try:
            about = self._about(file)
            if about is None:
                return self._end("because the program closed its file")
            written = about.st_size
            if written - self._disk_seen >= _LOOK_AT_DISK:
                self._disk_seen = written
                if room_in(self._process.folder) < 2 * _LOOK_AT_DISK:
                    return self._end("because the rest of the disk is left to the program")
            if written + len(data) > _MOST_BYTES:
                return self._end(f"when the {_MOST_BYTES >> 20} MiB that it may take were full")
            if os.write(file, data) < len(data):
                os.ftruncate(file, written)  # never half a line
                return self._end("because the disk was full")
        except OSError as problem:
            self._end(f"because it could not be written ({problem})")

    def _end(self, why):
        """Nothing more is written but that."""
        for file in self._taken_out():
            last = f"property capture.recorded_until_ns = {time.time_ns()}\nproperty capture.ended_because = {quoted(why)}\n".encode()
            try:
                self._put_away(file)
                file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    about = self._about(file)
                    if about is not None and os.write(file, last) < len(last):
                        os.ftruncate(file, about.st_size)
                finally:
                    os.close(file)
            except OSError:
                pass
            self._process.note(f"the log of tensors ends before the program did, {why}")


def _new_file(process):
    """A program that replaced itself (exec) has the same number, and a second file, as it has a second trace."""
    for image in ("", *(f"-{number}" for number in range(2, 100))):
        path = os.path.join(process.folder, f"tensors-{process.pid}{image}.txt")
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
    raise FileExistsError(path)


def quoted(text):
    """As the text form wants a name."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(letter if letter >= " " else f"\\x{ord(letter):02x}" for letter in plain) + '"'
