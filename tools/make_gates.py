"""Makes src/kubist/model/feature_gates.json, the feature gates of every version, from versions.json of the facts.

    python tools/make_gates.py PATH/TO/facts

`gates.json` beside this script adds what the facts lack: `needs` has the gates that a gate depends on. `1.36` has the
gates of kube-apiserver v1.36 itself that differ from those of v1.37 with `--emulated-version=1.36`, which the facts
describe. `null` is a gate that v1.36 does not know.

A gate has a row for each version in which it changed: the version, stage, default, whether it is locked to its default.
The stage of a gate that a version no longer knows is REMOVED. The oldest version of the facts has a row for each of its
gates, however old they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE.parent / "src/kubist/model/feature_gates.json"
REMOVED = ["REMOVED", False, False]
Table = dict[str, Any]


def tables(facts: Path, own: Table) -> dict[str, Table]:
    """Gates by version, the oldest version first."""
    versions = json.loads((facts / "versions.json").read_text())
    result = {}
    for version in sorted(versions, key=lambda text: [int(number) for number in text.split(".")]):
        gates = versions[version]["gates"] | own.get(version, {})
        result[version] = {name: gate for name, gate in gates.items() if gate is not None}
    return result


def history(name: str, by_version: dict[str, Table]) -> list[list[Any]]:
    """Rows of one gate."""
    rows: list[list[Any]] = []
    for version, gates in by_version.items():
        gate = gates.get(name, REMOVED)
        if gate != (rows[-1][1:] if rows else REMOVED):
            rows.append([version, *gate])
    return rows


def main() -> None:
    own = json.loads((HERE / "gates.json").read_text())
    by_version = tables(Path(sys.argv[1]), own)
    names = sorted({name for gates in by_version.values() for name in gates})
    sections = {"gates": {name: history(name, by_version) for name in names}, "needs": own["needs"]}
    lines = (
        f'"{section}": {{\n'
        + ",\n".join(f'"{name}": {json.dumps(value)}' for name, value in rows.items())
        + "\n}"
        for section, rows in sections.items()
    )
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
