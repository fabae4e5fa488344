from helper import RNG, keep, model, stub

stub("librosa", "soundfile", "scipy", "scipy.io", "scipy.io.wavfile", "colortimelog").timefunc = lambda function: (
    function
)
from wav2x import fe_utils

interpreter = fe_utils.load_tflite_model(model("breizhn-DTLN/model_1.tflite"))
fe_utils.print_model_info(interpreter)
states = [RNG.standard_normal(interpreter.get_input_details()[1]["shape"]).astype("float32") * 0]
for step in range(4):
    mask, states = fe_utils.run_multi_input_model_one_step(
        interpreter, RNG.random((1, 1, 257), dtype="float32"), states
    )
    keep(f"mask {step}", mask)
    keep(f"state {step}", states[0])
