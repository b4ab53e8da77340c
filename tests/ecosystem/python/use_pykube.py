"""Exercises `pykube-ng`. Usage: use_pykube.py NAMESPACE"""

import sys
import threading

import pykube
from waiting import eventually

NAMESPACE = sys.argv[1]
api = pykube.HTTPClient(pykube.KubeConfig.from_env())
pykube.Namespace(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}).create()
metadata = {"name": "a", "namespace": NAMESPACE, "labels": {"app": "x"}}
made = pykube.ConfigMap(
    api, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1"}}
)
made.create()
made.obj["data"]["x"] = "2"
made.update()
made.patch({"metadata": {"annotations": {"note": "kept"}}})
query = pykube.ConfigMap.objects(api, namespace=NAMESPACE).filter(selector={"app": "x"})
assert [(held.name, held.obj["data"]["x"], held.annotations) for held in query] == [
    ("a", "2", {"note": "kept"})
]
table = query.as_table()
assert [column["name"] for column in table.columns] == ["Name", "Data", "Age"], table.columns

since = query.response["metadata"]["resourceVersion"]
threading.Timer(0.2, made.delete).start()
for event in query.watch(since):
    assert (event.type, event.object.name) == ("DELETED", "a")
    break
assert not made.exists()

labels = {"app": "web"}
template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
web = pykube.Deployment(
    api,
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": spec,
    },
)
web.create()


def scaled() -> bool:
    """Scales the Deployment. pykube sends the whole object, so the controller's writes may conflict."""
    try:
        web.reload()
        web.scale(3)
    except pykube.exceptions.HTTPError as error:
        assert error.code == 409, error
        return False
    return True


eventually(scaled)
eventually(lambda: web.reload() or web.obj["status"].get("readyReplicas") == 3)
assert web.ready
assert len(pykube.Pod.objects(api, namespace=NAMESPACE).filter(selector=labels)) == 3
StatefulSet = pykube.object_factory(api, "apps/v1", "StatefulSet")
assert list(StatefulSet.objects(api, namespace=NAMESPACE)) == []
print("passed")
