"""A browser: Chromium without a window, driven by what stands in its pages."""

import contextlib
import os
import pathlib
import shutil

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

LONG = 180
AXE = pathlib.Path(os.environ.get("NODE_PATH", "")) / "axe-core" / "axe.min.js"

# Each script ends by calling `done` with what it saw.
EVENTS = """
const [address, done] = arguments;
const source = new EventSource(address);
const seen = [];
for (const kind of ["meta", "chunk", "progress", "final", "error"]) {
  source.addEventListener(kind, (event) => {
    if (event.data === undefined) return;
    seen.push({ id: event.lastEventId, chunk: JSON.parse(event.data) });
    if (kind === "final" || kind === "error") { source.close(); done(seen); }
  });
}
"""
FETCH = """
const [address, headers, body, done] = arguments;
try {
  const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
  done({ status: response.status, session: response.headers.get("X-Session-Id"), text });
} catch (error) { done({ refused: error.name }); }
"""
ABORTED = """
const [address, headers, body, done] = arguments;
const control = new AbortController();
const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body), signal: control.signal });
await response.body.getReader().read();
control.abort();
done(response.headers.get("X-Session-Id"));
"""
SOCKET = """
const [address, protocols, body, stop, done] = arguments;
const socket = new WebSocket(address, protocols);
const seen = [];
socket.onopen = () => socket.send(JSON.stringify(body));
socket.onmessage = ({ data }) => {
  const chunk = JSON.parse(data);
  seen.push({ chunk });
  if (seen.length === stop) socket.send('{"type": "cancel"}');
  if (chunk.final || chunk.ok === false) socket.send('{"type": "close"}');
};
socket.onclose = ({ code }) => done({ seen, code, protocol: socket.protocol });
"""


class Browser:
    """A browser with one page."""

    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1000,1400", "--lang=en-US"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(LONG)

    def at(self, address):
        """The page at this address."""
        self.driver.get(address)
        return self

    def do(self, script, *arguments):
        """What a script of this page calls `done` with."""
        return self.driver.execute_async_script(f"(async function () {{ {script} }}).apply(null, arguments)", *arguments)

    def complaints(self):
        """What stands in the console."""
        return self.driver.get_log("browser")

    def screen(self, width, height, scheme):
        """Shows the page in this size and colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        return self

    def save(self, image):
        """Saves a picture of the page, where one is wanted."""
        if image:
            self.driver.save_screenshot(image)

    def until(self, condition):
        """Waits until this holds, also while the page draws itself again; what it holds."""
        return WebDriverWait(self.driver, LONG, ignored_exceptions=[StaleElementReferenceException]).until(lambda _: condition())

    def all(self, selector):
        """The elements of a selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        """The first element of a selector that is shown, once there is one."""
        return self.until(lambda: next((found for found in self.all(selector) if found.is_displayed()), None))

    def press(self, keys):
        """Presses keys where nothing is typed."""
        self.driver.execute_script("document.activeElement.blur()")
        self.driver.find_element(By.TAG_NAME, "body").send_keys(keys)

    def give(self, token):
        """Types a token into the workbench, once that asks for it; what it says before."""
        field = self.one("#token")
        asked = self.until(lambda: (text := self.one("#state").text).startswith("E") and text)
        field.send_keys(token + "\n")
        return asked

    def open_module(self, module, key):
        """Opens a module of the workbench whose sample has this key."""
        self.until(lambda: self.all(f"#modules [data-module={module}]"))
        if not self.one("body").get_attribute("class").endswith("show-modules") and not self.all("#search")[0].is_displayed():
            self.one("#toggle-modules").click()
        self.one(f"#modules [data-module={module}]").click()
        self.until(lambda: key in self.one("#input").get_property("value"))
        return self

    def start(self, source):
        """Runs the module that is shown with this input."""
        self.one("#input").clear()
        self.one("#input").send_keys(source)
        self.until(lambda: self.one("#start").is_enabled())
        self.one("#start").click()

    def run_a_module(self, module, key, source, image=None):
        """Fills in the input of the workbench as a person does; the state that is shown at the end, and the fields."""
        self.open_module(module, key).start(source)
        self.until(lambda: "Confidence" in self.one("#state").text)
        assert self.one("#raw").is_displayed(), "the raw response is hidden"
        self.save(image)
        return self.one("#state").text, [row.get_attribute("data-path") for row in self.all("#fields > .tree > .row")]

    def choose_after_error(self, module, source):
        """Runs the shown module with a wrong input, then leaves it and chooses it again; the error, and what is shown after."""
        self.start(source)
        self.until(lambda: self.one("#state").get_attribute("class") == "error")
        error = self.one("#state").text
        self.one("#header h1 a").click()
        self.until(lambda: not self.all("#input"))
        self.open_module(module, "query")
        return error, self.one("#state").text, bool(self.all("#raw"))

    def images(self):
        """The sizes of the images among the fields, once all of them are there."""
        sizes = lambda: [(image.get_property("naturalWidth"), image.get_property("naturalHeight")) for image in self.all("#fields img")]
        return self.until(lambda: (found := sizes()) and (0, 0) not in found and found)

    def upload(self, file):
        """Chooses a file in the workbench; what it says once that is uploaded, and the input that refers to it."""
        self.until(lambda: self.all("#form input[type=file]"))[0].send_keys(str(file))
        told = lambda: self.all("#form .drop [role=status]")[0].text
        self.until(lambda: told().startswith(("Uploaded", "E")))
        return told(), self.one("#input").get_property("value")

    def violations(self):
        """What axe finds on the page against WCAG."""
        self.driver.execute_script(AXE.read_text())
        return self.do("const [done] = arguments; done((await axe.run()).violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]));")

    def articles(self, image=None):
        """How many articles the page has, once it has any."""
        found = WebDriverWait(self.driver, LONG).until(lambda driver: driver.find_elements(By.TAG_NAME, "article"))
        if image:
            self.driver.save_screenshot(image)
        return len(found)


@contextlib.contextmanager
def browser():
    """A browser that ends with the block."""
    opened = Browser()
    try:
        yield opened
    finally:
        opened.driver.quit()
