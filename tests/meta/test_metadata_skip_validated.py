"""Metadata that was validated before: errors equal those of plain validation."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kubist.model.meta import names, objectmeta
from tests.plain_validation import plain_validation

METADATA = [
    {"labels": {"a": "b"}},
    {"labels": {"a": "b", "c": "not good"}},
    {"labels": {"a": ""}},
    {"labels": {"a b": ""}},
    {"annotations": {"a": "x"}},
    {"annotations": {"a": "x" * 300_000}},
    {"annotations": {"a": "x" * 70_000}},
    {"annotations": {"a": "ü" * 131_073}},
    {"annotations": {"a": "ü" * 131_071}},
    {"annotations": {"a": "x", "b c": "y"}},
    {"annotations": {"a" * 400: "y"}},
    {"managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"}]},
    {"managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV2"}]},
    {"managedFields": [{"manager": "m", "operation": "Merge"}]},
    {"managedFields": [{"manager": "m" * 200, "operation": "Apply"}]},
    {"managedFields": [{"manager": "m", "operation": "Apply", "subresource": "s" * 300}]},
]


def _errors(metadata: objectmeta.Meta) -> list[str]:
    named = {"name": "n", "namespace": "ns", **metadata}
    found = objectmeta.validate_create(named, namespaced=True, validate_name=names.dns_subdomain)
    return [str(error) for error in found]


@given(st.lists(st.sampled_from(METADATA), max_size=12))
def test_validation_with_the_cache_equals_plain_validation(several: list[objectmeta.Meta]) -> None:
    cached = [_errors(metadata) for metadata in several]
    with plain_validation():
        assert [_errors(metadata) for metadata in several] == cached
    assert [_errors(metadata) for metadata in several] == cached


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


@given(st.text(alphabet="a0-.A\n", max_size=8))
def test_name_patterns_equal_the_patterns_in_messages(name: str) -> None:
    assert (not names.dns_label(name)) == bool(re.fullmatch(_LABEL, name))
    assert names.is_dns_label(name) == (not names.dns_label(name))
    assert (not names.dns_subdomain(name)) == bool(re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", name))
