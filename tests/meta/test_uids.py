"""UIDs of new objects: random, well-formed, and different in forked processes."""

from __future__ import annotations

import subprocess
import sys
import uuid

from kubist.model.meta.uids import new_uid


def test_uids_are_random_uuids() -> None:
    drawn = [new_uid() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    for text in drawn:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


FORKED = """
import os
from kubist.model.meta.uids import new_uid
new_uid()
child = os.fork()
if child:
    os.waitpid(child, 0)
print("\\n".join(new_uid() for _ in range(100)), flush=True)
os._exit(0)
"""


def test_forked_process_generates_its_own_uids() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    assert len(set(done.stdout.split())) == 200
