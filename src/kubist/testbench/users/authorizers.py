"""Authorization webhooks for tests: `/kubist/v1/authorizers`. They are asked before the configured authorizers.

Their responses are not cached, so a new or removed webhook and a changed decision hold for the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.application import API
from kubist.api.webhooks.client import trust
from kubist.api.webhooks.client_config import validate_url
from kubist.base.http.messages import Response
from kubist.model.meta import names, status
from kubist.model.meta.object import Object
from kubist.testbench.control_api.call import GROUP, Call, Fields
from kubist.testbench.control_api.control_api import ControlAPI, json_response

if TYPE_CHECKING:
    from kubist.api.filters.webhooks import Webhook

MOST = 100
"""Maximum number of authorizers."""
TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0
POLICIES = ("Deny", "NoOpinion")


class Authorizers:
    """Authorization webhooks, each with a name."""

    def __init__(self, api: API) -> None:
        self._api = api
        self._made: dict[str, tuple[Object, Webhook]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def register(self, control: ControlAPI) -> None:
        control.add("GET", "authorizers", self._list)
        control.add("POST", "authorizers", self._create)
        control.add("DELETE", "authorizers/{name}", self._delete)

    async def _list(self, _: Call) -> Object:
        """Authorization webhooks, the first asked first."""
        return {"items": [shown for shown, _ in reversed(self._made.values())]}

    async def _create(self, call: Call) -> Response:
        """Adds an authorization webhook. It is asked before all others."""
        asked = call.fields("Authorizer")
        name = asked.text("name")
        if wrong := names.dns_subdomain(name):
            asked.reject("name", name, ", ".join(wrong))
        timeout = asked.seconds("timeout")
        if timeout is not None and not 0 < timeout <= LONGEST_TIMEOUT:
            asked.reject("timeout", timeout, f"must be more than 0 and at most {LONGEST_TIMEOUT:g} seconds")
        policy = asked.text("failurePolicy", POLICIES[0])
        if policy not in POLICIES:
            asked.reject("failurePolicy", policy, f"must be {' or '.join(POLICIES)}")
        below = asked.below("clientConfig")
        config = _client_config(below)
        asked.done(below)
        if name in self._made:
            raise status.already_exists(GROUP, "authorizers", name)
        if len(self._made) >= MOST:
            raise status.bad_request(f"there are already {MOST} authorizers")
        seconds = TIMEOUT if timeout is None else timeout
        # Saves start-up time: few tests authorize.
        from kubist.testbench.users.authorization_webhook import make_webhook

        webhook = make_webhook(self._api.cluster, config, seconds, deny_on_failure=policy == "Deny")
        shown = {"name": name, "clientConfig": config, "timeout": f"{seconds:g}s", "failurePolicy": policy}
        self._made[name] = shown, webhook
        self._api.authorization.add_first(webhook)
        return json_response(shown, 201)

    async def _delete(self, call: Call) -> None:
        """Removes an authorization webhook."""
        found = self._made.pop(call.params["name"], None)
        if found is None:
            raise status.not_found(GROUP, "authorizers", call.params["name"])
        self._api.authorization.remove(found[1])


def _client_config(asked: Fields) -> Object:
    """URL and CA of a webhook."""
    url, bundle = asked.text("url"), asked.text("caBundle")
    if not url:
        asked.require("url", "the address of the webhook, https://host[:port]/path")
    else:
        asked.errors += validate_url(url, asked.path("url"))
    try:
        if bundle:
            trust(bundle)
    except ValueError:
        asked.reject("caBundle", f"{bundle[:40]}…", "must be the base64 of PEM certificates")
    return {"url": url, "caBundle": bundle} if bundle else {"url": url}
