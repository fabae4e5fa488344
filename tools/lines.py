"""Lines of code by room, and their change since the last tag or a given commit.

    PYTHONPATH=tests python -m tools.lines [COMMIT]

A room is a folder of Python, C or OpenCL C. Blank lines and comments count: a reader meets them too.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
_SUFFIXES = {".py", ".cl", ".c", ".h", ".sh"}
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for no files


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def lines_by_room(commit: str) -> Counter[str]:
    """Return how many lines each folder of a commit has."""
    counts: Counter[str] = Counter()
    for row in _git("diff", "--numstat", "--no-renames", _EMPTY_TREE, commit).splitlines():
        added, _, name = row.split("\t")
        path = PurePosixPath(name)
        if path.suffix in _SUFFIXES:
            counts[str(path.parent)] += int(added)
    return counts


def _part(room: str) -> str:
    """Return whether a room is of the source, of the tests or of the tools beside them."""
    if room.startswith("tests/tools"):  # where they were
        return "tools"
    top = room.split("/")[0]
    return top if top in ("tests", "tools") else "source"


def main() -> None:
    """Print a line for each room, and the totals of source, tests and tools."""
    tag = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, check=False, capture_output=True, text=True
    ).stdout.strip()
    since = sys.argv[1] if len(sys.argv) > 1 else tag
    now = lines_by_room("HEAD")
    before = lines_by_room(since) if since else now
    for room in sorted({*now, *before}):
        print(f"{now[room]:7,} {now[room] - before[room]:+7,}  {room}")
    for label in ("source", "tests", "tools"):
        total, earlier = (
            sum(count for room, count in counts.items() if _part(room) == label) for counts in (now, before)
        )
        reference = f"since {since}" if since else "no tag to compare with"
        print(f"{total:7,} {total - earlier:+7,}  {label}, {reference}")


if __name__ == "__main__":
    main()
