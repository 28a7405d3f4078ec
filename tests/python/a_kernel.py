"""A real kernel for tests: cells go in, what a notebook would show comes out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from common import ROOT


@dataclass
class Shown:
    number: int = 0
    status: str = ""
    text: str = ""  # what was printed and displayed
    err: str = ""
    html: str = ""
    result: str | None = None
    error: tuple | None = None  # (name, words, traceback)
    order: list = field(default_factory=list)


class Kernel:
    def __init__(self, folder, binary, **environment):
        from jupyter_client.manager import start_new_kernel

        for name in ("home", "tmp"):
            (folder / name).mkdir(exist_ok=True)
        self.tmp = folder / "tmp"
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "python"),
            "FAULTLINE": binary,
            "HOME": str(folder / "home"),
            "TMPDIR": str(self.tmp),
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        }
        self._manager, self._client = start_new_kernel(kernel_name="python3", env=self._environment, cwd=str(folder))

    def run(self, code: str, timeout: int = 100) -> Shown:
        shown = Shown()

        def take(message):
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                shown.text += content["text"]
            elif kind == "stream":
                shown.err += content["text"]
            elif kind in ("display_data", "execute_result"):
                shown.html += content["data"].get("text/html", "")
                if kind == "display_data":
                    shown.text += content["data"].get("text/plain", "") + "\n"
                else:
                    shown.result = content["data"].get("text/plain")
            elif kind == "error":
                shown.error = (content["ename"], content["evalue"], "\n".join(content["traceback"]))
            if kind in ("display_data", "execute_result", "stream", "error"):
                shown.order.append(kind)

        reply = self._client.execute_interactive(code, timeout=timeout, output_hook=take)
        shown.status, shown.number = reply["content"]["status"], reply["content"].get("execution_count", 0)
        return shown

    def start_and_lose(self, code: str) -> None:
        """A cell in the midst of which the kernel dies; then another kernel."""
        self._client.execute(code)
        self._manager.provisioner.process.wait(timeout=600)
        self._client.stop_channels()
        self._manager.restart_kernel(now=True)
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=600)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel()
