"""Fixture of both test files: a cluster with the CRD of Sites, and the operator as a process."""

import pytest

from kubist.testing import Cluster
from kubist.testing.operators.kopf_operators import KopfOperators

OBJECTS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  names: {kind: Site, plural: sites}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: index}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: report}}
"""


class World:
    """Operations of a test on Sites and pages."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def site(self, title: str) -> None:
        """Makes or changes the Site `blog`, and waits until the operator has handled it."""
        site = {
            "apiVersion": "example.com/v1",
            "kind": "Site",
            "metadata": {"name": "blog"},
            "spec": {"title": title},
        }
        self.cluster.load(site)
        self.cluster.wait(
            "site/blog", lambda found: found.get("status", {}).get("title") == title, timeout=60
        )

    def page(self, name: str) -> None:
        """Makes a page, and waits until the operator reports it."""
        self.cluster.load(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"page": ""}}}
        )
        self.cluster.wait("configmap/report", lambda found: name in self.pages(found), timeout=60)

    @staticmethod
    def pages(report: dict) -> list[str]:
        return report.get("data", {}).get("pages", "").split()


@pytest.fixture
def world(cluster: Cluster, kopf_operator: KopfOperators) -> World:
    cluster.load(OBJECTS)
    kopf_operator("operator_main.py", namespaces="default")
    return World(cluster)
