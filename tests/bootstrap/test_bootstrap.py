"""Bootstrap objects: their content, and the effect of a restart on changed objects."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubist.api import bootstrap
from kubist.api.bootstrap.objects import advertise_address
from kubist.api.config import Config
from kubist.api.object_store.registry import Registry
from kubist.api.resources.resource import Resources, builtin
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.strict import decode_value
from kubist.storage.memory import MemoryStore

CONFIG = Config(service_cluster_ip_range="10.0.0.0/16", advertise_address="192.0.2.7", secure_port=6443)
RBAC = "rbac.authorization.k8s.io"
FLOW = "flowcontrol.apiserver.k8s.io"


def on_a_registry(story: Callable[[Registry], Awaitable[None]]) -> None:
    async def run() -> None:
        store = MemoryStore()
        await store.open()
        registry = Registry(CONFIG, Resources(), store)
        await registry.start()
        try:
            await bootstrap.ensure(registry, CONFIG)
            await story(registry)
        finally:
            await registry.stop()
            await store.close()

    asyncio.run(run())


def test_number_of_bootstrap_objects() -> None:
    kinds = Counter(obj["kind"] for obj in bootstrap.objects(CONFIG))
    assert kinds["ClusterRole"] == 69 and kinds["ClusterRoleBinding"] == 50 and kinds["APIService"] == 21
    assert kinds["FlowSchema"] == 11 and kinds["PriorityLevelConfiguration"] == 8 and kinds["Namespace"] == 4


@pytest.mark.parametrize(
    "obj", bootstrap.objects(CONFIG), ids=lambda o: f"{o['kind']}-{o['metadata']['name']}"
)
def test_each_object_is_canonical_and_defaulted(obj: Object) -> None:
    group, _, version = obj["apiVersion"].rpartition("/")
    resource = next(r for r in builtin() if (r.group, r.version, r.kind) == (group, version, obj["kind"]))
    decoded = decode_value(schema_for(group, version, obj["kind"]), obj).object
    resource.strategy.default(decoded)
    assert decoded == obj


def test_kubernetes_service_has_the_first_address() -> None:
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in bootstrap.objects(CONFIG)}
    assert found["Service", "kubernetes"]["spec"]["clusterIPs"] == ["10.0.0.1"]
    assert found["ServiceCIDR", "kubernetes"]["spec"]["cidrs"] == ["10.0.0.0/16"]
    assert found["IPAddress", "10.0.0.1"]["spec"]["parentRef"]["name"] == "kubernetes"
    subset = found["Endpoints", "kubernetes"]["subsets"][0]
    assert (subset["addresses"], subset["ports"][0]["port"]) == ([{"ip": "192.0.2.7"}], 6443)


def test_dual_stack_service_range() -> None:
    config = Config(service_cluster_ip_range="fd00::/108,10.0.0.0/16", advertise_address="2001:db8::1")
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in bootstrap.objects(config)}
    assert found["Service", "kubernetes"]["spec"]["clusterIP"] == "fd00::1"
    assert found["ServiceCIDR", "kubernetes"]["spec"]["cidrs"] == ["fd00::/108", "10.0.0.0/16"]
    assert found["EndpointSlice", "kubernetes"]["addressType"] == "IPv6"


def test_loopback_server_advertises_an_address() -> None:
    assert advertise_address(Config(bind_address="127.0.0.1"))


def test_second_start_writes_nothing() -> None:
    async def story(registry: Registry) -> None:
        before = await registry.store.revision()
        await bootstrap.ensure(registry, CONFIG)
        assert await registry.store.revision() == before

    on_a_registry(story)


async def edited(
    registry: Registry, resource: str, name: str, group: str, change: Callable[[Object], Any]
) -> Object:
    """Object after a user changed it and the server restarted."""

    def apply(obj: Object) -> Object:
        change(obj)
        return obj

    await registry.mutate(resource, name, "", apply, group=group)
    await bootstrap.ensure(registry, CONFIG)
    found = registry.get(resource, name, group=group)
    assert found is not None
    return found


def test_restart_restores_permissions_and_keeps_additions() -> None:
    async def story(registry: Registry) -> None:
        extra = {"verbs": ["dance"], "apiGroups": [""], "resources": ["pods"]}

        def narrow(role: Object) -> None:
            role["rules"] = [extra]
            del role["metadata"]["labels"]

        role = await edited(registry, "clusterroles", "system:basic-user", RBAC, narrow)
        assert extra in role["rules"] and len(role["rules"]) > 1
        assert role["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults"}

    on_a_registry(story)


def test_role_without_autoupdate_is_kept() -> None:
    async def story(registry: Registry) -> None:
        def own(role: Object) -> None:
            role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
            role["rules"] = []

        assert (await edited(registry, "clusterroles", "system:basic-user", RBAC, own))["rules"] == []

    on_a_registry(story)


def test_restart_restores_binding_role_and_subjects() -> None:
    async def story(registry: Registry) -> None:
        name = "system:basic-user"
        other = await edited(
            registry, "clusterrolebindings", name, RBAC, lambda b: b["roleRef"].update(name="view")
        )
        assert other["roleRef"]["name"] == name
        empty = await edited(registry, "clusterrolebindings", name, RBAC, lambda b: b.pop("subjects"))
        assert [subject["name"] for subject in empty["subjects"]] == ["system:authenticated"]

    on_a_registry(story)


def test_restart_keeps_edited_flow_schema_but_restores_mandatory_one() -> None:
    async def story(registry: Registry) -> None:
        def edit(schema: Object) -> None:
            schema["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"] = "false"
            schema["spec"]["matchingPrecedence"] = 77

        mine = await edited(registry, "flowschemas", "service-accounts", FLOW, edit)
        assert mine["spec"]["matchingPrecedence"] == 77
        fixed = await edited(registry, "flowschemas", "catch-all", FLOW, edit)
        assert fixed["spec"]["matchingPrecedence"] == 10000
        assert fixed["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"] == "true"

    on_a_registry(story)


def test_restart_recreates_deleted_objects() -> None:
    async def story(registry: Registry) -> None:
        resource = registry.resources.stored("", "namespaces")
        assert resource is not None
        entry = await registry.read(resource, "", "kube-public")
        assert entry is not None
        await registry.remove(entry)
        await bootstrap.ensure(registry, CONFIG)
        assert await registry.read(resource, "", "kube-public") is not None

    on_a_registry(story)
