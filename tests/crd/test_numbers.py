"""Numbers of custom objects that 64 bits do not hold, or that have more than one spelling."""

from __future__ import annotations

import pytest

from crd.defining import CRDS, define, definition, version
from kubist.crd.columns import Column, cell
from kubist.crd.jsonpath import JsonPath
from live import Answer, Client

GROUP = "numbers.example.com"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
HIGHEST = (1 << 63) - 1


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("integer", 1 << 63, HIGHEST),
        ("integer", 12345678901234567890, HIGHEST),
        ("integer", 1e300, HIGHEST),
        ("integer", -1e300, -(1 << 63)),
        ("integer", 1.9, 1),
        ("string", 12345678901234567890, "1.2345678901234567e+19"),
        ("string", 1e300, "1e+300"),
        ("string", HIGHEST, str(HIGHEST)),
        ("number", 1 << 63, 9223372036854776000),
    ],
)
def test_cell_of_a_large_number(kind: str, value: float, shown: int | str) -> None:
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
    assert cells == ["a", HIGHEST, 12345678901234567000, "1.2345678901234567e+19", None, None]
    client.delete(f"{CRDS}/numbers.{GROUP}")
