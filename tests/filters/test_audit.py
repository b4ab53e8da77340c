"""Audit log: levels, stages, real and impersonated users, omitted parts."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubist.api.config import Config
from kubist.api.filters import from_config
from kubist.api.filters.audit.audit import AuditLog
from kubist.api.filters.audit.policy import AuditPolicy
from kubist.api.filters.authorization.query import AuthorizationQuery
from kubist.api.resources.context import User
from kubist.model.meta.object import Object
from tests.filters.askers import Person
from tests.live import Client, Live, Pki

Run = Callable[..., list[Object]]


@pytest.fixture
def audited(server_pki: Pki, tmp_path: Path) -> Run:
    """Runs a server with audit rules and the given requests, and returns the events."""

    def run(work: Callable[[Live, Client], Any], *rules: Object, **policy: Any) -> list[Object]:
        document = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **policy}
        (tmp_path / "policy.yaml").write_text(yaml.safe_dump(document))
        log = tmp_path / "audit.log"
        flags = {"audit_policy_file": str(tmp_path / "policy.yaml"), "audit_log_path": str(log)}
        with Live(server_pki, **flags) as live:
            work(live, live.client)
            live.client.close()
        return [json.loads(line) for line in log.read_text().splitlines()]

    return run


CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("setting", "backend"), [("audit_log_path", "log"), ("audit_webhook_config_file", "webhook")]
)
def test_destination_without_a_policy_is_a_warning(
    setting: str, backend: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config(**{setting: str(tmp_path / "destination")})  # type: ignore[arg-type]
    assert from_config.audit(config) is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        f"No audit policy file provided, no events will be recorded for {backend} backend: set --audit-policy-file"
    )


def test_malformed_policy_stops_the_start_without_a_destination(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("kind: Pod")
    with pytest.raises(ValueError, match=re.escape(str(policy))):
        from_config.audit(Config(audit_policy_file=str(policy)))


def test_metadata_event_has_user_object_and_decision(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        Person(live, "dev-token").ask("GET", f"{CONFIGMAPS}/x?pretty=true")

    received, complete = audited(work, {"level": "Metadata"})
    assert (received["stage"], complete["stage"]) == ("RequestReceived", "ResponseComplete")
    assert received["auditID"] == complete["auditID"]
    assert complete["kind"] == "Event" and complete["apiVersion"] == "audit.k8s.io/v1"
    assert complete["requestURI"] == f"{CONFIGMAPS}/x?pretty=true"
    assert complete["verb"] == "get" and complete["sourceIPs"] == ["127.0.0.1"]
    assert complete["user"]["username"] == "dev"
    wanted = {"resource": "configmaps", "namespace": "default", "name": "x", "apiVersion": "v1"}
    assert complete["objectRef"] == wanted
    assert complete["responseStatus"]["code"] == 403
    assert complete["responseStatus"]["reason"] == "Forbidden"
    assert complete["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert "requestObject" not in complete and "responseObject" not in complete


def test_level_decides_which_bodies_are_recorded(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        for kind in ("configmaps", "secrets", "serviceaccounts", "endpoints"):
            admin.post(f"/api/v1/namespaces/default/{kind}", {"metadata": {"name": "x"}})

    events = audited(
        work,
        {"level": "None", "resources": [{"group": "", "resources": ["endpoints"]}]},
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
        {"level": "Request", "resources": [{"group": "", "resources": ["configmaps"]}]},
        {"level": "RequestResponse"},
        omitStages=["RequestReceived"],
        omitManagedFields=True,
    )
    shown = {
        event["objectRef"]["resource"]: ("requestObject" in event, "responseObject" in event)
        for event in events
    }
    assert shown == {
        "configmaps": (True, False),
        "secrets": (False, False),
        "serviceaccounts": (True, True),
    }
    whole = events[-1]["responseObject"]
    assert whole["metadata"]["uid"] and "managedFields" not in whole["metadata"]


def test_watch_is_recorded_at_its_start_and_its_end(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        with admin.watch(f"{CONFIGMAPS}?timeoutSeconds=1") as events:
            list(events)

    stages = [event["stage"] for event in audited(work, {"level": "Metadata"})]
    assert stages == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


def test_event_names_real_and_impersonated_user(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        Person(live, "admin-token", Impersonate_User="jo").ask("GET", "/version")

    event = audited(work, {"level": "Metadata"})[-1]
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"]["username"] == "jo"


def test_unauthenticated_requests_are_recorded(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        Person(live, "wrong", Audit_ID="mine").ask("GET", "/api/v1/secrets")

    (event,) = audited(work, {"level": "Metadata"})
    assert event["auditID"] == "mine" and event["user"] == {}
    assert event["stage"] == "ResponseStarted" and event["responseStatus"]["code"] == 401


def test_long_headers_are_shortened(audited: Run) -> None:
    answers = []

    def work(live: Live, admin: Client) -> None:
        person = Person(live, "admin-token", Audit_ID="i" * 9000, User_Agent="a" * 9000)
        answers.append(person.ask("GET", "/version"))

    event = audited(work, {"level": "Metadata"})[-1]
    assert event["userAgent"] == "a" * 1024 + "...TRUNCATED"
    assert event["auditID"] == "i" * 1024
    assert answers[0].headers["Audit-Id"] == event["auditID"]


def test_object_ref_is_completed_from_the_object(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        admin.post(CONFIGMAPS, {"metadata": {"name": "x"}})

    event = audited(work, {"level": "Request"})[-1]
    assert event["objectRef"]["name"] == "x"
    assert event["requestObject"] == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}}


def test_full_audit_log_is_rotated(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit.log"), max_size=1, max_backup=2)
    for _ in range(40):
        log.put({"text": "x" * 100_000})
    log.close()
    files = sorted(file.name for file in tmp_path.iterdir())
    assert len(files) == 3 and files[-1] == "audit.log"
    assert all((tmp_path / file).stat().st_size <= 1 << 20 for file in files)


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({}, True),
        ({"users": ["jo"]}, True),
        ({"users": ["al"]}, False),
        ({"userGroups": ["h", "g"]}, True),
        ({"userGroups": ["h"]}, False),
        ({"verbs": ["list"]}, False),
        ({"namespaces": ["n"]}, True),
        ({"namespaces": [""]}, False),
        ({"resources": [{"group": ""}]}, True),
        ({"resources": [{"group": "apps"}]}, False),
        ({"resources": [{"group": "*", "resources": ["pods"]}]}, False),
        ({"resources": [{"group": "", "resources": ["pods/log"]}]}, True),
        ({"resources": [{"group": "", "resources": ["pods/*"]}]}, True),
        ({"resources": [{"group": "", "resources": ["*/log"]}]}, True),
        ({"resources": [{"group": "", "resources": ["*"], "resourceNames": ["y"]}]}, False),
        ({"nonResourceURLs": ["*"]}, False),
    ],
)
def test_first_matching_policy_rule_decides(rule: Object, matches: bool) -> None:
    asked = AuthorizationQuery(User("jo", groups=("g",)), "get", "", True, "", "v1", "pods", "log", "n", "x")
    policy = AuditPolicy({"rules": [{"level": "Request", **rule}]})
    assert policy.verdict(asked).level == (2 if matches else 0)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "Policy", "apiVersion": "audit.k8s.io/v1"},
        {"kind": "Other", "apiVersion": "audit.k8s.io/v1", "rules": [{"level": "None"}]},
        {"kind": "Policy", "apiVersion": "audit.k8s.io/v1", "rules": [{"level": "All"}]},
        {
            "kind": "Policy",
            "apiVersion": "audit.k8s.io/v1",
            "rules": [{"level": "None", "omitStages": ["End"]}],
        },
    ],
)
def test_invalid_policy_is_rejected(tmp_path: Path, document: Object) -> None:
    (tmp_path / "policy").write_text(yaml.safe_dump(document))
    with pytest.raises(ValueError, match=r"polic|level|stages|rules|Policy"):
        AuditPolicy.read(str(tmp_path / "policy"))


def test_unusable_audit_log_path_fails_at_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        AuditLog(str(tmp_path / "file" / "audit.log"))


def test_events_after_a_failed_write_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(str(tmp_path / "audit.log"))
    append, failures = log._append, [OSError("disk trouble")]

    def fail_once(lines: bytes) -> None:
        if failures:
            raise failures.pop()
        append(lines)

    monkeypatch.setattr(log, "_append", fail_once)
    log.put({"auditID": "lost"})
    while failures:
        time.sleep(0.001)
    log.put({"auditID": "kept"})
    log.close()
    assert (tmp_path / "audit.log").read_text() == '{"auditID":"kept"}\n'


def test_body_of_a_delete_is_delete_options(audited: Run) -> None:
    def work(live: Live, admin: Client) -> None:
        admin.post(CONFIGMAPS, {"metadata": {"name": "x"}})
        admin.ask("DELETE", f"{CONFIGMAPS}/x", {"propagationPolicy": "Background"})

    event = audited(work, {"level": "Request"})[-1]
    options = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"}
    assert event["requestObject"] == options
