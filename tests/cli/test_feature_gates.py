"""--feature-gates and the versions that a server emulates, in the words of kube-apiserver."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest

from kubist.api.admission import order
from kubist.api.config import Config
from kubist.api.filters.authentication.authentication import certificate_user
from kubist.api.filters.authentication.client_ca import Verified
from kubist.api.resources.context import User
from kubist.cli import flags, serve
from kubist.model import feature_gates
from kubist.server.server import Server
from tests.cli.processes import kubist, running
from tests.filters.askers import Person, grant, user
from tests.live import Client, Live, Pki, configmap
from tests.waiting import wait_for

ALL = flags.of_kube_apiserver()


def parsed(*arguments: str) -> Config:
    return flags.config(flags.parse(arguments, ALL), ALL, Config())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("kube:Foo=true", "unrecognized feature gate: Foo"),
        ("wardle:Foo=true", "component not registered: wardle"),
        ("a:b:c=true", "component not registered: a"),
        ("WatchList", "missing bool value for WatchList"),
        (
            "WatchList=maybe",
            'invalid value of WatchList=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        ("WatchList=", 'invalid value of WatchList=, err: strconv.ParseBool: parsing "": invalid syntax'),
        (
            "kube:WatchList=true,WatchList=false",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
        (
            "APIServerTracing=false",
            "cannot set feature gate APIServerTracing to false, feature is locked to true",
        ),
        (
            "APIServerIdentity=false",
            "UnknownVersionInteroperabilityProxy is enabled, but depends on features that are disabled: "
            "[APIServerIdentity]",
        ),
        (
            "WorkloadWithJob=true",
            "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "AllowServiceExternalIPs=false",
            "--feature-gates=AllowServiceExternalIPs=false is not supported: "
            "use --enable-admission-plugins=DenyServiceExternalIPs to forbid external IPs",
        ),
    ],
)
def test_wrong_gates_are_rejected_in_the_words_of_the_reference(value: str, message: str) -> None:
    with pytest.raises(flags.FlagError) as error:
        parsed(f"--feature-gates={value}")
    assert str(error.value) == message


def test_gates_of_several_flags_are_merged() -> None:
    config = parsed(
        "--feature-gates=kube:WatchList=false, kube:ComponentFlagz=T", "--feature-gates=kube:WatchList=1"
    )
    assert config.feature_gates == {"WatchList": True, "ComponentFlagz": True}


def test_serve_takes_gates_and_versions() -> None:
    known = {flag.name: flag for flag in serve.FLAGS}
    given = ("--feature-gates=WatchList=false", "--runtime-config=api/beta=true")
    config = flags.config(flags.parse(given, known), known, Config())
    assert config.feature_gates == {"WatchList": False} and config.runtime_config == {"api/beta": "true"}


def test_stage_switches_set_gates_that_are_not_named() -> None:
    values = feature_gates.resolved({"AllBeta": False, "WatchList": True})
    assert values["WatchList"] and values["APIServerTracing"] and not values["ComponentFlagz"]
    values = feature_gates.resolved({"AllAlpha": True, "HPAScaleToZero": False})
    assert values["CBORServingAndStorage"] and not values["HPAScaleToZero"] and values["WatchList"]


CBOR = (
    "--feature-gates=CBORServingAndStorage=true: CBOR is not served. Requests with a body in CBOR get 415, and "
    "requests that accept nothing else get 406"
)


@pytest.mark.parametrize(
    ("gates", "warnings"),
    [
        (
            "HPAScaleToZero=true,WatchList=false,ComponentFlagz=true",
            [
                "--feature-gates=HPAScaleToZero=true has no effect here: the server behaves as with "
                "HPAScaleToZero=false"
            ],
        ),
        ("CBORServingAndStorage=true", [CBOR]),
        ("AllAlpha=true", [CBOR]),
        ("AllAlpha=true,CBORServingAndStorage=false", []),
        ("CBORServingAndStorage=false", []),
    ],
)
def test_gate_without_effect_is_logged_once(
    gates: str, warnings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    config = parsed(f"--feature-gates={gates}")
    assert caplog.messages == []
    Server(config)
    assert caplog.messages == warnings
    caplog.clear()
    Server(config, chores=False)
    assert caplog.messages == [], "only one process of a server logs it"


@pytest.mark.parametrize("gates", [{}, {"CBORServingAndStorage": True}])
def test_cbor_is_not_served(server_pki: Pki, gates: dict[str, bool]) -> None:
    path, body = "/api/v1/namespaces/default/configmaps", b"\xa0"
    with Live(server_pki, feature_gates=gates) as live:
        answer = live.client.ask("POST", path, body, "application/cbor")
        assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")
        answer = live.client.ask("PATCH", f"{path}/a", body, "application/apply-patch+cbor")
        assert answer.status == 415
        with contextlib.closing(live.client.connect()) as connection:
            connection.request("GET", path, headers=live.client.headers(Accept="application/cbor"))
            response = connection.getresponse()
            assert response.status == 406 and response.read()


def test_table_has_the_gates_that_the_server_acts_on() -> None:
    known = feature_gates.known()
    assert len(known) == 242 and list(known) == sorted(known)
    assert not any(known[name].locked for name in feature_gates.EFFECTIVE)
    assert feature_gates.REJECTED.keys() <= known.keys()


def test_gates_depend_on_the_version() -> None:
    by_version = {minor: feature_gates.known((1, minor)) for minor in range(34, 38)}
    unsafe = [gates["AllowUnsafeMalformedObjectDeletion"] for gates in by_version.values()]
    assert [(gate.stage, gate.default) for gate in unsafe] == [("ALPHA", False)] * 3 + [("BETA", True)]
    assert [minor for minor in by_version if "APIServerWebhookAuthenticationToken" in by_version[minor]] == [
        37
    ]
    assert [minor for minor in by_version if "AtomicFIFO" in by_version[minor]] == [36, 37]
    assert "APIServerTracing" in by_version[36] and "APIServerTracing" not in by_version[37]
    for gates in by_version.values():
        assert all(gates.keys() >= set(gate.needs) for gate in gates.values())
    assert feature_gates.known() == by_version[36]
    with pytest.raises(ValueError, match="unrecognized feature gate: AtomicFIFO"):
        feature_gates.resolved({"AtomicFIFO": True}, (1, 35))


def test_wrong_gate_stops_the_command(home: Path) -> None:
    result = kubist("apiserver", "--feature-gates=Foo=true", home=home)
    assert result.returncode != 0 and "unrecognized feature gate: Foo" in result.stderr


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--emulated-version=1.37", "emulation version 1.37 is not between [1.33, 1.36.0]"),
        ("--emulated-version=1.36.1", "patch version not allowed, got: kube=1.36.1"),
        ("--emulated-version=abc", 'could not parse "abc" as version'),
        ("--emulated-version=wardle=1.2", "component not registered: wardle"),
        ("--emulated-version=1.36,1.35", "duplicate version flag, kube=1.36 and kube=1.35"),
        (
            "--min-compatibility-version=1.30",
            "minCompatibilityVersion version 1.30 is not between [1.33, 1.36]",
        ),
        (
            "--emulated-version=1.35",
            "--emulated-version is not supported: the server always behaves as Kubernetes v1.36; use 1.36, or "
            "leave the flag out",
        ),
        (
            "--emulation-forward-compatible",
            "--emulation-forward-compatible is not supported: it cannot be set to true if the emulation version "
            "is the same as the binary version",
        ),
    ],
)
def test_other_versions_are_rejected(flag: str, message: str) -> None:
    with pytest.raises(flags.FlagError) as error:
        parsed(flag)
    assert str(error.value) == message


def test_own_versions_are_accepted() -> None:
    config = parsed(
        "--emulated-version=1.36",
        "--min-compatibility-version=kube=1.35",
        "--emulation-forward-compatible=false",
    )
    assert config == Config()


@pytest.mark.parametrize(
    ("selections", "message"),
    [
        ("[]", ""),
        ("[{name: cluster, connection: {proxyProtocol: Direct}}]", ""),
        ("[{name: cluster, connection: {proxyProtocol: HTTPConnect}}]", "is not supported: connections to"),
        ("3", "egressSelections must be a list"),
    ],
)
def test_only_direct_egress_is_accepted(tmp_path: Path, selections: str, message: str) -> None:
    file = tmp_path / "egress.yaml"
    file.write_text(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n"
        f"egressSelections: {selections}\n"
    )
    flag = f"--egress-selector-config-file={file}"
    if not message:
        assert parsed(flag) == Config()
        return
    with pytest.raises(flags.FlagError, match=message):
        parsed(flag)


def test_gates_take_effect(server_pki: Pki) -> None:
    off = dict.fromkeys(
        ("WatchList", "StorageVersionHash", "APIResponseCompression", "PodTopologyLabelsAdmission"), False
    )
    with Live(server_pki, feature_gates=off) as live:
        refused = live.client.ask(
            "GET", "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        )
        assert refused.status == 422
        assert refused.json["message"].endswith(
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature "
            "gate is enabled"
        )
        listed = live.client.get("/apis/apps/v1")["resources"]
        assert listed and not any("storageVersionHash" in each for each in listed)
        live.client.post("/api/v1/namespaces/default/configmaps", configmap("big", text="x" * 300_000))
        connection = live.client.connect()
        connection.request(
            "GET",
            "/api/v1/namespaces/default/configmaps/big",
            headers=live.client.headers(**{"Accept-Encoding": "gzip"}),
        )
        answer = connection.getresponse()
        assert answer.headers["Content-Encoding"] is None and len(answer.read()) > 300_000
        connection.close()


def test_toleration_seconds_and_plugins_of_flags_are_used(server_pki: Pki) -> None:
    settings = {
        "admission_control": ("NamespaceLifecycle", "DefaultTolerationSeconds"),
        "disable_admission_plugins": (),
        "default_not_ready_toleration_seconds": 7,
        "default_unreachable_toleration_seconds": 9,
    }
    with Live(server_pki, **settings) as live:
        spec = {"containers": [{"name": "a", "image": "b"}]}
        pod = live.client.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
    tolerated = [(each["key"], each["tolerationSeconds"]) for each in pod["spec"]["tolerations"]]
    assert tolerated == [("node.kubernetes.io/not-ready", 7), ("node.kubernetes.io/unreachable", 9)]
    assert "priority" not in pod["spec"]


def test_stop_is_delayed_while_requests_are_answered(home: Path, server_pki: Pki) -> None:
    files = {name: str(server_pki.path(name)) for name in ("tls.crt", "tls.key", "tokens.csv", "ca.crt")}
    arguments = (
        *("apiserver", "--secure-port=0", "--bind-address=127.0.0.1", "--shutdown-delay-duration=3s"),
        *(f"--tls-cert-file={files['tls.crt']}", f"--tls-private-key-file={files['tls.key']}"),
        *(f"--token-auth-file={files['tokens.csv']}", "--authorization-mode=RBAC"),
    )
    with running(home, *arguments) as process:
        client = Client(int(process.wait_for(r"serving on 127\.0\.0\.1:(\d+)")), server_pki)
        assert client.ask("GET", "/readyz").status == 200
        process.process.send_signal(signal.SIGTERM)
        wait_for(lambda: client.ask("GET", "/readyz").status == 500)
        assert client.ask("GET", "/livez").status == 200
        assert client.get("/api/v1/namespaces/default")["kind"] == "Namespace"
        client.close()
        assert process.process.wait(30) == 0


def test_gates_of_admission_plugins_turn_them_off() -> None:
    gates = {"MutatingAdmissionPolicy": False, "PodTopologyLabelsAdmission": False}
    off = set(order.enabled(Config())) - set(order.enabled(Config(feature_gates=gates)))
    assert off == {"MutatingAdmissionPolicy", "PodTopologyLabels"}
    named = Config(feature_gates=gates, enable_admission_plugins=("PodTopologyLabels",))
    assert "PodTopologyLabels" in order.enabled(named)


def test_uid_of_a_certificate_needs_its_gate() -> None:
    subject = Verified("me", ("devs",), "u-1", "digest")
    on, off = certificate_user(subject), certificate_user(subject, uid=False)
    assert isinstance(on, User) and isinstance(off, User)
    assert (on.uid, off.uid) == ("u-1", "") and on.name == off.name


def test_uid_headers_need_their_gate(server_pki: Pki) -> None:
    config = Config(
        requestheader_client_ca_file=str(server_pki.path("ca.crt")),
        requestheader_uid_headers=("X-Remote-Uid",),
        feature_gates={"RemoteRequestHeaderUID": False},
    )
    with pytest.raises(ValueError, match="requires the feature gate RemoteRequestHeaderUID"):
        Server(config)


def test_constrained_impersonation_needs_its_gate(server_pki: Pki) -> None:
    rules = [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["users"], "verbs": ["impersonate:user-info"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["impersonate-on:user-info:get", "get"]},
    ]
    seen = []
    for gates in ({}, {"ConstrainedImpersonation": False}):
        with Live(server_pki, feature_gates=gates) as live:
            grant(live.client, user("dev"), *rules)
            grant(live.client, user("other"), rules[1])
            person = Person(live, "dev-token", **{"Impersonate-User": "other"})
            seen.append(person.ask("GET", "/api/v1/namespaces/default").status)
            person.close()
    assert seen == [200, 403]
