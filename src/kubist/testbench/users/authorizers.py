"""Authorization webhooks for tests: `/kubist/v1/authorizers`. They are asked before the configured authorizers.

Their responses are not cached, so a new or removed webhook and a changed decision hold for the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from kubist.api.application import API
from kubist.api.webhooks.client import trust
from kubist.api.webhooks.client_config import validate_url
from kubist.model.meta import names, status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation
from kubist.testbench.control_api.field_types import (
    GROUP,
    Fields,
    FieldType,
    Invalid,
    read_seconds,
    seconds,
    text,
)

if TYPE_CHECKING:
    from kubist.api.filters.webhooks import Webhook

MOST = 100
"""Maximum number of authorizers."""
TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0


def _check_name(name: str) -> list[str]:
    return [", ".join(problems)] if (problems := names.dns_subdomain(name)) else []


def _read_timeout(value: Any) -> float:
    length = read_seconds(value)
    if not 0 < length <= LONGEST_TIMEOUT:
        why = f"must be more than 0 and at most {LONGEST_TIMEOUT:g} seconds"
        raise Invalid(why, value=length)
    return length


TIMEOUTS = FieldType(seconds().schema, convert=_read_timeout)


class ClientConfig(Body):
    url: Annotated[str, "https://host[:port]/path of the webhook."]
    ca_bundle: Annotated[str, "Base64 of the CA certificates in PEM."] = ""

    def check(self, fields: Fields) -> None:
        if not self.url:
            fields.require("url", "the address of the webhook, https://host[:port]/path")
        else:
            fields.errors += validate_url(self.url, fields.path("url"))
        try:
            if self.ca_bundle:
                trust(self.ca_bundle)
        except ValueError:
            fields.reject("caBundle", f"{self.ca_bundle[:40]}…", "must be the base64 of PEM certificates")


class Authorizer(Body):
    name: Annotated[str, text(_check_name, absent="")]
    timeout: Annotated[float | None, TIMEOUTS] = None
    failure_policy: Literal["Deny", "NoOpinion"] = "Deny"
    client_config: ClientConfig


class Authorizers:
    """Authorization webhooks, each with a name."""

    def __init__(self, api: API) -> None:
        self._api = api
        self._made: dict[str, tuple[Object, Webhook]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def register(self, control: ControlAPI) -> None:
        control.add(
            Operation("GET", "authorizers", self._list, result="AuthorizerList"),
            Operation("POST", "authorizers", self._create, body="Authorizer", result="Authorizer", code=201),
            Operation("DELETE", "authorizers/{name}", self._delete, code=204),
        )

    async def _list(self, _: Call) -> Object:
        """Authorization webhooks, the first asked first."""
        return {"items": [authorizer for authorizer, _ in reversed(self._made.values())]}

    async def _create(self, call: Call) -> Object:
        """Adds an authorization webhook. It is asked before all others."""
        request = call.read("Authorizer", Authorizer)
        name, policy, client_config = request.name, request.failure_policy, request.client_config
        if name in self._made:
            raise status.already_exists(GROUP, "authorizers", name)
        if len(self._made) >= MOST:
            raise status.bad_request(f"there are already {MOST} authorizers")
        seconds = TIMEOUT if request.timeout is None else request.timeout
        config = {"url": client_config.url}
        if client_config.ca_bundle:
            config["caBundle"] = client_config.ca_bundle
        # Saves start-up time: few tests authorize.
        from kubist.testbench.users.authorization_webhook import make_webhook

        webhook = make_webhook(self._api.cluster, config, seconds, deny_on_failure=policy == "Deny")
        authorizer = {
            "name": name,
            "clientConfig": config,
            "timeout": f"{seconds:g}s",
            "failurePolicy": policy,
        }
        self._made[name] = authorizer, webhook
        self._api.authorization.add_first(webhook)
        return authorizer

    async def _delete(self, call: Call) -> None:
        """Removes an authorization webhook."""
        authorizer = self._made.pop(call.params["name"], None)
        if authorizer is None:
            raise status.not_found(GROUP, "authorizers", call.params["name"])
        self._api.authorization.remove(authorizer[1])
