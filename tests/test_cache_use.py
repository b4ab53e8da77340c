"""Use of caches in the source: `kubist.base.caching` for all keys from clients, exceptions only with a reason."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import kubist
from kubist.model.schema import catalog

SOURCE = Path(kubist.__file__).parent

FIXED = {
    # The keys are names in a catalog that ships with the package; other names raise an error or never get here.
    "api/discovery/descriptions.py:_module",
    "api/discovery/openapi.py:_built_in_v3",
    "api/tables/columns.py:table_of",
    "api/resources/routes.py:_served",
    "model/schema/catalog.py:_scalar",
    "model/schema/catalog.py:by_name",
    # The keys are Kubernetes versions of the tables.
    "model/feature_gates.py:_defaults",
    "model/feature_gates.py:_known",
    "model/versions.py:parse_version",
    # The keys are fields that strategies name.
    "model/patch/apply/sets.py:dotted",
    # The keys are classes of bodies.
    "testbench/control_api/body.py:fields_of",
    # The keys are the two kinds and two versions of reviews.
    "api/webhooks/reviews.py:_review",
}
"""Functions with parameters that may use functools.cache or lru_cache."""

STORED = {
    # The keys are stored objects, so the size of the store bounds them.
    "api/object_client.py:parsed",
    "cluster/control/garbage_collector.py:_removed",
    "api/crd/served.py:encode",
    # It removes only the oldest counts, in the order of their use.
    "cluster/simulation/scheduler/snapshot.py:census",
}
"""Functions that empty a collection by hand when it is full."""


COMPILED = {
    # The keys are the names of types in the catalog.
    "model/codec/protobuf_decode.py:_readers",
    "model/codec/protobuf_encode.py:_compiled",
    "model/schema/decode.py:_compiled",
    "model/schema/decode.py:_compiled_lists",
    # The keys are names of modules that the test process has imported. A module registers its handlers only once.
    "testing/operators/kopf_operators.py:_REGISTRIES",
}
"""Containers of modules that functions fill."""

KEPT = {
    # Placeholders of one recording of a test, which is bounded.
    "testing/golden.py:_placeholder",
    # It removes the oldest counts above its own limit, in the order of their use.
    "cluster/simulation/scheduler/snapshot.py:census",
    # The keys are the two values of whenUnsatisfiable.
    "cluster/simulation/scheduler/pod_info.py:constraints",
    # Served resources, kinds and stored objects bound these.
    "api/crd/conversion.py:entry",
    "api/crd/served.py:_kind",
    "api/filters/authorization/rbac.py:_collection",
    "api/filters/authorization/rbac.py:_role",
    "api/object_store/registry.py:collection",
    "api/object_store/registry.py:kind",
    "model/patch/apply/typed.py:make",
    "api/resources/resource.py:stored",
    "storage/cache/cache.py:collection",
    "storage/cache/label_index.py:find",
    "api/tables/table.py:rows_of",
    "api/verbs/responses.py:representation",
    # FlowSchemas and priority levels bound these. A change of one empties them.
    "api/filters/flowcontrol/flowcontrol.py:_count",
    # The keys are media types that the server offers, and names of admission plugins' views.
    "api/admission/followed.py:_of",
    "api/discovery/documents.py:body",
    # The keys are classes of control loops.
    "api/object_client.py:shared",
    # At most `KEPT` templates of new clusters.
    "server/clusters/sources.py:image",
    # A bounded cache of the type.
    "model/patch/apply/ownership.py:_as_the_schema_splits",
    # They live as long as one request, connection or build of a label index.
    "api/admission/admission_request.py:_view",
    "api/filters/audit/audit.py:_sent",
    "api/filters/authentication/authentication.py:user",
    "base/jsontext/complaints.py:at",
    "storage/cache/label_index.py:examine",
    # The keys are fixed labels of metrics.
    "api/admission/chain.py:_take",
    "storage/encryption/metrics.py:add",
    # The keys are simulated nodes and their pods, stored autoscalers, and stored objects that Stages drive. Deleted
    # ones are removed.
    "cluster/control/indexes.py:apply",
    "cluster/control/workloads/horizontalpodautoscaler.py:history",
    "cluster/simulation/kubelet.py:_memory",
    "cluster/simulation/scheduler/snapshot.py:_info",
    "cluster/simulation/nodes.py:_number",
    "cluster/simulation/stages/player.py:reconcile",
}
"""Functions that look a key up in an attribute, and store the value there if it is missing."""


@functools.cache
def modules() -> list[tuple[str, ast.Module, list[ast.AST]]]:
    """Path, syntax tree and all nodes of every module."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        found.append((path.relative_to(SOURCE).as_posix(), tree, list(ast.walk(tree))))
    return found


@functools.cache
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (f"{name}:{node.name}", node)
        for name, _, nodes in modules()
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and name != "base/caching.py"
    ]


def _is_unbounded(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(name).rpartition(".")[2] in ("cache", "lru_cache")


def _takes_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    return bool(arguments.posonlyargs or arguments.args or arguments.vararg or arguments.kwonlyargs)


def test_functools_caches_have_fixed_keys() -> None:
    found = {
        name
        for name, function in functions()
        if any(map(_is_unbounded, function.decorator_list)) and _takes_arguments(function)
    }
    assert found == FIXED, "use kubist.base.caching.bounded_cache, or give the reason here"


def test_caches_do_not_keep_replaced_schemas() -> None:
    """Values derived from a schema are kept in it (`kubist.model.schema.node.kept`). A cache with the schema as its key
    would keep every version of a CRD."""
    found = {
        name
        for name, function in functions()
        if any("cache" in ast.unparse(decorator) for decorator in function.decorator_list)
        for argument in function.args.posonlyargs + function.args.args
        if argument.annotation is not None
        and ast.unparse(argument.annotation) in ("Schema", "Resource", "Type", "MapType", "ListType")
    }
    assert found == set()


def test_functools_caches_are_used_only_as_decorators() -> None:
    for name, _, nodes in modules():
        decorators = {
            id(part)
            for node in nodes
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for decorator in node.decorator_list
            for part in ast.walk(decorator)
        }
        for node in nodes:
            if isinstance(node, ast.Call) and _is_unbounded(node) and id(node) not in decorators:
                raise AssertionError(f"{name}:{node.lineno}: use kubist.base.caching.ComputedCache")


def test_no_cache_is_emptied_by_hand() -> None:
    found = set()
    for name, function in functions():
        for node in ast.walk(function):
            if isinstance(node, ast.If) and "len(" in ast.unparse(node.test):
                calls = [
                    ast.unparse(c.func)
                    for part in node.body
                    for c in ast.walk(part)
                    if isinstance(c, ast.Call)
                ]
                if any(call.endswith((".clear", ".popitem")) for call in calls):
                    found.add(name)
    assert found == STORED, "use kubist.base.caching.BoundedCache, or give the reason here"


_FILLS = (".add", ".append", ".extend", ".setdefault", ".update")


def _is_container(value: ast.expr | None) -> bool:
    text = ast.unparse(value) if value is not None else ""
    return text in ("{}", "[]") or text.startswith(
        ("dict(", "set(", "deque(", "OrderedDict(", "defaultdict(")
    )


def test_containers_of_modules_are_filled_with_fixed_keys() -> None:
    found = set()
    for name, tree, nodes in modules():
        containers = {
            target.id
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_container(node.value)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for function in (n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))):
            for node in ast.walk(function):
                filled = None
                if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    filled = node.value
                elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_FILLS):
                    filled = node.func.value  # type: ignore[attr-defined]
                if isinstance(filled, ast.Name) and filled.id in containers:
                    found.add(f"{name}:{filled.id}")
    assert found == COMPILED, "use kubist.base.caching.BoundedCache, or give the reason here"


def _looked_up(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Attributes in which a function looks up a key, with the variable of the result."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target: ast.expr = node.targets[0]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            target = node.target
        else:
            continue
        call = node.value
        called, _, method = (
            ast.unparse(call.func).rpartition(".") if isinstance(call, ast.Call) else ("", "", "")
        )
        if method == "get" and "." in called and isinstance(target, ast.Name):
            found[called] = target.id
    return found


def _stores_missing_values(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Attributes that a function uses as a cache: `found = x.get(key)`, `if found is None: x[key] = …`."""
    looked_up = _looked_up(function)
    return {
        text
        for test in ast.walk(function)
        if isinstance(test, ast.If)
        for part in test.body
        for node in ast.walk(part)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        if (text := ast.unparse(node.value)) in looked_up and looked_up[text] in _names(test.test)
    }


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def test_attributes_that_are_caches_are_bounded() -> None:
    bounded = {
        ast.unparse(node.target).rpartition(".")[2]
        for _, _, nodes in modules()
        for node in nodes
        if isinstance(node, ast.AnnAssign)
        and (
            "BoundedCache" in ast.unparse(node.annotation)
            or ast.unparse(node.annotation) in ("Answers", "Shapes")
        )
    }
    found = {
        name
        for name, function in functions()
        if any(text.rpartition(".")[2] not in bounded for text in _stores_missing_values(function))
    }
    assert found == KEPT, "use kubist.base.caching.BoundedCache, or give the reason here"


def test_schemas_of_invented_versions_are_not_cached() -> None:
    """DeleteOptions exist in every group and version, including invented ones."""
    assert catalog.schema_for("made.up", "v7", "DeleteOptions") is catalog.schema_for(
        "", "v1", "DeleteOptions"
    )
    assert not hasattr(catalog.schema_for, "cache_info")
