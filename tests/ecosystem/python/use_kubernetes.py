"""Exercises `kubernetes`. Usage: use_kubernetes.py NAMESPACE"""

import sys

import kubernetes
from kubernetes import stream
from kubernetes.informer import SharedInformer
from waiting import eventually

NAMESPACE = sys.argv[1]
kubernetes.config.load_kube_config()
core = kubernetes.client.CoreV1Api()
core.create_namespace({"metadata": {"name": NAMESPACE}})
core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "before"}, "data": {"x": "1"}})

informer = SharedInformer(
    core.list_namespaced_config_map, namespace=NAMESPACE, field_selector="metadata.name!=kube-root-ca.crt"
)
seen: list[tuple[str, str]] = []
for kind in ("ADDED", "MODIFIED", "DELETED"):
    informer.add_event_handler(kind, lambda held, kind=kind: seen.append((kind, held.metadata.name)))
informer.start()
eventually(lambda: ("ADDED", "before") in seen)
core.patch_namespaced_config_map("before", NAMESPACE, {"data": {"x": "2"}})
core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "later"}})
core.delete_namespaced_config_map("before", NAMESPACE)
eventually(lambda: ("DELETED", "before") in seen)
assert seen == [("ADDED", "before"), ("MODIFIED", "before"), ("ADDED", "later"), ("DELETED", "before")], seen
eventually(lambda: [held.metadata.name for held in informer.cache.list()] == ["later"])
informer.stop()

dynamic = kubernetes.dynamic.DynamicClient(core.api_client)
maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"y": "1"}}
applied = maps.server_side_apply(body=body, namespace=NAMESPACE, field_manager="first")
assert applied.data.to_dict() == {"y": "1"}, applied
body["data"] = {"y": "2"}
try:
    maps.server_side_apply(body=body, namespace=NAMESPACE, field_manager="second")
except kubernetes.dynamic.exceptions.ConflictError as error:
    assert error.status == 409
else:
    raise AssertionError("expected a conflict")

core.create_namespaced_pod(
    NAMESPACE,
    {
        "metadata": {"name": "web", "annotations": {"kubist.io/logs": "one\ntwo"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    },
)
eventually(lambda: core.read_namespaced_pod("web", NAMESPACE).status.phase == "Running")
assert core.read_namespaced_pod_log("web", NAMESPACE, tail_lines=1) == "two\n"
run = {"stderr": True, "stdin": True, "stdout": True, "tty": False, "_preload_content": False}
ran = stream.stream(core.connect_get_namespaced_pod_exec, "web", NAMESPACE, command=["sh"], **run)
ran.write_stdin("echo out; echo err >&2; exit 3\n")
ran.run_forever(timeout=30)
assert (ran.read_stdout(), ran.read_stderr(), ran.returncode) == ("out\n", "err\n", 3)
forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "web", NAMESPACE, ports="80")
socket = forward.socket(80)
socket.setblocking(True)
socket.sendall(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
answer = b""
while piece := socket.recv(65536):
    answer += piece
assert b"is simulated" in answer and forward.error(80) is None
print("passed")
