"""`python docs/hooks/check`: see walk.py."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # as one package, beside book

from check.walk import main  # noqa: E402

sys.exit(main())
