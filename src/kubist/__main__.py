"""`python -m kubist` is `kubist`."""

import sys

from kubist.cli import main

sys.exit(main())
