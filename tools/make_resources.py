"""Makes src/kubist/api/resources/resources.json, the built-in resources in discovery order, from resources.json facts.

python tools/make_resources.py PATH/TO/facts
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src/kubist/api/resources/resources.json"


def main() -> None:
    facts = json.loads((Path(sys.argv[1]) / "resources.json").read_text())
    rows = []
    for fact in facts:
        row = [fact[k] for k in ("group", "version", "resource", "kind", "singular")]
        row += [fact["scope"] == "Namespaced", fact["verbs"], fact["shortNames"], fact["categories"]]
        row += [[[s["name"], s["kind"], s["group"], s["version"], s["verbs"]] for s in fact["subresources"]]]
        rows.append([*row, fact["preferred"]])
    TARGET.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
