"""Programs that tests of the bench use."""

from __future__ import annotations

import os
import shutil

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
