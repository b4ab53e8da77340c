"""Every route is authorized: a user without permissions gets 403 everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from tests.filters.askers import ask
from tests.live import Live

BODIES = {"POST": b"{}", "PUT": b"{}", "PATCH": b"{}"}
METHODS = {
    "create": "POST",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "get": "GET",
    "list": "GET",
    "patch": "PATCH",
    "update": "PUT",
    "watch": "GET",
}
OPEN = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
"""Reviews that every user may create about themselves."""
PATHS = (
    "/",
    "/metrics",
    "/logs",
    "/debug/pprof",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
    "/x",
)


def routes(live: Live) -> Iterator[tuple[str, str]]:
    for resource in live.server.resources:
        if resource.resource in OPEN:
            continue
        root = f"/api/{resource.version}" if not resource.group else f"/apis/{resource.api_version}"
        where = f"{root}/namespaces/default" if resource.namespaced else root
        collection, one = f"{where}/{resource.resource}", f"{where}/{resource.resource}/x"
        for verb in resource.verbs:
            method = METHODS[verb]
            yield method, one if verb in ("get", "update", "patch", "delete") else collection
            if verb in ("list", "watch"):
                yield method, f"{root}/{resource.resource}"
                yield method, f"{root}/{resource.resource}?watch=1"
                yield method, f"{root}/watch/{collection.removeprefix(root + '/')}"
                yield method, f"{collection}?fieldSelector=metadata.name%3Dx"
        for name, sub in resource.subresources.items():
            for verb in sub.verbs:
                yield METHODS.get(verb, "GET"), f"{one}/{name}"
                yield METHODS.get(verb, "GET"), f"{one}/{name}?dryRun=All"
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            yield method, one
    for path in PATHS:
        yield from ((method, path) for method in ("GET", "HEAD", "POST", "DELETE"))
    yield "HEAD", "/version"
    yield "POST", "/apis"
    yield "GET", "/apis/unknown.example.com/v1/things"
    yield "GET", "/api/v2/pods"


def test_every_route_rejects_users_without_permissions(cluster: Live) -> None:
    passed = [
        (method, path, answer.status)
        for method, path in routes(cluster)
        if (answer := ask(cluster, method, path, "dev-token", BODIES.get(method, b""))).status != 403
    ]
    assert passed == []


def test_every_route_rejects_unauthenticated_requests(cluster: Live) -> None:
    passed = [
        (method, path, answer.status)
        for method, path in routes(cluster)
        if (answer := ask(cluster, method, path, "wrong", BODIES.get(method, b""))).status != 401
    ]
    assert passed == []


def test_anonymous_requests_may_read_only_health_and_version(cluster: Live) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert ask(cluster, "GET", path).status == 200
    for path in ("/api", "/apis", "/openapi/v2", "/healthz/etcd"):
        assert ask(cluster, "GET", path).status == 403
