#!/usr/bin/env python3
"""Make `docs/terminal.svg`, the picture of the README, from a real run of kubist and kubectl.

    python tools/make_terminal.py

The script starts `kubist serve --workloads` on a free port, runs the commands below with its kubeconfig, and draws
commands and output as a terminal. All rows are legible from the start; each lights up when it appeared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).parent.parent / "docs" / "terminal.svg"
SERVE = "kubist serve --workloads"
COMMANDS = (
    "kubectl create deployment web --image=nginx --replicas=3",
    "kubectl rollout status deployment/web",
    "kubectl get pods -o wide",
    "kubectl annotate pod -l app=web kubist.io/outcome=OOMKilled",
    "kubectl get pods",
)
PAUSES = {"kubectl annotate pod -l app=web kubist.io/outcome=OOMKilled": 1.5}
"""Seconds to wait after a command, so that the next one shows its effect."""
CHARACTER, LINE, MARGIN = 8.0, 19, 18
COLORS = {"prompt": "#7ee787", "command": "#f0f6fc", "output": "#a5b4c4", "comment": "#8b949e"}


class Row(NamedTuple):
    kind: str
    text: str
    second: float


def record() -> list[Row]:
    """Rows of the terminal, with the time at which each appeared."""
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        environment = os.environ | {"NO_COLOR": "1", "KUBECONFIG": str(kubeconfig)}
        kubist = str(Path(sys.executable).parent / "kubist")
        serve = ["serve", "--workloads", "--in-memory", "--secure-port", "0", "--kubeconfig", str(kubeconfig)]
        began = time.perf_counter()
        server = subprocess.Popen(
            [kubist, *serve], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while run("kubectl get --raw /readyz", environment).returncode:
                time.sleep(0.02)
            ready = time.perf_counter() - began
            rows = [Row("command", SERVE, 0.0), Row("comment", f"# ready after {ready:.1f} s", ready)]
            for command in COMMANDS:
                rows.append(Row("command", command, time.perf_counter() - began))
                done = run(command, environment)
                if done.returncode:
                    raise SystemExit(done.stdout)
                now = time.perf_counter() - began
                rows += [Row("output", line, now) for line in done.stdout.rstrip().splitlines()]
                time.sleep(PAUSES.get(command, 0))
            return rows
        finally:
            server.terminate()
            server.wait(30)


def run(command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command.split(),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )


def narrowed(rows: list[Row]) -> list[Row]:
    """Rows without the columns that `-o wide` shows empty."""
    return [
        row._replace(text=re.sub(r"\s+<none>|\s+NOMINATED NODE|\s+READINESS GATES", "", row.text))
        for row in rows
    ]


def kept(text: str) -> str:
    """Text whose columns stay aligned: several spaces in a row would become one."""
    return escape(text).replace(" ", "\u00a0")


def drawn(rows: list[Row]) -> str:
    columns = max(len(row.text) + 2 for row in rows)
    width, height = int(columns * CHARACTER + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN + 24
    texts = []
    for number, row in enumerate(rows):
        y = MARGIN + 24 + (number + 1) * LINE - 6
        prompt = f'<tspan fill="{COLORS["prompt"]}">$</tspan>\u00a0' if row.kind == "command" else ""
        texts.append(
            f'<text class="row" x="{MARGIN}" y="{y}" fill="{COLORS[row.kind]}" '
            f'style="animation-delay:{row.second:.2f}s">'
            f"{prompt}{kept(row.text)}</text>"
        )
    dots = "".join(
        f'<circle cx="{MARGIN + 6 + 18 * place}" cy="18" r="5" fill="{color}"/>'
        for place, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-label="kubist serve, kubectl create deployment, rollout status, pods that run and fail">',
            "<style>",
            "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}",
            ".row{opacity:.4;animation:show .01s linear forwards}",
            "@keyframes show{to{opacity:1}}",
            "@media (prefers-reduced-motion:reduce){.row{opacity:1;animation:none}}",
            "</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            dots,
            *texts,
            "</svg>",
            "",
        )
    )


def main() -> None:
    TARGET.write_text(drawn(narrowed(record())))
    print(TARGET)


if __name__ == "__main__":
    main()
