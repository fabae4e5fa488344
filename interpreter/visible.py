"""Text from files, safe to show: characters that control a terminal, or hide or reorder text, are escaped."""

import re

# C0, DEL and C1; invisible marks; line separators; direction overrides; tags; lone surrogates.
_CONTROLS = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f\ud800-\udfff"
)
_IN_A_LINE = f"[{_CONTROLS}]"  # compiled on first use
_IN_LINES = rf"(?![\n\t])[{_CONTROLS}]"


def visible(text: str) -> str:
    """Return a one-line text such as a name, with control characters as Python escapes them: ``\\x1b``."""
    return re.sub(_IN_A_LINE, _escaped, text)


def visible_lines(text: str) -> str:
    """Return a text that keeps line breaks and tabs; see ``visible``."""
    return re.sub(_IN_LINES, _escaped, text)


def _escaped(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()
