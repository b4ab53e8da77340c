import uuid
from typing import Any

import pytest

from kubist.model.meta import names, objectmeta
from kubist.model.meta.objectmeta import new_uid

BASE = {"name": "x", "namespace": "d"}


def causes(errors: list[Any]) -> list[tuple[str, str]]:
    return [(error.field, error.reason.removeprefix("FieldValue")) for error in errors]


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, []),
        ({"name": ""}, [("metadata.name", "Required")]),
        (
            {"generateName": "-", "name": "-x"},
            [("metadata.generateName", "Invalid"), ("metadata.name", "Invalid")],
        ),
        ({"namespace": ""}, [("metadata.namespace", "Required")]),
        ({"labels": {"a/b/c": "ok", "a": "not ok"}}, [("metadata.labels", "Invalid")] * 2),
        ({"annotations": {"UPPER/Case": "anything at all"}}, []),
        ({"annotations": {"a": "x" * (256 * 1024 - 1)}}, []),
        ({"annotations": {"a": "ü" * (128 * 1024)}}, [("metadata.annotations", "TooLong")]),
        (
            {"ownerReferences": [{"apiVersion": "a/b/c", "name": "n", "uid": "u"}]},
            [
                ("metadata.ownerReferences.apiVersion", "Invalid"),
                ("metadata.ownerReferences.kind", "Invalid"),
            ],
        ),
        ({"finalizers": ["plain"]}, [("metadata.finalizers[0]", "Invalid")]),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, [("metadata.finalizers", "Invalid")]),
        ({"generation": -1}, [("metadata.generation", "Invalid")]),
        (
            {"managedFields": [{"operation": "Touch", "fieldsType": "V0", "manager": "a\nb"}]},
            [
                ("metadata.managedFields[0].operation", "Invalid"),
                ("metadata.managedFields[0].fieldsType", "Invalid"),
                ("metadata.managedFields[0].manager", "Invalid"),
            ],
        ),
    ],
)
def test_invalid_metadata_of_a_new_object_is_rejected(
    meta: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    errors = objectmeta.validate_create(BASE | meta, namespaced=True, validate_name=names.dns_subdomain)
    assert causes(errors) == expected


def test_cluster_scoped_object_must_not_have_a_namespace() -> None:
    errors = objectmeta.validate_create(BASE, namespaced=False, validate_name=names.dns_subdomain)
    assert causes(errors) == [("metadata.namespace", "Forbidden")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"uid": "a"}, {"uid": "b"}, [("metadata.uid", "Invalid")]),
        ({}, {"deletionTimestamp": "2020-01-01T00:00:00Z"}, [("metadata.deletionTimestamp", "Invalid")]),
        ({}, {"finalizers": ["a.b/c"]}, []),
        (
            {"deletionTimestamp": "2020-01-01T00:00:00Z"},
            {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["a.b/c"]},
            [("metadata.finalizers", "Forbidden")],
        ),
        ({"generation": 2}, {"generation": 1}, [("metadata.generation", "Invalid")]),
    ],
)
def test_immutable_metadata_fields_are_rejected_on_update(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert causes(objectmeta.validate_update(BASE | new, BASE | old)) == expected


def test_update_repeats_the_validation_of_create() -> None:
    new = BASE | {"labels": {"a": "not ok"}}
    errors = objectmeta.validate_any_update(new, BASE, namespaced=True)
    assert causes(errors) == [("metadata.labels", "Invalid")] * 2


def test_custom_resource_finalizer_without_domain_warns() -> None:
    texts = objectmeta.finalizer_warnings({"finalizers": ["plain", "a.b", "a.b/c", "orphan"]})
    assert [text.split(":")[1] for text in texts] == [' "a.b"', ' "plain"']
    assert "including a path" in texts[0]
    assert objectmeta.finalizer_warnings({"finalizers": ["plain"]}, {"finalizers": ["plain"]}) == []


def test_equal_owner_references_are_dropped_with_a_warning() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}
    meta = {"ownerReferences": [owner, dict(owner), owner | {"controller": True}]}
    assert objectmeta.deduplicate_owner_references(meta).endswith("observed: u1")
    assert meta["ownerReferences"] == [owner, owner | {"controller": True}]
    assert objectmeta.deduplicate_owner_references(meta) == ""


def test_uids_are_random_uuids() -> None:
    drawn = [new_uid() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    for text in drawn:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
