"""The pages of the documentation site in headless Chromium: ``make docs-test``.

Links and anchors are read from the files; the other tests ask the browser what it shows, on narrow
screens, too. Without selenium, Chromium or the built site the tests are skipped.
"""

import functools
import http.server
import shutil
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html")
               if "_static" not in path.parts)
NARROW, WIDE = 390, 1400

pytestmark = pytest.mark.skipif(not PAGES, reason="there is no build/site: run make docs")


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    handler = functools.partial(Server, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("chromium and chromedriver are not on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (
            "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
            "disable-background-networking", "disable-component-update", "disable-sync",
            "disable-dev-shm-usage", f"user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(programs[1]))
    driver.get("about:blank")  # instead of the page that Chromium begins with
    yield driver
    driver.quit()


def show(browser, url, width):
    """Load a page on a screen of some width; return its requests, errors and faults."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == NARROW})
    browser.get_log("browser")
    browser.get(url)
    requests = browser.execute_script(
        "return performance.getEntriesByType('resource').map(x => x.name)")
    errors = [entry["message"] for entry in browser.get_log("browser")
              if entry["level"] in ("WARNING", "SEVERE")]
    return requests, errors, browser.execute_script(FAULTS, width)


FAULTS = """
const shown = x => x.getClientRects().length > 0 && x.clientWidth > 0 && x.clientHeight > 0;
const faults = [];
const width = arguments[0];
for (const x of [document.documentElement, ...document.querySelectorAll("main, main div")]) {
    const scrolls = x.scrollWidth > Math.min(x.clientWidth, width) + 1;
    if (scrolls && (x === document.documentElement || getComputedStyle(x).overflowX !== "visible")
            && !x.closest("div.highlight, .output")) {
        const wide = [...x.querySelectorAll("*")].find(
            y => y.getBoundingClientRect().right > width && !y.closest("pre, table, math"));
        faults.push(`scrolls: ${x.className} ${wide?.outerHTML.slice(0, 200)}`);
    }
}
for (const image of document.images) {
    if (!image.closest("main")) continue;
    const loaded = image.complete && image.naturalWidth > 0;
    if (!loaded || !shown(image)) faults.push(`image ${image.src}`);
}
for (const code of document.querySelectorAll("main div.highlight pre")) {
    if (!shown(code)) faults.push(`hidden code: ${code.textContent.slice(0, 60)}`);
}
for (const code of document.querySelectorAll(
        "main .highlight-pycon pre, main .highlight-python pre, main .highlight-ipython3 pre")) {
    const colors = new Set([...code.querySelectorAll("span")].map(x => getComputedStyle(x).color));
    if (colors.size < 2) faults.push(`plain code: ${code.textContent.slice(0, 60)}`);
}
if (!document.querySelector("main h1")) faults.push("no heading");
return faults;
"""


@pytest.mark.parametrize("page", [page for page in PAGES if page != "index.html"])
def test_page_on_narrow_and_wide_screens(browser, address, page):
    for width in (NARROW, WIDE):
        requests, errors, faults = show(browser, address + page, width)
        assert not [url for url in requests if not url.startswith((address, "data:", "blob:"))]
        assert not errors
        assert not faults


def test_faults_are_found(browser, address):
    requests, errors, faults = show(browser, address + "docs/index.html", NARROW)
    assert len(requests) > 3 and not errors and not faults
    browser.execute_script("""
        fetch("none");
        document.querySelector("main div.highlight").style.display = "none";
        document.querySelector("main article").insertAdjacentHTML("afterbegin",
            '<div style="width: 600px">wide</div><img src="none.svg">'
            + '<div class="highlight-python"><pre>plain</pre></div>');""")
    found = browser.execute_script(FAULTS, NARROW)
    assert [fault.split()[0] for fault in found] == ["scrolls:", "image", "hidden", "plain"]


def test_front_page_leads_to_the_index(browser, address):
    browser.get(address)
    wait_for(browser, lambda: browser.current_url == f"{address}docs/index.html")


def wait_for(browser, condition):
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda _: condition())


@pytest.mark.parametrize("words, page", [
    ("jacobian", "docs/reference/generated/transforms.html"),
    ("cytape.GradientTape", "docs/reference/generated/recording.html"),
    ("curve_fit", "docs/reference/generated/scipy_optimize.html"),
])
def test_search_finds_a_page(browser, address, words, page):
    show(browser, address + "docs/index.html", NARROW)
    browser.execute_script("""
        const form = document.querySelector("form.bd-search");
        form.querySelector("input[name=q]").value = arguments[0];
        form.submit();""", words)
    wait_for(browser, lambda: browser.current_url.startswith(f"{address}search.html"))
    links = wait_for(browser, lambda: browser.execute_script(
        "return [...document.querySelectorAll('#search-results li a')].map(x => x.href)"))
    assert [link for link in links if urldefrag(link).url == address + page]


def test_sections_open_on_a_narrow_screen(browser, address):
    from selenium.webdriver.common.by import By

    show(browser, address + "docs/index.html", NARROW)
    browser.find_element(By.CSS_SELECTOR, "button.primary-toggle").click()
    dialog = wait_for(browser, lambda: browser.find_element(By.CSS_SELECTOR, "dialog[open]"))
    wait_for(browser, lambda: dialog.find_element(By.LINK_TEXT, "Reference").is_displayed())
    dialog.find_element(By.LINK_TEXT, "Reference").send_keys("\n")
    wait_for(browser, lambda: browser.current_url == f"{address}docs/reference/index.html")


class Links(HTMLParser):
    """Ids of a page, and what it links to or loads."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links = {"", "top"}, []
        self.feed((SITE / page).read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        self.links += [attrs[name] for name in ("href", "src") if attrs.get(name)]


def broken_links(pages):
    """List the links of pages to a file or an anchor that does not exist."""
    broken = []
    for page in pages:
        for link in pages[page].links:
            path, anchor = urldefrag(urljoin(f"http://site/{page}", link))
            parts = urlsplit(path)
            if parts.netloc != "site":
                continue
            target = unquote(parts.path).lstrip("/")
            if target in pages:
                if unquote(anchor) not in pages[target].ids:
                    broken.append(f"{page}: {link}")
            elif not (SITE / target).is_file():
                broken.append(f"{page}: {link}")
    return broken


def test_links_lead_to_pages_and_anchors():
    pages = {page: Links(page) for page in PAGES}
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert not broken_links(pages)
    first = pages["docs/index.html"]
    first.links = ["how_to/none.html", "how_to/index.html#none", "https://elsewhere.example/x"]
    assert broken_links(pages) == [f"docs/index.html: {link}" for link in first.links[:2]]
