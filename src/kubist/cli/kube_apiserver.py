"""The `kube-apiserver` of the assets: `kubist apiserver` with the settings of `envtest.environment`."""

from __future__ import annotations

import gc
import os

from kubist.cli import apiserver

TYPE_CHECKING = False  # Saves start-up time: `--help` does without `typing`.
if TYPE_CHECKING:
    import socket

    from kubist.api.config import Config


def main(arguments: list[str]) -> int:
    gc.disable()  # Objects made at start are permanent. `runtime.run` enables it again.
    return min(apiserver.main(arguments, _adapted), 1)  # kube-apiserver has one exit code for all errors


def _adapted(config: Config) -> tuple[Config, socket.socket | None]:
    # Saves start-up time: `--help` needs no settings.
    from kubist.testing.envtest.environment import configured, early_listener

    config = configured(config, os.environ)
    return config, early_listener(config)
