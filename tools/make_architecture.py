#!/usr/bin/env python3
"""Make `docs/architecture.svg`: the floors of the package, and the path of one request through them.

    python tools/make_architecture.py

The floors are those of the table in docs/architecture.md, which `make check` compares with the imports. The path is
recorded: the script sends a POST to a server in its own event loop, and numbers the packages in the order in which the
request enters them.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from html import escape
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import check_layers

import kubist

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "architecture.svg"
SOURCE = ROOT / "src" / "kubist"
TRANSPORT = str(SOURCE / "base" / "http")
WITHOUT = ("__main__", "kubist", "errors")
"""Rows of the table that are single modules of public names."""
ABOUT = {
    "cli": "The command line",
    "testing": "Used by testers: pytest fixtures, offline validation, envtest",
    "server": "Builds servers and runs them",
    "testbench": "Faults, recordings, clock, and their control API",
    "cluster": "Acts by itself: control loops and simulated nodes",
    "api": "Everything that happens to a request",
    "storage": "Stores, cache, encryption at rest",
    "model": "What an object is: types, fields, encodings, patches, expressions",
    "base": "Knows nothing of Kubernetes",
}
PATH = "/api/v1/namespaces/default/configmaps"
WIDTH, MARGIN, GAP = 960, 16, 8
TITLE, BOX, ABOUT_LINE, CHARACTER = 130, 30, 20, 7.3


class Floor(NamedTuple):
    name: str
    packages: list[str]


def floors(order: list[str]) -> list[Floor]:
    """Floors from top to bottom, each with its packages."""
    result: list[Floor] = []
    for row in order:
        name = row.partition("/")[0]
        if name in WITHOUT:
            continue
        if not any(floor.name == name for floor in result):
            result.append(Floor(name, []))
        next(floor for floor in result if floor.name == name).packages.append(row)
    return result


class Way:
    """Packages in the order in which the transport and the code below it enter them. Control loops and the change feed
    run in the same event loop and do not count."""

    def __init__(self, order: list[str]) -> None:
        self.packages: list[str] = []
        self._order = order

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE) and is_called_by_transport(frame):
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            package = check_layers.layer_of(".".join(parts), self._order)
            if package not in self.packages:
                self.packages.append(package)


def is_called_by_transport(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(TRANSPORT):
            return True
        frame = frame.f_back
    return False


async def send(port: int, token: str, context: ssl.SSLContext, name: str) -> None:
    """Creates a ConfigMap over HTTP/1.1."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    status = await reader.readline()
    assert b" 201 " in status, status
    writer.close()


async def record(order: list[str]) -> list[str]:
    """Packages that a POST enters, in order. It is the second POST, because the first one also fills caches and loads
    modules."""
    way = Way(order)
    async with kubist.Server(controllers=()) as server:
        target = (server.port, server.token, ssl.create_default_context(cafile=str(server.ca)))
        await send(*target, "first")
        sys.setprofile(way)
        try:
            await send(*target, "second")
        finally:
            sys.setprofile(None)
    return [package for package in way.packages if package not in WITHOUT]


def draw(rows: list[Floor], way: list[str]) -> str:
    parts: list[str] = []
    y = MARGIN
    for floor in rows:
        x, line = float(TITLE + MARGIN), 0
        boxes = []
        for package in floor.packages:
            label = package.partition("/")[2] or package
            step = way.index(package) + 1 if package in way else 0
            width = CHARACTER * len(label) + 18 + (22 if step else 0)
            if x + width > WIDTH - MARGIN:
                x, line = TITLE + MARGIN, line + 1
            boxes.append((x, line, width, label, step))
            x += width + GAP
        height = (line + 1) * (BOX + GAP) + GAP + ABOUT_LINE
        parts.append(
            f'<rect class="floor" x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="6"/>'
        )
        parts.append(f'<text class="name" x="{MARGIN + 12}" y="{y + 26}">{escape(floor.name)}/</text>')
        for x, line, width, label, step in boxes:
            top = y + GAP + line * (BOX + GAP)
            kind = "package on" if step else "package"
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{BOX}" rx="4"/>'
            )
            at = x + 9
            if step:
                parts.append(f'<circle class="step" cx="{x + 15:.1f}" cy="{top + BOX / 2}" r="9"/>')
                parts.append(f'<text class="number" x="{x + 15:.1f}" y="{top + BOX / 2 + 4}">{step}</text>')
                at += 22
            parts.append(f'<text class="label" x="{at:.1f}" y="{top + 20}">{escape(label)}</text>')
        y += height
        parts.append(
            f'<text class="about" x="{TITLE + MARGIN}" y="{y - 10}">{escape(ABOUT[floor.name])}</text>'
        )
        y += GAP
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN - GAP}" role="img">
<style>
text {{ font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933; }}
.floor {{ fill: #f4f6f8; stroke: #c3cad2; }}
.package {{ fill: #ffffff; stroke: #9aa5b1; }}
.on {{ fill: #e3f0ff; stroke: #2f6feb; }}
.name {{ font-weight: 700; font-size: 15px; }}
.about {{ font-family: system-ui, sans-serif; fill: #52606d; }}
.step {{ fill: #2f6feb; }}
.number {{ fill: #ffffff; font-size: 11px; text-anchor: middle; }}
</style>
{chr(10).join(parts)}
</svg>
"""


def main() -> None:
    order = check_layers.layers((ROOT / "docs" / "architecture.md").read_text())
    TARGET.write_text(draw(floors(order), asyncio.run(record(order))))
    print(f"wrote {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
