"""Models of the Hugging Face Hub by name, ``hf://OWNER/REPOSITORY[@REVISION]/FILE``, fetched once into its cache."""

import re
from pathlib import Path

from litecl.interpreter.errors import ModelFileError

_NAME = re.compile(r"hf://(?P<repo_id>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?/(?P<filename>.+)")


def is_hub(name: str) -> bool:
    """Return whether a name is on the Hub, and not a path."""
    return name.startswith("hf:/")


def fetched(name: str) -> Path:
    """Return the local file of a model of the Hub. Raises ModelFileError, which says what is missing."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ModelFileError(f"{name}: expected hf://OWNER/REPOSITORY/FILE.tflite, with @REVISION if need be")
    try:
        from huggingface_hub import hf_hub_download
    except ModuleNotFoundError as error:
        raise ModelFileError(f"{name}: pip install 'litecl[hf]'") from error
    try:
        return Path(hf_hub_download(**found.groupdict()))
    except Exception as error:  # of many kinds, from no network to no such file
        raise ModelFileError(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}") from error
