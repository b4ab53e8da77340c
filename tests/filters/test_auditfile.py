"""The file of an audit log under several writers."""

from __future__ import annotations

import threading
from pathlib import Path

from kubist.filters.auditfile import AuditFile

WRITERS, LINES, SIZE = 4, 200, 1000


def test_writers_of_one_file_lose_no_line_when_one_of_them_rotates_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"

    def write(number: int) -> None:
        file = AuditFile(path, max_size=100 * SIZE)
        for line in range(LINES):
            file.write(f"{number}-{line}".encode().ljust(SIZE - 1, b".") + b"\n")
        file.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = list(tmp_path.iterdir())
    lines = [line.rstrip(".") for file in files for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{number}-{line}" for number in range(WRITERS) for line in range(LINES))
    assert len(files) >= WRITERS * LINES // 100
    assert all(file.stat().st_size <= (100 + WRITERS) * SIZE for file in files)
