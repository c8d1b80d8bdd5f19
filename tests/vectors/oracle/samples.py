"""Operands worth trying: edges of every type, and seeded random values."""
import random

from number import FORMATS, mask


SEED = "ptxvm"


def rng(name):
    """A generator of its own per form, so that adding a form moves no other form's values."""
    return random.Random(SEED + ":" + name)


def int_edges(bits):
    top = 1 << (bits - 1)
    return [0, 1, 2, 3, mask(bits), mask(bits) - 1, top, top - 1, top + 1, mask(bits // 2), mask(bits // 2) + 1,
            0x5555555555555555 & mask(bits), 0xAAAAAAAAAAAAAAAA & mask(bits)]


def any_int(r, bits):
    """A random number, with every magnitude about equally likely."""
    x = r.getrandbits(r.randint(1, bits))
    return (x if r.random() < 0.6 else -x) & mask(bits)


def float_edges(f):
    s, n = f.sign, f.min_normal
    one, ulp = f.one, 1
    positive = [0, f.inf, one, one + ulp, one - ulp, one + n, n, n - 1, 1, n + 1, f.largest, one - n, one + (n >> 1),
                2, n >> 1, f.largest - 1]
    return positive + [x | s for x in positive] + nans(f)


def nans(f):
    """Quiet and signalling, both signs."""
    return [f.inf | (f.min_normal >> 1), f.inf | 1, f.inf | f.sign | (f.min_normal >> 1) | 5, f.inf | f.sign | 3]


def any_float(r, f):
    """A finite float; most near 1, some anywhere, some subnormal."""
    kind = r.random()
    sign = f.sign if r.random() < 0.5 else 0
    fraction = r.getrandbits(f.fraction_bits)
    if r.random() < 0.3:  # few significant bits: exact results and ties
        fraction &= mask(f.fraction_bits) ^ mask(f.fraction_bits - r.randint(1, 6))
    if kind < 0.6:
        exponent = f.emax + r.randint(-min(f.precision, f.emax - 2), min(f.precision, f.emax - 2))
    elif kind < 0.9:
        exponent = r.randint(1, 2 * f.emax)
    else:
        exponent = 0
        fraction >>= r.randint(0, f.fraction_bits - 1)
    return sign | exponent << f.fraction_bits | fraction


def edges(kind):
    if kind in FORMATS:
        return float_edges(FORMATS[kind])
    if kind == "pred":
        return [0, 1]
    return int_edges(int(kind[1:]))


def pick(r, kind):
    """A random operand of a type, an edge in one case of three."""
    if kind == "pred":
        return r.getrandbits(1)
    if kind in ("f16x2", "bf16x2"):
        half = kind.removesuffix("x2")
        return pick(r, half) | pick(r, half) << 16
    if r.random() < 0.33:
        return r.choice(edges(kind))
    return any_float(r, FORMATS[kind]) if kind in FORMATS else any_int(r, int(kind[1:]))


def pairs(r, kind, random_count, edge_count=None):
    """Pairs of operands: edges against edges, then random ones."""
    e = edges(kind)
    both = [(a, b) for a in e for b in e]
    if edge_count is not None and len(both) > edge_count:
        both = r.sample(both, edge_count)
    return both + [(pick(r, kind), pick(r, kind)) for _ in range(random_count)]
