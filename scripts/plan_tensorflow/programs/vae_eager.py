"""A variational autoencoder, each operation by itself (no tf.function)."""

import numpy as np
import tensorflow as tf

batch, inner = 512, 64
layers = tf.keras.layers
encoder = tf.keras.Sequential([layers.Conv2D(32, 3, 2, "same", activation="relu"), layers.Conv2D(64, 3, 2, "same", activation="relu"), layers.Flatten(), layers.Dense(2 * inner)])  # fmt: skip
decoder = tf.keras.Sequential([layers.Dense(8 * 8 * 64, activation="relu"), layers.Reshape((8, 8, 64)), layers.Conv2DTranspose(32, 3, 2, "same", activation="relu"), layers.Conv2DTranspose(3, 3, 2, "same")])  # fmt: skip
optimizer = tf.keras.optimizers.Adam(1e-3)
images = np.random.default_rng(0).random((batch * 8, 32, 32, 3), dtype=np.float32)
for epoch in range(2):
    for at in range(0, len(images), batch):
        x = tf.constant(images[at : at + batch])
        with tf.GradientTape() as tape:
            mean, spread = tf.split(encoder(x), 2, axis=1)
            z = mean + tf.exp(spread / 2) * tf.random.normal(tf.shape(mean))
            loss = tf.reduce_mean(tf.square(decoder(z) - x))
            loss += 1e-3 * tf.reduce_mean(tf.square(mean) + tf.exp(spread) - spread)
        variables = encoder.trainable_variables + decoder.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    print(epoch, float(loss))
