"""Stages of files (`--stages`): all of them are read and checked when the server starts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kubist.base.jsontext.errors import DecodeError
from kubist.cluster.simulation.stages.limits import StageError
from kubist.cluster.simulation.stages.stage import KIND, Stage
from kubist.cluster.simulation.stages.watcher import API_VERSION
from kubist.model.codec import yaml

_SEPARATOR = re.compile(r"^---(?:[ \t].*)?\r?$", re.MULTILINE)
_NAMES = (".yaml", ".yml", ".json")


def load(paths: Iterable[str]) -> list[Stage]:
    """Stages of files and directories. StageError with the file, the document and the field if one cannot be used."""
    stages: dict[str, tuple[Stage, str]] = {}
    for path in paths:
        for file in _files(Path(path)):
            for number, document in enumerate(_documents(file), 1):
                where = f"{file}: document {number}"
                for stage in _stages(document, where):
                    if stage.name in stages:
                        raise StageError(
                            f"{where}: the Stage {stage.name} is also in {stages[stage.name][1]}"
                        )
                    stages[stage.name] = (stage, str(file))
    return [stage for stage, _ in stages.values()]


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.iterdir()):
        if file.suffix in _NAMES and file.stem != "kustomization":
            yield file


def _documents(file: Path) -> Iterator[Any]:
    try:
        text = file.read_text()
    except OSError as error:
        raise StageError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise StageError(f"{file}: the file is not UTF-8 text") from None
    for part in _SEPARATOR.split(text):
        try:
            document = yaml.parse(part.encode()).value
        except DecodeError as error:
            raise StageError(f"{file}: {error}") from None
        if document is not None:
            yield document


def _stages(document: Any, where: str) -> Iterator[Stage]:
    if isinstance(document, dict) and document.get("kind") in ("List", "StageList"):
        for item in document.get("items") or ():
            yield from _stages(item, where)
        return
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind != KIND or document.get("apiVersion") != API_VERSION:
        description = f"{document.get('apiVersion')} {kind}" if kind else "no Kubernetes object"
        raise StageError(f"{where}: expected a {KIND} of {API_VERSION} but found {description}")
    name = (document.get("metadata") or {}).get("name")
    try:
        yield Stage(document)
    except StageError as error:
        raise StageError(f"{where}: Stage {name}: {error}") from None
