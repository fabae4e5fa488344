"""Times exported models and LiteRT.js in one page of headless Chromium, one thread each.

Usage: npm install --prefix DIR @litertjs/core
       PYTHONPATH=tests python -m tools.web_times --litertjs DIR [--under "taskset -c 1"] [--relaxed-simd] FILE...

Prints a line a model: the medians of runs in turns, with the copies of inputs and outputs, then of the times in fresh
pages from the first fetch to the first result; in milliseconds, ours / LiteRT.js's.
"""

import argparse
import gzip
import json
import re
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from litecl.interpreter.errors import LiteclError
from support.browser import Browser
from support.web_module import WebModule

_RUNS, _PAGES = 60, 5
_MODULE = """
import { load } from "./model.mjs";
import { loadAndCompile, loadLiteRt, Tensor } from "./litert/index.js";

const at = (name) => new URL(name, import.meta.url);
let inputs;

const random = ({ array, size }) => {
    if (array === "BigInt64Array") return new BigInt64Array(size);
    return globalThis[array].from({ length: size }, array === "Float32Array" ? Math.random : () => Math.random() * 255);
};

/** Loads the export; returns a function that runs it once. */
const litecl = async () => {
    const model = await load();
    const key = Object.keys(model.signatures)[0];
    const tensors = model.signatures[key].inputs;
    inputs ??= Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, random(tensor)]));
    return async () => Object.values(await model.run(inputs, key));
};

/** The same by LiteRT.js. */
const litert = async () => {
    await loadLiteRt(String(at("./litert/wasm/")), { threads: false });
    const model = await loadAndCompile(String(at("./model.tflite")), { accelerator: "wasm" });
    const details = model.getInputDetails();
    const arrays = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array, int8: Int8Array };
    const given = inputs === undefined || details.length > 1 ? undefined : Object.values(inputs)[0];
    const values = details.map(({ shape, dtype }) => {
        const size = shape.reduce((a, b) => a * b, 1);
        return given?.length === size ? given : new arrays[dtype](size).map(Math.random);
    });
    return async () => {
        const tensors = values.map((value, i) => new Tensor(value, details[i].shape));
        const results = await model.run(tensors);
        const outputs = results.map((result) => result.toTypedArray().slice());
        [...tensors, ...results].forEach((tensor) => tensor.delete());
        return outputs;
    };
};

const KINDS = { litecl, litert };
const now = () => performance.now();

/** The time to the first result. */
const first = async (name) => {
    const start = now();
    await (await KINDS[name]())();
    return now() - start;
};

/** The medians of runs in turns. */
const turns = async (count) => {
    const results = {}, runs = {};
    for (const [name, make] of Object.entries(KINDS)) {
        try {
            runs[name] = await make();
            for (let i = 0; i < 4; ++i) {
                for (const start = now(); now() - start < 150;) await runs[name]();
                await new Promise((resolve) => setTimeout(resolve, 100));  // the compiler's threads need time
            }
            results[name] = [];
        } catch (error) {
            results[name] = String(error);
            delete runs[name];
        }
    }
    for (let i = 0; i < count; ++i) {
        for (const [name, run] of Object.entries(runs)) {
            // short runs several times: the clock of a page has steps
            let start = now(), n = 0;
            do { await run(); ++n; } while (now() - start < 2);
            results[name].push((now() - start) / n);
        }
    }
    return results;
};
const task = %s;
export default () => task.first ? first(task.first) : turns(task.turns);
"""


def _litert(source: Path, folder: Path) -> None:
    """Put LiteRT.js where a page finds it without a bundler."""
    package = source / "node_modules" / "@litertjs"
    folder.mkdir()
    (folder / "wasm").symlink_to(package / "core" / "wasm")
    shutil.copy(package / "wasm-utils" / "dist" / "bundle.js", folder / "utils.js")
    text = (package / "core" / "dist" / "index.js").read_text()
    (folder / "index.js").write_text(re.sub('"@litertjs/wasm-utils"', '"./utils.js"', text))


def _run(browser: Browser, folder: Path, **task: Any) -> Any:
    (folder / "times.mjs").write_text(_MODULE % json.dumps(task))
    return browser.run(folder, "times.mjs")


def _line(browser: Browser, litert: Path, model: Path, relaxed: bool) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = WebModule(model, folder, browser, relaxed)
        shutil.copy(model, folder / "model.tflite")
        _litert(litert, folder / "litert")
        turns = _run(browser, folder, turns=_RUNS)
        taken = [kind for kind, times in turns.items() if not isinstance(times, str)]
        firsts = {kind: [_run(browser, folder, first=kind) for _ in range(_PAGES)] for kind in taken}
        module = (folder / "model.wasm").read_bytes()
    wire, constants = len(gzip.compress(module)), len(gzip.compress(made.drawn.constants))
    texts = [f"{wire / 1000:.0f} kB by gzip, {(wire - constants) / 1000:.0f} of it code"]
    for name, times in (("run", turns), ("first", firsts)):
        if all(kind in taken for kind in ("litecl", "litert")):
            ours, theirs = median(times["litecl"]), median(times["litert"])
            texts.append(f"{name} {ours:.4g} / {theirs:.4g} = {theirs / ours:.2f}")
        elif "litecl" in taken:
            texts.append(f"{name} {median(times['litecl']):.4g}")
    texts += [f"{kind}: {said}" for kind, said in turns.items() if kind not in taken]
    return "; ".join(texts)


def main() -> None:
    """Print a line a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--litertjs", type=Path, required=True, help="the folder where npm installed it")
    parser.add_argument("--under", default="", help="a command that starts the browser")
    parser.add_argument("--relaxed-simd", action="store_true", help="as litecl export does")
    parser.add_argument("models", nargs="+", type=Path)
    args = parser.parse_args()
    with Browser(args.under.split()) as browser:
        for model in args.models:
            try:
                line = _line(browser, args.litertjs, model, args.relaxed_simd)
            except (LiteclError, RuntimeError, TimeoutError) as error:
                line = f"{type(error).__name__}: {error}"
            print(f"{model}: {line}", flush=True)


if __name__ == "__main__":
    main()
