"""Views of an object whose body had empty lists and maps: as sent, as owned, as shown and as stored."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubist.api.verbs.sent_object import PLAIN, SentObject
from kubist.model.meta.object import Object
from kubist.model.schema.catalog import schema_for
from kubist.model.schema.leaves import KEEP_EMPTY
from kubist.model.schema.strict import decode_value

POD = schema_for("", "v1", "Pod")
CONTAINER = {"name": "a", "image": "b"}


def pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}


def sent(body: Object, *, new: bool = True) -> SentObject:
    return SentObject(POD, decode_value(POD, body, KEEP_EMPTY), new=new)


@pytest.mark.parametrize(("new", "kept"), [(True, {"overhead": {}, "nodeSelector": None}), (False, {})])
def test_only_validated_empty_values_are_as_sent(new: bool, kept: Object) -> None:
    body = sent(pod(overhead={}, nodeSelector={}), new=new)
    seen = body.as_sent(pod())
    assert {name: seen["spec"].get(name) for name in kept} == kept
    assert body.as_stored(seen) == pod()


def test_filled_in_values_are_not_replaced_by_empty_ones() -> None:
    body, filled = sent(pod(overhead={})), pod(overhead={"cpu": "1"})
    assert body.as_stored(body.as_sent(filled)) == filled


def test_error_messages_show_all_empty_values() -> None:
    shown = sent(pod(nodeSelector={}, overhead={})).as_shown(pod())
    assert shown == pod(nodeSelector={}, overhead={})


def test_views_leave_the_object_unchanged_and_share_metadata() -> None:
    body = sent(pod(overhead={}, nodeSelector={}, resources={"claims": []}))
    obj = body.as_sent(pod(resources={}))
    before = copy.deepcopy(obj)
    views = body.as_stored(obj), body.as_owned(obj, new=False), body.as_shown(obj)
    assert obj == before
    assert all(view["metadata"] is obj["metadata"] for view in views)


def test_removed_parents_get_no_empty_values() -> None:
    body = sent(pod(resources={"claims": []}))
    assert body.as_sent({"metadata": {}, "spec": {}}) == {"metadata": {}, "spec": {}}


def test_owned_view_differs_from_a_stored_list_that_was_sent_in_another_form() -> None:
    claim = schema_for("autoscaling", "v2", "HorizontalPodAutoscaler")
    target = {"type": "AverageValue", "averageValue": "1000m"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    decoded = decode_value(claim, {"metadata": {}, "spec": {"metrics": [metric]}}, KEEP_EMPTY)
    body, obj = SentObject(claim, decoded, new=False), decoded.object
    assert len(body.as_owned(obj, new=False)["spec"]["metrics"]) == 2
    assert len(body.as_owned(obj, new=True)["spec"]["metrics"]) == 1
    assert len(obj["spec"]["metrics"]) == 1


@pytest.mark.parametrize(("divisor", "items"), [({}, 2), ({"divisor": None}, 2), ({"divisor": "0"}, 1)])
def test_owned_view_differs_from_a_stored_list_in_which_a_quantity_was_not_sent(
    divisor: Object, items: int
) -> None:
    item = {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu", **divisor}}
    volume = {"name": "v", "downwardAPI": {"items": [item]}}
    decoded = decode_value(POD, pod(volumes=[volume]), KEEP_EMPTY)
    owned = SentObject(POD, decoded, new=False).as_owned(decoded.object, new=False)
    assert len(owned["spec"]["volumes"][0]["downwardAPI"]["items"]) == items
    assert decoded.object["spec"]["volumes"][0]["downwardAPI"]["items"] == [
        {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}
    ]


def test_empty_required_lists_become_null_after_ownership() -> None:
    decoded = decode_value(POD, {"metadata": {}, "spec": {"containers": []}}, KEEP_EMPTY)
    body = SentObject(POD, decoded, new=True)
    assert decoded.object["spec"]["containers"] == []
    assert body.with_null_lists(POD, decoded.object)["spec"]["containers"] is None


def test_plain_body_has_one_view() -> None:
    obj = pod()
    views = PLAIN.as_sent(obj), PLAIN.as_stored(obj), PLAIN.as_owned(obj, new=False), PLAIN.as_shown(obj)
    assert all(view is obj for view in (*views, PLAIN.with_null_lists(POD, obj)))
    assert not PLAIN.is_empty_within(("spec",), obj)
