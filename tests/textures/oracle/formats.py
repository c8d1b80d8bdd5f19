"""Channel formats after OpenCL 1.0: what a texel's bytes are, and the bytes of components. Exact fractions, rounded once to f32."""
import random
import struct
from fractions import Fraction


def f32(x):
    """The f32 nearest to a fraction, ties to even, as its bits. Only for values whose f32 is normal or zero, or subnormal."""
    x = Fraction(x)
    if x == 0:
        return 0
    sign = 0x80000000 if x < 0 else 0
    x = abs(x)
    e = 0
    while x >= 2 ** (e + 1):
        e += 1
    while x < Fraction(2) ** e:
        e -= 1
    e = max(e, -126)
    unit = Fraction(2) ** (e - 23)
    n, rest = divmod(x / unit, 1)
    n = int(n)
    if rest > Fraction(1, 2) or rest == Fraction(1, 2) and n % 2:
        n += 1
    return sign | ((n - 0x800000) + ((e + 127) << 23) if n >= 0x800000 else n)


def value(bits):
    """The fraction that the bits of a finite f32 are."""
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


def f16(x):
    """The f16 nearest to a fraction that a float holds."""
    return struct.unpack("<H", struct.pack("<e", float(x)))[0]


def rint(x):
    """Nearest integer, ties to even."""
    n = x.numerator // x.denominator
    rest = x - n
    return n + (rest > Fraction(1, 2) or rest == Fraction(1, 2) and n % 2 == 1)


TYPES = ["snorm8", "snorm16", "unorm8", "unorm16", "565", "555", "101010", "s8", "s16", "s32", "u8", "u16", "u32", "half", "float"]
ORDERS = ["r", "a", "rg", "ra", "rgb", "rgba", "bgra", "argb", "intensity", "luminance"]
PACKED = {"565": (16, [(11, 5), (5, 6), (0, 5)]), "555": (16, [(10, 5), (5, 5), (0, 5)]), "101010": (32, [(20, 10), (10, 10), (0, 10)])}
WIDTH = {"snorm8": 8, "unorm8": 8, "s8": 8, "u8": 8, "snorm16": 16, "unorm16": 16, "s16": 16, "u16": 16, "half": 16, "s32": 32, "u32": 32, "float": 32}
STORED = {"r": "r", "a": "a", "rg": "rg", "ra": "ra", "rgb": "rgb", "rgba": "rgba", "bgra": "bgra", "argb": "argb", "intensity": "r", "luminance": "r"}


def is_float(ty):
    return ty not in ("s8", "s16", "s32", "u8", "u16", "u32")


def texel_bytes(ty, order):
    return PACKED[ty][0] // 8 if ty in PACKED else WIDTH[ty] // 8 * len(STORED[order])


def component(ty, raw):
    """The 32 bits that a program sees of a stored component."""
    width = WIDTH[ty]
    signed = raw - (1 << width) if raw >> (width - 1) else raw
    if ty.startswith("unorm"):
        return f32(Fraction(raw, (1 << width) - 1))
    if ty.startswith("snorm"):
        return f32(max(Fraction(-1), Fraction(signed, (1 << (width - 1)) - 1)))
    if ty.startswith("s"):
        return signed & 0xFFFFFFFF
    if ty == "half":
        return f32(Fraction(struct.unpack("<e", struct.pack("<H", raw))[0]))
    return raw


def decode(ty, order, data):
    """R, G, B, A as 32 bits each."""
    number = int.from_bytes(data, "little")
    one = 0x3F800000 if is_float(ty) else 1
    if ty in PACKED:
        return [f32(Fraction(number >> at & (1 << n) - 1, (1 << n) - 1)) for at, n in PACKED[ty][1]] + [one]
    width = WIDTH[ty]
    seen = {c: component(ty, number >> width * i & (1 << width) - 1) for i, c in enumerate(STORED[order])}
    if order == "intensity":
        return [seen["r"]] * 4
    if order == "luminance":
        return [seen["r"]] * 3 + [one]
    return [seen.get(c, one if c == "a" else 0) for c in "rgba"]


def store(ty, bits):
    """The stored component that a 32-bit value becomes."""
    width = WIDTH[ty]
    mask = (1 << width) - 1
    if ty in ("u8", "u16", "u32"):
        return min(bits, mask)
    signed = bits - (1 << 32) if bits >> 31 else bits
    if ty in ("s8", "s16", "s32"):
        return max(-(1 << width - 1), min((1 << width - 1) - 1, signed)) & mask
    if ty == "float":
        return bits
    x = value(bits)
    if ty == "half":
        return f16(x)
    if ty.startswith("unorm"):
        return rint(max(Fraction(0), min(Fraction(1), x)) * mask)
    return rint(max(Fraction(-1), min(Fraction(1), x)) * (mask >> 1)) & mask


def encode(ty, order, texel):
    """The bytes of a texel with these components."""
    if ty in PACKED:
        size, places = PACKED[ty]
        number = sum(rint(max(Fraction(0), min(Fraction(1), value(c))) * ((1 << n) - 1)) << at for c, (at, n) in zip(texel, places))
        return number.to_bytes(size // 8, "little")
    width = WIDTH[ty]
    number = sum(store(ty, texel["rgba".index(c)]) << width * i for i, c in enumerate(STORED[order]))
    return number.to_bytes(width // 8 * len(STORED[order]), "little")


def texel(ty, order, r):
    """A random texel. Floats are finite and of moderate size."""
    if ty in PACKED:
        return r.getrandbits(PACKED[ty][0]).to_bytes(PACKED[ty][0] // 8, "little")
    out = b""
    for _ in STORED[order]:
        if ty == "float":
            out += struct.pack("<f", r.uniform(-100, 100))
        elif ty == "half":
            out += struct.pack("<e", r.uniform(-100, 100))
        else:
            out += r.getrandbits(WIDTH[ty]).to_bytes(WIDTH[ty] // 8, "little")
    return out


def rng(name):
    return random.Random("textures " + name)
