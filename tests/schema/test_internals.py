"""Values in the internal form that messages show."""

from __future__ import annotations

from typing import Any

import pytest

from kubist.model.schema.internals import LONGEST_DIFF, MOST_OBJECTS, difference, internal_form


@pytest.mark.parametrize(
    ("type", "value", "shown"),
    [
        ("rbac.RoleRef", {"kind": "Role", "name": "a"}, {"APIGroup": "", "Kind": "Role", "Name": "a"}),
        ("core.Taint", {"key": "a"}, {"Key": "a", "Value": "", "Effect": "", "TimeAdded": None}),
        ("*core.Taint", None, None),
        ("[]core.Taint", None, None),
        ("core.LocalObjectReference", None, {"Name": ""}),
        (
            "core.ResourceRequirements",
            {"limits": {"memory": "1Gi", "cpu": "1"}},
            {"Limits": {"cpu": "1", "memory": "1Gi"}, "Requests": None, "Claims": None},
        ),
        (
            "core.ResourceFieldSelector",
            {"resource": "cpu"},
            {"ContainerName": "", "Resource": "cpu", "Divisor": "0"},
        ),
    ],
)
def test_every_field_has_its_go_name_and_zero_value(type: str, value: Any, shown: Any) -> None:
    assert internal_form(type, value) == shown


def test_embedded_structs_are_inlined() -> None:
    shown = internal_form("core.Volume", {"name": "v", "emptyDir": {}})
    assert list(shown)[:3] == ["Name", "HostPath", "EmptyDir"]
    assert shown["EmptyDir"] == {"Medium": "", "SizeLimit": None}


def test_host_fields_of_a_pod_are_in_its_security_context() -> None:
    shown = internal_form("core.PodSpec", {"hostNetwork": True, "securityContext": {"runAsUser": 1}})
    assert "HostNetwork" not in shown
    assert (shown["SecurityContext"]["HostNetwork"], shown["SecurityContext"]["RunAsUser"]) == (True, 1)


def test_schema_unions_have_their_internal_form() -> None:
    shown = internal_form(
        "apiextensions.JSONSchemaProps", {"items": {"type": "string"}, "additionalProperties": False}
    )
    assert shown["Items"]["Schema"]["Type"] == "string"
    assert shown["Items"]["JSONSchemas"] is None
    assert shown["AdditionalProperties"] == {"Allows": False, "Schema": None}


def test_very_large_values_are_not_converted() -> None:
    value: dict[str, Any] = {"properties": {f"p{index}": {} for index in range(MOST_OBJECTS + 1)}}
    assert internal_form("apiextensions.JSONSchemaProps", value) is value


def test_difference_has_three_lines_of_context() -> None:
    changed = difference("core.Taint", {"key": "a<b", "value": "1"}, {"key": "a<b", "value": "2"})
    assert changed == (
        '@@ -1,6 +1,6 @@\n {\n  "Key": "a\\u003cb",\n- "Value": "1",\n+ "Value": "2",\n  "Effect": "",\n'
        '  "TimeAdded": null\n }\n'
    )


def test_very_long_values_are_not_compared() -> None:
    assert difference("[]string", ["a"] * LONGEST_DIFF, ["b"]) == ""
