"""A generator and a discriminator in turns, in a loop of the program's own (TensorFlow's DCGAN tutorial)."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

buffer, batch, noise_width, epochs = 60000, 256, 100, 2
images = np.random.default_rng(0).random((buffer, 28, 28, 1), dtype=np.float32) * 2 - 1
dataset = tf.data.Dataset.from_tensor_slices(images).shuffle(buffer).batch(batch)

generator = tf.keras.Sequential(
    [
        layers.Input((noise_width,)),
        layers.Dense(7 * 7 * 256, use_bias=False),
        layers.BatchNormalization(),
        layers.LeakyReLU(),
        layers.Reshape((7, 7, 256)),
        layers.Conv2DTranspose(128, (5, 5), strides=(1, 1), padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.LeakyReLU(),
        layers.Conv2DTranspose(64, (5, 5), strides=(2, 2), padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.LeakyReLU(),
        layers.Conv2DTranspose(1, (5, 5), strides=(2, 2), padding="same", use_bias=False, activation="tanh"),
    ]
)
discriminator = tf.keras.Sequential(
    [
        layers.Input((28, 28, 1)),
        layers.Conv2D(64, (5, 5), strides=(2, 2), padding="same"),
        layers.LeakyReLU(),
        layers.Dropout(0.3),
        layers.Conv2D(128, (5, 5), strides=(2, 2), padding="same"),
        layers.LeakyReLU(),
        layers.Dropout(0.3),
        layers.Flatten(),
        layers.Dense(1),
    ]
)
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
for_generator, for_discriminator = tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)


@tf.function
def train_step(real):
    noise = tf.random.normal([batch, noise_width])
    with tf.GradientTape() as first, tf.GradientTape() as second:
        made = generator(noise, training=True)
        of_real, of_made = discriminator(real, training=True), discriminator(made, training=True)
        loss = cross_entropy(tf.ones_like(of_made), of_made)
        other = cross_entropy(tf.ones_like(of_real), of_real) + cross_entropy(tf.zeros_like(of_made), of_made)
    changes = first.gradient(loss, generator.trainable_variables)
    for_generator.apply_gradients(zip(changes, generator.trainable_variables))
    changes = second.gradient(other, discriminator.trainable_variables)
    for_discriminator.apply_gradients(zip(changes, discriminator.trainable_variables))
    return loss, other


for epoch in range(epochs):
    for real in dataset:
        loss, other = train_step(real)
    print(epoch, float(loss), float(other))
