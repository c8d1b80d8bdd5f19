"""Writes the vector files. The format is described in tests/vectors/README.md."""
from pathlib import Path

from number import FORMATS, NAN

ROOT = Path(__file__).parent.parent
WIDTH = {"pred": 1, "f16x2": 32, "bf16": 16, "bf16x2": 32}


def width(kind):
    return WIDTH.get(kind) or int(kind[1:])


def hexa(x, kind):
    return format(x, "0%dx" % max(1, width(kind) // 4))


class Range:
    """Every float from low to high, both ends included."""

    def __init__(self, low, high):
        self.low, self.high = low, high


class Either(tuple):
    """Any of these."""


class Halves(tuple):
    """Low and high half of an f16x2 or bf16x2, each with its own expectation."""


ANY = "*"


def expected(x, kind):
    if isinstance(x, Either):
        return "|".join(dict.fromkeys(expected(one, kind) for one in x))
    if isinstance(x, Range):
        return hexa(x.low, kind) + ".." + hexa(x.high, kind) if x.low != x.high else hexa(x.low, kind)
    if isinstance(x, Halves):
        if all(isinstance(half, int) for half in x):
            return hexa(x[0] | x[1] << 16, kind)
        half = kind.removesuffix("x2")
        return expected(x[1], half) + ":" + expected(x[0], half)
    if x in (NAN, ANY):
        return x
    if isinstance(x, bool):
        x = int(x)
    assert 0 <= x < 1 << width(kind), (x, kind)
    return hexa(x, kind)


class Form:
    def __init__(self, name, outs, ins, body, module, options):
        self.name, self.outs, self.ins, self.body, self.module, self.options = name, outs.split(), ins.split(), body, module, options
        self.lines = []
        self.seen = set()

    def vec(self, operands, results):
        """One vector. Operands and results are single values or tuples."""
        operands = operands if isinstance(operands, tuple) else (operands,)
        if not isinstance(results, tuple) or isinstance(results, (Either, Halves)):
            results = (results,)
        assert len(operands) == len(self.ins) and len(results) == len(self.outs), (self.name, operands, results)
        left = " ".join(hexa(int(x), i.split(":")[1]) for x, i in zip(operands, self.ins))
        right = " ".join(expected(x, o.split(":")[1]) for x, o in zip(results, self.outs))
        line = left + " = " + right
        if "lanes" not in self.options:
            if line in self.seen:
                return
            self.seen.add(line)
        self.lines.append(line)

    def text(self):
        options = "".join(" @%s=%s" % item for item in self.options.items())
        head = "form " + self.name + options + " | " + " ".join(self.outs) + " | " + " ".join(self.ins)
        if self.body:
            head += " | " + self.body.strip()
        if self.module:
            head += " | " + self.module
        return head + "\n" + "\n".join(self.lines) + "\n"


class Suite:
    """One vector file."""

    def __init__(self, name, *about):
        self.name, self.about, self.forms = name, about, []

    def form(self, name, outs, ins, body=None, module=None, **options):
        assert name not in {f.name for f in self.forms}, name
        made = Form(name, outs, ins, body, module, options)
        self.forms.append(made)
        return made

    def write(self):
        head = "".join("# %s\n" % line for line in self.about)
        (ROOT / (self.name + ".vec")).write_text(head + "\n" + "\n".join(f.text() for f in self.forms))
        return len(self.forms), sum(len(f.lines) for f in self.forms), sum(len(f.lines) * len(f.outs) for f in self.forms)


def float_kind(kind):
    return kind in FORMATS
