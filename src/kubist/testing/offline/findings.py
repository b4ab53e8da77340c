"""Findings: the server's responses to manifests, with file, line and field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kubist.model.meta.object import Object
from kubist.testing.offline.manifests import Manifest, Problem

ERROR, WARNING = "error", "warning"
MOST = 100
"""Maximum number of findings about one object."""
LONGEST = 64 << 10
"""Maximum number of characters of the message of a Status."""
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_COMPLAINT = re.compile(rf"(unknown|duplicate) field {_TEXT}|line (\d+): key {_TEXT} already set in map")
_MISTYPED = re.compile(r"Go struct field \w+\.(\S+) of type")
_LEADING_FIELD = re.compile(r"^([a-z]\w*(?:\.[\w-]+|\[[^\]]*\])*(?:\.[\w-]+|\[[^\]]*\])): ")
_TYPED_FIELD = re.compile(r"\): \.([\w.\[\]\"=-]+): ")
_QUOTED_WARNING = re.compile(rb'299 - "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Finding:
    """One message about a manifest. `message` is the server's own text about the field; `status` is the Status of its
    whole response, without for warnings and for findings that no request caused."""

    severity: str
    file: str
    line: int
    reason: str
    message: str
    field: str = ""
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    status: Object | None = None

    @property
    def object(self) -> str:
        """The object as `Deployment shop/web`; empty for a finding about a file."""
        return reference(self.kind, self.namespace, self.name)


@dataclass
class Checked:
    """One object of the input, with the findings about it."""

    manifest: Manifest
    namespace: str = ""
    findings: list[Finding] = field(default_factory=list)
    stored: Object | None = None
    """The object as the server would store it; None if it was rejected."""
    _known: set[tuple[str, str, str, str]] = field(default_factory=set)
    _omitted: int = 0

    @property
    def reference(self) -> str:
        manifest = self.manifest
        return reference(manifest.kind, self.namespace, manifest.name or _generated(manifest))

    @property
    def is_rejected(self) -> bool:
        return any(finding.severity == ERROR for finding in self.findings)

    def add(
        self,
        severity: str,
        reason: str,
        message: str,
        *,
        field: str = "",
        line: int = 0,
        status: Object | None = None,
    ) -> None:
        """Adds a finding, unless the same one is there already. Beyond MOST, findings are only counted."""
        manifest = self.manifest
        known = (severity, reason, message, field)
        if known in self._known:
            return
        if len(self._known) >= MOST:
            self._omit(severity)
            return
        self._known.add(known)
        line = line or (manifest.line_of(field) if field else manifest.line)
        self.findings.append(self._finding(severity, reason, message, field, line, status))

    def _omit(self, severity: str) -> None:
        """Counts a finding in the last one."""
        self._omitted += 1
        if any(finding.severity == ERROR for finding in self.findings[MOST:]):
            severity = ERROR
        text = f"{self._omitted} more findings about this object are not shown"
        self.findings[MOST:] = [self._finding(severity, "TooMany", text, "", self.manifest.line, None)]

    def _finding(
        self, severity: str, reason: str, message: str, field: str, line: int, status: Object | None
    ) -> Finding:
        manifest = self.manifest
        name = manifest.name or _generated(manifest)
        what = (manifest.api_version, manifest.kind, self.namespace, name)
        return Finding(severity, manifest.file, line, reason, message, field, *what, status)


def reference(kind: str, namespace: str, name: str) -> str:
    where = f"{namespace}/{name}" if namespace else name
    return f"{kind} {where}".strip()


def _generated(manifest: Manifest) -> str:
    prefix = manifest.metadata.get("generateName")
    return f"{prefix}…" if isinstance(prefix, str) and prefix else ""


@dataclass(repr=False)
class Report:
    """Result of a validation."""

    objects: list[Checked] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    """Findings about files, and about the old state, CRDs and policies that were given besides the manifests."""
    files: list[str] = field(default_factory=list)
    is_complete: bool = True
    """False if a file could not be read."""

    @property
    def findings(self) -> list[Finding]:
        """All findings, by file and line."""
        findings = [*self.problems, *(finding for checked in self.objects for finding in checked.findings)]
        order = {file: number for number, file in enumerate(self.files)}
        return sorted(findings, key=lambda each: (order.get(each.file, len(order)), each.file, each.line))

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == ERROR]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == WARNING]

    @property
    def ok(self) -> bool:
        """Whether all files were read and there is no error. Warnings do not count."""
        return self.is_complete and not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        counts = f"{len(self.objects)} objects, {len(self.errors)} errors, {len(self.warnings)} warnings"
        return f"<Report: {counts}>"

    def __str__(self) -> str:
        lines = [
            f"{each.file}:{each.line}: {each.severity}: "
            + ": ".join(filter(None, (each.object, each.field, each.message)))
            for each in self.findings
        ]
        return "\n".join(lines) or f"{len(self.objects)} valid objects"


def of_problem(problem: Problem) -> Finding:
    return Finding(ERROR, problem.file, problem.line, problem.reason, problem.message)


def add_status(checked: Checked, status: Object, *, prefix: str = "", severity: str = ERROR) -> None:
    """Adds the findings of a Status: one for each cause or complaint. `prefix` precedes the fields: the path of the pod
    template that a rejected pod comes from."""
    message = str(status.get("message") or "the server rejected the object")
    reason = str(status.get("reason") or "InternalError")
    details = status.get("details")
    causes = (details.get("causes") if isinstance(details, dict) else None) or ()
    whole: Object = {part: status[part] for part in ("code", "reason", "message") if part in status}
    if len(message) > LONGEST:
        whole["message"] = f"{message[:LONGEST]}…"

    def add(reason: str, message: str, where: str = "", line: int = 0) -> None:
        where = prefix + where if where else prefix.rstrip(".")
        checked.add(severity, reason, message, field=where, line=line, status=whole)

    fielded = [cause for cause in causes if cause.get("field")]
    if fielded and len(fielded) == len(causes):
        for cause in fielded:
            where = "" if cause["field"] == "<nil>" else cause["field"]
            add(cause.get("reason") or reason, cause.get("message") or message, where)
        return
    complaints = list(_complaints(message)) if "strict decoding" in message else []
    for why, text, where, line in complaints:
        add(why, text, where, line)
    if not complaints:
        add(reason, message, _field_of(message))


def _complaints(message: str) -> Iterator[tuple[str, str, str, int]]:
    """Reason, text, field and line of every complaint in a strict decoding error."""
    for match in _COMPLAINT.finditer(message):
        kind, where, line, _ = match.groups()
        if kind:
            yield f"{kind.capitalize()}Field", match[0], where, 0
        else:
            yield "DuplicateField", match[0], "", int(line)


def _field_of(message: str) -> str:
    """Field that a message without causes concerns, if its text names one."""
    for pattern in (_MISTYPED, _TYPED_FIELD, _LEADING_FIELD):
        if match := pattern.search(message[:4096]):
            return match[1].strip(".")
    return ""


def add_warnings(checked: Checked, headers: Iterable[tuple[bytes, bytes]], *, prefix: str = "") -> None:
    """Adds the texts of the Warning headers of a response."""
    for name, value in headers:
        if name.lower() != b"warning":
            continue
        for text in _QUOTED_WARNING.findall(value):
            said = re.sub(rb"\\(.)", rb"\1", text).decode("utf-8", "replace")
            complaint = _COMPLAINT.search(said)
            where = (complaint[2] or "") if complaint else _field_of(said)
            checked.add(WARNING, "Warning", said, field=prefix + where if where else prefix.rstrip("."))
