"""Types, fields and resources that only some Kubernetes versions have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kubist.api.config import KUBERNETES_VERSION
from kubist.model import versions
from kubist.model.versions import SERVED, has_row, is_between


def test_the_served_version_is_that_of_the_release() -> None:
    assert KUBERNETES_VERSION.startswith(f"v{SERVED[0]}.{SERVED[1]}.")


def test_limits_include_the_first_version_and_exclude_the_last() -> None:
    limits = {"since": "1.35", "until": "1.37"}
    assert [is_between(limits, (1, minor)) for minor in range(34, 38)] == [False, True, True, False]
    assert is_between({}, (1, 9)) and not is_between({"since": "1.10"}, (1, 9))
    assert has_row(["name"], 1, (1, 9)) and not has_row(["name", {"since": "1.10"}], 1, (1, 9))


@pytest.mark.parametrize("tables", ["model/schema/catalog.json", "api/resources/resources.json"])
def test_limits_are_versions_of_the_tables(tables: str) -> None:
    text = (Path(versions.__file__).parents[1] / tables).read_text()
    found = json.loads(text)
    rows = [*found["types"].values()] if isinstance(found, dict) else found
    ends = [row[-1] for row in rows if isinstance(row[-1], dict) and row[-1].keys() & {"since", "until"}]
    assert ends and all({*limits.values()} <= {"1.35", "1.36", "1.37"} for limits in ends)


LOAD = """
import sys
from kubist.model import versions
versions.has_row.__defaults__ = ((1, int(sys.argv[1])),)
from kubist.api.resources.runtime_config import optional_versions
from kubist.api.resources.resource import builtin
from kubist.model.schema import catalog
print(
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" in catalog.kinds(),
    "io.k8s.api.admissionregistration.v1.Mutation" in catalog.names(),
    any(each.resource == "mutatingadmissionpolicies" for each in builtin()),
    "nodeAllocatableResourceMappings" in catalog.by_name("io.k8s.api.resource.v1.Device").fields,
    ("networking.k8s.io", "v1beta1") in optional_versions(),
)
"""


@pytest.mark.parametrize(
    ("minor", "has"),
    [
        ("35", (False, False, False, True, True)),
        ("36", (True, True, True, True, True)),
        ("37", (True, True, True, False, False)),
    ],
)
def test_what_the_served_version_lacks_is_not_loaded(minor: str, has: tuple[bool, ...]) -> None:
    command = (sys.executable, "-c", LOAD, minor)
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [str(each) for each in has]
