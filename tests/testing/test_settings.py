"""Settings as keyword arguments: the same fields and types as `kubist.Config`, and known to type checkers."""

from __future__ import annotations

import io
import pydoc
import re
import runpy
from pathlib import Path
from typing import get_type_hints

import pytest

import kubist
from kubist.api import settings
from kubist.api.config import PATHS
from kubist.testing import Cluster, KopfOperators, OperatorFailed, Refused

ROOT = Path(__file__).parents[2]


def test_settings_are_made_from_config() -> None:
    make_settings = runpy.run_path(str(ROOT / "tools" / "make_settings.py"))
    made = make_settings["module"]()
    assert Path(settings.__file__).read_text("utf-8") == made, "run: python tools/make_settings.py"


def test_settings_with_the_name_of_a_file_or_directory_may_be_paths() -> None:
    named = [name for name in get_type_hints(kubist.Config) if re.search(r"(file|_dir|_path|_config)$", name)]
    assert set(PATHS) - set(named) == {"snapshot", "stages"}
    assert set(named) - set(PATHS) == {"runtime_config"}


def test_type_checker_rejects_a_setting_of_the_wrong_type() -> None:
    # `make check` fails on an ignore comment that is not needed, so mypy must reject both calls.
    server = kubist.Server(secure_port="abc")  # type: ignore[arg-type]
    cluster = Cluster(secure_port="abc")  # type: ignore[arg-type]
    assert (str(server.config.secure_port), str(cluster.config.secure_port)) == ("abc", "abc")


def test_type_checker_rejects_a_name_that_does_not_exist() -> None:
    # As above: an ignore comment that is not needed fails `make check`.
    with pytest.raises(ImportError):
        from kubist.testing import Clustr  # type: ignore[attr-defined] # noqa: F401
    with pytest.raises(AttributeError):
        kubist.Sever()  # type: ignore[attr-defined]
    assert (
        issubclass(Refused, Exception) and issubclass(OperatorFailed, Exception) and callable(KopfOperators)
    )


def test_unknown_setting_is_rejected_with_a_hint() -> None:
    with pytest.raises(TypeError, match=r'no setting "secure_prt"; did you mean "secure_port"\?'):
        kubist.Server(secure_prt=1)  # type: ignore[call-arg]


def test_help_describes_the_public_names() -> None:
    text = io.StringIO()
    pydoc.Helper(output=text).help(kubist)
    for expected in ("kubist.Server()", "class Server", "class Config", "secure_port", "kubist.testing"):
        assert expected in text.getvalue()
