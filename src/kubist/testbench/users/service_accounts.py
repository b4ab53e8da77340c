"""Service accounts for tests: account, RBAC rules and token in one request, `/kubist/v1/serviceaccounts`."""

from __future__ import annotations

from typing import Annotated

from kubist.api.application import API
from kubist.model.meta import names
from kubist.model.meta.object import Object
from kubist.testbench.control_api.body import Body
from kubist.testbench.control_api.control_api import Call, ControlAPI, Operation, conflict
from kubist.testbench.control_api.field_types import text
from kubist.testbench.users.users import RBAC, Kubeconfig, WithRules, kubeconfig

TOKEN_SECONDS = 24 * 3600


AccountName = Annotated[str, text(names.dns_subdomain, absent=""), "DNS subdomain name."]
AccountNamespace = Annotated[
    str,
    text(names.dns_label),
    "Namespace of the account, `default` by default. It is created if it is missing.",
]


class ServiceAccountRequest(WithRules):
    name: AccountName
    namespace: AccountNamespace = "default"


class NewServiceAccount(Body):
    name: AccountName
    namespace: AccountNamespace
    user: Annotated[str, "Name of the user: system:serviceaccount:NAMESPACE:NAME."]
    token: Annotated[str, "Bearer token of the account, valid for 24 hours."]
    kubeconfig: Kubeconfig


class ServiceAccounts:
    """Creates service accounts, which are ordinary objects: the Kubernetes API reads, changes and deletes them."""

    def __init__(self, api: API) -> None:
        self._api = api

    def register(self, control: ControlAPI) -> None:
        control.add(
            Operation(
                "POST",
                "serviceaccounts",
                self._create,
                body="ServiceAccountRequest",
                result="NewServiceAccount",
                code=201,
            ),
        )

    async def _create(self, call: Call) -> Object:
        """Creates or updates a service account: `name`, `namespace`, RBAC `rules`. Returns a token and a kubeconfig."""
        request = call.read("ServiceAccount", ServiceAccountRequest)
        name, namespace = request.name, request.namespace
        if self._api.cluster.tokens is None:
            conflict("this server has no key to sign service account tokens with")
        # Roles come first: if the rules are invalid, nothing is created.
        if request.rules:
            await self._grant(name, namespace, request.rules)
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
        return {"name": name, "namespace": namespace, "user": user, "token": token, "kubeconfig": document}

    async def _grant(self, name: str, namespace: str, rules: list[Object]) -> None:
        """Gives the account these rules in the whole cluster, instead of those of an earlier request."""
        objects, role = self._api.cluster, f"{namespace}:{name}"

        def replace_rules(cluster_role: Object) -> Object:
            return cluster_role | {"rules": rules}

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
