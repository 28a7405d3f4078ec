"""Two small tensors and three large ones: the limit would hold them, the regions it is taken in do not."""

import tensorflow as tf


def tensor(mib):
    return tf.fill([int(mib * 2**18)], 1.0)


kept = [tensor(0.25), tensor(3), tensor(25), tensor(25), tensor(75)]
print("asking for the last one", flush=True)
try:
    kept.append(tensor(75))
except tf.errors.ResourceExhaustedError as error:
    print("refused:", error.message.splitlines()[0])
