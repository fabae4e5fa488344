"""``litecl cache``: shows, limits or empties the cache on disk."""

import argparse
from typing import Any

from rich.text import Text

from litecl.cli.command import Output, folder
from litecl.cli.tables import size, table
from litecl.delegate import disk

HELP = "show, limit or empty the cache on disk"
EXAMPLES = """\
litecl cache                        # folders, files and sizes
litecl cache --limit 200M
litecl cache --clean                # remove programs; keep measurements
litecl cache --cache /var/cache/litecl --json
"""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "--cache", type=folder, metavar="DIR", help="folder of compiled programs (default: the user's cache)"
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--clean", action="store_true", help="remove programs; keep measurements")
    change.add_argument(
        "--limit",
        type=_bytes,
        metavar="SIZE",
        help="limit the size, for example to 200M; the least recently used programs go first",
    )


def run(args: argparse.Namespace) -> Output:
    """Show the folder, after cleaning or limiting it if requested."""
    own = disk.own(args.cache or "auto")
    removed = disk.trim(own, 0) if args.clean else 0
    if args.limit is not None:
        disk.set_limit(own, args.limit)
        removed = disk.trim(own, args.limit)
    stuck = len(disk.files(own)) if args.clean else 0
    others = disk.others(own)
    row = {"kept": "programs", "folder": str(own), "files": len(disk.files(own))}
    row |= {"size_bytes": disk.size_bytes(own), "limit_bytes": disk.limit(own), "others": others}
    rows = table("kept", "folder", "files", "size", "limit")
    rows.add_row("programs", str(own), str(row["files"]), size(disk.size_bytes(own)), size(disk.limit(own)))
    view: list[Any] = [rows] + ([Text(f"removed {size(removed)}")] if args.clean or args.limit is not None else [])
    if stuck:
        view.append(Text(f"{stuck} files could not be removed: the folder cannot be written", "bold red"))
    if others:
        view.append(Text(f"left alone in this folder: {', '.join(others)}"))
    return Output({"folders": [row], "removed_bytes": removed}, view, int(stuck > 0))


def _bytes(text: str) -> int:
    """Parse a size such as 200M."""
    unit = text[-1:].upper() if not text[-1:].isdecimal() else ""
    number = text[: len(text) - len(unit)]
    if unit not in _UNITS or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a size such as 200M or 1G, got {text!r}")
    return int(number) * _UNITS[unit]
