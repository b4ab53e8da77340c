"""Admission webhook: adds the label `team` to Deployments, and rejects images without a version."""

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEAM = "platform"


def add_team(deployment: dict) -> None:
    """Mutating rule: every Deployment has a team."""
    deployment["metadata"].setdefault("labels", {}).setdefault("team", TEAM)


def require_versions(deployment: dict) -> str | None:
    """Validating rule: every image names a version. Returns the reason for a rejection."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        name, _, version = container["image"].rpartition(":")
        if not name or version == "latest":
            return f"image {container['image']} of container {container['name']} needs a version"
    return None


def review(path: str, request: dict) -> dict:
    """Response to an AdmissionReview, as a real cluster sends it."""
    response = {"uid": request["uid"], "allowed": True}
    if path == "/mutate":
        labels = request["object"]["metadata"].get("labels") or {}
        if "team" not in labels:
            patch = [{"op": "add", "path": "/metadata/labels", "value": {**labels, "team": TEAM}}]
            response |= {
                "patchType": "JSONPatch",
                "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
            }
    elif reason := require_versions(request["object"]):
        response |= {"allowed": False, "status": {"message": reason, "code": 403}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(review(self.path, sent["request"])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def serve(certificate: str, key: str, port: int) -> ThreadingHTTPServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("", port), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], 8443).serve_forever()
