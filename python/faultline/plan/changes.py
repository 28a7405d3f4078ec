"""Changes to the program that a plan can try: the same script under autocast, with checkpointing, with another batch size."""
from __future__ import annotations


def install(session) -> None:
    """Applies the changes that the plan asked for; none by default."""
