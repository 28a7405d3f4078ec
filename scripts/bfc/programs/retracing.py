"""A tf.function that is traced anew for every Python number it is given; each graph keeps a constant."""

import numpy
import tensorflow as tf

tf.random.set_seed(0)


@tf.function
def scaled(x, factor):
    table = tf.constant(numpy.full([64, 1024], factor, numpy.float32))
    return tf.reduce_sum(tf.matmul(x, table) * factor)


x = tf.random.normal([128, 64])
total = 0.0
for step in range(30):
    total += float(scaled(x, step / 10))
print("total", total, "traces", scaled.experimental_get_tracing_count())
