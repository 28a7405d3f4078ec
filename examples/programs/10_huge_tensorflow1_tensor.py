"""The same in the manner of TensorFlow 1: the graph only describes the tensor, and the session that computes it runs out of memory."""

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
side = tf.placeholder(tf.float32, [10000, None])
x = tf.random.normal([10000, 10000, 10000]) * tf.reduce_sum(side)
with tf.Session() as session:
    print(session.run(tf.reduce_mean(x), {side: [[1.0]] * 10000}))
