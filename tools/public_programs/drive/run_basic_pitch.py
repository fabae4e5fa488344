from helper import RNG, keep, stub

stub("librosa", "resampy", "pretty_midi", "mir_eval", "scipy", "scipy.signal", "scipy.io", "scipy.interpolate")
from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
from basic_pitch.inference import Model

model = Model(build_icassp_2022_model_path(FilenameSuffix.tflite))
for name, value in model.predict((RNG.standard_normal((1, 43844, 1)) * 0.1).astype("float32")).items():
    keep(name, value)
