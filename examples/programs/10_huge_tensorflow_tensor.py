"""Advice: a TensorFlow tensor this large "accesses memory illegally", and the session is at fault.

It asks for 3.64 TiB, more than any GPU has, and fails right there: nothing is accessed, and the session is never reached.
"""

import tensorflow as tf

x = tf.random.normal([10000, 10000, 10000])
with tf.compat.v1.Session() as session:
    print(session.run(x))
