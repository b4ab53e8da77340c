"""PodSpec validation, part by part: rejected values and their fields. The recorded conversations cover whole pods;
these tests cover the neighbouring cases of each rule."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.meta.object import Object

Causes = list[tuple[str, str]]


@pytest.fixture
def pods(kind_of: Any) -> Any:
    return kind_of("v1", "Pod")


def container(**fields: Any) -> Object:
    return {"name": "a", "image": "i:1", **fields}


def spec(**fields: Any) -> Object:
    return {"spec": {"containers": [container()], **fields}}


CONTAINERS: list[tuple[Object, Causes]] = [
    ({}, []),
    ({"name": ""}, [("name", "Required")]),
    ({"name": "A"}, [("name", "Invalid")]),
    ({"image": ""}, [("image", "Required")]),
    ({"image": " i"}, [("image", "Invalid")]),
    ({"imagePullPolicy": "Sometimes"}, [("imagePullPolicy", "NotSupported")]),
    ({"terminationMessagePolicy": "Log"}, [("terminationMessagePolicy", "NotSupported")]),
    ({"ports": [{}]}, [("ports[0].containerPort", "Required")]),
    ({"ports": [{"containerPort": 65536}]}, [("ports[0].containerPort", "Invalid")]),
    ({"ports": [{"containerPort": 1, "hostPort": -1}]}, [("ports[0].hostPort", "Invalid")]),
    ({"ports": [{"containerPort": 1, "protocol": "tcp"}]}, [("ports[0].protocol", "NotSupported")]),
    ({"ports": [{"containerPort": 1, "name": "web--x"}]}, [("ports[0].name", "Invalid")]),
    (
        {"ports": [{"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}]},
        [("ports[1].name", "Duplicate")],
    ),
    (
        {"ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]},
        [("ports[1].hostPort", "Duplicate")],
    ),
    ({"env": [{"name": "any thing"}]}, []),
    ({"env": [{"name": "a=b"}]}, [("env[0].name", "Invalid")]),
    ({"env": [{"name": "A", "valueFrom": {}}]}, [("env[0].valueFrom", "Invalid")]),
    (
        {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        [("env[0].valueFrom", "Invalid")],
    ),
    (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]},
        [("env[0].valueFrom.fieldRef.fieldPath", "NotSupported")],
    ),
    ({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}}]}, []),
    (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x['y']"}}}]},
        [("env[0].valueFrom.fieldRef.fieldPath", "Invalid")],
    ),
    (
        {
            "env": [
                {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}
            ]
        },
        [("env[0].valueFrom.resourceFieldRef.divisor", "Invalid")],
    ),
    (
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": ".."}}}]},
        [("env[0].valueFrom.secretKeyRef.key", "Invalid"), ("env[0].valueFrom.secretKeyRef.key", "Invalid")][
            :1
        ],
    ),
    ({"envFrom": [{}]}, [("envFrom", "Invalid")]),
    ({"envFrom": [{"configMapRef": {}}]}, [("envFrom[0].configMapRef.name", "Required")]),
    ({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, [("volumeMounts[0].name", "NotFound")]),
    ({"livenessProbe": {}}, [("livenessProbe", "Required")]),
    ({"livenessProbe": {"tcpSocket": {"port": "web"}}}, []),
    ({"livenessProbe": {"tcpSocket": {"port": 0}}}, [("livenessProbe.tcpSocket.port", "Invalid")]),
    (
        {"livenessProbe": {"grpc": {"port": 1}, "successThreshold": 2}},
        [("livenessProbe.successThreshold", "Invalid")],
    ),
    ({"readinessProbe": {"grpc": {"port": 1}, "successThreshold": 2}}, []),
    (
        {"readinessProbe": {"exec": {"command": ["x"]}, "httpGet": {"port": 1}}},
        [("readinessProbe.httpGet", "Forbidden")],
    ),
    (
        {"readinessProbe": {"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 1}},
        [("readinessProbe.terminationGracePeriodSeconds", "Invalid")],
    ),
    ({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}, [("lifecycle.preStop.sleep", "Invalid")]),
    ({"restartPolicy": "Sometimes"}, [("restartPolicy", "NotSupported")]),
    (
        {"restartPolicyRules": [{"action": "Restart"}]},
        [("restartPolicy", "Required"), ("restartPolicyRules[0].exitCodes", "Required")],
    ),
    (
        {"resizePolicy": [{"resourceName": "disk", "restartPolicy": "NotRequired"}]},
        [("resizePolicy", "NotSupported")],
    ),
    ({"securityContext": {"runAsUser": -1}}, [("securityContext.runAsUser", "Invalid")]),
    ({"securityContext": {"procMount": "Unmasked"}}, [("securityContext.procMount", "Invalid")]),
    (
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
        [("securityContext.privileged", "Forbidden"), ("securityContext", "Invalid")],
    ),
    (
        {"securityContext": {"seccompProfile": {"type": "Localhost"}}},
        [("securityContext.seccompProfile.localhostProfile", "Required")],
    ),
    (
        {"securityContext": {"windowsOptions": {"runAsUserName": "a\\b\\c"}}},
        [("securityContext.windowsOptions.runAsUserName", "Invalid")],
    ),
]


@pytest.mark.parametrize(("fields", "causes"), CONTAINERS)
def test_invalid_container_is_rejected(pods: Any, fields: Object, causes: Causes) -> None:
    given = {"spec": {"containers": [container(**fields)]}}
    assert pods.create_errors(given) == [(f"spec.containers[0].{field}", reason) for field, reason in causes]


RESOURCES: list[tuple[Object, Causes]] = [
    ({"requests": {"gpu": "1"}}, [("requests[gpu]", "Invalid"), ("requests[gpu]", "Invalid")]),
    ({"requests": {"memory": "-1"}}, [("requests[memory]", "Invalid")]),
    ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, [("requests", "Invalid")]),
    ({"requests": {"example.com/gpu": "1"}}, [("limits", "Required")]),
    ({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}, [("requests", "Invalid")]),
    # Requests default to limits, so an invalid limit is reported for both.
    (
        {"limits": {"example.com/gpu": "1.5"}},
        [("limits[example.com/gpu]", "Invalid"), ("requests[example.com/gpu]", "Invalid")],
    ),
    (
        {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
        [("limits[hugepages-2Mi]", "Invalid"), ("requests[hugepages-2Mi]", "Invalid")],
    ),
    ({"limits": {"hugepages-2Mi": "2Mi"}}, [("", "Forbidden")]),
    ({"claims": [{"name": "c"}]}, [("claims[0]", "NotFound")]),
]


@pytest.mark.parametrize(("resources", "causes"), RESOURCES)
def test_invalid_container_resources_are_rejected(pods: Any, resources: Object, causes: Causes) -> None:
    given = {"spec": {"containers": [container(resources=resources)]}}
    path = "spec.containers[0].resources"
    assert pods.create_errors(given) == [(f"{path}.{field}".rstrip("."), reason) for field, reason in causes]


VOLUMES: list[tuple[Object, Causes]] = [
    ({}, []),
    ({"hostPath": {"path": "/a/../b"}}, [("hostPath.path", "Invalid")]),
    ({"hostPath": {"path": "/a", "type": "Pipe"}}, [("hostPath.type", "NotSupported")]),
    ({"emptyDir": {"sizeLimit": "-1"}}, [("emptyDir.sizeLimit", "Forbidden")]),
    ({"secret": {}}, [("secret.secretName", "Required")]),
    ({"secret": {"secretName": "s", "defaultMode": 512}}, [("secret.defaultMode", "Invalid")]),
    (
        {"configMap": {"name": "c", "items": [{"key": "k", "path": "..p"}]}},
        [("configMap.items[0].path", "Invalid")],
    ),
    ({"configMap": {"name": "c"}, "secret": {"secretName": "s"}}, [("configMap", "Forbidden")]),
    ({"nfs": {"server": "s", "path": "rel"}}, [("nfs.path", "Invalid")]),
    ({"gcePersistentDisk": {}}, [("persistentDisk.pdName", "Required")]),
    ({"downwardAPI": {"items": [{"path": "p"}]}}, [("downwardAPI", "Required")]),
    ({"ephemeral": {}}, [("ephemeral.volumeClaimTemplate", "Required")]),
    ({"csi": {"driver": "-"}}, [("csi.driver", "Invalid")]),
    ({"image": {}}, [("image.reference", "Required")]),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 1}}]}},
        [
            ("projected.sources[0].serviceAccountToken.expirationSeconds", "Invalid"),
            ("projected.path", "Required"),
            ("projected.sources[0].serviceAccountToken", "Forbidden"),
        ],
    ),
    (
        {"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}},
        [
            ("projected.sources[0]", "Forbidden"),
        ],
    ),
]


@pytest.mark.parametrize(("source", "causes"), VOLUMES)
def test_invalid_volume_is_rejected(pods: Any, source: Object, causes: Causes) -> None:
    given = spec(volumes=[{"name": "v", **source}])
    assert pods.create_errors(given) == [(f"spec.volumes[0].{field}", reason) for field, reason in causes]


SPECS: list[tuple[Object, Causes]] = [
    ({"restartPolicy": "Sometimes"}, [("restartPolicy", "NotSupported")]),
    ({"dnsPolicy": "None"}, [("dnsConfig", "Required")]),
    ({"dnsConfig": {"nameservers": ["1.2.3.4"] * 4}}, [("dnsConfig.nameservers", "Invalid")]),
    ({"dnsConfig": {"searches": [".", "_x.y", "a..b"]}}, [("dnsConfig.searches[2]", "Invalid")]),
    ({"hostAliases": [{"ip": "01.2.3.4"}]}, [("hostAliases[0].ip", "Invalid")]),
    ({"hostname": "a.b", "subdomain": "B"}, [("hostname", "Invalid"), ("subdomain", "Invalid")]),
    ({"hostnameOverride": "h", "hostNetwork": True}, [("hostnameOverride", "Forbidden")]),
    ({"activeDeadlineSeconds": 0}, [("activeDeadlineSeconds", "Invalid")]),
    ({"hostUsers": False, "hostPID": True}, [("HostPID", "Forbidden")]),
    (
        {"shareProcessNamespace": True, "hostPID": True},
        [("securityContext.shareProcessNamespace", "Invalid")],
    ),
    (
        {"securityContext": {"sysctls": [{"name": "net.a"}]}, "hostNetwork": True},
        [
            ("securityContext.sysctls[0].name", "Invalid"),
        ],
    ),
    (
        {"securityContext": {"seLinuxChangePolicy": "MountOption"}},
        [
            ("securityContext.seLinuxChangePolicy", "NotSupported"),
        ],
    ),
    (
        {"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}},
        [("securityContext.runAsUser", "Forbidden")],
    ),
    ({"os": {"name": "beos"}}, [("os", "NotSupported")]),
    ({"tolerations": [{"operator": "Equal"}]}, [("tolerations[0].operator", "Invalid")]),
    (
        {"tolerations": [{"key": "k", "operator": "Lt", "value": "1"}]},
        [("tolerations[0].operator", "NotSupported")],
    ),
    ({"tolerations": [{"key": "k", "tolerationSeconds": 1}]}, [("tolerations[0].effect", "Invalid")]),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, [("schedulingGates[1]", "Duplicate")]),
    ({"nodeName": "n", "schedulingGates": [{"name": "a"}]}, [("nodeName", "Forbidden")]),
    ({"preemptionPolicy": "Maybe"}, [("preemptionPolicy", "NotSupported")]),
    ({"overhead": {"cpu": "-1"}}, [("overhead.limits[cpu]", "Invalid")]),
    ({"ephemeralContainers": [{"name": "e", "image": "i"}]}, [("ephemeralContainers", "Forbidden")]),
    (
        {"initContainers": [{"name": "a", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}]},
        [
            ("initContainers[0].name", "Duplicate"),
            ("initContainers[0].livenessProbe", "Forbidden"),
        ],
    ),
    (
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "X"}]},
        [
            ("topologySpreadConstraints[0].maxSkew", "Invalid"),
            ("topologySpreadConstraints[0].topologyKey", "Required"),
            ("topologySpreadConstraints[0].whenUnsatisfiable", "NotSupported"),
        ],
    ),
    (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
        [
            (
                "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
                "Required",
            ),
        ],
    ),
    ({"resources": {"limits": {"storage": "1"}}}, [("resources.limits[storage]", "NotSupported")]),
]


@pytest.mark.parametrize(("fields", "causes"), SPECS)
def test_invalid_spec_is_rejected(pods: Any, fields: Object, causes: Causes) -> None:
    assert pods.create_errors(spec(**fields)) == [(f"spec.{field}", reason) for field, reason in causes]


def test_match_label_keys_become_expressions_once(pods: Any) -> None:
    term = {
        "topologyKey": "z",
        "labelSelector": {},
        "matchLabelKeys": ["a"],
        "mismatchLabelKeys": ["b", "none"],
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = pods.create({"metadata": {"labels": {"a": "1", "b": "2"}}, **spec(affinity=affinity)})
    merged = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert merged["labelSelector"]["matchExpressions"] == [
        {"key": "a", "operator": "In", "values": ["1"]},
        {"key": "b", "operator": "NotIn", "values": ["2"]},
    ]


IMAGES = [
    ("nginx", "Always"),
    ("nginx:latest", "Always"),
    ("nginx:1.27", "IfNotPresent"),
    ("registry:5000/nginx", "Always"),
    ("localhost/nginx@sha256:" + "a" * 64, "IfNotPresent"),
    ("nginx@sha256:short", "IfNotPresent"),
    ("NotAnImage", "IfNotPresent"),
    ("", "IfNotPresent"),
]


@pytest.mark.parametrize(("image", "policy"), IMAGES)
def test_default_pull_policy_follows_tag(pods: Any, image: str, policy: str) -> None:
    pod = pods.decode({"spec": {"containers": [container(image=image)]}})
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("1n", "1m"),
        ("100u", "1m"),
        ("15e-4", "2e-3"),
        ("214.994m", "215m"),
        ("5073966.326014", "5073966327m"),
        ("1.000000001k", "1000001m"),
        ("1000.001", "1000.001"),
        ("0.0000000001Ki", "1m"),
    ],
)
def test_amounts_are_rounded_up_to_a_thousandth(pods: Any, sent: str, stored: str) -> None:
    pod = pods.decode({"spec": {"containers": [container(resources={"requests": {"cpu": sent}})]}})
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": stored}


WARNINGS: list[tuple[Object, list[str]]] = [
    ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}, []),
    ({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}, ["env[1]: hides previous"]),
    ({"resources": {"requests": {"memory": "100m"}}}, ["resources.requests[memory]: fractional byte"]),
    ({"ports": [{"containerPort": 1}, {"containerPort": 1}]}, ["ports[1]: duplicate port definition"]),
    ({"ports": [{"containerPort": 1, "hostIP": "1.2.3.4"}]}, ["ports[0]: hostIP set without hostPort"]),
]


@pytest.mark.parametrize(("fields", "starts"), WARNINGS)
def test_warnings(pods: Any, fields: Object, starts: list[str]) -> None:
    warnings = pods.warnings({"spec": {"containers": [container(**fields)]}})
    assert len(warnings) == len(starts)
    for warning, start in zip(warnings, starts, strict=True):
        assert warning.startswith(f"spec.containers[0].{start}")


def test_deprecated_volume_warnings_have_a_fixed_order(pods: Any) -> None:
    volume = {"name": "v", "rbd": {}, "cephfs": {}, "gitRepo": {}}
    warnings = pods.warnings({"spec": {"containers": [container()], "volumes": [volume]}})
    assert [warning.partition(":")[0] for warning in warnings] == [
        f"spec.volumes[0].{source}" for source in ("gitRepo", "cephfs", "rbd")
    ]


NAMES: list[tuple[list[str], Causes]] = [
    (["A", "b.c", "1st", "-x"], []),
    (["A", ""], [("spec.containers[0].env[1].name", "Required")]),
    (["A", "B=C"], [("spec.containers[0].env[1].name", "Invalid")]),
    (["A", "ü", "B"], [("spec.containers[0].env[1].name", "Invalid")]),
]


@pytest.mark.parametrize(("given", "causes"), NAMES)
def test_environment_variable_name_validation(pods: Any, given: list[str], causes: Causes) -> None:
    env = [{"name": name, "value": "x"} for name in given]
    assert pods.create_errors({"spec": {"containers": [container(env=env)]}}) == causes


def test_port_name_with_line_break_is_rejected(pods: Any) -> None:
    ports = [{"containerPort": 80, "name": "http\n"}]
    causes = [("spec.containers[0].ports[0].name", "Invalid")]
    assert pods.create_errors({"spec": {"containers": [container(ports=ports)]}}) == causes
