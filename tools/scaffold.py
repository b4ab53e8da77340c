"""Makes a new kind, admission plugin, control loop or command, with its test and its entry in every table.

    python tools/scaffold.py kind coordination.k8s.io/v1 Flag color:string
    python tools/scaffold.py plugin RequireTeamLabel
    python tools/scaffold.py loop label-cleaner configmaps
    python tools/scaffold.py command whoami "show the user of a kubeconfig"

The new code does the least that works, and its test passes. It prints the files that it wrote. A file that exists is
never replaced.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/kubist"

PLUGIN = '''\
"""{name}: rejects pods with the label `rejected`."""

from __future__ import annotations

from kubist.api.admission.plugin import CREATE, UPDATE, Object, Plugin, forbidden
from kubist.api.resources.context import Context


class {name}(Plugin):
    resources = ("pods",)
    operations = (CREATE, UPDATE)

    def validate(self, ctx: Context, new: Object | None, old: Object | None) -> None:
        if new is not None and (objection := _objection(new)):
            raise forbidden(ctx, new, objection)


def _objection(pod: Object) -> str:
    """Reason to reject the pod. Empty if it is admitted."""
    return "the label rejected is set" if "rejected" in (pod["metadata"].get("labels") or {{}}) else ""
'''

PLUGIN_TEST = '''\
"""{name}, on a server that enables it."""

from __future__ import annotations

from collections.abc import Callable

from .conftest import Client

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, **labels: str) -> dict[str, object]:
    containers = [{{"name": "c", "image": "i:1"}}]
    return {{"metadata": {{"name": name, "labels": labels}}, "spec": {{"containers": containers}}}}


def test_pod_with_the_label_is_rejected(run: Callable[..., None]) -> None:
    async def test(client: Client) -> None:
        assert (await client.post(PODS, pod("admitted"))).code == 201
        answer = await client.post(PODS, pod("p", rejected=""))
        assert (answer.code, answer.message) == (403, 'pods "p" is forbidden: the label rejected is set')

    run(test, enable_admission_plugins=("{name}",), disable_admission_plugins=("ServiceAccount",))
'''

LOOP = '''\
"""{title}: a control loop for {resource}."""

from __future__ import annotations

from kubist.cluster.control.loop import Loop
from kubist.model.meta.object import Object

ANNOTATION = "example.com/{name}"


class {class_name}(Loop):
    """Marks each of the {resource} with an annotation."""

    name = "{name}"

    def follow(self) -> None:
        self.watch("{resource}", self.enqueue)

    async def reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        await self.client.update("{resource}", name, namespace, _marked)


def _marked(obj: Object) -> Object | None:
    """The object with the annotation. None if it has it: an unchanged object is not written."""
    annotations = obj["metadata"].setdefault("annotations", {{}})
    if ANNOTATION in annotations:
        return None
    annotations[ANNOTATION] = "seen"
    return obj
'''

LOOP_TEST = '''\
"""{class_name}, on a server that runs this loop only."""

from __future__ import annotations

import pytest

from kubist.cluster.control.{module} import ANNOTATION
from kubist.testing import Cluster


@pytest.mark.kubist(controllers=("{name}",))
def test_object_is_marked(cluster: Cluster) -> None:
    cluster.create({{"apiVersion": "v1", "kind": "{kind}", "metadata": {{"name": "marked"}}}})
    cluster.wait("{resource}/marked", lambda obj: ANNOTATION in obj["metadata"].get("annotations", {{}}))
'''

COMMAND = '''\
"""`kubist {name}`: {summary}."""

from __future__ import annotations

from kubist.cli import flags, help
from kubist.cli.data_dir import DATA_DIR, data_dir

FLAGS = (DATA_DIR,)
TITLE = """\\
{sentence}.

Usage:
  kubist {name} [flags]"""


def main(arguments: list[str]) -> int:
    values = flags.parse(arguments, {{flag.name: flag for flag in FLAGS}})
    if "help" in values:
        return help.show(TITLE, FLAGS)
    print(data_dir(values).absolute())
    return 0
'''

COMMAND_TEST = '''\
"""`kubist {name}`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.processes import kubist


def test_directory_is_printed(tmp_path: Path) -> None:
    done = kubist("{name}", "--data-dir=data", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{{tmp_path / 'data'}}\\n")
'''

COMMAND_SECTION = """\
## `kubist {name}`

{sentence}.

```bash
kubist {name}
```

<!-- help: {name} -->

```text
```

"""


KIND = '''\
"""{kind}: describe it in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubist.api.resources.strategy import Errors, Strategy
from kubist.model.meta.fields import required
from kubist.model.meta.object import Object

if TYPE_CHECKING:
    from kubist.api.resources.context import Context


class {kind}Strategy(Strategy):
    def validate(self, ctx: Context, new: Object, old: Object | None) -> Errors:
        return [] if new["spec"].get("{field}") else [required("spec.{field}")]


strategy = {kind}Strategy()
'''

KIND_TEST = '''\
"""{kind}: its rules."""

from __future__ import annotations

from tests.live import Client


def test_{module}_needs_{snake}(client: Client, namespace: str) -> None:
    path = f"/apis/{group}/{version}/namespaces/{{namespace}}/{plural}"
    spec = {{"{field}": {value}}}
    assert client.post(path, {{"metadata": {{"name": "a"}}, "spec": spec}})["spec"] == spec
    answer = client.ask("POST", path, {{"metadata": {{"name": "b"}}}})
    assert answer.status == 422
    assert "spec.{field}: Required value" in answer.json["message"]
'''

COLUMNS = '''\
"""Columns of the kinds of group {group}."""

from __future__ import annotations

from kubist.api.tables.columns import AGE, NAME, Column, Table

TABLES = {{
}}
'''

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SAMPLES = {"string": '"green"', "boolean": "True", "int32": "1", "int64": "1"}
"""Type of a field → a value for the test."""


class Refusal(Exception):
    """Reason for which nothing was written."""


class Change:
    """Files to write, all or none."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: dict[str, str] = {}

    def create(self, path: str, text: str) -> None:
        """A new file. Refusal if it exists."""
        if self.exists(path):
            raise Refusal(f"{path} exists: choose another name, or delete the file")
        self._texts[path] = text

    def exists(self, path: str) -> bool:
        return path in self._texts or (self._root / path).exists()

    def read(self, path: str) -> str:
        return self._texts.get(path) or (self._root / path).read_text("utf-8")

    def edit(self, path: str, edit: Callable[[str], str]) -> None:
        """Changes a file. Refusal if the edit changes nothing."""
        before = self.read(path)
        after = edit(before)
        if after == before:
            raise Refusal(f"{path}: the place for the new entry is not there")
        self._texts[path] = after

    def insert(self, path: str, before: str, text: str) -> None:
        """Inserts a text before the first occurrence of another."""
        self.edit(path, lambda old: old.replace(before, text + before, 1))

    def write(self) -> list[str]:
        for path, text in self._texts.items():
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).write_text(text, "utf-8")
        return list(self._texts)


def add_kind(change: Change, group_version: str, kind: str, field: str) -> None:
    """A namespaced kind with one field in its spec, in a group that is served."""
    group, _, version = group_version.partition("/")
    name, _, type_ = field.partition(":")
    catalog, resources = "src/kubist/model/schema/catalog.json", "src/kubist/api/resources/resources.json"
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", kind):
        raise Refusal(f"{kind}: a kind is in CamelCase, such as Flag")
    if type_ not in SAMPLES or not re.fullmatch(r"[a-z][A-Za-z0-9]*", name):
        raise Refusal(f"{field}: write NAME:TYPE with one of the types {', '.join(SAMPLES)}")
    prefix = openapi_prefix(change.read(catalog), group_version)
    folder = group.partition(".")[0]
    words = {
        "group": group,
        "version": version,
        "kind": kind,
        "module": kind.lower(),
        "plural": kind.lower() + "s",
        "field": name,
        "snake": re.sub(r"([A-Z])", r"_\1", name).lower(),
        "value": SAMPLES[type_],
    }
    rows = "".join(f'"{group_version}/{each}":"{prefix}.{each}",\n' for each in (kind, f"{kind}List"))
    change.insert(catalog, f'"{group_version}/', rows)
    change.edit(
        catalog, lambda text: _after(text, '"types":{\n', types_of(prefix, group, version, kind, name, type_))
    )
    verbs = ",".join(f'"{verb}"' for verb in VERBS)
    row = f'["{group}","{version}","{words["plural"]}","{kind}","{words["module"]}",true,[{verbs}],[],[],[],true],\n'
    change.insert(resources, f'["{group}","{version}",', row)
    change.create(f"src/kubist/api/kinds/{folder}/{words['module']}.py", KIND.format(**words))
    columns = f"src/kubist/api/kinds/{folder}/columns.py"
    if not change.exists(columns):
        change.create(columns, COLUMNS.format(**words))
    title = re.sub(r"([A-Z])", r" \1", name[:1].upper() + name[1:]).strip()
    cell = f'Column("{title}", "{title} of the {words["module"]}.", path="spec.{name}")'
    change.edit(
        columns, lambda text: _after(text, "TABLES = {\n", f'    "{kind}": Table(NAME, {cell}, AGE),\n')
    )
    change.create(f"tests/kinds/{folder}/test_{words['module']}.py", KIND_TEST.format(**words))


def openapi_prefix(catalog: str, group_version: str) -> str:
    """Package of the types of an API version, such as io.k8s.api.coordination.v1."""
    row = re.search(rf'"{re.escape(group_version)}/\w+":"(io\.k8s\.api\.[\w.]+)\.\w+"', catalog)
    if row is None:
        raise Refusal(
            f"{group_version} is no API version of the catalog: write GROUP/VERSION, such as apps/v1"
        )
    return row[1]


def types_of(prefix: str, group: str, version: str, kind: str, field: str, type_: str) -> str:
    """Rows of the catalog for a kind, its list and its spec."""
    type_meta = [[name, "o", 0, "string", {"via": "TypeMeta"}] for name in ("kind", "apiVersion")]
    empty: dict[str, object] = {"default": {}}

    def row(name: str, *fields: list[object], is_kind: bool = True) -> str:
        identity = {"group": group, "kind": name, "version": version}
        attributes = {"x-kubernetes-group-version-kind": [identity]} if is_kind else {}
        lines = ",\n ".join(compact(each) for each in ([*type_meta, *fields] if is_kind else fields))
        message = f"k8s.io{prefix.removeprefix('io.k8s')}.{name}"
        return f'"{prefix}.{name}":["{message}",[\n {lines}\n],[],{compact(attributes)}],\n'

    return (
        row(
            kind,
            ["metadata", "o", 1, f"#{META}.ObjectMeta", empty],
            ["spec", "o", 2, f"#{prefix}.{kind}Spec", empty],
        )
        + row(
            f"{kind}List",
            ["metadata", "o", 1, f"#{META}.ListMeta", empty],
            ["items", "r", 2, f"[#{prefix}.{kind}", {"items": empty}],
        )
        + row(f"{kind}Spec", [field, "o", 1, type_], is_kind=False)
    )


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def add_plugin(change: Change, name: str) -> None:
    """An admission plugin that is off by default and runs before the webhooks."""
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", name):
        raise Refusal(f"{name}: the name of an admission plugin is in CamelCase, such as RequireTeamLabel")
    module = name.lower()
    order = "src/kubist/api/admission/order.py"
    change.create(f"src/kubist/api/admission/plugins/{module}.py", PLUGIN.format(name=name))
    change.insert(order, '    "MutatingAdmissionPolicy",\n', f'    "{name}",\n')
    change.edit(
        order, lambda text: _after(text, "OFF_BY_DEFAULT = frozenset(\n    (\n", f'        "{name}",\n')
    )
    change.create(f"tests/admission/test_{module}.py", PLUGIN_TEST.format(name=name))


def add_loop(change: Change, name: str, resource: str) -> None:
    """A control loop that `--controllers` can name."""
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        raise Refusal(f"{name}: the name of a control loop is lower case with hyphens, such as label-cleaner")
    module = name.replace("-", "_")
    words = {
        "name": name,
        "module": module,
        "resource": resource,
        "kind": kind_of(resource),
        "class_name": "".join(part.capitalize() for part in name.split("-")),
        "title": name.replace("-", " ").capitalize(),
    }
    manager = "src/kubist/cluster/control/manager.py"
    imported = f"from kubist.cluster.control.{module} import {words['class_name']}\n"
    change.create(f"src/kubist/cluster/control/{module}.py", LOOP.format(**words))
    change.edit(manager, lambda text: _sorted_import(text, imported))
    change.insert(manager, "        Guidance,\n    ]\n", f"        {words['class_name']},\n")
    change.create(f"tests/control/test_{module}.py", LOOP_TEST.format(**words))


def add_command(change: Change, name: str, summary: str) -> None:
    """A command of the topic "This program"."""
    if not re.fullmatch(r"[a-z]+", name):
        raise Refusal(f"{name}: the name of a command is one word in lower case")
    words = {"name": name, "summary": summary, "sentence": summary[:1].upper() + summary[1:]}
    change.create(f"src/kubist/cli/{name}.py", COMMAND.format(**words))
    row = f'        ("{name}", "{name}:main", "{summary}"),\n'
    change.insert("src/kubist/cli/commands.py", '        ("completion", ', row)
    change.insert("docs/cli.md", "## `kubist completion`\n", COMMAND_SECTION.format(**words))
    change.create(f"tests/cli/test_{name}.py", COMMAND_TEST.format(**words))


def kind_of(resource: str) -> str:
    """Kind of a resource of the core group."""
    table = (PACKAGE / "api/resources/resources.json").read_text("utf-8")
    row = re.search(rf'\["","v1","{re.escape(resource)}","(\w+)"', table)
    if row is None:
        raise Refusal(f"{resource} is no resource of the core group: write its plural, such as configmaps")
    return row[1]


def _after(text: str, place: str, new: str) -> str:
    return text.replace(place, place + new, 1)


def _sorted_import(text: str, line: str) -> str:
    """Inserts an import in order among those of the same package."""
    package = line.rpartition(".")[0]
    lines = text.splitlines(keepends=True)
    places = [index for index, other in enumerate(lines) if other.startswith(f"{package}.")]
    place = next((index for index in places if lines[index] > line), places[-1] + 1)
    return "".join([*lines[:place], line, *lines[place:]])


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    things = top.add_subparsers(dest="thing", required=True)
    kind = things.add_parser("kind", help="a kind with one field in its spec")
    kind.add_argument("group_version", metavar="GROUP/VERSION")
    kind.add_argument("kind")
    kind.add_argument("field", metavar="NAME:TYPE", help="field of the spec, such as color:string")
    plugin = things.add_parser("plugin", help="an admission plugin")
    plugin.add_argument("name")
    loop = things.add_parser("loop", help="a control loop")
    loop.add_argument("name")
    loop.add_argument("resource", help="resource of the core group that it follows")
    command = things.add_parser("command", help="a command of the command line")
    command.add_argument("name")
    command.add_argument("summary", help="what it does, as `kubist help` shows it")
    return top


def main(arguments: list[str]) -> int:
    values = vars(parser().parse_args(arguments))
    add = {"kind": add_kind, "plugin": add_plugin, "loop": add_loop, "command": add_command}[
        values.pop("thing")
    ]
    change = Change(ROOT)
    try:
        add(change, **values)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 1
    print("\n".join(change.write()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
