"""`kubist.validate`: checks manifests against a server in memory."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubist.api.config import SERVE_DEFAULTS, Config
from kubist.base.jsontext.errors import DecodeError
from kubist.model.codec import yaml
from kubist.model.meta.object import Object
from kubist.server.runtime.run import new_event_loop
from kubist.testing.offline import order
from kubist.testing.offline.checking import Checker, Options
from kubist.testing.offline.findings import WARNING, Report, of_problem
from kubist.testing.offline.live_state import LiveServer, LiveState
from kubist.testing.offline.manifests import Manifest, Reader, Source
from kubist.testing.offline.server import WITHOUT, Identity, OfflineServer
from kubist.testing.offline.state import OldState, State

DEFAULTS = dataclasses.replace(
    SERVE_DEFAULTS, controllers=(), test_bench=False, enable_priority_and_fairness=False
)
"""Settings of the server: those of `kubist serve`, without anything that runs in the background."""


@dataclass(frozen=True)
class Inputs:
    """Manifests to check, and the state that they are checked against."""

    manifests: Sequence[Source]
    crds: Sequence[Source] = ()
    policies: Sequence[Source] = ()
    against: str | Path = ""
    """Old state: a directory or file of manifests, or a kubeconfig. Empty: nothing exists."""
    context: str = ""
    """Context of the kubeconfig. Empty: its current context."""
    exclude: Sequence[str] = ()
    """Patterns of files that are not read."""
    options: Options = field(default_factory=Options)


def validate(
    *manifests: Source,
    crds: Sequence[Source] = (),
    policies: Sequence[Source] = (),
    against: str | Path = "",
    user: str = "",
    groups: Sequence[str] = (),
    namespace: str = "default",
    strict_namespaces: bool = False,
    pod_templates: bool = True,
    allow_unknown_kinds: bool = False,
    field_manager: str = "kubectl",
    config: Config | None = None,
) -> Report:
    """Reports what the server would say about manifests: files, directories, text or objects.

        report = kubist.validate("manifests/", crds=["crds/"])
        assert report.ok, report

    `crds` and `policies` are further files, directories, text or objects that take effect. `against` is the old state,
    a directory of manifests or a kubeconfig. With a `user`, its RBAC permissions are checked.
    """
    if groups and not user:
        raise ValueError("groups need a user: kubist.validate(…, user=…, groups=…)")
    options = Options(
        namespace=namespace,
        strict_namespaces=strict_namespaces,
        identity=Identity(user, tuple(groups)),
        field_manager=field_manager,
        pod_templates=pod_templates,
        allow_unknown_kinds=allow_unknown_kinds,
    )
    inputs = Inputs(manifests, crds, policies, against, options=options)
    with ThreadPoolExecutor(1) as thread:  # the caller may run an event loop
        return thread.submit(_run, inputs, config or DEFAULTS).result()


def _run(inputs: Inputs, config: Config) -> Report:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(check(inputs, config))


async def check(inputs: Inputs, config: Config = DEFAULTS) -> Report:
    """Checks the inputs. Raises ValueError or OSError if the old state cannot be read at all."""
    options = inputs.options
    report = Report()
    reader = Reader(inputs.exclude)
    manifests = reader.read(inputs.manifests)
    report.files = list(reader.files)
    context = [manifest for manifest in reader.read(inputs.crds) if order.is_crd(manifest)]
    context += reader.read(inputs.policies)
    report.problems = [of_problem(problem) for problem in reader.problems]
    report.is_complete = not any(problem.is_unreadable for problem in reader.problems)
    live, old = _old_state(inputs, report)
    server = OfflineServer(_offline(config))
    await server.open()
    try:
        state = State(server, options.field_manager)
        policies: list[Object] = []
        if live is not None:
            copied = LiveState(live, server, state, with_roles=bool(options.identity.name))
            policies = await copied.load([*manifests, *context], options.namespace, report)
        elif old:
            loading = OldState(server, state, options.namespace, report)
            policies = await loading.load(old, [*manifests, *context])
        await Checker(server, state, options, report).check(manifests, context, policies)
    finally:
        if live is not None:
            await live.close()
        await server.close()
    return report


def _offline(config: Config) -> Config:
    without = tuple(dict.fromkeys((*config.disable_admission_plugins, *WITHOUT)))
    return dataclasses.replace(config, disable_admission_plugins=without)


def _old_state(inputs: Inputs, report: Report) -> tuple[LiveServer | None, list[Manifest]]:
    """The server of a kubeconfig, or the manifests of the old state."""
    if not inputs.against:
        return None, []
    if is_kubeconfig(Path(inputs.against)):
        return LiveServer(str(inputs.against), inputs.context), []
    if not Path(inputs.against).exists():
        raise ValueError(f"{inputs.against} does not exist; name a directory of manifests or a kubeconfig")
    reader = Reader(inputs.exclude)
    manifests = reader.read([Path(inputs.against)])
    report.problems += [dataclasses.replace(of_problem(each), severity=WARNING) for each in reader.problems]
    report.is_complete &= not any(problem.is_unreadable for problem in reader.problems)
    return None, manifests


def is_kubeconfig(path: Path) -> bool:
    """Whether a file is a kubeconfig, and not a manifest."""
    if not path.is_file():
        return False
    try:
        value: Any = yaml.parse(path.read_bytes()).value
    except DecodeError:
        return False
    return isinstance(value, dict) and value.get("kind", "Config") == "Config" and "clusters" in value
