"""The progress of a run: a bar in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import Any

_WIDTH = 30
# Chosen: a bar that vanishes at once would only flicker.
_QUIET_SECONDS = 0.5


class Bar:
    """A bar on standard error if that is a terminal, or an HTML bar in a notebook; else nothing. It vanishes at the end."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._drawn = False
        self._handle: Any = None
        self._in_notebook = _in_notebook()
        self._in_terminal = not self._in_notebook and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int, total: int, part: float | None = None) -> None:
        """Show that ``done`` of ``total`` simulations have ended; ``part`` is the fraction done, including running simulations."""
        elapsed = time.monotonic() - self._started
        if elapsed < _QUIET_SECONDS or not total:
            return
        part = done / total if part is None else part
        left = f", {_duration(elapsed / part * (1 - part))} left" if part else ""
        text = f"{done}/{total} runs, {100 * part:.0f} %{left}"
        if self._in_notebook:
            page = _Page(f"<progress value='{part}' max='1'></progress> {text}")
            self._show(page)
        elif self._in_terminal:
            full = int(_WIDTH * part)
            sys.stderr.write(f"\r{'█' * full}{'░' * (_WIDTH - full)} {text}\x1b[K")
            sys.stderr.flush()
            self._drawn = True

    def _show(self, page: _Page) -> None:
        if self._handle is None:
            self._handle = import_module("IPython.display").display(page, display_id=True)
        else:
            self._handle.update(page)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.update(_Page(""))
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def shown(progress: bool | Callable[[int, int], object] | None) -> Iterator[Callable[..., object]]:
    """Yield a function for progress: a bar for True and None, nothing for False, else the given one, called when simulations end."""
    if progress is None or progress is True:
        with Bar() as bar:
            yield bar
    else:
        yield _Whole(progress or (lambda done, total: None))


class _Whole:
    """Calls a function with the number of ended simulations, whenever it grows."""

    def __init__(self, function: Callable[[int, int], object]) -> None:
        self._function = function
        self._done = 0

    def __call__(self, done: int, total: int, part: float | None = None) -> None:
        if done != self._done:
            self._done = done
            self._function(done, total)


class _Page:
    """HTML for a notebook."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
