"""`python docs/hooks/runtime`: see fetch.py."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # as one package, beside book

from runtime.fetch import main  # noqa: E402

main()
