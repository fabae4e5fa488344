"""Every operator case as a file, with its expected outputs."""

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
    """Return the case as a file."""
    return write(case.model())


@cache
def expected(case: Case) -> list[Array]:
    """Return its outputs from LiteRT's reference kernels, or from the kernels that the case names."""
    return oracle.run(content(case), case.feeds, oracle.RESOLVERS[case.kernels])
