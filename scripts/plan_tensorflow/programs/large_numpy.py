"""A table of more rows than a GPU's memory, read from a file as it is needed, given to tf.data whole."""

import os
import tempfile

import numpy as np
import tensorflow as tf

rows = int(os.environ.get("ROWS", 4_500_000))
with tempfile.NamedTemporaryFile() as file:
    table = np.memmap(file, np.float32, "w+", shape=(rows, 1024))
    labels = np.zeros((rows,), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((table, labels)).batch(1024).prefetch(2)
    model = tf.keras.Sequential([tf.keras.layers.Dense(2048, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(dataset, epochs=1)
