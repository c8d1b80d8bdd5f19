"""Output in notebooks: highlighted PTX, reports and statistics as HTML, and a progress bar for long launches."""

from __future__ import annotations

import html
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Union

if TYPE_CHECKING:
    Told = Callable[[int, int], None]

__all__ = ["Html", "highlight"]

#: Kinds of words, in the order in which they are looked for, and their colors, which are readable on white and on black.
_KINDS = (
    ("comment", r"//[^\n]*|/\*.*?\*/", "#7a8288"),
    ("string", r'"(?:\\.|[^"\\\n])*"', "#3d9a50"),
    ("number", r"\b0[fFdD][0-9a-fA-F]+\b|\b0[xX][0-9a-fA-F]+U?\b|(?<![\w.$%])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?U?\b", "#b5721a"),
    ("register", r"%[\w$]+(?:\.[xyzw]\b)?", "#2f86c9"),
    ("label", r"^[ \t]*[A-Za-z_$][\w$]*(?=:(?!:))", "#a05fc2"),
    ("directive", r"(?<![\w$%.:])\.[a-z]\w*", "#c2474e"),
    ("instruction", r"(?<![\w$%.])[a-z]\w*(?:(?:\.|::)\w+)+|(?<![\w$%.])(?:ret|trap|exit|bra|call|brkpt)\b", "#5a6fd0"),
)
_WORD = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern, _ in _KINDS), re.MULTILINE | re.DOTALL)
_COLORS = {kind: color for kind, _, color in _KINDS}


class Html:
    """Text that notebooks show as HTML, and others as it is."""

    def __init__(self, text: str, markup: str) -> None:
        self.text = text
        self._markup = markup

    def _repr_html_(self) -> str:
        return self._markup

    def __repr__(self) -> str:
        return self.text


def highlight(text: str) -> Html:
    """PTX with colors, for notebooks.

    >>> import ptxvm
    >>> ptxvm.highlight("mov.u32 %r1, 7; // seven")
    mov.u32 %r1, 7; // seven
    >>> "<span" in ptxvm.highlight("mov.u32 %r1, 7;")._repr_html_()
    True
    """
    parts, at = [], 0
    for found in _WORD.finditer(text):
        parts.append(html.escape(text[at : found.start()]))
        color = _COLORS[found.lastgroup or "comment"]
        parts.append(f'<span style="color:{color}">{html.escape(found.group())}</span>')
        at = found.end()
    parts.append(html.escape(text[at:]))
    return Html(text, f'<pre style="line-height:1.25">{"".join(parts)}</pre>')


def report_html(text: str) -> str:
    """A diagnostic or the report of a trap, as HTML."""
    return f'<pre style="border-left:3px solid #c2474e;padding-left:0.8em;line-height:1.25">{html.escape(text)}</pre>'


def table_html(title: str, rows: Mapping[str, Any], printed: str = "") -> str:
    """Numbers by name as a table, and below what a kernel printed."""
    lines = "".join(
        f'<tr><td style="text-align:left">{html.escape(str(name))}</td><td style="text-align:right">{html.escape(_number(value))}</td></tr>'
        for name, value in rows.items()
    )
    below = f"<pre>{html.escape(printed)}</pre>" if printed else ""
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>{below}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _wants_bar() -> bool:
    """Whether a bar can be seen: standard error is a terminal, or this is a notebook."""
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


class _Bar:
    """A bar of tqdm, which appears when there is something to tell."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bar: Any = None

    def __call__(self, finished: int, total: int) -> None:
        if self._bar is None:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
            except ImportError:
                return
            self._bar = tqdm(total=total, desc=self._name, unit="CTA", leave=False)
        self._bar.update(finished - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def progress_bar(wanted: Union[None, bool, "Told"], name: str) -> Iterator[Optional["Told"]]:
    """What is told about progress: the caller's function, a bar, or nothing."""
    if callable(wanted):
        yield wanted
        return
    if wanted is False or (wanted is None and not _wants_bar()):
        yield None
        return
    bar = _Bar(name)
    try:
        yield bar
    finally:
        bar.close()
