// @MODEL@ for the web and Node, made by litecl. Arrays are flat, row-major.

export interface Inputs {
@INPUTS@}

export interface Outputs {
@OUTPUTS@}

/** A tensor: the elements' type, shape and number; of a quantized one real = scale * (q - zeroPoint). */
export interface Tensor {
    readonly type: string;
    readonly array: string;
    readonly shape: readonly number[];
    readonly size: number;
    readonly scale?: number;
    readonly zeroPoint?: number;
}

export declare class Model {
    private constructor();
    readonly inputs: Readonly<Record<keyof Inputs, Tensor>>;
    readonly outputs: Readonly<Record<keyof Outputs, Tensor>>;
    /** Runs the model; rejects with a TypeError for other inputs, and with a RangeError if a loop runs too often. */
    run(inputs: Inputs): Promise<Outputs>;
    /** Sets all states as before the first run. */
    reset(): void;
}

/** Loads the model: from a URL, bytes, or a module; by default from model.wasm beside the script. */
export declare function load(source?: string | URL | ArrayBuffer | ArrayBufferView | WebAssembly.Module): Promise<Model>;
