"""All remedies of all frameworks, one row each: what may be done with it. src/plan reads these traits with what a run offers, and decides nothing by a name.

How a remedy is found to apply, what its edit of the source is, and how a run makes the change where there is no edit, is in the remedies of its framework (torch/remedies, jax/remedies,
tensorflow/remedies), which name the row.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

TORCH, JAX, TENSORFLOW = "torch", "jax", "tensorflow"
_NOT_TOLD = ("title", "frameworks", "same_results")  # of a row, for its page and for choosing it


@dataclass(frozen=True)
class Row:
    name: str
    title: str  # as docs/plan-remedies.md lists it
    frameworks: tuple
    cost: int  # how much it asks of the user; the least is tried first
    same_results: bool  # what the program computes stays the same, but for rounding
    excludes: tuple = ()  # names of rows that it does not go with
    wants: str = ""  # one that it needs beside it
    beside: str = ""  # of a number: one that a run makes beside it
    number: str = ""  # it is a smaller number of the program: batch, length
    cost_step: int = 0  # of a number, for each value after the first
    answers: bool = False  # where it is enough, nothing else is looked for
    is_searched: bool = False  # its best value is searched for: it is not tried alone
    computes_another: bool = False  # the program then computes something else: it is tried last
    wants_more_gpus: bool = False  # than the program has
    tells: bool = False  # what a run made of it is told with it

    def traits(self, framework: str) -> dict:
        """Of an offer, by its keys."""
        beside = self.beside if self.beside and framework in TABLE[self.beside].frameworks else ""
        told = {key: value for key, value in asdict(self).items() if key not in _NOT_TOLD}
        return {**told, "excludes": list(self.excludes), "beside": beside}


TABLE = {
    row.name: row
    for row in (
        Row("no_grad", "`torch.no_grad()`", (TORCH,), 10, True, answers=True),
        Row("set_to_none", "`zero_grad(set_to_none=True)`", (TORCH,), 10, True),
        Row("contiguous", "contiguous q, k, v", (TORCH,), 12, True),
        Row("foreach", "`foreach=False`", (TORCH,), 15, True, excludes=("states",)),
        Row("kv_cache", "the KV cache in 16 bits", (TORCH,), 15, False),
        Row(
            "batch",
            "a smaller batch",
            (TORCH, JAX, TENSORFLOW),
            30,
            True,
            beside="accumulate",
            number="batch",
            cost_step=1,
            is_searched=True,
        ),
        Row("accumulate", "gradient accumulation", (TORCH,), 30, True),
        Row("autocast", "autocast", (TORCH,), 40, False, excludes=("half",)),
        Row("mixed_precision", "mixed precision of Keras", (TENSORFLOW,), 40, False),
        Row("checkpoint", "checkpointing", (TORCH,), 50, True, tells=True),
        Row("states", "states in 8 bits, or paged, or on the CPU", (TORCH,), 60, False, excludes=("foreach", "fsdp")),
        Row("half", "weights in 16 bits", (TORCH,), 20, False, excludes=("autocast",)),
        Row(
            "sequence",
            "shorter sequences",
            (TORCH,),
            110,
            False,
            number="length",
            cost_step=10,
            computes_another=True,
        ),
        Row("lora", "LoRA of rank 16", (TORCH,), 140, False, excludes=("fsdp",)),
        Row(
            "fsdp",
            "FSDP over 2, 4 or 8 GPUs",
            (TORCH,),
            160,
            True,
            excludes=("states", "lora", "foreach"),
            wants_more_gpus=True,
        ),
        Row("donate", "donated arguments", (JAX,), 1, True),
        Row("arguments", "arrays as arguments", (JAX,), 1, True),
        Row("map", "`vmap` in groups", (JAX,), 2, True),
        Row("recompute", "`jax.checkpoint`", (JAX,), 2, True),
        Row("remat", "`jax.checkpoint` in scans", (JAX,), 2, True),
    )
}


def numbers_of(framework: str) -> list[dict]:
    """Of remedies that are another number: their traits, wherever the number stands."""
    return [row.traits(framework) for row in TABLE.values() if row.number and framework in row.frameworks]
