"""OpenSSL settings of a server context that Python's `ssl` module does not offer, set through ctypes.

A context of `ssl` holds a pointer to an `SSL_CTX`. This module reads that pointer and calls the same libssl
that `ssl` is linked with. It sets three things:

- the names of accepted client CAs, which the handshake sends to clients;
- a verify callback that accepts every client certificate, so that the server can respond 401 to an unknown
  one;
- no session cache, so that a TLS 1.2 session id cannot be resumed.

No function is called unless `library` finds what it expects: a Python release whose context layout was tested, the same
OpenSSL as `ssl` reports, and options that read the same through ctypes and through `ssl`. Otherwise `configure` changes
nothing and returns False, and the caller lets OpenSSL verify client certificates during the handshake.
"""

from __future__ import annotations

import _ssl
import ctypes
import functools
import logging
import ssl
import sys
from collections.abc import Sequence

log = logging.getLogger("kubist.http")

TESTED = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))
"""Python releases in which the pointer to the SSL_CTX is the first field of a context object."""

_SET_SESSION_CACHE_MODE = 44
_GET_SESSION_CACHE_MODE = 45
_CACHE_OFF = 0
_POINTER = ctypes.c_void_p
_VerifyCallback = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER)

_PROTOTYPES: dict[str, tuple[object, list[object]]] = {
    "OpenSSL_version": (ctypes.c_char_p, [ctypes.c_int]),
    "SSL_CTX_get_options": (ctypes.c_uint64, [_POINTER]),
    "SSL_CTX_get_verify_mode": (ctypes.c_int, [_POINTER]),
    "SSL_CTX_ctrl": (ctypes.c_long, [_POINTER, ctypes.c_int, ctypes.c_long, _POINTER]),
    "SSL_CTX_add_client_CA": (ctypes.c_int, [_POINTER, _POINTER]),
    "SSL_CTX_set_cert_verify_callback": (None, [_POINTER, _VerifyCallback, _POINTER]),
    "d2i_X509": (_POINTER, [_POINTER, ctypes.POINTER(ctypes.c_char_p), ctypes.c_long]),
    "X509_free": (None, [_POINTER]),
    "ERR_clear_error": (None, []),
}


_accept = _VerifyCallback(lambda _store, _argument: 1)
"""Accepts every chain. OpenSSL still checks that the client holds the private key of its certificate."""


def configure(context: ssl.SSLContext, authorities: Sequence[bytes], *, announce: bool = True) -> bool:
    """Accepts client certificates of any issuer, announces the authorities (DER), and turns off session
    resumption. With `announce` False, clients are asked for a certificate of any issuer.

    Returns False and leaves the context unchanged if OpenSSL cannot be reached through ctypes. Raises
    ValueError for an authority that is not a certificate.
    """
    lib = library()
    if lib is None:
        return False
    pointer = _pointer(context)
    lib.SSL_CTX_ctrl(pointer, _SET_SESSION_CACHE_MODE, _CACHE_OFF, None)
    if authorities:
        lib.SSL_CTX_set_cert_verify_callback(pointer, _accept, None)
    for der in dict.fromkeys(authorities if announce else ()):
        certificate = lib.d2i_X509(None, ctypes.byref(ctypes.c_char_p(der)), len(der))
        if not certificate:
            lib.ERR_clear_error()  # The next read of a connection in this thread would find the error and fail.
            raise ValueError("not a certificate")
        lib.SSL_CTX_add_client_CA(pointer, certificate)
        lib.X509_free(certificate)
    return True


@functools.cache
def library() -> ctypes.CDLL | None:
    """libssl of the `ssl` module. None if this Python was not tested or a check failed."""
    try:
        problem, lib = _find()
    except (OSError, AttributeError, MemoryError) as error:
        problem, lib = str(error), None
    if lib is None:
        log.info("client certificates are verified during the handshake, because %s", problem)
    return lib


def _find() -> tuple[str, ctypes.CDLL | None]:
    release = sys.version_info[:2]
    if sys.implementation.name != "cpython" or release not in TESTED:
        return "this Python release was not tested", None
    # Without a file of its own, the module and OpenSSL are part of the interpreter.
    path = getattr(_ssl, "__file__", "")
    if not path:
        return "Python is linked with OpenSSL statically", None
    lib = ctypes.CDLL(path)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    if lib.OpenSSL_version(0) != ssl.OPENSSL_VERSION.encode():
        return "ctypes finds another OpenSSL than Python is linked with", None
    if not _reads_like_ssl(lib):
        return "a context is not laid out as expected", None
    return "", lib


def _reads_like_ssl(lib: ctypes.CDLL) -> bool:
    """Whether settings made through `ssl` read the same through ctypes, for two contexts that differ."""
    for verify_mode, option in (
        (ssl.CERT_OPTIONAL, ssl.OP_NO_TICKET),
        (ssl.CERT_NONE, ssl.OP_NO_RENEGOTIATION),
    ):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = verify_mode
        context.options |= option
        pointer = _pointer(context)
        if lib.SSL_CTX_get_options(pointer) != context.options & 0xFFFF_FFFF_FFFF_FFFF:
            return False
        if lib.SSL_CTX_get_verify_mode(pointer) != verify_mode:
            return False
    return True


def _pointer(context: ssl.SSLContext) -> ctypes.c_void_p:
    return _POINTER.from_address(id(context) + object.__basicsize__)
