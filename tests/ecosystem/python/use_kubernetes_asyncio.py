"""Exercises `kubernetes_asyncio`. Usage: use_kubernetes_asyncio.py NAMESPACE"""

import asyncio
import sys

from kubernetes_asyncio import client, config, dynamic, watch

NAMESPACE = sys.argv[1]


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as session:
        core = client.CoreV1Api(session)
        await core.create_namespace({"metadata": {"name": NAMESPACE}})
        bodies = [{"metadata": {"name": f"m-{number}"}, "data": {"x": "1"}} for number in range(10)]
        made = await asyncio.gather(*(core.create_namespaced_config_map(NAMESPACE, body) for body in bodies))
        assert len({held.metadata.uid for held in made}) == 10
        first = await core.list_namespaced_config_map(NAMESPACE, limit=4)
        assert len(first.items) == 4 and first.metadata._continue

        everything = await core.list_namespaced_config_map(NAMESPACE)
        await core.patch_namespaced_config_map("m-0", NAMESPACE, {"data": {"x": "2"}})
        await core.delete_namespaced_config_map("m-0", NAMESPACE)
        events = []
        async with watch.Watch() as stream:
            version = everything.metadata.resource_version
            async for event in stream.stream(
                core.list_namespaced_config_map,
                NAMESPACE,
                resource_version=version,
                field_selector="metadata.name=m-0",
            ):
                events.append((event["type"], event["object"].data["x"]))
                if event["type"] == "DELETED":
                    break
        assert events == [("MODIFIED", "2"), ("DELETED", "2")], events

        try:
            await core.read_namespaced_config_map("m-0", NAMESPACE)
        except client.ApiException as error:
            assert error.status == 404
        else:
            raise AssertionError("the object is still there")

        maps = await (await dynamic.DynamicClient(session)).resources.get(api_version="v1", kind="ConfigMap")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"y": "1"}}
        applied = await maps.server_side_apply(body=body, namespace=NAMESPACE, field_manager="first")
        assert applied.data.to_dict() == {"y": "1"}, applied


asyncio.run(main())
print("passed")
