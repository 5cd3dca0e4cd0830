"""What a reader does with the book in a browser: of the site as it is served, and as it lies on a disk."""

import ast
import html
import io
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as Late
from press import reference
from press.cache import ROOT

from tests.browser import browsing
from tests.browser.browsing import Harm, opened
from tests.programs import python
from tests.site.sitecheck import BOOKS, ORDER, contents, read

CHAPTER, LAB = "en/sinusoidal.html", "labs/waveforms.html"
harmed = pytest.mark.harmed

# --- Search -------------------------------------------------------------------------------------------------

# The page that the first result is of, or one of a few, and what is entered; besides these, each page is found first
# by the words in its `tags`.
PAGES = {
    "en": {
        "index": "token position",
        "index sinusoidal": "positional, encoding",
        "primer": "multi-head attention, self-attention, attention weights, decoder only, "
        "what is attention",
        "primer serving": "prefill decode",
        "order": "equivariant, permutation equivariance, why does order matter",
        "order masks": "softmax",
        "sinusoidal": "why 10000, sin cos",
        "addition": "embedding dimension",
        "learned": "learned embedding, ViT interpolate position, BERT, learned position embedding, "
        "index error position embedding",
        "learned longer": "position interpolation",
        "rotary": "rotary, RoPE, position_ids, cache_position, attention sink, "
        "rotary position embedding, long-range decay, RoPE base frequency",
        "rotary alibi relative": "RoPE or ALiBi",
        "rotary take": "KV cache",
        "alibi": "ALiBi",
        "relative": "RoPE vs ALiBi vs T5, relative position, relative position bias, T5 bucket",
        "locality": "sliding window",
        "longer": "extend context 4k to 32k, Qwen, NTK scaling, long context, model forgets long text, "
        "context window, extend llama context",
        "longer models": "Llama 3, my model breaks after 4096 tokens",
        "extrapolation": "extrapolation, length extrapolation",
        "hybrids": "NoPE",
        "grids": "2D positional encoding, vision transformer, video",
        "graphs": "graph Laplacian",
        "times": "Qwen2.5-VL, Whisper, time series",
        "masks": "padding, causal mask, attention mask, left padding, padding mask, packing documents, "
        "batch padding different results",
        "serving": "continuous batching, prompt cache",
        "serving take": "kv cache rope wrong",
        "latent": "DeepSeek",
        "choosing": "how to choose",
        "questions": "interview questions",
        "course": "ten-week course",
        "layouts": "MLA, interleaved vs half",
        "speed": "flash attention",
    },
    "zh": {
        "index": "位置信息",
        "index order": "为什么要位置编码",
        "index sinusoidal": "编码, 位置编码",
        "index learned": "绝对位置",
        "primer": "多头, 多头注意力, 自注意力, 键值缓存, 注意力权重",
        "order": "置换等变, 排列不变, 词序",
        "order masks": "softmax",
        "sinusoidal": "正弦位置编码, 底数, 为什么是 10000",
        "learned": "可学习的位置嵌入, ViT 位置插值, BERT, 插值",
        "rotary": "旋转, RoPE, rotary, 旋转位置编码, 旋, position_ids, cache_position, 注意力汇, "
        "远程衰减, 旋转矩阵, 远距离衰减",
        "rotary take": "KV 缓存",
        "alibi": "ALiBi",
        "relative": "相对位置偏置, RoPE ALiBi T5 对比, 相对位置编码, 相对位置",
        "locality": "滑动窗口, 滑窗, 滑动窗口注意力",
        "longer": "扩展上下文 32k, Qwen, 长上下文, 通义千问, 线性插值, 上下文长度, 超长文本",
        "extrapolation": "外推, 外推能力, 训练短测试长",
        "grids": "图像, 视频, 多模态",
        "graphs": "图神经网络",
        "times": "Whisper, 时间序列",
        "times choosing": "语音",
        "masks": "因果掩码, 填充, 注意力掩码, 左填充, 填充泄漏, 打包, 批量推理结果不一样",
        "serving": "预填充, 缓存, 量化, 显存",
        "latent layouts": "MLA",
        "models": "Llama",
        "choosing": "选哪种编码, 怎么选",
        "questions": "面试常问",
        "course": "课程安排",
        "precision": "半精度",
        "speed": "推理变慢",
    },
}  # fmt: skip
WORDS = {
    book: {word: set(pages.split()) for pages, words in found.items() for word in words.split(", ")}
    for book, found in PAGES.items()
}


def tags(book: str) -> Iterator[tuple[str, str]]:
    """The words by which the pages of a book say that they are looked up, or the names on it, and the page."""
    for name in contents(book):
        if not name.startswith("labs/"):
            yield from ((tag, name) for tag in read(ROOT / "docs" / book / f"{name}.md").meta.get("tags", []))
    yield from NAMES.items()


@pytest.mark.parametrize("book", BOOKS)
def test_every_chapter_has_words_of_its_own(book: str) -> None:
    assert max(Counter(tag for tag, _ in tags(book)).values()) == 1
    # they are found by their titles, below the chapters
    without = re.compile(r"labs/|exercises/(?!index)|api/exercises")
    assert {name for _, name in tags(book)} == {name for name in contents(book) if not without.match(name)}


NAMES = {
    each.name: f"api/{each.page}" for each in reference.entries() if re.search("_|[a-z][A-Z]", each.name)
}
_FOUND = ".md-search-result__item > a.md-search-result__link"
_OLD = "for (const item of document.querySelectorAll('.md-search-result__item')) item.dataset.old = ''"
_NEW = "document.querySelector('.md-search-result__item:not([data-old])')"


# Enters words, each at once, as from the clipboard, and gives where the results lead, until a word finds nothing.
ENTERED = f"""async (words) => {{
  const field = document.querySelector(".md-search__input"), found = [];
  for (const word of words) {{
    {_OLD};
    field.value = word;
    field.dispatchEvent(new Event("input", {{ bubbles: true }}));
    const late = performance.now() + 15_000;
    while (!{_NEW} && performance.now() < late) await new Promise((next) => setTimeout(next, 5));
    found.push({_NEW} ? [...document.querySelectorAll("{_FOUND}")].map((link) => link.href) : []);
    if (!found.at(-1).length) break;
  }}
  return found;
}}"""


def found(page: Page, words: Iterable[str]) -> Iterator[list[str]]:
    """Where the results for each word lead, the first one first; [] where none come."""
    left = list(words)
    while left:
        answers = page.evaluate(ENTERED, left)
        yield from answers
        del left[: len(answers)]


def found_by_key(page: Page, word: str) -> list[str]:
    """The same of a word that is entered key by key."""
    field = page.locator(".md-search__input")
    field.press_sequentially(word[:-1])
    page.wait_for_timeout(1000)  # what is found so far has been shown
    page.evaluate(_OLD)
    field.press_sequentially(word[-1])
    try:
        page.wait_for_function(_NEW)
    except Late:
        return []
    return [str(url) for url in page.locator(_FOUND).evaluate_all("links => links.map(link => link.href)")]


def searched(page: Page, root: str, book: str, each: int = 1) -> None:
    """Each word, or one of a few, finds one of its pages first, and nothing outside the book."""
    root = f"{root}{book}/"
    visit = opened(page, f"{root}index.html")
    page.keyboard.press("/")
    asked = [*(WORDS[book] | {tag: {name} for tag, name in tags(book)}).items()][::each]
    asked.insert(0, asked.pop(5))
    answers = itertools.chain([found_by_key(page, asked[0][0])], found(page, (word for word, _ in asked[1:])))
    for (word, wanted), urls in zip(asked, answers, strict=True):
        first = urls[0].removeprefix(root).partition(".html")[0] if urls else "nothing"
        assert first in wanted, f"{word} finds {first} first"
        assert [url for url in urls if not url.startswith(root)] == [], f"{word} leads out of the book"
        if word in NAMES:  # its entry, or a method called so: names that differ by an s are found together
            assert re.search(f"[#.]{word}", " ".join(urls[:3])), f"{word} finds {urls[:3]} first"
    assert visit.complaints == []


INDEX = "**/search_index.js*"


@harmed(Harm("finds nothing first", gone=INDEX))
@harmed(Harm(" finds ", other=(INDEX, '"tags":[', '"gone":[')))
@harmed(Harm("out of the book", other=(INDEX, '"location":"alibi.html', '"location":"../en/alibi.html')))
@harmed(
    Harm("finds nothing first", script="addEventListener('input', (e) => e.stopImmediatePropagation(), true)")
)
def test_words_in_chinese_find_their_page(page: Page, address: str) -> None:
    searched(page, address, "zh", each=6)


def test_words_in_english_find_their_page(page: Page, address: str) -> None:
    searched(page, address, "en", each=6)


@pytest.mark.slow
@pytest.mark.parametrize("book", BOOKS)
def test_all_words_find_their_page(page: Page, address: str, book: str) -> None:
    searched(page, address, book)


@pytest.mark.parametrize("book", BOOKS)
@harmed(Harm("finds nothing first", gone=INDEX))
def test_words_find_their_page_from_disk(page: Page, disk: str, book: str) -> None:
    searched(page, disk, book, each=16)


def named(site: Path, book: str) -> Iterator[tuple[str, str, str]]:
    """Each claim and each exercise: what it is called, four main words of that, and its place.

    The main words are the longest ones; those of a Chinese name are given as the index has cut them.
    """
    entries = json.loads((site / book / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    for entry in entries:
        if (
            re.match(r"claims\.html#row-|exercises/(?!index)\w+\.html#\w+-", entry["location"])
            and entry["text"]
        ):
            title = html.unescape(entry["title"])
            words = [word for word in re.split("[\\s\u200b，、；：,;:]+", title) if re.search(r"\w", word)]
            main = sorted(words, key=len, reverse=True)[:4]
            yield (
                title.replace("\u200b", ""),
                " ".join(word for word in words if word in main),
                entry["location"],
            )


# Only what is found first is shown: most of the time goes into showing results.
FEW = """Worker = class extends Worker {
  constructor(...options) {
    super(...options);
    this.addEventListener("message", ({ data }) => data.type === 3 && data.data.items.splice(2));
  }
}"""


def missed(page: Page, root: str, book: str, queries: dict[str, str]) -> list[str]:
    """What is entered, and the claim or exercise so called is not first."""
    browsing.first(page, FEW)
    visit = opened(page, f"{root}{book}/index.html")
    page.keyboard.press("/")
    missed = []
    for (query, place), urls in zip(queries.items(), found(page, queries), strict=True):
        paper, row = place.split("#")
        first = urls[:2]  # the page, and what is found there first
        ends = [re.sub(r"\?h=[^#]*", "", url).removeprefix(f"{root}{book}/") for url in first]
        missed += [] if ends == [paper, place] else [f"{query} finds {ends} before #{row}"]
    assert visit.complaints == []
    return missed


@pytest.mark.parametrize("book", BOOKS)
@harmed(Harm("finds", other=("**/search.*.min.js", "*named(", "*((...all)=>1)(")))
def test_claims_and_exercises_come_first_under_their_names(
    page: Page, address: str, site: Path, book: str
) -> None:
    asked = {name: place for name, _, place in [*named(site, book)][::30]}
    assert len(asked) > 8
    assert missed(page, address, book, asked) == []


@pytest.mark.slow
@pytest.mark.parametrize("book", BOOKS)
def test_all_claims_and_exercises_come_first(page: Page, address: str, site: Path, book: str) -> None:
    every = [*named(site, book)]
    assert missed(page, address, book, {name: place for name, _, place in every}) == []
    main = {words: place for _, words, place in every if words.count(" ") >= 2}
    assert len(main) > 180
    few = missed(page, address, book, main)
    assert len(few) <= len(main) // 10, "\n".join(few)


# What has no place in a book, and where the other one is pointed at: its pages, and a search of it.
ELSEWHERE = {
    "en": {
        "外推": ["zh/extrapolation.html", "zh/index.html?q=外推"],
        "旋转位置编码": ["zh/rotary.html", "zh/index.html?q=旋转位置编码"],
        "龙": ["zh/index.html?q=龙"],
        "rotary": [],
    },
    "zh": {
        "leakage": ["en/masks.html", "en/index.html?q=leakage"],
        "zebra": ["en/index.html?q=zebra"],
        "龙": [],
    },
}


def pointed(page: Page, root: str, book: str) -> None:
    """Where nothing is found, the other book is pointed at; Enter goes there."""
    visit = opened(page, f"{root}{book}/labs/waveforms.html")
    page.keyboard.press("/")
    pointer = page.locator(".book-elsewhere")
    for word, wanted in ELSEWHERE[book].items():
        page.locator(".md-search__input").fill(word)
        page.wait_for_timeout(400)
        pointer.wait_for(state="visible" if wanted else "hidden")
        if wanted:  # on a busy machine the pointer of the word before stands a moment longer
            pointer.locator(f'a[href$="q={word if word.isascii() else quote(word)}"]').wait_for()
        links = pointer.locator("a").evaluate_all("links => links.map(({ href }) => decodeURI(href))")
        assert not wanted or [links[0], links[-1]] == [root + wanted[0], root + wanted[-1]], (
            f"{word} leads to {links}"
        )
    word, (first, *_) = next(iter(ELSEWHERE[book].items()))
    page.locator(".md-search__input").fill(word)
    pointer.wait_for(state="visible")
    page.keyboard.press("Enter")
    page.wait_for_url(root + first)
    assert visit.complaints == []


@harmed(Harm("Timeout", gone="**/elsewhere.js"))
def test_a_word_of_the_other_book_leads_there(page: Page, address: str) -> None:
    for book in BOOKS:
        pointed(page, address, book)


def test_a_word_of_the_other_book_leads_there_from_disk(page: Page, disk: str) -> None:
    pointed(page, disk, "en")


# --- Language, palette, where a page opens ------------------------------------------------------------------


LEADS_BACK = """addEventListener("DOMContentLoaded", () =>
  document.querySelector("a.book-language").setAttribute("href", "masks.html"))"""


@harmed(Harm("中文 leads to", script=LEADS_BACK))
def test_the_switch_leads_to_the_same_page_of_the_other_book_and_back(page: Page, address: str) -> None:
    visit = opened(page, f"{address}en/{LAB}")
    for label, book in (("中文", "zh"), ("English", "en")):
        page.get_by_role("link", name=label, exact=True).click()
        page.wait_for_load_state()
        assert page.url == f"{address}{book}/{LAB}", f"{label} leads to {page.url}"
        assert page.locator("html").get_attribute("lang") == book
    page.goto(f"{address}en/shift.html#shift-rotation.k=5")
    page.get_by_role("link", name="中文", exact=True).click()
    page.wait_for_load_state()
    assert page.url == f"{address}zh/shift.html#shift-rotation.k=5", "the place is lost"
    assert visit.complaints == []


@harmed(Harm("another page is default", script="localStorage.clear()"))
def test_another_page_remembers_the_palette(page: Page, address: str) -> None:
    """From the palette of the system to light, to dark, and back."""
    visit = opened(page, f"{address}{ORDER}")
    scheme = "document.body.dataset.mdColorScheme"
    for wanted in ("default", "slate", "default"):
        page.locator("header form[data-md-component=palette] label:visible").click()
        page.wait_for_function(f"{scheme} === '{wanted}'")
        if wanted == "slate":
            page.goto(f"{address}en/naive.html")
            assert page.evaluate(scheme) == wanted, f"another page is {page.evaluate(scheme)}"
    assert visit.complaints == []


@harmed(Harm("390 px: #", style="h2 { scroll-margin: -99px !important }"))
def test_an_anchor_leads_to_its_heading_below_the_header(page: Page, address: str) -> None:
    """Also when the page has just been opened."""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{address}zh/shift.html")
        ids = page.evaluate("[...document.querySelectorAll('article h2')].map((heading) => heading.id)")
        for name in (ids[-2], ids[2]):
            page.goto("about:blank")
            page.goto(f"{address}zh/shift.html#{name}")
            top = f"document.getElementById('{name}').getBoundingClientRect().top"
            try:
                page.wait_for_function(f"{top} > 0 && {top} < 100")
            except Late:
                pytest.fail(f"{width} px: #{name} is at {page.evaluate(top)}")


@pytest.mark.parametrize("language", BOOKS)
def test_a_case_shows_the_rows_that_its_program_finds(page: Page, address: str, language: str) -> None:
    page.goto(f"{address}{language}/choosing.html")
    printed = page.locator(".output", has_text="rotary_sinks hybrid").first.inner_text()
    programs = dict(re.findall(r"^(\S.*?)(?:: |：)\d+\n((?:    .*\n?)*)", printed, re.MULTILINE))
    cases = {link.inner_text(): link.get_attribute("href") for link in page.locator(".case").all()}
    assert len(cases) == len(programs) - 1 == 7  # one finds nothing
    for case, link in cases.items():
        page.goto(f"{address}{language}/{link}")
        page.wait_for_selector("figure.table.on")
        shown = page.locator(".answers tbody tr:not([hidden]) [id^=row-]")
        rows = [row.removeprefix("row-") for row in shown.evaluate_all("(rows) => rows.map(({ id }) => id)")]
        assert rows == programs[case].replace("_", "-").split(), case


# --- Keyboard -----------------------------------------------------------------------------------------------


def focus(page: Page) -> str:
    """What has the focus."""
    return str(
        page.evaluate("(node => `${node.className} for=${node.getAttribute('for')}`)(document.activeElement)")
    )


@harmed(Harm("__drawer cannot be reached", style="header { visibility: hidden }"))
@harmed(Harm("color-contrast", style=".md-nav * { color: #aaa !important }"))
def test_drawer_and_search_open_by_keyboard_on_a_phone(page: Page, address: str) -> None:
    visit = opened(page, f"{address}zh/order.html")
    browsing.resized(page, browsing.PHONE)
    page.evaluate(browsing.MEASURE)  # what the browser has not laid out yet cannot be focused yet
    drawer, field = page.locator(".md-sidebar--primary"), page.locator(".md-search__input")
    for box, shown in (("__drawer", drawer), ("__search", field)):
        assert not shown.is_visible(), f"{box} is open from the start"
        for _ in range(10):
            page.keyboard.press("Tab")
            if f"for={box}" in focus(page):
                break
        else:
            pytest.fail(f"{box} cannot be reached")
        page.keyboard.press("Space")
        shown.wait_for(state="visible")
        if box == "__drawer":
            assert browsing.axe(page) == []
            page.keyboard.press("Space")
            shown.wait_for(state="hidden")
    page.keyboard.type("softmax")
    page.locator(_FOUND).first.wait_for()
    assert browsing.axe(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**html?h=*")
    assert visit.complaints == []


@harmed(Harm("lies over what copies", style=".md-top.covers { visibility: visible !important }"))
@harmed(Harm("Timeout", style=".md-top { visibility: hidden !important }"))
def test_the_way_back_to_the_top_gives_way_to_a_button_beneath_it(page: Page, address: str) -> None:
    visit = opened(page, f"{address}{CHAPTER}")
    browsing.resized(page, browsing.PHONE)
    copies = page.locator("[data-md-type=copy]").nth(2)
    copies.scroll_into_view_if_needed()
    page.mouse.wheel(0, 900)
    page.wait_for_timeout(300)
    at_corner = "(button) => scrollBy(0, button.getBoundingClientRect().bottom - innerHeight + 16)"
    copies.evaluate(at_corner)  # upwards, so that the way back comes
    page.wait_for_timeout(300)
    own = "(button) => { const { x, y, width, height } = button.getBoundingClientRect();"
    own += " return document.elementFromPoint(x + width / 2, y + height / 2) === button; }"
    assert copies.evaluate(own), "the way back lies over what copies"
    page.mouse.wheel(0, -120)
    page.locator(".md-top").wait_for(state="visible", timeout=5_000)
    page.locator(".md-top").click()
    page.wait_for_function("scrollY === 0")
    assert visit.complaints == []


_STOP = """() => {
  const node = document.activeElement, box = node.getBoundingClientRect();
  const mark = getComputedStyle(node), label = node.nextElementSibling;
  const drawn = (style) => style.outlineStyle !== "none" || style.boxShadow !== "none";
  const own = node.matches(".md-option") ? label && drawn(getComputedStyle(label)) : drawn(mark);
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return [own || node.matches("input[type=text]"), inside, node.outerHTML.slice(0, 80)];
}"""


@harmed(Harm("not marked", style=":focus { outline: none !important; box-shadow: none !important }"))
@harmed(Harm("out of sight", style="article a { position: fixed; left: -99px; width: 9px }"))
@harmed(Harm("the first stop does not lead to the text", style=".md-skip { display: none }"))
def test_no_stop_of_the_tab_key_is_out_of_sight_or_unmarked(page: Page, address: str) -> None:
    """From the top of a page, where the first stop leads to the text."""
    visit = opened(page, f"{address}{ORDER}")
    page.keyboard.press("Tab")
    assert "md-skip" in focus(page), "the first stop does not lead to the text"
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        marked, inside, node = page.evaluate(_STOP)
        assert marked, f"not marked: {node}"
        assert inside, f"out of sight: {node}"
    assert visit.complaints == []


# --- Copying ------------------------------------------------------------------------------------------------

OTHER_COPY = """addEventListener("copy", (event) => {
  event.clipboardData.setData("text/plain", "x = y");
  event.preventDefault();
  event.stopImmediatePropagation();
}, true)"""


def pasted(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


@harmed(Harm("NameError", script=OTHER_COPY))
def test_copied_code_runs_in_an_empty_interpreter(page: Page, address: str) -> None:
    """The last cell of a lab, with those that it continues, and the first block of a chapter."""
    for name, which, least in ((f"zh/{LAB}", -1, 3000), (ORDER, 0, 100)):
        visit = opened(page, f"{address}{name}")
        page.locator(".language-python [data-clipboard-target]").nth(which).click()
        text = pasted(page)
        done = python("-W", "ignore", "-", input=text, cwd=ROOT, env=os.environ | {"MPLBACKEND": "agg"})
        assert done.returncode == 0, done.stderr
        assert len(text) >= least, f"only {text}"
        assert visit.complaints == []


@harmed(Harm("copied: x = y", script=OTHER_COPY))
def test_commands_are_copied_without_their_prompt(page: Page, address: str) -> None:
    visit = opened(page, f"{address}en/index.html")
    buttons = page.locator(".language-console [data-clipboard-target]").all()
    assert buttons
    for button in buttons:
        button.click()
        text = pasted(page)
        assert re.match(r"(pip|python3|git) ", text), f"copied: {text}"
        assert not re.search(r"(?m)^\s*[$>]", text), f"copied: {text}"
    assert visit.complaints == []


@harmed(Harm("not $$", script=OTHER_COPY))
def test_formulas_are_copied_as_tex(page: Page, address: str) -> None:
    """On a line of their own and within a line."""
    visit = opened(page, f"{address}zh/sinusoidal.html")
    formula = page.locator(".formula math").first
    tex = formula.locator("annotation").text_content()
    formula.evaluate("node => getSelection().selectAllChildren(node.querySelector('mrow, mtable, mi'))")
    page.keyboard.press("Control+c")
    assert pasted(page) == f"$${tex}$$", f"copied: {pasted(page)}, not $${tex}$$"
    text = page.locator("article p:has(math)").first
    text.evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    assert f"${text.locator('annotation').first.text_content()}$" in pasted(page)
    assert page.locator("body > div[style*=fixed]").count() == 0, "something is left behind"
    assert visit.complaints == []


# --- In the dark --------------------------------------------------------------------------------------------


@harmed(Harm("the blue of the light page", style="body { --data-blue: #0072b2 !important }"))
def test_markers_are_as_bright_as_lines_in_the_dark(page: Page, address: str) -> None:
    """A marker is drawn from a copy, which no rule reaches that names the figure around it."""
    page.emulate_media(color_scheme="dark")
    opened(page, f"{address}zh/relative.html")
    drawing = page.locator("figure.plot > svg").last
    assert drawing.locator("marker").count()
    with Image.open(io.BytesIO(drawing.screenshot())) as picture:
        colours = set(map(tuple, np.asarray(picture.convert("RGB")).reshape(-1, 3).tolist()))
    assert (0, 114, 178) not in colours, "the blue of the light page"
    assert (61, 159, 224) in colours


# --- On paper -----------------------------------------------------------------------------------------------

_PAPER = """() => {
  const faults = [];
  const screen = ["header", ".md-sidebar", ".md-footer", ".downloads", ".book-more", ".md-code__nav"];
  for (const part of screen) {
    const shown = [...document.querySelectorAll(part)].some((node) => node.getClientRects().length);
    if (shown) faults.push(`${part} is shown`);
  }
  const { color } = getComputedStyle(document.querySelector("article p:not(.downloads)"));
  if (color !== "rgb(0, 0, 0)") faults.push(`the text is ${color}`);
  const ground = getComputedStyle(document.body).backgroundColor;
  if (!["rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"].includes(ground)) faults.push(`the paper is ${ground}`);
  const cut = [...document.querySelectorAll("article :is(pre, code)")].filter((node) =>
    node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).whiteSpace === "pre");
  if (cut.length) faults.push(`${cut.length} blocks are cut off`);
  return faults;
}"""


@harmed(Harm(".book-more is shown", style=".book-more { display: block !important }"))
@harmed(Harm("are cut off", style="pre, code { white-space: pre !important }"))
@harmed(Harm("the text is rgb(0, 0, 255)", style="article p { color: blue !important }"))
def test_what_does_not_belong_on_paper_is_not_printed(page: Page, address: str) -> None:
    """For somebody who reads in the dark palette."""
    for name in ("en/masks.html", f"zh/{LAB}"):
        page.emulate_media(color_scheme="dark", media="screen")
        visit = opened(page, f"{address}{name}")
        page.emulate_media(color_scheme="dark", media="print")
        page.set_viewport_size({"width": 680, "height": 960})
        assert [*page.evaluate(_PAPER), *visit.complaints] == []


# --- Downloads and pages from disk --------------------------------------------------------------------------

DOWNLOADS = {
    "zh/order.html": {"order.py", "order.ipynb", "figures/order-1.svg"},
    **{f"{book}/{LAB}": {"waveforms.py", "waveforms.ipynb", "figures/waveforms-1.svg"} for book in BOOKS},
}


OTHER_FILE = """addEventListener("click", ({ target: link }) => {
  if (!link.href?.endsWith("END")) return;
  link.download = link.href.split("/").pop();
  link.href = "data:,<p>No such page";
}, true)"""


@harmed(Harm("Timeout", script="addEventListener('click', (event) => event.preventDefault())"))
@harmed(Harm("invalid syntax", script=OTHER_FILE.replace("END", ".py")))
@harmed(Harm("no element found", script=OTHER_FILE.replace("END", ".svg")))
def test_downloads_come_under_their_names_and_can_be_read(page: Page, address: str) -> None:
    for where, wanted in DOWNLOADS.items():
        opened(page, f"{address}{where}")
        links = {str(link.get_attribute("href")): link for link in page.locator("a[download]").all()}
        links = {
            name: link for name, link in links.items() if name.endswith("-1.svg") or "figures/" not in name
        }
        assert set(links) == wanted, where
        for name, link in links.items():
            with page.expect_download() as waiting:
                link.click()
            assert waiting.value.suggested_filename == name.rpartition("/")[2]
            text = Path(waiting.value.path()).read_text(encoding="utf-8")
            if name.endswith(".ipynb"):
                assert {"code", "markdown"} <= {cell["cell_type"] for cell in json.loads(text)["cells"]}
            elif name.endswith(".svg"):
                assert ElementTree.fromstring(text).findtext("{*}title"), name
            else:
                assert ast.parse(text).body


@harmed(Harm("x.json", script="addEventListener('load', () => fetch('x.json').catch(() => {}))"))
def test_a_page_from_disk_lacks_nothing(page: Page, disk: str) -> None:
    for name in ("index.html?stay", CHAPTER, f"zh/{LAB}"):
        visit = opened(page, f"{disk}{name}")
        page.wait_for_load_state("networkidle")
        assert visit.complaints == []
        font = "document.fonts.check('16px \"STIX Two Math\"', '√')"
        assert not page.locator("math").count() or page.evaluate(font), "formulas have no font"
