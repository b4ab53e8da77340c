"""Report as SARIF 2.1.0, with the fields that code scanning of hosted CI systems reads."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any
from urllib.parse import quote

from kubist.base.version import __version__
from kubist.testing.offline.findings import Finding, Report

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
