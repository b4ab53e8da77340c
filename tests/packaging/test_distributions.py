"""The wheel and the sdist: contents, metadata, and a server from an environment that has only the wheel."""

from __future__ import annotations

import email
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from kubist.base.version import __version__
from tests.archives import unpack
from tests.cli.processes import ROOT
from tests.packaging.installed import build, check_serving, run

SOURCE = ROOT / "src/kubist"


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read(f"kubist-{__version__}.dist-info/METADATA")
    return email.message_from_string(raw.decode())


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"kubist/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    names = set(contents(wheel))
    assert {name for name in names if not name.startswith(f"kubist-{__version__}.dist-info/")} == expected
    assert {"kubist/py.typed", "kubist/model/schema/catalog.json", "kubist/cli/flags.json"} < names
    assert f"kubist-{__version__}.dist-info/licenses/LICENSE" in names


def test_wheel_from_the_sdist_is_the_same(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    unpack(sdist, tmp_path)
    unpacked = tmp_path / f"kubist-{__version__}"
    assert (unpacked / "CHANGELOG.md").exists() and (unpacked / "tests/packaging").is_dir()
    build(unpacked, tmp_path / "again", "wheel")
    (again,) = (tmp_path / "again").glob("*.whl")
    assert contents(again) == contents(wheel)


def test_entry_points_are_the_command_and_the_pytest_plugin(wheel: Path) -> None:
    text = contents(wheel)[f"kubist-{__version__}.dist-info/entry_points.txt"].decode().split()
    assert text == [
        "[console_scripts]", "kubist", "=", "kubist.cli:main", "[pytest11]", "kubist", "=", "kubist.testing.plugin",
    ]  # fmt: skip


def test_metadata_is_complete(wheel: Path) -> None:
    found = metadata(wheel)
    assert (found["Name"], found["Version"], found["Requires-Python"]) == ("kubist", __version__, ">=3.11")
    assert (found["License-Expression"], found["License-File"]) == ("Apache-2.0", "LICENSE")
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload() == (ROOT / "README.md").read_text()
    assert {"etcd", "secretbox", "dev"} <= set(found.get_all("Provides-Extra", []))
    classifiers = found.get_all("Classifier", [])
    for version in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {version}" in classifiers
    assert not found.get_all("Project-URL")


def test_server_needs_neither_grpc_nor_developer_tools(wheel: Path) -> None:
    required = [value for value in metadata(wheel).get_all("Requires-Dist", []) if "extra ==" not in value]
    names = {value.split("<")[0].split(">")[0].split(";")[0].strip().lower() for value in required}
    assert names == {
        "cryptography", "google-re2", "hpack", "httptools", "lightkube-models", "orjson", "pyyaml",
        "sortedcontainers", "tzdata", "uvloop",
    }  # fmt: skip


@pytest.mark.timeout(300)
def test_installed_wheel_serves(installed: Path, home: Path) -> None:
    check_serving(installed, home)


def test_installed_wheel_has_the_pytest_plugin(installed: Path, home: Path) -> None:
    (home / "test_it.py").write_text("def test_it(cluster):\n    assert cluster.get('namespace/default')\n")
    output = run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", directory=home)
    assert "1 passed" in output
