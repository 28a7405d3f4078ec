"""The map of a pool at each request that it refused: <folder>/pool-<pid>_<pool>.<microseconds>.

TensorFlow and JAX write it themselves where TF_BFC_MEMORY_DUMP says so: nothing while all goes well. They write one for each refusal, so `run` keeps the first and the last few (src/process/pool_maps.h).
"""

import os

from .process import room_in

VARIABLE = "TF_BFC_MEMORY_DUMP"
_ROOM = 64 << 20


class PoolMaps:
    def __init__(self, process):
        self._process = process

    def arm(self):
        """Before the framework is imported: later another thread may be reading the environment."""
        folder = os.path.join(self._process.folder, "pool-")
        given = os.environ.get(VARIABLE)
        if given is not None and not given.startswith(folder):
            self._process.note(
                f"{VARIABLE} is set already, and is left as it is: maps of the pool go to {given}, and are not part of this recording"
            )
        elif room_in(self._process.folder) < _ROOM:
            os.environ.pop(VARIABLE, None)
            self._process.note("maps of the pool are not taken: the rest of the disk is left to the program")
        else:
            os.environ[VARIABLE] = f"{folder}{self._process.pid}"
