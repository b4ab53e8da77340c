"""Validation of manifests without a running server: `kubist validate` and `kubist.validate`.

`server.py` is a server in memory without a socket. Every manifest is sent to it as a request, so every message is the
server's own. `checking.py` decides the order of the requests, `manifests.py` reads files, `findings.py` turns responses
into findings, and one module each writes them as text, JSON, JUnit XML or SARIF.
"""
