"""Finds the operator behind a wrong result: ``litecl.bisect`` and ``litecl bisect``."""

from litecl.bisection.case import write_case as write_case
from litecl.bisection.find import Bisection as Bisection
from litecl.bisection.find import bisect as bisect
