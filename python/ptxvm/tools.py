"""Functions that need no device: checking, formatting, explanations, and the instruction table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from . import _native
from .errors import Diagnostic, UsageError
from .vm import Text, read

__all__ = ["Form", "check", "codes", "explain", "format", "isa"]


@dataclass(frozen=True)
class Form:
    """A form of an instruction, a row of the table."""

    mnemonic: str
    #: The form in the manual's notation, and what the words in it stand for.
    syntax: str
    sets: List[str]
    #: First PTX version and target.
    ptx: str
    target: str
    #: Section of the PTX manual.
    section: str
    #: What it computes.
    brief: str
    #: ``exact``, ``approximate``, or the bound.
    exactness: str
    #: ``yes``, ``partly`` or ``missing``: whether the interpreter executes it, and whether it becomes native code.
    interpreted: str
    native: str


def check(
    *sources: Text, name: Optional[str] = None, gpu_name: Optional[str] = None, strict: bool = False
) -> List[Diagnostic]:
    """Every diagnostic of a text or file; several are linked.

    >>> import ptxvm
    >>> [found] = ptxvm.check(".version 6.4\\n.target sm_70\\n.visible .entry k() { bra nowhere; }")
    >>> print(found)                                                # doctest: +ELLIPSIS
    error[P...
    >>> ptxvm.check(".version 6.4\\n.target sm_70\\n.visible .entry k() { ret; }")
    []
    """
    if not sources:
        raise UsageError("nothing to check; expected one text or more")
    texts = [read(source, name if len(sources) == 1 else None, index) for index, source in enumerate(sources)]
    return [Diagnostic._of(fields) for fields in _native.check(texts, gpu_name, strict)]


def format(source: Text, *, name: Optional[str] = None) -> str:
    """The text in canonical layout: only white space changes.

    >>> import ptxvm
    >>> print(ptxvm.format(".version 6.4\\n.target sm_70\\n.visible .entry k( ) {ret;}"))      # doctest: +ELLIPSIS
    .version 6.4
    ...
    """
    found, text = read(source, name)
    return _native.format(found, text)


def explain(code: str) -> str:
    """The page of a diagnostic code: what it means, with examples.

    >>> import ptxvm
    >>> ptxvm.explain("P0202").splitlines()[0]                      # doctest: +ELLIPSIS
    '# P0202: ...'
    """
    return _native.explain(code)


def codes() -> Dict[str, str]:
    """Every diagnostic code with its title.

    >>> import ptxvm
    >>> "P0202" in ptxvm.codes()
    True
    """
    found: List[Tuple[str, str]] = _native.codes()
    return dict(found)


def isa(name: Optional[str] = None) -> List[Form]:
    """The forms of a mnemonic such as ``add`` or ``shfl.sync``; without a name, all.

    >>> import ptxvm
    >>> {form.mnemonic for form in ptxvm.isa("shfl.sync")}
    {'shfl'}
    """
    forms = [Form(**fields) for fields in _native.isa(name)]
    if name is not None and not forms:
        raise UsageError(f"there is no instruction `{name}`; `ptxvm.isa()` lists all")
    return forms
