// @MODEL@ for the web and Node, made by litecl. Arrays are typed and flat, row-major, in the shapes below.

/** Inputs and outputs by signature and name. A quantized tensor has scale and zeroPoint: real = scale * (q - zeroPoint). */
const SIGNATURES = {
@SIGNATURES@};
const KEYS = Object.keys(SIGNATURES);
const LIMIT = @LIMIT@;
const RELAXED = @RELAXED@; // what model.relaxed.wasm, if there is one, asks of an engine with relaxed SIMD
const MARK = @MARK@; // of all files of an export
const WEIGHTS = @WEIGHTS@; // bytes of model.weights, if weights are apart
const ARRAYS = { Float32Array, Int8Array, Uint8Array, Int16Array, Int32Array, BigInt64Array };

/** A loaded model. Its states stay from run to run. */
export class Model {
    #exports;
    signatures = SIGNATURES;

    constructor(instance) {
        this.#exports = instance.exports;
    }

    /** The inputs of a model of one signature, by name. */
    get inputs() {
        return signature_of(undefined).inputs;
    }

    /** The outputs of a model of one signature, by name. */
    get outputs() {
        return signature_of(undefined).outputs;
    }

    /** Runs a signature, the only one by default, on arrays by name; resolves to the outputs by name, as new arrays. */
    async run(given = {}, key = undefined) {
        const { inputs, outputs } = signature_of(key);
        for (const name of Object.keys(given)) {
            if (!Object.hasOwn(inputs, name)) {
                throw new TypeError(`there is no input "${name}": expected ${Object.keys(inputs).join(", ")}`);
            }
        }
        for (const [name, tensor] of Object.entries(inputs)) check(name, tensor, given[name]);
        const number = key === undefined ? 0 : KEYS.indexOf(key);
        this.#exports.model_ready(number);
        for (const [name, tensor] of Object.entries(inputs)) this.#view(tensor).set(given[name]);
        if (this.#exports.model_run(number) !== 0) throw new RangeError(LIMIT);
        return Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, this.#view(tensor).slice()]));
    }

    /** Sets all states as before the first run. */
    reset() {
        this.#exports.model_reset();
    }

    #view({ array, memory, offset, size }) {
        const exports = this.#exports;
        const start = memory === "arena" ? exports.model_arena() : exports.model_constants();
        return new ARRAYS[array](exports.memory.buffer, start + offset, size);
    }
}

function signature_of(key) {
    if (key === undefined && KEYS.length === 1) return SIGNATURES[KEYS[0]];
    if (KEYS.includes(key)) return SIGNATURES[key];
    throw new TypeError(`there is no signature ${key}: expected ${KEYS.join(", ")}`);
}

function check(name, { array, shape, size }, value) {
    if (value instanceof ARRAYS[array] && value.length === size) return;
    const got = value === undefined ? "nothing" : `${value?.constructor?.name} of ${value?.length}`;
    throw new TypeError(`input "${name}": expected a ${array} of ${size} elements for [${shape}], got ${got}`);
}

// (module (func (export "dot") (param i32 i32) (result i32): of i8x16.splats the relaxed product of bytes, lane 0
const PROBE = "AGFzbQEAAAABBwFgAn9/AX8DAgEABwcBA2RvdAAAChYBFAAgAP0PIAH9D0EA/RH9kwL9GwAL";

/** The module for this engine: its relaxed products of bytes are those of signed by unsigned ones, or are not used. */
function best() {
    const bytes = Uint8Array.from(atob(PROBE), (c) => c.charCodeAt(0));
    if (RELAXED === "" || !WebAssembly.validate(bytes)) return "./model.wasm";
    const { dot } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
    const are_mixed = [127, -128, 1].every((a) => [255, 128, 127, 1].every((b) => dot(a, b) === 4 * a * b));
    return RELAXED === "any" || are_mixed ? "./model.relaxed.wasm" : "./model.wasm";
}

/**
 * Loads the model. source: model.wasm as a URL, its bytes, or a WebAssembly.Module; by default the file beside this one
 * that suits the engine best. weights: model.weights, if they are apart, as a URL or its bytes.
 */
export async function load(
    source = new URL(best(), import.meta.url), weights = new URL("./model.weights", import.meta.url),
) {
    const [{ module, instance }, content] = await Promise.all([instantiated(source), WEIGHTS && opened(weights)]);
    const [section] = WebAssembly.Module.customSections(module, "litecl");
    if (section === undefined || new TextDecoder().decode(section) !== MARK) {
        throw new Error("the module is not of the same export as model.mjs");
    }
    if (WEIGHTS) await fill(instance.exports, content);
    return new Model(instance);
}

/** A module and its instance; compiled while it is fetched, if the server says that it is application/wasm. */
async function instantiated(source) {
    if (source instanceof WebAssembly.Module) {
        return { module: source, instance: await WebAssembly.instantiate(source) };
    }
    const opening = await opened(source);
    if (opening instanceof Response && opening.headers.get("Content-Type")?.startsWith("application/wasm")) {
        return WebAssembly.instantiateStreaming(opening);
    }
    return WebAssembly.instantiate(opening instanceof Response ? await opening.arrayBuffer() : opening);
}

/** A file as a response, or as bytes. */
async function opened(source) {
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
    const url = new URL(source, import.meta.url);
    if (url.protocol === "file:") {
        const { readFile } = await import("node:fs/promises");
        return readFile(url);
    }
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    return response;
}

/** Writes weights to memory as they come. */
async function fill({ memory, model_constants }, content) {
    const [head, to] = [new Uint8Array(64), new Uint8Array(memory.buffer, model_constants(), WEIGHTS)];
    let size = 0;
    const add = (bytes) => {
        if (size < head.length) head.set(bytes.subarray(0, head.length - size), size);
        const rest = bytes.subarray(Math.max(0, head.length - size));
        const at = Math.max(0, size - head.length);
        to.set(rest.subarray(0, Math.max(0, to.length - at)), Math.min(at, to.length));
        size += bytes.length;
    };
    if (content instanceof Response) {
        const reader = content.body.getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) add(part.value);
    } else add(ArrayBuffer.isView(content) ? new Uint8Array(content.buffer, content.byteOffset, content.byteLength)
        : new Uint8Array(content));
    if (new TextDecoder().decode(head).trimEnd() !== MARK || size !== head.length + WEIGHTS) {
        throw new Error("the weights are not of the same export as model.mjs, or not complete");
    }
}
