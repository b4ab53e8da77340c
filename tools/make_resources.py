"""Makes src/kubist/api/resources/resources.json, the built-in resources in discovery order, from resources.json and
versions.json of the facts.

    python tools/make_resources.py PATH/TO/facts

A row is group, version, plural, kind, singular, whether it is namespaced, verbs, short names, categories, subresources,
whether the version is preferred. A subresource is name, kind, group, version, verbs. A resource ends
with `since` and `until` if not all versions of the facts have it; a subresource, if they differ from the resource's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from version_limits import limits

TARGET = Path(__file__).parent.parent / "src/kubist/api/resources/resources.json"


def name(fact: dict[str, Any]) -> str:
    return f"{fact['group']}/{fact['version']}/{fact['resource']}"


def main() -> None:
    path = Path(sys.argv[1])
    facts = json.loads((path / "resources.json").read_text())
    newest = [name(fact) for fact in facts]
    newest += [f"{name(fact)}/{s['name']}" for fact in facts for s in fact["subresources"]]
    bounds = limits(path, "resources", newest, name)

    def end(resource: str) -> list[dict[str, str]]:
        return [bounds[resource]] if resource in bounds else []

    def sub_end(resource: str, subresource: str) -> list[dict[str, str]]:
        own = end(f"{resource}/{subresource}")
        return own if own != end(resource) else []

    rows = []
    for fact in facts:
        row = [fact[k] for k in ("group", "version", "resource", "kind", "singular")]
        row += [fact["scope"] == "Namespaced", fact["verbs"], fact["shortNames"], fact["categories"]]
        subresources = [
            [*(s[k] for k in ("name", "kind", "group", "version", "verbs")), *sub_end(name(fact), s["name"])]
            for s in fact["subresources"]
        ]
        rows.append([*row, subresources, fact["preferred"], *end(name(fact))])
    TARGET.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
