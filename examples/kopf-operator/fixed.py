"""Operator for Sites: the functions of `buggy.py` without their bugs."""

import kubernetes
import pages
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError


def register(core: kubernetes.client.CoreV1Api, site: str, title: str) -> None:
    """Adds a site to the index that all sites share. After a conflict it tries again with the newest index."""
    while True:
        index = core.read_namespaced_config_map("index", "default")
        index.data = {**(index.data or {}), site: title}
        try:
            core.replace_namespaced_config_map("index", "default", index)
            return
        except ApiException as error:
            if error.status != 409:
                raise


def ensure_theme(core: kubernetes.client.CoreV1Api, site: str) -> None:
    """Makes the one theme of a site. Its name is fixed, so the server rejects a second one."""
    if core.list_namespaced_config_map("default", label_selector=f"theme={site}").items:
        return
    try:
        metadata = {"name": f"{site}-theme", "labels": {"theme": site}}
        core.create_namespaced_config_map("default", {"metadata": metadata})
    except ApiException as error:
        if error.status != 409:
            raise


def count_pages(core: kubernetes.client.CoreV1Api) -> int:
    """Number of pages, read in chunks. After an expired chunk it starts again."""
    count, token = 0, ""
    while True:
        try:
            chunk = core.list_namespaced_config_map(
                "default", label_selector="page", limit=2, _continue=token
            )
        except ApiException as error:
            if error.status != 410:
                raise
            count, token = 0, ""
            continue
        count += len(chunk.items)
        token = chunk.metadata._continue
        if not token:
            return count


def follow_pages(core: kubernetes.client.CoreV1Api, known: set[str]) -> None:
    """Keeps the names of all pages. After a cut it lists them again, and watches from the version of the list."""
    while True:
        listed = core.list_namespaced_config_map("default", label_selector="page")
        known.clear()
        known.update(page.metadata.name for page in listed.items)
        pages.report(core, known)
        try:
            for event in pages.watch(core, listed.metadata.resource_version):
                if event["type"] == "DELETED":
                    known.discard(event["object"].metadata.name)
                else:
                    known.add(event["object"].metadata.name)
                pages.report(core, known)
        except HTTPError:
            continue
