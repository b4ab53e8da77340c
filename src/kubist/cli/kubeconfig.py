"""`kubist kubeconfig`: prints the kubeconfig of a data directory, or merges it into the user's kubeconfig."""

from __future__ import annotations

import yaml

from kubist.api.filters.kubeconfig import read_kubeconfig
from kubist.cli import flags, help
from kubist.cli.data_dir import DATA_DIR, data_dir
from kubist.cli.exits import fail
from kubist.server.runtime.kubeconfig import CONTEXT, merge

FLAGS = (
    DATA_DIR,
    flags.Flag(
        "merge", "bool", "false", "Add a context `kubist` to the user's own kubeconfig instead of printing."
    ),
)
TITLE = """\
Prints the kubeconfig of a data directory, or adds it to the kubeconfig of the user.

Usage:
  kubist kubeconfig [flags]
  kubist kubeconfig > admin.yaml"""


def main(arguments: list[str]) -> int:
    known = {flag.name: flag for flag in FLAGS}
    values = flags.parse(arguments, known)
    if "help" in values:
        return help.show(TITLE, FLAGS)
    merging = flags.is_on(values, "merge")
    directory = data_dir(values)
    file = directory / "kubeconfig"
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return fail(f"there is no kubeconfig in {directory}: `kubist serve` writes one when it starts")
    try:
        if not read_kubeconfig(str(file)).has_credentials:
            raise ValueError(f"{file} is not a kubeconfig: its user has no credentials")
    except ValueError as error:
        return fail(f"{error}: `kubist serve` writes it anew when it starts")
    try:
        if merging:
            print(f"added the context {CONTEXT!r} to {merge(yaml.safe_load(content))}")
        else:
            print(content.decode(), end="")
    except ValueError as error:
        return fail(str(error))
    return 0
