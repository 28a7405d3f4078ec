"""Dry runs: the program runs in its own Python, on a GPU that is not there. Folders stand in the order in which they import each other:

    source/      what the program's own source tells, and edits of it; changed_source.py runs them
    remedies/    what a remedy is, and the table of all
    session/     what every dry run has, whatever the framework: the device, the planned GPU, notes, what cannot be planned;
                 session.py: how one begins, stops and ends, and summary.py what it leaves; pool_session.py: what the sessions of JAX and TensorFlow share
    torch/       PyTorch: a session, and what follows its framework; its own folders are listed there
    jax/         JAX, the same
    tensorflow/  TensorFlow

await_torch.py waits for the program to import one of the three, and begins its session then. Imports are relative: `import torch` is the program's.
"""
