"""Building the site, for the tests and the benchmarks."""

import filecmp
import os
import re
import time
from pathlib import Path

from tests.programs import python


def build(root: Path, site: Path, **environment: str) -> tuple[int, str, float]:
    """`mkdocs build`: exit status, what it said without colours, seconds."""
    start = time.perf_counter()
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"} | environment
    done = python("-m", "mkdocs", "build", "--site-dir", str(site), cwd=root, env=environment)
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return done.returncode, said, time.perf_counter() - start


def different(one: Path, other: Path) -> list[str]:
    """Files that are not the same byte for byte; gzip writes the time of packing into sitemap.xml.gz."""
    names = [
        {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
        for site in (one, other)
    ]
    found = sorted(names[0] ^ names[1])
    _, wrong, errors = filecmp.cmpfiles(one, other, sorted(names[0] & names[1]), shallow=False)
    return [file for file in (*found, *wrong, *errors) if not file.endswith(".xml.gz")]
