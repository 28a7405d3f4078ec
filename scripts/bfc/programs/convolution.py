"""Convolutions: forward, backward and a plain update, eager."""

import tensorflow as tf

tf.random.set_seed(0)
kernels = [tf.Variable(tf.random.normal([3, 3, i, o], stddev=0.1)) for i, o in ((3, 32), (32, 64), (64, 64))]
images = tf.random.normal([16, 64, 64, 3])
for step in range(8):
    with tf.GradientTape() as tape:
        x = images
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"))
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        loss = tf.reduce_mean(tf.square(x))
    for kernel, gradient in zip(kernels, tape.gradient(loss, kernels)):
        kernel.assign_sub(0.01 * gradient)
print("loss", float(loss))
