"""A list that gains the outputs of every step."""

import tensorflow as tf

tf.random.set_seed(0)
weights = tf.Variable(tf.random.normal([512, 512], stddev=0.05))
history = []
for step in range(100):
    x = tf.random.normal([256, 512])
    y = tf.nn.relu(tf.matmul(x, weights))
    history.append(y)
    weights.assign_sub(0.001 * tf.matmul(x, y, transpose_a=True))
print("kept", len(history))
