"""Which operators LiteRT's packages run; tests compare this with the package."""

_NOT_IN_TFLITE = """
    CALL CONCAT_EMBEDDINGS STABLEHLO_LOGISTIC STABLEHLO_DIVIDE STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
    STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
    STABLEHLO_ABS STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_NEGATE STABLEHLO_OR
    STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH
    STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_IOTA
    STABLEHLO_DOT_GENERAL STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_TRANSPOSE STABLEHLO_CBRT
"""
NOT_IN_TFLITE = frozenset(_NOT_IN_TFLITE.split())
"""Builtin operators of the schema that LiteRT's interpreter has no kernel for."""

CUSTOM_IN_TFLITE = frozenset(
    {
        *("TFLite_Detection_PostProcess", "AudioSpectrogram", "Mfcc", "NumericVerify", "aeq.hadamard_rotation"),
        *("moe", "odml.scaled_dot_product_attention"),  # XNNPACK runs these
        *("odml.update_kv_cache", "odml.update_external_kv_cache"),  # a program registers these
    }
)
"""Custom operators for which LiteRT's packages have kernels."""
