"""kuttl, declarative tests of operators. Its `startControlPlane` starts the assets of `kubist envtest`."""

from __future__ import annotations

from pathlib import Path

from kubist.cli.envtest import make_assets
from tests.ecosystem.installation import EXAMPLES, go_program, require, run
from tests.ecosystem.table import exercises

KUTTL = ("github.com/kudobuilder/kuttl", "v0.25.0")
CRD = (EXAMPLES / "envtest-go/config/crd/guestbooks.yaml").read_bytes()
SUITE = {
    "kuttl-test.yaml": """\
apiVersion: kuttl.dev/v1beta1
kind: TestSuite
startControlPlane: true
crdDir: crds
testDirs: [suite]
timeout: 60
""",
    "suite/guestbook/00-create.yaml": """\
apiVersion: guestbook.example.com/v1
kind: Guestbook
metadata: {name: visitors}
spec: {replicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {title: first}
""",
    "suite/guestbook/00-assert.yaml": """\
apiVersion: guestbook.example.com/v1
kind: Guestbook
metadata: {name: visitors, generation: 1}
spec: {replicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {title: first}
""",
    "suite/guestbook/01-update.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {title: second}
""",
    "suite/guestbook/01-assert.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {title: second}
""",
    "suite/guestbook/02-delete.yaml": """\
apiVersion: kuttl.dev/v1beta1
kind: TestStep
delete: [{apiVersion: v1, kind: ConfigMap, name: page}]
commands: [{command: kubectl get guestbook visitors, namespaced: true}]
""",
    "suite/guestbook/02-errors.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
""",
}
"""Files of a test suite."""


@exercises("kuttl", KUTTL[1], "startControlPlane: CRD, create, update, delete, assertions, errors, commands")
def test_kuttl_starts_the_assets(tmp_path: Path) -> None:
    require("go", "kubectl")
    program = go_program(*KUTTL, "./cmd/kubectl-kuttl")
    make_assets(tmp_path / "assets")
    for name, content in SUITE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/guestbooks.yaml").write_bytes(CRD)
    environment = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "HOME": str(tmp_path)}
    output = run([program, "test"], tmp_path, 300, environment)
    assert "--- PASS: kuttl/harness/guestbook" in output
