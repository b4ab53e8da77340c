"""`kubist apiserver` as a replacement of kube-apiserver: flags, files, etcd."""

from __future__ import annotations

import json
import re
import signal
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from kubist.api.config import KUBERNETES_VERSION, Config
from kubist.cli import flags
from tests.cli.processes import Running, check_one_line_error, kubist, running
from tests.live import TOKENS
from tests.storage.etcd_server import EtcdServer

READY = r"serving on 127\.0\.0\.1:(\d+)"
WANTED = frozenset(
    """--secure-port --bind-address --advertise-address --cert-dir --tls-cert-file --tls-private-key-file
    --client-ca-file --token-auth-file --authorization-mode --anonymous-auth --service-cluster-ip-range
    --service-node-port-range --service-account-issuer --service-account-key-file
    --service-account-signing-key-file --api-audiences --enable-admission-plugins
    --disable-admission-plugins --etcd-servers --etcd-cafile --etcd-certfile --etcd-keyfile --etcd-prefix
    --allow-privileged --max-requests-inflight --max-mutating-requests-inflight --min-request-timeout
    --request-timeout --watch-cache --event-ttl --runtime-config --feature-gates --audit-log-path --v
    --data-dir""".split()  # noqa: SIM905
)


def parsed(*arguments: str) -> Config:
    known = flags.of_kube_apiserver()
    return flags.config(flags.parse(arguments, known), known, Config())


def ask(home: Path, port: str, path: str, body: Any = None) -> Any:
    """Request with a token. The server's certificate is verified with the file that it created."""
    context = ssl.create_default_context(cafile=str(home / "certs/apiserver.crt"))
    headers = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, context=context, timeout=20) as answer:
        return json.loads(answer.read())


def started(home: Path, *arguments: str) -> Any:
    (home / "tokens").write_text(TOKENS)
    common = (
        "--secure-port=0",
        "--bind-address=127.0.0.1",
        "--cert-dir=certs",
        "--token-auth-file",
        "tokens",
    )
    return running(home, "apiserver", *common, *arguments)


def test_flags_are_accepted_in_both_forms() -> None:
    one = parsed(
        "--secure-port=1", "--bind-address=::1", "--authorization-mode=Node,RBAC", "--allow-privileged"
    )
    other = parsed(
        *("--secure-port", "1", "--bind-address", "::1", "--allow-privileged=true"),
        *("--authorization-mode", "Node", "--authorization-mode", "RBAC"),
    )
    assert one == other
    assert one.authorization_mode == ("Node", "RBAC") and one.secure_port == 1 and one.allow_privileged


@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("--event-ttl=1h30m", "event_ttl", 5400),
        ("--request-timeout=1m30s", "request_timeout", 90),
        ("--anonymous-auth=false", "anonymous_auth", False),
        ("--service-node-port-range=30000+99", "service_node_port_range", "30000-30099"),
        ("--oidc-required-claim=hd=a,b=c", "oidc_required_claim", {"hd": "a,b=c"}),
        ("--service-account-issuer=https://a,b", "service_account_issuer", ("https://a,b",)),
        ("--disable-http2-serving", "http2", False),
        ("--disable-http2-serving=false", "http2", True),
        ("--runtime-config=api/all=true", "runtime_config", {"api/all": "true"}),
        ("--service_cluster_ip_range=10.1.0.0/16", "service_cluster_ip_range", "10.1.0.0/16"),
        ("--etcd-servers=http://a:1,http://b:2", "etcd_servers", ("http://a:1", "http://b:2")),
        ("--etcd-compaction-interval=90s", "etcd_compaction_interval", 90.0),
        ("--etcd-compaction-interval=0", "etcd_compaction_interval", 0.0),
        ("--endpoint-reconciler-type=none", "endpoint_reconciler_type", "none"),
        ("-v=3", "verbosity", 3),
    ],
)
def test_flag_sets_config_field(flag: str, field: str, value: object) -> None:
    more = ["--oidc-issuer-url=https://a", "--oidc-client-id=me"] if "oidc" in flag else []
    assert getattr(parsed(flag, *more), field) == value


def test_help_has_a_line_for_every_flag(home: Path) -> None:
    result = kubist("apiserver", "--help", home=home)
    assert result.returncode == 0
    lines = [line for line in result.stdout.splitlines() if line.startswith("      ")]
    named = [line.split()[0] for line in lines]
    assert set(named) >= WANTED and len(set(named)) == len(lines)
    assert all(line.startswith("      --") and line == line.rstrip() for line in lines)
    headings = [line for line in result.stdout.splitlines() if line.endswith(":")]
    assert headings[-2:] == [
        "Flags of kube-apiserver without effect here:",
        "Flags of kube-apiserver that are not supported:",
    ]


def test_version_is_that_of_kubernetes(home: Path) -> None:
    assert kubist("apiserver", "--version", home=home).stdout.startswith("Kubernetes v1.36.")


@pytest.mark.parametrize("suffix", ["", "-custom", "-rc.1+build.5", "+build"])
def test_version_flag_sets_the_reported_version(suffix: str) -> None:
    assert parsed(f"--version={KUBERNETES_VERSION}{suffix}").reported_version == KUBERNETES_VERSION + suffix


def test_version_false_has_no_effect() -> None:
    assert parsed("--version=false").reported_version == KUBERNETES_VERSION


@pytest.mark.parametrize(
    "value", ["v1.36.3-x", "v1.37.0", "v1.36", "vfoo", "v1.36.4-", "v1.36.4-01", "v1.36.4+", "v1.36.4x"]
)
def test_version_flag_rejects_another_version(value: str) -> None:
    with pytest.raises(
        flags.FlagError, match=re.escape(f'invalid argument "{value}" for "--version" flag: ')
    ):
        parsed(f"--version={value}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--no-such-flag=1"], "unknown flag: --no-such-flag"),
        (["--authorization-mode=Banana"], 'authorization-mode "Banana" is not a valid mode'),
        (["--token-auth-file=absent"], "absent: No such file"),
        (["--client-ca-file=absent"], "absent: No such file"),
        (["--tls-cert-file=junk", "--tls-private-key-file=junk"], "junk are not a certificate and its key"),
        (["--service-account-signing-key-file=junk"], "junk contains no valid RSA or ECDSA private key"),
    ],
)
def test_invalid_flags_print_one_line_error(home: Path, arguments: list[str], words: str) -> None:
    (home / "junk").write_text("junk")
    check_one_line_error(home, arguments, words)


def test_certificate_is_created_once_and_ignored_flags_are_logged(home: Path) -> None:
    (home / "certs").mkdir()
    made = b""
    for _ in range(2):
        with started(home, "--watch-cache=true", "--kubelet-timeout=5s", "--data-dir=data") as server:
            port = server.wait_for(READY)
            assert "--kubelet-timeout has no effect here" in server.output
            spaces = ask(home, port, "/api/v1/namespaces")["items"]
            names = {item["metadata"]["name"] for item in spaces}
            assert names == {"default", "kube-system", "kube-public", "kube-node-lease"}
            assert server.stop() == 0
        written = (home / "certs/apiserver.crt").read_bytes()
        assert made in (b"", written)
        made = written
    assert (home / "data/kubist.db").exists()


def test_ctrl_c_stops_a_server_that_waits_for_etcd(home: Path) -> None:
    with started(home, "--etcd-servers=http://127.0.0.1:1", "--kubelet-timeout=5s") as server:
        server.wait_for(r"(--kubelet-timeout) has no effect")
        time.sleep(0.5)
        # Interrupted in the middle of an import, Python itself ends by the signal: 130 to a shell as well.
        assert server.stop(seconds=5) in (0, 130, -signal.SIGINT)
        assert "Traceback" not in server.output


@pytest.mark.etcd
def test_etcd_keys_are_below_the_prefix_and_survive_a_restart(home: Path, real_etcd: EtcdServer) -> None:
    maps = "/api/v1/namespaces/default/configmaps"

    def serve(prefix: str) -> Any:
        return started(home, "--etcd-servers", real_etcd.endpoint, f"--etcd-prefix={prefix}")

    def names(server: Running) -> list[str]:
        return [item["metadata"]["name"] for item in ask(home, server.wait_for(READY), maps)["items"]]

    with serve("/kubist-one") as server:
        ask(home, server.wait_for(READY), maps, {"metadata": {"name": "kept"}})
        with serve("/kubist-two") as other:
            assert "kept" not in names(other)
            other.stop()
        assert server.stop() == 0
    with serve("/kubist-one") as server:
        assert "kept" in names(server)
        server.stop()
