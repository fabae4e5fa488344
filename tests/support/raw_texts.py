"""Arguments of TensorFlow's raw operators on texts, sounds and examples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from support.raw_arguments import c, ct, f, i, n, p, s

_UNICODE = s("h\u00e9llo".encode(), b"", b"a\xffb", "\u4e2d\U0001f600".encode())
_DECODED = {"input": _UNICODE, "input_encoding": "UTF-8", "Tsplits": tf.int64}
_HASHED = {"input": s(b"abc", b"", b"a longer text, longer than thirty-two bytes in all")}


def _example(**features: Any) -> bytes:
    kinds = {"f": "float_list", "i": "int64_list", "b": "bytes_list"}
    made = {
        name: tf.train.Feature(**{kinds[value.dtype.kind.replace("O", "b")]: _list(value)})
        for name, value in features.items()
    }
    return bytes(tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString())


def _list(value: Any) -> Any:
    kind = {"f": tf.train.FloatList, "i": tf.train.Int64List, "O": tf.train.BytesList}[value.dtype.kind]
    return kind(value=value.tolist())


_EXAMPLES = s(
    _example(x=np.float32([1, 2]), k=n(5), t=s(b"one", b"two")),
    _example(x=np.float32([3, 4]), t=s(b"three")),
)
_FORM: dict[str, Any] = {"sparse_types": [tf.string], "dense_shapes": [[2], []]}
_DENSE = [c([0, 0], np.float32), c(9, np.int64)]
_IMAGE = tf.io.encode_png(tf.constant(np.arange(60).reshape(4, 5, 3), tf.uint8)).numpy()
_WAVE = tf.audio.encode_wav(tf.constant(np.linspace(-1, 1, 12).reshape(6, 2), tf.float32), 8000).numpy()
_PIXELS = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)

TEXTS: Mapping[str, Mapping[str, Any]] = {
    "CTCBeamSearchDecoder": {
        "inputs": f(7, 2, 5) * 2,
        "sequence_length": i(7, 5),
        "beam_width": 6,
        "top_paths": 3,
        "merge_repeated": False,
    },
    "CTCGreedyDecoder": {"inputs": f(7, 2, 5), "sequence_length": i(7, 5)},
    "DecodeBase64": {"input": s(b"aGVsbG8", b"-_8", b"")},
    "EncodeBase64": {"input": s(b"hello", b"\xfb\xff", b""), "pad": True},
    "DecodeRaw": {"bytes": s(b"abcd", b"efgh"), "out_type": tf.uint8},
    "DecodeWav": {"contents": s(_WAVE).reshape(())},
    "EncodeWav": {"audio": p(6, 2), "sample_rate": i(8000).reshape(())},
    "Fingerprint": {"data": f(3, 2), "method": ct(b"farmhash64").value[0]},
    "ParseExample": {
        "serialized": _EXAMPLES,
        "names": ct(),
        "sparse_keys": [ct(b"t").value[0]],
        "dense_keys": [b"x", b"k"],
        "dense_defaults": _DENSE,
        **_FORM,
    },
    "ParseExampleV2": {
        "serialized": _EXAMPLES,
        "names": ct(),
        "sparse_keys": ct(b"t"),
        "dense_keys": ct(b"x", b"k"),
        "ragged_keys": ct(),
        "dense_defaults": _DENSE,
        "num_sparse": 1,
        "ragged_value_types": [],
        "ragged_split_types": [],
        **_FORM,
    },
    "ParseSingleExample": {
        "serialized": _EXAMPLES[0:1].reshape(()),
        "dense_defaults": _DENSE,
        "num_sparse": 1,
        "sparse_keys": [b"t"],
        "dense_keys": [b"x", b"k"],
        **_FORM,
    },
    "ReduceJoin": {
        "inputs": s(b"a", b"b", b"c", b"d").reshape(2, 2),
        "reduction_indices": c([0]),
        "separator": "+",
    },
    "RegexFullMatch": {"input": s(b"aa", b"ab"), "pattern": ct(b"a+").value[0]},
    "RegexReplace": {"input": s(b"aa", b"ab"), "pattern": ct(b"a+").value[0], "rewrite": ct(b"-").value[0]},
    "StaticRegexFullMatch": {"input": s(b"aa", b"ab"), "pattern": "a+"},
    "StaticRegexReplace": {"input": s(b"aa", b"ab"), "pattern": "a+", "rewrite": "-"},
    "ShardedFilename": {"basename": s(b"f").reshape(()), "shard": i(3).reshape(()), "num_shards": i(12).reshape(())},
    "ShardedFilespec": {"basename": s(b"f").reshape(()), "num_shards": i(12).reshape(())},
    "StringJoin": {"inputs": [s(b"a", b"b"), s(b"c", b"d")], "separator": "-"},
    "StringSplit": {"input": s(b"a b", b"", b"c,d e"), "delimiter": ct(b" ,").value[0]},
    "StringSplitV2": {"input": s(b"a b", b"", b"c d e"), "sep": ct(b" ").value[0]},
    "StringToHashBucket": {"string_tensor": _HASHED["input"], "num_buckets": 1000},
    "StringToHashBucketFast": {**_HASHED, "num_buckets": 1000},
    "StringToHashBucketStrong": {**_HASHED, "num_buckets": 1000, "key": [3, 5]},
    "UnicodeDecode": _DECODED,
    "UnicodeDecodeWithOffsets": _DECODED,
    "UnicodeEncode": {
        "input_values": i(104, 233, 20013, 0xD800, 128512),
        "input_splits": n(0, 2, 2, 5),
        "output_encoding": "UTF-8",
    },
    "UnicodeTranscode": {"input": _UNICODE, "input_encoding": "UTF-8", "output_encoding": "UTF-16-BE"},
    "UniqueV2": {"x": i(3, 1, 3), "axis": c([0])},
    "UniqueWithCountsV2": {"x": i(3, 1, 3), "axis": c([0])},
    "StringNGrams": {
        "data": s(b"a", b"b", b"c", b"d"),
        "data_splits": n(0, 3, 3, 4),
        "separator": "|",
        "ngram_widths": [1, 2],
        "left_pad": "<",
        "right_pad": ">",
        "pad_width": -1,
        "preserve_short_sequences": False,
    },
    "CTCLoss": {
        "inputs": f(6, 2, 5),
        "labels_indices": n([0, 0], [0, 1], [1, 0]),
        "labels_values": i(1, 2, 3),
        "sequence_length": i(6, 5),
    },
    "StringLower": {"input": s(b"aB", b"C")},
    "StringUpper": {"input": s(b"aB", b"C")},
    "UnsortedSegmentJoin": {"inputs": s(b"a", b"b", b"c"), "segment_ids": i(1, 0, 1), "num_segments": c(2)},
    "StringFormat": {"inputs": [f(2)], "template": "x %s", "placeholder": "%s"},
    "DecodePng": {"contents": s(_IMAGE).reshape(()), "channels": 3},
    "DecodeImage": {"contents": s(_IMAGE).reshape(()), "channels": 3},
    "EncodePng": {"image": _PIXELS},
    "EncodeJpeg": {"image": _PIXELS},
}
