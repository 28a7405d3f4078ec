"""The dispatch mode, which answers every operation on the planned GPU, and the operations that it has handlers for."""
