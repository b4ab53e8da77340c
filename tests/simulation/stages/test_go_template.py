"""Go templates: rendering as text/template, KWOK's functions, the advice for unsupported ones, errors and limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.cluster.simulation.stages.go_template import Template
from kubist.cluster.simulation.stages.go_template_evaluation import NAMES, environment
from kubist.cluster.simulation.stages.limits import StageError
from kubist.model.codec import yaml

NOW = 1704067200.5
ADDRESSES: dict[str, Callable[..., Any]] = {
    "PodIPWith": lambda node, *_: f"10.0.0.1 on {node}",
    "NodePort": lambda: 10250,
}
DATA: dict[str, Any] = {
    "metadata": {"name": "web", "annotations": {"example/delay": "5s"}, "generation": 3},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "a"}, {"name": "b", "image": "x"}],
        "none": None,
        "zero": 0,
    },
}


def complaint(text: str) -> str:
    """Error message of a template; an empty string if there is none."""
    try:
        render(text)
    except StageError as error:
        return str(error)
    return ""


def render(text: str, data: Any = DATA) -> str:
    return Template(text, ADDRESSES).render(data, environment(NOW, NOW - 60, "v1.2") | ADDRESSES)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("plain", "plain"),
        ("{{ .metadata.name }}", "web"),
        ("{{ .missing }} {{ .missing.deeper }} {{ .spec.none }}", "<no value> <no value> <no value>"),
        ("{{ .metadata.generation }}", "3"),
        ("a  {{- 1 -}}  b {{/* comment */}}c {{- /* trims */ -}} d", "a1b cd"),
        ('{{ index .metadata.annotations "example/delay" }}', "5s"),
        ("{{ (index .spec.containers 1).image }}", "x"),
        ("{{ range .spec.containers }}{{ .name }};{{ end }}", "a;b;"),
        ("{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ end }}", "0a1b"),
        ("{{ range .missing }}x{{ else }}none{{ end }}", "none"),
        ("{{ range $k, $v := .metadata.annotations }}{{ $k }}={{ $v }}{{ end }}", "example/delay=5s"),
        ("{{ if .missing }}1{{ else if .metadata }}2{{ else }}3{{ end }}", "2"),
        ("{{ with .metadata }}{{ .name }}{{ $.spec.nodeName }}{{ end }}", "webn1"),
        ("{{ with .missing }}1{{ else with .spec }}{{ .nodeName }}{{ end }}", "n1"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ end }}{{ $x }}", "2"),
        (
            '{{ eq .missing "Always" }} {{ ne 1 2 }} {{ eq "a" "b" "a" }} {{ lt 1 2 }} {{ ge "b" "a" }}',
            "false true true true true",
        ),
        (
            '{{ eq .metadata.generation 3 }} {{ eq .metadata.generation "3" }} {{ gt .metadata.generation 2 }}',
            "true true true",
        ),
        (
            "{{ if .spec.zero }}numbers of the data are never empty{{ end }}",
            "numbers of the data are never empty",
        ),
        (
            '{{ or .missing "d" }} {{ and 1 "" }}| {{ not .missing }} {{ or 1 (index .missing 1) }}',
            "d | true 1",
        ),
        ("{{ $x := 1 }}{{ range .spec.containers }}{{ $x := .name }}{{ end }}{{ $x }}", "1"),
        ("{{ $x := 1 }}{{ with $x := .metadata }}{{ $x.name }}{{ end }}{{ $x }}", "web1"),
        ("{{ range $i, $x := .missing }}1{{ else }}{{ $x }}{{ end }}", "<no value>"),
        ("{{ if $x := .missing }}1{{ else }}{{ $x }}{{ end }}", "<no value>"),
        ("{{ with $ }}{{ $.metadata.name }}{{ ( $.spec ).nodeName }}{{ end }}", "webn1"),
        ('{{ len "héllo" }} {{ len .spec.containers }}', "6 2"),
        ('{{ eq "|" ")" }} {{ default "|" .missing }} {{ "nil" }} {{ (eq ")." "(") }}', "false | nil false"),
        ('{{ `raw {{ }}` }} {{ -3 }} {{ "a\\tb\\u00e9" }}', "raw {{ }} -3 a\tbé"),
        (
            '{{ printf "%s %d %v %q %t%%" "a" 3 .spec.containers "q" true }}',
            'a 3 [map[name:a] map[image:x name:b]] "q" true%',
        ),
        ('{{ printf "%d %s" "a" }}', "%!d(string=a) %!s(MISSING)"),
        ('{{ printf "" 1 }}', "%!(EXTRA int=1)"),
        ('{{ .metadata.name | default "y" | printf "%s-%s" "x" }}', "x-web"),
    ],
)
def test_text_template(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (
            "{{ Quote .metadata.name }} {{ Quote .metadata.generation }} {{ .missing | Quote }}",
            '"web" "3" "null"',
        ),
        (
            '{{ "a \\"b\\"" | Quote }} {{ Quote .spec.containers }}',
            '"a \\"b\\"" "[{\\"name\\":\\"a\\"},{\\"name\\":\\"b\\",\\"image\\":\\"x\\"}]"',
        ),
        ("{{ Now }} {{ StartTime }}", "2024-01-01T00:00:00.500000Z 2023-12-31T23:59:00.500000Z"),
        ("{{ Version }} {{ NodePort }}", "v1.2 10250"),
        ('{{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) "" "" "" }}', "10.0.0.1 on n1"),
        (
            "{{ range NodeConditions }}{{ .type }}={{ .status }} {{ end }}",
            "Ready=True MemoryPressure=False DiskPressure=False PIDPressure=False NetworkUnavailable=False ",
        ),
        ("{{ YAML .metadata.annotations }}", "example/delay: 5s\n"),
    ],
)
def test_kwok_functions(text: str, output: str) -> None:
    assert render(text) == output


def test_yaml_is_indented_to_fit_its_place() -> None:
    text = "spec:\n  labels:\n  {{ YAML .metadata.annotations 2 }}\nother: 1"
    assert yaml.parse(render(text).encode()).value == {
        "spec": {"labels": {"example/delay": "5s"}},
        "other": 1,
    }


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('{{ default "d" .missing }} {{ "" | default "d" }} {{ "c" | default "d" }}', "d d c"),
        ('{{ $d := dict "a" 1 "b" 2 }}{{ $d.a }}{{ $d.z }}{{ $d }}', "1<no value>map[a:1 b:2]"),
        ('{{ index (or .missing dict) "a" }}', "<no value>"),
        ('{{ quote "a" 1 }} {{ "b" | quote }}', '"a" "1" "b"'),
    ],
)
def test_sprig_functions(text: str, output: str) -> None:
    assert render(text) == output


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("{{ nonsense 1 }}", "the function 'nonsense'"),
        ("{{ .a | upper }}", "the function 'upper'"),
        ("{{ (add 1 2) }}", "the function 'add'"),
        ("{{ .a | toJson }}", "the function 'toJson'"),
        ("{{ eq randInt 1 }}", "the function 'randInt'"),
        ("{{ print 1 }}", "the function 'print'"),
        ("{{ slice .a 1 }}", "the function 'slice'"),
        ("{{ call .a }}", "the function 'call'"),
        ('{{ define "t" }}{{ end }}', "the action 'define'"),
        ('{{ template "t" . }}', "the action 'template'"),
        ('{{ block "t" . }}{{ end }}', "the action 'block'"),
        ("{{ range .a }}{{ break }}{{ end }}", "the action 'break'"),
        ("{{ range .a }}{{ continue }}{{ end }}", "the action 'continue'"),
        ('{{ printf "%05d" 1 }}', "the verb %05d of printf"),
        ('{{ .a | printf "%.2f" }}', "the verb %.2f of printf"),
        ('{{ printf "%x" 1 }}', "the verb %x of printf"),
        ('{{ printf "%" }}', "the verb % of printf"),
        ("{{ 'a' }}", "the constant 'a'"),
        ("{{ 0x1F }}", "the constant 0x1F"),
        ("{{ 1.5 }}", "the constant 1.5"),
        ("{{ 010 }}", "the constant 010"),
        ('{{ "\\x41" }}', "an escape sequence in '\"\\\\x41\"'"),
    ],
)
def test_unsupported_template_gets_the_advice_to_run_kwok(text: str, construct: str) -> None:
    advice = "is not supported: run kwok itself against this server for Stages that use it"
    assert complaint(text) == f"template: line 1: {construct} {advice}"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{{ .a", "line 1: an action is not closed"),
        ("a\n{{ }}", "line 2: an action is empty"),
        ("{{ if .a }}", "not closed by end"),
        ("{{ end }}", "unexpected end"),
        ("{{ else }}", "unexpected else"),
        ("{{ $x }}", "undefined variable $x"),
        ("{{ $x = 1 }}", "undefined variable $x"),
        ("{{ .a .b }}", "only functions take arguments"),
        ("{{ 1 | 2 }}", "a function is needed"),
        ("{{ nil }}", "nil is not a command"),
        ("{{ (1 }}", "a parenthesis is not closed"),
        ("{{/* a", "a comment is not closed"),
        ("{{/* a */ b }}", "a comment is not closed"),
        ("{{ % }}", "unexpected '%' in an action"),
        ('{{ (1 ")" }}', "only functions take arguments"),
        ("{{ len 1, 2 }}", "unexpected ','"),
        ("{{ $x := 1 }}{{ if 1 }}{{ $y := 1 }}{{ end }}{{ $y }}", "undefined variable $y"),
        ("{{ " + "( " * 200 + "}}", "nested deeper"),
        ("{{ if 1 }}" * 200, "nested deeper"),
    ],
)
def test_malformed_template_gets_one_line(text: str, part: str) -> None:
    with pytest.raises(StageError) as caught:
        Template(text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{{ .metadata.name.x }}", "cannot take the field x of string web"),
        ("\n{{ index .spec.containers 9 }}", "line 1: index: the index 9 is out of range"),
        ('{{ eq 1 "a" }}', "incompatible types"),
        ("{{ index .spec 1 }}", "index: expected a string but got int 1"),
        ("{{ not }}", "not: wrong number of arguments: want 1, got 0"),
        ("{{ PodIPWith }}", "PodIPWith: cannot use these arguments"),
        ("{{ index .missing 1 }}", "index: cannot index nil"),
        ("{{ lt 1 true }}", "lt: int 1 and bool true have no order"),
        ("{{ range .metadata.name }}{{ end }}", "range cannot go through"),
        ("{{ $l := `%05d` }}{{ printf $l 1 }}", "printf: the verb %05d of printf is not supported"),
        ("{{ YAML . 200000 }}", "more than 262144"),
        (f'{{{{ $x := "{"a" * 1000}" }}}}' + "{{ $x = printf `%s%s` $x $x }}" * 60, "more than"),
        (f'{{{{ $x := "{"a" * 90_000}" }}}}' + "{{ $x }}" * 3, "more than 262144"),
        ("{{ $x := dict }}" + "{{ $x = dict `a` $x `b` $x }}" * 60 + "{{ YAML $x }}", "steps"),
        ("{{ range .many }}{{ range $.many }}{{ end }}{{ end }}", "steps"),
        ("{{ $x := dict }}{{ range .many }}{{ $x = dict `a` $x }}{{ end }}{{ YAML $x }}", "template:"),
    ],
)
def test_failed_rendering_gets_one_line(text: str, part: str) -> None:
    began = time.thread_time()
    with pytest.raises(StageError) as caught:
        render(text, DATA | {"many": [1] * 2000})
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert time.thread_time() - began < 20


_VALUES = [
    "1",
    '"a"',
    "nil",
    ".",
    ".metadata",
    ".spec.containers",
    "$",
    '(dict "a" 1)',
    "true",
]
_WORDS = """text {{ }} {{- -}} if end else range with .a .metadata.name $x := = | ( ) "s" 1 `r` define template break
, /* */"""
_PIECES = st.sampled_from(["{{ end }}", *(f"{word} " for word in (*_WORDS.split(), *NAMES))])


@given(st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=30))
def test_no_template_crashes(text: str) -> None:
    assert "\n" not in complaint(text)


@given(st.sampled_from(sorted(NAMES)), st.lists(st.sampled_from(_VALUES), max_size=4))
def test_no_function_crashes(name: str, arguments: list[str]) -> None:
    assert "\n" not in complaint(f"{{{{ {name} {' '.join(arguments)} }}}}")
