"""Every flag of kube-apiserver is implemented, harmless with a reason, or rejected with advice."""

from __future__ import annotations

import logging
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import kubist as package
from kubist.api.config import Config
from kubist.cli import flags, serve
from kubist.cli.unsupported import HARMLESS, REJECTED
from tests.cli.processes import check_one_line_error

ALL = flags.of_kube_apiserver()
IMPLEMENTED = sorted(
    name for name in ALL if flags.has_effect(name) and name not in HARMLESS and name not in REJECTED
)
ROOT = Path(__file__).parents[2]
SECURITY = frozenset(
    """admission-control admission-control-config-file aggregator-reject-forwarding-redirect allow-privileged
    anonymous-auth api-audiences audit-log-format audit-log-mode audit-log-path audit-log-version audit-policy-file
    audit-webhook-config-file authentication-config authentication-token-webhook-cache-ttl
    authentication-token-webhook-config-file authentication-token-webhook-version authorization-config
    authorization-mode authorization-policy-file authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl authorization-webhook-config-file authorization-webhook-version
    bind-address client-ca-file cors-allowed-origins disable-admission-plugins disable-http2-serving
    egress-selector-config-file enable-admission-plugins enable-bootstrap-token-auth enable-priority-and-fairness
    encryption-provider-config encryption-provider-config-automatic-reload etcd-cafile etcd-certfile etcd-keyfile
    etcd-servers-overrides http2-max-streams-per-connection max-connection-bytes-per-sec
    max-mutating-requests-inflight max-requests-inflight oidc-ca-file oidc-client-id oidc-groups-claim
    oidc-groups-prefix oidc-issuer-url oidc-required-claim oidc-signing-algs oidc-username-claim
    oidc-username-prefix permit-port-sharing proxy-client-cert-file proxy-client-key-file request-timeout
    requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix
    requestheader-group-headers requestheader-uid-headers requestheader-username-headers runtime-config
    service-account-extend-token-expiration service-account-issuer service-account-jwks-uri
    service-account-key-file service-account-max-token-expiration service-account-signing-endpoint
    service-account-signing-key-file strict-transport-security-directives tls-cert-file tls-cipher-suites
    tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key token-auth-file
    tracing-config-file""".split()  # noqa: SIM905
)


def parsed(*arguments: str) -> Config:
    return flags.config(flags.parse(arguments, ALL), ALL, Config())


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_flag_has_one_class(name: str) -> None:
    assert [name in IMPLEMENTED, name in HARMLESS, name in REJECTED].count(True) == 1
    if name in SECURITY:
        assert name not in HARMLESS, "a flag that restricts access is implemented or rejected"


def test_lists_name_only_flags_that_exist() -> None:
    assert HARMLESS.keys() | REJECTED.keys() | SECURITY <= ALL.keys()


SOURCES = "\n".join(
    path.read_text()
    for path in Path(package.__file__).parent.rglob("*.py")
    if path.name != "config.py" and path.parent.name != "cli"
)


@pytest.mark.parametrize("name", [name for name in IMPLEMENTED if name not in ("help", "version")])
def test_implemented_flag_is_read_by_the_server(name: str) -> None:
    field = flags.RENAMED.get(name, name.replace("-", "_"))
    if field in ("verbosity", "logging_format"):
        return  # The command line sets up the log with them.
    assert re.search(rf'\.{field}\b|"{field}"', SOURCES)


def sample(name: str) -> str:
    """A value that differs from the default of a flag."""
    if name in VALUES:
        return VALUES[name]
    switch = "false" if ALL[name].default == "true" else "true"
    return {"bool": switch, "int": "7", "int32Slice": "29"}.get(ALL[name].type, "/some/value")


VALUES = {
    "emulated-version": "1.35",
    "min-compatibility-version": "1.36",
    "egress-selector-config-file": "egress.yaml",
}
EGRESS = """\
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections: [{name: cluster, connection: {proxyProtocol: GRPC}}]
"""


@pytest.mark.parametrize("name", sorted(REJECTED))
def test_rejected_flag_names_the_alternative(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "egress.yaml").write_text(EGRESS)
    with pytest.raises(flags.FlagError, match=re.escape(f"--{name} is not supported: ")) as error:
        parsed(f"--{name}={sample(name)}")
    assert REJECTED[name].advice in str(error.value) and len(REJECTED[name].advice) > 20
    for value in (ALL[name].default, *REJECTED[name].accepted):
        assert parsed(f"--{name}={value}") == Config()


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_harmless_flag_is_logged_with_its_reason(name: str, caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        assert parsed(f"--{name}={sample(name)}") == Config()
    assert f"--{name} has no effect here: {HARMLESS[name]}" in caplog.text


def test_document_is_made_from_the_code() -> None:
    make_flags = runpy.run_path(str(ROOT / "tools" / "make_flags.py"))
    assert (ROOT / "docs" / "flags.md").read_text() == make_flags["page"](), "run tools/make_flags.py"


def test_document_has_a_row_for_every_flag_of_the_reference() -> None:
    reference, _, ours = (ROOT / "docs" / "flags.md").read_text().partition("\n## Flags of Kubist\n")
    rows = [row for row in reference.splitlines() if row.startswith("| `--")]
    own = {flag.name for flag in flags.OWN}
    assert {row.split("`")[1][2:] for row in ours.splitlines() if row.startswith("| `--")} == own
    assert [row.split("`")[1] for row in rows] == [f"--{name}" for name in ALL if name not in own]
    assert len(rows) == 177 and all(len(row.split("|")[3].strip()) > 10 for row in rows)


def test_all_flags_of_serve_have_an_effect() -> None:
    own = {"detach", "in-memory", "kubeconfig", "kubeconfig-merge"}
    for flag in serve.FLAGS:
        assert flag.name in own or flags.has_effect(flag.name)
        assert flag.name not in HARMLESS and flag.name not in REJECTED


FILES = {
    "authorization.yaml": "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
    "- {type: RBAC, name: rbac}\n",
    "authentication.yaml": "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n"
    "anonymous: {enabled: false}\n",
}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["--authorization-config=authorization.yaml", "--authorization-mode=RBAC"],
            "can not be specified when",
        ),
        (
            ["--authorization-config=authorization.yaml", "--authorization-webhook-version=v1"],
            "can not be specified",
        ),
        (["--authentication-config=authentication.yaml", "--oidc-client-id=me"], "are mutually exclusive"),
        (
            ["--authentication-config=authentication.yaml", "--anonymous-auth=true"],
            "--anonymous-auth flag cannot be set when anonymous field is configured",
        ),
        (["--oidc-issuer-url=https://a"], "must be specified together"),
        (["--oidc-groups-claim=g"], "must be specified together"),
        (["--oidc-required-claim=hd"], "malformed pair"),
        (["--max-requests-inflight=-1"], "--max-requests-inflight can not be negative value"),
        (["--audit-log-maxsize=-1"], "--audit-log-maxsize -1 can't be a negative number"),
        (["--service-account-max-token-expiration=59m"], "must be between 1 hour and 2^32 seconds"),
        (["--service-account-issuer="], "service-account-issuer should not be an empty string"),
        (
            ["--service-account-issuer=https://a"] * 2,
            'service-account-issuer "https://a" is already specified',
        ),
    ],
)
def test_exclusive_flags_are_rejected(
    tmp_path: Path, monkeypatch: Any, arguments: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(flags.FlagError, match=re.escape(why)):
        parsed(*arguments)


def test_compatible_flags_are_accepted(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    made = parsed("--authorization-config=authorization.yaml", "--authentication-config=authentication.yaml")
    assert made.authorization_config and made.authentication_config


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--audit-webhook-config-file=a", "--audit-webhook-mode=blocking"],
            "--audit-webhook-mode is not supported: audit events are sent in the background",
        ),
        (["--authorization-config=absent"], "absent: No such file"),
        (
            ["--authentication-config=empty"],
            "empty: empty config data",
        ),
        (["--authorization-config=junk"], "junk: failed to load AuthorizationConfiguration from file"),
        (["--tls-min-version=VersionTLS10"], "--tls-min-version VersionTLS10 is not supported"),
        (["--tls-min-version=TLS13"], 'unknown tls version "TLS13"'),
        (["--tls-cipher-suites=TLS_NULL"], "Cipher suite TLS_NULL not supported or doesn't exist"),
        (["--cors-allowed-origins=example"], "does not pin to start/end of host in the origin header"),
        (["--cors-allowed-origins=^($"], "invalid regular expression"),
        (
            ["--strict-transport-security-directives=max-age"],
            "--strict-transport-security-directives invalid",
        ),
        (["--enable-admission-plugins=ImagePolicyWebhook"], '"ImagePolicyWebhook" is not supported'),
        (["--enable-admission-plugins=EventRateLimit"], '"EventRateLimit" is not supported'),
        (
            ["--admission-control-config-file=admission"],
            "a configuration of the plugin ResourceQuota is not supported",
        ),
        (["--runtime-config=api/all=false"], "invalid runtime-config with only api/all=false"),
        (["--runtime-config=batch/v2alpha1=true"], "batch/v2alpha1 that has not been registered"),
        (["--runtime-config=apps/v1=maybe"], "invalid value of apps/v1: maybe"),
        (["--admission-control=Foo"], 'admission-control plugin "Foo" is unknown'),
        (
            ["--admission-control=LimitRanger", "--enable-admission-plugins=LimitRanger"],
            "are mutually exclusive",
        ),
        (["--endpoint-reconciler-type=leases"], "must be lease or none or master-count"),
    ],
)
def test_start_fails_with_one_line(home: Path, arguments: list[str], words: str) -> None:
    (home / "junk").write_text("junk")
    (home / "empty").write_text("")
    (home / "admission").write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
        "- {name: ResourceQuota, configuration: {limitedResources: [{resource: pods}]}}\n"
    )
    check_one_line_error(home, arguments, words)
