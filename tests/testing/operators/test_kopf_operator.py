"""The fixture `kopf_operator`: operators as processes and in threads, their accounts, output and errors."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from kubist.model.meta.object import Object
from kubist.testing import Cluster, Refused
from kubist.testing.operators.denials import MOST_DENIALS, Denials
from kubist.testing.operators.kopf_operators import KopfOperators
from kubist.testing.operators.operator import OperatorFailed, ProcessOperator
from kubist.testing.users import ClusterUser
from tests.bench.fault_clients import code
from tests.clients.conftest import CRD
from tests.testing.test_plugin import run_pytest

kopf = pytest.importorskip("kopf")
pytest.importorskip("kubernetes")

OPERATOR = Path(__file__).parents[2] / "clients" / "operator_process.py"
RULES = [
    {
        "apiGroups": ["example.com"],
        "resources": ["widgets", "widgets/status"],
        "verbs": ["list", "watch", "patch"],
    },
    {
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "verbs": ["list", "watch"],
    },
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
]


@pytest.fixture(autouse=True)
def crd(cluster: Cluster) -> None:
    cluster.load(CRD)


DENIED = """
import kopf
import kubernetes


@kopf.on.startup()
def start(**_):
    kubernetes.config.load_kube_config()
    core = kubernetes.client.CoreV1Api()
    for _ in range(2):
        try:
            core.read_namespaced_secret("key", "team")
        except kubernetes.client.ApiException:
            pass
    try:
        core.connect_post_namespaced_pod_exec("web", "team")
    except kubernetes.client.ApiException:
        raise kopf.PermanentError("no rights")
"""


def widget(name: str, size: int) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


def await_seen(cluster: Cluster, name: str, size: int) -> None:
    cluster.wait(f"widget/{name}", lambda found: found.get("status", {}).get("seen") == size, timeout=60)


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_operator_handles_objects_and_stops(
    cluster: Cluster, kopf_operator: KopfOperators, mode: Any
) -> None:
    operator = kopf_operator(OPERATOR, mode=mode, namespaces="default")
    assert operator.is_running and repr(operator) == "<operator operator_process.py: running>"
    watched = {
        (watcher.ctx.resource.resource, watcher.ctx.namespace)
        for open_ in list(cluster.inner.api.watchers.values())
        for watcher in list(open_)
    }
    assert ("widgets", "default") in watched, "it is ready when it watches"
    cluster.load(widget("a", 3))
    await_seen(cluster, "a", 3)
    operator.stop()
    assert not operator.is_running and repr(operator) == "<operator operator_process.py: stopped>"
    if isinstance(operator, ProcessOperator):
        assert operator.exit_code == 0
    assert "succeeded" in operator.output
    operator.stop()


def test_operators_run_side_by_side(cluster: Cluster, kopf_operator: KopfOperators, tmp_path: Path) -> None:
    other = tmp_path / "labels.py"
    other.write_text(
        "import kopf\n\n\n"
        "@kopf.on.event('widgets.example.com')\n"
        "def seen(patch, **_):\n"
        "    patch.metadata.labels['by'] = 'other'\n"
    )
    with kopf_operator(OPERATOR), kopf_operator(other, mode="thread"):
        cluster.load(widget("a", 3))
        await_seen(cluster, "a", 3)
        cluster.wait("widget/a", lambda found: found["metadata"].get("labels") == {"by": "other"}, timeout=60)


def test_service_account_has_only_its_rights(cluster: Cluster, kopf_operator: KopfOperators) -> None:
    account = cluster.service_account("operator", namespace="system", rules=RULES)
    hook = cluster.validating_webhook("widgets.example.com", "widgets.example.com/status")(lambda obj: True)
    kopf_operator(OPERATOR, user=account)
    cluster.load(widget("a", 3))
    await_seen(cluster, "a", 3)
    assert {call.user for call in hook.calls} == {"admin", "system:serviceaccount:system:operator"}


def test_handlers_of_the_test_file(cluster: Cluster, kopf_operator: KopfOperators) -> None:
    registry, names = kopf.OperatorRegistry(), []

    @kopf.on.login(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    def login(**kwargs: Any) -> Any:
        return kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.create("widgets.example.com", registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    def created(name: str, patch: Any, **_: Any) -> None:
        names.append(name)
        patch.status["seen"] = 1

    kopf_operator(mode="thread", registry=registry)
    cluster.load(widget("mine", 1))
    await_seen(cluster, "mine", 1)
    assert names == ["mine"]


def test_module_in_a_thread_can_be_patched(
    cluster: Cluster, kopf_operator: KopfOperators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_widget_operator.py").write_text(
        "import kopf\n\n\n"
        "def size_of(spec):\n"
        "    return spec['size']\n\n\n"
        "@kopf.on.create('widgets.example.com')\n"
        "def created(spec, patch, **_):\n"
        "    patch.status['seen'] = size_of(spec)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with kopf_operator("my_widget_operator", mode="thread"):
        cluster.load(widget("a", 3))
        await_seen(cluster, "a", 3)
    monkeypatch.setattr(sys.modules["my_widget_operator"], "size_of", lambda spec: 100)
    with kopf_operator("my_widget_operator", mode="thread"):
        cluster.load(widget("b", 3))
        await_seen(cluster, "b", 100)


@pytest.mark.usefixtures("swept")
def test_kopf_runner_uses_the_cluster(cluster: Cluster, kopf_operator: KopfOperators) -> None:
    from kopf.testing import KopfRunner

    default = kopf.get_default_registry()
    kopf.set_default_registry(type(default)())
    assert os.environ["KUBECONFIG"] == str(cluster.kubeconfig)
    with KopfRunner(["run", "--standalone", "--all-namespaces", str(OPERATOR)], timeout=60) as runner:
        cluster.load(widget("a", 3))
        await_seen(cluster, "a", 3)
    assert runner.exit_code == 0 and runner.exception is None
    kopf.set_default_registry(default)


def test_environment_is_restored(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    import kubernetes.config.kube_config as library

    monkeypatch.setenv("KUBECONFIG", "before")
    monkeypatch.setattr(library, "KUBE_CONFIG_DEFAULT_LOCATION", "read at import")
    level = logging.getLogger("kopf").level
    with KopfOperators(cluster, Path()) as operators:
        assert library.KUBE_CONFIG_DEFAULT_LOCATION == os.environ["KUBECONFIG"] == str(cluster.kubeconfig)
        operators(OPERATOR, mode="thread")
    assert os.environ["KUBECONFIG"] == "before"
    assert library.KUBE_CONFIG_DEFAULT_LOCATION == "read at import"
    assert logging.getLogger("kopf").level == level


def test_missing_rights_are_explained(cluster: Cluster, kopf_operator: KopfOperators) -> None:
    account = cluster.service_account("operator", rules=RULES[1:])
    with pytest.raises(
        OperatorFailed, match=r"(does not watch widgets.example.com|did not start)[^$]*output:"
    ) as error:
        kopf_operator(OPERATOR, mode="thread", user=account, timeout=4)
    by = "system:serviceaccount:default:operator"
    assert "The server forbade (403):\n" in str(error.value)
    assert re.search(
        rf"^  list widgets.example.com, by {by}(, \d times)?: .* cannot list", str(error.value), re.M
    ) or "did not start" in str(error.value)


# kopf never awaits a coroutine of an operator that fails at its start. Python 3.14 warns of it.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("mode", ["process", "thread"])
def test_denied_requests_of_a_start_are_listed(
    cluster: Cluster, kopf_operator: KopfOperators, tmp_path: Path, mode: Any
) -> None:
    alice = cluster.user("alice")
    denied(cluster, alice, "pods")
    account = cluster.service_account("operator")
    (tmp_path / "denied.py").write_text(DENIED)
    with pytest.raises(OperatorFailed) as error:
        kopf_operator(tmp_path / "denied.py", mode=mode, user=account)
    by = "system:serviceaccount:default:operator"
    assert (
        "operator denied.py did not start" in str(error.value)
        and "The server forbade (403):\n"
        f'  get secrets team/key, by {by}, 2 times: secrets "key" is forbidden: User "{by}" cannot get resource '
        '"secrets" in API group "" in the namespace "team"\n'
        f'  create pods/exec team/web, by {by}: pods "web" is forbidden: User "{by}" cannot create resource '
        '"pods/exec" in API group "" in the namespace "team"\n'
        "Its output:\n"
        in str(error.value)
    )


def test_denied_requests_are_bounded(cluster: Cluster) -> None:
    alice = cluster.user("alice")
    denials = Denials(cluster)
    assert denials.text() == ""
    for number in range(MOST_DENIALS + 2):
        denied(cluster, alice, f"resource{number}")
    with pytest.raises(Refused, match="forbidden"):
        alice.list("pods")  # a helper of the test
    lines = denials.text().splitlines()
    assert len(lines) == MOST_DENIALS + 2 and lines[0] == "The server forbade (403):"
    assert lines[1].startswith("  list resource0 default, by alice: resource0 is forbidden:")
    assert lines[-1] == "  … and 2 more"


def denied(cluster: Cluster, user: ClusterUser, resource: str) -> None:
    path = f"/api/v1/namespaces/default/{resource}"
    assert code(cluster, "GET", path, Authorization=f"Bearer {user.token}") == 403


# kopf never awaits a coroutine of an operator that fails at its start. Python 3.14 warns of it.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_operator_that_cannot_start(kopf_operator: KopfOperators, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module\n")
    with pytest.raises(
        OperatorFailed, match=r"(?s)broken.py did not start; its exit code is 1.*no_such_module"
    ):
        kopf_operator(broken)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        kopf_operator(broken, mode="thread")
    broken.write_text(
        "import kopf\n\n\n@kopf.on.startup()\ndef start(**_):\n    raise kopf.PermanentError('no')\n"
    )
    for mode in ("process", "thread"):
        with pytest.raises(OperatorFailed, match=r"(?s)broken.py did not start.*Error"):
            kopf_operator(broken, mode=mode)


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        (["x.py"], {}, "there is no operator x.py"),
        ([], {}, "a process needs a file or a module"),
        ([OPERATOR], {"mode": "treads"}, 'there is no mode "treads"; did you mean "thread"'),
        ([OPERATOR], {"mode": "thread", "env": {"A": "b"}}, 'env needs mode="process"'),
        ([OPERATOR], {"registry": None}, 'has no option "registry"; use a thread'),
        ([OPERATOR], {"prority": 1}, 'has no option "prority"; did you mean "priority"'),
    ],
)
def test_mistakes_are_explained(
    kopf_operator: KopfOperators, sources: Any, options: Any, message: str
) -> None:
    with pytest.raises((FileNotFoundError, TypeError, ValueError), match=message):
        kopf_operator(*sources, **options)


def test_threads_share_one_kubeconfig(cluster: Cluster, kopf_operator: KopfOperators) -> None:
    account = cluster.service_account("operator", rules=RULES)
    kopf_operator(OPERATOR, mode="thread")
    with pytest.raises(RuntimeError, match="share the variable KUBECONFIG"):
        kopf_operator(OPERATOR, mode="thread", user=account)


def test_without_kopf(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OperatorFailed, match="needs kopf: pip install kopf"):
        KopfOperators(cluster, Path())


TESTS = """
import os
import signal


def test_output(kopf_operator):
    kopf_operator("hello.py")
    assert not "seen"


def test_death(kopf_operator):
    operator = kopf_operator("hello.py")
    os.kill(operator.pid, signal.SIGKILL)
    operator._process.wait()
"""
HELLO = """
import kopf


@kopf.on.startup()
def start(**_):
    print("hello from the operator")


@kopf.on.event("configmaps")
def event(**_):
    pass
"""


def test_reports_of_failed_tests(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text(HELLO)
    (tmp_path / "test_operator.py").write_text(TESTS)
    output = run_pytest(tmp_path)
    assert "1 failed, 1 passed, 1 error" in output
    assert "hello from the operator" in output.partition("test_death")[0] or "hello from" in output
    assert "operator hello.py ended with exit code -9. Its output:" in output
