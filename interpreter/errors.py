"""The errors that litecl raises.

::

    LiteclError
    ├── ModelError              the model, or its input, is wrong
    │   ├── ArgumentError       an argument of a type that is not accepted
    │   ├── LimitError          more memory or time than allowed
    │   ├── ModelFileError      an unreadable file (ModelFileNotFound: a missing one)
    │   ├── ShapeError          shapes, types or axes that do not fit together
    │   └── UnsupportedOp       an operator, version or type that has no kernel
    ├── ConversionError         a TensorFlow graph that cannot be expressed as a .tflite file
    ├── MissingExtra            a package that a part of litecl needs is not installed
    └── DelegateError           a device that cannot do its work
        ├── ContentLost         the same, while it overwrote tensors that stay there
        ├── DelegateNotFound    an unknown name for ``load_delegate``
        ├── DeviceNotFound      a requested device that does not exist
        ├── KernelBuildError    a kernel that does not compile there
        └── OutOfDeviceMemory   an allocation that the device refuses

Each is also the built-in error that LiteRT raises in its place, so that ``except ValueError`` and the like keep
working: LiteRT raises ValueError for some model faults and RuntimeError for others, so a ModelError is both.

The code that detects a fault raises the error, with expected and got; each level above adds the position with
``add_note``, and the code that runs operators names the operator (``locate``).
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from litecl.interpreter.visible import visible_lines

_MOST = 20_000  # characters of an error, which may quote a user's data
_MOST_PATH = 5000  # characters of an error with a path, in place of which a caller may pass content


def brief(text: str, most: int = 200) -> str:
    """Shorten a text to quote in an error by dropping its middle. most: about the most characters."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"


class LiteclError(Exception):
    """The base of every error that litecl raises on purpose."""

    def __str__(self) -> str:
        return visible_lines(brief(super().__str__(), _MOST))


class ModelError(LiteclError, ValueError, RuntimeError):
    """A model is malformed, or its inputs do not fit it.

    operator: the operator that failed, which prefixes the message; empty if none did.
    """

    operator = ""

    def __init__(self, *args: object, operator: str = "") -> None:
        super().__init__(*args)
        self.operator = operator

    def __str__(self) -> str:
        return f"{self.operator}: {super().__str__()}" if self.operator else super().__str__()


class ArgumentError(ModelError, TypeError):
    """An argument has a type that is not accepted."""


class ModelFileError(OSError, ModelError):
    """A model file cannot be read."""

    def __str__(self) -> str:
        return brief(OSError.__str__(self), _MOST_PATH)


class ModelFileNotFound(FileNotFoundError, ModelFileError):
    """There is no model file of this name."""


class LimitError(ModelError):
    """A model asks for more memory or time than ``Interpreter(memory_limit=, time_limit=)`` allows."""


class ShapeError(ModelError):
    """Shapes, types or axes do not fit together."""


class UnsupportedOp(ModelError):
    """An operator, one of its versions or one of its types has no kernel."""


FAULTS = (ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, MemoryError, TypeError, ValueError)
"""The exceptions that Python and numpy raise for values that a kernel cannot handle."""


def fault(error: BaseException) -> "ModelError":
    """Return the error to raise from one of ``FAULTS``."""
    cause = "not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
    return ModelError(f"the kernel fails on these inputs ({cause})")


_REFUSALS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


def is_refusal(error: BaseException) -> bool:
    """Return whether the system refuses memory, a file descriptor, a process or the mapping of a module."""
    if isinstance(error, OSError):
        return error.errno in _REFUSALS
    return isinstance(error, MemoryError | ImportError) and not isinstance(error, ModuleNotFoundError)


@contextmanager
def refusals(doing: str) -> Iterator[None]:
    """Raise a ModelError where the system refuses something. doing: the work, for the message."""
    try:
        yield
    except LiteclError:
        raise
    except (MemoryError, OSError, ImportError) as error:
        if not is_refusal(error):
            raise
        raise ModelError(f"{doing}: {error or 'not enough memory'}") from error


def locate(error: LiteclError, operator: str, where: str) -> None:
    """Name the operator that failed, unless the error names an inner one already, and add the position."""
    if isinstance(error, ModelError) and not error.operator:
        error.operator = operator
    error.add_note(where)


class ConversionError(LiteclError):
    """A TensorFlow graph cannot be expressed as a .tflite file."""


class MissingExtra(LiteclError, ImportError):
    """A package that a part of litecl needs is not installed; the message says how to install it."""


class DelegateError(LiteclError, RuntimeError):
    """A device cannot do its work."""


class ContentLost(DelegateError):
    """A device failed while it overwrote tensors that stay there (``DeviceTensor``): their values are lost."""


class DelegateNotFound(DelegateError, ValueError, OSError):
    """``load_delegate`` got an unknown name."""


class DeviceNotFound(DelegateError, ValueError):
    """A requested device does not exist, or several match its name."""


class KernelBuildError(DelegateError):
    """A kernel does not compile for a device; the message holds the build log."""


class OutOfDeviceMemory(DelegateError):
    """A device refuses an allocation."""


class DifferenceWarning(UserWarning):
    """Warns of a model that LiteRT computes differently from litecl, by a fault of LiteRT's."""
