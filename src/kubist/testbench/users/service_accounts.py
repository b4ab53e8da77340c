"""Service accounts for tests: account, RBAC rules and token in one request, `/kubist/v1/serviceaccounts`."""

from __future__ import annotations

from kubist.api.application import API
from kubist.base.http.messages import Response
from kubist.model.meta import names
from kubist.model.meta.object import Object
from kubist.testbench.control_api.call import Call, Fields, conflict
from kubist.testbench.control_api.control_api import ControlAPI, json_response
from kubist.testbench.users.users import RBAC, kubeconfig, read_rules

TOKEN_SECONDS = 24 * 3600


class ServiceAccounts:
    """Creates service accounts, which are ordinary objects: the Kubernetes API reads, changes and deletes them."""

    def __init__(self, api: API) -> None:
        self._api = api

    def register(self, control: ControlAPI) -> None:
        control.add("POST", "serviceaccounts", self._create)

    async def _create(self, call: Call) -> Response:
        """Creates or updates a service account: `name`, `namespace`, RBAC `rules`. Returns a token and a kubeconfig."""
        asked = call.fields("ServiceAccount")
        name, namespace = _name(asked), _namespace(asked)
        rules = read_rules(asked)
        asked.done()
        if self._api.cluster.tokens is None:
            conflict("this server has no key to sign service account tokens with")
        # Roles come first: if the rules are invalid, nothing is created.
        if rules:
            await self._grant(name, namespace, rules)
        objects = self._api.cluster
        if objects.get("namespaces", namespace) is None:
            await objects.create("namespaces", {"metadata": {"name": namespace}})
        account = objects.get("serviceaccounts", name, namespace)
        if account is None:
            account = await objects.create("serviceaccounts", {"metadata": {"name": name}}, namespace)
        # Saves start-up time: few tests create accounts.
        from kubist.api.kinds.core.serviceaccount_token import sign_token

        token, _ = sign_token(self._api.cluster.tokens, account, TOKEN_SECONDS)
        user = f"system:serviceaccount:{namespace}:{name}"
        document = kubeconfig(self._api, call, user, namespace, token)
        made = {"name": name, "namespace": namespace, "user": user, "token": token, "kubeconfig": document}
        return json_response(made, 201)

    async def _grant(self, name: str, namespace: str, rules: list[Object]) -> None:
        """Gives the account these rules in the whole cluster, instead of those of an earlier request."""
        objects, role = self._api.cluster, f"{namespace}:{name}"

        def replace_rules(found: Object) -> Object:
            return found | {"rules": rules}

        if objects.get("clusterroles", role, group=RBAC) is None:
            await objects.create("clusterroles", {"metadata": {"name": role}, "rules": rules}, group=RBAC)
        else:
            await objects.update("clusterroles", role, "", replace_rules, group=RBAC)
        if objects.get("clusterrolebindings", role, group=RBAC) is None:
            binding = {
                "metadata": {"name": role},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
            await objects.create("clusterrolebindings", binding, group=RBAC)


def _name(asked: Fields) -> str:
    name = asked.text("name")
    for problem in names.dns_subdomain(name):
        asked.reject("name", name, problem)
    return name


def _namespace(asked: Fields) -> str:
    namespace = asked.text("namespace", "default")
    for problem in names.dns_label(namespace):
        asked.reject("namespace", namespace, problem)
    return namespace
