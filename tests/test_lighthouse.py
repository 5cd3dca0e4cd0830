"""What the Lighthouse benchmark makes of a report, and how it serves a site, without Lighthouse."""

import gzip
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import bench_lighthouse as bench
import browsing
import pytest


def report(**scores: float) -> dict[str, Any]:
    """As Lighthouse writes it; every category has one audit, performance nothing to say."""
    names = [name for name in bench.BOUNDS["mobile"] if name != "performance"]
    found = {name: scores.get(name.replace("-", "_"), 1.0) for name in names}
    audits: dict[str, Any] = {metric: {"score": 1, "numericValue": 1000.0} for metric in bench.METRICS}
    audits["cumulative-layout-shift"]["numericValue"] = 0.02
    for name, score in found.items():
        audits[f"a-{name}"] = {
            "id": f"a-{name}",
            "title": "Words",
            "score": score,
            "details": {"items": ["x"]},
        }
    categories: dict[str, Any] = {
        name: {"score": score, "auditRefs": [{"id": f"a-{name}", "weight": 1}]}
        for name, score in found.items()
    }
    categories["performance"] = {"score": scores.get("performance", 1.0), "auditRefs": []}
    return {"categories": categories, "audits": audits, "environment": {"benchmarkIndex": 2000}}


def test_a_good_page_misses_nothing() -> None:
    for device in bench.BOUNDS:
        line, missed = bench.row("a.html", device, [report()])
        assert not missed
        assert "*" not in line
        assert line.split()[:6] == ["a.html", device, "100", "100", "100", "100"]
        assert line.endswith("    1.0   1000  0.020      1    2000")
    assert bench.faults(report()) == []


def test_performance_is_the_median() -> None:
    runs = [report(performance=score) for score in (0.2, 0.9, 0.95)]
    assert not bench.row("a.html", "mobile", runs)[1]
    assert bench.row("a.html", "desktop", runs)[1]
    assert bench.row("a.html", "mobile", runs[:1])[1]


@pytest.mark.parametrize("category", ["accessibility", "best_practices", "seo"])
def test_a_bound_that_is_missed_is_marked_and_explained(category: str) -> None:
    bad = report(**{category: 0.99})
    line, missed = bench.row("a.html", "desktop", [bad])
    assert missed
    assert "99*" in line
    name = category.replace("_", "-")
    assert bench.faults(bad) == [f'{name}: a-{name}: Words "x"']


def test_a_site_is_served_compressed(tmp_path: Path) -> None:
    page, font = b"<p>one</p>" * 1000, bytes(range(256))
    (tmp_path / "index.html").write_bytes(page)
    (tmp_path / "a.woff2").write_bytes(font)
    with browsing.served(tmp_path, bench.Compressing) as url:
        with urllib.request.urlopen(url) as answer:
            body = answer.read()
            assert answer.headers["Content-Encoding"] == "gzip"
        assert len(body) < 200
        assert gzip.decompress(body) == page
        with urllib.request.urlopen(f"{url}a.woff2") as answer:
            assert answer.headers["Content-Encoding"] is None
            assert answer.read() == font
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}b.html")


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bench.missing() == browsing.NONE
    for name in ("chromium", "node"):
        (tmp_path / name).write_text("#!/bin/sh\necho v16.1.0\n")
        (tmp_path / name).chmod(0o755)
    assert "npx" in bench.missing()
    (tmp_path / "npx").symlink_to("node")
    assert "too old" in bench.missing()
    (tmp_path / "node").write_text("#!/bin/sh\necho v22.1.0\n")
    assert bench.missing() == ""


def test_the_heaviest_page_of_a_folder_is_found(tmp_path: Path) -> None:
    for book in ("en", "zh"):
        (tmp_path / book / "labs").mkdir(parents=True)
        (tmp_path / book / "light.html").write_text("a" * 50_000)
        (tmp_path / book / "heavy.html").write_text("".join(map(str, range(5000))))
        (tmp_path / book / "labs" / "lab.html").write_text("a")
    (tmp_path / "404.html").write_text("a")
    found = [f"{book}/{name}.html" for book in ("en", "zh") for name in ("heavy", "labs/lab")]
    assert bench.heaviest(tmp_path) == [*bench.FRONT, *found]
    assert "en/light.html" in bench.every_page(tmp_path)
    assert not any("404" in name for name in bench.every_page(tmp_path))
