"""Commands and scripts for developers, and what makes the outside world fail. No tests."""
