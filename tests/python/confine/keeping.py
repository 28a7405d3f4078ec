"""`faultline keep-aside` around a program, and a folder whose every byte is compared."""

import json
import os
import subprocess
import sys
import textwrap


class Confined:
    def __init__(self, binary, own):
        self._binary, self._own = binary, own
        own.mkdir()

    def command(self, *arguments, options=()):
        return [
            self._binary,
            "keep-aside",
            "--aside",
            str(self._own / "aside"),
            "--own-folder",
            str(self._own),
            "--effects",
            str(self._own / "effects.json"),
            *options,
            "--",
            *map(str, arguments),
        ]

    def run(self, cwd, *arguments, options=(), **more):
        return subprocess.run(
            self.command(*arguments, options=options),
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=600,
            **{"stdin": subprocess.DEVNULL, **more},
        )

    def python(self, cwd, program, *arguments, **more):
        return self.run(cwd, sys.executable, "-c", textwrap.dedent(program), *arguments, **more)

    def effects(self):
        return json.loads((self._own / "effects.json").read_text())


def everything(folder):
    """Names, kinds, modes, times and content of all that is below."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, status.st_nlink, content)
    return found


def make_home(folder):
    (folder / "e" / "h").mkdir(parents=True)
    for name, text in (("a", "one\n"), ("b", "bbb\n"), ("e/f", "f\n"), ("e/h/i", "i\n")):
        (folder / name).write_text(text)
    for name, target in (("link", "a"), ("dangling", "nowhere"), ("to_folder", "e")):
        (folder / name).symlink_to(target)
    (folder / "b").chmod(0o640)
    return folder
