"""A stream in a notebook."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import _html

if TYPE_CHECKING:
    from ._stream import ChunkStream

#: The minimum time between two updates, in seconds.
_PAUSE = 0.1


def display(stream: ChunkStream) -> None:
    """Reads a stream to its end, and shows the answer so far in the output of the cell."""
    try:
        from IPython.display import DisplayHandle
    except ImportError as error:
        raise ImportError("display() shows a stream in a notebook, which needs IPython") from error
    handle = DisplayHandle()
    handle.display(_Card("the answer arrives", _html.progress(None)))
    updated = time.monotonic()
    try:
        for _ in stream:
            if time.monotonic() - updated >= _PAUSE:
                handle.update(_Card("the answer arrives", _html.progress(stream.data)))
                updated = time.monotonic()
    finally:
        if stream.result is not None:
            handle.update(stream.result)


class _Card:
    """A card, and a string where HTML cannot be shown."""

    def __init__(self, text: str, html: str) -> None:
        self.text = text
        self.html = html

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html
