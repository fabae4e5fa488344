"""The public API: loads a language model from a file and generates text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.naming import close_names, did_you_mean
from litecl.generate import parts, tokenizers
from litecl.generate.chat import ChatPrompt, Message, Reply, chat_prompt
from litecl.generate.lexicon import Lexicon
from litecl.generate.model import LanguageModel, requires
from litecl.generate.options import Generation, Piece
from litecl.generate.parts import File
from litecl.generate.session import Prompt, Session
from litecl.generate.tokenizers import Tokenizer
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Model

FilePath = str | PathLike[str]


class Generator:
    """Generates text with a language model::

        for piece in Generator("model.litertlm").stream("Once upon a time"):
            print(piece, end="", flush=True)

    model: the path of a bundle (``.litertlm``, ``.task``), or of a ``.tflite`` file with signatures ``prefill_N`` and
        ``decode``.
    tokenizer: the path of a ``tokenizer.json`` or a SentencePiece model, or an object with the methods of
        ``Tokenizer``. None: the bundle's, or one beside the file. Without one, tokens go in and come out.
    embedder: the path of the file that computes the input ``embeddings``, if the model takes it. None: the bundle's,
        or ``embedder.tflite`` beside the file.
    template: the path of a chat template in Jinja, or of a ``tokenizer_config.json`` that has one. None: the bundle's,
        or ``chat_template.jinja`` or ``tokenizer_config.json`` beside the file.
    device: as for ``CLDelegate``, which picks one by default; numpy runs operators that it can't. cpu: run on numpy
        only, which uses only the option ``dynamic_range``, by default "reference". options: those of ``CLDelegate``.
    context_length: the most tokens of a text: up to the caches' size, or any number if the file leaves it open.
    sliding_window: how many tokens a layer with a local mask sees, if the file doesn't say.

    Any number of sessions, in any threads, take turns on one generator. Raises ModelError for files that are damaged or
    not a language model, ModelFileNotFound, and DelegateError.
    """

    def __init__(
        self,
        model: FilePath,
        *,
        tokenizer: FilePath | Tokenizer | None = None,
        embedder: FilePath | None = None,
        template: FilePath | None = None,
        device: Any = None,
        cpu: bool = False,
        context_length: int | None = None,
        sliding_window: int | None = None,
        **options: Any,
    ) -> None:
        for name, path in (("model", model), ("embedder", embedder), ("template", template)):
            if not isinstance(path, str | PathLike) and (path is not None or name == "model"):
                raise ArgumentError(f"{name}: expected the path of a file, got {path!r:.100}")
        for name, count in (("context_length", context_length), ("sliding_window", sliding_window)):
            if count is not None and (type(count) is bool or not hasattr(count, "__index__") or count < 1):
                raise ArgumentError(f"{name}: expected a number of tokens, at least 1, got {count!r:.100}")
        known = [option.name for option in fields(CLOptions)]
        for name in options.keys() - {*known}:
            like = [each for each in known if name in each] or close_names(name, known, 3)
            raise ArgumentError(f"there is no option {name!r}{did_you_mean(like)}")
        bundle = parts.read(Path(model))
        metadata = bundle.metadata
        delegate = self._delegate = None if cpu else CLDelegate(device, **options)
        delegates = [] if delegate is None else [delegate]
        interpret = partial(Interpreter, delegates=delegates, dynamic_range=options.get("dynamic_range"))
        self._interpreter = interpret(_read(bundle.model))
        files = dict(bundle.embedders) if embedder is None else {"embeddings": parts.file(Path(embedder))}
        wanted = {name: files[name] for name in requires(self._interpreter) if name in files}
        self._model = LanguageModel(
            self._interpreter,
            {name: interpret(_read(file)) for name, file in wanted.items()},
            _least(context_length, metadata.context_length),
            metadata.sliding_window if sliding_window is None else sliding_window,
            interpret=interpret,
        )
        beside = bundle.template if template is None else Path(template)
        chat = metadata.template if beside is None else parts.template_source(beside)
        if chat is None and template is not None:
            raise ModelError(f"template: {template} has no chat template")
        reading = _reading(tokenizer, bundle.tokenizer)
        self._lexicon = Lexicon(reading, metadata.start, metadata.stops, chat, metadata.thinking)
        self._defaults: Mapping[str, Any] = metadata.sampling

    def stream(self, prompt: Prompt, **options: Any) -> Iterator[Piece]:
        """Yield the continuation of a prompt token by token, as strings with extra fields (``Piece``).

        prompt: a text, or token numbers. options: those of ``GenerationOptions``. See ``Session.stream``.
        """
        return self.session().stream(prompt, **options)

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """Return the whole continuation of a prompt; see ``stream``."""
        return self.session().generate(prompt, **options)

    def chat(self, messages: Sequence[Message] | str, **options: Any) -> Reply:
        """Return the reply to a conversation; see ``Session.stream_chat``."""
        return self.session().chat(messages, **options)

    def chat_prompt(
        self,
        messages: Sequence[Message] | str,
        *,
        tools: Sequence[Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> ChatPrompt:
        """Return what the chat template makes of a conversation, ``text``; see ``Session.stream_chat``."""
        return chat_prompt(self._lexicon, messages, tools, variables or {})

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text that begins a context. Raises ModelError without a tokenizer."""
        return self._lexicon.encode(text, True)

    def session(self) -> Session:
        """Return a session, which remembers earlier prompts and replies."""
        return Session(self._model, self._lexicon, self._defaults)

    def load(self, path: FilePath) -> Session:
        """Load a session that ``Session.save`` wrote. Raises ModelError for a damaged one, or another model's."""
        session = self.session()
        session.restore(path)
        return session

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, if there is one. Raises MissingExtra if its library isn't installed."""
        return self._lexicon.tokenizer

    @property
    def stop_tokens(self) -> Sequence[int]:
        """The tokens that end a text by themselves; without a tokenizer's library, those that the file numbers."""
        return [end[0] for end in self._lexicon.stops(False) if len(end) == 1]

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The options of a generation that the file sets."""
        return self._defaults

    @property
    def has_template(self) -> bool:
        """Whether there is a chat template, which ``chat`` needs."""
        return self._lexicon.has_template

    @property
    def context_length(self) -> int:
        """The most tokens of a text."""
        return self._model.context_length

    @property
    def vocabulary(self) -> int:
        """The number of distinct tokens."""
        return self._model.vocabulary

    @property
    def device_bytes(self) -> int:
        """Bytes of the model on the device, without sessions' caches."""
        return self._model.device_bytes

    @property
    def cache_bytes(self) -> int:
        """Bytes of one session's caches."""
        return self._model.cache_bytes

    def delegation_report(self) -> DelegationReport | None:
        """Return where nodes run, or None if all run on numpy."""
        return None if self._delegate is None else DelegationReport.of(self._interpreter)

    report = delegation_report  # its shorter name

    def __repr__(self) -> str:
        return f"<Generator: context of {self.context_length:,} tokens, vocabulary of {self.vocabulary:,}>"

    def close(self) -> None:
        """Release the model; its sessions can no longer be used."""
        self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _read(file: File) -> Model:
    return read(file.content, file.find)


def _least(*given: int | None) -> int | None:
    return min((n for n in given if n is not None), default=None)


def _reading(
    given: FilePath | Tokenizer | None, stored: Callable[[], Tokenizer] | None
) -> Callable[[], Tokenizer] | None:
    """Return a factory for the tokenizer. The caller's overrides the bundle's."""
    if given is None:
        return stored
    if isinstance(given, str | PathLike):
        return partial(tokenizers.from_file, Path(given))
    if missing := [each for each in ("encode", "decode", "stop_tokens") if not hasattr(given, each)]:
        raise ArgumentError(
            f"tokenizer: expected the path of a file, or a tokenizer, got {given!r:.100}, which has no {missing}"
        )
    return lambda: given
