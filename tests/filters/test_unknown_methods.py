from __future__ import annotations

import pytest

from tests.filters.askers import Person
from tests.live import Client, Live


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/x", "/version"]
)
def test_unknown_method_is_not_allowed(admin: Client, path: str) -> None:
    answer = admin.ask("FOO", path)
    assert answer.status == 405
    assert answer.json["reason"] == "MethodNotAllowed"


def test_unknown_method_without_permission_is_forbidden(cluster: Live) -> None:
    answer = Person(cluster, "dev-token").ask("FOO", "/api/v1/namespaces/default/pods")
    assert answer.status == 403
    assert 'User "dev" cannot  resource "pods"' in answer.json["message"]
