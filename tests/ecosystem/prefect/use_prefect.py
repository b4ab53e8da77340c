"""Exercises the KubernetesJob of prefect-kubernetes. Usage: use_prefect.py NAMESPACE"""

import asyncio
import os
import sys
from collections.abc import Callable

from kubernetes_asyncio import client, config
from prefect_kubernetes.credentials import KubernetesClusterConfig, KubernetesCredentials
from prefect_kubernetes.jobs import KubernetesJob, KubernetesJobRun

NAMESPACE = sys.argv[1]
COMMAND = ["sh", "-c", "for step in 1 2; do echo step $step; done; sleep 2"]


def job(name: str, command: list[str]) -> KubernetesJob:
    container = {"name": "main", "image": "python:3.12", "command": command}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        },
    }
    cluster = KubernetesClusterConfig.from_file(os.environ["KUBECONFIG"])
    credentials = KubernetesCredentials(cluster_config=cluster)
    return KubernetesJob(
        v1_job=manifest, credentials=credentials, namespace=NAMESPACE, interval_seconds=1, timeout_seconds=90
    )


async def wait(run: KubernetesJobRun, print_func: Callable[[str], None] | None = None) -> None:
    """Waits for the end of a job. Prefect takes a job that has only its interim condition (SuccessCriteriaMet or
    FailureTarget) for one that failed without a reason; then it is asked again."""
    try:
        await run.await_for_completion(print_func)
    except RuntimeError as error:
        if "failed due to []" not in str(error):
            raise
        await asyncio.sleep(2)
        await run.await_for_completion(print_func)


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}})
    for print_func in (None, print):
        name = "streamed" if print_func else "read"
        run = await job(name, COMMAND).atrigger()
        await wait(run, print_func)
        (log,) = (await run.afetch_result()).values()
        assert log.splitlines() == ["step 1", "step 2"], log
    run = await job("failing", ["sh", "-c", "sleep 2; exit 3"]).atrigger()
    failure = await asyncio.gather(wait(run), return_exceptions=True)
    assert "BackoffLimitExceeded" in str(failure), failure
    print("passed")


asyncio.run(main())
