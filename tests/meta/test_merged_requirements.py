"""Merged requirements match the same objects as the single requirements."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from kubist.model.meta.selectors import (
    FieldSelector,
    MergedRequirements,
    Requirement,
    parse_field_selector,
    parse_label_selector,
)

keys = st.sampled_from("abc")
values = st.sampled_from(["", "x", "y", "1", "2", "3"])
requirements = st.one_of(
    st.builds(lambda k, o, v: Requirement(k, o, (v,)), keys, st.sampled_from(["=", "==", "!="]), values),
    st.builds(
        lambda k, o, v: Requirement(k, o, (str(v),)), keys, st.sampled_from(["gt", "lt"]), st.integers(0, 4)
    ),
    st.builds(
        lambda k, o, v: Requirement(k, o, tuple(v)),
        keys,
        st.sampled_from(["in", "notin"]),
        st.sets(values, min_size=1),
    ),
    st.builds(Requirement, keys, st.sampled_from(["exists", "!"])),
)


@settings(max_examples=500, deadline=None)
@given(st.lists(requirements, max_size=5), st.dictionaries(keys, values))
def test_merged_requirements_match_like_single_requirements(
    asked: list[Requirement], labels: dict[str, str]
) -> None:
    assert MergedRequirements(asked).matches(labels) is all(one.matcher()(labels) for one in asked)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(keys, st.sampled_from(["=", "!="]), values), max_size=4), st.dictionaries(keys, values)
)
def test_field_requirements_match_together(asked: list[tuple[str, str, str]], fields: dict[str, str]) -> None:
    wanted = all((fields.get(label, "") == value) is (operator == "=") for label, operator, value in asked)
    assert FieldSelector(tuple(asked)).matches(fields) is wanted


def test_many_requirements_are_matched_in_one_pass() -> None:
    labels = parse_label_selector(",".join(f"a!={number}" for number in range(20_000)))
    fields = parse_field_selector(",".join(f"a!={number}" for number in range(20_000)))
    begin = time.thread_time()
    for _ in range(10_000):
        assert labels.matches({"a": "x"}) and fields.matches({"a": "x"})
    assert time.thread_time() - begin < 2  # one by one it would be minutes
