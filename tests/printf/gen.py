"""Writes printf.tsv: formats, arguments, and what the C library prints: python3 gen.py. Fixed seed; no value comes from ptxvm."""
import ctypes
import pathlib
import random
import struct

HERE = pathlib.Path(__file__).resolve().parent
LIBC = ctypes.CDLL(None)
R = random.Random("printf")


def flags(allowed):
    return "".join(R.sample(allowed, R.randrange(0, min(3, len(allowed)) + 1)))


def spec(allowed, precisions):
    """Flags, width and precision, and the arguments that `*` takes."""
    args, text = [], "%" + flags(allowed)
    width = R.choice(["", "", str(R.randrange(1, 30)), "*"])
    if width == "*":
        args.append(("w", R.randrange(-20, 20)))
    text += width
    precision = R.choice(["", "", ".", "." + str(R.choice(precisions)), ".*"])
    if precision == ".*":
        args.append(("w", R.choice([-1, *precisions])))
    return text + precision, args


def integer():
    conversion = R.choice("diuoxX")
    allowed = {"d": "-+ 0", "i": "-+ 0", "u": "-0"}.get(conversion, "-#0")
    text, args = spec(allowed, [0, 1, 3, 8, 20])
    length = R.choice(["", "hh", "h", "l", "ll", "j", "z", "t"])
    long = length not in ("", "hh", "h")
    bits = 64 if long else 32
    value = R.choice([0, 1, -1, 7, 255, 256, 2**31, 2**31 - 1, -(2**31), 2**63, R.getrandbits(64), R.getrandbits(32), R.getrandbits(12)])
    return text + length + conversion, args + [("l" if long else "w", value % 2**bits)]


def real():
    conversion = R.choice("fFeEgGaA")
    text, args = spec("-+ #0", [0, 1, 2, 5, 6, 10, 17, 30])
    kind = R.random()
    if kind < 0.15:
        value = R.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 1e15, 1e16, 123456.5, 999999.5, 9.5, 99.5, 0.00001, 0.0001, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308])
    elif kind < 0.6:
        value = R.uniform(-1000, 1000)
    elif kind < 0.8:
        value = round(R.uniform(-100, 100) * 4) / 4
    else:
        value = struct.unpack("<d", struct.pack("<Q", R.getrandbits(63)))[0]
        value = 1.0 if value != value else value
    if conversion in "gG" and "#" in text and value in (9.5, 99.5, 999999.5):
        value = 1.0  # where rounding adds a digit, glibc 2.36 loses the zeros that the standard keeps
    return text + conversion, args + [("f", value)]


def text():
    allowed = "-"
    if R.random() < 0.4:
        width = R.choice(["", str(R.randrange(1, 9))])
        return "%" + flags(allowed) + width + "c", [("w", R.choice(b"azAZ09~"))]
    head, args = spec(allowed, [0, 1, 3, 10])
    return head + "s", args + [("s", R.choice(["", "a", "word", "several words"]))]


def line():
    pieces = [R.choice([integer, real, real, text])() for _ in range(R.randrange(1, 4))]
    between = R.choice(["|", ", ", "%%", ""])
    return between.join(p for p, _ in pieces), [a for _, args in pieces for a in args]


def run(form, args):
    c = {"w": lambda v: ctypes.c_int(v if v < 2**31 else v - 2**32), "l": ctypes.c_ulonglong, "f": ctypes.c_double, "s": lambda v: ctypes.c_char_p(v.encode())}
    buffer = ctypes.create_string_buffer(1 << 14)
    LIBC.snprintf(buffer, ctypes.c_size_t(1 << 14), form.encode(), *(c[k](v) for k, v in args))
    return buffer.value.decode()


def main():
    out = ["# format, arguments (w: 32 bits, l: 64, f: double, s: text), what glibc 2.36 prints; written by gen.py"]
    word = {"w": lambda v: "%08x" % (v % 2**32), "l": lambda v: "%016x" % v, "f": lambda v: "%016x" % struct.unpack("<Q", struct.pack("<d", v))[0], "s": str}
    for _ in range(1500):
        form, args = line()
        out.append("\t".join([form, ";".join(k + word[k](v) for k, v in args), run(form, args)]))
    (HERE / "printf.tsv").write_text("\n".join(out) + "\n")


main()
