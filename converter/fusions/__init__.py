"""Composites that become dedicated operators, one file per kind. ``FUSIONS`` is searched in order."""

from litecl.converter.composites import Composite
from litecl.converter.fusions.custom import DETECTION, FUSABLE, MAX_UNPOOLING
from litecl.converter.fusions.embedding_lookup import EMBEDDING
from litecl.converter.fusions.fusion import Fusion
from litecl.converter.fusions.keras_lstm import KERAS_2_LSTM
from litecl.converter.fusions.lstm_cell_simple import LSTM_CELL_SIMPLE
from litecl.converter.fusions.non_max_suppression import NON_MAX_SUPPRESSION

FUSIONS: tuple[Fusion, ...] = (
    EMBEDDING,
    LSTM_CELL_SIMPLE,
    KERAS_2_LSTM,
    NON_MAX_SUPPRESSION,
    DETECTION,
    MAX_UNPOOLING,
    FUSABLE,
)

__all__ = ["FUSIONS", "Composite", "Fusion"]
