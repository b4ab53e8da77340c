"""Exercises `lightkube`. Usage: use_lightkube.py NAMESPACE"""

import asyncio
import sys

import lightkube
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace

NAMESPACE = sys.argv[1]
LABELS = {"app": "web"}


async def main() -> None:
    api = lightkube.AsyncClient(field_manager="first", namespace=NAMESPACE)
    await api.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    await api.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    try:
        await api.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"}), field_manager="second")
    except lightkube.ApiError as error:
        assert error.status.code == 409
    else:
        raise AssertionError("expected a conflict")
    held = await api.apply(
        ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "2"}), field_manager="second", force=True
    )
    assert held.data == {"x": "2"}

    spec = {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    }
    await api.create(Deployment.from_dict({"metadata": {"name": "web"}, "spec": spec}))
    await api.wait(Deployment, "web", for_conditions=["Available"])
    await api.patch(Deployment.Scale, "web", {"spec": {"replicas": 3}})
    async for kind, shown in api.watch(Deployment, fields={"metadata.name": "web"}, server_timeout=60):
        if kind != "DELETED" and shown.status is not None and shown.status.readyReplicas == 3:
            break
    else:
        raise AssertionError("the deployment was not scaled")
    names = [shown.metadata.name async for shown in api.list(ConfigMap, chunk_size=1)]
    assert "a" in names, names
    await api.deletecollection(Deployment)
    assert [shown async for shown in api.list(Deployment)] == []


asyncio.run(main())
print("passed")
