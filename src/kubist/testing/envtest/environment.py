"""Settings of a kube-apiserver from the assets: environment variables, and the stand-in at --etcd-servers."""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from kubist.api.config import Config
from kubist.base.listening import bound
from kubist.testing.envtest.etcd import MARK

ETCD_WAIT = 5.0
"""Seconds to wait until something listens at --etcd-servers. Some libraries start both processes at once."""
POLL = 0.005
ANSWER_WAIT = 2.0
BACKLOG = 128

_ON, _OFF = ("1", "true", "t", "yes"), ("", "0", "false", "f", "no")


def configured(config: Config, environment: Mapping[str, str]) -> Config:
    """Config with the environment variables, and with the in-memory store if etcd is the stand-in. Raises
    ValueError for an invalid variable."""
    changes: dict[str, object] = {}
    if is_on(environment, "KUBIST_TEST_BENCH"):
        changes["test_bench"] = True
    names = tuple(
        name.strip() for name in environment.get("KUBIST_CONTROLLERS", "").split(",") if name.strip()
    )
    if names:
        _check_controllers(names)
        changes["controllers"] = names
    if is_on(environment, "KUBIST_WORKLOADS"):
        changes["workloads"] = True
    if config.etcd_servers and all(is_stand_in(url) for url in config.etcd_servers):
        changes |= {"etcd_servers": (), "etcd_cafile": "", "etcd_certfile": "", "etcd_keyfile": ""}
    return dataclasses.replace(config, **changes)  # type: ignore[arg-type]


def early_listener(config: Config) -> socket.socket | None:
    """Socket that listens while the server still loads; None if several processes share the port.

    A test library whose readiness check connects waits for the response. After a refused connection it would wait for
    its next check, 100 ms later in controller-runtime.
    """
    if config.workers > 1:
        return None
    listener = bound(config.bind_address, config.secure_port)
    listener.listen(BACKLOG)
    return listener


def is_on(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "").strip().lower()
    if value in _ON:
        return True
    if value in _OFF:
        return False
    raise ValueError(f"{name} is {value!r}: it must be 1 or 0")


def _check_controllers(names: tuple[str, ...]) -> None:
    # Saves start-up time: a server without control loops does not load them.
    from kubist.cluster.control.manager import chosen

    try:
        chosen(names)
    except ValueError as error:
        raise ValueError(f"KUBIST_CONTROLLERS: {error}") from None


def is_stand_in(url: str) -> bool:
    """Whether the stand-in listens at a URL. Waits a few seconds for a listener."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http":
        return False
    deadline = time.monotonic() + ETCD_WAIT
    while True:
        try:
            with socket.create_connection(
                (parts.hostname or "", parts.port or 2379), ANSWER_WAIT
            ) as connection:
                return MARK in _version(connection)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL)
        except (OSError, ValueError):
            return False


def _version(connection: socket.socket) -> bytes:
    connection.sendall(b"GET /version HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")
    received = b""
    while len(received) < 1 << 16 and (piece := connection.recv(1 << 14)):
        received += piece
        if MARK in received:
            break
    return received
