"""Reports of a check: text, JUnit XML, SARIF 2.1.0, and JSON. docs/validate.md documents the fields of JSON."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any, TextIO
from urllib.parse import quote
from xml.etree import ElementTree

from kubist.base.terminal import paint
from kubist.base.version import __version__
from kubist.model.meta.object import Object
from kubist.testing.offline.findings import ERROR, Checked, Finding, Report

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


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain."""


def junit(report: Report, *, fail_on_warning: bool = False) -> str:
    """Every error is a failure; warnings are failures with `fail_on_warning`, otherwise output of the test case."""
    cases: dict[str, list[tuple[str, int, list[Finding]]]] = {file: [] for file in report.files}
    for checked in report.objects:
        name = checked.reference or "object"
        manifest = checked.manifest
        cases.setdefault(manifest.file, []).append((name, manifest.line, checked.findings))
    for problem in report.problems:
        name = problem.object or f"line {problem.line}"
        cases.setdefault(problem.file, []).append((name, problem.line, [problem]))
    root = ElementTree.Element("testsuites", name="kubist validate")
    for file, file_cases in cases.items():
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(file), errors="0", skipped="0")
        failures = 0
        for name, line, findings in file_cases:
            case = ElementTree.SubElement(
                suite, "testcase", name=_xml(name), classname=_xml(file), file=_xml(file), line=str(line)
            )
            failing = [each for each in findings if each.severity == ERROR or fail_on_warning]
            failures += bool(failing)
            for finding in failing:
                failure = ElementTree.SubElement(
                    case, "failure", message=_xml(_said(finding)), type=finding.reason
                )
                failure.text = _xml(f"{finding.file}:{finding.line}: {_said(finding)}")
            passing = [each for each in findings if each not in failing]
            if passing:
                output = ElementTree.SubElement(case, "system-out")
                output.text = _xml("\n".join(f"{each.severity}: {_said(each)}" for each in passing))
        suite.set("tests", str(len(file_cases)))
        suite.set("failures", str(failures))
    for counted in ("tests", "failures"):
        root.set(counted, str(sum(int(suite.get(counted, "0")) for suite in root)))
    root.set("errors", "0")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _said(finding: Finding) -> str:
    return f"{finding.field}: {finding.message}" if finding.field else finding.message


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_DESCRIPTIONS = {
    "DuplicateField": "A field occurs twice in one mapping",
    "Duplicate": "Two manifests define the same object",
    "FieldValueDuplicate": "A value must be unique",
    "FieldValueForbidden": "A field must not be set or changed",
    "FieldValueInvalid": "A field has an invalid value",
    "FieldValueNotSupported": "A field has a value that is not supported",
    "FieldValueRequired": "A required field is missing",
    "FieldValueTooLong": "A value is too long",
    "FieldValueTypeInvalid": "A field has a value of the wrong type",
    "Forbidden": "Admission or authorization rejects the object",
    "Invalid": "A rule rejects the object",
    "Malformed": "The file is not YAML or JSON",
    "UnknownField": "The kind has no such field",
    "UnknownKind": "The server has no such kind",
    "Unreadable": "The file cannot be read",
    "Warning": "The server accepts the object with a warning",
}


def sarif(report: Report) -> str:
    findings = report.findings
    rules = sorted({finding.reason for finding in findings})
    numbers = {reason: number for number, reason in enumerate(rules)}
    levels = {finding.reason: finding.severity for finding in findings}
    driver = {
        "name": "kubist validate",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(reason, levels[reason]) for reason in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": report.is_complete}],
        "results": [_result(finding, numbers[finding.reason]) for finding in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(reason: str, level: str) -> dict[str, Any]:
    described = _DESCRIPTIONS.get(reason, f"The server reports {reason}")
    return {
        "id": reason,
        "name": reason,
        "shortDescription": {"text": described},
        "fullDescription": {"text": f"{described}, as the Kubernetes API server reports it."},
        "defaultConfiguration": {"level": level},
        "help": {"text": "Run `kubist validate` on the file to see the message of the API server."},
        "properties": {"tags": ["kubernetes"], "problem.severity": level},
    }


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    said = ": ".join(filter(None, (finding.object, finding.field, finding.message)))
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {"startLine": max(finding.line, 1)},
        }
    }
    if finding.object:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.object, "kind": "object"}]
    same = "\0".join((finding.file, finding.reason, finding.object, finding.field, finding.message))
    return {
        "ruleId": finding.reason,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": said},
        "locations": [location],
        "partialFingerprints": {
            "kubistFinding/v1": hashlib.sha256(same.encode("utf-8", "replace")).hexdigest()[:32]
        },
    }


def _uri(file: str) -> str:
    """Path relative to the working directory as a URI, because code scanning resolves it in the repository."""
    if os.path.isabs(file):
        relative = os.path.relpath(file)
        file = file if relative.startswith("..") else relative
        if os.path.isabs(file):
            return "file://" + quote(file, errors="replace")
    return quote(file.replace(os.sep, "/"), errors="replace")


FORMAT_VERSION = 1
_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
"""Fields of metadata that differ in every run."""


def json_report(report: Report, *, with_objects: bool = False) -> str:
    findings = report.findings
    document = {
        "version": FORMAT_VERSION,
        "summary": {
            "files": len(report.files),
            "objects": len(report.objects),
            "errors": len(report.errors),
            "warnings": len(report.warnings),
            "complete": report.is_complete,
        },
        "findings": [_finding(finding) for finding in findings],
        "objects": [_object(checked, with_objects) for checked in report.objects],
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    about = None
    if finding.kind or finding.name:
        about = {
            "apiVersion": finding.api_version,
            "kind": finding.kind,
            "namespace": finding.namespace,
            "name": finding.name,
        }
    return {
        "severity": finding.severity,
        "file": finding.file,
        "line": finding.line,
        "object": about,
        "field": finding.field,
        "reason": finding.reason,
        "message": finding.message,
        "status": finding.status,
    }


def _object(checked: Checked, with_objects: bool) -> dict[str, Any]:
    manifest = checked.manifest
    result = {
        "file": manifest.file,
        "line": manifest.line,
        "apiVersion": manifest.api_version,
        "kind": manifest.kind,
        "namespace": checked.namespace,
        "name": manifest.name,
        "valid": not checked.is_rejected,
    }
    if with_objects:
        result["stored"] = stored_object(checked)
    return result


def stored_object(checked: Checked) -> Object | None:
    """The object as the server would store it, without the fields that differ in every run."""
    if checked.stored is None:
        return None
    metadata = {key: value for key, value in checked.stored["metadata"].items() if key not in _VOLATILE}
    return {**checked.stored, "metadata": metadata}
