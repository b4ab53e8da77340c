"""Access to OpenSSL through ctypes, which is used only if all checks pass."""

from __future__ import annotations

import _ssl
import ctypes
import ssl
import sys

import pytest

from kubist.base.http.tls import openssl
from tests.live import Client


def test_tested_python_with_a_shared_openssl_is_reached() -> None:
    """All supported Python releases must send the names of authorities and respond 401."""
    if sys.version_info[:2] not in openssl.TESTED or not getattr(_ssl, "__file__", ""):
        pytest.skip("not one of the tested builds")
    try:
        ctypes.CDLL(_ssl.__file__).SSL_CTX_get_options  # noqa: B018
    except AttributeError:
        pytest.skip("OpenSSL is linked statically")
    assert openssl.library() is not None


def problem(monkeypatch: pytest.MonkeyPatch, target: object, name: str, value: object) -> str:
    monkeypatch.setattr(target, name, value)
    found, library = openssl._find()
    assert library is None
    return found


def test_untested_python_release_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not tested" in problem(monkeypatch, openssl, "TESTED", ((3, 10),))


def test_static_openssl_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "statically" in problem(monkeypatch, _ssl, "__file__", "")


def test_other_openssl_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if openssl.library() is None:
        pytest.skip("this Python's OpenSSL cannot be reached")
    assert "another OpenSSL" in problem(monkeypatch, ssl, "OPENSSL_VERSION", "OpenSSL 9.9.9")


def test_context_with_unexpected_layout_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if openssl.library() is None:
        pytest.skip("this Python's OpenSSL cannot be reached")
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pointer = openssl._pointer(other)
    assert "laid out" in problem(monkeypatch, openssl, "_pointer", lambda context: pointer)


def test_missing_function_means_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(openssl._PROTOTYPES, "no_such_function", (None, []))
    assert openssl.library.__wrapped__() is None


def test_unreachable_openssl_leaves_the_context_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssl, "library", lambda: None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert openssl.configure(context, [b"not even a certificate"]) is False


def test_session_cache_is_off() -> None:
    library = openssl.library()
    if library is None:
        pytest.skip("this Python's OpenSSL cannot be reached")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    get_mode = openssl._GET_SESSION_CACHE_MODE
    assert library.SSL_CTX_ctrl(openssl._pointer(context), get_mode, 0, None) != 0
    assert openssl.configure(context, [])
    assert library.SSL_CTX_ctrl(openssl._pointer(context), get_mode, 0, None) == 0


def test_malformed_authority_is_an_error() -> None:
    if openssl.library() is None:
        pytest.skip("this Python's OpenSSL cannot be reached")
    with pytest.raises(ValueError, match="not a certificate"):
        openssl.configure(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), [b"\x30\x03abc"])


def test_malformed_authority_leaves_open_connections_alone(client: Client) -> None:
    """OpenSSL keeps errors for each thread. A connection that waits for data takes an old one for its own."""
    if openssl.library() is None:
        pytest.skip("this Python's OpenSSL cannot be reached")
    assert client.ask("GET", "/version").status == 200
    with pytest.raises(ValueError, match="not a certificate"):
        openssl.configure(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), [b"\x30\x03abc"])
    assert client.ask("GET", "/version").status == 200
