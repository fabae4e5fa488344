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
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ModuleNotFoundError as error:
        raise ModelFileError(f"{name}: files of the Hub need huggingface_hub: pip install 'litecl[hf]'") from error
    wanted, unreachable = match.groupdict(), None
    try:  # since hf_hub_download asks a Hub that is out of reach for half a minute
        get_hf_file_metadata(hf_hub_url(**wanted))
    except HfHubHTTPError:
        pass  # an answer, which hf_hub_download knows how to treat
    except Exception as error:
        unreachable = error
    try:
        return Path(hf_hub_download(**wanted, local_files_only=unreachable is not None))
    except LocalEntryNotFoundError as error:
        why = f"the Hub cannot be reached ({unreachable or error})"
        raise ModelFileError(f"{name}: {why}, and its cache on this machine has no such file") from error
    except Exception as error:  # many kinds, such as no such file
        raise ModelFileError(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}") from error
