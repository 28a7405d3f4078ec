"""Tensors that have another's memory: reshaped ones, and variables, which keep what was assigned to them and give it to whoever reads them."""

from __future__ import annotations

import weakref


class SharedMemory:
    """`session` has the holdings of tensors (`tensors`); `hold_new(tensor, operation)` makes one."""

    def __init__(self, session, hold_new):
        self._session, self._hold_new = session, hold_new
        self._variables: dict = {}  # holdings, by the id of the resource's tensor
        self._stand_ins: set = set()  # ids of the resources whose numbers were not computed
        self._followed: set = set()  # ids of the resources whose end is waited for

    def after(self, name: str, inputs, results) -> None:
        """After an operation of shapes.SHARES, or one without a result."""
        tensors = self._session.tensors
        if name == "AssignVariableOp" and len(inputs) > 1:
            known = tensors.of(inputs[1])
            self.set_variable(inputs[0], known.holding if known is not None else None)
            self.mark(inputs[0], tensors.is_stand_in(inputs[1]))
        elif name in ("AssignAddVariableOp", "AssignSubVariableOp") and len(inputs) > 1:
            self.mark(inputs[0], self.is_stand_in(inputs[0]) or tensors.is_stand_in(inputs[1]))
        elif name == "DestroyResourceOp" and inputs:
            self._drop_variable(id(inputs[0]))
        elif name == "ReadVariableOp" and results:
            holding = self._variables.get(id(inputs[0]))
            if holding is not None:
                tensors.follow(results[0], holding, self.is_stand_in(inputs[0]))
        else:
            for result, given in zip(results or (), inputs):
                known = tensors.of(given)
                if known is not None:
                    tensors.follow(result, known.holding, known.is_stand_in)
                else:
                    self._hold_new(result, name)

    def has(self, resource) -> bool:
        return id(resource) in self._variables

    def is_stand_in(self, resource) -> bool:
        return id(resource) in self._stand_ins

    def mark(self, resource, stand_in: bool = True) -> None:
        """Whether what a variable has now was not computed."""
        if not stand_in:
            self._stand_ins.discard(id(resource))
            return
        self._stand_ins.add(id(resource))
        self._follow(resource)

    def set_variable(self, resource, holding) -> None:
        key = id(resource)
        if holding is not None:
            holding.arrays += 1  # before the one that it had goes: it may be the same
        self._drop_variable(key)
        if holding is None:
            return
        self._variables[key] = holding
        self._follow(resource)

    def _follow(self, resource) -> None:
        key = id(resource)
        if key not in self._followed:
            self._followed.add(key)
            weakref.finalize(resource, self._died, key).atexit = False  # what lives then is held to the end

    def _died(self, key: int) -> None:
        self._followed.discard(key)
        self._stand_ins.discard(key)
        self._drop_variable(key)

    def _drop_variable(self, key: int) -> None:
        holding = self._variables.pop(key, None)
        if holding is not None:
            holding.let_go(self._session)
