"""The errors that litecl raises, for programs that catch them: ``except litecl.errors.DelegateError``.

``litecl.interpreter.errors`` defines and describes them.
"""

from litecl.interpreter.errors import ArgumentError as ArgumentError
from litecl.interpreter.errors import ContentLost as ContentLost
from litecl.interpreter.errors import ConversionError as ConversionError
from litecl.interpreter.errors import DelegateError as DelegateError
from litecl.interpreter.errors import DelegateNotFound as DelegateNotFound
from litecl.interpreter.errors import DeviceNotFound as DeviceNotFound
from litecl.interpreter.errors import DifferenceWarning as DifferenceWarning
from litecl.interpreter.errors import KernelBuildError as KernelBuildError
from litecl.interpreter.errors import LimitError as LimitError
from litecl.interpreter.errors import LiteclError as LiteclError
from litecl.interpreter.errors import MissingExtra as MissingExtra
from litecl.interpreter.errors import ModelError as ModelError
from litecl.interpreter.errors import ModelFileError as ModelFileError
from litecl.interpreter.errors import ModelFileNotFound as ModelFileNotFound
from litecl.interpreter.errors import OutOfDeviceMemory as OutOfDeviceMemory
from litecl.interpreter.errors import ShapeError as ShapeError
from litecl.interpreter.errors import UnsupportedOp as UnsupportedOp
