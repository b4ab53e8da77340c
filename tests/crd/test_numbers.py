"""Numbers of custom resources that do not fit 64 bits or have more than one spelling."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.api.crd.columns import Column, cell
from kubist.api.crd.jsonpath import JsonPath
from kubist.api.crd.validation.schema import compile_schema
from tests.crd.defining import CRDS, await_status, define, definition, version
from tests.live import Answer, Client

GROUP = "numbers.example.com"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
LEAST, HIGHEST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("integer", HIGHEST, HIGHEST),
        ("integer", 1 << 63, LEAST),
        ("integer", 12345678901234567890, LEAST),
        ("integer", 1e300, LEAST),
        ("integer", -1e300, LEAST),
        ("integer", 1.9, 1),
        ("string", 12345678901234567890, "1.2345678901234567e+19"),
        ("string", 1e300, "1e+300"),
        ("string", HIGHEST, str(HIGHEST)),
        ("string", {"b": 1.0, "a": [18446744073709551616.0]}, '{"a":[18446744073709552000],"b":1}'),
        ("number", 1 << 63, 9223372036854776000),
    ],
)
def test_cell_of_a_large_number(kind: str, value: Any, shown: int | str) -> None:
    column = Column("x", kind, "", "", 0, JsonPath(".x"))
    assert cell(column, {"x": value}) == shown


def test_table_of_large_numbers(client: Client) -> None:
    columns = [
        {"name": kind, "type": kind, "jsonPath": ".n"}
        for kind in ("integer", "number", "string", "boolean", "date")
    ]
    where = define(client, definition("Number", GROUP, version(additionalPrinterColumns=columns)))
    numbers = f"{where}/v1/namespaces/default/numbers"
    body = f'{{"apiVersion":"{GROUP}/v1","kind":"Number","metadata":{{"name":"a"}},"n":12345678901234567890}}'
    answer = client.ask("POST", numbers, body.encode())
    assert answer.status == 201, answer
    connection = client.connect()
    try:
        connection.request("GET", numbers, headers=client.headers(Accept=TABLE))
        table = Answer(connection.getresponse())
    finally:
        connection.close()
    assert table.status == 200, table
    cells = table.json["rows"][0]["cells"]
    assert cells == ["a", LEAST, 12345678901234567000, "1.2345678901234567e+19", None, None]
    client.delete(f"{CRDS}/numbers.{GROUP}")


@pytest.mark.parametrize("value", ["-9223372036854775809", "-1e19", "9223372036854775808"])
def test_integer_beyond_64_bits_fails_type_and_range(value: str) -> None:
    props = {"type": "object", "properties": {"n": {"type": "integer"}}}
    errors = compile_schema(props).validate({"n": float(value)})
    assert [str(error) for error in errors] == [
        'n: Invalid value: "number": n in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in n',
    ]


@pytest.mark.parametrize(
    ("number", "name", "stored"),
    [
        ("1", "v:1", 1),
        ("1.0", "v:1", 1),
        ("1e0", "v:1", 1),
        ("1e-7", "v:1e-07", 1e-7),
        ("-9223372036854775809", "v:-9223372036854776000", -9223372036854775808.0),
    ],
)
def test_managed_fields_name_set_members_by_value(
    client: Client, number: str, name: str, stored: float
) -> None:
    items = {"type": "number"}
    schema = {
        "type": "object",
        "properties": {"set": {"type": "array", "x-kubernetes-list-type": "set", "items": items}},
    }
    where = define(client, definition("Member", GROUP, version(schema=schema)))
    members = f"{where}/v1/namespaces/default/members"
    body = f'{{"apiVersion":"{GROUP}/v1","kind":"Member","metadata":{{"name":"a"}},"set":[{number},2.5]}}'
    try:
        answer = client.ask("POST", members, body.encode())
        assert answer.status == 201, answer
        owned = answer.json["metadata"]["managedFields"][0]["fieldsV1"]
        assert owned == {"f:set": {".": {}, name: {}, "v:2.5": {}}}
        applied = client.ask(
            "PATCH", f"{members}/a?fieldManager=m", body.encode(), "application/apply-patch+yaml"
        )
        assert applied.status == 200, applied
        assert applied.json["set"] == [stored, 2.5]
    finally:
        client.delete(f"{CRDS}/members.{GROUP}")
        await_status(client, members, 404)
