"""Merge of tolerations: the indexed merge agrees with a pairwise comparison."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubist.api.admission.tolerations import merge

Toleration = dict[str, Any]

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["", "a", "b"]),
        "operator": st.sampled_from(["Exists", "Equal", "Gt"]),
        "value": st.sampled_from(["", "x", "5"]),
        "effect": st.sampled_from(["", "NoExecute", "NoSchedule"]),
        "tolerationSeconds": st.sampled_from([0, 5, 60]),
    },
)


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether `wide` tolerates everything that `narrow` tolerates, field by field."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "Equal")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if narrow.get("effect", "") != wide.get("effect", "") and wide.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator == "Exists":
        return True
    return bool(
        operator == narrow.get("operator", "Equal") == "Equal"
        and narrow.get("value", "") == wide.get("value", "")
    )


def pairwise(everything: list[Toleration]) -> list[Toleration]:
    """Reference implementation that compares every pair of tolerations."""
    merged: list[Toleration] = []
    for index, toleration in enumerate(everything):
        if any(covers(held, toleration) for held in merged):
            continue
        if any(later != toleration and covers(later, toleration) for later in everything[index + 1 :]):
            continue
        merged.append(toleration)
    return merged


@given(st.lists(FIELDS, max_size=6), st.lists(FIELDS, max_size=6))
def test_indexed_merge_equals_pairwise_merge(first: list[Toleration], second: list[Toleration]) -> None:
    assert merge(first, second) == pairwise([*first, *second])


def test_twenty_thousand_tolerations_are_merged() -> None:
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(20_000)]
    assert merge(many, [{"operator": "Exists"}]) == [{"operator": "Exists"}]
    assert len(merge(many, many)) == 20_000
