"""Tables: cells, current ages, included objects, and watches."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.api.representation.representation import Representation
from kubist.api.resources.resource import Resource, builtin
from kubist.api.tables import ages
from kubist.api.tables.columns import Column, Table, part, table_of
from kubist.api.tables.table import Row
from kubist.api.verbs.responses import representation
from kubist.model.codec.negotiate import JSON, YAML, MediaType
from kubist.model.meta.durations import human_duration
from kubist.model.meta.object import Object
from kubist.model.meta.status import APIError
from tests.codec.stored import config_map, entry, resource

NOW = 1_800_000_000.0


def table(of: Resource, include: str = "", serializer: str = JSON) -> Representation:
    return representation(of, MediaType(serializer, "Table", "v1"), include)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7.5 * 3600, "7h30m"),
        (27 * 3600, "27h"),
        (5 * 86400 + 5 * 3600, "5d5h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        ((3 * 365 + 65) * 86400, "3y65d"),
        (8 * 365 * 86400, "8y"),
        (1e12, "292y"),
    ],
)
def test_table_durations_have_two_or_three_figures(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


@given(st.integers(0, 10**9), st.integers(0, 10**6))
def test_age_cell_is_valid_until_its_expiry(passed: int, later: int) -> None:
    cell = ages.Since(NOW)
    text, until = cell.text(NOW + passed)
    assert until > NOW + passed
    if NOW + passed + later < until:
        assert cell.text(NOW + passed + later)[0] == text


def test_age_in_a_row_changes_without_rebuilding_it() -> None:
    row = Row(["a", 1, ages.Since(NOW), ages.Since(NOW - 60, "3 (%s ago)"), None], [])
    assert row.text(NOW + 1) == b'{"cells":["a",1,"1s","3 (61s ago)",null],'
    assert row.text(NOW + 600) == b'{"cells":["a",1,"10m","3 (11m ago)",null],'


def test_empty_table_has_empty_or_null_rows() -> None:
    meta = {"resourceVersion": "9"}
    assert orjson.loads(b"".join(table(resource("ConfigMap")).list([], meta)))["rows"] == []
    assert orjson.loads(b"".join(table(resource("LimitRange")).list([], meta)))["rows"] is None


@pytest.mark.parametrize(
    ("include", "kind"),
    [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")],
)
def test_rows_include_the_requested_object_form(include: str, kind: str) -> None:
    shown = orjson.loads(table(resource("ConfigMap"), include).object(config_map()))
    assert shown["metadata"] == {"resourceVersion": "7"}
    assert shown["rows"][0]["object"]["kind"] == kind
    assert shown["rows"][0]["cells"][:2] == ["a", 1]


def test_rows_without_objects() -> None:
    shown = orjson.loads(table(resource("ConfigMap"), "None").object(config_map()))
    assert shown["rows"][0]["object"] is None


@given(st.text(max_size=12).filter(lambda text: text not in ("", "Metadata", "Object", "None")))
def test_unknown_include_object_is_a_bad_request(include: str) -> None:
    shown = table(resource("ConfigMap"), include)
    for attempt in (
        lambda: shown.object(config_map()),
        lambda: shown.list([config_map()], {}),
        lambda: shown.value({"metadata": {"name": "x"}}),
        shown.for_watch,
    ):
        with pytest.raises(APIError) as refused:
            attempt()
        assert refused.value.code == 400


def test_table_as_yaml_equals_the_json_table() -> None:
    from kubist.model.codec import yaml

    entries, meta = [config_map("a"), config_map("b")], {"resourceVersion": "9"}
    as_json = orjson.loads(b"".join(table(resource("ConfigMap"), "None").list(entries, meta)))
    as_yaml = yaml.parse(b"".join(table(resource("ConfigMap"), "None", YAML).list(entries, meta))).value
    assert as_yaml == as_json


def test_only_the_first_event_of_a_watch_has_columns() -> None:
    watched = table(resource("ConfigMap")).for_watch()
    first = orjson.loads(watched.event("ADDED", config_map()))
    second = orjson.loads(watched.event("MODIFIED", config_map()))
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["object"]["columnDefinitions"] is None


def test_initial_events_end_bookmark_keeps_its_object() -> None:
    watched = table(resource("ConfigMap"), "None").for_watch()
    annotations = {"k8s.io/initial-events-end": "true"}
    mark = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9", "annotations": annotations},
    }
    shown = orjson.loads(watched.event_value("BOOKMARK", mark))
    assert shown["object"]["rows"][0]["object"]["metadata"]["annotations"] == annotations
    assert shown["object"]["rows"][0]["cells"] == ["", 0, "<unknown>"]


def test_flow_schemas_are_listed_by_precedence() -> None:
    of = resource("FlowSchema", "flowcontrol.apiserver.k8s.io")
    entries = [
        entry(of, {"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}})
        for name, precedence in (("a", 300), ("b", 100), ("c", 100))
    ]
    shown = orjson.loads(b"".join(table(of, "None").list(entries, {})))
    assert [row["cells"][0] for row in shown["rows"]] == ["b", "c", "a"]


@pytest.mark.parametrize("of", builtin(), ids=lambda of: f"{of.group}/{of.kind}")
def test_every_kind_has_cells_for_an_empty_object(of: Resource) -> None:
    shown = table_of(of.stored_group, of.kind)
    cells = shown.cells({"metadata": {"name": "x"}, "spec": {}, "status": {}})
    extra = 1 if of.kind == "IPAddress" else 0
    assert len(cells) == len(shown.columns) + extra


@pytest.mark.parametrize("of", builtin(), ids=lambda of: f"{of.group}/{of.kind}")
def test_every_column_has_a_path_or_a_function(of: Resource) -> None:
    for column in table_of(of.stored_group, of.kind).columns:
        assert column.path or column.cell, column.name


@pytest.mark.parametrize("of", builtin(), ids=lambda of: f"{of.group}/{of.kind}")
def test_row_has_the_cells_that_its_columns_compute_one_by_one(of: Resource) -> None:
    obj = {"metadata": {"name": "x"}, "spec": {"replicas": 3, "nodeName": "n"}, "status": {"phase": "Active"}}
    columns = table_of(of.stored_group, of.kind).columns
    assert table_of(of.stored_group, of.kind).cells(obj)[: len(columns)] == [alone(c, obj) for c in columns]


def alone(column: Column, obj: Object) -> Any:
    if column.cell is not None:
        return column.cell(obj if column.of is None else column.of(obj))
    *structs, name = column.path.split(".")
    return part(obj, *structs).get(name, column.absent)


def test_columns_share_the_value_of_one_function() -> None:
    calls = []

    def total(obj: Object) -> int:
        calls.append(obj)
        return sum(obj["numbers"])

    columns = (
        Column("Total", "", of=total, cell=str),
        Column("Double", "", of=total, cell=lambda number: 2 * number),
        Column("Missing", "", path="a.b.c", absent=None),
    )
    assert Table(*columns).cells({"numbers": [1, 2], "a": {"b": None}}) == ["3", 6, None]
    assert len(calls) == 1


def pod(spec: Object | None = None, status: Object | None = None, **metadata: Any) -> list[Any]:
    whole = {"containers": [{"name": "a"}, {"name": "b"}], **(spec or {})}
    cells = table_of("", "Pod").cells(
        {"metadata": {"name": "p", **metadata}, "spec": whole, "status": status or {}}
    )
    return cells[1:4]


WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}
RUNNING: Object = {"running": {}}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, ["0/2", "Pending", "0"]),
        ({"phase": "Failed", "reason": "Evicted"}, ["0/2", "Evicted", "0"]),
        (
            {"phase": "Running", "containerStatuses": [{"name": "a", "ready": True, "state": RUNNING}]},
            ["1/2", "Running", "0"],
        ),
        (
            {"phase": "Running", "containerStatuses": [{"name": "a", "restartCount": 4, "state": WAITING}]},
            ["0/2", "CrashLoopBackOff", "4"],
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 3}}}],
            },
            ["0/2", "ExitCode:3", "0"],
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 3, "signal": 9}}}],
            },
            ["0/2", "Signal:9", "0"],
        ),
        (
            {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}], "phase": "Pending"},
            ["0/2", "SchedulingGated", "0"],
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}],
            },
            ["0/2", "Init:0/1", "0"],
        ),
    ],
)
def test_pod_status_column(status: Object, shown: list[str]) -> None:
    assert pod({"initContainers": [{"name": "i"}]}, status) == shown


def test_deleted_pod_is_terminating_unless_it_has_ended() -> None:
    assert pod(status={"phase": "Running"}, deletionTimestamp="2027-01-01T00:00:00Z")[1] == "Terminating"
    assert pod(status={"phase": "Succeeded"}, deletionTimestamp="2027-01-01T00:00:00Z")[1] == "Succeeded"
    lost = {"phase": "Running", "reason": "NodeLost"}
    assert pod(status=lost, deletionTimestamp="2027-01-01T00:00:00Z")[1] == "Unknown"
