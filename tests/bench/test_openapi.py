"""OpenAPI document of the control API."""

from __future__ import annotations

import json
import re

from kubist.testbench.faults.matching import CRITERIA
from kubist.testbench.faults.rule import ACTIONS, COMPANIONS
from kubist.testing import Cluster


def test_every_route_is_described(kubist_server: Cluster) -> None:
    document = kubist_server.request("GET", "/kubist/v1/openapi.json")
    assert document["openapi"].startswith("3.")
    bench = kubist_server.inner.bench
    assert bench is not None
    for method, path, _ in bench.control.routes():
        shown = "/kubist/v1/" + path.replace("...}", "}")
        operation = document["paths"][shown][method.lower()]
        assert operation["summary"].endswith(".")
        parameters = operation.get("parameters", ())
        named = [parameter["name"] for parameter in parameters if parameter["in"] == "path"]
        assert named == re.findall(r"\{(\w+)\}", shown)
    assert {"/kubist/v1/clock", "/kubist/v1/faults", "/kubist/v1/faults/{id}"} <= set(document["paths"])


def test_references_lead_somewhere(kubist_server: Cluster) -> None:
    document = kubist_server.request("GET", "/kubist/v1/openapi.json")
    for reference in re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]


def test_fault_schema_has_every_field(kubist_server: Cluster) -> None:
    document = kubist_server.request("GET", "/kubist/v1/openapi.json")
    properties = document["components"]["schemas"]["FaultRule"]["properties"]
    assert set(properties) == {*CRITERIA, *ACTIONS, *COMPANIONS}
