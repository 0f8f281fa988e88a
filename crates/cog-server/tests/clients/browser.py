"""A browser: Chromium without a window, driven by what stands in its pages."""

import contextlib
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

LONG = 180

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
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1000,1400"):
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

    def give(self, token):
        """Types a token into the first page, once that asks for it; what it says before."""
        find = lambda name: self.driver.find_element(By.ID, name)
        WebDriverWait(self.driver, LONG).until(lambda _: find("token").is_displayed())
        asked = find("state").text
        find("token").send_keys(token + "\n")
        return asked

    def run_a_module(self, module, key, source, image=None):
        """Fills in the form of the first page as a person does; the state that is shown at the end, and the fields."""
        find = lambda name: self.driver.find_element(By.ID, name)
        wait = WebDriverWait(self.driver, LONG)
        wait.until(lambda _: find("start").is_enabled())
        Select(find("module")).select_by_value(module)
        wait.until(lambda _: key in find("input").get_property("value"))
        find("input").clear()
        find("input").send_keys(source)
        find("start").click()
        wait.until(lambda _: "Confidence" in find("state").text)
        assert find("raw").is_displayed(), "the raw response is hidden"
        if image:
            self.driver.save_screenshot(image)
        return find("state").text, [field.text for field in find("fields").find_elements(By.TAG_NAME, "dt")]

    def choose_after_error(self, source):
        """Runs the chosen module with a wrong input, then chooses it again; the error, and what is shown after."""
        find = lambda name: self.driver.find_element(By.ID, name)
        wait = WebDriverWait(self.driver, LONG)
        find("input").clear()
        find("input").send_keys(source)
        find("start").click()
        wait.until(lambda _: find("state").get_attribute("class") == "error")
        error = find("state").text
        self.driver.execute_script("arguments[0].dispatchEvent(new Event('change'))", find("module"))
        return error, find("state").text, find("raw").is_displayed()

    def images(self):
        """The sizes of the images among the fields, once all of them are there."""
        images = lambda: self.driver.find_elements(By.CSS_SELECTOR, "#fields img")
        sizes = lambda: [(image.get_property("naturalWidth"), image.get_property("naturalHeight")) for image in images()]
        return WebDriverWait(self.driver, LONG).until(lambda _: (found := sizes()) and (0, 0) not in found and found)

    def upload(self, file):
        """Chooses a file in the first page; what it says once that is uploaded, and the input that refers to it."""
        find = lambda name: self.driver.find_element(By.ID, name)
        wait = WebDriverWait(self.driver, LONG)
        wait.until(lambda _: find("file").is_enabled())
        find("file").send_keys(str(file))
        wait.until(lambda _: find("state").text.startswith(("Uploaded", "E")))
        return find("state").text, find("input").get_property("value")

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
