#!/usr/bin/env bash
# Keras 3.15.1 with TensorFlow 2.21.0: TimeDistributed, traced with an open number of steps, applies the layer to as
# many steps as the batch has rows: call reads the shape before it swaps batch and steps. Eagerly, where the number of
# steps is known, it applies it to all. Without a word, an exported model gives results of another length.
#
# Seen, with Python 3.11 on x86-64 (the script fails if it changes); 5 steps:
#   a batch of 1: eagerly (1, 5, 4), traced (1, 1, 4)
#   a batch of 3: eagerly (3, 5, 4), traced (3, 3, 4)

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow-cpu==2.21.0 numpy==2.4.6
export KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3
"$folder/venv/bin/python" - <<'PYTHON'
import keras
import numpy as np
import tensorflow as tf

steps = keras.Input((None, 6))
model = keras.Model(steps, keras.layers.TimeDistributed(keras.layers.Dense(4))(steps))
traced = tf.function(model, autograph=False).get_concrete_function(tf.TensorSpec((None, None, 6)))
for batch in (1, 3):
    x = tf.constant(np.random.default_rng(0).standard_normal((batch, 5, 6)), tf.float32)
    eagerly, in_graph = model(x).numpy(), traced(x).numpy()
    print(f"a batch of {batch}: eagerly {eagerly.shape}, traced {in_graph.shape}")
    assert eagerly.shape == (batch, 5, 4)
    assert in_graph.shape == (batch, batch, 4)
    np.testing.assert_allclose(in_graph, eagerly[:, :batch], atol=1e-5)
PYTHON
