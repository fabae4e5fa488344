"""Shows the effect of half precision on a model, as a table and as JSON."""

from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from litecl.bisection.survey import Finding, Survey
from litecl.cli.tables import line, lines, number, table, titled
from litecl.delegate.claim.options import KeptNode


def halves_data(survey: Survey) -> dict[str, Any]:
    """Return a survey as plain data: every node, with its problems as text."""
    findings = [asdict(finding) | {"what": [*finding.what(survey.share)]} for finding in survey.findings]
    return {**asdict(survey), "findings": findings}


def halves_view(survey: Survey | None) -> list[RenderableType]:
    """Return a survey for display: nodes with problems, and which ones to keep in float32."""
    if survey is None:
        return []
    view: list[RenderableType] = []
    if survey.named:
        rows = table("node", "operator", "name", "error", "in halves")
        for finding in survey.named:
            rows.add_row(*_row(finding), lines(finding.what(survey.share)))
        view.append(titled("operators that lose something, given right inputs", rows))
    view.append(Text(_verdict(survey)))
    if survey.keep_float:
        listed = ",".join(map(_text, survey.keep_float))
        kept = f"With them in float32 the outputs' error is {number(survey.kept_error)}."
        view += [line(f"Keep in float32: {listed}"), Text(f'{kept} CLDelegate(precision="fp16", keep_float=[...])')]
    return [*view, *(line(f"Note: {note}", "yellow") for note in survey.notes)]


def _verdict(survey: Survey) -> str:
    below = sum(finding.below for finding in survey.findings)
    vanished = sum(finding.vanished for finding in survey.findings)
    lost = f"; numbers below 6.1e-5: {below:,}, that become 0: {vanished:,}" if below or vanished else ""
    return f"fp16 ({survey.mode}): the outputs' error is {number(survey.error)}{lost}"


def _row(finding: Finding) -> tuple[str, ...]:
    node = str(finding.node) if not finding.subgraph else f"{finding.subgraph}:{finding.node}"
    return node, finding.op, finding.name.partition(";")[0], number(finding.error)


def _text(node: KeptNode) -> str:
    """Format a node for ``--keep-float``."""
    return node if isinstance(node, str) else str(node) if isinstance(node, int) else f"{node[0]}:{node[1]}"
