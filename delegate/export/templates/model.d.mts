// @MODEL@ for the web and Node, made by litecl. Arrays are flat, row-major.

export interface Signatures {
@SIGNATURES@}

export type Key = keyof Signatures;
export type Inputs<K extends Key = Key> = Signatures[K]["inputs"];
export type Outputs<K extends Key = Key> = Signatures[K]["outputs"];

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
    readonly signatures: {
        readonly [K in Key]: {
            readonly inputs: Readonly<Record<keyof Inputs<K>, Tensor>>;
            readonly outputs: Readonly<Record<keyof Outputs<K>, Tensor>>;
        };
    };
    /** The tensors of a model of one signature; a TypeError with several. */
    readonly inputs: Readonly<Record<keyof Inputs, Tensor>>;
    readonly outputs: Readonly<Record<keyof Outputs, Tensor>>;
    /**
     * Runs a signature, which must be named if there are several. Rejects with a TypeError for other inputs, and with a
     * RangeError if a loop runs too often.
     */
    run<K extends Key>(inputs: Inputs<K>, key?: K): Promise<Outputs<K>>;
    /** Sets all states as before the first run. */
    reset(): void;
}

type Source = string | URL | ArrayBuffer | ArrayBufferView;

/**
 * Loads the model: from a URL, bytes, or a module, by default from the file beside the script that suits the engine
 * best. weights: model.weights, if they are apart.
 */
export declare function load(source?: Source | WebAssembly.Module, weights?: Source): Promise<Model>;
