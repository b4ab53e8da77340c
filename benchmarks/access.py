"""Cost of authentication and authorization: microseconds of each request, in this process.

python benchmarks/access.py [--bindings N]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import uvloop

from kubist.api import request as requests
from kubist.api.config import Config
from kubist.api.filters.authentication.tokens import TokenSigner
from kubist.api.resources.context import Context
from kubist.base.http.messages import Request
from kubist.base.http.tls import certificates
from kubist.server.server import Server

PATH = "/api/v1/namespaces/default/pods/some-pod"
ROUNDS, EACH = 30, 200
GROUP = "rbac.authorization.k8s.io"
ADMIN = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}


async def cost(server: Server, token: str) -> float:
    """Microseconds from a request's head to the decision, in the best of many rounds."""
    chain, best = server.api.handler_chain, float("inf")
    headers = {"authorization": f"Bearer {token}", "user-agent": "bench", "accept": "*/*", "host": "bench"}
    request = Request("GET", PATH, "", headers)
    info = requests.parse("GET", PATH, {})
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(EACH):
            ctx = Context(server.api, request, info, {})
            await chain.run(ctx)
            if ctx.seat is not None:
                ctx.seat.leave()
        best = min(best, (time.perf_counter() - begin) / EACH)
    return best * 1e6


async def bind(server: Server, name: str, *subjects: dict[str, str]) -> None:
    binding = {"metadata": {"name": name}, "roleRef": ADMIN, "subjects": list(subjects)}
    await server.api.cluster.create("clusterrolebindings", binding, group=GROUP)


async def bench(directory: Path, bindings: int) -> None:
    authority = certificates.new_authority("bench")
    authority.save(directory / "ca.crt", directory / "ca.key")
    (directory / "tokens").write_text('root,root,u-root,"system:masters"\nuser,user,u-user,"team"\n')
    config = Config(
        bind_address="127.0.0.1",
        secure_port=0,
        cert_dir=str(directory),
        token_auth_file=str(directory / "tokens"),
        authorization_mode=("RBAC",),
        service_account_issuer=("https://kubernetes.default.svc",),
        service_account_signing_key_file=str(directory / "ca.key"),
    )
    server = Server(config)
    await server.start()
    account = await server.api.cluster.create("serviceaccounts", {"metadata": {"name": "robot"}}, "default")
    uid = account["metadata"]["uid"]
    private = {"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}}
    tokens = server.api.cluster.tokens
    assert isinstance(tokens, TokenSigner)
    now = int(time.time())
    signed = tokens.sign({"aud": list(tokens.audiences), "exp": now + 3600, "kubernetes.io": private})
    await bind(
        server,
        "bench",
        {"kind": "User", "name": "user", "apiGroup": GROUP},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
    )
    known = {"system:masters": "root", "a user with a role": "user", "a service account": signed}
    before = {name: await cost(server, token) for name, token in known.items()}
    for number in range(bindings):
        await bind(server, f"b-{number}", {"kind": "User", "name": f"u-{number}", "apiGroup": GROUP})
    print(f"{'µs a request':20} {'':>10} {f'with {bindings:,} bindings of others':>35}")
    for name, token in known.items():
        print(f"{name:20} {before[name]:10.1f} {await cost(server, token):35.1f}")
    await server.stop(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bindings", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kubist-access-") as where:
        uvloop.run(bench(Path(where), options.bindings))


if __name__ == "__main__":
    main()
