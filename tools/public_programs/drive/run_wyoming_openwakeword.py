import asyncio
from pathlib import Path
from threading import Thread

from helper import PROGRAM, keep, spoken, stub

stub("wyoming", "wyoming.wake", "wyoming.server")
from wyoming_openwakeword.const import ClientData, WakeWordData
from wyoming_openwakeword.openwakeword import embeddings_proc, mels_proc, ww_proc
from wyoming_openwakeword.state import State, WakeWordState

WORDS = ("alexa", "hey_jarvis", "ok_nabu")
models = PROGRAM / "wyoming_openwakeword" / "models"
Path("client.txt").unlink(missing_ok=True)
state = State(models_dir=models, output_dir=Path.cwd(), debug_probability=True)
client = ClientData(event_handler=None, wake_words={word: WakeWordData(threshold=2) for word in WORDS})
clip = spoken(4).astype("float32")
client.audio[-len(clip) :] = clip
client.new_audio_samples = len(clip)
state.clients["client"] = client
state.wake_words = {word: WakeWordState() for word in WORDS}
loop = asyncio.new_event_loop()


class Once:
    """Lets a thread of the server take all that waits for it, and then ends it."""

    turns = 0

    def acquire(self):
        self.turns += 1
        state.is_running = self.turns == 1

    def release(self):
        pass


def finish(stage, *arguments):
    state.is_running = True
    thread = Thread(target=stage, args=(state, *arguments))
    thread.start()
    thread.join()


state.audio_ready, state.mels_ready = Once(), Once()
finish(mels_proc)
finish(embeddings_proc)
for word in WORDS:
    state.wake_words[word].embeddings_ready = Once()
    finish(ww_proc, word, models / f"{word}_v0.1.tflite", loop)
keep("mels", client.mels)
for word in WORDS:
    keep(f"{word} embeddings", client.wake_words[word].embeddings)
lines = [line.split() for line in Path("client.txt").read_text().splitlines()]
keep("words", [line[1] for line in lines])
keep("probabilities", [float(line[2]) for line in lines])
