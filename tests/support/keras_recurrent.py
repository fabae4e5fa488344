"""Keras models with recurrent layers that no fused operator computes: they become loops."""

from typing import Any

import keras

from support.keras_models import KerasModel, stack

L = keras.layers


def _model(name: str, *layers: Any, operators: int, shape: tuple[Any, ...] = (8, 6), **inputs: Any) -> KerasModel:
    """Layers given as functions that make them, as a layer belongs to one model."""
    batches = (inputs["batch_size"],) if "batch_size" in inputs else (1, 3)
    return KerasModel(name, lambda: stack(*(make() for make in layers), shape=shape, **inputs), operators, batches)


LOOPS = (
    _model("gru", lambda: L.GRU(5), operators=28),
    _model("gru of one batch", lambda: L.GRU(5), operators=24, batch_size=1),
    _model("gru sequence", lambda: L.GRU(5, return_sequences=True), operators=34),
    # Two of them keep a row of the list where there are no steps, and cut the result.
    _model("gru of any length", lambda: L.GRU(5, return_sequences=True), operators=37, shape=(None, 6)),
    _model("gru without reset after", lambda: L.GRU(5, reset_after=False), operators=28),
    _model("gru backwards", lambda: L.GRU(5, go_backwards=True, return_state=False), operators=29),
    _model("gru with dropout", lambda: L.GRU(5, dropout=0.2, recurrent_dropout=0.3), operators=28),
    _model("lstm with hard sigmoid", lambda: L.LSTM(5, recurrent_activation="hard_sigmoid"), operators=30),
    _model("masked lstm", L.Masking, lambda: L.LSTM(5, return_sequences=True), operators=62),
    _model(
        "embedding with mask",
        lambda: L.Embedding(10, 4, mask_zero=True),
        lambda: L.GRU(5),
        operators=60,
        shape=(8,),
        dtype="int32",
    ),
    _model("convolutional lstm", lambda: L.ConvLSTM2D(3, 3, padding="same"), operators=35, shape=(4, 6, 6, 2)),
    _model("cells", lambda: L.RNN([L.LSTMCell(5), L.GRUCell(4)]), operators=50),
    _model("bidirectional gru", lambda: L.Bidirectional(L.GRU(5, return_sequences=True)), operators=68),
    _model("time distributed", lambda: L.TimeDistributed(L.Conv2D(3, 3)), operators=11, shape=(4, 6, 6, 2)),
)

STATEFUL = (
    _model("stateful lstm", lambda: L.LSTM(5, stateful=True), operators=17, batch_size=1),
    _model("stateful gru", lambda: L.GRU(5, stateful=True), operators=30, batch_size=1),
)

FUSED = (
    _model("simple", lambda: L.SimpleRNN(5), operators=6),
    _model(
        "simple backwards",
        lambda: L.SimpleRNN(5, activation="relu", return_sequences=True, go_backwards=True),
        operators=6,
    ),
    _model("bidirectional", lambda: L.Bidirectional(L.LSTM(5)), operators=11),
    _model("bidirectional sequence", lambda: L.Bidirectional(L.LSTM(5, return_sequences=True)), operators=9),
    _model(
        "bidirectional of unequal sizes",
        lambda: L.Bidirectional(
            L.LSTM(5, return_sequences=True),
            backward_layer=L.LSTM(3, return_sequences=True, go_backwards=True),
        ),
        operators=16,
        batch_size=1,
    ),
    _model(
        "bidirectional of one batch",
        lambda: L.Bidirectional(L.LSTM(5, return_sequences=True, activation="relu"), merge_mode="sum"),
        operators=6,
        batch_size=1,
    ),
)
