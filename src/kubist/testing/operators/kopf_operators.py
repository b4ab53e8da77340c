"""Fixture `kopf_operator`: starts kopf operators for a test and stops them after it."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from kubist.base.hints import did_you_mean
from kubist.testing.operators import run_kopf
from kubist.testing.operators.denials import Denials
from kubist.testing.operators.operator import (
    Operator,
    OperatorFailed,
    ProcessOperator,
    ThreadOperator,
    missing_watches,
)
from kubist.testing.operators.run_kopf import Watch

if TYPE_CHECKING:
    from kubist.api.verbs.watch import Watcher
    from kubist.testing.cluster import Cluster

# pytest omits the frames of this module from its reports.
__tracebackhide__ = True

PAUSE = 0.01
"""Seconds between two checks of the open watches."""
AGENT = "kopf/"
MODES = ("process", "thread")
PROCESS_OPTIONS = ("liveness_endpoint", "peering_name", "priority", "standalone")
"""Options of `kopf.operator` that a process takes. A thread takes all."""
CLIENT_MODULES = ("kubernetes.config.kube_config", "kubernetes_asyncio.config.kube_config")
"""Modules that read KUBECONFIG when they are imported."""
DEFAULT_LOCATION = "KUBE_CONFIG_DEFAULT_LOCATION"


class Account(Protocol):
    """A cluster or one of its users."""

    @property
    def kubeconfig(self) -> Path: ...

    @property
    def url(self) -> str: ...


class KopfOperators:
    """Starts operators of the cluster of a test: `kopf_operator("operator.py")`.

    Until the end of the test, KUBECONFIG names the cluster, so that `kopf.testing.KopfRunner` works too.
    """

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        if importlib.util.find_spec("kopf") is None:
            raise OperatorFailed("kopf_operator needs kopf: pip install kopf")
        self._cluster = cluster
        self._directory = directory
        self._operators: list[Operator] = []
        self._environment = _Kubeconfig()

    def __repr__(self) -> str:
        return f"<operators: {', '.join(map(repr, self._operators)) or 'none'}>"

    def __enter__(self) -> Self:
        self._environment.use(self._cluster.kubeconfig)
        return self

    def __exit__(self, *exception: object) -> None:
        """Stops all operators. Raises OperatorFailed if one ended on its own."""
        failures = []
        try:
            for operator in reversed(self._operators):
                end = operator.end
                try:
                    operator.stop()
                except OperatorFailed as failed:
                    failures.append(str(failed))
                if end or (end := operator.end):
                    failures.append(str(operator.failure(end)))
        finally:
            self._environment.restore()
        if failures:
            raise OperatorFailed("\n".join(failures))

    def __call__(
        self,
        *sources: str | Path,
        mode: Literal["process", "thread"] = "process",
        namespaces: str | Sequence[str] = (),
        user: Account | None = None,
        env: Mapping[str, str] | None = None,
        verbose: bool = False,
        debug: bool = False,
        timeout: float = 60.0,
        grace: float | None = None,
        **options: Any,
    ) -> Operator:
        """Starts an operator and waits until it watches its resources.

        `sources` are files, relative to the directory of the test, or names of modules. `mode="thread"` runs it in the
        test process; without sources it has the handlers that are registered already, such as those of the test file.
        `user` is a `cluster.service_account(…)`, a `cluster.user(…)` or another cluster; the default is the
        administrator. `env` adds variables to a process. Functions of the operator that still run `grace` seconds after
        its stop are cancelled; the default is kopf's, up to 5 seconds. `options` are those of `kopf.operator`.
        """
        if mode not in MODES:
            raise ValueError(f'there is no mode "{mode}"{did_you_mean(mode, MODES)}')
        if grace is not None and grace < 0:
            raise ValueError(f"grace must be a number of seconds, not {grace}")
        files, modules = self._sort(sources)
        namespace_list = [namespaces] if isinstance(namespaces, str) else list(namespaces)
        options = {
            "standalone": "peering_name" not in options,
            "clusterwide": not namespace_list,
            "namespaces": namespace_list,
            **options,
        }
        account: Account = self._cluster if user is None else user
        title = ", ".join([*(Path(file).name for file in files), *modules]) or "of this process"
        before = self._watchers(account)
        denials = Denials(_cluster_of(account))
        if mode == "process":
            self._check_process(sources, options)
            logs = {"verbose": verbose, "debug": debug}
            told = {"files": files, "modules": modules, "options": options, "logging": logs, "grace": grace}
            variables = {**os.environ, "KUBECONFIG": str(account.kubeconfig), **(env or {})}
            operator: Operator = ProcessOperator(title, denials, told, variables, self._directory)
        else:
            if env:
                raise TypeError('env needs mode="process": a thread has the variables of the test')
            self._use_kubeconfig(account)
            if "registry" not in options:
                options["registry"] = self._registry(files, modules)
            level = logging.DEBUG if verbose or debug else logging.INFO
            operator = ThreadOperator(title, denials, options, level, grace)
        self._operators.append(operator)
        self._await_watches(operator, account, before, time.perf_counter() + timeout)
        return operator

    def _sort(self, sources: Sequence[str | Path]) -> tuple[list[str], list[str]]:
        """Files and modules among the sources."""
        files, modules = [], []
        for source in sources:
            if isinstance(source, str) and not source.endswith(".py") and os.sep not in source:
                modules.append(source)
                continue
            paths = [path for path in (self._directory / source, Path(source)) if path.is_file()]
            if not paths:
                raise FileNotFoundError(
                    f"there is no operator {source}, neither here nor in {self._directory}"
                )
            files.append(str(paths[0].resolve()))
        return files, modules

    def _check_process(self, sources: Sequence[str | Path], options: Mapping[str, Any]) -> None:
        if not sources:
            raise TypeError(
                'a process needs a file or a module; for the handlers of the test use mode="thread"'
            )
        for option in options:
            if option not in (*PROCESS_OPTIONS, "clusterwide", "namespaces"):
                hint = did_you_mean(option, PROCESS_OPTIONS)
                raise TypeError(
                    f'an operator in a process has no option "{option}"{hint or "; use a thread"}'
                )

    def _use_kubeconfig(self, account: Account) -> None:
        others = [one for one in self._operators if isinstance(one, ThreadOperator) and one.is_running]
        if others and os.environ.get("KUBECONFIG") != str(account.kubeconfig):
            raise RuntimeError(
                "operators in threads share the variable KUBECONFIG; start operators of other users as processes"
            )
        self._environment.use(account.kubeconfig)

    def _registry(self, files: Sequence[str], modules: Sequence[str]) -> Any:
        """Registry with the handlers of these sources. Modules that the test imported are in the default registry."""
        # Saves start-up time: kopf is loaded by operators in threads only.
        import kopf

        default = kopf.get_default_registry()
        if not files:
            if (key := tuple(modules)) in _REGISTRIES:
                return _REGISTRIES[key]
            if all(name in sys.modules for name in modules):
                return default
        registry = type(default)()
        kopf.set_default_registry(registry)
        try:
            run_kopf.load(files, modules)
        finally:
            kopf.set_default_registry(default)
        if not files:
            _REGISTRIES[key] = registry
        return registry

    def _watchers(self, account: Account) -> set[Watcher]:
        """Open watches on the server."""
        cluster = _cluster_of(account)

        async def find() -> set[Watcher]:
            return {watcher for open_ in cluster.inner.api.watchers.values() for watcher in open_}

        return cluster.run(find())

    def _await_watches(
        self, operator: Operator, account: Account, before: set[Watcher], deadline: float
    ) -> None:
        """Waits until the operator is ready and the server has all its watches."""
        try:
            expected = operator.watches(deadline)
            while missing := missing_watches(expected, _watches(self._watchers(account) - before)):
                if end := operator.end:
                    raise operator.failure(end)
                if time.perf_counter() > deadline:
                    raise operator.failure(f"does not watch {', '.join(missing)}")
                time.sleep(PAUSE)
        except BaseException:
            self._operators.remove(operator)
            operator.stop()
            raise


_REGISTRIES: dict[tuple[str, ...], Any] = {}
"""Handlers of the modules that operators in threads of the process have loaded, because a module registers its handlers
only once."""


def _cluster_of(account: Account) -> Cluster:
    """Cluster of a user, or the cluster itself."""
    holder: Any = account
    cluster: Cluster = getattr(holder, "cluster", holder)
    return cluster


def _watches(watchers: Iterable[Watcher]) -> list[Watch]:
    """Watches that kopf opened."""
    return [
        (watcher.ctx.resource.group, watcher.ctx.resource.resource, watcher.ctx.namespace)
        for watcher in watchers
        if watcher.ctx.request.headers.get("user-agent", "").startswith(AGENT)
    ]


class _Kubeconfig:
    """KUBECONFIG of the test process, including libraries that have already read it."""

    def __init__(self) -> None:
        self._variable = os.environ.get("KUBECONFIG")
        self._locations = {name: _location(name) for name in CLIENT_MODULES}

    def use(self, path: Path) -> None:
        os.environ["KUBECONFIG"] = str(path)
        for name in CLIENT_MODULES:
            if name in sys.modules:
                setattr(sys.modules[name], DEFAULT_LOCATION, str(path))

    def restore(self) -> None:
        if self._variable is None:
            os.environ.pop("KUBECONFIG", None)
        else:
            os.environ["KUBECONFIG"] = self._variable
        for name, location in self._locations.items():
            if name in sys.modules:
                setattr(sys.modules[name], DEFAULT_LOCATION, location)


def _location(module: str) -> str:
    """Path that a library reads by default."""
    default = os.environ.get("KUBECONFIG", "~/.kube/config")
    return str(getattr(sys.modules.get(module), DEFAULT_LOCATION, default))
