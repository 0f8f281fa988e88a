#!/usr/bin/env python3
"""Writes replies.jsonl: replies of models in many forms, and what a parser must return for each.

A reply is a class of deviation applied to a content. The class states the result: `value` (the content, or what the class
says), or `refuse`. The expected value is the content that the reply was built from, never the output of a parser.

    python3 conformance/replies/generate.py > conformance/replies/replies.jsonl
"""

import json
import sys

CONTENTS = [
    {"verdict": "approve", "rationale": "It fits.", "score": 7, "sure": True},
    {"done": True, "meta": {"confidence": 0.95, "risk": "low", "explain": "Done."}, "data": {"result": "fine", "rationale": "because"}},
    {"text": "Dogs, cats na\u00efve \u65e5\u672c", "flags": [True, False], "none": None, "more": {}, "list": []},
    {"x": -5, "y": 12.5, "z": "ok", "w": None, "big": 1200, "rows": [[1, 2], [{"c": 3}]]},
]


class Form:
    """A way to write JSON; each field replaces one part of it."""

    def __init__(self, **parts):
        self.string = parts.get("string", lambda text: json.dumps(text, ensure_ascii=False))
        self.key = parts.get("key", self.string)
        self.literals = parts.get("literals", {True: "true", False: "false", None: "null"})
        self.number = parts.get("number", json.dumps)
        self.colon = parts.get("colon", ": ")
        self.comma = parts.get("comma", ", ")
        self.element_comma = parts.get("element_comma", self.comma)
        self.open = parts.get("open", "")
        self.close = parts.get("close", "")
        self.element_open = parts.get("element_open", self.open)
        self.element_close = parts.get("element_close", self.close)

    def write(self, value):
        if isinstance(value, dict):
            if not value:
                return "{}"
            members = [self.key(key) + self.colon + self.write(member) for key, member in value.items()]
            return "{" + self.open + self.comma.join(members) + self.close + "}"
        if isinstance(value, list):
            if not value:
                return "[]"
            return "[" + self.element_open + self.element_comma.join(map(self.write, value)) + self.element_close + "]"
        if isinstance(value, str):
            return self.string(value)
        if value is None or isinstance(value, bool):
            return self.literals[value]
        return self.number(value)


def quoted(opening, closing):
    return lambda text: opening + json.dumps(text, ensure_ascii=False)[1:-1] + closing


PLAIN = Form()
single = quoted("'", "'")
bare = lambda text: text
TRUE_PYTHON = {True: "True", False: "False", None: "None"}
UPPER = {True: "TRUE", False: "FALSE", None: "NULL"}
CAPITAL = {True: "True", False: "False", None: "Null"}
MIXED = {True: "tRUE", False: "fALSE", None: "nULL"}


def plus(number):
    return f"+{number}" if number > 0 else str(number)


def point_after(number):
    return f"{number}." if isinstance(number, int) else str(number)


def point_before(number):
    text = str(number)
    return text.replace("0.", ".", 1) if text.startswith("0.") else text


PRETTY = {"open": "\n  ", "comma": ",\n  ", "close": "\n", "element_open": "", "element_comma": ", ", "element_close": ""}
LINES = {**PRETTY, "comma": "\n  "}

VALUE = {}
REFUSE = {}


def value(name, build):
    """A class whose replies must be read as their content."""
    assert name not in VALUE and name not in REFUSE, name
    VALUE[name] = build


def refuse(name, build):
    """A class whose replies must not be read at all."""
    assert name not in VALUE and name not in REFUSE, name
    REFUSE[name] = build


def form(name, **parts):
    value(name, Form(**parts).write)


def around(name, before, after=""):
    value(name, lambda content: before + PLAIN.write(content) + after)


# --- Text around the reply

value("plain", PLAIN.write)
value("indented", lambda content: json.dumps(content, indent=2, ensure_ascii=False))
value("escaped-unicode", lambda content: json.dumps(content))
value("compact", lambda content: json.dumps(content, separators=(",", ":"), ensure_ascii=False))
for name, before, after in [
    ("prose-before", "Sure, here is the answer: ", ""),
    ("prose-line-before", "Here you go.\n\n", ""),
    ("prose-after", "", "\n\nLet me know if you need more."),
    ("prose-on-both-sides", "I checked it twice.\n", "\nThat is all."),
    ("prose-with-quotes", "The \"answer\" isn't long: ", " It's done."),
    ("prose-with-placeholder", "I filled {name} in as asked: ", ""),
    ("prose-with-citation", "As in [1] and [2, 3]: ", ""),
    ("prose-with-link", "See [the page](https://example.com/a_b): ", ""),
    ("prose-with-empty-object", "An empty object {} will not do: ", ""),
    ("prose-with-set", "For the set {a} of letters: ", ""),
    ("prose-with-latex", "With \\sum_{i=1}^{n} x_i: ", ""),
    ("prose-with-less-than", "Since x < y and a <b> tag: ", ""),
    ("prose-in-chinese", "\u597d\u7684\uff0c\u7b54\u6848\u5982\u4e0b\uff1a\n", ""),
    ("json-word-before", "json\n", ""),
    ("label-before", "JSON:\n", ""),
    ("bold-label-before", "**Answer**:\n", ""),
    ("heading-before", "# Result\n\n", ""),
    ("list-item", "- ", ""),
    ("block-quote", "> ", ""),
    ("assignment", "const answer = ", ";"),
    ("return-statement", "return ", ";"),
    ("parentheses", "(", ")"),
    ("fence", "```\n", "\n```"),
    ("json-fence", "```json\n", "\n```"),
    ("upper-json-fence", "```JSON\n", "\n```"),
    ("javascript-fence", "```javascript\n", "\n```"),
    ("json5-fence", "```json5\n", "\n```"),
    ("fence-on-one-line", "```json ", " ```"),
    ("fence-with-prose-before", "Here it is:\n```json\n", "\n```"),
    ("fence-with-prose-after", "```json\n", "\n```\nThat is all."),
    ("fence-without-end", "```json\n", ""),
    ("fence-without-start", "", "\n```"),
    ("tilde-fence", "~~~json\n", "\n~~~"),
    ("two-fences-of-prose", "```sh\nls -l\n```\nand\n```json\n", "\n```"),
    ("json-tag", "<json>", "</json>"),
    ("answer-tag", "<answer>\n", "\n</answer>"),
    ("output-tag", "<output>", "</output>"),
    ("result-tag", "<result>", "</result>"),
    ("response-tag-in-capitals", "<RESPONSE>\n", "\n</RESPONSE>"),
    ("final-tag-with-attribute", '<final version="1">', "</final>"),
    ("answer-tag-without-end", "<answer>\n", ""),
    ("box-tokens", "<|begin_of_box|>", "<|end_of_box|>"),
    ("response-tokens", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("final-channel", "<|channel|>final <|constrain|>json<|message|>", "<|return|>"),
    ("prose-with-comparison", "As a<b and c>d, or x <= y: ", ""),
    ("prose-with-generic-types", "Of Vec<u8> and Map<K, V>: ", ""),
    ("prose-with-tag-in-backticks", "Without `<plan>` or `</plan>` tags: ", ""),
    ("prose-with-autolink", "See <https://example.com/a>: ", ""),
    ("prose-with-line-breaks-of-html", "One<br>two<br/>\n<hr>\n", ""),
    ("paragraph-before", "<p>Here it is.</p>\n", ""),
    ("draft-after-the-answer", "", '\n<plan>{"verdict": "later", "ok": false}</plan>'),
    ("end-token", "", "<|im_end|>"),
    ("end-of-text-token", "", "<|endoftext|>"),
    ("sentence-token", "", "</s>"),
    ("byte-order-mark", "\ufeff", ""),
    ("blank-lines", "\n\n\n", "\n\n"),
    ("zero-width-before", "\u200b", ""),
    ("no-break-space-around", "\u00a0", "\u00a0"),
    ("surplus-brace", "", "}"),
    ("surplus-bracket", "", "]"),
    ("ellipsis-after", "", " ..."),
    ("semicolon", "", ";"),
]:
    around(name, before, after)

# --- Reasoning

FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
TAGS = [
    ("think", "<think>", "</think>"),
    ("thinking", "<thinking>", "</thinking>"),
    ("capital-think", "<Think>", "</Think>"),
    ("bracket-think", "[THINK]", "[/THINK]"),
    ("seed-think", "<seed:think>", "</seed:think>"),
    ("kimi-think", "\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("channels", "<|channel|>analysis<|message|>", FINAL),
    ("constrained-channels", "<|channel|>analysis<|message|>", FINAL.replace("final", "final <|constrain|>json")),
]
DRAFT = '{"verdict": "reject", "rationale": "a draft", "ok": false}'
for name, opening, closing in TAGS:
    around(f"{name}-of-prose", f"{opening}I weigh it.\n{closing}\n")
    around(f"{name}-of-a-draft", f"{opening}Maybe {DRAFT}? No.{closing}")
    around(f"{name}-of-a-bare-draft", f"{opening}{{ok: false}} or [1, {{{closing}")
    around(f"{name}-without-opening-tag", f"Maybe {DRAFT}? No.\n{closing}\n")
    around(f"{name}-before-a-fence", f"{opening}Hm.{closing}\n```json\n", "\n```")
    refuse(f"{name}-with-nothing-after", lambda content, o=opening, c=closing: f"{o}{PLAIN.write(content)}{c}\nI cannot answer.")
    refuse(f"{name}-that-never-ends", lambda content, o=opening: f"{o}{PLAIN.write(content)}")
    refuse(f"{name}-closed-after-a-draft", lambda content, c=closing: f"Maybe {PLAIN.write(content)}? No.\n{c}\nI cannot answer.")

# --- Drafts in other tags, channels and markers, and calls of tools

MARKS = [
    ("plan-tag", "<plan>", "</plan>"),
    ("scratchpad-tag-in-capitals", "<SCRATCHPAD>", "</SCRATCHPAD>"),
    ("tag-with-attributes", '<step number="1" kind=\'draft\'>', "</step>"),
    ("paragraph-tag", "<p>", "</p>"),
    ("comment-of-html", "<!--", "-->"),
    ("double-brackets", "[[notes]]", "[[/notes]]"),
    ("bracket-marker", "[SCRATCH]", "[/SCRATCH]"),
    ("token", "<|notes|>", "<|end_of_notes|>"),
    ("start-and-end-tokens", "<|START_THINKING|>", "<|END_THINKING|>"),
    ("half-tokens", "<|channel>thought\n", "<channel|>"),
    ("full-width-tokens", "<\uff5cnotes\u2581begin\uff5c>", "<\uff5cnotes\u2581end\uff5c>"),
    ("nested-tags", "<plan>\n<plan>x</plan>\n<step>", "</step></plan>"),
    ("other-channel", "<|start|>assistant<|channel|>notes<|message|>", "<|end|>"),
]
for name, opening, closing in MARKS:
    around(f"{name}-of-a-draft", f"{opening}Maybe {DRAFT}? No.{closing}\n")
    around(f"{name}-of-prose", f"Well.\n{opening}I weigh a < b.{closing}\n```json\n", "\n```")
    refuse(f"{name}-around-the-object", lambda content, o=opening, c=closing: o + PLAIN.write(content) + c)
    refuse(f"{name}-that-never-ends", lambda content, o=opening: f"{o}Maybe {PLAIN.write(content)}? No.")
for name, opening, closing in [
    ("tool-call-tag", "<tool_call>\n", "\n</tool_call>"),
    ("function-tag", "<function=find>", "</function>"),
    ("tool-calls-marker", "[TOOL_CALLS]find[ARGS]", ""),
    ("tool-calls-list", "[TOOL_CALLS] [", "]"),
    ("python-token", "<|python_tag|>", "<|eom_id|>"),
    ("commentary-channel", "<|channel|>commentary to=functions.find <|constrain|>json<|message|>", "<|call|>"),
    ("call-token-after", "", "<|call|>"),
    ("tool-call-section", "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>", "<|tool_call_end|><|tool_calls_section_end|>"),
    ("half-tool-call", "<|tool_call>call:find ", "<tool_call|>"),
]:
    refuse(name, lambda content, o=opening, c=closing: o + PLAIN.write(content) + c)

# --- Commas

form("trailing-commas", close=",")
form("trailing-comma-in-objects", close=",", element_close="")
form("trailing-comma-in-arrays", element_close=",")
form("trailing-comma-on-a-line", close=",\n")
form("doubled-commas", comma=",, ")
form("spaced-doubled-commas", comma=", , ")
form("leading-commas", open=",")
form("leading-comma-in-objects", open=", ", element_open="")
form("leading-commas-on-lines", comma="\n, ")
form("missing-commas-on-lines", **LINES)
form("missing-commas-on-windows-lines", **{**LINES, "comma": "\r\n"})
form("missing-commas-with-blank-lines", **{**LINES, "comma": "\n\n"})
form("missing-commas-with-comments", **{**LINES, "comma": " // next\n"})

# --- Comments

form("line-comments", open=" // first\n", comma=", // next\n", element_open="", element_comma=", ")
form("hash-comments", open=" # first\n", comma=", # next\n", element_open="", element_comma=", ")
form("block-comments", open="/* first */", comma=", /* next */ ", colon=": /* value */")
form("comments-before-the-end", close=" // the end\n")
form("hash-comments-before-the-end", close=" # the end\n")
form("comments-with-quotes", open='// it\'s a "note"\n')
form("comments-with-brackets", open="/* {x} [1 */")
form("comments-between-key-and-colon", colon=" /* is */ : ")
form("hash-comment-after-the-brace", open="# final\n", element_open="")

# --- Quotes

form("single-quotes", string=lambda text: single(text).replace('\\"', '"'))
form("single-quoted-keys", key=single)
form("single-quoted-values", string=single, key=PLAIN.string)
form("typographic-quotes", string=quoted("\u201c", "\u201d"))
form("typographic-keys", key=quoted("\u201c", "\u201d"))
form("typographic-values", string=quoted("\u201c", "\u201d"), key=PLAIN.string)
form("closing-typographic-quotes", string=quoted("\u201d", "\u201d"))
form("single-typographic-quotes", string=quoted("\u2018", "\u2019"))
form("low-typographic-quotes", string=quoted("\u201e", "\u201c"))
form("low-and-high-typographic-quotes", string=quoted("\u201e", "\u201d"))
form("bare-keys", key=bare)
form("bare-keys-in-lines", **{**PRETTY, "key": bare})
form("bare-keys-without-spaces", key=bare, colon=":", comma=",")
form("bare-keys-and-single-quotes", key=bare, string=single)
form("bare-keys-and-typographic-quotes", key=bare, string=quoted("\u201c", "\u201d"))


def with_member(name, text, read):
    """A class whose replies have one more member, written as `text` and read as `read`."""
    value(name, lambda content: (PLAIN.write(content)[:-1] + ', "extra": ' + text + "}", {**content, "extra": read}))


with_member("escaped-single-quote", '"it\\\'s"', "it's")
with_member("escaped-single-quotes", '"\\\'a\\\' and \\\'b\\\'"', "'a' and 'b'")
with_member("double-quotes-in-single-quotes", "'say \"hi\"'", 'say "hi"')
with_member("escaped-quotes-in-single-quotes", "'it\\'s \\\"x\\\"'", 'it\'s "x"')
with_member("straight-quotes-in-typographic-quotes", '\u201csay "hi"\u201d', 'say "hi"')
with_member("typographic-quotes-in-a-string", '"say \u201chi\u201d, \u2018you\u2019"', "say \u201chi\u201d, \u2018you\u2019")
with_member("line-break-in-a-string", '"one\ntwo"', "one\ntwo")
with_member("tab-in-a-string", '"one\ttwo"', "one\ttwo")
with_member("windows-line-break-in-a-string", '"one\r\ntwo"', "one\r\ntwo")
with_member("control-character-in-a-string", '"one\x01two"', "one\x01two")
with_member("line-breaks-in-single-quotes", "'one\n\ntwo'", "one\n\ntwo")
with_member("escapes-in-a-string", '"\\u00e9\\n\\t\\\\ \\/"', "\u00e9\n\t\\ /")
with_member("surrogate-pair", '"\\ud83d\\ude00"', "\U0001f600")
with_member("code-in-a-string", '"if (a) { return [1]; } // x"', "if (a) { return [1]; } // x")
with_member("json-in-a-string", '"{\\"a\\": [1,]}"', '{"a": [1,]}')
with_member("tag-in-a-string", '"</think> {a: 1}"', "</think> {a: 1}")
with_member("fence-in-a-string", '"```json\\n{}\\n```"', "```json\n{}\n```")
with_member("comment-marks-in-a-string", '"http://x # /* y */"', "http://x # /* y */")
with_member("duplicate-key", '1, "extra": 2', 2)

# --- Literals and numbers

form("python-literals", literals=TRUE_PYTHON)
form("upper-case-literals", literals=UPPER)
form("capital-literals", literals=CAPITAL)
form("mixed-case-literals", literals=MIXED)
form("python-dictionary", string=single, literals=TRUE_PYTHON)
form("numbers-with-plus", number=plus)
form("numbers-with-point-after", number=point_after)
form("numbers-with-point-before", number=point_before)
with_member("fraction-without-zero", ".25", 0.25)
with_member("negative-fraction-without-zero", "-.25", -0.25)
with_member("positive-fraction-without-zero", "+.5", 0.5)
with_member("fraction-with-exponent", ".5e3", 500.0)
with_member("integer-with-point", "42.", 42)
with_member("numbers-in-a-list", "[+1, .5, 3., -2]", [1, 0.5, 3, -2])
with_member("exponents", "[1e3, 1E-2, 2.5e+4]", [1e3, 1e-2, 2.5e4])

# --- White space

for name, space in [
    ("no-break-space", "\u00a0"),
    ("ideographic-space", "\u3000"),
    ("zero-width-space", "\u200b"),
    ("zero-width-joiner", "\u200d"),
    ("word-joiner", "\u2060"),
    ("thin-space", "\u2009"),
    ("line-separator", "\u2028"),
    ("form-feed", "\f"),
    ("vertical-tab", "\v"),
    ("next-line", "\u0085"),
    ("inner-byte-order-mark", "\ufeff"),
    ("left-to-right-mark", "\u200e"),
]:
    form(f"{name}-between-tokens", colon=f"{space}:{space}", comma=f"{space},{space}", open=space, close=space)
    form(f"{name}-after-the-brace", open=space, element_open="")
form("no-break-space-indentation", **{**PRETTY, "open": "\n\u00a0\u00a0", "comma": ",\n\u00a0\u00a0"})

# --- Several at once

form("bare-keys-with-trailing-commas-and-comments", key=bare, close=", // end\n", open=" # start\n")
form("python-with-trailing-commas", string=single, literals=TRUE_PYTHON, close=",")
form("javascript", key=bare, string=single, close=",\n", open="\n  ", comma=",\n  ")
form("typographic-with-no-break-space", string=quoted("\u201c", "\u201d"), colon=":\u00a0")
form("bare-lines-without-commas", **{**LINES, "key": bare})
form("upper-bare-plus", key=bare, literals=UPPER, number=plus)
value("fenced-javascript", lambda content: "Here:\n```js\nconst x = " + Form(key=bare, string=single, close=",").write(content) + "\n```\nDone.")
value("thought-out-python", lambda content: "<think>{'a': 1}</think>\n" + Form(string=single, literals=TRUE_PYTHON).write(content))
value("fenced-lines-without-commas", lambda content: "```json\n" + Form(**LINES).write(content) + "\n```")

# --- Truncated replies: never completed

def cut_before(mark):
    return lambda content: PLAIN.write(content)[: PLAIN.write(content).rindex(mark)]


def cut_after(mark):
    return lambda content: PLAIN.write(content)[: PLAIN.write(content).rindex(mark) + len(mark)]


refuse("truncated-before-the-last-brace", lambda content: PLAIN.write(content)[:-1])
refuse("truncated-after-a-colon", cut_after(":"))
refuse("truncated-after-a-colon-and-space", cut_after(": "))
refuse("truncated-before-a-colon", cut_before(":"))
refuse("truncated-after-a-comma", cut_after(","))
refuse("truncated-in-a-key", lambda content: PLAIN.write(content)[: PLAIN.write(content).rindex('":')])
refuse("truncated-in-the-first-key", lambda content: PLAIN.write(content)[:3])
refuse("truncated-after-the-first-key", lambda content: PLAIN.write(content)[: PLAIN.write(content).index(":") + 1])
refuse("truncated-after-the-brace", lambda content: "{")
refuse("truncated-in-a-string", lambda content: PLAIN.write({**content, "extra": "some text"})[:-6])
refuse("truncated-after-a-backslash", lambda content: PLAIN.write(content)[:-1] + ', "extra": "x\\')
refuse("truncated-in-an-escape", lambda content: PLAIN.write(content)[:-1] + ', "extra": "x\\u00')
refuse("truncated-in-a-literal", lambda content: PLAIN.write(content)[:-1] + ', "extra": tru')
refuse("truncated-after-a-number", lambda content: PLAIN.write(content)[:-1] + ', "extra": 12')
refuse("truncated-after-a-minus", lambda content: PLAIN.write(content)[:-1] + ', "extra": -')
refuse("truncated-in-a-list", lambda content: PLAIN.write(content)[:-1] + ', "extra": [1, 2')
refuse("truncated-in-a-nested-object", lambda content: PLAIN.write(content)[:-1] + ', "extra": {"a": 1')
refuse("truncated-in-a-fence", lambda content: "```json\n" + PLAIN.write(content)[:-1] + "\n```")
refuse("truncated-in-a-fence-without-end", lambda content: "```json\n" + PLAIN.write(content)[:-1])
refuse("truncated-with-prose-before", lambda content: "Sure: " + PLAIN.write(content)[:-1])
refuse("truncated-after-reasoning", lambda content: "<think>x</think>" + PLAIN.write(content)[:-1])
refuse("truncated-with-bare-keys", lambda content: Form(key=bare).write(content)[:-1])
refuse("truncated-with-single-quotes", lambda content: Form(string=single).write(content)[:-1])
refuse("truncated-with-typographic-quotes", lambda content: Form(string=quoted("\u201c", "\u201d")).write(content)[:-1])
refuse("truncated-in-a-comment", lambda content: PLAIN.write(content)[:-1] + " /* the end")
refuse("truncated-with-a-surplus-fence", lambda content: PLAIN.write(content)[:-1] + "\n```\nDone.")

# --- Several objects: none is chosen

refuse("two-objects-on-lines", lambda content: PLAIN.write(content) + "\n" + DRAFT)
refuse("two-objects-in-a-row", lambda content: DRAFT + PLAIN.write(content))
refuse("two-objects-with-or", lambda content: PLAIN.write(content) + " or " + DRAFT)
refuse("two-objects-with-prose", lambda content: "First " + DRAFT + ", then " + PLAIN.write(content) + ".")
refuse("two-fences", lambda content: "```json\n" + PLAIN.write(content) + "\n```\nor\n```json\n" + DRAFT + "\n```")
refuse("example-then-answer", lambda content: "For example: " + DRAFT + "\nMy answer:\n" + PLAIN.write(content))
refuse("example-then-bare-answer", lambda content: "For example: " + DRAFT + "\nMy answer:\n" + Form(key=bare).write(content))
refuse("answer-then-typographic-answer", lambda content: PLAIN.write(content) + "\nNo: {\u201cok\u201d: false}")
refuse("answer-then-equals-answer", lambda content: PLAIN.write(content) + "\nNo: {ok = false}")
refuse("answer-then-full-width-colon", lambda content: PLAIN.write(content) + '\nNo: {"ok"\uff1afalse}')
refuse("answer-then-hidden-space", lambda content: PLAIN.write(content) + '\nNo: {\u200b"ok": false}')
refuse("answer-then-truncated-answer", lambda content: PLAIN.write(content) + '\nOr: {"ok": fal')
refuse("two-objects-with-semicolon", lambda content: PLAIN.write(content) + "; " + DRAFT)

# --- Values that no parser can know

for name, text in [
    ("nan", "NaN"),
    ("infinity", "Infinity"),
    ("negative-infinity", "-Infinity"),
    ("undefined", "undefined"),
    ("unquoted-word", "approve"),
    ("unquoted-words", "it is fine"),
    ("unquoted-date", "2024-05-01"),
    ("unquoted-time", "12:30"),
    ("unquoted-url", "https://example.com"),
    ("unquoted-path", "/usr/bin"),
    ("yes", "yes"),
    ("lower-none", "none"),
    ("nil", "nil"),
    ("percent", "50%"),
    ("dollar", "$5"),
    ("unit", "5 kg"),
    ("attached-unit", "5kg"),
    ("thousands", "1,000"),
    ("underscores", "1_000"),
    ("fraction", "3/4"),
    ("sum", "1 + 2"),
    ("range", "1-5"),
    ("approximate", "~5"),
    ("hexadecimal", "0x1F"),
    ("octal", "017"),
    ("leading-zero", "05"),
    ("two-points", "1.2.3"),
    ("point-alone", "."),
    ("plus-alone", "+"),
    ("plus-minus", "+-5"),
    ("exponent-after-point", "5.e3"),
    ("exponent-without-digits", "5e"),
    ("missing-value", ""),
    ("ellipsis", "..."),
    ("ellipsis-character", "\u2026"),
    ("ellipsis-in-a-list", "[1, 2, ...]"),
    ("ellipsis-word-in-a-list", "[1, 2, etc]"),
    ("list-without-commas", "[1 2 3]"),
    ("list-on-lines-without-commas", '["a"\n"b"]'),
    ("tuple", "(1, 2)"),
    ("set", "{1, 2}"),
    ("words-in-braces", "{a, b}"),
    ("adjacent-strings", '"a" "b"'),
    ("concatenated-strings", '"a" + "b"'),
    ("backticks", "`a`"),
    ("guillemets", "\u00aba\u00bb"),
    ("corner-quotes", "\u300ca\u300d"),
    ("triple-quotes", '"""a"""'),
    ("byte-string", "b'a'"),
    ("format-string", "f'a'"),
    ("regular-expression", "/a+/"),
    ("constructor", "Decimal('1.5')"),
    ("new-date", "new Date()"),
    ("function", "() => 1"),
    ("template", "${value}"),
    ("placeholder", "<value>"),
    ("angle-literal", "<Status.OK: 1>"),
    ("unescaped-quotes", '"say "hi" now"'),
    ("unescaped-quote-at-the-end", '"say "hi""'),
    ("typographic-apostrophe", "\u2018it\u2019s\u2019"),
    ("nested-typographic-quotes", "\u201ca \u201cb\u201d c\u201d"),
    ("mixed-quotes", "\"a'"),
    ("mixed-typographic-quotes", "\u201ca\""),
    ("digit-escape", '"\\d+"'),
    ("windows-path", '"C:\\path\\x"'),
    ("hex-escape", '"\\x41"'),
    ("half-surrogate", '"\\ud83d"'),
    ("short-unicode-escape", '"\\u12"'),
    ("parenthesis-for-a-bracket", "(1, 2]"),
    ("mismatched-brackets", "[1, 2}"),
    ("mismatched-braces", '{"a": 1]'),
    ("unclosed-list", "[1, 2"),
    ("html-entities", "&quot;a&quot;"),
    ("c-comment-that-never-ends", "1 /* one"),
    ("comment-for-a-value", "/* unknown */"),
]:
    refuse(f"value-{name}", lambda content, text=text: PLAIN.write(content)[:-1] + ', "extra": ' + text + "}")

# --- Structure that no parser can know

refuse("missing-first-brace", lambda content: PLAIN.write({"a": "outer", "item": content})[1:])
refuse("missing-last-brace-of-the-outer", lambda content: '{"item": ' + PLAIN.write(content))
refuse("missing-commas-on-one-line", lambda content: Form(comma=" ").write({**content, "extra": 1}))
refuse("semicolons-for-commas", lambda content: Form(comma="; ").write({**content, "extra": 1}))
refuse("equals-for-colons", lambda content: Form(colon=" = ").write(content))
refuse("arrows-for-colons", lambda content: Form(colon=" => ").write(content))
refuse("full-width-colons", lambda content: Form(colon="\uff1a").write(content))
refuse("no-colons", lambda content: Form(colon=" ").write(content))
refuse("doubled-colons", lambda content: Form(colon=":: ").write(content))
refuse("backtick-quotes", lambda content: Form(string=quoted("`", "`")).write(content))
refuse("escaped-quotes", lambda content: PLAIN.write(content).replace('"', '\\"'))
refuse("html-escaped", lambda content: PLAIN.write(content).replace('"', "&quot;"))
refuse("dollar-keys", lambda content: Form(key=lambda key: "$" + key).write(content))
refuse("keys-with-points", lambda content: Form(key=lambda key: "a." + key).write(content))
refuse("keys-with-spaces", lambda content: Form(key=lambda key: "the " + key).write(content))
refuse("keys-in-brackets", lambda content: Form(key=lambda key: "[" + key + "]").write(content))
refuse("call-with-arguments", lambda content: "Answer(rationale='outer', item=" + PLAIN.write(content) + ")")
refuse("ellipsis-for-members", lambda content: '{..., "item": ' + PLAIN.write(content) + "}")
refuse("outer-with-unquoted-value", lambda content: '{verdict: approve, "item": ' + PLAIN.write(content) + "}")
refuse("outer-with-equals", lambda content: '{verdict = "no", item = ' + PLAIN.write(content) + "}")
refuse("list-with-a-word", lambda content: "[approve, " + PLAIN.write(content) + "]")
refuse("double-braces", lambda content: "{" + PLAIN.write(content) + "}")
refuse("object-without-keys", lambda content: '{"outer", "item": ' + PLAIN.write(content) + "}")
refuse("member-after-the-object", lambda content: PLAIN.write(content) + ', "more": "x"}')

# --- No JSON at all

for name, text in [
    ("nothing", ""),
    ("blank", " \n\t "),
    ("refusal", "I'm sorry, but I can't help with that."),
    ("question", "Which file do you mean?"),
    ("placeholder-only", "Fill in {name} and {date}."),
    ("citation-only", "See [1] and [2]."),
    ("code-only", "```python\ndef f():\n    return {x for x in y}\n```"),
    ("markdown-table", "| verdict | why |\n|---|---|\n| approve | fine |"),
    ("yaml", "verdict: approve\nrationale: it is fine\nitems:\n  - a\n  - b"),
    ("toml", 'verdict = "approve"\n[meta]\nrisk = "low"'),
    ("xml", "<answer><verdict>approve</verdict></answer>"),
    ("key-value-lines", "verdict: approve\nscore: 7"),
    ("empty-fence", "```json\n```"),
    ("brackets-only", "{[}]"),
]:
    refuse(name, lambda content, text=text: text if content is CONTENTS[0] else None)


def main():
    for classes, expects in ((VALUE, "value"), (REFUSE, "refuse")):
        for name, build in classes.items():
            seen = set()
            for content in CONTENTS:
                built = build(content)
                reply, read = built if isinstance(built, tuple) else (built, content)
                if reply is None or reply in seen:
                    continue
                seen.add(reply)
                line = {"class": name, "reply": reply, "expect": expects}
                if expects == "value":
                    line["value"] = read
                json.dump(line, sys.stdout, ensure_ascii=True)
                print()


if __name__ == "__main__":
    main()
