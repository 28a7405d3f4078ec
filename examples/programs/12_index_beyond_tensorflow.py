"""Advice: element [10, 10] of a 10 x 10 tensor is an illegal memory access.

The index is checked before anything runs: an InvalidArgumentError, and no memory is touched.
"""

import tensorflow as tf

x = tf.constant([[float(row * 10 + column) for column in range(10)] for row in range(10)])
try:
    print(x[10, 10])
except tf.errors.InvalidArgumentError as problem:
    print(problem)
print(x[9, 9])
