"""The book to take away: the site as a zip whose folder opens from disk, and a PDF of each book.

    python -m press offline                 # builds the site first
    python -m press offline --site site     # takes one that is built
    python -m press offline --with-runtime  # the zip can run blocks where a server serves it; 33 MB more

They are posenc-book.zip, posenc-en.pdf and posenc-zh.pdf, in dist/ or in the folder that --to names.
The PDFs are printed by Chromium or Chrome (pdf.py). The same site gives the same zip, byte for byte.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from playwright.sync_api import Browser, Error, sync_playwright

from press.cache import ROOT
from press.languages import LANGUAGES
from press.offline import pdf
from press.runtime import pyodide

NAME = "posenc-book"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NONE = "no browser to print with: `apt-get install chromium fonts-noto-cjk`, or install Google Chrome"


# What main.html writes for them: their style, their configuration, and the script after each.
_RUNS = re.compile(
    r'(<link rel="stylesheet" href="[^"]*runtime/run\.css">|<script [^>]*id="run-config">.*?</script>)'
    r"\s*<script>.*?</script>\s*",
    re.DOTALL,
)


def for_disk(path: Path) -> bool:
    """Whether a file of the site is of use to a page opened from disk.

    Not what speaks of addresses on a server (site maps, contents for models, pictures for links, pages for
    addresses that are not there), nor what is fetched by scripts: the search index (from disk it is read from a
    script) and the modules of figures that move; nor maps of scripts.
    """
    of_server = path.name in ("404.html", "llms.txt", "sitemap.xml", "sitemap.xml.gz", "search_index.json")
    of_server |= path.parent.name == "live" or "cards" in path.parts
    return not (of_server or path.suffix == ".map" or path.name.startswith("."))


def of_runtime(path: Path) -> bool:
    """Whether a file of the site runs blocks: a browser refuses that to a page from disk."""
    return path.parts[0] == "py" or path.parts[1:2] == ("runtime",)


def without_runtime(page: str) -> str:
    """A page that does not offer to run its blocks."""
    return _RUNS.sub("", page)


def archive(site: Path, target: Path, *, with_runtime: bool = False) -> None:
    """Write the zip of a built site: one folder, its files in order and without their dates."""
    files = sorted((path.relative_to(site) for path in site.rglob("*") if path.is_file()), key=str)
    if not with_runtime:
        files = [path for path in files if not of_runtime(path)]
    with zipfile.ZipFile(target, "w") as made:
        for path in filter(for_disk, files):
            entry = zipfile.ZipInfo(f"{NAME}/{path.as_posix()}")  # the first of January 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # the same on every system
            entry.external_attr = 0o644 << 16
            data = (site / path).read_bytes()
            if path.suffix == ".html" and not with_runtime:
                data = without_runtime(data.decode()).encode()
            made.writestr(entry, data)


def make(site: Path, folder: Path, *, with_runtime: bool = False) -> list[Path]:
    """Write zip and PDFs of a built site into a folder; gives their paths. Each book is printed by a process.

    Raises:
        ValueError: if `site` is no built site.
    """
    for language in LANGUAGES:
        pdf.order(site / language)  # says what is wrong with `site` before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / f"{NAME}.zip", *(folder / f"posenc-{language}.pdf" for language in LANGUAGES)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        printing = [
            pool.submit(_print, site, language, to) for language, to in zip(LANGUAGES, made[1:], strict=True)
        ]
        archive(site, made[0], with_runtime=with_runtime)
        for book in printing:
            book.result()
    return made


def _print(site: Path, language: str, to: Path) -> None:
    with launched() as browser:
        to.write_bytes(pdf.printed(browser, site, language))


@contextlib.contextmanager
def built() -> Iterator[Path]:
    """The site, built for the time being."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
        if subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode:
            raise SystemExit("the site could not be built")
        yield site


def chromium() -> str | None:
    """The path of a browser, None where there is none on the PATH."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """Chromium or Chrome: one on the PATH, or Chrome where its installer puts it."""
    path = chromium()
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, channel=None if path else "chrome")
        except Error as error:
            raise SystemExit(f"{NONE}\n{error}") from None
        yield browser
        browser.close()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="press offline", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--site", type=Path, help="a built site; without it one is built")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder to write into (dist)")
    parser.add_argument(
        "--with-runtime", action="store_true", help="keep in the zip what runs blocks in a page"
    )
    wanted = parser.parse_args(arguments)
    if wanted.with_runtime and not wanted.site and not pyodide.there():
        raise SystemExit("there is no Python for the pages: `python -m press runtime` fetches it")
    with launched():
        pass  # what is missing is said before a site is built
    with contextlib.ExitStack() as stack:
        site = wanted.site or stack.enter_context(built())
        try:
            made = make(site.resolve(), wanted.to, with_runtime=wanted.with_runtime)
        except ValueError as error:
            raise SystemExit(str(error)) from None
    for path in made:
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
