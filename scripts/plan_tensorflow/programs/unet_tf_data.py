"""A U-Net whose images come from a tf.data pipeline, in batches of which the last may be smaller."""

import os

import keras
import tensorflow as tf
from keras import layers

batch, side, last = int(os.environ.get("BATCH", 64)), 128, bool(os.environ.get("DROP_REMAINDER"))


def image(number):
    pixels = tf.random.stateless_uniform([side, side, 3], seed=[7, tf.cast(number, tf.int32)])
    return pixels, tf.cast(pixels[..., :1] > 0.5, tf.float32)


def two(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def unet():
    x = inputs = keras.Input((side, side, 3))
    kept = []
    for filters in (64, 128, 256, 512):
        x = two(x, filters)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = two(x, 1024)
    for filters, other in zip((512, 256, 128, 64), reversed(kept)):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = two(layers.Concatenate()([x, other]), filters)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))


images = tf.data.Dataset.range(10000).map(image, num_parallel_calls=tf.data.AUTOTUNE)
images = images.shuffle(100).batch(batch, drop_remainder=last).prefetch(tf.data.AUTOTUNE)
model = unet()
model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="binary_crossentropy")
model.fit(images, epochs=2)
