"""Runs one program in a process of its own, and tells how long it took and how much memory it held at most."""

import os
import signal
import statistics
import subprocess
import threading
import time


class Measurement:
    """Repeated runs of one command. `trouble` says why there is no number. `says_own`: it prints its own wall and CPU seconds."""

    def __init__(self, label, command, accepted=(0,), says_own=False, trouble=None):
        self.label, self.command, self.accepted, self.says_own, self.trouble = (
            label,
            command,
            accepted,
            says_own,
            trouble,
        )
        self.seconds, self.cpu_seconds, self.peak_bytes = [], [], 0

    def run(self, timeout_s):
        if self.trouble:
            return
        start = time.perf_counter()
        process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE if self.says_own else subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        expired = []

        def stop():  # not process.kill: that would also look for the exit status, which is wait4's to collect
            expired.append(True)
            os.kill(process.pid, signal.SIGKILL)

        late = threading.Timer(timeout_s, stop)
        late.start()
        said = []
        readers = [
            threading.Thread(target=lambda pipe=pipe: said.append((pipe, pipe.read())))
            for pipe in (process.stdout, process.stderr)
            if pipe
        ]
        for reader in readers:
            reader.start()
        _, status, usage = os.wait4(process.pid, 0)
        elapsed_s = time.perf_counter() - start
        late.cancel()
        for reader in readers:
            reader.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        said = dict(said)
        if expired:
            self.trouble = "not done after %d s" % timeout_s
        elif process.returncode not in self.accepted:
            lines = said[process.stderr].decode(errors="replace").strip().splitlines()
            ending = (
                "signal %d" % -process.returncode if process.returncode < 0 else "exit status %d" % process.returncode
            )
            self.trouble = ending + (": " + lines[-1] if lines else "")
        else:
            own = (
                [float(word) for word in said[process.stdout].split()]
                if self.says_own
                else [elapsed_s, usage.ru_utime + usage.ru_stime]
            )
            self.seconds.append(own[0])
            self.cpu_seconds.append(own[1])
            self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)

    @property
    def best_s(self):
        return min(self.seconds) if self.seconds and not self.trouble else None

    @property
    def median_s(self):
        return statistics.median(self.seconds) if self.seconds and not self.trouble else None
