"""Wide layers with Adam under MirroredStrategy, which on a machine with one GPU has one replica."""

import os

import numpy as np
import tensorflow as tf

width = int(os.environ.get("WIDTH", 16384))
strategy = tf.distribute.MirroredStrategy() if not os.environ.get("PLAIN") else tf.distribute.get_strategy()
with strategy.scope():
    model = tf.keras.Sequential(
        [tf.keras.layers.Input((1024,)), tf.keras.layers.Dense(width), tf.keras.layers.Dense(width), tf.keras.layers.Dense(10)]
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.zeros((512, 1024), np.float32), np.zeros((512,), np.int64)
model.fit(x, y, batch_size=64, epochs=3)
