"""Known paths: a cached request line has the same parts as a new one."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubist.api import known_paths, request

PARTS = st.sampled_from(
    [
        "",
        "api",
        "apis",
        "apps",
        "v1",
        "namespaces",
        "pods",
        "a",
        "status",
        "finalize",
        "watch",
        "proxy",
        "a%2Fb",
        "%00",
        "{name}",
    ]
)
SELECTED = "fieldSelector=metadata.name%3D"
QUERIES = st.sampled_from(
    ["", "watch=1", f"{SELECTED}a", f"{SELECTED}%7Bname%7D", "a=%zz&b=c", "timeout=1s", "x=" + "y" * 320]
)


@settings(max_examples=500)
@given(st.sampled_from(["GET", "POST", "DELETE", "BREW"]), st.lists(PARTS, max_size=7), QUERIES)
@example("GET", ["apis", "", "", "", "{name}", "api"], "")
@example("GET", ["api", "v1", "pods"], f"{SELECTED}%7Bname%7D")
def test_cached_request_line_is_parsed_like_a_new_one(method: str, parts: list[str], query: str) -> None:
    path = "/" + "/".join(parts)
    parsed = request.parse_query(query)
    expected = request.parse(method, path, parsed), parsed
    assert known_paths.read(method, path, query) == expected
    assert known_paths.read(method, path, query) == expected
