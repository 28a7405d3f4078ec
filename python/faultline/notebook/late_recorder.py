"""The recorder in a kernel that runs already: a library with the name of the CUDA driver's, loaded before CUDA is.

`faultline run` holds the recording as it does for a program of its own; the program that it is given only tells its environment and waits for this process to end or to let go.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import select
import signal
import subprocess
import sys
import time

from .._program import find_binary

_KEEP = "512MiB"
_TELL_AND_WAIT = "env -0 | tr '\\n\\0' ' \\n' | grep ^FAULTLINE_; echo; exec cat >/dev/null"
# What was recorded is left where a cell was running when the kernel ended; the next %load_ext tells of it.
_THEN_CLEAN = 'folder=$1 kernel=$2; shift 2; "$@"; [ -e "/proc/$kernel/exe" ] || [ -e "$folder/cell.json" ] || rm -rf -- "$folder"'
_PASSED_ON = ("FAULTLINE_ROOM", "FAULTLINE_DRIVER", "FAULTLINE_RUN_FOLDER")
_END_S = 0.5
_BETWEEN_S = 0.3  # the parts of one look of `run` are written closer together than that, two looks are not
_WRITTEN_WITHIN_S = 5.0
_COARSE_CLOCK_S = 0.01  # of file systems


class LateRecorder:
    def __init__(self):
        self.folder = ""  # of the recording
        self._keeper = self._library = None
        self._marked = 0.0  # when: the last that was recorded
        self.why_not = "it was not started"

    @property
    def is_on(self) -> bool:
        return self._library is not None and self._keeper is not None and self._keeper.poll() is None

    def start(self, folder: str, gpu: str = "") -> bool:
        """False where it cannot be, with the reason in why_not. Nothing is asked of the GPU."""
        if self._library is not None:
            self.why_not = "the recording of this kernel has ended; restart the kernel for another"
            return False
        if _driver_is_loaded():
            self.why_not = "CUDA's driver is in this kernel already, so its calls cannot be recorded any more; restart the kernel and load Faultline before anything uses the GPU"
            return False
        try:
            told = self._start_keeper(folder, gpu)
            if "FAULTLINE_RUN_FOLDER" not in told:
                raise OSError("faultline run does not record here")
            if "FAULTLINE_DRIVER" not in told or "FAULTLINE_ROOM" not in told:
                self.stop()
                self.why_not = "there is no CUDA driver on this machine"
                return False
            self._load(told)
        except Exception as problem:
            self.stop()
            self.why_not = f"the recorder could not be loaded ({type(problem).__name__}: {problem})"
            return False
        return True

    def _start_keeper(self, folder, gpu):
        self.folder = os.path.join(folder, "run")
        recording = [find_binary(), "run", *(["--gpu", gpu] if gpu else []), "--keep", _KEEP, "--history", "off"]
        recording += ["-o", self.folder, "--", "/bin/sh", "-c", _TELL_AND_WAIT]
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _THEN_CLEAN, "faultline", folder, str(os.getpid()), *recording],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the kernel is not for it
        )
        lines, until = b"", time.monotonic() + 10
        while not (lines.endswith(b"\n\n") or lines == b"\n"):
            ready, _, _ = select.select([self._keeper.stdout], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._keeper.stdout.fileno(), 65536) if ready else b""
            if not part:
                raise OSError("the recorder's keeper did not answer")
            lines += part
        pairs = (line.partition("=") for line in os.fsdecode(lines).splitlines())
        return {name: value for name, _, value in pairs if name}

    def _load(self, told):
        before = {name: os.environ.get(name) for name in _PASSED_ON}
        try:
            os.environ.update({name: told[name] for name in (*_PASSED_ON, "FAULTLINE_VGPU") if name in told})
            library = ctypes.PyDLL(told["FAULTLINE_CAPTURE_LIBRARY"])
            number = ctypes.c_int()
            library.cuDriverGetVersion(ctypes.byref(number))  # opens the driver; CUDA does not begin with it
            for mark in (library.faultline_mark_begin, library.faultline_mark_end):
                mark.argtypes, mark.restype = (ctypes.c_char_p,), None
            library.faultline_mark_begin(b"notebook")
            library.faultline_mark_end(b"notebook")
            self._library = library
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def mark(self, name: str, begins: bool) -> None:
        if self._library is not None:
            mark = self._library.faultline_mark_begin if begins else self._library.faultline_mark_end
            mark(name.encode())
            self._marked = time.time()

    def wait_until_written(self) -> None:
        """`run` writes all that is there twice a second, a busy machine later. What it writes at the moment of the last mark may be of before it, the next is not."""
        until, first = time.monotonic() + _WRITTEN_WITHIN_S, None
        while self.is_on and time.monotonic() < until:
            time.sleep(0.05)
            written = self._last_written()
            if first is None and written >= self._marked - _COARSE_CLOCK_S:
                first = written
            if first is not None and written >= first + _BETWEEN_S:
                return

    def _last_written(self) -> float:
        paths = glob.glob(os.path.join(glob.escape(self.folder), "process-*.faultline"))
        with contextlib.suppress(OSError):
            return max((os.stat(path).st_mtime for path in paths), default=0.0)
        return 0.0

    def stop(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        for pipe in (keeper.stdin, keeper.stdout):
            pipe.close()
        try:
            keeper.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:  # it makes a report that nobody will read
            with contextlib.suppress(ProcessLookupError):
                os.killpg(keeper.pid, signal.SIGKILL)
            keeper.wait()


def _driver_is_loaded() -> bool:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            if any("/libcuda.so" in line for line in maps):
                return True
    except OSError:
        pass
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()
