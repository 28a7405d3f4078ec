"""Fused attention where strides alone keep PyTorch from it: q, k and v whose last dimension is not dense take the plain formula, with the whole matrix of scores."""

from __future__ import annotations

import ast

from ....common.stacks import user_line
from ...remedies.remedy import Offer, Remedy
from ...source.edits import Edit, Span, Statement, all_or_none, spans_edit

_MOST_PLACES = 16


class Contiguous(Remedy):
    name = "contiguous"

    def __init__(self, session, seen):
        super().__init__(session, seen)
        self._places: dict[str, str] = {}  # lines, each with the kernel that it would get
        self.makes_dense = False

    def refused(self, kernel: str) -> bool:
        """Attention takes the plain formula, and would take this kernel if its inputs were contiguous. Are they to be made so?"""
        if len(self._places) < _MOST_PLACES:
            self._places.setdefault(user_line() or "", kernel)
        if self.makes_dense:
            self.done("the inputs of scaled_dot_product_attention were made contiguous")
        return self.makes_dense

    def install(self) -> None:
        self.session.strided_attention = self.refused

    def offers(self):
        if not self._places:
            return
        named = ", ".join(place.rpartition("/")[2] for place in list(self._places)[:3])
        yield Offer(
            "true",
            "contiguous q, k, v",
            f"Give scaled_dot_product_attention contiguous tensors (q.contiguous(), k.contiguous(), v.contiguous(), {named}): "
            "the last dimension of what it is given is not dense, so that PyTorch refuses its fused kernels and makes the whole matrix of scores",
            keeps={"running": 0.2},
            edits=all_or_none([_contiguous(place) for place in self._places]),
        )

    def apply(self, value) -> None:
        self.makes_dense = True


def _contiguous(place: str) -> list[Edit]:
    """The call with .contiguous() behind its first three arguments, where all are names or the like."""
    statement = Statement(place)
    calls = [
        call
        for call in statement.calls()
        if "scaled_dot_product_attention" in (getattr(call.func, "attr", ""), getattr(call.func, "id", ""))
    ]
    if len(calls) != 1 or len(calls[0].args) < 3:
        return []
    first = calls[0].args[:3]
    if not all(isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) for argument in first):
        return []
    ends = [(argument.end_lineno, argument.end_col_offset) for argument in first]
    spans = [Span(line, column, line, column, ".contiguous()") for line, column in ends]
    return spans_edit(statement.file, statement.node.lineno, statement.node.end_lineno, spans)
