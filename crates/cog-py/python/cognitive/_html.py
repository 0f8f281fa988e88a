"""Results, errors and modules as HTML for notebooks.

The style is inline and takes its colors from the page, so that a card is readable in a light and in a dark theme, and in a
page of its own.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._cognitive import ErrorInfo, Module, Result

#: The maximum number of characters of JSON in a card.
_MAX_JSON = 20_000

_CARD = (
    "border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:10px 14px;margin:4px 0;max-width:60em;"
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;text-align:left"
)
_PILL = "color:#fff;border-radius:4px;padding:1px 7px;margin-right:8px;font-weight:600;background:"
_PALE = "opacity:.75"
_PRE = (
    "margin:4px 0;padding:8px;color:inherit;background:rgba(128,128,128,.12);border-radius:4px;font-size:12px;"
    "font-family:ui-monospace,monospace;max-height:24em;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere"
)
_TABLE = "border:none;margin:0 0 4px;font-size:13px;color:inherit"
_CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top;background:none;border:none"
_GREEN, _RED, _AMBER, _BLUE = "#1a7f37", "#cf222e", "#9a6700", "#0969da"


def result(result: Result) -> str:
    """The card of a result."""
    meta = result.meta
    if result.error is None:
        parts = [_head("ok", _GREEN, meta["explain"]), _facts(meta), _json("data", result.to_dict()["data"], is_open=True)]
    else:
        parts = [*_error(result.error), _facts(meta)]
        if result.partial_data is not None:
            parts.append(_json("partial data", result.partial_data))
    parts.extend(_warning(warning) for warning in result.warnings)
    return _card(parts)


def error(error: ErrorInfo) -> str:
    """The card of an error."""
    return _card(_error(error))


def module(module: Module) -> str:
    """The card of a module."""
    facts = [module.format, module.tier, None if module.directory is None else str(module.directory)]
    parts = [
        _head(f"{module.name} {module.version}", _BLUE, module.responsibility),
        _line(" · ".join(fact for fact in facts if fact)),
        _fields("input", module.input_schema),
        _fields("data", module.data_schema),
    ]
    parts.extend(_warning(warning) for warning in module.warnings)
    return _card(parts)


def progress(data: Any) -> str:
    """The card of an answer that is still arriving."""
    return _card([_head("…", _BLUE, "the answer arrives"), _json("data", data, is_open=True)])


def _card(parts: list[str]) -> str:
    content = "".join(parts)
    return f'<div style="{_CARD}">{content}</div>'


def _head(pill: str, color: str, text: str) -> str:
    return f'<div><span style="{_PILL}{color}">{escape(pill)}</span>{escape(text)}</div>'


def _line(text: str) -> str:
    return f'<div style="{_PALE}">{escape(text)}</div>' if text else ""


def _error(error: ErrorInfo) -> list[str]:
    parts = [_head(error.code, _RED, error.message), _line(error.suggestion or "")]
    if error.details.keys() != {"origin"}:
        parts.append(_json("details", error.details))
    return parts


def _facts(meta: dict[str, Any]) -> str:
    """The control plane in one line."""
    risk = meta["risk"]
    facts = [f"risk {risk if isinstance(risk, str) else json.dumps(risk, ensure_ascii=False)}"]
    if meta.get("confidence") is not None:
        facts.insert(0, f"confidence {meta['confidence']:.0%}")
    if "model" in meta:
        facts.append(meta["model"])
    if "processing_time_ms" in meta:
        facts.append(f"{meta['processing_time_ms']:,} ms")
    usage = meta.get("usage") or {}
    if "input_tokens" in usage:
        facts.append(f"{usage['input_tokens']:,} + {usage.get('output_tokens', 0):,} tokens")
    cost = usage.get("cost") or {}
    if "amount" in cost:
        facts.append(f"{cost['amount']} {cost.get('currency', '')}".strip())
    return _line(" · ".join(facts))


def _json(title: str, value: Any, *, is_open: bool = False) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MAX_JSON:
        text = f"{text[:_MAX_JSON]}\n… {len(text) - _MAX_JSON:,} more characters"
    state = " open" if is_open else ""
    return f'<details{state}><summary>{escape(title)}</summary><pre style="{_PRE}">{escape(text)}</pre></details>'


def _warning(warning: dict[str, Any]) -> str:
    return _head(str(warning.get("code") or warning.get("rule") or "warning"), _AMBER, str(warning.get("message", "")))


def _fields(title: str, schema: dict[str, Any] | None) -> str:
    """The properties of an object schema as a table."""
    properties = (schema or {}).get("properties")
    if not isinstance(properties, dict) or not properties:
        return ""
    required = (schema or {}).get("required", [])
    rows = "".join(_row(name, field, name in required) for name, field in properties.items())
    return f'<details open><summary>{escape(title)}</summary><table style="{_TABLE}">{rows}</table></details>'


def _row(name: str, field: Any, is_required: bool) -> str:
    field = field if isinstance(field, dict) else {}
    kind = field.get("type") or ("one of " + ", ".join(map(str, field["enum"])) if "enum" in field else "")
    shown = " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    cells = (name + ("" if is_required else "?"), shown, str(field.get("description", "")))
    row = "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in cells)
    return f"<tr>{row}</tr>"
