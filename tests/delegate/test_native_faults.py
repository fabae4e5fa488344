"""Failures of the requests of ``native`` to the system: the answer is right, or a typed error is reported.

``PYTHONPATH=tests python -m tools.faults native`` tries every call of every model and mode.
"""

from pathlib import Path

import pytest

from litecl.delegate.native import compiler
from support.fault_models import subjects
from support.native_faults import judge, places

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
_COMPILING = ("Popen", "run", "open", "replace", "CDLL")
SUBJECTS = {subject.name: subject for subject in subjects()}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for programs."""
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize(
    ("name", "mode", "how"),
    [
        ("lstm", "one thread", "strict"),
        *(
            pytest.param(*combination, marks=pytest.mark.nightly)
            for combination in (
                ("image", "threads", "fallback"),
                ("limited loop", "queued", "interrupt"),
                ("two LSTMs", "profile", "interrupt"),
                ("variables", "one thread", "fallback"),
                ("image", "new cache", "fallback"),
                ("image", "uncached", "interrupt"),
            )
        ),
    ],
)
def test_a_call_that_fails(name: str, mode: str, how: str, kept: Path) -> None:
    """The last call of each name, where nothing is compiled; else of a few."""
    by_name = {place.name: place for place in places(SUBJECTS[name], mode, how, kept)}
    tried = [by_name[name] for name in by_name if mode not in ("new cache", "uncached") or name in _COMPILING]
    wrong = {str(place): text for place in tried if (text := judge(place, kept))}
    assert len(tried) > 2
    assert not wrong
