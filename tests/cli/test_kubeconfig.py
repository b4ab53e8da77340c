"""`kubist kubeconfig`: prints or merges a whole kubeconfig, or says in one line why it cannot."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kubist.api.config import Config
from kubist.model.meta.object import Object
from kubist.server.runtime import kubeconfig, pki
from tests.cli.backups import one_line
from tests.cli.processes import kubist

Spoil = Callable[[Path], object]


@pytest.fixture
def file(home: Path) -> Path:
    """Kubeconfig of a data directory."""
    path = home / "data" / "kubeconfig"
    pki.prepare(Config(), path.parent, in_memory=False)
    kubeconfig.write(path, pki.credential(path.parent, "https://127.0.0.1:6443"))
    return path


def test_whole_kubeconfig_is_printed(file: Path, home: Path) -> None:
    result = kubist("kubeconfig", f"--data-dir={file.parent}", home=home)
    assert (result.returncode, result.stdout, result.stderr) == (0, file.read_text(), "")


def cut(start: int, end: int | None) -> Spoil:
    """Keeps a part of the file."""
    return lambda path: path.write_bytes(path.read_bytes()[start:end])


def edit(change: Callable[[Object], object]) -> Spoil:
    def act(path: Path) -> None:
        document = yaml.safe_load(path.read_text())
        change(document)
        path.write_text(yaml.safe_dump(document))

    return act


def spoil_key(document: Object) -> None:
    user = document["users"][0]["user"]
    user["client-key-data"] = base64.b64encode(base64.b64decode(user["client-key-data"])[:60]).decode()


DAMAGES: dict[str, Spoil] = {
    "empty": cut(0, 0),
    "first byte": cut(0, 1),
    "half": cut(0, 2000),
    "without its last line": cut(0, -30),
    "end": cut(-1000, None),
    "zeros": lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\xfd" * 100),
    "list": lambda path: path.write_text("[1, 2]"),
    "other YAML": lambda path: path.write_text("{clusters: [], users: [], contexts: []}"),
    "without a user": edit(lambda document: document["users"].clear()),
    "without a server": edit(lambda document: document["clusters"][0]["cluster"].pop("server")),
    "other user": edit(lambda document: document["contexts"][0]["context"].update(user="nobody")),
    "key": edit(spoil_key),
}


@pytest.mark.parametrize("spoil", DAMAGES.values(), ids=list(DAMAGES))
@pytest.mark.parametrize("merging", [False, True], ids=["print", "merge"])
def test_damaged_kubeconfig_is_neither_printed_nor_merged(
    file: Path, home: Path, spoil: Spoil, *, merging: bool
) -> None:
    spoil(file)
    flags = ["--merge"] if merging else []
    result = kubist("kubeconfig", *flags, f"--data-dir={file.parent}", home=home)
    one_line(result, f"{file} is not a kubeconfig", "`kubist serve` writes it anew when it starts")
    assert result.stdout == "" and not (home / ".kube").exists()


@pytest.mark.parametrize("text", ["{", "[1, 2]", "clusters: 3", "users: [x]", "\x00"])
def test_file_that_is_not_a_kubeconfig_is_not_changed(file: Path, home: Path, text: str) -> None:
    (home / ".kube").mkdir()
    (home / ".kube/config").write_text(text)
    result = kubist("kubeconfig", "--merge", f"--data-dir={file.parent}", home=home)
    one_line(result, ".kube/config is not a kubeconfig")
    assert (home / ".kube/config").read_text() == text


def test_missing_kubeconfig_prints_one_line_error(home: Path) -> None:
    one_line(kubist("kubeconfig", home=home), "there is no kubeconfig in", "kubist serve")
