"""An encoder of BERT's size that learns to tell masked words, Adam with weight decay."""

import os

import keras
import numpy as np
from keras import layers

batch, length, width, heads, depth, words = int(os.environ.get("BATCH", 16)), 256, 768, 12, 12, 30522


class Embed(layers.Layer):
    def __init__(self):
        super().__init__()
        self.words = layers.Embedding(words, width)
        self.places = layers.Embedding(length, width)
        self.norm = layers.LayerNormalization(epsilon=1e-12)

    def call(self, ids):
        return self.norm(self.words(ids) + self.places(keras.ops.arange(length)))


x = inputs = keras.Input((length,), dtype="int32")
x = Embed()(x)
for _ in range(depth):
    attended = layers.MultiHeadAttention(heads, width // heads, dropout=0.1)(x, x)
    x = layers.LayerNormalization(epsilon=1e-12)(x + layers.Dropout(0.1)(attended))
    inner = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x))
    x = layers.LayerNormalization(epsilon=1e-12)(x + layers.Dropout(0.1)(inner))
model = keras.Model(inputs, layers.Dense(words)(x))
model.compile(keras.optimizers.AdamW(1e-4), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
ids = np.random.default_rng(0).integers(0, words, (8 * batch, length)).astype(np.int32)
model.fit(ids, ids, batch_size=batch, epochs=1)
