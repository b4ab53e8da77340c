"""Base of all webhooks of tests: a Python function, its calls, its errors, and its removal."""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.testing.webhooks.webhooks import Webhooks
from collections.abc import Callable

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

RECORDED = 1000
"""Number of calls, and of errors, that are kept. Older ones are dropped."""
R = TypeVar("R")


class Hook(Generic[R]):
    """A function that a cluster calls. `R` is the type of the requests.

    It is removed at the end of a `with` block, or when the cluster stops. Calling the hook calls the function.
    """

    kind: ClassVar[str]
    takes: ClassVar[tuple[str, ...]]
    """Values that the function may take, in order."""

    def __init__(self, webhooks: Webhooks, function: Function, name: str) -> None:
        self._webhooks = webhooks
        self._function = function
        self._arguments = _arguments_of(function, self.takes)
        self.name = name
        self._calls: deque[R] = deque(maxlen=RECORDED)
        self._errors: deque[BaseException] = deque(maxlen=RECORDED)
        self._unread: deque[BaseException] = deque(maxlen=RECORDED)
        self.is_removed = False
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        count, errors = len(self._calls), len(self._errors)
        text = f"{count} call{'' if count == 1 else 's'}"
        if errors:
            text += f", {errors} error{'' if errors == 1 else 's'}"
        if self.is_removed:
            text += ", removed"
        about = self.describe()
        return f"<{self.kind} {self.name}{f': {about}' if about else ''}; {text}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    @property
    def calls(self) -> list[R]:
        """Requests that reached the function, as the cluster sent them; the last 1,000."""
        return list(self._calls)

    @property
    def errors(self) -> list[BaseException]:
        """Exceptions of the function. A test that reads them handles them: the plugin does not report them again."""
        self._unread.clear()
        return list(self._errors)

    def take_unread_errors(self) -> list[str]:
        """Reports of the errors that the test did not read, each with its traceback."""
        reports = [self.report(error) for error in self._unread]
        self._unread.clear()
        return reports

    def report(self, error: BaseException) -> str:
        return f"{self.kind} {self.name} failed:\n" + "".join(
            traceback.format_exception(type(error), error, _own_frames(error))
        )

    def remove(self) -> None:
        """Removes the webhook from the cluster. Its calls and errors stay readable."""
        if not self.is_removed:
            self.is_removed = True
            self._webhooks.remove(self)

    # Subclasses implement the following.

    def describe(self) -> str:
        """Subject of the webhook for its representation."""
        return ""

    def register(self) -> None:
        """Makes the cluster call the webhook."""
        raise NotImplementedError

    def unregister(self) -> None:
        """Makes the cluster call the webhook no longer."""
        raise NotImplementedError

    def answer(self, review: Object) -> Object:
        """Response to a review. Runs in a thread of its own."""
        raise NotImplementedError

    # For subclasses:

    def record(self, request: R) -> None:
        self._calls.append(request)

    def run(self, *values: Any) -> Any:
        """Result of the function for the values of `takes`. A coroutine runs in an event loop of this thread."""
        args, kwargs = self._arguments(*values)
        result = self._function(*args, **kwargs)
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result

    def note_error(self, error: BaseException) -> str:
        """Keeps an exception of the function. Returns one line about it for the client."""
        self._errors.append(error)
        self._unread.append(error)
        text = " ".join(str(error).split())
        said = f"{type(error).__name__}: {text}" if text else type(error).__name__
        frames = traceback.extract_tb(_own_frames(error))
        where = f" ({Path(frames[0].filename).name}:{frames[0].lineno})" if frames else ""
        return f"{said}{where}"


async def _awaited(result: Any) -> Any:
    return await result


def _own_frames(error: BaseException) -> Any:
    """Traceback of an exception from the function on, without the frames that called it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(
        ("kubist.testing.webhooks", "asyncio")
    ):
        trace = trace.tb_next
    return trace


def checked(value: Any, hook: Hook[Any]) -> Any:
    """A value that the function returned, if it is JSON."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{hook.kind} {hook.name} returned a value that is not JSON: {error}") from None


Function = Callable[..., Any]
Arguments = tuple[list[Any], dict[str, Any]]


def _arguments_of(function: Function, known: tuple[str, ...]) -> Callable[..., Arguments]:
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
        by_name = dict(zip(known, values, strict=True))
        args, kwargs = [], {}
        for parameter in named:
            value = by_name[sources[parameter.name]]
            if parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return args, kwargs

    return arguments
