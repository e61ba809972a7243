"""`python -m sim2real.cli`."""

import sys

from sim2real.cli.main import main

sys.exit(main())
