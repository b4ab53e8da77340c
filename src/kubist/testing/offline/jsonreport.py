"""Report as JSON. docs/validate.md documents the fields."""

from __future__ import annotations

import json
from typing import Any

from kubist.model.meta.object import Object
from kubist.testing.offline.findings import Checked, Finding, Report

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
    shown = {
        "file": manifest.file,
        "line": manifest.line,
        "apiVersion": manifest.api_version,
        "kind": manifest.kind,
        "namespace": checked.namespace,
        "name": manifest.name,
        "valid": not checked.is_rejected,
    }
    if with_objects:
        shown["stored"] = stored_object(checked)
    return shown


def stored_object(checked: Checked) -> Object | None:
    """The object as the server would store it, without the fields that differ in every run."""
    if checked.stored is None:
        return None
    metadata = {key: value for key, value in checked.stored["metadata"].items() if key not in _VOLATILE}
    return {**checked.stored, "metadata": metadata}
