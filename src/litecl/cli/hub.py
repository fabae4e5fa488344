"""Fetches models from the Hugging Face Hub into its cache, by ``hf://OWNER/REPOSITORY[@REVISION]/FILE``."""

import re
from pathlib import Path

from litecl.interpreter.errors import ModelFileError

_NAME = re.compile(r"hf://(?P<repo_id>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?/(?P<filename>.+)")


def is_hub(name: str) -> bool:
    """Return whether a name refers to the Hub, not to a path."""
    return name.startswith("hf:/")


def fetched(name: str) -> Path:
    """Fetch a model from the Hub; return the local file. Raises ModelFileError."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ModelFileError(f"{name}: expected hf://OWNER/REPOSITORY/FILE.tflite, with @REVISION if need be")
    try:
        from huggingface_hub import hf_hub_download
    except ModuleNotFoundError as error:
        raise ModelFileError(f"{name}: files of the Hub need huggingface_hub: pip install 'litecl[hf]'") from error
    try:
        return Path(hf_hub_download(**match.groupdict()))
    except Exception as error:  # many kinds, from no network to no such file
        raise ModelFileError(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}") from error
