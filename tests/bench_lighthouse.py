"""What Lighthouse says of the built site, page by page, on a phone and on a desktop.

python tests/bench_lighthouse.py                      the front pages, the heaviest chapters, the heaviest lab
python tests/bench_lighthouse.py --all                every page
python tests/bench_lighthouse.py en/order.html --runs 1

Needs Node (18.20 or later) with npm, which fetches Lighthouse the first time, and a Chromium. The site is
built for the address at which it is served here; POSENC_SITE names one that is built already. It is served as
hosts serve it: compressed. Performance is the median of the runs, the rest comes from the first. Lighthouse
works out what a slow phone would take from what this machine took: run it where nothing else runs, and look
at the last column, its own measure of the machine, which drops when it is busy. Exit status 1 where a bound
is missed, 2 where something is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import http
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import browsing
import sitecheck
from sitebuild import ROOT, build

LIGHTHOUSE = "lighthouse@12"
NODE = (18, 20)
BOUNDS = {
    "mobile": {"performance": 90, "accessibility": 100, "best-practices": 100, "seo": 100},
    "desktop": {"performance": 98, "accessibility": 100, "best-practices": 100, "seo": 100},
}
METRICS = {  # name in the report: head of the column, how to show it
    "largest-contentful-paint": ("LCP s", lambda ms: f"{ms / 1000:.1f}"),
    "total-blocking-time": ("TBT ms", lambda ms: f"{ms:.0f}"),
    "cumulative-layout-shift": ("CLS", lambda shift: f"{shift:.3f}"),
    "total-byte-weight": ("KB", lambda size: f"{size / 1024:.0f}"),
}
FRONT = ["index.html?stay", "en/index.html", "zh/index.html"]

Report = dict[str, Any]


# --- The site -----------------------------------------------------------------------------------------------


class Compressing(browsing.Quiet):
    """Sends what can be compressed compressed, and keeps the connection, as any host does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802
        file = Path(self.translate_path(self.path))
        if file.is_dir():
            file /= "index.html"
        kind = self.guess_type(str(file))
        if not file.is_file():
            self.answer(http.HTTPStatus.NOT_FOUND, b"no such file", "text/plain")
        elif browsing.compressible(kind):
            self.answer(http.HTTPStatus.OK, browsing.compressed(file.read_bytes()), kind, encoding="gzip")
        else:
            self.answer(http.HTTPStatus.OK, file.read_bytes(), kind)

    def answer(self, status: http.HTTPStatus, body: bytes, kind: str, encoding: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def site_served() -> Iterator[tuple[Path, str]]:
    """The site and its address, built for that address unless POSENC_SITE names one."""
    with contextlib.ExitStack() as stack:
        built = os.environ.get("POSENC_SITE")
        folder = Path(built or stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(browsing.served(folder, Compressing))
        if not built:
            print("building the site", file=sys.stderr)
            status, said, _ = build(ROOT, folder, POSENC_SITE_URL=address)
            if status != 0:
                sys.exit(said)
        yield folder, address


def heaviest(site: Path) -> list[str]:
    """The front pages, and of each book the heaviest chapter and the heaviest lab."""

    def weight(path: Path) -> int:
        return len(browsing.compressed(path.read_bytes()))

    found = list(FRONT)
    for book in sitecheck.BOOKS:
        for folder in (site / book, site / book / "labs"):
            found.append(sitecheck.name(max(folder.glob("*.html"), key=weight), site))
    return found


def every_page(site: Path) -> list[str]:
    """Every page but those that say that there is none."""
    names = (sitecheck.name(path, site) for path in sitecheck.pages(site))
    return FRONT + [name for name in names if not re.search(r"(^|/)(404|index)\.html$", name)]


# --- Lighthouse ---------------------------------------------------------------------------------------------


def missing() -> str:
    """What has to be installed first; "" where all is there."""
    if browsing.chromium() is None:
        return browsing.NONE
    if not (shutil.which("node") and shutil.which("npx")):
        return "no npx: install Node 18.20 or later with npm, for example `apt-get install nodejs npm`"
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(map(int, re.findall(r"\d+", said)[:2]))
    return f"node {said.strip()} is too old for {LIGHTHOUSE}: 18.20 or later" if version < NODE else ""


def lighthouse(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npx", "--yes", "--prefer-offline", LIGHTHOUSE, *arguments],
        env=os.environ | {"CHROME_PATH": browsing.chromium() or ""},
        capture_output=True,
        text=True,
        check=False,
    )


def report(url: str, device: str, categories: list[str]) -> Report:
    """What Lighthouse writes about one load of a page."""
    flags = ["--headless=new", *browsing.FLAGS]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.json")
        done = lighthouse(
            url,
            "--quiet",
            "--output=json",
            f"--output-path={file}",
            f"--only-categories={','.join(categories)}",
            f"--chrome-flags={' '.join(flags)}",
            *(["--preset=desktop"] if device == "desktop" else []),
        )
        if done.returncode != 0 or not file.is_file():
            sys.exit(f"{LIGHTHOUSE} failed on {url}:\n{done.stdout}{done.stderr}")
        result: Report = json.loads(file.read_text(encoding="utf-8"))
    if error := result.get("runtimeError"):
        sys.exit(f"{url}: {error['message']}")
    return result


def score(result: Report, category: str) -> float:
    """Of 100; 0 where an audit could not be run, and so there is none."""
    return 100 * (result["categories"][category]["score"] or 0)


def scores(results: list[Report], device: str) -> dict[str, float]:
    """Performance is the median, the rest from the first run, which alone has it."""
    found = {category: score(results[0], category) for category in BOUNDS[device]}
    found["performance"] = median(score(result, "performance") for result in results)
    return found


def faults(result: Report) -> list[str]:
    """Which audits cost a page its 100, performance apart: that is the sum of many."""
    found = []
    for name, category in result["categories"].items():
        for reference in category["auditRefs"] if name != "performance" else ():
            audit = result["audits"][reference["id"]]
            if not reference["weight"] or audit["score"] in (None, 1):
                continue
            items = (audit.get("details") or {}).get("items") or [{}]
            first = json.dumps(items[0], ensure_ascii=False)[:300]
            found.append(f"{name}: {audit['id']}: {audit['title']} {first}")
    return found


# --- The table ----------------------------------------------------------------------------------------------


def row(name: str, device: str, results: list[Report]) -> tuple[str, bool]:
    """A line of the table, a missed bound marked with *, and whether there is one."""
    found, cells = scores(results, device), []
    for category, bound in BOUNDS[device].items():
        cells.append(f"{found[category]:.0f}".rjust(14) + ("*" if found[category] < bound else " "))
    for metric, (_, shown) in METRICS.items():
        value = median(result["audits"][metric]["numericValue"] for result in results)
        cells.append(shown(value).rjust(7))
    speed = median(result["environment"]["benchmarkIndex"] for result in results)
    cells.append(f"{speed:.0f}".rjust(8))
    return f"{name:<26} {device:<8}" + "".join(cells), any("*" in cell for cell in cells)


def head() -> str:
    names = "".join(f"{category:>14} " for category in BOUNDS["mobile"])
    metrics = "".join(f"{title:>7}" for title, _ in METRICS.values()) + " machine"
    bounds = [
        f"{'bound':<26} {device:<8}" + "".join(f"{bound:>14} " for bound in BOUNDS[device].values())
        for device in BOUNDS
    ]
    return "\n".join([f"{'page':<26} {'device':<8}{names}{metrics}", *bounds])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pages", nargs="*", help="such as zh/offsets.html")
    parser.add_argument("--all", action="store_true", help="every page of the site")
    parser.add_argument("--runs", type=int, default=3, help="loads a page and device (3)")
    asked = parser.parse_args()
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    version = lighthouse("--version")
    if version.returncode != 0:
        print(f"npx cannot fetch {LIGHTHOUSE} from npm:\n{version.stderr}", file=sys.stderr)
        return 2
    said: dict[str, list[str]] = {}
    missed = False
    with site_served() as (site, address):
        names = asked.pages or (every_page(site) if asked.all else heaviest(site))
        print(f"Lighthouse {version.stdout.strip()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print(f"performance: median of {asked.runs}\n\n{head()}", flush=True)
        for name in names:
            for device, bounds in BOUNDS.items():
                results = [
                    report(f"{address}{name}", device, ["performance"] if run else list(bounds))
                    for run in range(asked.runs)
                ]
                line, short = row(name, device, results)
                missed |= short
                print(line, flush=True)
                for fault in faults(results[0]):
                    said.setdefault(fault, []).append(f"{name} {device}")
        print(f"\nload at the end {os.getloadavg()[0]:.1f}")
    for fault, where in said.items():
        print(f"\n{fault}\n  {', '.join(where)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
