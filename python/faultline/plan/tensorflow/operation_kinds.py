"""Kinds of operations that several files tell apart, each listed once."""

from __future__ import annotations

# The attributes that name the functions which an operation runs.
CALLS = {"PartitionedCall": "f", "StatefulPartitionedCall": "f"}
BRANCHES = {"If": ("then_branch", "else_branch"), "StatelessIf": ("then_branch", "else_branch")}
CASES = ("Case", "StatelessCase")
LOOPS = {"While": "body", "StatelessWhile": "body"}
REDUCES = ("ReduceDataset",)
OF_FUNCTIONS = frozenset((*CALLS, *BRANCHES, *CASES, *LOOPS, *REDUCES))

NEXT = ("IteratorGetNext", "IteratorGetNextSync")
NEXT_IF_ANY = "IteratorGetNextAsOptional"
ITERATES = (*NEXT, NEXT_IF_ANY)

ASSIGNS = ("AssignVariableOp", "Assign")
ASSIGNS_MORE = ("AssignAddVariableOp", "AssignSubVariableOp")

MATRIX_PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum")
CONVOLUTIONS = ("Conv", "DepthwiseConv")  # their names begin so
