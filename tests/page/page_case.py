"""What the tests of the page share: the pages that tests/page.sh has made, and a browser."""
import json
import os
import re
import time
import unittest
from urllib.parse import quote

from webdriver import ENTER, TAB, Browser

# Scripts that are run in the page.
WORDS = "return [...document.querySelectorAll('.word')].map((word) => word.textContent)"
FOCUSED = "return document.activeElement.textContent"
TIME = "return document.getElementById('audio').currentTime"
PAUSED = "return document.getElementById('audio').paused"
STATUS = "return document.getElementById('status').textContent"
FOUND = "return document.getElementById('found').textContent"
READY = "return document.getElementById('audio').readyState >= 1"
SHOWN_LINES = """return [...document.querySelectorAll('.segment')]
    .filter((row) => row.offsetHeight > 0).length"""


# The contrast (WCAG 2.2, 1.4.3) of every text that is seen with its background.
CONTRASTS = """
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const numbers = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = (color) => {
        const [r, g, b] = numbers(color).map((value) => value / 255).map((value) =>
            value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const background = (element) => {
        const color = getComputedStyle(element).backgroundColor;
        return numbers(color)[3] > 0 ? color : background(element.parentElement);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const result = [];
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement, text = texts.currentNode.data.trim();
        if (text === '' || element.offsetHeight === 0) continue;
        const [a, b] = [luminance(getComputedStyle(element).color), luminance(background(element))];
        result.push([text, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
    }
    return result"""

# The smaller side of each control, in CSS pixels; a checkbox has its label's.
TARGETS = """
    return [...document.querySelectorAll('button, select, label, #search')]
        .filter((control) => control.offsetHeight > 0)
        .map((control) => [control.ariaLabel || control.textContent.trim(),
                           Math.min(control.offsetWidth, control.offsetHeight)])"""


def equal(got, expected, what):
    if got == expected:
        return
    got, expected = repr(got), repr(expected)
    start = max(0, len(os.path.commonprefix([got, expected])) - 60)
    part = slice(start, start + 300)
    raise AssertionError(f"{what}: got {got[part]}, expected {expected[part]}")


def true(condition, what):
    if not condition:
        raise AssertionError(what)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


DATA = re.compile(r'(<script type="application/json" id="transcript">)(.*?)(</script>)', re.S)


def data_of(page):
    return json.loads(DATA.search(page).group(2))


def page_with(page, data):
    """The page with another transcript in it."""
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return DATA.sub(lambda match: match.group(1) + text + match.group(3), page)


class PageCase(unittest.TestCase):
    """Tests in one browser. Each begins at 1280 x 800 pixels, and logs no error to the console."""

    browser_arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = os.environ["HARK_PAGE_FOLDER"]
        cls.screenshots = os.environ["HARK_PAGE_SCREENSHOTS"]
        cls.downloads = os.path.join(cls.folder, "downloads")
        os.makedirs(cls.downloads, exist_ok=True)
        cls.words = os.path.join(cls.folder, "words")
        cls.expected = json.loads(read(f"{cls.words}/expected.json"))
        cls.recording = os.path.join(cls.words, cls.expected["source"])
        cls.spoken = [word for segment in cls.expected["segments"] for word in segment["words"]]
        cls.browser = Browser(cls.downloads, cls.browser_arguments)
        cls.addClassCleanup(cls.browser.close)

    def run(self, result=None):
        """Runs the test; a picture shows how a failed one ended."""
        failed = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > failed:
            self.picture(f"failed-{self._testMethodName}")

    def setUp(self):
        self.browser.size(1280, 800)

    def accessible_names(self, also_named=(), also_there=()):
        """Names of the page's nodes by role. Controls have names, and the page's parts are there."""
        named = ("button", "checkbox", "searchbox", "combobox", "heading", "Audio", *also_named)
        there = ("main", "search", "list", "heading", "status", "region", "banner", *also_there)
        roles = {}
        for node in self.browser.command("Accessibility.getFullAXTree")["nodes"]:
            if node["ignored"]:
                continue
            role, name = node["role"]["value"], node.get("name", {}).get("value", "")
            roles.setdefault(role, []).append(name)
            if role in named:
                true(name.strip(), f"a {role} has no name")
        for role in there:
            true(role in roles, f"the page has no {role}: {sorted(roles)}")
        return roles

    def tab_stops(self):
        """What Tab reaches from the top of the page. The focus is seen."""
        reached = []
        for _ in range(60):
            self.browser.keys(TAB)
            what, outline, is_body = self.browser.run(
                """const at = document.activeElement;
                const shown = at.id === 'file' ? at.closest('label') : at;
                return [at.id || at.value || at.className || at.localName,
                        getComputedStyle(shown).outlineStyle, at === document.body]""")
            if is_body:
                break
            reached.append(what)
            # The player's controls are the browser's: they show the focus themselves.
            true(outline != "none" or what == "audio", f"the focus on {what} is not seen")
        return reached

    def fits(self, width, scheme):
        """Nothing is cut, pale or too small to be hit."""
        over = self.browser.run("return document.documentElement.scrollWidth > innerWidth")
        equal(over, False, f"at {width} px it scrolls sideways")
        for text, ratio in self.browser.run(CONTRASTS):
            true(ratio >= 4.5, f"{scheme}: the contrast of '{text}' is {ratio:.2f}")
        for name, size in self.browser.run(TARGETS):
            true(size >= 24, f"at {width} px the control '{name}' is {size} px small")

    def tearDown(self):
        # What a script throws, or a policy refuses. One test asks for a file that is missing.
        errors = [entry["message"] for entry in self.browser.log("browser")
                  if entry["level"] == "SEVERE" and "ERR_FILE_NOT_FOUND" not in entry["message"]]
        equal(errors, [], "errors on the console")

    def open(self, name="page.html", folder=None):
        self.browser.open("file://" + quote(os.path.join(folder or self.words, name)))

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).textContent", selector)

    def is_hidden(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).hidden", selector)

    def open_ready(self):
        self.open()
        self.browser.wait(READY, "the recording next to the page is read")

    def write(self, name, data):
        """Writes a page with another transcript."""
        with open(f"{self.words}/{name}", "w", encoding="utf-8") as file:
            file.write(page_with(read(f"{self.words}/page.html"), data))

    def download(self, kind):
        """What a click on the button of that name saves."""
        before = set(os.listdir(self.downloads))
        self.browser.click(f"#downloads button[value={kind}]")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            new = [name for name in set(os.listdir(self.downloads)) - before
                   if not name.endswith(".crdownload") and not name.startswith(".")]
            if new:
                true(new[0].endswith("." + kind), f"{new[0]} does not end in .{kind}")
                return read(os.path.join(self.downloads, new[0]))
            time.sleep(0.05)
        raise AssertionError(f"{kind}: nothing was downloaded")

    def picture(self, name):
        time.sleep(0.3)  # until it has stopped to scroll
        self.browser.screenshot(os.path.join(self.screenshots, name + ".png"))

    def seek_is(self, number, what):
        """The recording is at that word."""
        equal(round(self.browser.run(TIME), 3), self.spoken[number]["start"], what)

    def correct(self, line, text, key=ENTER):
        """Replaces a line, from 1, by a text and presses a key."""
        self.browser.click(f".segment:nth-child({line}) .edit")
        self.browser.run("document.activeElement.select()")
        self.browser.keys(*text, key)
