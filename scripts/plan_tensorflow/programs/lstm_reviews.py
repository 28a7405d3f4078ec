"""Two layers of LSTM, both ways, that tell good reviews of films from bad ones."""

import keras
import numpy as np
from keras import layers

words, length = 20000, 200
inputs = keras.Input(shape=(None,), dtype="int32")
x = layers.Embedding(words, 128)(inputs)
x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
x = layers.Bidirectional(layers.LSTM(64))(x)
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
x_train = np.random.default_rng(0).integers(0, words, (25000, length)).astype(np.int32)
y_train = np.arange(25000, dtype=np.int64) % 2
model.fit(x_train, y_train, batch_size=32, epochs=2)
