"""`python docs/hooks/offline`: see archive.py."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # as one package, beside book

from offline.archive import main  # noqa: E402

main()
