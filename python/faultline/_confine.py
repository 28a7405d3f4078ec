"""Puts this process under the watch that keeps a dry run's changes to files aside, when it was not started under it: a function of a running program.

What was open before is shared with the process that this one was forked from. Files open for writing are turned to the copies aside, those open for reading are
opened anew, so that the place in each is this process's own, and memory that is shared is copied.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import re
import signal
import stat
import tempfile

_PR_SET_PDEATHSIG, _PR_SET_PTRACER, _PR_SET_PTRACER_ANY = 1, 0x59616D61, ctypes.c_ulong(-1)
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_SYS_KCMP, _KCMP_FILE = 312, 0
_MAP_FIXED = 0x10
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_SYNC
_IN_MEMORY = 64 << 20  # a copy of a file without a name, up to here
_LARGE = 1 << 30
_PIECE = 1 << 20

# Descriptors through which Faultline itself hears from the copy of this process: they stay shared with it.
heard_through: set[int] = set()

_c = ctypes.CDLL(None, use_errno=True)
_c.mmap.restype = ctypes.c_void_p
_c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class _Step(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step))]


def end_with(parent: int) -> None:
    """This process ends when its parent does: nobody waits for what it finds."""
    _c.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(3)


def allow_watching() -> None:
    """Some systems let only a parent watch a process."""
    _c.prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)


def confine(filter_steps: list) -> None:
    """To be called once somebody watches, with no other thread running."""
    steps = (_Step * len(filter_steps))(*(_Step(*step) for step in filter_steps))
    program = _Filter(len(filter_steps), steps)
    for call in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if _c.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "this process could not be confined")
    copies = _Copies()
    _turn_descriptors(copies)
    _turn_mappings(copies)
    copies.close()


class _Copies:
    """Of files and shared memory, by the device and the number of what they are copies of. Each is open for reading and writing."""

    def __init__(self):
        self._files: dict[tuple[int, int], int] = {}
        self._grown: set[tuple[int, int]] = set()

    def get(self, key) -> int | None:
        return self._files.get(key)

    def of_name(self, path: str, key) -> int | None:
        """The copy aside of a file that still has this name: the watch makes it."""
        if key not in self._files:
            try:
                file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as problem:
                if problem.errno == errno.ENOSPC:
                    raise
                return None
            if _key(os.fstat(file)) != key:  # another has the name by now
                os.close(file)
                return None
            self._files[key] = file
        return self._files[key]

    def of_content(self, source: int, key) -> int:
        """A copy without a name, of what this descriptor can read."""
        if key not in self._files:
            size = os.fstat(source).st_size
            self._files[key] = _without_name(size)
            _copy(source, self._files[key], size)
        return self._files[key]

    def of_memory(self, key, begin: int, size: int, offset: int) -> int:
        """For memory that no descriptor leads to: each mapping of it adds the part that it shows."""
        if key not in self._files:
            self._files[key] = _without_name(offset + size)
            self._grown.add(key)
        file = self._files[key]
        if os.fstat(file).st_size < offset + size:
            os.ftruncate(file, offset + size)
        for at in range(0, size, _PIECE):
            content = ctypes.string_at(begin + at, min(_PIECE, size - at))
            if content.strip(b"\0"):  # a hole is zeros
                _write_all(file, content, offset + at)
        return file

    def is_grown(self, key) -> bool:
        return key in self._grown

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _without_name(size: int) -> int:
    if size > _IN_MEMORY:
        with contextlib.suppress(OSError):
            return os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    return os.memfd_create("faultline-copy")


def _copy(source: int, target: int, size: int) -> None:
    """Holes stay holes."""
    os.ftruncate(target, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = os.lseek(source, at, os.SEEK_HOLE)
        except OSError:  # nothing more, or a file system that does not tell
            if at:
                return
            end = size
        while at < end:
            piece = os.pread(source, min(end - at, _PIECE), at)
            if not piece:
                return
            at += os.pwrite(target, piece, at)


class _Open:
    """A descriptor as it was."""

    def __init__(self, number: int):
        self.number = number
        self.flags = fcntl.fcntl(number, fcntl.F_GETFL)
        self.status = os.fstat(number)
        self.key = _key(self.status)
        self.link = os.readlink(f"/proc/self/fd/{number}")

    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode) and not self.flags & os.O_PATH and not self._is_kernels()

    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode) and not self.flags & os.O_PATH and not self._is_kernels()

    def writes(self) -> bool:
        return self.flags & os.O_ACCMODE != os.O_RDONLY

    def _is_kernels(self) -> bool:
        return self.link.startswith(("/proc/", "/sys/"))

    def is_same(self, other: _Open) -> bool:
        """One opening, of which there are two descriptors."""
        process = os.getpid()
        return (
            self.key == other.key
            and _c.syscall(_SYS_KCMP, process, process, _KCMP_FILE, self.number, other.number) == 0
        )

    def become(self, other: int) -> None:
        os.dup2(other, self.number, inheritable=os.get_inheritable(self.number))


def _all_open() -> list[_Open]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own, closed by now
            found.append(_Open(int(name)))
    return found


def _turn_descriptors(copies: _Copies) -> None:
    alike: list[list[_Open]] = []
    for one in _all_open():
        if one.number in heard_through:
            continue
        twins = next((twins for twins in alike if one.is_same(twins[0])), None)
        if twins is None:
            alike.append([one])
        else:
            twins.append(one)
    # Those that write come first: who only reads the same file is to find the same copy.
    for twins in sorted(alike, key=lambda twins: not twins[0].writes()):
        anew = _opened_anew(twins[0], copies)
        if anew is None:
            continue
        with contextlib.suppress(OSError):  # a folder's place means nothing in another
            os.lseek(anew, os.lseek(twins[0].number, 0, os.SEEK_CUR), os.SEEK_SET)
        for one in twins:
            one.become(anew)
        os.close(anew)


def _opened_anew(one: _Open, copies: _Copies) -> int | None:
    """None: it has no place of its own, or cannot be written through."""
    flags = one.flags & _KEPT_FLAGS | os.O_CLOEXEC
    again = f"/proc/self/fd/{one.number}"
    if one.is_folder():
        with contextlib.suppress(OSError):
            return os.open(again, flags | os.O_DIRECTORY)
        return None
    if not one.is_file():
        return None
    if not one.writes() and copies.get(one.key) is None:
        with contextlib.suppress(OSError):
            return os.open(again, flags)
    if one.writes() and copies.of_name(one.link, one.key) is not None:
        return os.open(one.link, flags)
    source = os.open(again, os.O_RDONLY | os.O_CLOEXEC) if one.flags & os.O_ACCMODE == os.O_WRONLY else one.number
    try:
        copy = copies.of_content(source, one.key)
    finally:
        if source != one.number:
            os.close(source)
    return os.open(f"/proc/self/fd/{copy}", flags)


_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (.)(.)(.)s ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$")


def _turn_mappings(copies: _Copies) -> None:
    """Pages that are shared with a file or with another process are shared with the copy, or are this process's own."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        lines = maps.read().splitlines()
    for line in lines:
        found = _MAPPING.match(line)
        if found and not (found[10].startswith("/dev/") and not found[10].startswith(("/dev/shm/", "/dev/zero"))):
            _turn_mapping(found, copies)


def _turn_mapping(found: re.Match, copies: _Copies) -> None:
    begin, size, offset = int(found[1], 16), int(found[2], 16) - int(found[1], 16), int(found[6], 16)
    key = os.makedev(int(found[7], 16), int(found[8], 16)), int(found[9])
    reads, writes, runs = found[3] == "r", found[4] == "w", found[5] == "x"
    file = copies.get(key)
    if file is None and not writes:
        return
    protection = reads * mmap.PROT_READ | writes * mmap.PROT_WRITE | runs * mmap.PROT_EXEC
    if file is None and _becomes_private(begin, size, protection, offset, found[10], key):
        return
    if file is None:
        file = copies.of_name(found[10], key)
    if reads and (file is None or copies.is_grown(key)):
        file = copies.of_memory(key, begin, size, offset)
    if file is not None and _c.mmap(begin, size, protection, mmap.MAP_SHARED | _MAP_FIXED, file, offset) == begin:
        return
    content = ctypes.string_at(begin, size) if reads else b""
    _c.mmap(begin, size, protection | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, 0)
    ctypes.memmove(begin, content, len(content))


def _becomes_private(begin: int, size: int, protection: int, offset: int, path: str, key) -> bool:
    """A large file that only a mapping leads to: what is written into the pages stays in this process."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(file)
        if _key(status) != key or status.st_size <= _LARGE:
            return False
        return _c.mmap(begin, size, protection, mmap.MAP_PRIVATE | _MAP_FIXED, file, offset) == begin
    finally:
        os.close(file)


def _write_all(file: int, content: bytes, at: int) -> None:
    with memoryview(content) as rest:
        done = 0
        while done < len(rest):
            done += os.pwrite(file, rest[done:], at + done)
