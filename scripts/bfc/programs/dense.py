"""Dense training: a small network, Adam, a hand-written loop of eager steps."""

import tensorflow as tf

tf.random.set_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam()
images = tf.random.normal([256, 784])
labels = tf.random.uniform([256], maxval=10, dtype=tf.int32)
for step in range(12):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
print("loss", float(loss))
