"""What is known of this process, in <folder>/process-<pid>.json, and notes for the report, in <folder>/notes-<pid>.txt.

The JSON is written when a framework is ready and again at an exception and at the exit, each time whole under another name first, so that a
killed process leaves the last complete one. Trouble with the folder never reaches the program.
"""

import _thread
import json
import os
import sys

from .._file_owner import is_library, is_own
from .._private import private
from . import FRAMEWORKS

_MOST_FRAMES = 200
_MOST_TEXT = 20000
MOST_WORDS = 1 << 18  # of tracebacks


class Process:
    def __init__(self, folder, start_ns):
        self.folder = folder
        self.after_fork(start_ns)

    def after_fork(self, start_ns):
        """In a child: a process of its own, of which nothing is known yet."""
        self.pid = os.getpid()
        self._known = {
            "schema": "faultline.process/1",
            "pid": self.pid,
            "parent_pid": os.getppid(),
            "start_ns": start_ns,
            "executable": sys.executable,
            "argv": list(getattr(sys, "orig_argv", None) or getattr(sys, "argv", [])),
            "working_directory": _working_directory(),
            "python": sys.version.split()[0],
            "frameworks": {},
            "torch": None,
            "exception": None,
            "other_exceptions": [],
            "end_ns": None,
            "exit_status": None,
        }
        self._noted = set()

    def know(self, **facts):
        self._known.update(facts)

    def knows(self, name):
        return self._known[name]

    def write(self):
        text = json.dumps(self._known, ensure_ascii=True, default=str, indent=1)
        self.save(f"process-{self.pid}.json", lambda file: file.write(text.encode()))

    def save(self, name, write, may_be_large=False):
        """The whole file or none of it. False, with a note, if it could not be written. What may be large leaves the program its part of the disk."""
        path = os.path.join(self.folder, name)
        part = f"{path}.{_thread.get_ident()}.part"
        try:
            with open(part, "wb", opener=private) as file:
                write(_Limited(file, room_in(self.folder)) if may_be_large else file)
            os.replace(part, path)
            return True
        except Exception as problem:
            try:
                os.unlink(part)
            except OSError:
                pass
            self.note(f"{name} could not be written ({type(problem).__name__}: {problem})")
            return False

    def note(self, text):
        """One sentence for the report, told once."""
        if text in self._noted:
            return
        self._noted.add(text)
        try:
            file = os.open(
                os.path.join(self.folder, f"notes-{self.pid}.txt"),
                os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
                0o600,
            )
            try:
                os.write(file, (text.replace("\n", " ") + "\n").encode("utf-8", "replace"))
            finally:
                os.close(file)
        except OSError:
            pass  # the folder is gone: there is nowhere left to say it


def room_in(folder):
    """How much may be written there: a twentieth of the disk, at most 2 GiB, is left to the program, as the keeper of traces does."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize - min(2 << 30, disk.f_blocks * disk.f_frsize // 20)


class _Limited:
    """A file that takes so many bytes and no more."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, data):
        self._room -= len(data)
        if self._room < 0:
            raise OSError("the rest of the disk is left to the program")
        return self._file.write(data)


_COMPILED = (".pyx", ".pxd", ".pxi")  # Cython names its own sources, by paths that lead nowhere


def describe(problem, traceback, thread, kind):
    """An exception as JSON. Frames are innermost first; `at` is the innermost one of the program's own files."""
    frames, frameworks = [], tuple(_framework_folders())
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_own(code.co_filename):
            frames.append(
                {
                    "file": code.co_filename,
                    "line": traceback.tb_lineno,
                    "function": getattr(code, "co_qualname", code.co_name),
                    "own": not is_library(code.co_filename)
                    and not code.co_filename.startswith(frameworks)
                    and not code.co_filename.endswith(_COMPILED),
                }
            )
        traceback = traceback.tb_next
    frames.reverse()
    name = type(problem).__qualname__
    module = type(problem).__module__
    return {
        "type": name if module == "builtins" else f"{module}.{name}",
        "message": _text(problem),
        "kind": kind,
        "thread": thread,
        "at": next((f for f in frames if f["own"]), frames[0] if frames else None),
        "frames": frames[:_MOST_FRAMES],
        "frames_left_out": max(0, len(frames) - _MOST_FRAMES),
    }


def words_of(problem, traceback):
    """The exception as Python prints it, without lines of source, which a file that was changed meanwhile would get wrong."""
    import traceback as printing

    try:
        told = printing.TracebackException(type(problem), problem, traceback, limit=-_MOST_FRAMES, lookup_lines=False)
        return "".join(told.format())[-MOST_WORDS:]
    except Exception:  # of a text that the program makes itself
        return ""


def _framework_folders():
    """A framework may have been built where it lies, outside of any folder for installed packages."""
    for name in FRAMEWORKS:
        for path in list(getattr(sys.modules.get(name), "__path__", None) or ()):
            yield os.path.join(path, "")


def _text(problem):
    try:
        return str(problem)[:_MOST_TEXT]
    except Exception:
        return ""


def _working_directory():
    try:
        return os.getcwd()
    except OSError:
        return ""
