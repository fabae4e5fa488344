"""Every operator case, as a file, and what is expected of it."""

from functools import cache

from litecl.cases import Case
from litecl.cases.tables import TABLES
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from support import oracle

CASES = tuple(case for table in TABLES for case in table.CASES)
DEVICE_CASES = tuple(case for case in CASES if case.op in CL_OPS)


@cache
def content(case: Case) -> bytes:
    """The case as a file."""
    return write(case.model())


@cache
def expected(case: Case) -> list[Array]:
    """Return what the reference kernels make of it, or those that the case names."""
    return oracle.run(content(case), case.feeds, oracle.RESOLVERS[case.kernels])
