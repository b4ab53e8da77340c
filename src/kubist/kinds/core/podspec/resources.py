"""Resource lists and requirements: amounts of cpu, memory and the like that containers and pods ask for."""

from __future__ import annotations

ResourceList = dict[str, str]


def round_up_to_milli(resources: ResourceList | None) -> None:
    """Amounts below a thousandth are rounded up to the next."""
