"""Constant expressions, sections 4.5 and 4.6: random expressions, evaluated by the rules for .s64, .u64 and .f64.

Readings: A4 (remainder is unsigned with an .s64 result), A5, A6, A7 (shifts by 64 and more, INT64_MIN / -1), A9.
"""
import number as fp
from form import Suite
from number import F32, F64, mask, signed, wrap
from samples import rng

# operators by precedence, loosest first; | and || stand without blanks, as the file's fields end at " | "
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]


class Undefined(Exception):
    pass


def literal(r):
    v = r.choice([0, 1, 2, 3, 7, 31, 63, 100, 255, 4096, mask(31), mask(32), mask(63), 1 << 63, mask(64), r.getrandbits(16), r.getrandbits(64)])
    suffix = "U" if r.random() < 0.25 else ""
    text = r.choice([str(v), hex(v), "0X%X" % v, "0%o" % v if v else "0", "0b" + bin(v)[2:]]) + suffix
    return text, v, bool(suffix) or v > mask(63)


def cut_divide(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def binary(op, x, xu, y, yu):
    """Value and whether it is unsigned, of operands given as 64-bit patterns."""
    unsigned = xu or yu
    num = (lambda v: v) if unsigned else (lambda v: signed(v, 64))
    if op in ("+", "-", "*"):
        return wrap({"+": x + y, "-": x - y, "*": x * y}[op], 64), unsigned
    if op == "/":
        if not y:
            raise Undefined
        return wrap(cut_divide(num(x), num(y)), 64), unsigned
    if op == "%":
        if not y:
            raise Undefined
        return x % y, False
    if op == "<<":
        return wrap(x << y, 64) if y < 64 else 0, xu
    if op == ">>":
        return wrap((x if xu else signed(x, 64)) >> min(y, 64), 64), xu
    if op in ("&", "|", "^"):
        return {"&": x & y, "|": x | y, "^": x ^ y}[op], unsigned
    if op in ("&&", "||"):
        return int(bool(x) and bool(y) if op == "&&" else bool(x) or bool(y)), False
    a, b = num(x), num(y)
    return int({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]), False


def expression(r, depth):
    """(text, level of its outermost operator, value, unsigned)."""
    if depth == 0 or r.random() < 0.1:
        text, v, u = literal(r)
        return text, 99, v, u
    kind = r.random()
    if kind < 0.2:
        op = r.choice(["-", "+", "!", "~", "(.s64)", "(.u64)"])
        text, level, v, u = expression(r, depth - 1)
        inner = text if level >= 98 and text[0] not in "+-" else "(%s)" % text
        value = {"-": (wrap(-v, 64), u), "+": (v, u), "!": (int(not v), False), "~": (v ^ mask(64), True), "(.s64)": (v, False), "(.u64)": (v, True)}[op]
        return (op + inner, 98) + value
    if kind < 0.3:
        c, a, b = (expression(r, depth - 1) for _ in range(3))
        u = a[3] or b[3]
        wrapped = [e[0] if e[1] > 0 else "(%s)" % e[0] for e in (c, a)]
        return "%s ? %s : %s" % (wrapped[0], wrapped[1], b[0]), 0, (a if c[2] else b)[2], u
    level = r.randrange(len(LEVELS))
    op = r.choice(LEVELS[level])
    left, right = expression(r, depth - 1), expression(r, depth - 1)
    if op in ("<<", ">>") and r.random() < 0.8:
        v = r.randrange(64)
        right = (str(v), 99, v, False)
    value = binary(op, left[2], left[3], right[2], right[3])
    # left associative: an operand on the left of the same level needs no parentheses
    a = left[0] if left[1] >= level + 1 and r.random() < 0.9 else "(%s)" % left[0]
    b = right[0] if right[1] > level + 1 and r.random() < 0.9 else "(%s)" % right[0]
    return a + op + b if "|" in op else "%s %s %s" % (a, op, b), level + 1, *value


def integers():
    s = Suite("constant", "Constant expressions as operands: PTX ISA 6.4 sections 4.5, 4.6. Readings: A4 to A7, A9.")
    for n in range(40):
        r = rng("constant%d" % n)
        texts, values = [], []
        while len(texts) < 8:
            try:
                text, _, v, _ = expression(r, 1 + n % 4)
            except Undefined:
                continue
            if len(text) < 200:
                texts.append(text)
                values.append(v)
        f = s.form("integer expressions %d" % n, " ".join("d%d:b64" % i for i in range(8)) + " e:s32 g:u16", "z:u32",
                   " ".join("mov.b64 %%d%d, %s;" % (i, t) for i, t in enumerate(texts)) + " mov.s32 %%e, %s; mov.u16 %%g, %s;" % (texts[0], texts[1]))
        f.vec(0, tuple(values) + (wrap(values[0], 32), wrap(values[1], 16)))
    f = s.form("order of evaluation", "a:s64 b:s64 c:s64 d:s64 e:u64 f:s64 g:s64 h:s64 i:s64", "z:u32",
               "mov.s64 %a, 2 + 3 * 4; mov.s64 %b, 100 / 10 / 5; mov.s64 %c, 7 - 2 - 1; mov.s64 %d, 1 ? 2 : 0 ? 3 : 4; mov.u64 %e, -1 < 1U; mov.s64 %f, -8 >> 1; mov.s64 %g, 1 << 2 + 1; mov.s64 %h, WARP_SZ * 2 - 1; mov.s64 %i, -7 / 2;")
    f.vec(0, (14, 2, 4, 2, 0, wrap(-4, 64), 8, 63, wrap(-3, 64)))
    for n in range(12):
        r = rng("float constant%d" % n)
        texts, values = [], []
        while len(texts) < 6:
            text, _, v = float_expression(r, 1 + n % 3)
            if not fp.is_nan(v, F64) and len(text) < 160:
                texts.append(text)
                values.append(v)
        f = s.form("float expressions %d" % n, " ".join("d%d:f64" % i for i in range(6)) + " e:f32", "z:u32", " ".join("mov.f64 %%d%d, %s;" % (i, t) for i, t in enumerate(texts)) + " mov.f32 %%e, %s;" % texts[0])
        f.vec(0, tuple(values) + (fp.convert(values[0], F64, F32),))
    f = s.form("predicate constants", "a:pred b:pred c:pred d:u32", "p:pred", "mov.pred %a, 1; and.pred %b, %p, 2; xor.pred %c, %p, 0; selp.u32 %d, 5, 6, %a;")
    f.vec(0, (1, 0, 0, 5))
    f.vec(1, (1, 1, 1, 5))
    return s


def float_literal(r):
    from fractions import Fraction

    kind = r.randrange(4)
    if kind == 0:
        v = r.getrandbits(62) | 1 << 61
        return "0d%016X" % v, v
    text = r.choice(["%d.%d", "%d.%de+1", "%d.%dE-7", "%d.%de3"]) % (r.randrange(1000), r.randrange(100000))
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, part = mantissa.partition(".")
    x = (Fraction(int(whole)) + Fraction(int(part), 10 ** len(part))) * Fraction(10) ** int(exponent or 0)
    return text, fp.round_to(x, F64)


def float_expression(r, depth):
    """(text, level, bits) of an .f64 expression."""
    if depth == 0 or r.random() < 0.15:
        return (lambda t, v: (t, 99, v))(*float_literal(r))
    kind = r.random()
    if kind < 0.15:
        text, level, v = float_expression(r, depth - 1)
        return "-" + (text if level == 99 else "(%s)" % text), 98, fp.NAN if v == fp.NAN else v ^ F64.sign
    a, b = float_expression(r, depth - 1), float_expression(r, depth - 1)
    if fp.NAN in (a[2], b[2]):
        return a[0], a[1], fp.NAN
    if kind < 0.3:
        op = r.choice(["<", ">=", "=="])
        name = {"<": "lt", ">=": "ge", "==": "eq"}[op]
        c, d = float_expression(r, depth - 1), float_expression(r, depth - 1)
        if fp.NAN in (c[2], d[2]):
            return a[0], a[1], fp.NAN
        return "((%s) %s (%s)) ? (%s) : (%s)" % (a[0], op, b[0], c[0], d[0]), 0, (c if fp.compare(a[2], b[2], name, F64) else d)[2]
    op = r.choice("+-*/")
    value = {"+": fp.add, "-": fp.sub, "*": fp.mul, "/": fp.div}[op](a[2], b[2], F64)
    level = 10 if op in "*/" else 9
    left = a[0] if a[1] >= level else "(%s)" % a[0]
    right = b[0] if b[1] > level else "(%s)" % b[0]
    return "%s %s %s" % (left, op, right), level, value


SUITES = [integers]
