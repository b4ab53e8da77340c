"""URLs of webhooks in the form in which client-go calls them."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes, urlsplit, urlunsplit

from kubist.base.http.client.redirects import PATH_SAFE


def clean_url(url: str) -> str:
    """URL with a clean path, without query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, clean_path(unquote_to_bytes(parts.path)), "", ""))


def clean_path(path: bytes) -> str:
    """Escaped absolute path of a decoded one, without empty segments, `.` and `..`, and without a slash at its
    end, as Go's `path.Join` makes it."""
    kept: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    return quote(b"/" + b"/".join(kept), safe=PATH_SAFE)
