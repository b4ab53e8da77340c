"""Go templates: rendering as text/template, KWOK's functions, sprig's functions, errors and limits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubist.cluster.simulation.stages.gotemplate import Template
from kubist.cluster.simulation.stages.gotemplate.environment import Environment
from kubist.cluster.simulation.stages.gotemplate.functions import FUNCTIONS
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
    environment = Environment(NOW, NOW - 60, "v1.2", random.Random(7), ADDRESSES)
    return Template(text, ADDRESSES).render(data, environment)


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
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ('{{ range .spec.containers }}{{ if eq .name "b" }}{{ break }}{{ end }}{{ .name }}{{ end }}', "a"),
        ('{{ range .spec.containers }}{{ if eq .name "a" }}{{ continue }}{{ end }}{{ .name }}{{ end }}', "b"),
        ("{{ if .missing }}1{{ else if .metadata }}2{{ else }}3{{ end }}", "2"),
        ("{{ with .metadata }}{{ .name }}{{ $.spec.nodeName }}{{ end }}", "webn1"),
        ("{{ with .missing }}1{{ else with .spec }}{{ .nodeName }}{{ end }}", "n1"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ end }}{{ $x }}", "2"),
        (
            '{{ define "t" }}[{{ .name }}]{{ end }}{{ range .spec.containers }}{{ template "t" . }}{{ end }}',
            "[a][b]",
        ),
        ('{{ block "t" .metadata }}({{ .name }}){{ end }}', "(web)"),
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
        ('{{ or .missing "d" }} {{ and 1 "" }}| {{ not .missing }} {{ or 1 (fail "unused") }}', "d | true 1"),
        ('{{ len "héllo" }} {{ len .spec.containers }} {{ slice "abc" 1 2 }}', "6 2 b"),
        (
            "{{ `raw {{ }}` }} {{ 'a' }} {{ 0x1F }} {{ 1.5e3 }} {{ \"a\\tb\\u00e9\" }}",
            "raw {{ }} 97 31 1500 a\tbé",
        ),
        (
            '{{ printf "%s %d %v %q %05d %-4s| %.2f %t %x%%" "a" 3 .spec.containers "q" 42 "l" 1.5 true 255 }}',
            'a 3 [map[name:a] map[image:x name:b]] "q" 00042 l   | 1.50 true ff%',
        ),
        ('{{ printf "%d %s" "a" }}', "%!d(string=a) %!s(MISSING)"),
        ('{{ print 1 2 "a" }}', "1 2a"),
        ('{{ .metadata.name | upper | printf "%s-%s" "x" }}', "x-WEB"),
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
        (
            '{{ default "d" .missing }} {{ "" | default "d" }} {{ coalesce nil "" "c" }} {{ ternary 1 2 true }}',
            "d d c 1",
        ),
        (
            "{{ add 1 2 3 }} {{ sub 5 2 }} {{ mul 2 3 }} {{ div 7 2 }} {{ mod 7 4 }} {{ add1 .metadata.generation }}",
            "6 3 6 3 3 4",
        ),
        (
            '{{ max 1 5 3 }} {{ min 4 2 }} {{ int "12" }} {{ floor 1.7 }} {{ ceil 1.2 }} {{ round 1.256 2 }}',
            "5 2 12 1 2 1.26",
        ),
        (
            '{{ "a-b" | replace "-" "_" }} {{ trimSuffix "b" "ab" }} {{ hasPrefix "a" "ab" }}',
            "a_b a true",
        ),
        ('{{ trunc 2 "abc" }} {{ substr 1 2 "abc" }} {{ first (list 1 2) }}', "ab b 1"),
        (
            '{{ join "," (list 1 "b") }} {{ splitList "," "a,b" | len }} {{ has "b" (list "a" "b") }}',
            "1,b 2 true",
        ),
        (
            '{{ $d := dict "a" 1 "b" 2 }}{{ get $d "a" }}{{ hasKey $d "z" }}{{ keys $d }}{{ $d | toJson }}',
            '1false[a b]{"a":1,"b":2}',
        ),
        ('{{ $d := dict }}{{ $_ := set $d "k" "v" }}{{ $d.k }}{{ dig "x" "y" "none" $d }}', "vnone"),
        ('{{ "a\\nb" | indent 2 }}{{ "c" | nindent 1 }}', "  a\n  b\n c"),
        ('{{ quote "a" 1 }} {{ squote "b" }} {{ "YQ==" | b64dec }} {{ b64enc "a" }}', '"a" "1" \'b\' a YQ=='),
        (
            '{{ regexMatch "^a+$" "aaa" }} {{ kindOf .metadata }} {{ until 3 }} {{ sha256sum "" | trunc 8 }}',
            "true map [0 1 2] e3b0c442",
        ),
    ],
)
def test_sprig_functions(text: str, output: str) -> None:
    assert render(text) == output


def test_random_functions_follow_the_seed() -> None:
    text = "{{ randInt 0 1000000 }} {{ randAlphaNum 8 }} {{ uuidv4 }}"
    assert render(text) == render(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{{ .a", "line 1: an action is not closed"),
        ("a\n{{ }}", "line 2: an action is empty"),
        ("{{ if .a }}", "not closed by end"),
        ("{{ end }}", "unexpected end"),
        ("{{ else }}", "unexpected else"),
        ("{{ nonsense 1 }}", "the function 'nonsense' is not defined or not supported"),
        ("{{ call .a }}", "'call' is not defined or not supported"),
        ("{{ $x }}", "undefined variable $x"),
        ("{{ $x = 1 }}", "undefined variable $x"),
        ("{{ .a .b }}", "only functions take arguments"),
        ("{{ 1 | 2 }}", "a function is needed"),
        ("{{ nil }}", "nil is not a command"),
        ("{{ break }}", "outside of range"),
        ("{{ (1 }}", "a parenthesis is not closed"),
        ('{{ "\\q" }}', "unknown escape sequence"),
        ("{{/* a", "a comment is not closed"),
        ("{{ 'ab' }}", "unexpected"),
        ("{{ " + "( " * 200 + "}}", "nested deeper"),
        ("{{ if 1 }}" * 200, "nested deeper"),
    ],
)
def test_malformed_or_unsupported_template_gets_one_line(text: str, part: str) -> None:
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
        ("{{ upper 1 }}", "upper: expected a string but got int 1"),
        ("{{ upper }}", "upper: wrong number of arguments: want 1, got 0"),
        ("{{ div 1 0 }}", "div: the divisor is zero"),
        ('{{ fail "enough" }}', "fail: enough"),
        ("{{ range .metadata.name }}{{ end }}", "range cannot go through"),
        ('{{ template "t" }}', "the template 't' is not defined"),
        ('{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}', "more than 50 levels"),
        ("{{ range 1000000 }}a{{ end }}", "steps"),
        ('{{ repeat 2000000 "a" }}', "more than 262144"),
        ('{{ "aaaa" | replace "a" (repeat 200000 "b") }}', "more than 262144"),
        ('{{ printf "%9999999d" 1 }}', "width or precision"),
        ('{{ range until 90 }}{{ range until 90 }}{{ repeat 1000 "aa" }}{{ end }}{{ end }}', "more than"),
        ("{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ YAML $x }}", "steps"),
        ('{{ $x := "a" }}{{ range until 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}', "more than"),
        ("{{ $x := list }}{{ range until 9000 }}{{ $x = list $x }}{{ end }}{{ toJson $x }}", "template:"),
        ('{{ $d := dict }}{{ $_ := set $d "k" $d }}', "a map cannot contain itself"),
    ],
)
def test_failed_rendering_gets_one_line(text: str, part: str) -> None:
    began = time.thread_time()
    with pytest.raises(StageError) as caught:
        render(text)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert time.thread_time() - began < 20


_VALUES = [
    "1",
    '"a"',
    "0.5",
    "nil",
    ".",
    ".metadata",
    ".spec.containers",
    "$",
    "(list 1 2)",
    '(dict "a" 1)',
    "true",
]
_WORDS = """text {{ }} {{- -}} if end else range with .a .metadata.name $x := = | ( ) "s" 1 `r` define template break
, /* */"""
_PIECES = st.sampled_from(["{{ end }}", *(f"{word} " for word in (*_WORDS.split(), *FUNCTIONS))])


@given(st.lists(_PIECES, max_size=12).map("".join) | st.text(max_size=30))
def test_no_template_crashes(text: str) -> None:
    assert "\n" not in complaint(text)


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.sampled_from(_VALUES), max_size=4))
def test_no_function_crashes(name: str, arguments: list[str]) -> None:
    assert "\n" not in complaint(f"{{{{ {name} {' '.join(arguments)} }}}}")
