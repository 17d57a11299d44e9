"""``python -m gateways``."""

import sys

from gateways.cli import main

sys.exit(main())
