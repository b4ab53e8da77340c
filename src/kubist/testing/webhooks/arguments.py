"""Arguments of the functions of webhooks: a function declares only those that it needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

Function = Callable[..., Any]
Arguments = tuple[list[Any], dict[str, Any]]


def arguments_of(function: Function, known: tuple[str, ...]) -> Callable[..., Arguments]:
    """A function that takes the known values and returns the arguments for `function`.

    Parameters get the values in order. A parameter named like a known value gets that value. Parameters with a default
    keep it. Raises TypeError if the function needs more values.
    """
    parameters = list(inspect.signature(function).parameters.values())
    named = [
        parameter
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (parameter.name in known or parameter.default is parameter.empty)
    ]
    if not named and any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return lambda *values: (list(values), {})
    free = [name for name in known if name not in {parameter.name for parameter in named}]
    if len(named) > len(known):
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{name}() needs {len(named)} arguments; it gets {' and '.join(known)}")
    sources = {}
    for parameter in named:
        sources[parameter.name] = parameter.name if parameter.name in known else free.pop(0)

    def arguments(*values: Any) -> Arguments:
        given = dict(zip(known, values, strict=True))
        args, kwargs = [], {}
        for parameter in named:
            value = given[sources[parameter.name]]
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return args, kwargs

    return arguments
