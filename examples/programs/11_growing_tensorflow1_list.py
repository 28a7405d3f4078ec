"""The same in the manner of TensorFlow 1: the list holds descriptions. Nothing is on the GPU but the one that the session computes, and nothing grows."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
kept = []
for _ in range(100):
    kept.append(tf.random.normal([1000, 1000]))
with tf.Session() as session:
    print(session.run(tf.reduce_mean(kept[-1])))
