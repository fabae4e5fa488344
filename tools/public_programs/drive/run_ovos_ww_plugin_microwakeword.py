import sys

from helper import keep, model, spoken, stub

stub("ovos_plugin_manager", "ovos_plugin_manager.templates", "ovos_utils", "ovos_utils.log", "ovos_utils.xdg_utils")
stub("ovos_utils.file_utils", "ovos_config", "ovos_config.locations", "ovos_plugin_manager.templates.hotwords")
sys.modules["ovos_plugin_manager.templates.hotwords"].HotWordEngine = object
from ovos_ww_plugin_microwakeword.inference import MicroWakeWordEngine

for name in ("hey_jarvis", "okay_nabu"):
    engine = MicroWakeWordEngine(model(f"esphome-micro-wake-word-models/{name}.tflite"))
    keep(name, engine.process_audio(spoken(2).tobytes()))
