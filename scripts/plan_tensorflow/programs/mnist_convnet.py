"""Keras' first tutorial: a small convolutional network on images of digits, all of them one array of NumPy's (188 MB)."""

import keras
import numpy as np
from keras import layers

classes, shape = 10, (28, 28, 1)
x_train = np.random.default_rng(0).random((60000, *shape), dtype=np.float32)
y_train = keras.utils.to_categorical(np.arange(60000) % classes, classes)
model = keras.Sequential(
    [
        keras.Input(shape=shape),
        layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Conv2D(64, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(classes, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=128, epochs=15, validation_split=0.1)
