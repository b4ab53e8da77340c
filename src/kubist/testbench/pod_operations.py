"""Operations on simulated pods and nodes: `/kubist/v1/pods/OPERATION` and `/kubist/v1/nodes/OPERATION`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from kubist.api.application import API
from kubist.api.object_client import ObjectClient
from kubist.cluster.control import usage
from kubist.cluster.simulation import scripting
from kubist.cluster.simulation.commands import Run
from kubist.cluster.simulation.nodes import NOT_READY, SIMULATED, UNREACHABLE, set_state
from kubist.cluster.simulation.outcomes import ENDINGS, Exit, Outcome, parse_outcome
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, parse_label_selector
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation, conflict
from kubist.testbench.control_api.field_types import Fields, FieldType, integer, parsed, short_text, text

KIND = "PodOperation"
NODE_STATES = {"ready": (), "not-ready": (NOT_READY,), "unreachable": (UNREACHABLE,)}
LONGEST_MESSAGE = 4096


def _check_reason(reason: str) -> list[str]:
    is_reason = len(reason) <= 64 and reason.isascii() and reason.isalnum() and reason[0].isalpha()
    return [] if is_reason or not reason else ["must be a word of letters and digits, such as OOMKilled"]


def _amount(resource: str) -> FieldType:
    def parse(amount: str) -> str:
        usage.parse_usage(f"{resource}={amount}")
        return amount

    return parsed(parse)


MESSAGE = short_text(LONGEST_MESSAGE, excerpt=32, may_be_empty=True)


class PodSelection(Body):
    namespace: str = "default"
    name: Annotated[str, "Name of one pod."] = ""
    container: Annotated[str, "Name of one container. Missing: all."] = ""
    label_selector: Annotated[
        LabelSelector | None,
        parsed(parse_label_selector),
        "Labels of the pods, instead of a name. Neither: all pods of the namespace.",
    ] = None

    def check(self, fields: Fields) -> None:
        if self.name and self.label_selector is not None:
            fields.reject("labelSelector", str(self.label_selector), "must not be set together with name")


class PodSuccess(PodSelection):
    pass


class PodCrashLoop(PodSelection):
    exit_code: Annotated[int, integer(1, 255)] = 1


class PodFailure(PodSelection):
    exit_code: Annotated[int, integer(1, 255)] = 1
    reason: Annotated[str, text(_check_reason), "Such as OOMKilled."] = ""
    message: Annotated[str, MESSAGE, "Message."] = ""


class _Ready(FieldType):
    """True or false. Missing is an error."""

    def read(self, fields: Fields, name: str, default: Any) -> Any:
        if name not in fields:
            fields.reject(name, None, "must be true or false")
        return super().read(fields, name, default)


READY = _Ready({"type": "boolean"}, bool, "true or false")


class PodReadiness(PodSelection):
    ready: Annotated[bool, READY]


class PodOutcome(PodSelection):
    outcome: Annotated[Outcome | None, parsed(parse_outcome), "As in the annotation. Empty: the default."] = (
        None
    )


class PodUsage(PodSelection):
    cpu: Annotated[str, _amount("cpu"), "Such as 250m."] = ""
    memory: Annotated[str, _amount("memory"), "Such as 64Mi."] = ""


class PodName(Body):
    namespace: str
    name: str


class NodeChoice(Body):
    name: Annotated[str, "Name of one node."] = ""
    label_selector: Annotated[
        LabelSelector | None, parsed(parse_label_selector), "Labels of the nodes, instead of a name."
    ] = None

    def check(self, fields: Fields) -> None:
        if bool(self.name) == (self.label_selector is not None):
            fields.reject("name", self.name, "set either name or labelSelector")


class NodeName(Body):
    name: str


class PodNames(Body):
    items: list[PodName]


class NodeNames(Body):
    items: list[NodeName]


BODIES = (PodSuccess, PodCrashLoop, PodFailure, PodReadiness, PodOutcome, PodUsage, NodeChoice)
SCHEMAS = {each.__name__: each for each in (*BODIES, PodNames, PodName, NodeNames, NodeName)}


class Workloads:
    """Scripts simulated pods and nodes."""

    def __init__(self, api: API) -> None:
        self._client = ObjectClient(api)

    def register(self, control: ControlAPI) -> None:
        control.describe(SCHEMAS)
        for operation, handler, body in (
            ("fail", self._fail, PodFailure),
            ("succeed", self._succeed, PodSuccess),
            ("crash-loop", self._crash_loop, PodCrashLoop),
            ("ready", self._ready, PodReadiness),
            ("outcome", self._outcome, PodOutcome),
            ("usage", self._usage, PodUsage),
        ):
            control.add(Operation("POST", f"pods/{operation}", handler, body.__name__, "PodNames"))
        control.add(Operation("POST", "nodes/{operation}", self._node, "NodeChoice", "NodeNames"))

    async def _fail(self, call: Call) -> Object:
        """Ends running containers with an exit code: `exitCode`, `reason`, `message`."""
        failure = call.read(KIND, PodFailure)
        run = Run(code=failure.exit_code, reason=failure.reason, output=failure.message)
        return await self._end(self._pods(failure), run)

    async def _succeed(self, call: Call) -> Object:
        """Ends running containers with exit code 0."""
        return await self._end(self._pods(call.read(KIND, PodSuccess)), Run())

    async def _crash_loop(self, call: Call) -> Object:
        """Makes containers fail now and after every restart: `exitCode`."""
        crash = call.read(KIND, PodCrashLoop)
        chosen = self._pods(crash)

        def change(outcome: Outcome) -> Outcome:
            return replace(outcome.without(*ENDINGS), exit=Exit(crash.exit_code))

        await self._change(chosen, change)
        for pod in chosen.pods:
            await scripting.end_now(self._client, pod, chosen.container, Run(code=crash.exit_code))
        return chosen.answer()

    async def _ready(self, call: Call) -> Object:
        """Makes containers ready or not: `ready`."""
        readiness = call.read(KIND, PodReadiness)
        chosen = self._pods(readiness)
        for pod in chosen.pods:
            await scripting.set_ready(self._client, pod, chosen.container, readiness.ready)
        return chosen.answer()

    async def _outcome(self, call: Call) -> Object:
        """Replaces the outcome by the text of an annotation: `outcome`. Empty: the default."""
        request = call.read(KIND, PodOutcome)
        outcome = request.outcome or Outcome()
        chosen = self._pods(request)
        if chosen.container and outcome.evicted_after is not None:
            raise status.bad_request("only the whole pod can be evicted: leave out the container")
        return await self._change(chosen, lambda _: outcome)

    async def _usage(self, call: Call) -> Object:
        """Sets the usage of containers: `cpu`, `memory`."""
        request = call.read(KIND, PodUsage)
        chosen = self._pods(request)
        amounts = {"cpu": request.cpu, "memory": request.memory}
        amounts = {resource: amount for resource, amount in amounts.items() if amount}
        if not amounts:
            raise status.bad_request("set cpu or memory")
        for pod in chosen.pods:
            await scripting.change_usage(self._client, pod, chosen.container, amounts)
        return chosen.answer()

    async def _end(self, chosen: _Chosen, run: Run) -> Object:
        ended = [
            pod for pod in chosen.pods if await scripting.end_now(self._client, pod, chosen.container, run)
        ]
        if not ended:
            conflict("no container of the selected pods is running")
        return _Chosen(ended, chosen.container).answer()

    async def _change(self, chosen: _Chosen, change: scripting.Change) -> Object:
        for pod in chosen.pods:
            await scripting.change_outcome(self._client, pod, chosen.container, change)
        return chosen.answer()

    def _pods(self, request: PodSelection) -> _Chosen:
        """Pods that a request names."""
        namespace, name, container = request.namespace, request.name, request.container
        selector = request.label_selector
        chosen = scripting.selected(
            self._client, namespace, name, selector.matches if selector is not None else lambda _: True
        )
        pods = [pod for pod in chosen if scripting.container_names(pod, container)]
        if not pods:
            if name and not container:
                raise status.not_found("", "pods", name)
            what = f' and a container "{container}"' if container else ""
            where = f'the name "{name}"' if name else f'the labels "{selector or ""}"'
            raise status.APIError(404, "NotFound", f"no pod in namespace {namespace} has {where}{what}")
        return _Chosen(pods, container)

    async def _node(self, call: Call) -> Object:
        """Makes nodes ready, not-ready or unreachable: `name` or `labelSelector`."""
        operation = call.params["operation"]
        if operation not in NODE_STATES:
            raise status.no_such_path()
        request = call.read("NodeOperation", NodeChoice)
        name, selector = request.name, request.label_selector
        nodes = [
            entry
            for entry in self._client.collection("nodes").entries.values()
            if (entry.name == name if selector is None else selector.matches(entry.labels))
        ]
        if not nodes:
            if name:
                raise status.not_found("", "nodes", name)
            raise status.APIError(404, "NotFound", f'no node has the labels "{selector}"')
        for entry in nodes:
            if entry.labels.get(SIMULATED) != "true":
                conflict(f'node "{entry.name}" is not simulated: it has no label {SIMULATED}=true')
        for entry in nodes:
            await set_state(self._client, entry.name, *NODE_STATES[operation])
        return {"items": [{"name": entry.name} for entry in nodes]}


class _Chosen:
    """Pods of an operation, and the name of a container or an empty string."""

    def __init__(self, pods: list[Object], container: str) -> None:
        self.pods = pods
        self.container = container

    def answer(self) -> Object:
        listed = (pod["metadata"] for pod in self.pods)
        return {
            "items": [{"namespace": metadata["namespace"], "name": metadata["name"]} for metadata in listed]
        }
