"""All commands. A new command is a line here, a module with its function, and a section of docs/cli.md."""

from __future__ import annotations

TYPE_CHECKING = False  # Saves start-up time: `kubist --help` does without `typing`.
if TYPE_CHECKING:
    from collections.abc import Callable

    Row = tuple[str, str, str]

TOPICS: dict[str, tuple[Row, ...]] = {
    "Run a server": (
        ("serve", "serve:main", "a small control plane on an embedded store, nothing to configure"),
        ("apiserver", "apiserver:main", "only the API server, with kube-apiserver's own flags"),
        ("exec", "exec:main", "run a command with a temporary server and KUBECONFIG set"),
        ("validate", "validate:main", "report what the server would say about manifests"),
        ("envtest", "envtest:main", "make kube-apiserver and etcd executables for envtest"),
    ),
    "Use a server": (
        ("status", "status:main", "show the address and the health of a server"),
        ("logs", "server_log:main", "print the log of a detached server"),
        ("stop", "stop:main", "stop a server"),
        ("kubeconfig", "kubeconfig:main", "print the kubeconfig of a data directory"),
        ("clusters", "clusters:main", "list, create and delete the clusters of `serve --clusters`"),
        ("replay", "replay:main", "send the requests of a recording or audit log to a server"),
    ),
    "Data": (
        ("backup", "store:run_backup", "copy the embedded store to a file, even while the server runs"),
        ("restore", "store:run_restore", "replace the store by such a file"),
        ("doctor", "store:run_doctor", "check a store for problems"),
    ),
    "This program": (
        ("completion", "completion:main", "print a script for completion in bash, zsh or fish"),
        ("help", "help:main", "describe a command"),
        ("version", "help:show_version", "print the version"),
    ),
}
"""Topic → its commands: name, module and function in this package, summary."""


def all_commands() -> dict[str, tuple[str, str]]:
    """Name → module and function, summary."""
    return {name: (place, summary) for rows in TOPICS.values() for name, place, summary in rows}


def find(name: str) -> Callable[[list[str]], int] | None:
    """Function of a command; None for an unknown name."""
    entry = all_commands().get(name)
    if entry is None:
        return None
    # Saves start-up time: a command loads only its own module.
    import signal
    from importlib import import_module

    module, _, function = entry[0].partition(":")
    # Some modules in C crash if Ctrl-C interrupts their import.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        made: Callable[[list[str]], int] = getattr(import_module(f"kubist.cli.{module}"), function)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return made
