"""Overlapping files in one volume: equal paths, or one path below another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kubist.base.jsontext.quoting import quoted
from kubist.model.meta.object import Object

File = tuple[str, str]
"""A path and its source."""
MOST = 128
"""Maximum number of overlaps reported for a volume. There can be far more pairs of files than a response can hold."""


def overlapping_paths(volumes: list[Object]) -> list[str]:
    """Warnings about overlapping paths, for all volumes."""
    warnings = []
    for volume in volumes:
        name = quoted(volume.get("name", ""))
        for source, described in (
            ("configMap", "ConfigMap {name}"),
            ("secret", "Secret {secretName}"),
            ("downwardAPI", "DownwardAPI"),
        ):
            items = (volume.get(source) or {}).get("items")
            if items:
                names = {"name": quoted(volume[source].get("name", ""))}
                names["secretName"] = quoted(volume[source].get("secretName", ""))
                what = described.format_map(names)
                files = [(item.get("path", ""), "") for item in items]
                warnings += [f"volume {name} ({what}): overlapping paths: {o}" for o in _overlaps(files)]
        if "projected" in volume:
            files = []
            for projection in volume["projected"].get("sources") or ():
                if not projection:
                    warnings.append(f"volume {name} (Projected) has no sources provided")
                files += _projected(projection)
            warnings += [f"volume {name} (Projected): overlapping paths: {o}" for o in _overlaps(files)]
    return warnings


def _projected(projection: Object) -> list[File]:
    """Files of the projection's first source that has items."""
    for source, what in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        items = (projection.get(source) or {}).get("items")
        if items:
            label = (
                what if source == "downwardAPI" else f"{what} {quoted(projection[source].get('name', ''))}"
            )
            return [(item.get("path", ""), label) for item in items]
    if "serviceAccountToken" in projection:
        return [(projection["serviceAccountToken"].get("path", ""), "ServiceAccountToken")]
    return []


def _overlaps(files: list[File]) -> list[str]:
    """Descriptions of pairs of files: each file with each earlier file at the same path, or at a path above or below
    it."""
    stripped = [(path.rstrip("/"), source) for path, source in files]
    pairs = islice(_overlapping([path for path, _ in stripped]), MOST)
    return [f"{_format_file(stripped[index])} with {_format_file(stripped[other])}" for index, other in pairs]


class _Directory:
    """Directory of the paths seen so far: the files with exactly this path, and the first MOST files below it."""

    __slots__ = ("below", "entries", "here")

    def __init__(self) -> None:
        self.entries: dict[str, _Directory] = {}
        self.here: list[int] = []
        self.below: list[int] = []


def _overlapping(paths: list[str]) -> Iterator[tuple[int, int]]:
    """Pairs of overlapping paths by index, the later path first."""
    root = _Directory()
    for index, path in enumerate(paths):
        if not path:
            continue
        at = root
        others: list[int] = []
        for step in path.split("/"):
            others += at.here
            if len(at.below) < MOST:
                at.below.append(index)
            at = at.entries.setdefault(step, _Directory())
        for other in sorted(others + at.here + at.below):
            yield index, other
        at.here.append(index)


def _format_file(file: File) -> str:
    path, source = file
    return f"{quoted(path)} ({source})" if source else quoted(path)
