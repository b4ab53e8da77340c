"""Optional dependencies: `kubist[etcd]`, `kubist[secretbox]`."""

from __future__ import annotations

import importlib.util
import shlex
import sys

from kubist.errors import MissingDependency


def missing_dependency(flag: str, extra: str, packages: str) -> MissingDependency:
    """Error for a flag that needs the packages of an extra."""
    return MissingDependency(
        f"{flag} needs {packages}, which are not installed: `{install_command(extra)}` installs them"
    )


def install_command(extra: str) -> str:
    """Command that adds an extra to this environment. Environments of uv have no pip."""
    requirement = shlex.quote(f"kubist[{extra}]")
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} {requirement}"
    return f"{python} -m pip install {requirement}"
