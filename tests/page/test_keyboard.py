"""The keyboard, and what a screen reader gets."""
from page_case import FOCUSED, PAUSED, STATUS, WORDS, PageCase, equal, true
from webdriver import DOWN, ENTER, ESCAPE, LEFT, RIGHT, UP


class Keyboard(PageCase):
    def test_keyboard(self):
        self.open_ready()
        press = self.browser.keys
        press(RIGHT)
        equal(self.browser.run(FOCUSED), "He", "the first word")
        press(RIGHT, RIGHT)
        equal(self.browser.run(FOCUSED), "a", "two words on")
        self.seek_is(2, "an arrow seeks")
        equal(self.browser.run("return getComputedStyle(document.activeElement).outlineStyle"),
              "solid", "the focus is seen")
        true("probability" in self.browser.run(STATUS), "the status describes the word")
        press(LEFT)
        equal(self.browser.run(FOCUSED), "was", "one word back")
        press(DOWN)
        self.seek_is(len(self.expected["segments"][0]["words"]), "down is the next line")
        press(UP)
        self.seek_is(0, "up is the line before")
        press(" ")
        self.browser.wait("return !document.getElementById('audio').paused", "space plays")
        press(" ")
        self.browser.wait(PAUSED, "space pauses")
        press(ENTER)
        self.browser.wait("return !document.getElementById('audio').paused", "Enter plays the word")
        press(" ", "n")
        uncertain = [i for i, word in enumerate(self.spoken) if word["probability"] < 0.7]
        self.seek_is(uncertain[0], "n is the next uncertain word")
        press("n")
        equal(self.browser.run(STATUS), "No more uncertain words", "after the last one")
        press("e")
        equal(self.browser.run("return document.activeElement.localName"), "textarea", "e corrects")
        press("/", " ", "e")
        true(self.browser.run("return document.activeElement.value").endswith("/ e"),
             "keys are text while a line is corrected")
        press(ESCAPE)
        equal(len(self.browser.run(WORDS)), len(self.spoken), "words after Escape")
        press("/")
        equal(self.browser.run("return document.activeElement.id"), "search", "/ searches")
        press("h", "i", "s", " ", "h")
        equal(self.browser.run("return document.activeElement.value"), "his h", "typed")
        press(DOWN)
        equal(self.browser.run(FOCUSED), "his", "down goes to the place that was found")
        self.browser.click("summary")
        self.picture("keyboard")
        self.browser.click("#letters")
        press("/")
        equal(self.browser.run("return document.activeElement.id"), "letters", "shortcuts are off")

    def test_tab_reaches_everything_and_is_seen(self):
        self.open_ready()
        reached = self.tab_stops()
        for what in ("audio", "search", "previous", "next", "srt", "html", "show-confidence",
                     "speed", "file", "time", "edit"):
            true(what in reached, f"Tab does not reach {what}: {reached}")
        equal(sum(what.startswith("word") for what in reached), 1, "words that Tab stops at")

    def test_accessible_names(self):
        self.open_ready()
        self.browser.keys(RIGHT)
        roles = self.accessible_names()
        true("He" in roles["button"], "the chosen word is no button")
        true("Play from 0:00" in roles["button"], "times are no buttons")
