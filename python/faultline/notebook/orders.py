"""What is written behind %faultline and %%faultline."""

from __future__ import annotations

import argparse
import shlex

BEGIN = "%%faultline"
USAGE = "%%faultline run, %%faultline plan --gpu T4 or %%faultline watch above a cell; %faultline, %faultline explain [FILE] or %faultline release in a line"


class Misused(ValueError):
    """What was written is not understood; says why, and what can be written."""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Misused(f"{self.prog}: {message}. {self.format_usage().strip()}")

    def exit(self, status=0, message=None):
        raise Misused(message or self.format_help())

    def print_help(self, file=None):
        raise Misused(self.format_help())


def _parser(verb):
    parser = _Parser(prog=f"{BEGIN} {verb}", allow_abbrev=False)
    parser.add_argument("--as", dest="name", metavar="NAME", help="also put the report into this variable")
    if verb == "run":
        parser.add_argument("--gpu", default="", metavar="GPU", help="virtual, or virtual:T4: a GPU that the CPU plays")
        parser.add_argument("--page", metavar="FILE", help="also write the HTML page of `faultline view` there")
    elif verb == "plan":
        parser.add_argument("--gpu", metavar="GPU", help="by name or memory: T4, 24GiB")
        parser.add_argument("--steps", type=int, metavar="N")
        parser.add_argument("--seconds", type=int, default=120, metavar="N")
        parser.add_argument("--real", action="store_true")
        parser.add_argument("--try", dest="try_changes", action="store_true", help="also try changes that may help")
        parser.add_argument("--allow-writes", action="store_true")
        parser.add_argument("--offline", action="store_true")
    return parser


def order_of(line: str) -> argparse.Namespace:
    """Of the words behind %%faultline. Raises Misused."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as problem:
        raise Misused(f"{BEGIN}: {problem}") from None
    if not words or words[0] not in ("run", "plan", "watch"):
        raise Misused(f"{'there is no ' + words[0] if words else 'there is no command'}: {USAGE}")
    order = _parser(words[0]).parse_args(words[1:])
    order.verb = words[0]
    if order.name is not None and not order.name.isidentifier():
        raise Misused(f"--as {order.name}: this is no name of a variable")
    if order.verb == "run" and order.gpu and not order.gpu.startswith("virtual"):
        raise Misused(f"run --gpu {order.gpu}: run uses the GPU that is there, or virtual; plan takes other GPUs")
    return order


def order_above(cell: str):
    """The order that stands above a cell which is run as it is (run, watch); None for every other cell, also where the order is not understood."""
    first = cell.lstrip("\n").partition("\n")[0]
    if first.split(maxsplit=1)[:1] != [BEGIN]:
        return None
    try:
        order = order_of(first.strip()[len(BEGIN) :])
    except Misused:
        return None
    return order if order.verb != "plan" else None


def without_order(lines: list) -> list:
    """For IPython: the line goes, and the cell is a cell as any other. The lines keep their numbers."""
    if not lines or order_above(lines[0]) is None:
        return lines
    rest = lines[1:]
    return rest if rest and rest[0].startswith("%%") else ["\n", *rest]
