"""TensorFlow functions on ragged and sparse tensors, counts and equations, which are compositions of many operators."""

from typing import Any

import tensorflow as tf

from support.tf_functions import TfFunction

raw = tf.raw_ops
_ROWS = ((7,), (3,))
_MATRICES = ((None, 3, 3), (None, 3, 2))
_ELEMENTS = ((4,), (6, 3))
_TABLE = ((3, 9), (3, 9))
_BOXES = ((2, 10, 3, 4), (2, 10, 3))


def _f(name: str, function: Any, shapes: Any, low: float = -2.0, high: float = 2.0) -> TfFunction:
    return TfFunction(name, function, shapes, low, high)


def _ragged(x: Any, y: Any) -> Any:
    """Rows that end where y says."""
    return tf.RaggedTensor.from_row_splits(x, tf.concat([[0], tf.sort(_whole(y)), [7]], 0))


def _whole(x: Any, scale: float = 3.0) -> Any:
    return tf.cast(tf.abs(x) * scale, tf.int32)


def _sparse(v: Any) -> Any:
    """Elements of the first four of five rows, in columns that they say themselves."""
    columns = tf.cast(tf.abs(v) * 2, tf.int64)
    return tf.SparseTensor(
        tf.stack([tf.constant([0, 1, 1, 3], tf.int64), columns + tf.constant([0, 0, 1, 0], tf.int64)], 1), v, (5, 6)
    )


def _members(t: tf.SparseTensor) -> Any:
    return t.indices, t.values, t.dense_shape


def _nested(x: Any) -> Any:
    return tf.RaggedTensor.from_nested_row_lengths(x[:6], [[1, 2], [2, 1, 3]])


def _ids(v: Any) -> Any:
    indices = tf.constant([[0, 0], [0, 1], [2, 0], [3, 3]], tf.int64)
    return tf.SparseTensor(indices, tf.cast(tf.abs(v) * 2, tf.int64), (5, 5))


def _reduced(how: str, v: Any, d: Any) -> Any:
    reduce = getattr(tf.math, f"segment_{how}")
    return reduce(d, tf.cumsum(_whole(tf.tile(v, [2])[:6]))), reduce(d, [0, 0, 2, 2, 5, 5])


RAGGED = (
    _f("ragged to dense", lambda x, y: _ragged(x, y).to_tensor(-1.0), _ROWS),
    _f("ragged to dense of a size", lambda x, y: _ragged(x, y).to_tensor(shape=[None, 4]), _ROWS),
    _f("ragged of ragged to dense", lambda x, y: (_nested(x) * tf.reduce_sum(y)).to_tensor(), _ROWS),
    _f("ragged rows gathered", lambda x, y: tf.gather(_ragged(x, y), _whole(y, 1.5)).to_tensor(), _ROWS),
    _f("ragged rows joined", lambda x, y: tf.concat([_ragged(x, y), _ragged(-x, y)], 1).to_tensor(), _ROWS),
    _f("ragged reductions", lambda x, y: (tf.reduce_sum(_ragged(x, y), 1), tf.reduce_mean(_ragged(x, y), 1)), _ROWS),
    _f("ragged to sparse", lambda x, y: _members(_ragged(x, y).to_sparse()), _ROWS),
    _f("ranges", lambda x, y: tf.ragged.range(_whole(y), _whole(y) * 2, 2).to_tensor(), _ROWS),
    _f("ranges of floats", lambda x, y: tf.ragged.range(x, x + 3, tf.abs(x) + 0.3).to_tensor(), _ROWS),
)

SPARSE = (
    _f("sparse to dense", lambda v, d: tf.sparse.to_dense(_sparse(v), 1.0), _ELEMENTS),
    _f(
        "sparse booleans to dense",
        lambda v, d: raw.SparseToDense(
            sparse_indices=_sparse(v).indices, output_shape=[5, 6], sparse_values=v > 0, default_value=True
        ),
        _ELEMENTS,
    ),
    _f("sparse times dense", lambda v, d: tf.sparse.sparse_dense_matmul(_sparse(v), d), _ELEMENTS),
    _f(
        "sparse adjoint times adjoint",
        lambda v, d: tf.sparse.sparse_dense_matmul(_sparse(v), tf.transpose(d[:5]), adjoint_a=True, adjoint_b=True),
        _ELEMENTS,
    ),
    _f("sparse reshaped", lambda v, d: _members(tf.sparse.reshape(_sparse(v), (-1, 3))), _ELEMENTS),
    _f("sparse transposed", lambda v, d: _members(tf.sparse.transpose(_sparse(v))), _ELEMENTS),
    _f("sparse sum", lambda v, d: tf.sparse.reduce_sum(_sparse(v), 0, keepdims=True), _ELEMENTS),
    _f(
        "sparse with empty rows filled", lambda v, d: _members(tf.sparse.fill_empty_rows(_sparse(v), 9.0)[0]), _ELEMENTS
    ),
    _f("sparse with its empty rows", lambda v, d: tf.sparse.fill_empty_rows(_sparse(v), 9.0)[1], _ELEMENTS),
    *(
        _f(
            f"embeddings by {how}",
            lambda v, d, h=how: tf.nn.safe_embedding_lookup_sparse(d, _ids(v), combiner=h),
            _ELEMENTS,
        )
        for how in ("sum", "mean", "sqrtn")
    ),
    _f("sum of rows by segment", lambda v, d: tf.sparse.segment_sum(d, [0, 2, 5], [0, 0, 2]), _ELEMENTS),
    _f("mean of rows by segment", lambda v, d: tf.sparse.segment_mean(d, [0, 2, 5], [0, 0, 2], 4), _ELEMENTS),
    _f("segments with gaps", lambda v, d: tf.math.segment_sum(d, tf.cumsum(_whole(tf.tile(v, [2])[:6]))), _ELEMENTS),
    *(
        _f(f"segment {how} with gaps", lambda v, d, h=how: _reduced(h, v, d), _ELEMENTS)
        for how in ("max", "min", "prod", "mean")
    ),
    _f("segments with constant gaps", lambda v, d: tf.math.segment_sum(d, [0, 0, 2, 2, 5, 5]), _ELEMENTS),
)

COUNTS = (
    _f("weights by number", lambda x, y: tf.math.bincount(_whole(x), weights=y, minlength=7, maxlength=7), _TABLE),
    _f(
        "weights by number of rows",
        lambda x, y: tf.math.bincount(_whole(x), weights=y, minlength=4, maxlength=4, axis=-1),
        _TABLE,
    ),
    _f(
        "numbers that are there",
        lambda x, y: tf.math.bincount(_whole(x), minlength=4, maxlength=4, axis=-1, binary_output=True),
        _TABLE,
    ),
    _f("histogram", lambda x, y: tf.histogram_fixed_width(x, [-1.0, 1.0], 5), _TABLE),
    _f("unique with counts", lambda x, y: tf.unique_with_counts(_whole(x[0])), _TABLE),
    _f("difference of sets", lambda x, y: tuple(raw.ListDiff(x=_whole(x[0]), y=_whole(y[0]))), _TABLE),
    _f("nth element", lambda x, y: (raw.NthElement(input=x, n=2), raw.NthElement(input=y, n=3, reverse=True)), _TABLE),
    _f("approximate top k", lambda x, y: tf.math.approx_max_k(x, 3), _TABLE),
    _f(
        "scatter of maxima",
        lambda x, y: tf.tensor_scatter_nd_max(x, _whole(y[:, :4, None]) % 3, y[:, :4, None] + x[:, None]),
        _TABLE,
    ),
    _f("scatter of minima", lambda x, y: tf.tensor_scatter_nd_min(x, [[0, 1], [2, 8], [0, 1]], y[:, 0]), _TABLE),
    _f("running logarithms of sums", lambda x, y: tf.math.cumulative_logsumexp(x, 1), _TABLE),
    _f("running logarithms before", lambda x, y: tf.math.cumulative_logsumexp(x, 1, True, True), _TABLE),
    _f("running logarithms of zeros", lambda x, y: tf.math.cumulative_logsumexp(tf.math.log(tf.nn.relu(x)), 1), _TABLE),
    _f("unravelled indices", lambda x, y: tf.unravel_index(_whole(x[0]), [5, 6]), _TABLE),
    _f("bits", lambda x, y: (_bits(x, y, 1e9, tf.int32), _bits(x, y, 60, tf.int8)), _TABLE),
)


def _bits(x: Any, y: Any, scale: float, dtype: Any) -> Any:
    x, y = tf.cast(x * scale, dtype), tf.cast(y * scale, dtype)
    return tf.bitwise.bitwise_and(x, y), tf.bitwise.bitwise_or(x, y)


def _positive(x: Any) -> Any:
    return tf.matmul(x, x, transpose_b=True) + 3 * tf.eye(3)


EQUATIONS = (
    _f("solution", lambda a, b: tf.linalg.solve(a * 1e4, b), _MATRICES),
    _f("solution of the adjoint", lambda a, b: tf.linalg.solve(a, b, adjoint=True), _MATRICES),
    _f("inverse", lambda a, b: tf.linalg.inv(a), _MATRICES),
    _f("determinant", lambda a, b: (tf.linalg.det(a), tf.linalg.slogdet(a)), _MATRICES),
    _f("cholesky", lambda a, b: tf.linalg.cholesky(_positive(a)), _MATRICES),
    _f("triangular solution", lambda a, b: tf.linalg.triangular_solve(a + 4 * tf.eye(3), b, False, True), _MATRICES),
    _f("exponential of a matrix", lambda a, b: tf.linalg.expm(a), ((2, 3, 3), (2, 3, 2))),
    _f("cross product", lambda a, b: tf.linalg.cross(a, b @ tf.ones([2, 3])), _MATRICES),
    _f("diagonals elsewhere", lambda a, b: (tf.linalg.diag(a, k=1), tf.linalg.diag(a, padding_value=3.0)), _MATRICES),
    _f("bands of diagonals", lambda a, b: (tf.linalg.diag(a, k=(-1, 1)), tf.linalg.diag_part(a, k=(-1, 1))), _MATRICES),
    _f("lower diagonal set", lambda a, b: tf.linalg.set_diag(a, b[:, :2, 0], k=-1), _MATRICES),
    _f("tensor diagonal", lambda a, b: tf.linalg.tensor_diag_part(tf.linalg.tensor_diag(b[0]) + 1.0), _MATRICES),
)


def _combined(b: Any, s: Any, **options: Any) -> Any:
    corners = tf.concat([b[..., :2] - 0.2, b[..., :2] + tf.abs(b[..., 2:])], -1)
    return list(tf.image.combined_non_max_suppression(corners, s, 3, 12, 0.4, 0.3, **options))


BOXES = (
    _f("suppression in classes", _combined, _BOXES, 0, 1),
    _f("suppression of shared boxes", lambda b, s: _combined(b[:, :, :1], s, clip_boxes=False), _BOXES, 0, 1),
    _f("suppression padded by class", lambda b, s: _combined(b, s, pad_per_class=True), _BOXES, 0, 1),
)

SEQUENCES = (
    _f("greedy decoding", lambda x: _decoded(x, [7, 5, 3]), ((7, 3, 5),)),
    _f("greedy decoding with repetitions", lambda x: _decoded(x, [7, 5, 1], merge_repeated=False), ((7, 3, 5),)),
    _f("greedy decoding of first blanks", lambda x: _decoded(x, _whole(x[:3, 0, 0]), blank_index=0), ((7, 3, 5),)),
    _f("loss of sequences", lambda x: tf.nn.ctc_loss([[1, 2], [3, 1], [4, 4]], x, [2, 1, 2], [7, 4, 6]), ((7, 3, 5),)),
)


def _decoded(x: Any, lengths: Any, **options: Any) -> Any:
    (found,), log = tf.nn.ctc_greedy_decoder(x, lengths, **options)
    return *_members(found), tf.sparse.to_dense(found, default_value=-1), log


COMPOSED = (*RAGGED, *SPARSE, *COUNTS, *EQUATIONS, *BOXES, *SEQUENCES)
