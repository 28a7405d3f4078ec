"""A long random walk of file calls in the working folder, printing what each of them returned: random_file_calls.py SEED COUNT.

The same seed prints the same lines wherever it runs, so what a program sees under a watch can be compared with what it sees without.
"""

import errno
import os
import random
import shutil
import stat
import sys

NAMES = [
    "a",
    "b",
    "c",
    "d",
    "e/f",
    "e/g",
    "e/h/i",
    "e/h",
    "e",
    "k/l",
    "k",
    "link",
    "dangling",
    "to_folder",
    "to_folder/f",
    "e/../a",
    "k/../e/f",
    "./b",
    "missing/x",
    "a/x",
    "e/",
]


def kind(mode):
    return (
        "folder"
        if stat.S_ISDIR(mode)
        else "link"
        if stat.S_ISLNK(mode)
        else "file"
        if stat.S_ISREG(mode)
        else "fifo"
        if stat.S_ISFIFO(mode)
        else "other"
    )


def described(status):
    return kind(status.st_mode), oct(status.st_mode & 0o777), status.st_size if stat.S_ISREG(status.st_mode) else None


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, mode, text):
    with open(path, mode) as file:
        file.write(text)


def opened(path, flags):
    descriptor = os.open(path, flags, 0o640)
    try:
        found = os.fstat(descriptor)
        same = os.path.samestat(found, os.stat(path))
        return described(found), same
    finally:
        os.close(descriptor)


def through_folder(path, call):
    """By a descriptor of the folder it is in."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        return call(os.path.basename(path), folder)
    finally:
        os.close(folder)


def inside(path, call):
    before = os.getcwd()
    os.chdir(path)
    try:
        return os.path.relpath(os.getcwd(), before), call()
    finally:
        os.chdir(before)


def listing(path="."):
    return sorted((entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in os.scandir(path))


def lies_in(path, folder):
    return (os.path.realpath(path) + "/").startswith(os.path.realpath(folder) + "/")


def everything():
    lines = []
    for folder, folders, files in os.walk("."):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            found = os.lstat(path)
            content = (
                read(path)
                if stat.S_ISREG(found.st_mode)
                else os.readlink(path)
                if stat.S_ISLNK(found.st_mode)
                else None
            )
            lines.append((path, described(found), content))
    return lines


def calls(rng):
    one, other = rng.choice(NAMES), rng.choice(NAMES)
    text = rng.choice([b"one", b"another text", b""])
    return (
        one,
        other,
        [
            ("read", lambda: read(one)),
            ("write", lambda: write(one, "wb", text)),
            ("append", lambda: write(one, "ab", text)),
            ("change", lambda: write(one, "r+b", text)),
            ("new", lambda: write(one, "xb", text)),
            ("remove", lambda: os.remove(one)),
            ("rmdir", lambda: os.rmdir(one)),
            ("mkdir", lambda: os.mkdir(one, 0o750)),
            ("makedirs", lambda: os.makedirs(one, exist_ok=True)),
            ("rename", lambda: os.rename(one, other)),
            ("replace", lambda: os.replace(one, other)),
            ("symlink", lambda: os.symlink(rng.choice(["a", "e", "../a", "nowhere"]), one)),
            ("readlink", lambda: os.readlink(one)),
            ("link", lambda: os.link(one, other)),
            ("stat", lambda: described(os.stat(one))),
            ("lstat", lambda: described(os.lstat(one))),
            ("list", lambda: listing(one)),
            ("truncate", lambda: os.truncate(one, 2)),
            ("chmod", lambda: os.chmod(one, rng.choice([0o600, 0o644, 0o755]))),
            ("access", lambda: os.access(one, os.R_OK)),
            ("exists", lambda: (os.path.exists(one), os.path.islink(one))),
            ("copy", lambda: shutil.copyfile(one, other) and None),
            ("copytree", lambda: None if lies_in(other, one) else shutil.copytree(one, other, symlinks=True) and None),
            ("rmtree", lambda: shutil.rmtree(one)),
            ("move", lambda: shutil.move(one, other) and None),
            (
                "open",
                lambda: opened(
                    one, rng.choice([os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_RDONLY | os.O_NOFOLLOW])
                ),
            ),
            ("utime", lambda: os.utime(one, (5, 7)) or os.stat(one).st_mtime),
            ("realpath", lambda: os.path.relpath(os.path.realpath(one))),
            (
                "read there",
                lambda: through_folder(
                    one,
                    lambda name, folder: (
                        os.stat(name, dir_fd=folder, follow_symlinks=False).st_size if not os.path.isdir(one) else None
                    ),
                ),
            ),
            ("unlink there", lambda: through_folder(one, lambda name, folder: os.unlink(name, dir_fd=folder))),
            ("list there", lambda: through_folder(one, lambda _, folder: sorted(os.listdir(folder)))),
            ("mkdir there", lambda: through_folder(one, lambda name, folder: os.mkdir(name, dir_fd=folder))),
            ("go", lambda: inside(one, lambda: listing("."))),
            ("write inside", lambda: inside(one, lambda: write("w", "wb", text))),
            ("remove above", lambda: inside(one, lambda: os.remove("../a"))),
        ],
    )


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(seed)
    for number in range(count):
        one, other, choices = calls(rng)
        name, call = rng.choice(choices)
        try:
            result = call()
        except shutil.Error as problem:
            result = "shutil.Error", len(problem.args)
        except OSError as problem:
            result = type(problem).__name__, errno.errorcode.get(problem.errno)
        print(number, name, one, other, result)
        if number % 10 == 9:
            print(listing())
    for line in everything():
        print(*line)


main()
