"""TensorFlow 1: placeholders, get_variable, a session that is fed."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [None, 32, 32, 3])
y = tf.placeholder(tf.int64, [None])
hidden = x
for at, filters in enumerate((64, 128, 256)):
    before = hidden.shape[-1]
    kernel = tf.get_variable(f"kernel{at}", [3, 3, before, filters])
    bias = tf.get_variable(f"bias{at}", [filters], initializer=tf.zeros_initializer())
    hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(hidden, kernel, 1, "SAME"), bias))
    hidden = tf.nn.max_pool2d(hidden, 2, 2, "SAME")
flat = tf.reshape(hidden, [-1, 4 * 4 * 256])
logits = flat @ tf.get_variable("dense", [4 * 4 * 256, 10])
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.AdamOptimizer(1e-3).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(100):
        images = np.zeros((256, 32, 32, 3), np.float32)
        _, value = session.run([train, loss], {x: images, y: np.zeros(256, np.int64)})
    print(value)
