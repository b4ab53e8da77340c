"""Files of one volume that get in each other's way: the same path twice, or one below another."""

from __future__ import annotations

from typing import Any

from kubist.meta.fields import quoted

Object = dict[str, Any]
File = tuple[str, str]
"""A path, and what it comes from."""


def overlapping_paths(volumes: list[Object]) -> list[str]:
    """Warnings for all volumes."""
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
    """The files of the first source of a projection that names any."""
    for source, what in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        items = (projection.get(source) or {}).get("items")
        if items:
            shown = (
                what if source == "downwardAPI" else f"{what} {quoted(projection[source].get('name', ''))}"
            )
            return [(item.get("path", ""), shown) for item in items]
    if "serviceAccountToken" in projection:
        return [(projection["serviceAccountToken"].get("path", ""), "ServiceAccountToken")]
    return []


def _overlaps(files: list[File]) -> list[str]:
    found = []
    earlier: list[File] = []
    for path, source in files:
        file = (path.rstrip("/"), source)
        found += [f"{_shown(file)} with {_shown(other)}" for other in earlier if _overlap(file[0], other[0])]
        earlier.append(file)
    return found


def _overlap(path: str, other: str) -> bool:
    if not path or not other:
        return False
    return f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")


def _shown(file: File) -> str:
    path, source = file
    return f"{quoted(path)} ({source})" if source else quoted(path)
