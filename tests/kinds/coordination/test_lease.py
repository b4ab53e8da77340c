from typing import Any

import pytest


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{}", []),
        (
            "{leaseDurationSeconds: 0, leaseTransitions: -1}",
            [
                ("spec.leaseDurationSeconds", "Invalid"),
                ("spec.leaseTransitions", "Invalid"),
            ],
        ),
        ("{strategy: Odd, preferredHolder: h}", []),
    ],
)
def test_invalid_lease_is_rejected(kind_of: Any, spec: str, expected: list[tuple[str, str]]) -> None:
    leases = kind_of("coordination.k8s.io/v1", "Lease")
    assert leases.create_errors(f"spec: {spec}") == expected
    assert leases.create(f"spec: {spec}")["spec"].keys().isdisjoint({"strategy", "preferredHolder"})
