"""Steps of optimizers that are none of torch.optim's: fastai's, a library's own, `p -= lr * p.grad` by hand.

There is no call to hear. A step is seen by what it does: after a backward pass something writes into parameters. It is over when the program goes on to a model
or to the next backward pass, or ends. A program that has an optimizer of torch.optim is counted by these alone.
"""

from __future__ import annotations


class Updates:
    def __init__(self, progress, memory):
        self._progress, self._memory = progress, memory
        self._parameters: set[int] = set()  # allocations that a module has as parameters
        self._since_backward = False
        self._began = False

    def has_parameter(self, record) -> None:
        self._parameters.add(record.allocation)

    def backward_ran(self) -> None:
        self._since_backward = not self._progress.phases.has_optimizer

    @property
    def watches(self) -> bool:
        return self._since_backward and not self._began

    def wrote(self, tensors) -> None:
        self._began = any(map(self._is_trained, tensors))

    def _is_trained(self, tensor) -> bool:
        if tensor.requires_grad and tensor.is_leaf:
            return tensor.grad is not None
        record = self._memory.find(tensor)
        return record is not None and record.allocation in self._parameters

    def goes_on(self) -> None:
        """The program is done with updating."""
        if self._began:
            self._since_backward = self._began = False
            if not self._progress.phases.has_optimizer:
                self._progress.updated()
