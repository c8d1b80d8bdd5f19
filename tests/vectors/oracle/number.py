"""Numbers: two's complement integers and exact IEEE 754 rounding, in Python integers and fractions alone.

A float is worked on as an exact rational (or an infinity, a NaN, a signed zero) and rounded once, by `round_to`.
Sources: PTX ISA 6.4 section 6.5.2 (rounding modifiers), 9.7.3 (.ftz, .sat); IEEE 754-2008.
"""
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt


def mask(bits):
    return (1 << bits) - 1


def wrap(value, bits):
    """The low bits of a value, as an unsigned number."""
    return value & mask(bits)


def signed(value, bits):
    """The low bits of a value, read as two's complement."""
    value &= mask(bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def read(value, kind):
    """The value of the low bits as type `u32`, `s8`, `b64`, ..."""
    bits = int(kind[1:])
    return signed(value, bits) if kind[0] == "s" else wrap(value, bits)


def limits(kind):
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, mask(bits))


def clamp(value, low, high):
    return max(low, min(high, value))


@dataclass(frozen=True)
class Format:
    name: str
    width: int
    precision: int  # bits of the significand, the hidden one included
    emax: int

    @property
    def emin(self):
        return 1 - self.emax

    @property
    def fraction_bits(self):
        return self.precision - 1

    @property
    def sign(self):
        return 1 << (self.width - 1)

    @property
    def inf(self):
        return mask(self.width - self.precision) << self.fraction_bits

    @property
    def one(self):
        return self.emax << self.fraction_bits

    @property
    def largest(self):
        return self.inf - 1

    @property
    def min_normal(self):
        return 1 << self.fraction_bits


F16 = Format("f16", 16, 11, 15)
BF16 = Format("bf16", 16, 8, 127)
F32 = Format("f32", 32, 24, 127)
F64 = Format("f64", 64, 53, 1023)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
NAN = "nan"  # marks a result of which only NaN-ness is specified


def is_nan(bits, f):
    return bits == NAN or bits & ~f.sign > f.inf


def is_inf(bits, f):
    return bits != NAN and bits & ~f.sign == f.inf


def is_zero(bits, f):
    return bits != NAN and bits & ~f.sign == 0


def is_subnormal(bits, f):
    return bits != NAN and 0 < bits & ~f.sign < f.min_normal


def negative(bits, f):
    return bool(bits & f.sign)


def value(bits, f):
    """The exact value of a finite float."""
    magnitude = bits & ~f.sign
    exponent = magnitude >> f.fraction_bits
    significand = magnitude & mask(f.fraction_bits)
    if exponent:
        significand |= f.min_normal
    else:
        exponent = 1
    x = Fraction(significand) * Fraction(2) ** (exponent - f.emax - f.fraction_bits)
    return -x if bits & f.sign else x


def flush(bits, f):
    """A subnormal becomes a zero of its sign."""
    return bits & f.sign if is_subnormal(bits, f) else bits


def floor_log2(x):
    """The exponent of the binade of a positive rational."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def spacing(x, f):
    """The distance of neighbouring floats in the binade of x."""
    e = max(floor_log2(abs(x)), f.emin) if x else f.emin
    return Fraction(2) ** (e - f.fraction_bits)


def round_to(x, f, mode="rn", zero_sign=0):
    """An exact rational, rounded once. A result of exactly 0 has the sign given."""
    if x == 0:
        return f.sign if zero_sign else 0
    sign = f.sign if x < 0 else 0
    up = {"rn": None, "rz": False, "rm": bool(sign), "rp": not sign}[mode]
    e = max(floor_log2(abs(x)), f.emin)
    quotient = abs(x) / Fraction(2) ** (e - f.fraction_bits)
    n, rest = divmod(quotient.numerator, quotient.denominator)
    rest = Fraction(rest, quotient.denominator)
    if up is None:
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n % 2 == 1)
    if rest and up:
        n += 1
    if n >> f.precision:
        n >>= 1
        e += 1
    if e > f.emax:
        overflow = {"rn": f.inf, "rz": f.largest, "rm": f.inf if sign else f.largest, "rp": f.largest if sign else f.inf}
        return sign | overflow[mode]
    if n < f.min_normal:
        return sign | n
    return sign | ((e + f.emax) << f.fraction_bits) + (n - f.min_normal)


def finish(bits, f, ftz=False, sat=False):
    """Flushes, then saturates to [+0, 1] with NaN to +0, a result."""
    if ftz and bits != NAN:
        bits = flush(bits, f)
    if not sat:
        return bits
    if is_nan(bits, f) or negative(bits, f):
        return 0
    return min(bits, f.one)


def is_small(x, f, mode, sign=0):
    """Whether `.ftz` flushes a result with this exact value: it is subnormal when it is rounded to the digits
    of a normal number (reading A178)."""
    scaled = round_to(x * 256, f, mode, sign)
    return not is_inf(scaled, f) and abs(value(scaled, f)) < value(f.min_normal, f) * 256


def inputs(ftz, f, *operands):
    return [flush(x, f) if ftz else x for x in operands]


def zero_sum_sign(a_negative, b_negative, mode):
    """The sign of an exact zero sum."""
    if a_negative == b_negative:
        return int(a_negative)
    return int(mode == "rm")


def fma(a, b, c, f, mode="rn", ftz=False, sat=False):
    a, b, c = inputs(ftz, f, a, b, c)
    bits = _fma(a, b, c, f, mode)
    if ftz and bits != NAN and bits & ~f.sign == f.min_normal and is_small(value(a, f) * value(b, f) + value(c, f), f, mode):
        bits &= f.sign
    return finish(bits, f, ftz, sat)


def _fma(a, b, c, f, mode):
    if any(is_nan(x, f) for x in (a, b, c)):
        return NAN
    product_negative = negative(a, f) != negative(b, f)
    if is_inf(a, f) or is_inf(b, f):
        if is_zero(a, f) or is_zero(b, f):
            return NAN
        if is_inf(c, f) and negative(c, f) != product_negative:
            return NAN
        return f.inf | (f.sign if product_negative else 0)
    if is_inf(c, f):
        return c
    product = value(a, f) * value(b, f)
    total = product + value(c, f)
    return round_to(total, f, mode, zero_sum_sign(product_negative, negative(c, f), mode) if product == 0 else int(mode == "rm"))


def add(a, b, f, mode="rn", ftz=False, sat=False):
    a, b = inputs(ftz, f, a, b)
    return finish(_add(a, b, f, mode), f, ftz, sat)


def _add(a, b, f, mode):
    if is_nan(a, f) or is_nan(b, f):
        return NAN
    if is_inf(a, f):
        return NAN if is_inf(b, f) and a != b else a
    if is_inf(b, f):
        return b
    if is_zero(a, f) and is_zero(b, f):
        return f.sign if zero_sum_sign(negative(a, f), negative(b, f), mode) else 0
    return round_to(value(a, f) + value(b, f), f, mode, int(mode == "rm"))


def sub(a, b, f, mode="rn", ftz=False, sat=False):
    return add(a, b if is_nan(b, f) else b ^ f.sign, f, mode, ftz, sat)


def mul(a, b, f, mode="rn", ftz=False, sat=False):
    a, b = inputs(ftz, f, a, b)
    bits = _mul(a, b, f, mode)
    if ftz and bits != NAN and bits & ~f.sign == f.min_normal and is_small(value(a, f) * value(b, f), f, mode):
        bits &= f.sign
    return finish(bits, f, ftz, sat)


def _mul(a, b, f, mode):
    if is_nan(a, f) or is_nan(b, f):
        return NAN
    sign = negative(a, f) != negative(b, f)
    if is_inf(a, f) or is_inf(b, f):
        return NAN if is_zero(a, f) or is_zero(b, f) else f.inf | (f.sign if sign else 0)
    return round_to(value(a, f) * value(b, f), f, mode, sign)


def div(a, b, f, mode="rn", ftz=False):
    a, b = inputs(ftz, f, a, b)
    bits = _div(a, b, f, mode)
    if ftz and bits != NAN and bits & ~f.sign == f.min_normal and is_small(value(a, f) / value(b, f), f, mode):
        bits &= f.sign
    return finish(bits, f, ftz)


def _div(a, b, f, mode):
    if is_nan(a, f) or is_nan(b, f):
        return NAN
    sign = f.sign if negative(a, f) != negative(b, f) else 0
    if is_inf(a, f):
        return NAN if is_inf(b, f) else f.inf | sign
    if is_inf(b, f):
        return sign
    if is_zero(b, f):
        return NAN if is_zero(a, f) else f.inf | sign
    return round_to(value(a, f) / value(b, f), f, mode, sign)


def sqrt(a, f, mode="rn", ftz=False):
    (a,) = inputs(ftz, f, a)
    if is_nan(a, f):
        return NAN
    if is_zero(a, f):
        return a
    if negative(a, f):
        return NAN
    if is_inf(a, f):
        return a
    x = value(a, f)
    # x = n / 4^k with n large enough that one sticky bit decides every rounding
    k = 1200
    n = x * 4**k
    assert n.denominator == 1
    n = n.numerator
    root = isqrt(n)
    exact = Fraction(root) if root * root == n else Fraction(2 * root + 1, 2)
    return finish(round_to(exact / 2**k, f, mode), f, ftz)


def convert(a, source, target, mode="rn"):
    """Float to float: one rounding."""
    if is_nan(a, source):
        return NAN
    sign = target.sign if negative(a, source) else 0
    if is_inf(a, source):
        return target.inf | sign
    return round_to(value(a, source), target, mode, sign)


def round_integral(x, mode):
    """A rational, rounded to an integer: rni, rzi, rmi, rpi."""
    floor = x.numerator // x.denominator
    rest = x - floor
    if mode == "rmi" or rest == 0:
        return floor
    if mode == "rpi":
        return floor + 1
    if mode == "rzi":
        return floor if x > 0 else floor + 1
    if rest == Fraction(1, 2):
        return floor + floor % 2
    return floor + int(rest > Fraction(1, 2))


def compare(a, b, op, f):
    """The comparisons of tables 20 to 22."""
    unordered = is_nan(a, f) or is_nan(b, f)
    if op == "num":
        return not unordered
    if op == "nan":
        return unordered
    if unordered:
        return op in ("equ", "neu", "ltu", "leu", "gtu", "geu")
    x, y = (Fraction(0) if is_zero(v, f) else value(v, f) if not is_inf(v, f) else (-1 if negative(v, f) else 1) * Fraction(2) ** 2000 for v in (a, b))
    return relation(x, y, op[:2])


def relation(x, y, op):
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y,
            "lo": x < y, "ls": x <= y, "hi": x > y, "hs": x >= y}[op]


def order_key(bits, f):
    """Places floats (no NaN) on an integer line, -0 just below +0."""
    return -(bits & ~f.sign) - 1 if bits & f.sign else bits
