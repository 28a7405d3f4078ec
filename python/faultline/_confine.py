"""Puts this process under the watch that keeps a dry run's changes to files aside, when it was not started under it: a function of a running program.

Descriptors and mappings that were open before still lead to the user's files; they are turned to the copies aside.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
import stat

_PR_SET_PTRACER, _PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_MAP_FIXED = 0x10

_c = ctypes.CDLL(None, use_errno=True)
_c.mmap.restype = ctypes.c_void_p
_c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class _Step(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step))]


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
    _turn_descriptors()
    _turn_mappings()


def _turn_descriptors() -> None:
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            flags = fcntl.fcntl(number, fcntl.F_GETFL)
            if flags & os.O_ACCMODE == os.O_RDONLY or not stat.S_ISREG(os.fstat(number).st_mode):
                continue
            if os.fstat(number).st_nlink == 0:
                continue  # without a name: nobody else has it
        except OSError:
            continue  # the listing's own, closed by now
        aside = os.open(os.readlink(f"/proc/self/fd/{name}"), flags & (os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK))
        os.lseek(aside, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(aside, number, inheritable=os.get_inheritable(number))
        os.close(aside)


def _turn_mappings() -> None:
    """Pages that are shared for writing, with a file or with another process, become this process's own."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        lines = maps.read().splitlines()
    for line in lines:
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) (.)w(.)s \S+ \S+ \d+ *(.*)$", line)
        if not found or (found[5].startswith("/dev/") and not found[5].startswith(("/dev/shm/", "/dev/zero"))):
            continue
        begin, size = int(found[1], 16), int(found[2], 16) - int(found[1], 16)
        protection = (
            mmap.PROT_WRITE | (mmap.PROT_READ if found[3] == "r" else 0) | (mmap.PROT_EXEC if found[4] == "x" else 0)
        )
        content = ctypes.string_at(begin, size) if found[3] == "r" else b""
        _c.mmap(begin, size, protection, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, 0)
        ctypes.memmove(begin, content, len(content))
