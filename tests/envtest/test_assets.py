"""`kubist envtest` makes the assets."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import tarfile
import warnings
from pathlib import Path

import pytest

from kubist.cli import apiserver
from kubist.cli.envtest import make_assets
from kubist.testing.envtest import etcd
from kubist.testing.envtest.assets import release, write_assets
from tests.archives import unpack
from tests.cli.processes import kubist

NAMES = ["etcd", "kube-apiserver", "kubectl"]


def content(directory: Path) -> dict[str, tuple[int, str]]:
    """Modification time and content of all executables."""
    return {
        str(path.relative_to(directory)): (
            path.lstat().st_mtime_ns,
            os.readlink(path) if path.is_symlink() else path.read_text(),
        )
        for path in sorted(directory.rglob("*"))
        if not path.is_dir()
    }


def test_command_makes_the_folder_and_prints_the_setting(tmp_path: Path) -> None:
    result = kubist("envtest", "my assets", home=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"export KUBEBUILDER_ASSETS='{tmp_path}/my assets'\n"
    found = tmp_path / "my assets"
    assert sorted(path.name for path in found.iterdir()) == [*NAMES[:1], "k8s", *NAMES[1:]]
    assert sorted(path.name for path in (found / "k8s" / release()).iterdir()) == NAMES
    assert all(os.access(found / name, os.X_OK) for name in NAMES)


def test_other_users_can_start_but_not_replace_the_executables(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_assets(tmp_path / "a" / "bin", "")
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")) if not path.is_symlink()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o755}


def test_folder_of_the_user_is_the_default(tmp_path: Path) -> None:
    result = kubist("envtest", home=tmp_path)
    folder = shlex.quote(f"{tmp_path}/.local/share/kubist/envtest")
    assert result.stdout == f"export KUBEBUILDER_ASSETS={folder}\n"
    assert (tmp_path / ".local/share/kubist/envtest/kube-apiserver").exists()


def test_second_run_changes_nothing(tmp_path: Path) -> None:
    make_assets(tmp_path)
    before = content(tmp_path)
    make_assets(tmp_path)
    assert content(tmp_path) == before


def test_damaged_executables_are_repaired(tmp_path: Path) -> None:
    make_assets(tmp_path)
    before = content(tmp_path)["etcd"][1]
    (tmp_path / "etcd").write_text("damaged")
    (tmp_path / "kube-apiserver").chmod(0o644)
    make_assets(tmp_path)
    assert (tmp_path / "etcd").read_text() == before
    assert os.access(tmp_path / "kube-apiserver", os.X_OK)


def test_kubectl_of_the_path_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'assets'}:{tmp_path / 'bin'}")
    for _ in range(2):
        make_assets(tmp_path / "assets")
        assert os.readlink(tmp_path / "assets" / "kubectl") == str(tmp_path / "bin" / "kubectl")


def test_missing_kubectl_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    make_assets(tmp_path)
    result = subprocess.run([tmp_path / "kubectl", "get", "pods"], capture_output=True, text=True)
    assert result.returncode == 127
    assert "Install kubectl, then run: kubist envtest" in result.stderr
    make_assets(tmp_path)
    assert not (tmp_path / "kubectl").is_symlink()


@pytest.mark.parametrize(
    "arguments", [("a", "b"), ("--unknown",)], ids=["two directories", "an unknown flag"]
)
def test_wrong_arguments_are_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = kubist("envtest", *arguments, home=tmp_path)
    assert result.returncode == 2
    assert "the usage is kubist envtest [--warm] [DIR]" in result.stderr


def test_directory_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = kubist("envtest", "file", home=tmp_path)
    assert (result.returncode, result.stderr) == (1, f"kubist: {tmp_path}/file is not a directory\n")


def test_executables_work_from_an_archive(assets: Path, tmp_path: Path) -> None:
    """`setup-envtest sideload` unpacks an archive with copies of the executables."""
    with tarfile.open(tmp_path / "assets.tar.gz", "w:gz", dereference=True) as archive:
        for name in NAMES:
            archive.add(assets / name, name)
    unpack(tmp_path / "assets.tar.gz", tmp_path / "other place")
    for name in ("etcd", "kube-apiserver"):
        copied = tmp_path / "other place" / name
        result = subprocess.run([copied, "--version"], capture_output=True, text=True, cwd="/", env={})
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd"])
def test_help_needs_no_path(
    assets: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Test libraries ask for the help before every start, so the executable contains it."""
    result = subprocess.run(
        [assets / name, "--help"], capture_output=True, text=True, env={"PATH": str(tmp_path)}
    )
    assert (result.returncode, result.stderr) == (0, "")
    etcd.main(["--help"]) if name == "etcd" else apiserver.main(["--help"])
    assert result.stdout == capsys.readouterr().out


def test_executables_are_valid_python(assets: Path) -> None:
    for name in ("kube-apiserver", "etcd"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile((assets / name).read_text(), name, "exec")
