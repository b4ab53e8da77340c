import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kubist.api.kinds.core.node import NodeProxy
from kubist.api.kinds.core.service_proxy import ServiceProxy
from kubist.api.resources.strategy import Connect
from kubist.model.meta.status import APIError

OBJECTS: dict[tuple[str, str], Any] = {
    ("services", "s"): {"spec": {"ports": [{"port": 80}]}},
    ("endpoints", "s"): {},
    ("services", "users"): {"spec": {"ports": [{"port": 80}]}},
    ("endpoints", "users"): {"subsets": [{"addresses": [{"ip": "10.9.9.8"}], "ports": [{"port": 80}]}]},
    ("services", "bare"): {"spec": {"ports": [{"port": 80}]}},
    ("nodes", "new"): {"status": {}},
    ("nodes", "here"): {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}},
    ("nodes", "there"): {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}},
}


@pytest.mark.parametrize(
    ("proxy", "name", "code"),
    [
        (ServiceProxy(), "s", 503),
        (ServiceProxy(), "https:s:80", 503),
        (ServiceProxy(), "users:80", 503),
        (ServiceProxy(), "bare", 404),
        (ServiceProxy(), "bare:81", 503),
        (ServiceProxy(), "absent", 404),
        (ServiceProxy(), "ftp:s:80", 400),
        (ServiceProxy(), "a:b:c:d", 400),
        (NodeProxy(), "absent", 404),
        (NodeProxy(), "new", 500),
        (NodeProxy(), "here:99", 400),
        (NodeProxy(), "there", 503),
    ],
)
def test_proxy_errors(proxy: Connect, name: str, code: int) -> None:
    objects = SimpleNamespace(get=lambda resource, name, namespace="": OBJECTS.get((resource, name)))
    api = SimpleNamespace(kubelet=object())
    context: Any = SimpleNamespace(name=name, namespace="d", objects=objects, api=api)
    with pytest.raises(APIError) as caught:
        asyncio.run(proxy.connect(context))
    assert caught.value.code == code
