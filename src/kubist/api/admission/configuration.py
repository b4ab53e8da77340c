"""AdmissionConfiguration file: settings of admission plugins, inline or in further files."""

from __future__ import annotations

from pathlib import Path

from kubist.model.meta.object import Object

GROUP = "apiserver.config.k8s.io"


def load(file: str) -> dict[str, Object]:
    """Settings by plugin name. Raises ValueError for an invalid file."""
    if not file:
        return {}
    where = Path(file)
    document = _read(where)
    if document.get("kind") != "AdmissionConfiguration" or GROUP not in document.get("apiVersion", ""):
        raise ValueError(f"{file} is not an AdmissionConfiguration of {GROUP}: check its apiVersion and kind")
    found = {}
    for plugin in document.get("plugins") or ():
        inline = plugin.get("configuration")
        if inline is None and plugin.get("path"):
            inline = _read(where.parent / plugin["path"])
        found[plugin.get("name", "")] = inline or {}
    return found


def _read(file: Path) -> Object:
    # Saves start-up time: only --admission-control-config-file needs it.
    import yaml

    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"unable to read admission control configuration from {file}: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{file} is not a YAML mapping: it must contain one configuration object")
    return document
