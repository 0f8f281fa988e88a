"""Real clients against a real server: the same run over every transport gives the same chunks.

Started by `cargo xtask test`, which installs what it needs and says in COG and COG_MOCK where the programs are.
"""

import json
import os
import sys
import tempfile
import time

import httpx

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import browser as chromium
import plain
from plain import EXECUTE, NDJSON, SOCKET, SSE
from servers import ANSWER, BODY, CHUNK, DRAWN, LIVE, MANIFEST, PIXEL, TOKEN, breaking, elsewhere, serve

JSON = {"Content-Type": "application/json"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
# As a browser sends a token on a WebSocket.
OFFERED = ["cog", "cog.token." + TOKEN.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")]
# A model that begins its answer and then says nothing.
SILENT = {
    "raw": 'data: {"choices": [{"index": 0, "delta": {"content": '
    '"{\\"ok\\": true, \\"data\\": {\\"result\\": \\"begun"}, "finish_reason": null}]}\n\n',
    "hang": True,
}


def normal(seen):
    """The chunks without what differs from run to run: the session, the time."""
    session = seen[0]["chunk"]["session_id"]
    for place, arrived in enumerate(seen):
        seq = arrived["chunk"].get("chunk", {}).get("seq")
        if "id" in arrived:
            assert arrived["id"].startswith(session + ":"), arrived
            assert seq is None or arrived["id"] == f"{session}:{seq}", arrived
    text = json.dumps([arrived["chunk"] for arrived in seen]).replace(session, "SESSION")
    chunks = json.loads(text)
    for chunk in chunks:
        chunk.get("meta", {}).pop("processing_time_ms", None)
    return chunks


def same(name, seen, expected):
    """Fails where the chunks are others."""
    found = normal(seen)
    for place, (one, other) in enumerate(zip(found, expected)):
        assert one == other, f"{name}: chunk {place} is {one}, expected {other}"
    assert len(found) == len(expected), f"{name}: {len(found)} chunks, expected {len(expected)}"
    print(f"  {name}: {len(found)} chunks", flush=True)


def without_a_browser(address):
    """The chunks over every client, compared; the chunks."""
    expected = normal(plain.events(plain.curl(address + EXECUTE, SSE, *plain.posted())))
    assert expected[-1]["data"] == ANSWER["data"], expected[-1]
    assert len(expected) > 5, expected
    same("curl -N, NDJSON", plain.lines(plain.curl(address + EXECUTE, NDJSON, *plain.posted())), expected)
    same("curl -N, a session's events", plain.events(plain.curl(address + plain.begin(address), SSE)), expected)
    same("httpx, SSE", plain.events(plain.streamed(address, SSE)), expected)
    same("httpx, NDJSON", plain.lines(plain.streamed(address, NDJSON)), expected)
    same("httpx, after a break", plain.resumed(address, plain.begin(address)), expected)
    again = plain.resumed(address)
    assert normal(again)[-1] == expected[-1], again
    seqs = [arrived["chunk"]["chunk"]["seq"] for arrived in again if "chunk" in arrived["chunk"]]
    assert seqs == list(range(1, len(seqs) + 1)), seqs
    print("  httpx, asked again after a break: the same answer", flush=True)
    same("websockets", plain.socket(address), expected)
    same("Node's eventsource", plain.node("events", address + plain.begin(address))["seen"], expected)
    told = plain.node("socket", address.replace("http", "ws", 1) + SOCKET, [BODY, None])
    same("Node's ws", told["seen"], expected)
    assert (told["code"], told["protocol"]) == (1000, "cog"), told
    return expected


def in_a_browser(page, address, expected):
    """The same in a browser, on a page of the server's own."""
    page.at(address + "/docs")
    same("EventSource", page.do(chromium.EVENTS, plain.begin(address)), expected)
    told = page.do(chromium.FETCH, EXECUTE, JSON | NDJSON, BODY)
    same("fetch, NDJSON", plain.lines(told["text"]), expected)
    told = page.do(chromium.FETCH, EXECUTE, JSON | SSE, BODY)
    same("fetch, SSE", plain.events(told["text"]), expected)
    told = page.do(chromium.SOCKET, address.replace("http", "ws", 1) + SOCKET, ["cog"], BODY, None)
    same("WebSocket", told["seen"], expected)
    assert (told["code"], told["protocol"]) == (1000, "cog"), told


def after_a_break(page, address, expected):
    """Clients that connect again by themselves, with what they had last."""
    for name, client in [
        ("Node's eventsource, cut", lambda at, run: plain.node("events", at + run)["seen"]),
        ("EventSource, cut", lambda at, run: page.at(at + "/docs").do(chromium.EVENTS, run)),
    ]:
        with breaking(address, after=4) as proxy:
            seen = client(proxy, plain.begin(address))
        again = [arrived for arrived in seen if arrived["chunk"].get("resumed")]
        assert len(again) == 1, f"{name}: {seen}"
        same(name, [arrived for arrived in seen if arrived not in again], expected)


def heartbeats(page, expected):
    """Signs of life are there, and no client minds."""
    with serve("--keepalive-interval", "50ms", reply={"text": ANSWER, "chunk_size": 5, "pause_ms": 8, "delay_ms": 300}) as address:
        text = plain.curl(address + EXECUTE, SSE, *plain.posted())
        assert "\n:\n\n" in text, text
        same("curl -N, SSE with heartbeats", plain.events(text), expected)
        text = plain.curl(address + EXECUTE, NDJSON, *plain.posted())
        assert "\n\n" in text, text
        same("curl -N, NDJSON with heartbeats", plain.lines(text), expected)
        told = plain.node("socket", address.replace("http", "ws", 1) + SOCKET, [BODY, None])
        assert told["pings"] > 1, told
        same("Node's ws with heartbeats", told["seen"], expected)
        same("websockets with heartbeats", plain.socket(address), expected)
        same("Node's eventsource with heartbeats", plain.node("events", address + plain.begin(address))["seen"], expected)
        in_a_browser(page, address, expected)


def cancelled(page):
    """Runs of a model that says nothing more end when their clients say so, or go."""
    with serve(reply=SILENT) as address:
        url = address.replace("http", "ws", 1) + SOCKET
        for name, seen in [
            ("websockets", plain.socket(address, stop=2)),
            ("Node's ws", plain.node("socket", url, [BODY, 2])["seen"]),
            ("WebSocket", page.at(address + "/docs").do(chromium.SOCKET, url, ["cog"], BODY, 2)["seen"]),
        ]:
            error = seen[-1]["chunk"]["error"]
            assert (error["code"], error["details"]["reason"]) == ("E2010", "cancelled"), f"{name}: {seen[-1]}"
            assert "recovery" not in error, error
            print(f"  {name}: cancelled", flush=True)
        session = page.do(chromium.ABORTED, EXECUTE, JSON | SSE, BODY)
        state(address, session, "interrupted")
        run = plain.begin(address).removesuffix("/events")
        assert httpx.delete(address + run).json()["state"] == "cancelled"
        end = plain.events(httpx.get(address + run + "/events", headers=SSE, timeout=60).text)[-1]
        assert end["chunk"]["error"]["details"]["reason"] == "cancelled", end
        print("  fetch: aborted; DELETE: cancelled", flush=True)


def state(address, session, expected):
    """Waits until a session is in this state."""
    for _ in range(1000):
        found = httpx.get(f"{address}/v1/sessions/{session}").json().get("state")
        if found == expected:
            return
        time.sleep(0.02)
    raise AssertionError(f"the session is {found}, expected {expected}")


def tokens_and_origins(page):
    """Who may ask from a browser."""
    with elsewhere() as listed, elsewhere() as other, serve("--allow-origin", listed, token=True) as address:
        url = address.replace("http", "ws", 1) + SOCKET
        wrong = ["cog", "cog.token.wrong"]
        for place, origin, may in [("own", address + "/docs", True), ("listed", listed, True), ("other", other, False)]:
            page.at(origin)
            told = page.do(chromium.FETCH, address + EXECUTE, JSON | NDJSON | BEARER, BODY)
            assert (told.get("status") == 200 and bool(told["session"])) if may else told == {"refused": "TypeError"}, told
            told = page.do(chromium.FETCH, address + EXECUTE, JSON | NDJSON, BODY)
            assert told.get("status") == 401 if may else told == {"refused": "TypeError"}, told
            told = page.do(chromium.SOCKET, url, OFFERED, BODY, None)
            assert told["code"] == (1000 if may else 1006) and bool(told["seen"]) == may, told
            assert page.do(chromium.SOCKET, url, wrong, BODY, None)["code"] == 1006
            print(f"  token and origin, {place}: {'may ask' if may else 'may not'}", flush=True)


def pages(page, images):
    """The server's own pages: a person runs a module, and reads the reference. Nothing breaks their policy."""
    with serve() as address:
        page.complaints()
        where = lambda name: images and os.path.join(images, name)
        shown, fields = page.at(address + "/").run_a_module("m", "query", '{"query": "why?"}', where("run.png"))
        assert "Confidence 0.95, risk low" in shown and fields == ["data.result", "data.rationale"], (shown, fields)
        error, state, raw = page.choose_after_error("m", '{"query": 5}')
        assert error.startswith("E1003") and (state, raw) == ("No run yet.", False), (error, state, raw)
        # A server without the workbench's routes answers 404, and the page leaves their tabs out.
        assert all("400" in told["message"] or "404" in told["message"] for told in page.complaints())
        assert page.all("[role=tab]") == []
        assert page.at(address + "/docs").articles(where("docs.png")) > 30
        assert page.violations() == [] and page.complaints() == [], page.complaints()
        print("  pages: a module run, the reference read", flush=True)
        looks(page, address, where)
        keys_and_links(page, address)
    with serve(token=True) as address:
        asked = page.at(address + "/").give(TOKEN)
        assert asked.startswith("E4007"), asked
        shown, _ = page.run_a_module("m", "query", '{"query": "why?"}')
        assert "Confidence 0.95" in shown, shown
        print("  pages: a token typed, a module run", flush=True)
        uploaded(page)
        given(page, address)
    made(page)
    resumed(page)
    halted(page)
    hostile(page)
    workbench(page, images)


def looks(page, address, where):
    """The views on a wide and a narrow screen, light and dark: accessible, and not wider than the screen."""
    for width, height in [(1280, 900), (390, 844)]:
        for scheme in ["light", "dark"]:
            page.at("about:blank").screen(width, height, scheme).at(address + "/")
            page.one("#modules a")
            seen = {"list": page.violations()}
            page.open_module("m", "query")
            seen["input"] = page.violations()
            page.run_a_module("m", "query", '{"query": "why?"}', where(f"answer-{width}-{scheme}.png"))
            seen["answer"] = page.violations()
            page.press("?")
            page.one("dialog[open] kbd")
            seen["help"] = page.violations()
            page.one("dialog button").click()
            assert not any(seen.values()), (width, scheme, seen)
            assert page.do("arguments[0](document.documentElement.scrollWidth)") == width
    page.screen(1000, 1400, "light")
    print("  pages: wide and narrow, light and dark, without a violation of axe", flush=True)


def keys_and_links(page, address):
    """A link opens a module; keys choose, run and search; the other language is one click away."""
    page.at("about:blank").at(address + "/#module=m")
    page.until(lambda: "query" in page.one("#input").get_property("value"))
    page.press("r")
    page.until(lambda: "Confidence" in page.one("#state").text)
    page.press("/")
    assert page.do("arguments[0](document.activeElement.id)") == "search"
    page.press("k")
    page.press("j")
    chosen = page.one("#modules a[aria-current]").get_attribute("data-module")
    page.until(lambda: f"module={chosen}" in page.driver.current_url)
    page.one("#header [lang=zh]").click()
    assert page.do("arguments[0](document.documentElement.lang)") == "zh" and page.one("#header [lang=en]").text == "English"
    page.one("#header [lang=en]").click()
    print("  pages: links, keys and languages", flush=True)


def given(page, address):
    """A token in the link is taken out of the address bar, and works."""
    page.do("sessionStorage.clear(); arguments[0]()")
    page.at("about:blank").at(f"{address}/#token={OFFERED[1].removeprefix('cog.token.')}&module=m")
    shown, _ = page.run_a_module("m", "query", '{"query": "why?"}')
    assert "Confidence 0.95" in shown and page.driver.current_url == address + "/#module=m", page.driver.current_url
    assert page.do("arguments[0](performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('token')))") == []
    print("  pages: a token in the link, taken out of it", flush=True)


def resumed(page):
    """The workbench takes up a broken stream after its last chunk: no chunk is lost, and none is applied twice."""
    # Slow, so that the rest of the answer is not there yet when the connection breaks.
    reply = {"text": ANSWER, "chunk_size": 5, "pause_ms": 40}
    with serve(reply=reply, **LIVE) as address, breaking(address, after=6, part=CHUNK) as proxy:
        shown, fields = page.at(proxy + "/").run_a_module("m", "query", '{"query": "why?"}')
        assert "Confidence 0.95" in shown, shown
        happened = [line.get_property("textContent") for line in page.all(".events li")]
        assert any("Resumed" in line for line in happened), happened
        texts = [page.one(f'#fields [data-path="data.{name}"] .string').get_property("textContent") for name in ("result", "rationale")]
        assert texts == list(ANSWER["data"].values()), texts
    print("  pages: a broken stream resumed", flush=True)


def halted(page):
    """A call of a tool waits for a person, who confirms it on the page; only the word YES does."""
    files = {
        "helper/module.yaml": LIVE["manifest"].replace("name: m", "name: helper"),
        "helper/prompt.md": "Answer.",
        "helper/schema.json": json.dumps(LIVE["schema"]),
    }
    may_call = "policies: { tools_allowed: true }\ntools: { allowed: [helper] }\n"
    replies = [{"tool_calls": [{"name": "helper", "arguments": {"query": "the first"}}]}, {"text": ANSWER}, {"text": ANSWER}]
    live = LIVE | {"manifest": LIVE["manifest"] + may_call}
    with serve("--trust", reply=replies, files=files, variables={"COG_TOOLS_CONFIRM": "helper"}, **live) as address:
        page.at(address + "/").open_module("m", "query").start('{"query": "why?"}')
        waiting = page.one(".halted").text
        assert "helper" in waiting and "the first" in waiting, waiting
        assert page.violations() == [], page.violations()
        page.one("#confirm").send_keys("yes\n")
        # It is still halted, after a second run of this tab.
        page.until(lambda: len(page.all("#earlier option")) == 2 and page.one("#start").is_enabled())
        page.one("#confirm").send_keys("YES\n")
        page.until(lambda: "Confidence 0.95" in page.one("#state").text)
    print("  pages: a halted call confirmed", flush=True)
def workbench(page, images):
    """An author runs the tests, compares, labels a run, and edits a file, on a wide and a narrow screen."""
    files = {
        "m/tests/case1.input.json": '{"query": "why?"}',
        "m/tests/case1.expected.json": json.dumps(ANSWER),
        "m/tests/case2.input.json": '{"query": "and how?"}',
        "m/tests/case2.expected.json": json.dumps(ANSWER | {"data": ANSWER["data"] | {"result": "other"}}),
    }
    variables = {"COG_LOGS_SERVER": "true", "COG_LOGS_CONTENTS": "true"}
    reply = {"text": ANSWER}
    with serve("--workbench", "--edit", reply=reply, files=files, variables=variables, **LIVE) as address:
        shown, _ = page.at("about:blank").at(address + "/").run_a_module("m", "query", '{"query": "why?"}')
        assert "Confidence 0.95" in shown, shown
        tests(page)
        compared(page)
        labelled(page)
        written(page)
        for width, height in [(1280, 900), (390, 844)]:
            for scheme in ["light", "dark"]:
                page.screen(width, height, scheme)
                for tab in ["input", "tests", "compare", "trust", "write"]:
                    page.one(f"#tab-{tab}").click()
                    time.sleep(0.3)
                    page.save(images and os.path.join(images, f"{tab}-{width}-{scheme}.png"))
                    assert page.violations() == [], (tab, width, scheme, page.violations())
        page.screen(1000, 1400, "light")
    print("  pages: tests, comparison, labels and files in the workbench", flush=True)


def tests(page):
    """Both cases run on the provider; one fails, and its difference is shown."""
    page.one("#tab-tests").click()
    page.one("#options > summary").click()
    Select(page.one("#option-provider")).select_by_value("openai")
    page.one("#run-tests").click()
    page.until(lambda: [badge.text for badge in page.all(".cases .badge")] == ["Passed", "Failed"])
    page.until(lambda: "1 failed" in page.one("#panel > [role=status]").text)
    page.one(".cases a[href$=case2]").click()
    assert "data.result" in page.one(".compare .differs").text
    assert "case=case2" in page.driver.current_url


def compared(page):
    """One input on two models."""
    page.one("#tab-compare").click()
    page.one("#start-compare").click()
    page.until(lambda: page.one("#comparison").text.count("0.95") == 2)


def labelled(page):
    """The run is in the log, and a key labels it."""
    page.one("#tab-trust").click()
    waiting = lambda: page.one("#panel .toolbar span").text
    page.until(lambda: page.all("#panel .toolbar span"))
    before = waiting()
    page.press("y")
    page.until(lambda: not page.all("#panel .toolbar span") or waiting() != before)


def written(page):
    """A mistake is shown as one types; the text is saved after its difference was shown."""
    page.one("#tab-write").click()
    manifest = page.one("#file-manifest")
    manifest.send_keys(Keys.CONTROL, Keys.HOME)
    manifest.send_keys("verzion: 2\n")
    page.until(lambda: any("version" in line.text for line in page.all(".diagnostics .warning")))
    assert [number.text for number in page.all(".numbers .warning")] == ["1"]
    page.until(lambda: [back for back in page.all(".editor button:not(.primary)") if back.is_enabled()])[0].click()
    text = page.one("#file-prompt")
    text.clear()
    text.send_keys("Answer well.")
    page.until(lambda: page.all(".diagnostics .good"))
    page.until(lambda: [save for save in page.all(".editor .primary") if save.is_enabled()])[0].click()
    assert "+ Answer well." in page.one("dialog .diff").text
    page.one("dialog .primary").click()
    page.until(lambda: page.all(".editor .good"))
    page.driver.refresh()
    page.until(lambda: page.one("#file-prompt").get_property("value") == "Answer well.")


def hostile(page):
    """A module and an answer whose every string is a script: all of it is text, and runs nothing."""
    evil = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>\u202e'\"</textarea>"
    manifest = MANIFEST.replace("Answer", json.dumps(evil), 1).replace("[guessing]", json.dumps([evil]))
    described = {"type": "string", "title": evil, "description": evil, "enum": [evil, "why"]}
    schema = {
        "input": {"type": "object", "required": [evil], "properties": {evil: described, "query": {"type": "string"}}},
        "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}, evil: {"type": "array"}}},
        "error": {"type": "object", "description": evil},
    }
    data = {"rationale": evil, evil: [evil, {evil: evil}], "citation_map": {"c": {"source_type": "web_search", "url": evil}}}
    answer = {"ok": True, "meta": ANSWER["meta"] | {"explain": evil}, "data": data}
    manifest = manifest.replace("  output: [text, image]\n", "")
    with serve(reply={"text": answer}, manifest=manifest, schema=schema) as address:
        page.complaints()
        page.at(address + "/").open_module("m", "img").start(json.dumps({evil: evil}))
        page.until(lambda: page.all("#raw"))
        for closed in page.all("details:not([open]) > summary"):
            page.driver.execute_script("arguments[0].click()", closed)
        assert evil in page.one("#module").get_property("textContent")
        assert evil in page.one("#answer").get_property("textContent"), page.one("#answer").text
        assert page.do("arguments[0](window.hacked ?? null)") is None
        assert page.all("main img, main script, #answer img, #answer script") == []
        told = [one for one in page.complaints() if "404" not in one["message"]]
        assert told == [], told
    print("  pages: a hostile module and answer run nothing", flush=True)


def uploaded(page):
    """A person uploads an image in the page, and sees the streamed answer to it."""
    with tempfile.NamedTemporaryFile(suffix=".gif") as image:
        image.write(PIXEL)
        image.flush()
        told, filled = page.upload(image.name)
    assert "image/gif, %d bytes" % len(PIXEL) in told, told
    source = json.loads(filled)["photo"]
    assert source["type"] == "upload_ref" and source["upload_id"].startswith("upl_"), source
    body = json.dumps({"query": "what is it?", "photo": source})
    shown, fields = page.run_a_module("m", "photo", body)
    assert "Confidence 0.95" in shown and fields == ["data.result", "data.rationale"], (shown, fields)
    print("  pages: an image uploaded, the streamed answer to it shown", flush=True)


def made(page):
    """The page shows the image that a run makes, though only who has the token may fetch it."""
    with serve(reply={"text": DRAWN, "chunk_size": 5, "pause_ms": 8}, token=True) as address:
        page.at(address + "/").give(TOKEN)
        _, fields = page.run_a_module("m", "query", '{"query": "a pixel"}')
        assert "data.image" in fields, fields
        told = [one for one in page.complaints() if "401" not in one["message"] and "404" not in one["message"]]
        assert page.images() == [(1, 1)] and told == [], told
        told = httpx.post(address + EXECUTE, headers=BEARER, json={"input": BODY["input"]}, timeout=60)
        source = told.json()["data"]["image"]
        assert source["type"] == "url" and source["url"].startswith(address + "/v1/media/med_"), source
        for headers, status in [(BEARER, 200), ({}, 401), (BEARER | {"Range": "bytes=0-7"}, 206)]:
            assert httpx.get(source["url"], headers=headers).status_code == status, (headers, status)
    print("  pages: an image that was made, shown", flush=True)


def main():
    images = next(iter(sys.argv[1:]), None)
    with chromium.browser() as page:
        with serve() as address:
            expected = without_a_browser(address)
            in_a_browser(page, address, expected)
            after_a_break(page, address, expected)
        heartbeats(page, expected)
        cancelled(page)
        tokens_and_origins(page)
        pages(page, images)


if __name__ == "__main__":
    main()
