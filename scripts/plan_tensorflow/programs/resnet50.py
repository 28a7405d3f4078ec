"""ResNet-50 trained with model.fit."""

import os

import keras
import numpy as np

batch = int(os.environ.get("BATCH", 64))
model = keras.applications.ResNet50(weights=None, classes=1000)
model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy")
x = np.zeros((4 * batch, 224, 224, 3), np.float32)
y = np.zeros((4 * batch,), np.int64)
model.fit(x, y, batch_size=batch, epochs=2)
