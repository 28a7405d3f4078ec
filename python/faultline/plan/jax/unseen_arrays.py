"""Arrays that are alive on the GPU and were made in a way that nobody followed.

JAX has more ways to make an array than can be known beforehand. Now and then, and at the end, all that JAX says is alive is compared with what is followed; what is missing is counted from there on.
"""

from __future__ import annotations

from ...common.holdings import Holding
from ..session.device import OutOfMemory

_LOOKS_AFTER = 64  # things done on the GPU
_TOLD_BYTES = 1 << 20  # less is not told with the verdict


class UnseenArrays:
    def __init__(self, session):
        self._session = session
        self._wait = _LOOKS_AFTER
        self._found_bytes = self._found = 0

    def tick(self) -> None:
        self._wait -= 1
        if self._wait <= 0:
            self.look()

    def look(self) -> None:
        """Raises JAX's error where there is no room for what is found."""
        session = self._session
        if session.devices.only_cpu or session.executions.inside or session.closed:
            return
        living = session.devices.living_arrays()
        self._wait = max(_LOOKS_AFTER, len(living) // 4)
        self.count([array for array in living if session.arrays.of(array) is None])

    def count(self, arrays) -> None:
        """Those of them that are on the GPU and are not followed."""
        session = self._session
        missed = [a for a in arrays if not a.is_deleted() and session.devices.is_planned(a.devices())]
        if not missed:
            return
        places = {a.unsafe_buffer_pointer(): f for f, a in session.arrays.alive() if not a.is_deleted()}
        for array in missed:
            place = array.unsafe_buffer_pointer()
            known = places.get(place)
            if known is not None and not known.ended and array.nbytes:
                session.arrays.follow(array, known.holding, known.is_stand_in)
                continue
            stack, size = session.here(), session.executions.size_of(array)
            tensor = session.device.tensor(tuple(array.shape), str(array.dtype), "found alive", session.line_name())
            self._found, self._found_bytes = self._found + 1, self._found_bytes + size
            try:
                session.arrays.follow(array, Holding(session.take(size, stack, tensor)))
            except OutOfMemory:
                raise session.out_of_memory(size) from None
            places[place] = session.arrays.of(array)

    def tell_at_end(self) -> None:
        try:
            self.look()
        except RuntimeError:
            pass  # the pool has noted that it could not serve it
        if self._found_bytes >= _TOLD_BYTES:
            size = f"{self._found_bytes / (1 << 20):,.0f} MiB"
            self._session.notes.add(
                "mode",
                f"{self._found} arrays of {size} were found alive on the GPU without their making having been followed: they are counted from where they were found, and not before",
                "",
                verdict=f"with {size} of arrays that are counted from where they were found",
            )
