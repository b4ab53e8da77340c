"""Operations on simulated pods and nodes: `/kubist/v1/pods/OPERATION` and `/kubist/v1/nodes/OPERATION`."""

from __future__ import annotations

from dataclasses import replace

from kubist.api.application import API
from kubist.api.objectclient import ObjectClient
from kubist.cluster.control import usage
from kubist.cluster.simulation import scripting
from kubist.cluster.simulation.commands import Run
from kubist.cluster.simulation.nodes import NOT_READY, SIMULATED, UNREACHABLE, set_state
from kubist.cluster.simulation.outcomes import ENDINGS, Exit, Outcome, parse_outcome
from kubist.model.meta import status
from kubist.model.meta.object import Object
from kubist.model.meta.selectors import LabelSelector, parse_label_selector
from kubist.testbench.control_api.call import Call, Fields, conflict
from kubist.testbench.control_api.control_api import ControlAPI

KIND = "PodOperation"
NODE_STATES = {"ready": (), "not-ready": (NOT_READY,), "unreachable": (UNREACHABLE,)}
LONGEST_MESSAGE = 4096


class Workloads:
    """Scripts simulated pods and nodes."""

    def __init__(self, api: API) -> None:
        self._client = ObjectClient(api)

    def register(self, control: ControlAPI) -> None:
        control.add("POST", "pods/fail", self._fail)
        control.add("POST", "pods/succeed", self._succeed)
        control.add("POST", "pods/crash-loop", self._crash_loop)
        control.add("POST", "pods/ready", self._ready)
        control.add("POST", "pods/outcome", self._outcome)
        control.add("POST", "pods/usage", self._usage)
        control.add("POST", "nodes/{operation}", self._node)

    async def _fail(self, call: Call) -> Object:
        """Ends running containers with an exit code: `exitCode`, `reason`, `message`."""
        asked = call.fields(KIND)
        code = _exit_code(asked)
        reason, message = asked.text("reason"), asked.text("message")
        if reason and not _is_reason(reason):
            asked.reject("reason", reason, "must be a word of letters and digits, such as OOMKilled")
        if len(message) > LONGEST_MESSAGE:
            asked.reject("message", message[:32], f"must have at most {LONGEST_MESSAGE} characters")
        chosen = self._pods(asked)
        return await self._end(chosen, Run(code=code, reason=reason, output=message))

    async def _succeed(self, call: Call) -> Object:
        """Ends running containers with exit code 0."""
        return await self._end(self._pods(call.fields(KIND)), Run())

    async def _crash_loop(self, call: Call) -> Object:
        """Makes containers fail now and after every restart: `exitCode`."""
        asked = call.fields(KIND)
        code = _exit_code(asked)
        chosen = self._pods(asked)

        def change(outcome: Outcome) -> Outcome:
            return replace(outcome.without(*ENDINGS), exit=Exit(code))

        await self._change(chosen, change)
        for pod in chosen.pods:
            await scripting.end_now(self._client, pod, chosen.container, Run(code=code))
        return chosen.answer()

    async def _ready(self, call: Call) -> Object:
        """Makes containers ready or not: `ready`."""
        asked = call.fields(KIND)
        ready = asked.boolean("ready")
        if ready is None and not asked.errors:
            asked.reject("ready", None, "must be true or false")
        chosen = self._pods(asked)
        for pod in chosen.pods:
            await scripting.set_ready(self._client, pod, chosen.container, bool(ready))
        return chosen.answer()

    async def _outcome(self, call: Call) -> Object:
        """Replaces the outcome by the text of an annotation: `outcome`. Empty: the default."""
        asked = call.fields(KIND)
        text = asked.text("outcome")
        outcome = Outcome()
        if text:
            try:
                outcome = parse_outcome(text)
            except ValueError as error:
                asked.reject("outcome", text, str(error))
        chosen = self._pods(asked)
        if chosen.container and outcome.evicted_after is not None:
            raise status.bad_request("only the whole pod can be evicted: leave out the container")
        return await self._change(chosen, lambda _: outcome)

    async def _usage(self, call: Call) -> Object:
        """Sets the usage of containers: `cpu`, `memory`."""
        asked = call.fields(KIND)
        amounts = {}
        for resource in usage.RESOURCES:
            amount = asked.text(resource)
            if amount:
                try:
                    usage.parse_usage(f"{resource}={amount}")
                    amounts[resource] = amount
                except ValueError as error:
                    asked.reject(resource, amount, str(error))
        chosen = self._pods(asked)
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

    def _pods(self, asked: Fields) -> _Chosen:
        """Pods that a request names: `namespace`, `name` or `labelSelector`, and `container`."""
        namespace = asked.text("namespace", "default")
        name, container = asked.text("name"), asked.text("container")
        selector = _selector(asked)
        if name and selector is not None:
            asked.reject("labelSelector", str(selector), "must not be set together with name")
        asked.done()
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
        asked = call.fields("NodeOperation")
        name, selector = asked.text("name"), _selector(asked)
        if bool(name) == (selector is not None):
            asked.reject("name", name, "set either name or labelSelector")
        asked.done()
        found = [
            entry
            for entry in self._client.collection("nodes").entries.values()
            if (entry.name == name if selector is None else selector.matches(entry.labels))
        ]
        if not found:
            if name:
                raise status.not_found("", "nodes", name)
            raise status.APIError(404, "NotFound", f'no node has the labels "{selector}"')
        for entry in found:
            if entry.labels.get(SIMULATED) != "true":
                conflict(f'node "{entry.name}" is not simulated: it has no label {SIMULATED}=true')
        for entry in found:
            await set_state(self._client, entry.name, *NODE_STATES[operation])
        return {"items": [{"name": entry.name} for entry in found]}


class _Chosen:
    """Pods of an operation, and the name of a container or an empty string."""

    def __init__(self, pods: list[Object], container: str) -> None:
        self.pods = pods
        self.container = container

    def answer(self) -> Object:
        listed = (pod["metadata"] for pod in self.pods)
        return {"items": [{"namespace": held["namespace"], "name": held["name"]} for held in listed]}


def _selector(asked: Fields) -> LabelSelector | None:
    text = asked.text("labelSelector")
    if not text:
        return None
    try:
        return parse_label_selector(text)
    except ValueError as error:
        asked.reject("labelSelector", text, str(error))
        return None


def _exit_code(asked: Fields) -> int:
    code = asked.integer("exitCode", 1, least=1)
    if code > 255:
        asked.reject("exitCode", code, "must be at most 255")
    return code


def _is_reason(text: str) -> bool:
    return len(text) <= 64 and text.isascii() and text.isalnum() and text[0].isalpha()
