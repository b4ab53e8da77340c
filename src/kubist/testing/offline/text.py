"""Report as text: one line for each finding, in columns."""

from __future__ import annotations

from typing import TextIO

from kubist.base.terminal import paint
from kubist.testing.offline.findings import ERROR, Finding, Report

WIDEST = 60
"""Maximum width of a column in characters. Longer values stick out."""


def text(report: Report, stream: TextIO | None = None) -> str:
    """Findings and a summary, with colours if the stream has them."""
    findings = report.findings
    places = [f"{each.file}:{each.line}" for each in findings]
    objects = [each.object for each in findings]
    wide, wider = _width(places), _width(objects)
    lines = []
    for finding, place, about in zip(findings, places, objects, strict=True):
        severity = f"{finding.severity:7}"
        said = printable(f"{finding.field}: {finding.message}" if finding.field else finding.message)
        place, about = f"{printable(place):{wide}}", f"{printable(about):{wider}}"
        if stream is not None:
            severity = paint(severity, "red" if finding.severity == ERROR else "yellow", stream=stream)
            place, about = paint(place, "dim", stream=stream), paint(about, "bold", stream=stream)
        lines.append("  ".join(filter(None, (place, severity, about if wider else "", said))).rstrip())
    lines.append(_summary(report, findings))
    return "\n".join(lines) + "\n"


def printable(value: str) -> str:
    """The text with line breaks as spaces and without control characters, which could change a terminal."""
    joined = " ".join(value.split()) if any(char in value for char in "\n\r\t") else value
    return "".join(char if char.isprintable() else "\ufffd" for char in joined)


def _width(values: list[str]) -> int:
    return max((len(value) for value in values if len(value) <= WIDEST), default=0)


def _summary(report: Report, findings: list[Finding]) -> str:
    errors = sum(finding.severity == ERROR for finding in findings)
    counted = (
        f"{_count(len(report.objects), 'object')} in {_count(len(report.files), 'file')}"
        if report.files
        else _count(len(report.objects), "object")
    )
    if not findings:
        return f"{counted}: valid"
    return f"{counted}: {_count(errors, 'error')}, {_count(len(findings) - errors, 'warning')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
