"""The environment that the program sees: its user's.

The verb starts Python with variables of its own: the folder by which the dry run gets in, a limit for the host's allocator, no GPU for the real driver. They stay in the process's environment
of C, for the driver and for processes that the program starts; os.environ shows the user's, and so do theirs. What the user had is beside it, behind "=", or "" where there was none.
"""

from __future__ import annotations

import os
import re
import sys

_KEPT = "FAULTLINE_USER_"
_NAMES = (b"PYTHONPATH", b"MALLOC_MMAP_THRESHOLD_", b"CUDA_VISIBLE_DEVICES")
_VERBS = {b"MALLOC_MMAP_THRESHOLD_": b"65536", b"CUDA_VISIBLE_DEVICES": b"-1,-1"}  # as plan_run.cpp sets them
_FOLDER = b"/faultline/_inject"
_hidden: dict[bytes, bytes] = {}  # what os.environ does not show, by the name


def show_users() -> None:
    """Before the program's first line."""
    shown = os.environ._data
    if any(os.fsencode(_KEPT) + name not in shown for name in _NAMES):
        return  # not started by the verb
    path = shown.get(b"PYTHONPATH", b"").split(b":")
    ours = next((entry for entry in path if entry.endswith(_FOLDER)), b"")
    _hidden.update({b"PYTHONPATH": ours, **_VERBS})
    _hidden[b"FAULTLINE_PLAN"] = shown.get(b"FAULTLINE_PLAN", b"")
    for name in _NAMES:
        users = shown.pop(os.fsencode(_KEPT) + name)
        now = shown.pop(name, None)
        if name == b"PYTHONPATH":
            rest = b":".join(entry for entry in path if entry != ours)
            users = b"=" + rest if rest else users and b"="
        elif now != _VERBS[name]:  # a script or `env` between the verb and this process has set it, or taken it away
            users = b"" if now is None else b"=" + now
        if users:
            shown[name] = users[1:]
    _keep_hidden()
    for name in _NAMES:
        if name in shown:
            os.putenv(name, shown[name])
        else:
            os.unsetenv(name)


def _value(name: bytes, users: bytes | None) -> bytes:
    """Of a variable for a process of C, where the user has that."""
    return _hidden[name] + b":" + users if name == b"PYTHONPATH" and users else _hidden[name]


def _amended(environment) -> dict:
    """For a process that the program starts with this environment."""
    given = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    made = dict(given)
    for name in _hidden:
        made[name] = _value(name, given.get(name))
    for name in _NAMES:
        made[os.fsencode(_KEPT) + name] = b"=" + given[name] if name in given else b""
    return made


def _keep_hidden() -> None:
    """Whatever the program sets, and whatever it hands to processes of its own."""
    import _posixsubprocess

    put, unset, execute = os.putenv, os.unsetenv, os.execve
    fork_exec = _posixsubprocess.fork_exec

    def putenv(name, value):
        key = os.fsencode(name)
        if key not in _hidden:
            return put(name, value)
        put(name, _value(key, os.fsencode(value)))
        put(os.fsencode(_KEPT) + key, b"=" + os.fsencode(value))

    def unsetenv(name):
        key = os.fsencode(name)
        if key not in _hidden:
            return unset(name)
        put(name, _hidden[key])
        put(os.fsencode(_KEPT) + key, b"")

    def execve(path, arguments, environment):
        return execute(path, arguments, _amended(environment))

    def faultline(*args):
        if len(args) > 5 and args[5] is not None:
            given = dict(entry.split(b"=", 1) for entry in args[5] if b"=" in entry)
            args = (*args[:5], [name + b"=" + value for name, value in _amended(given).items()], *args[6:])
        return fork_exec(*args)

    os.putenv, os.unsetenv, os.execve = putenv, unsetenv, execve
    for name in ("posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            setattr(os, name, _with_environment(getattr(os, name)))
    _posixsubprocess.fork_exec = faultline
    if hasattr(sys.modules.get("subprocess"), "_fork_exec"):
        sys.modules["subprocess"]._fork_exec = faultline


def _with_environment(original):
    def spawn(path, arguments, environment, **more):
        return original(path, arguments, _amended(environment), **more)

    return spawn


def hides_gpus() -> str | None:
    """The variable's value where CUDA would show the program no GPU."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None or re.match(r"\s*\+?\d|GPU-|MIG-", value):
        return None
    return value
