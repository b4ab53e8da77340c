"""Errors of a server that cannot start, for programs that run one.

    try:
        server.start()
    except kubist.errors.PortInUse as error:
        print(error)

The message is one line that names the file, port or setting and the next step. The command line prints it too, after
the flag that names the file.
"""

from __future__ import annotations

__all__ = [
    "CertificateError",
    "DamagedStore",
    "DataDirectoryInUse",
    "InvalidSettings",
    "KubistError",
    "MissingDependency",
    "PortInUse",
    "StartError",
]


class KubistError(Exception):
    """Base class of all errors of Kubist that a program can handle."""


class StartError(KubistError):
    """The server cannot start. Subclasses name the usual causes."""

    exit_code = 1
    """Exit code of a command that fails with this error."""


class PortInUse(StartError):
    """Another process listens on the port."""

    exit_code = 5


class DataDirectoryInUse(StartError):
    """Another server uses the data directory."""

    exit_code = 6


class DamagedStore(StartError):
    """The database file is damaged, or is not a database."""

    exit_code = 4


class CertificateError(StartError, ValueError):
    """A certificate or key file is missing or unreadable."""


class InvalidSettings(StartError, ValueError):
    """A setting has an invalid value, or settings contradict each other."""

    exit_code = 2


class MissingDependency(StartError):
    """A setting needs a Python package that is not installed."""
