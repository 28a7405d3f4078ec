"""Arrays that come from the host or go from one sharding to another: jax.device_put, jnp.asarray, constants, meshes. All go through two functions of XLA's client.

An array that is put where it is already keeps its memory, unless a copy is asked for.
"""

from __future__ import annotations

from ...common.holdings import Holding, zeros
from ..session.device import OutOfMemory


def install(session) -> None:
    from jax._src import array, dispatch
    from jaxlib import xla_client

    transfers = _Transfers(session, xla_client)
    xla_client.batched_device_put = transfers.device_put
    xla_client.batched_copy_array_to_devices_with_sharding = transfers.copy
    session.put = transfers.put

    def shares(result, source):
        """The memory of what is followed already, under another Python object."""
        if not session.closed and (known := session.arrays.of(source)) is not None:
            session.arrays.follow(result, known.holding, known.is_stand_in)

    kind = array.ArrayImpl
    # The same memory under another Python object: where an array is wrapped anew, it is shared.
    made = kind.__init__

    def init(self, aval, sharding, arrays, committed, _skip_checks=False):
        made(self, aval, sharding, arrays, committed, _skip_checks)
        if len(arrays) == 1:
            shares(self, arrays[0])

    try:
        kind.__init__ = init
    except (AttributeError, TypeError):
        pass  # such an array is counted until the first of the two dies

    deferred = dispatch._DeferredShardArg
    handled = deferred.result_handler

    def result_handler(self, put_there):
        result = handled(self, put_there)
        shares(result, put_there)
        return result

    deferred.result_handler = result_handler
    delete = kind.delete

    def deleted(self):
        session.arrays.end(self)
        return delete(self)

    kind.delete = deleted

    # One device's part of an array is the array's own memory.
    inner = kind.addressable_data

    def addressable_data(self, index):
        part = inner(self, index)
        shares(part, self)
        return part

    kind.addressable_data = addressable_data
    shards = kind.addressable_shards

    def addressable_shards(self):
        parts = shards.__get__(self)
        for part in parts:
            shares(part.data, self)
        return parts

    kind.addressable_shards = property(addressable_shards)


class _Transfers:
    def __init__(self, session, xla_client):
        self._session = session
        self.put = xla_client.batched_device_put
        self._copy = xla_client.batched_copy_array_to_devices_with_sharding
        self._always = xla_client.ArrayCopySemantics.ALWAYS_COPY

    def device_put(self, aval, sharding, xs, devices, *more, **named):
        session = self._session
        if session.executions.inside or session.closed or not session.devices.is_planned(devices):
            return self.put(aval, sharding, xs, devices, *more, **named)
        session.tick()
        is_forced = named["force_copy"] if "force_copy" in named else len(more) > 1 and more[1]
        holding = None if is_forced else next((h for h in map(self._on_gpu, xs) if h is not None), None)
        holding = holding or self._take(aval)
        stand_in = any(session.arrays.is_stand_in(x) for x in xs)
        if stand_in and is_forced:
            xs = [zeros(x.shape, x.dtype) for x in xs]
        result = self.put(aval, sharding, xs, devices, *more, **named)
        session.arrays.follow(result, holding, stand_in)
        return result

    def copy(self, arrays, devices, shardings, semantics):
        session = self._session
        if session.executions.inside or session.closed:
            return self._copy(arrays, devices, shardings, semantics)
        results: list = [None] * len(arrays)
        for at, (array, list_, sharding, how) in enumerate(zip(arrays, devices, shardings, semantics)):
            known, stand_in = session.arrays.of(array), session.arrays.is_stand_in(array)
            is_planned = session.devices.is_planned(list(list_))
            if not is_planned:
                holding = Holding(0) if stand_in else None
            else:
                session.tick()
                holding = self._on_gpu(array) if how != self._always else None
                holding = holding or self._take(array)
            if is_planned and stand_in and how == self._always:
                results[at] = self.put(array.aval, sharding, [zeros(array.shape, array.dtype)], list(list_), True)
            else:
                (results[at],) = self._copy([array], [list_], [sharding], [how])
            if holding is not None and results[at] is not array:
                session.arrays.follow(results[at], holding, stand_in)
            if known is not None and array.is_deleted():
                session.arrays.end(array)
        return results

    def _on_gpu(self, array) -> Holding | None:
        """The memory of an array that is there already."""
        known = self._session.arrays.of(array)
        if known is None or known.ended or not self._session.devices.is_planned(array.devices()):
            return None
        return known.holding

    def _take(self, aval) -> Holding:
        session = self._session
        stack = session.here()
        size = session.executions.size_of(aval)
        tensor = session.device.tensor(tuple(aval.shape), str(aval.dtype), "device_put", session.line_name())
        try:
            return Holding(session.take(size, stack, tensor))
        except OutOfMemory:
            raise session.out_of_memory(size) from None
