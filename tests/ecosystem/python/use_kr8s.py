"""Exercises `kr8s`. Usage: use_kr8s.py NAMESPACE"""

import sys
import threading
import urllib.request

import kr8s
from kr8s.objects import ConfigMap, Deployment, Namespace, new_class
from waiting import eventually

NAMESPACE = sys.argv[1]
LABELS = {"app": "web"}
api = kr8s.api(namespace=NAMESPACE)
Namespace({"metadata": {"name": NAMESPACE}}, api=api).create()
spec = {
    "replicas": 2,
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
}
web = Deployment({"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec}, api=api)
web.create()
web.wait("condition=Available", timeout=60)
assert sorted(pod.status.phase for pod in web.pods()) == ["Running", "Running"]
(pod, *_) = web.pods()
assert list(pod.logs()) == [
    f'kubist: container "web" of pod {NAMESPACE}/{pod.name} is simulated: no image runs'
]
done = pod.exec(["sh", "-c", "echo out; echo err >&2"])
assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")
assert pod.exec(["sh", "-c", "exit 3"], check=False).returncode == 3
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with (
    pod.portforward(remote_port=80, local_port="auto") as port,
    opener.open(f"http://127.0.0.1:{port}/") as answer,
):
    assert b"is simulated" in answer.read()
web.scale(3)
eventually(lambda: len(list(kr8s.get("pods", namespace=NAMESPACE, label_selector=LABELS, api=api))) == 3)

made = ConfigMap({"metadata": {"name": "a", "namespace": NAMESPACE}, "data": {"x": "1"}}, api=api)
made.create()
made.label(kept="yes")
made.annotate({"note": "kept"})
made.patch([{"op": "replace", "path": "/data/x", "value": "2"}], type="json")
assert (made.data.x, made.labels.kept, made.annotations.note) == ("2", "yes", "kept")
threading.Timer(0.2, lambda: ConfigMap.get("a", namespace=NAMESPACE, api=api).delete()).start()
types = []
for kind, _ in api.watch("configmaps", namespace=NAMESPACE, field_selector={"metadata.name": "a"}):
    types.append(kind)
    if kind == "DELETED":
        break
assert types == ["ADDED", "DELETED"], types

Lease = new_class(kind="Lease", version="coordination.k8s.io/v1", namespaced=True)
Lease({"metadata": {"name": "l", "namespace": NAMESPACE}, "spec": {"holderIdentity": "me"}}, api=api).create()
assert Lease.get("l", namespace=NAMESPACE, api=api).spec.holderIdentity == "me"
print("passed")
