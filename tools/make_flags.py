#!/usr/bin/env python3
"""Make `docs/flags.md`, the list of kube-apiserver's flags and feature gates, from the code.

    python tools/make_flags.py

`tests/cli/test_flags.py` compares the file with the code.
"""

from __future__ import annotations

from pathlib import Path

from kubist.api.resources.runtime_config import optional_versions
from kubist.cli import flags
from kubist.cli.unsupported import HARMLESS, REJECTED
from kubist.model import feature_gates

TARGET = Path(__file__).parent.parent / "docs" / "flags.md"

HEAD = """\
# Flags of kube-apiserver

```sh
kubist apiserver --etcd-servers=http://127.0.0.1:2379 --runtime-config=api/beta=true --feature-gates=WatchList=false
```

`kubist apiserver` takes all flags of kube-apiserver v1.36. `tools/make_flags.py` makes this page from the code. Each
flag has one of three classes:

- **works**: the flag has the effect that it has in kube-apiserver.
- **harmless**: the flag is accepted, and the log says that it has no effect. Such a flag only tunes something that
  works differently here.
- **rejected**: every value but the default, or the values that the reason names, stops the start with a message. Such
  a flag would restrict access, protect data or change what clients see.

Unknown flags stop the start, too.
"""

OWN = """\
## Flags of Kubist

kube-apiserver does not have these flags. [Command line](cli.md) lists the flags of `kubist serve` and of the other
commands.

| flag | type | default | meaning |
|---|---|---|---|
{rows}
"""

GATES = """\
## Feature gates

`--feature-gates` knows the gates of kube-apiserver v1.36 with their defaults, locks and dependencies, and rejects wrong
values in the same words. Kubist acts on these gates:

{effective}

These gates change access control or validation, and only their defaults are accepted:

| gate | reason |
|---|---|
{rejected}

These gates switch on what Kubist does not have. They are accepted, and the log has the effect:

| gate | effect |
|---|---|
{missing}

All other gates belong to other components, to the inside of kube-apiserver, or to features that Kubist does not have.
A value other than the default is accepted, and the log says that it has no effect.

## API versions

`--runtime-config` takes the keys of kube-apiserver: `api/all`, `api/ga`, `api/beta`, `api/alpha`, `GROUP/VERSION` and
`GROUP/VERSION/RESOURCE`. The core group is `v1`, and one of its resources `v1/pods`. Every version of the catalog and
each of its resources can be switched off. These versions are off by default and can be switched on:

{versions}

Other alpha and beta versions of kube-apiserver v1.36 are rejected by name. With `api/beta=true`, `api/alpha=true` or
`api/all=true`, the versions above are served, and the log names the ones that are left out.
"""


def page() -> str:
    """Text of docs/flags.md."""
    known = flags.of_kube_apiserver()
    parts = [HEAD]
    for group in dict.fromkeys(flag.group for flag in known.values() if flag.group):
        rows = [_row(flag) for flag in known.values() if flag.group == group]
        parts.append(
            f"## {group}\n\n| flag | class | meaning or reason |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    own = "\n".join(
        f"| `--{flag.name}` | {flag.type} | {f'`{flag.default}`' if flag.default else ''} | {flag.help} |"
        for flag in sorted(known.values())
        if not flag.group
    )
    parts.append(OWN.format(rows=own))
    effective = "\n".join(
        f"- `{name}` (default {str(feature_gates.enabled({}, name)).lower()})"
        for name in feature_gates.EFFECTIVE
    )
    rejected = "\n".join(f"| `{name}` | {why} |" for name, why in feature_gates.REJECTED.items())
    missing = "\n".join(f"| `{name}` | {effect}. |" for name, effect in feature_gates.MISSING.items())
    parts.append(GATES.format(effective=effective, rejected=rejected, missing=missing, versions=_versions()))
    return "\n".join(parts)


def _row(flag: flags.Flag) -> str:
    if flag.name in REJECTED:
        return f"| `--{flag.name}` | rejected | {REJECTED[flag.name].advice} |"
    if flag.name in HARMLESS:
        return f"| `--{flag.name}` | harmless | {HARMLESS[flag.name]} |"
    return f"| `--{flag.name}` | works | {flag.help or 'Print all flags and stop.'} |"


def _versions() -> str:
    return "\n".join(
        f"- `{group}/{version}`: {', '.join(plurals)}"
        for (group, version), plurals in optional_versions().items()
    )


if __name__ == "__main__":
    TARGET.write_text(page())
