"""Arrays that come from the host: jax.device_put, jnp.asarray, constants. All go through one function of XLA's client."""

from __future__ import annotations

from ...common.holdings import Holding
from ..device import OutOfMemory


def install(session) -> None:
    from jax._src import array, dispatch
    from jaxlib import xla_client

    put = xla_client.batched_device_put

    def batched_device_put(aval, sharding, xs, devices, *more, **named):
        if session.executions.inside or session.closed or not session.devices.is_planned(devices):
            return put(aval, sharding, xs, devices, *more, **named)
        session.tick()
        stack = session.here()
        size = session.executions.size_of(aval)
        tensor = session.device.tensor(tuple(aval.shape), str(aval.dtype), "device_put", session.line_name())
        try:
            holding = Holding(session.take(size, stack, tensor))
        except OutOfMemory:
            raise session.out_of_memory(size) from None
        result = put(aval, sharding, xs, devices, *more, **named)
        stand_in = any(session.arrays.is_stand_in(x) for x in xs)
        session.arrays.follow(result, holding, stand_in)
        return result

    xla_client.batched_device_put = batched_device_put
    session.put = put

    kind = array.ArrayImpl
    # The same memory under another Python object: where an array is wrapped anew, it is shared.
    made = kind.__init__

    def init(self, aval, sharding, arrays, committed, _skip_checks=False):
        made(self, aval, sharding, arrays, committed, _skip_checks)
        if len(arrays) == 1 and not session.closed:
            known = session.arrays.of(arrays[0])
            if known is not None:
                session.arrays.follow(self, known.holding, known.is_stand_in)

    try:
        kind.__init__ = init
    except (AttributeError, TypeError):
        pass  # such an array is counted until the first of the two dies

    deferred = dispatch._DeferredShardArg
    handled = deferred.result_handler

    def result_handler(self, put_there):
        result = handled(self, put_there)
        if not session.closed and (known := session.arrays.of(put_there)) is not None:
            session.arrays.follow(result, known.holding, known.is_stand_in)
        return result

    deferred.result_handler = result_handler
    delete = kind.delete

    def deleted(self):
        session.arrays.end(self)
        return delete(self)

    kind.delete = deleted
