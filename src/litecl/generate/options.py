"""The options of a generation, and its result."""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from typing import Annotated, Any, Literal, Self

from litecl.generate.drawing import MOST
from litecl.generate.sampling import Sampling
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.html import block, paragraph
from litecl.interpreter.records import Misfit, Within, record

Finish = Literal["", "stop token", "stop sequence", "max_tokens", "context"]


@dataclass(frozen=True)
class GenerationOptions:
    """The keywords of ``stream`` and ``generate``.

    max_tokens: the most tokens to generate; None: until the model ends its text or its context is full.
    temperature, top_k, top_p, repetition_penalty: see ``Sampling``; the file may set defaults.
    presence_penalty, frequency_penalty, logit_bias: see ``Sampling``; tokens of earlier calls don't count.
    seed: of the random numbers; None continues the session's, which start from the file's seed, or fresh entropy.
    stop: one or more texts at which to end; the result doesn't contain them.
    stop_tokens: tokens at which to end; None for the file's, whose text the result doesn't contain.
    log_probs: return the logarithm of every token's probability (the model's own, before temperature and the rest).
    whole: generate everything in one invoke, in a loop that litecl builds around the decode signature: several times as
        fast if steps are short. Tokens are the most likely ones, or drawn with a ``top_k`` of at most 64. Ends at
        ``max_tokens``, ``stop_tokens`` or a full context. The first use compiles the loop. ``stream`` then yields all
        tokens at the end.
    logits: return the logits of every token, of shape [vocabulary].
    mask: a function that is called before each token with those generated so far by this call, and an array of
        booleans, [vocabulary], all True; only tokens that it leaves True may follow. Log probabilities and logits are
        the model's own.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: Annotated[int, Within(0)] | None = None
    stop: str | Sequence[str] = ()
    stop_tokens: Sequence[int] | None = None
    log_probs: bool = False
    logits: bool = False
    whole: bool = False
    mask: Any = None
    sampling: Sampling = field(init=False)

    def __post_init__(self) -> None:
        """Raise ModelError for invalid or incompatible values."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        if not all(stop):
            raise ModelError(f"stop: expected texts of at least one character, got {stop}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ModelError(f"max_tokens: expected at least 1, got {self.max_tokens}")
        if self.mask is not None and not callable(self.mask):
            raise ArgumentError(f"mask: expected a function of tokens and an array, got {self.mask!r:.100}")
        object.__setattr__(self, "stop", stop)
        given = {each.name: getattr(self, each.name) for each in fields(Sampling)}
        object.__setattr__(self, "sampling", Sampling(**given))
        if self.whole and (stop or self.needs_steps):
            raise ModelError(
                "whole: expected no penalties, logit_bias, stop texts, log_probs, logits or mask, which need steps"
            )
        if self.whole and self.temperature > 0 and not (self.top_k and self.top_k <= MOST):
            raise ModelError(f"whole: expected a temperature of 0, or top_k (--top-k) of 1 to {MOST}, got {self.top_k}")

    @property
    def needs_steps(self) -> bool:
        """Whether more is wanted of a token's logits than a loop on the device gives."""
        return self.log_probs or self.logits or self.mask is not None or self.sampling.adjusts

    @property
    def may_loop(self) -> bool:
        """Whether a loop on the device can choose the tokens, and no more is wanted of their logits."""
        return not self.needs_steps and (self.temperature == 0 or (self.top_k is not None and self.top_k <= MOST))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return options from keywords. Raises ArgumentError for an unknown keyword or a value of the wrong type."""
        known = [each.name for each in fields(cls) if each.init]
        if unknown := [name for name in given if name not in known]:
            raise ArgumentError(f"expected options of {known}, got {unknown}")
        try:
            return record(cls, given)
        except Misfit as error:
            raise ArgumentError(str(error)) from None


class Piece(str):
    """The text that a new token completes, which may be empty.

    token: its number. log_prob, logits: if requested. finish: why it is the last one, else empty.
    """

    token: int
    log_prob: float | None
    logits: Array | None
    finish: Finish

    __slots__ = ("finish", "log_prob", "logits", "token")

    def __new__(
        cls, text: str, token: int, log_prob: float | None = None, logits: Array | None = None, finish: Finish = ""
    ) -> Self:
        """Return a piece with these fields."""
        piece = super().__new__(cls, text)
        piece.token, piece.log_prob, piece.logits, piece.finish = token, log_prob, logits, finish
        return piece


@dataclass(frozen=True)
class Timing:
    """Counts of prompt tokens and generated tokens, and the seconds spent on each.

    The decode step that reads the prompt's last token counts as generation.
    """

    prefill_tokens: int = 0
    prefill_s: float = 0.0
    decode_tokens: int = 0
    decode_s: float = 0.0

    def __add__(self, more: "Timing") -> "Timing":
        """Return the sum of both."""
        return Timing(
            self.prefill_tokens + more.prefill_tokens,
            self.prefill_s + more.prefill_s,
            self.decode_tokens + more.decode_tokens,
            self.decode_s + more.decode_s,
        )

    def __sub__(self, before: "Timing") -> "Timing":
        """Return the difference since an earlier timing."""
        return Timing(**{name: value - getattr(before, name) for name, value in vars(self).items()})

    @property
    def prefill_tokens_per_s(self) -> float:
        """Prompt tokens per second; 0 if there were none."""
        return self.prefill_tokens / self.prefill_s if self.prefill_s else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        """Generated tokens per second; 0 if there were none."""
        return self.decode_tokens / self.decode_s if self.decode_s else 0.0


@dataclass(frozen=True)
class Generation:
    """The generated text and its tokens; ``str()`` is the text.

    tokens: including the stop token, if one ended it. log_probs, logits: one per token if requested, else None.
    """

    text: str
    tokens: tuple[int, ...]
    finish: Finish
    timing: Timing
    log_probs: tuple[float, ...] | None = None
    logits: tuple[Array, ...] | None = None

    @classmethod
    def of(cls, pieces: Sequence[Piece], timing: Timing) -> Self:
        """Join the pieces of a stream, at least one."""
        log_probs = [piece.log_prob for piece in pieces if piece.log_prob is not None]
        logits = [piece.logits for piece in pieces if piece.logits is not None]
        return cls(
            "".join(pieces),
            tuple(piece.token for piece in pieces),
            pieces[-1].finish,
            timing,
            tuple(log_probs) or None,
            tuple(logits) or None,
        )

    def _repr_html_(self) -> str:
        """Return the text and its speed as HTML for notebooks."""
        speed = f"{len(self.tokens)} tokens, {self.timing.decode_tokens_per_s:.1f} a second; {self.finish}"
        return block(paragraph(self.text), paragraph(speed))

    def __str__(self) -> str:
        return self.text
