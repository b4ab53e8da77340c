"""Operator for Sites, with four bugs that ordinary tests do not find. `fixed.py` is the same without them."""

import kubernetes
import pages
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError


def register(core: kubernetes.client.CoreV1Api, site: str, title: str) -> None:
    """Adds a site to the index that all sites share."""
    index = core.read_namespaced_config_map("index", "default")
    index.data = {**(index.data or {}), site: title}
    try:
        core.replace_namespaced_config_map("index", "default", index)
    except ApiException as error:
        # Bug: the update is lost after a conflict.
        print("could not update the index:", error.reason)


def ensure_theme(core: kubernetes.client.CoreV1Api, site: str) -> None:
    """Makes the one theme of a site."""
    found = core.list_namespaced_config_map("default", label_selector=f"theme={site}").items
    if not found:
        # Bug: after a stale list there are two themes.
        metadata = {"generateName": f"{site}-", "labels": {"theme": site}}
        core.create_namespaced_config_map("default", {"metadata": metadata})


def count_pages(core: kubernetes.client.CoreV1Api) -> int:
    """Number of pages, read in chunks."""
    count, token = 0, ""
    while True:
        try:
            chunk = core.list_namespaced_config_map(
                "default", label_selector="page", limit=2, _continue=token
            )
        except ApiException:
            # Bug: the pages after an expired chunk are not counted.
            return count
        count += len(chunk.items)
        token = chunk.metadata._continue
        if not token:
            return count


def follow_pages(core: kubernetes.client.CoreV1Api, known: set[str]) -> None:
    """Keeps the names of all pages."""
    while True:
        try:
            for event in pages.watch(core):
                if event["type"] == "DELETED":
                    known.discard(event["object"].metadata.name)
                else:
                    known.add(event["object"].metadata.name)
                pages.report(core, known)
        except HTTPError:
            # Bug: a page that was deleted while the watch was cut stays known.
            continue
