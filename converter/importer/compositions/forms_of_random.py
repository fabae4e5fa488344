"""Variants of random numbers by a seed, via key and counter; variants of example parsing, via newer operators."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit
from litecl.converter.importer.types import tf_type

raw = tf.raw_ops


def _of_key(op: Any) -> Composition:
    """Return a composition that derives key and counter from a seed, and draws with these."""

    def compose(attrs: Mapping[str, Any], shape: Any, seed: Any, *limits: Any) -> Any:
        key, counter = raw.StatelessRandomGetKeyCounter(seed=seed)
        more = dict(zip(("minval", "maxval"), limits, strict=False))
        more |= {} if limits else {"dtype": tf_type(attrs["dtype"])}
        return op(shape=shape, key=key, counter=counter, alg=1, **more)

    return compose


def _no_texts() -> Any:
    return tf.constant(np.zeros([0], object))


def _example(attrs: Mapping[str, Any], records: Any, names: Any, *operands: Any) -> Any:
    sparse, dense = int(attrs["Nsparse"]), int(attrs["Ndense"])
    keys, defaults = operands[: sparse + dense], operands[sparse + dense :]
    return _parsed(attrs, records, keys[:sparse], keys[sparse:], defaults)


def _single_example(attrs: Mapping[str, Any], record: Any, *defaults: Any) -> Any:
    return _parsed(attrs, record, attrs["sparse_keys"] or (), attrs["dense_keys"] or (), defaults)


def _parsed(attrs: Mapping[str, Any], records: Any, sparse: Any, dense: Any, defaults: Any) -> Any:
    shapes = attrs["dense_shapes"] or ()
    if any(dims is None for dims in shapes):
        raise Unfit("the ranks of its dense features must be known")
    features = raw.ParseExampleV2(
        serialized=records,
        names=_no_texts(),
        sparse_keys=tf.stack(list(sparse)) if sparse else _no_texts(),
        dense_keys=tf.stack(list(dense)) if dense else _no_texts(),
        ragged_keys=_no_texts(),
        dense_defaults=list(defaults),
        num_sparse=len(sparse),
        sparse_types=[tf_type(type_) for type_ in attrs["sparse_types"] or ()],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[list(dims) for dims in shapes],
    )
    return tf.nest.flatten(list(features))


COMPOSITIONS: dict[str, Composition] = {
    "StatelessRandomUniform": _of_key(raw.StatelessRandomUniformV2),
    "StatelessRandomNormal": _of_key(raw.StatelessRandomNormalV2),
    "StatelessTruncatedNormal": _of_key(raw.StatelessTruncatedNormalV2),
    "StatelessRandomUniformInt": _of_key(raw.StatelessRandomUniformIntV2),
    "StatelessRandomUniformFullInt": _of_key(raw.StatelessRandomUniformFullIntV2),
    "ParseExample": _example,
    "ParseSingleExample": _single_example,
}
