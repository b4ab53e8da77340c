"""Parts of pods that were validated before: errors and warnings equal those of plain validation."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.api.kinds.core.pod import strategy
from kubist.api.kinds.core.pod_validation import validate_new
from kubist.api.kinds.core.podspec.resources import qos_class
from kubist.model.meta.object import Object
from tests.plain_validation import plain_validation, uses

PORTS: list[list[Object]] = [
    [],
    [{"containerPort": 80, "name": "http"}],
    [{"containerPort": 80, "name": "http"}, {"containerPort": 80, "name": "web"}],
    [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}],
    [{"containerPort": 80, "name": "a--b"}],
    [{"containerPort": 70_000}],
    [{"containerPort": 80, "hostIP": "10.0.0.1"}],
]
ENV: list[list[Object]] = [
    [{"name": "A", "value": "1"}, {"name": "B"}],
    [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
    [{"name": "A=B"}, {"value": "1"}],
    [{"name": "A", "valueFrom": {}}],
    [{"name": "A", "valueFrom": {"fileKeyRef": {"key": "K", "volumeName": "v", "path": "p"}}}],
]
RESOURCES: list[Object] = [
    {},
    {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
    {"limits": {"memory": "1500m"}},
    {"limits": {"cpu": "1", "memory": "1Gi"}},
    {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
    {"claims": [{"name": "c"}]},
]
TOLERATIONS: list[list[Object]] = [
    [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
    [{"key": "a", "operator": "Exists", "value": "b"}],
    [{"operator": "Equal"}],
]

containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side", "Not_Good"]), "image": st.sampled_from(["nginx", " padded"])},
    optional={
        "ports": st.sampled_from(PORTS),
        "env": st.sampled_from(ENV),
        "resources": st.sampled_from(RESOURCES),
    },
)
specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, max_size=2)},
    optional={
        "initContainers": st.lists(containers, max_size=1),
        "tolerations": st.sampled_from(TOLERATIONS),
        "resourceClaims": st.just([{"name": "c", "resourceClaimName": "c"}]),
        "nodeSelector": st.sampled_from([{"a": "b"}, {"a b": "c"}, {"beta.kubernetes.io/os": "linux"}]),
        "hostNetwork": st.just(True),
        "dnsPolicy": st.sampled_from(["None", "Default", "Whatever"]),
    },
)


def _said(spec: Object) -> tuple[list[str], list[str], str]:
    """Errors, warnings and QoS class of a new pod."""
    pod: Object = {"metadata": {"name": "p", "namespace": "n"}, "spec": copy.deepcopy(spec)}
    strategy.default(pod)
    errors = [str(error) for error in validate_new(pod, allow_privileged=True)]
    warnings = [] if errors else list(strategy.warnings(None, pod, None))  # type: ignore[arg-type]
    return errors, warnings, qos_class(pod["spec"])


@settings(deadline=None)
@given(st.lists(specs, min_size=1, max_size=6))
def test_validation_with_the_cache_equals_plain_validation(several: list[Object]) -> None:
    cached = [_said(spec) for spec in several]
    with plain_validation():
        assert [_said(spec) for spec in several] == cached
    assert [_said(spec) for spec in several] == cached


def test_uses_of_the_cache_are_known() -> None:
    """Each of these is compared with plain validation above or in tests/meta. A new one needs a comparison."""
    assert set(uses()) == {
        "api.kinds.core.podspec.containers._ports",
        "api.kinds.core.podspec.env.validate_env",
        "api.kinds.core.podspec.resources._amounts_of_container",
        "api.kinds.core.podspec.scheduling.validate_tolerations",
        "api.kinds.core.podspec.warnings._ports",
        "api.kinds.core.podspec.warnings._resources",
        "model.meta.objectmeta.validate_labels",
    }


def test_validation_does_not_depend_on_field_order() -> None:
    spec: Object = {
        "containers": [{"name": "Bad"}],
        "volumes": [{"name": "Bad", "emptyDir": {}}],
        "tolerations": [{"operator": "Equal"}],
        "nodeSelector": {"a b": "c"},
        "hostname": "Bad",
        "os": {"name": "beos"},
    }
    backwards = dict(reversed(spec.items()))
    assert _said(spec) == _said(backwards)
    assert len(_said(spec)[0]) == 7
