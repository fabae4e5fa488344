"""The tables of cases, one module a line."""

from cases import (
    batch_matmul,
    conv_2d,
    conv_3d,
    depthwise_conv_2d,
    embedding_lookup,
    fully_connected,
    l2_normalization,
    local_response_normalization,
    log_softmax,
    lstm,
    pool_2d,
    resize,
    rnn,
    softmax,
    transpose_conv,
)

TABLES = (
    batch_matmul,
    conv_2d,
    conv_3d,
    depthwise_conv_2d,
    embedding_lookup,
    fully_connected,
    l2_normalization,
    local_response_normalization,
    log_softmax,
    lstm,
    pool_2d,
    resize,
    rnn,
    softmax,
    transpose_conv,
)
