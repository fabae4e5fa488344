"""Functions of JAX that between them use every operator of StableHLO that the converter has a rule for."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from litecl.interpreter.graph import Array

_random = np.random.default_rng(0)
_LAST = ("NHWC", "HWIO", "NHWC")
lax, nn = jax.lax, jax.nn


def _w(*shape: int) -> Array:
    return (_random.standard_normal(shape) * 0.3).astype(np.float32)


_DENSE, _BIAS, _HEAD = _w(6, 16), _w(16), _w(16, 4)
_FILTERS = (_w(3, 3, 3, 8), _w(3, 3, 1, 8), _w(3, 3, 8, 8))
_SQUARES = [_w(8, 8) for _ in range(4)]


def mlp(x: Any) -> Any:
    """Two layers."""
    return nn.softmax(nn.relu(x @ _DENSE + _BIAS) @ _HEAD)


def cnn(x: Any) -> Any:
    """Convolutions, one channel by channel, and pools."""
    y = nn.relu(lax.conv_general_dilated(x, _FILTERS[0], (2, 2), "SAME", dimension_numbers=_LAST))
    y = lax.conv_general_dilated(y, _FILTERS[1], (1, 1), "SAME", dimension_numbers=_LAST, feature_group_count=8)
    y = lax.reduce_window(nn.gelu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    y = lax.conv_general_dilated(y, _FILTERS[2], (1, 1), [(1, 1), (2, 0)], dimension_numbers=_LAST)
    y = lax.reduce_window(y, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID") / 4
    return y.mean((1, 2))


def attention(x: Any) -> Any:
    """A block with two heads that look back."""
    q, k, v = ((x @ m).reshape(*x.shape[:2], 2, 4) for m in _SQUARES[:3])
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / 2
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), scores, -1e9)
    y = x + jnp.einsum("bhts,bshd->bthd", nn.softmax(scores, -1), v).reshape(x.shape) @ _SQUARES[3]
    mean = y.mean(-1, keepdims=True)
    return (y - mean) / jnp.sqrt(((y - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def scan(x: Any) -> Any:
    """A recurrent layer, and one that goes backwards."""

    def step(state: Any, now: Any) -> Any:
        state = jnp.tanh(state @ _SQUARES[0] + now)
        return state, state * 2

    zeros = jnp.zeros((2, 8))
    return lax.scan(step, zeros, x), lax.scan(step, zeros, x, reverse=True)[0]


def _moving(x: Any) -> Any:
    return x[jnp.array([0, 2]), 1:3], x.at[jnp.array([0, 2])].set(1.0).at[1].add(x[3]), jnp.roll(x, 2, 1), x[:, ::-2]


def _windows(x: Any) -> Any:
    pool = lax.reduce_window(x, jnp.inf, lax.min, (1, 3, 2, 1), (1, 2, 1, 1), "SAME")
    turned = lax.conv_transpose(x, _w(3, 3, 3, 4), (2, 2), "SAME")
    groups = lax.conv_general_dilated(x[..., :2], _w(3, 3, 1, 6), (1, 1), "SAME", (1, 1), (2, 2), _LAST, 2)
    lines = lax.conv_general_dilated(x[:, 0], _w(3, 3, 4), (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    images = x.transpose(0, 3, 1, 2)
    first = lax.conv_general_dilated(images, _w(8, 3, 3, 3), (1, 1), "SAME")
    return (
        pool,
        turned,
        groups,
        lines,
        first,
        lax.reduce_window(x[:, 0], -jnp.inf, lax.max, (1, 3, 1), (1, 2, 1), "SAME"),
    )


def _choices(x: Any) -> Any:
    index = (jnp.abs(x[0]) * 5).astype(int) % 3
    branches: list[Callable[[Any], Any]] = [lambda y: y * 2, lambda y: y - 1, jnp.sin]
    grown = lax.while_loop(lambda c: jnp.sum(c) < 50, lambda c: c * 1.5 + 0.1, jnp.abs(x))
    counted = lax.fori_loop(0, 3, lambda i, c: c.at[i].set(c[i] * 2 + i), x)
    return lax.cond(x.sum() > 0, branches[0], branches[1], x), lax.switch(index, branches, x), grown, counted


def _integers(x: Any) -> Any:
    i = (x * 10).astype(int)
    return i // 3, i % 4, i ^ 5, i << 1, jnp.where(i > 2, i, -i), i.astype(float), (x > 0) & (x < 0.5), ~(x > 0)


def _mode(mode: str | None) -> Callable[..., Any]:
    """Return updates of all kinds, at places of which two are equal and some may lie outside."""

    def function(x: Any, y: Any) -> Any:
        i = jnp.clip((y[:, 0] * 3).astype(int), 0, 5) if mode == "promise_in_bounds" else (y[:, 0] * 5).astype(int)
        j = (y[0, 1] * 4).astype(int)
        rows = y[:, : x.shape[1]]
        several = [f(rows, mode=mode) for f in (x.at[i].add, x.at[i].max, x.at[i].min, x.at[i].multiply)]
        once = i.at[0].set(1).at[1:].set(jnp.arange(7, 6 + len(i)))  # equal places are written in no certain order
        return [
            *several,
            x.at[once].set(rows, mode=mode),
            x.at[j, 2].set(7.0, mode=mode),
            x.at[:, j].add(2.0, mode=mode),
            (x > 0).at[i, j].set(True, mode=mode),
            jax.vmap(lambda row, k: row.at[k].set(0.5, mode=mode))(rows, i),
            x.at[i].get(mode="promise_in_bounds" if mode == "promise_in_bounds" else "fill"),
        ]

    return function


def _counts(x: Any) -> Any:
    i = (x.reshape(-1) * 4).astype(int)
    sums = [f(x.reshape(-1), i, 3) for f in (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_prod)]
    places = (jnp.where(x > 0, size=9, fill_value=-1), jnp.nonzero(x[0], size=2), jnp.unique(i % 3, size=5))
    return jnp.bincount(i, length=3), sums, places, jnp.histogram(x, 5)


def _narrow(x: Any) -> Any:
    """Integers of 8 bits, whose products have 32."""
    a, b = (x * 60).astype(jnp.int8), (x.T * 50).astype(jnp.int8)
    u = jnp.abs(x * 90).astype(jnp.uint8)
    wide = [lax.dot(a, b, preferred_element_type=jnp.int32), lax.dot(u, u.T, preferred_element_type=jnp.uint32)]
    batches = lax.dot_general(a[None], b[None], (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.int32)
    unsigned, places = u.astype(jnp.uint32), (x[0] * 3).astype(int)
    moved = (unsigned.at[places].set(unsigned[0], mode="clip"), unsigned.at[places, 1].add(7), unsigned[places])
    return [*wide, batches, lax.dot(a, b), *moved]


FUNCTIONS: Mapping[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mlp": (mlp, ((3, 6),)),
    "cnn": (cnn, ((2, 12, 11, 3),)),
    "attention": (attention, ((2, 5, 8),)),
    "scan": (scan, ((5, 2, 8),)),
    "gradients of an mlp": (jax.grad(lambda x: jnp.sum(mlp(x) ** 2)), ((3, 6),)),
    "gradients of a cnn": (jax.grad(lambda x: jnp.sum(cnn(x) ** 2)), ((2, 12, 11, 3),)),
    "positions": (lambda x: (jnp.argmax(x, -1), jnp.argmin(x, 0), lax.top_k(x, 2), jnp.sort(x, 0)), ((4, 6),)),
    "positions of integers": (lambda x: jnp.argmax((x * 9).astype(int), -1), ((4, 6),)),
    "embedding": (lambda x: jnp.take(_w(7, 3), (jnp.abs(x) * 3).astype(int) % 7, axis=0), ((4, 2),)),
    "along": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, -1), -1), ((4, 6),)),
    "moving": (_moving, ((4, 6),)),
    "slice": (lambda x: lax.dynamic_slice(x, ((jnp.abs(x[0, 0]) * 9).astype(int), 0), (2, 3)), ((4, 6),)),
    "sums": (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0), jnp.var(x, 0)), ((4, 6),)),
    "segments": (lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 1, 2]), 3), ((4, 6),)),
    "windows": (_windows, ((2, 9, 8, 3),)),
    "choices": (_choices, ((4,),)),
    "integers": (_integers, ((4, 6),)),
    "activations": (
        lambda x: [f(x) for f in (nn.gelu, nn.silu, nn.softplus, nn.elu, nn.selu, nn.relu6, nn.log_softmax)],
        ((4, 6),),
    ),
    "functions": (
        lambda x: [
            f(x)
            for f in (jnp.tan, jnp.round, jnp.sign, jnp.expm1, jnp.cbrt, jnp.arctan, jnp.isnan, jax.scipy.special.erf)
        ],
        ((4, 6),),
    ),
    "products": (lambda x: (x @ x.T, jnp.einsum("ij,ij->i", x, x), jnp.dot(x[0], x[1]), x @ x[0]), ((4, 6),)),
    "resize": (lambda x: jax.image.resize(x, (2, 8, 8, 3), "bilinear"), ((2, 4, 4, 3),)),
    "map": (lambda x: lax.map(lambda row: row.sum() * row, x), ((4, 6),)),
    **{f"updates, {mode}": (_mode(mode), ((6, 5), (4, 5))) for mode in (None, "drop", "clip", "promise_in_bounds")},
    "counts": (_counts, ((4, 6),)),
    "narrow integers": (_narrow, ((4, 6),)),
    "associative scan": (
        lambda x: (lax.associative_scan(jnp.add, x), lax.associative_scan(jnp.matmul, x, reverse=True)),
        ((9, 3, 3),),
    ),
    "places among sorted": (
        lambda x: (jnp.searchsorted(jnp.sort(x[0]), x[1:], side="right"), jnp.interp(x[1], jnp.sort(x[0]), x[2])),
        ((4, 6),),
    ),
    "random numbers": (
        lambda x: [
            f(jax.random.wrap_key_data(jnp.uint32([7, 9]).at[0].add(x.astype(jnp.uint32)[0])), (5,))
            for f in (jax.random.uniform, jax.random.normal)
        ],
        ((1,),),
    ),
    "two arguments": (lambda x, y: jnp.where(x > y, x, y) * nn.softmax(x @ y.T), ((4, 4), (4, 4))),
}
