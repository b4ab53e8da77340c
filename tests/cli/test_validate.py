"""`kubist validate`: inputs, outputs and exit codes. tests/offline has a table of findings."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import pytest
import yaml

from tests.cli.processes import environment, kubist
from tests.offline.manifests import DEPLOYMENT, WIDGETS

GOOD = "{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}\n"
BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: UPPER\n"
WARNED = "{apiVersion: v1, kind: Endpoints, metadata: {name: a}}\n"


def write(home: Path, **files: str) -> None:
    """Files of the working directory. `__` in a name is a directory, `_` before the suffix a dot."""
    for name, text in files.items():
        path = home / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def validate(home: Path, *arguments: str) -> tuple[int, str, str]:
    done = kubist("validate", *arguments, home=home)
    assert "Traceback" not in done.stderr + done.stdout
    return done.returncode, done.stdout, done.stderr


def test_text_has_aligned_columns_and_a_summary(home: Path) -> None:
    nothing = '{"apiVersion": "v1", "kind": "Nothing"}'
    write(home, a_yaml=GOOD, sub__deep__b_yml=BAD, sub__c_json=nothing, sub__d_txt="}")
    code, out, _ = validate(home, ".")
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith("sub/c.json:1      error    Nothing                  no kind")
    assert lines[1].startswith("sub/deep/b.yml:4  error    ConfigMap default/UPPER  metadata.name: Invalid")
    assert lines[2] == "3 objects in 3 files: 2 errors, 0 warnings"
    assert "\033" not in out


def test_valid_manifests_exit_with_zero(home: Path) -> None:
    write(home, a_yaml=GOOD + "---\n" + DEPLOYMENT)
    assert validate(home, "a.yaml") == (0, "2 objects in 1 file: valid\n", "")


def test_standard_input(home: Path) -> None:
    stream = mock.Mock(buffer=io.BytesIO(BAD.encode()))
    with mock.patch("sys.stdin", stream):
        code, out, _ = validate(home, "-")
    assert code == 1 and out.startswith("<stdin>:4  error")


def test_fail_on_warning(home: Path) -> None:
    write(home, a_yaml=WARNED)
    assert validate(home, "a.yaml")[0] == 0
    code, out, _ = validate(home, "a.yaml", "--fail-on", "warning")
    assert code == 1 and "warning  Endpoints default/a  v1 Endpoints is deprecated" in out


def test_crds_and_policies_are_no_part_of_the_checked_objects(home: Path) -> None:
    widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}"
    write(home, crds__widget_yaml=WIDGETS, crds__kustomization_yaml="kind: Kustomization", a_yaml=widget)
    assert validate(home, "a.yaml", "--crds", "crds") == (0, "1 object in 1 file: valid\n", "")
    write(home, crds__widget_yaml=WIDGETS.replace("kind: Widget,", "kind: '',"))
    code, out, _ = validate(home, "a.yaml", "--crds", "crds")
    assert code == 1
    assert (
        "crds/widget.yaml:8  error    CustomResourceDefinition widgets.example.com  spec.names.kind: Required"
        in out
    )


def test_show_defaults_prints_the_stored_objects(home: Path) -> None:
    write(home, a_yaml=DEPLOYMENT, b_yaml=BAD)
    code, out, err = validate(home, "a.yaml", "b.yaml", "--show-defaults")
    [shown] = yaml.safe_load_all(out)
    assert code == 1 and "UPPER" in err
    assert shown["spec"]["strategy"]["type"] == "RollingUpdate"
    assert set(shown["metadata"]) == {"name", "namespace", "generation"}


def test_json_report(home: Path) -> None:
    write(home, a_yaml=DEPLOYMENT, b_yaml=BAD)
    code, out, _ = validate(home, "a.yaml", "b.yaml", "--output=json", "--show-defaults")
    report = json.loads(out)
    assert code == 1
    assert report["summary"] == {"files": 2, "objects": 2, "errors": 1, "warnings": 0, "complete": True}
    [finding] = report["findings"]
    assert finding["object"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "default",
        "name": "UPPER",
    }
    assert (finding["file"], finding["line"], finding["field"]) == ("b.yaml", 4, "metadata.name")
    assert (
        finding["status"]["message"] == f'ConfigMap "UPPER" is invalid: metadata.name: {finding["message"]}'
    )
    assert [each["valid"] for each in report["objects"]] == [True, False]
    assert report["objects"][0]["stored"]["spec"]["replicas"] == 1
    assert report["objects"][1]["stored"] is None


def test_junit_report(home: Path) -> None:
    write(home, a_yaml=GOOD + "---\n" + WARNED, b_yaml=BAD, c_yaml="[")
    code, out, _ = validate(home, "-o", "junit", "a.yaml", "b.yaml", "c.yaml")
    root = ElementTree.fromstring(out)
    assert code == 1
    assert (root.get("tests"), root.get("failures")) == ("4", "2")
    suites = {suite.get("name"): suite for suite in root}
    assert [case.get("name") for case in suites["a.yaml"]] == [
        "ConfigMap default/good",
        "Endpoints default/a",
    ]
    assert "deprecated" in (suites["a.yaml"].findtext("testcase/system-out") or "")
    [failure] = suites["b.yaml"].findall("testcase/failure")
    assert failure.get("type") == "FieldValueInvalid" and "UPPER" in failure.get("message", "")
    assert validate(home, "-o", "junit", "a.yaml", "--fail-on=warning")[1].count("<failure") == 1


def test_sarif_report(home: Path) -> None:
    write(home, dir__a_b_yaml=BAD + "---\n" + WARNED)
    (home / "dir/with space.yaml").write_text(GOOD + "x: 1\n")
    code, out, _ = validate(home, str(home / "dir"), "--output", "sarif")
    log = json.loads(out)
    assert (code, log["version"]) == (1, "2.1.0")
    [run] = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    results = run["results"]
    assert {result["ruleId"] for result in results} == {"FieldValueInvalid", "Malformed", "Warning"}
    for result in results:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning") and result["message"]["text"]
        [location] = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] in ("dir/a.b.yaml", "dir/with%20space.yaml")
        assert place["region"]["startLine"] >= 1
    assert len({result["partialFingerprints"]["kubistFinding/v1"] for result in results}) == len(results)


def test_output_file_leaves_text_on_the_screen(home: Path) -> None:
    write(home, b_yaml=BAD)
    code, out, _ = validate(home, "b.yaml", "--output", "sarif", "--output-file", "found.sarif")
    assert code == 1 and out.startswith("b.yaml:4  error")
    assert (
        json.loads((home / "found.sarif").read_text())["runs"][0]["results"][0]["ruleId"]
        == "FieldValueInvalid"
    )


def test_namespaces_can_be_strict(home: Path) -> None:
    write(home, a_yaml="{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}")
    assert validate(home, "a.yaml")[0] == 0
    code, out, _ = validate(home, "a.yaml", "--strict-namespaces")
    assert code == 1 and 'namespaces "shop" not found' in out
    write(home, b_yaml="{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    assert validate(home, "a.yaml", "b.yaml", "--strict-namespaces")[0] == 0


def test_options_of_the_server(home: Path) -> None:
    service = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalIPs: [1.2.3.4], ports: [{port: 1}]}}"
    write(home, a_yaml=service)
    code, out, _ = validate(home, "a.yaml", "--enable-admission-plugins", "DenyServiceExternalIPs")
    assert code == 1 and "Use of external IPs is denied by admission control" in out
    write(home, w_yaml="{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}")
    assert validate(home, "w.yaml", "--allow-unknown-kinds")[0] == 0
    write(home, a_yaml=GOOD)
    assert validate(home, ".", "--exclude", "w.yaml") == (0, "1 object in 1 file: valid\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no manifests"),
        (["a.yaml", "--no-such-flag"], "unknown flag: --no-such-flag"),
        (["a.yaml", "--output", "xml"], "--output must be text, json, junit or sarif, not 'xml'"),
        (["a.yaml", "--fail-on", "never"], "--fail-on must be error or warning"),
        (["a.yaml", "--as-group", "g"], "--as-group needs --as"),
        (["a.yaml", "--context", "c"], "--context needs --against"),
        (["a.yaml", "--against", "missing"], "missing does not exist"),
        (["a.yaml", "--show-defaults", "--output", "sarif"], "--show-defaults needs --output text or json"),
        (["a.yaml", "--output"], "flag needs an argument: --output"),
        (["a.yaml", "--output-file", "missing/x"], "missing/x: No such file or directory"),
    ],
)
def test_wrong_command_line_is_one_line(home: Path, arguments: list[str], message: str) -> None:
    write(home, a_yaml=GOOD)
    code, _, err = validate(home, *arguments)
    assert code == 2
    assert err.startswith("kubist: ") and message in err and err.count("\n") == 1


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


LETTERS = "abcdefghijklmnop"
BOMB = "a: &a [x, x]\n" + "".join(
    f"{letter}: &{letter} [{', '.join(['*' + before] * 9)}]\n"
    for before, letter in itertools.pairwise(LETTERS)
)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"\x00\x01\x02", 1, "not a YAML document"),
        (b"\x89PNG\r\n\x1a\n\xff\xd8", 2, "it is not UTF-8 text"),
        (nested(100_000).encode(), 1, "exceeded max depth"),
        (b"a: " * 5000 + b"b", 1, "not a YAML document"),
        (BOMB.encode(), 1, "excessive aliasing"),
        (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: " + b"x" * 3_200_000 + b"}",
            1,
            "too large",
        ),
        (b"apiVersion: v1\nkind: ConfigMap\nmetadata: [a]", 1, "cannot unmarshal array"),
        (b"apiVersion: [v1]\nkind: {}\nmetadata: 7", 1, "the object has no kind"),
        (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 7, namespace: [x]}", 1, "cannot unmarshal"),
        (b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../x, namespace: '../y?a'}", 1, "error"),
        (
            b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": 1e999}}',
            1,
            "error",
        ),
        (b"apiVersion: v1\nkind: List\nitems: [1, null, {kind: X}]", 1, "items[0] of the List is a number"),
        (b"", 0, "0 objects in 1 file: valid"),
        (b"# only a comment\n---\n---\n...\n", 0, "0 objects in 1 file: valid"),
        (
            b"%YAML 1.1\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n...\n---\n",
            0,
            "1 object in 1 file",
        ),
        (
            b"\xef\xbb\xbfapiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: a}\r\n",
            0,
            "1 object in 1 file: valid",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}".encode("utf-16"),
            0,
            "1 object in 1 file: valid",
        ),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,
)
def test_any_input_gives_findings(home: Path, content: bytes, code: int, message: str) -> None:
    (home / "a.yaml").write_bytes(content)
    got, out, err = validate(home, "a.yaml")
    assert (got, err) == (code, "") and message in out


def test_unreadable_files_do_not_hide_other_findings(home: Path) -> None:
    write(home, b_yaml=BAD)
    (home / "link.yaml").symlink_to("nowhere")
    os.mkfifo(home / "pipe.yaml")
    code, out, _ = validate(home, ".", "missing.yaml")
    assert code == 2
    assert "link.yaml:1     error" in out and "pipe.yaml:1     error" in out and "UPPER" in out
    assert "missing.yaml:1  error" in out and "cannot read the file: No such file or directory" in out


def test_findings_about_one_object_are_limited(home: Path) -> None:
    labels = "".join(f"    label {number}: x\n" for number in range(10_000))
    write(home, a_yaml="apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n" + labels)
    code, out, _ = validate(home, "a.yaml", "--output", "json")
    assert code == 1 and len(out) < 20_000_000
    findings = json.loads(out)["findings"]
    assert len(findings) == 101
    assert "9900 more findings about this object are not shown" in [each["message"] for each in findings]


def test_concatenated_json_and_repeated_files(home: Path) -> None:
    one = '{\n"apiVersion": "v1", "kind": "ConfigMap",\n"metadata": {"name": "%s"}}\n'
    write(home, a_json=one % "a" + one % "B")
    code, out, _ = validate(home, "a.json", "./a.json", ".")
    assert code == 1
    assert out.splitlines()[0].startswith("a.json:6  error    ConfigMap default/B  metadata.name")
    assert out.splitlines()[-1] == "2 objects in 1 file: 1 error, 0 warnings"


def test_closed_pipe_is_no_error(home: Path) -> None:
    write(home, b_yaml=BAD)
    with subprocess.Popen(
        [sys.executable, "-m", "kubist", "validate", "b.yaml"],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_colours_only_on_a_terminal(home: Path) -> None:
    write(home, b_yaml=BAD)
    command = [sys.executable, "-m", "kubist", "validate", "b.yaml"]
    for variables, colored in (({}, True), ({"NO_COLOR": "1"}, False)):
        main, side = os.openpty()
        try:
            env = environment(home) | {"TERM": "xterm"} | variables
            subprocess.run(command, cwd=home, env=env, stdout=side, check=False, timeout=120)
            assert (b"\033[31merror" in os.read(main, 65536)) is colored
        finally:
            os.close(main)
            os.close(side)
