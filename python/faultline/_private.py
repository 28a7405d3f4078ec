"""Files of a run's folder: they hold command lines and parts of the program's memory, so they are for their owner alone."""

import os


def private(path, flags):
    """For open(..., opener=private)."""
    return os.open(path, flags, 0o600)
