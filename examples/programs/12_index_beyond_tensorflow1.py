"""The same in the manner of TensorFlow 1: shapes are known while the graph is made, so the index is refused there, before there is a session."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [10, 10])
try:
    y = x[10, 10]
except ValueError as problem:
    print(problem)
y = x[9, 9]
with tf.Session() as session:
    print(session.run(y, {x: np.ones((10, 10))}))
