"""The constants of `circle.rs`, `power.rs` and `hyperbolic.rs`: python3 coefficients.py prints them.

Each polynomial is a least-squares fit of the weighted error at Chebyshev nodes, which makes the greatest error nearly
minimal. Its coefficients are rounded to singles one at a time, lowest power first; the higher ones are then fitted
again, so that they compensate the rounding. The printed error is that of the polynomial with rounded coefficients in
exact arithmetic.
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 60


def single(x):
    """The single nearest to x."""
    return mp.mpf(float(np.float32(float(x))))


def below(x):
    """The greatest single that is at most x, which is positive."""
    s = single(x)
    return s if s <= x else mp.mpf(float(np.nextafter(np.float32(float(s)), np.float32(0))))


def best(target, weight, low, high, powers):
    """The coefficients of these powers for which the sum of (weight * (polynomial - target))^2 is least."""
    middle, half = (high + low) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / 240) for i in range(120)]
    rows = mp.matrix([[weight(x) * x ** p for p in powers] for x in points])
    return mp.qr_solve(rows, mp.matrix([weight(x) * target(x) for x in points]))[0]


def rounded(target, weight, low, high, powers):
    """As `best`, all coefficients singles, and the greatest |weight * (polynomial - target)|."""
    fixed = []
    for i in range(len(powers)):
        rest = lambda x: target(x) - sum(k * x ** p for k, p in fixed)
        c = best(rest, weight, low, high, powers[i:])
        fixed.append((single(c[0]), powers[i]))
    grid = [low + (high - low) * (2 * i + 1) / 8000 for i in range(4000)]
    error = max(abs(weight(x) * (sum(k * x ** p for k, p in fixed) - target(x))) for x in grid)
    return [k for k, _ in fixed], error


def show(name, constants, error=None):
    print(name, "" if error is None else "relative error 2^%.1f" % float(mp.log(error, 2)))
    for k in constants:
        print("    %-16s f32::from_bits(%#010x)" % (np.float32(float(k)), np.float32(float(k)).view(np.uint32)))


def main():
    half_pi = mp.pi / 2
    first = below(half_pi)
    second = below(half_pi - first)
    third = below(half_pi - first - second)
    show("pi / 2 in three parts, each cut", [first, second, third], abs(half_pi - first - second - third) / half_pi)
    show("2 / pi", [single(2 / mp.pi)])

    # z = r * r; r may be a little over pi / 4, since the quadrant is found in single precision.
    top = mp.mpf("0.79") ** 2
    root = mp.sqrt
    sine = lambda z: (mp.sin(root(z)) / root(z) - 1) / z
    show("sin r = r + r z S(z)", *rounded(sine, lambda z: z * root(z) / mp.sin(root(z)), mp.mpf(0), top, [0, 1, 2]))
    cosine = lambda z: (mp.cos(root(z)) - 1 + z / 2) / z ** 2
    show("cos r = 1 - z / 2 + z z C(z)", *rounded(cosine, lambda z: z ** 2 / mp.cos(root(z)), mp.mpf(0), top, [0, 1, 2]))

    power = lambda f: (mp.mpf(2) ** f - 1) / f
    show("2^f = 1 + f P(f)", *rounded(power, lambda f: f / mp.mpf(2) ** f, mp.mpf(-1) / 2, mp.mpf(1) / 2, [0, 1, 2, 3, 4, 5]))

    high = single(1 / mp.log(2))
    low = single(1 / mp.log(2) - high)
    show("1 / ln 2 in two parts", [high, low])
    lg2 = lambda t: (mp.log(1 + t, 2) / t - high - low) / t
    weight = lambda t: t * t / mp.log(1 + t, 2)
    show("lg2(1 + t) = t high + t (low + t Q(t))", *rounded(lg2, weight, root(mp.mpf("0.5")) - 1, root(mp.mpf(2)) - 1, list(range(9))))

    tangent = lambda z: (mp.tanh(root(z)) / root(z) - 1) / z
    show("tanh r = r + r z T(z)", *rounded(tangent, lambda z: z * root(z) / mp.tanh(root(z)), mp.mpf(0), mp.mpf("0.5625") ** 2, [0, 1, 2, 3, 4]))
    show("2 / ln 2", [single(2 / mp.log(2))])

    print("2 / pi, 320 bits after the binary point")
    mp.mp.dps = 120
    bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 320))
    print("   ", ", ".join("%#010x" % (bits >> (288 - 32 * i) & 0xFFFFFFFF) for i in range(10)))


main()
