"""What a conversion tells: the report, and the graph after every pass."""

from pathlib import Path
from typing import Any

import pytest

keras = pytest.importorskip("keras")

from litecl.converter import Converter  # noqa: E402
from litecl.converter.dump import Dump  # noqa: E402
from litecl.converter.graph import Module  # noqa: E402
from support.keras_models import randomise, stack  # noqa: E402

L = keras.layers


def _model() -> Any:
    return randomise(stack(L.LSTM(4), L.Dense(3, activation="relu"), shape=(6, 3), batch_size=1))


def test_report() -> None:
    converter = Converter.from_keras_model(_model())
    content = converter.convert()
    report = converter.report
    assert report.size_bytes == len(content)
    assert report.operators["UNIDIRECTIONAL_SEQUENCE_LSTM"] == report.operators["FULLY_CONNECTED"] == 1
    assert report.subgraphs == [sum(report.operators.values())]
    assert [(fusion.name, fusion.made) for fusion in report.fusions] == [("LSTM", True)]
    assert {"inline_calls", "lower", "merge_duplicates"} <= set(report.passes)
    assert all(seconds >= 0 for seconds in report.passes.values())
    assert "1 UNIDIRECTIONAL_SEQUENCE_LSTM" in str(report)
    assert report.to_dict()["fusions"][0]["reason"] is None


def test_dump_of_passes(tmp_path: Path) -> None:
    names: list[str] = []
    dump = Dump(tmp_path / "passes")

    def observe(name: str, module: Module) -> None:
        names.append(name)
        dump(name, module)

    Converter.from_keras_model(_model(), lstm="while").convert(observe)
    files = sorted((tmp_path / "passes").iterdir())
    assert 5 < len(files) < len(names)
    first, last = files[0].read_text(), files[-1].read_text()
    assert "While(" in first
    assert "WHILE" in last
    assert "GATHER" in last
    assert all(file.stem[4:] in names for file in files)
