"""Writes the language tests whose forms are combinatorial: `python3 tests/language/generate`.

What is valid is decided here from the PTX 6.4 manual (sections named in each file), never from ptxvm's instruction table.
"""

import importlib
import sys

for name in ("integer", "floating", "compare", "logic", "move", "convert", "memory", "matrix", "video", "misc"):
    for page in importlib.import_module(name).pages():
        page.write()
        print(page.name, len(page.text), file=sys.stderr)
