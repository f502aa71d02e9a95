"""Drives Chromium by the WebDriver protocol (https://www.w3.org/TR/webdriver2/), with Python's
standard library alone."""
import base64
import json
import os
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id, named by the standard
SHIFT, ENTER, ESCAPE, TAB = "\ue008", "\ue007", "\ue00c", "\ue004"
LEFT, UP, RIGHT, DOWN = "\ue012", "\ue013", "\ue014", "\ue015"


class Browser:
    """One chromedriver and one window. Downloads go to the folder `downloads`; `more` are arguments
    of Chromium's."""

    def __init__(self, downloads, more=(), width=1280, height=900):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       text=True)
        # "ChromeDriver was started successfully on port 12345."
        for line in self.driver.stdout:
            if "successfully on port" in line:
                self.root = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
                break
        else:
            raise RuntimeError("chromedriver: ended before it told its port")
        arguments = ["--headless=new", "--autoplay-policy=no-user-gesture-required", "--mute-audio",
                     f"--window-size={width},{height}", "--force-device-scale-factor=1",
                     *more]
        if os.getuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses to run as root otherwise
        options = {"args": arguments,
                   "prefs": {"download.default_directory": os.path.abspath(downloads),
                             "download.prompt_for_download": False}}
        always = {"browserName": "chrome", "goog:chromeOptions": options,
                  "unhandledPromptBehavior": "accept",
                  "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        self.session = ""
        reply = self.call("POST", "", {"capabilities": {"alwaysMatch": always}})
        self.session = "/" + reply["sessionId"]

    def close(self):
        if self.session:
            self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.root}/session{self.session}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {json.load(error)['value']['message']}") from None

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value that the script's body returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """The value with which the script calls its last argument."""
        return self.call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def wait(self, script, what, seconds=10):
        """Waits until the script's body returns something true, and returns it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{what}: not so after {seconds} s")

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        """Clicks as a mouse does: something above the element is an error."""
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})",
                 {ELEMENT: element})
        self.call("POST", f"/element/{element}/click", {})

    def fill(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def keys(self, *keys):
        """Presses keys one after another, SHIFT + "N" together, wherever the focus is."""
        actions = []
        for chord in keys:
            actions += [{"type": "keyDown", "value": key} for key in chord]
            actions += [{"type": "keyUp", "value": key} for key in reversed(chord)]
        keyboard = {"type": "key", "id": "keys", "actions": actions}
        self.call("POST", "/actions", {"actions": [keyboard]})

    def size(self, width, height):
        """The size of the page, not of the window around it."""
        self.command("Emulation.setDeviceMetricsOverride",
                     width=width, height=height, deviceScaleFactor=1, mobile=False)

    def color_scheme(self, scheme):
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": scheme}])

    def command(self, name, **parameters):
        """A command of the DevTools protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def log(self, kind):
        """What was logged since the last call: "browser" or "performance"."""
        return self.call("POST", "/se/log", {"type": kind})

    def requested(self):
        """The addresses that were requested since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]
