"""Variables, loops and branches made simple, effects refused that no file can have; nothing about what they compute."""
