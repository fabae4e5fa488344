"""Models exported for the web, run by Node or by a browser."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litecl.delegate.export.draft import draft
from litecl.delegate.export.machines import WEB
from litecl.delegate.export.web import web_files
from litecl.interpreter.graph import Array, TensorSpec
from support.browser import Browser
from support.exported import Step

NODE = shutil.which("node")

_STEPS = """
/** Runs a model in steps; returns the outputs of every run as types and lists, or its error. */
export const outcomes = async (model, steps) => {
    const results = [];
    for (const step of steps) {
        if (step === "reset") {
            model.reset();
            continue;
        }
        const [key, values] = step;
        const { inputs } = model.signatures[key === "" ? Object.keys(model.signatures)[0] : key] ?? {};
        const given = Object.fromEntries(Object.entries(values).map(([name, elements]) => {
            const array = inputs?.[name]?.array ?? "Float32Array";
            return [name, globalThis[array].from(elements, array.startsWith("Big") ? BigInt : Number)];
        }));
        try {
            const outputs = await model.run(given, key === "" ? undefined : key);
            results.push(Object.values(outputs).map((array) => [array.constructor.name, Array.from(array, Number)]));
        } catch (error) {
            results.push(String(error));
        }
    }
    return results;
};
"""
_IN_NODE = """
import { readFileSync, writeFileSync } from "node:fs";
import { load } from "./model.mjs";
import { outcomes } from "./steps.mjs";
const results = await outcomes(await load(), JSON.parse(readFileSync("steps.json")));
writeFileSync("results.json", JSON.stringify(results));
"""
_IN_BROWSER = """
import { load } from "./model.mjs";
import { outcomes } from "./steps.mjs";
export default async () => outcomes(await load(), await (await fetch(new URL("./steps.json", import.meta.url))).json());
"""


class WebModule:
    """A model exported for the web. browser: what runs it; by default Node does."""

    def __init__(
        self,
        model: Any,
        folder: Path,
        browser: Browser | None = None,
        relaxed: bool = False,
        apart: bool = False,
        **given: Any,
    ) -> None:
        self.model, self.folder, self.drawn = model, folder, draft(model, WEB, **given)
        self.images = self.drawn.images
        self._browser = browser
        texts = {"steps.mjs": _STEPS, "node.mjs": _IN_NODE, "browser.mjs": _IN_BROWSER}
        made = web_files(self.drawn, "test.tflite", relaxed=relaxed, apart=apart)
        files = {name: text.encode() for name, text in texts.items()} | made
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def outcomes(self, steps: Sequence[Step]) -> list[Any]:
        """Return the outputs of every run as types and lists, or its error."""
        sent = [step if isinstance(step, str) else (step[0], _lists(step[1])) for step in steps]
        (self.folder / "steps.json").write_text(json.dumps(sent))
        if self._browser is not None:
            return list(self._browser.run(self.folder, "browser.mjs"))
        subprocess.run([str(NODE), "node.mjs"], cwd=self.folder, check=True, timeout=60)
        outcomes: list[Any] = json.loads((self.folder / "results.json").read_text())
        return outcomes

    def run(self, steps: Sequence[Step]) -> list[tuple[int, list[Array]]]:
        """See ``CProgram.run``."""
        keys = [step[0] for step in steps if not isinstance(step, str)]
        results = []
        for key, outcome in zip(keys, self.outcomes(steps), strict=True):
            assert not isinstance(outcome, str), outcome
            found = zip(outcome, self.images[key].outputs, strict=True)
            results.append((0, [_array(values, port.spec) for (_, values), port in found]))
        return results


def _array(values: Sequence[float], spec: TensorSpec) -> Array:
    """Return an output as an array; complex numbers come as pairs."""
    elements = np.array(values, np.float32).view(spec.dtype) if spec.dtype.kind == "c" else np.array(values, spec.dtype)
    return elements.reshape(spec.static_shape)


def _lists(values: Mapping[str, Array]) -> dict[str, list[float]]:
    return {name: value.ravel().tolist() for name, value in values.items()}
