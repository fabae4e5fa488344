import runpy
import sys

import numpy as np
from helper import PROGRAM, RNG, keep, model, stub

train, measures = stub("h5py", "keras_model", "sklearn", "train"), stub("eval_functions_eembc")
images = RNG.integers(0, 256, (40, 32, 32, 3)).astype("uint8")
labels = np.eye(10)[RNG.integers(0, 10, 40)]
train.load_cifar_10_data = lambda folder: (None, None, None, images, np.arange(40), labels, list("0123456789"))
measures.calculate_accuracy = lambda predictions, classes: keep("predictions", predictions)
stub("sklearn.metrics").roc_auc_score = lambda truth, predictions: 0
np.save("perf_samples_idxs.npy", np.arange(20))
sys.argv = ["tflite_test.py", model("mlcommons-tiny/pretrainedResnet_quant.tflite")]
runpy.run_path(str(PROGRAM), run_name="__main__")
