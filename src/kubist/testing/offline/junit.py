"""Report as JUnit XML: a test suite for each file, a test case for each object."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from kubist.testing.offline.findings import ERROR, Finding, Report

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
    for file, found in cases.items():
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(file), errors="0", skipped="0")
        failures = 0
        for name, line, findings in found:
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
        suite.set("tests", str(len(found)))
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
