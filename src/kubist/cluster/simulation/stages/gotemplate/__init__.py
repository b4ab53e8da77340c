"""Go templates as KWOK renders them: text/template, the functions that KWOK adds, and common functions of sprig.

    Template('name: {{ .metadata.name | Quote }}').render(pod, environment)

`Template` raises `StageError` for a malformed or unsupported template. `docs/workloads.md` lists what is supported.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from kubist.cluster.simulation.stages.gotemplate.environment import Environment
from kubist.cluster.simulation.stages.gotemplate.nodes import State
from kubist.cluster.simulation.stages.gotemplate.parser import parse
from kubist.cluster.simulation.stages.gotemplate.values import Number
from kubist.cluster.simulation.stages.limits import StageError, check_source


class Template:
    """A parsed template. `functions` are the names of the environment's functions that it may use."""

    __slots__ = ("_body", "_named", "text")

    def __init__(self, text: str, functions: Collection[str] = ()) -> None:
        self.text = text
        check_source(text)
        try:
            self._body, self._named = parse(text.strip(), functions)
        except StageError as error:
            raise StageError(f"template: {error}") from None
        except RecursionError:
            raise StageError("template: nested too deeply") from None

    def render(self, data: Any, environment: Environment) -> str:
        state = State(as_template_data(data), environment, self._named)
        try:
            self._body.run(state, state.data)
        except StageError as error:
            raise StageError(f"template: {error}") from None
        except RecursionError:
            raise StageError("template: nested too deeply") from None
        return "".join(state.output)


def as_template_data(data: Any) -> Any:
    """Copy of JSON data whose numbers are `Number`."""
    return json.loads(json.dumps(data), parse_int=Number, parse_float=Number)
