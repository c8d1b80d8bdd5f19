"""Images and lookups after the manual and OpenGL 4.6 chapter 8, in exact fractions."""
from fractions import Fraction

import formats
from formats import value

HALF = Fraction(1, 2)


class Image:
    """Levels of planes of rows of texels (bytes)."""

    def __init__(self, name, geom, ty, order, size, layers=0, levels=1, samples=0):
        self.name, self.geom, self.ty, self.order = name, geom, ty, order
        self.size, self.layers, self.levels, self.samples = size + [1] * (3 - len(size)), layers, levels, samples
        r = formats.rng(f"{name} {geom} {ty} {order} {size} {layers}")
        self.dims = {"1d": 1, "a1d": 1, "3d": 3}.get(geom, 2)
        planes = max(1, layers) * (6 if "cube" in geom else 1) * max(1, samples)
        self.data = []
        for level in range(levels):
            w, h, d = self.at(level)
            count = planes * d
            self.data.append([[[formats.texel(ty, order, r) for _ in range(w)] for _ in range(h)] for _ in range(count)])

    def at(self, level):
        return [max(1, n >> level) for n in self.size]

    def text(self):
        extent = "x".join(str(n) for n in self.size)
        lines = [f"array {self.name} {self.geom} {self.ty} {self.order} {extent} layers={self.layers} levels={self.levels} samples={self.samples}"]
        lines += ["level " + self.hex(level) for level in range(self.levels)]
        return "\n".join(lines)

    def hex(self, level=0):
        return "".join(t.hex() for plane in self.data[level] for row in plane for t in row)

    def bytes_at(self, level, x, y, plane):
        return self.data[level][plane][y][x]


class Texture:
    """An image with sampler state."""

    def __init__(self, image, normalized=False, linear=False, addr=("clamp_to_edge",) * 3, mip_linear=False, compare="lequal"):
        self.image, self.normalized, self.linear, self.addr = image, normalized, linear, addr
        self.mip_linear, self.compare = mip_linear, compare

    def text(self, name="t"):
        return (f"texture {name} {self.image.name} normalized={int(self.normalized)} filter={'linear' if self.linear else 'nearest'} "
                f"addr={','.join(self.addr)} mip={'linear' if self.mip_linear else 'nearest'} compare={self.compare}")


def wrap(mode, i, n, normalized):
    """OpenGL table 8.20; None is the border. Repetition without normalised coordinates is clamping (A30)."""
    if mode in ("wrap", "mirror") and not normalized:
        mode = "clamp_to_edge"
    if mode == "wrap":
        return i % n
    if mode == "mirror":
        mirror = lambda a: a if a >= 0 else -(1 + a)
        return (n - 1) - mirror(i % (2 * n) - n)
    if mode == "clamp_to_edge":
        return max(0, min(n - 1, i))
    return i if 0 <= i < n else None


def fetch(t, level, index, plane, reference=None):
    image = t.image
    dims = image.dims
    if any(i is None for i in index[:dims]):
        data = bytes(formats.texel_bytes(image.ty, image.order))
    else:
        x = index[0]
        y = index[1] if dims > 1 else 0
        data = image.bytes_at(level, x, y, index[2] if dims > 2 else plane)
    texel = formats.decode(image.ty, image.order, data)
    if reference is not None:
        holds = {"lequal": lambda a, b: a <= b, "less": lambda a, b: a < b, "equal": lambda a, b: a == b, "greater": lambda a, b: a > b,
                 "notequal": lambda a, b: a != b, "gequal": lambda a, b: a >= b, "never": lambda a, b: False, "always": lambda a, b: True}[t.compare]
        assert image.order == "r"
        texel = [0x3F800000 if holds(reference, value(texel[0])) else 0] + texel[1:]
    return texel


def position(t, d, n, c, offset):
    return (c * n if t.normalized else c) + offset


def sample(t, level, coords, plane=0, offset=(0, 0, 0), reference=None):
    """One level at floating-point coordinates (fractions)."""
    image, dims = t.image, t.image.dims
    size = image.at(level)
    choices = []
    for d in range(dims):
        n = size[d]
        p = position(t, d, n, coords[d], offset[d])
        if t.linear and formats.is_float(image.ty):
            if t.addr[d] == "clamp_ogl":
                p = max(Fraction(0), min(Fraction(n), p))
            i = (p - HALF).__floor__()
            alpha = Fraction(((p - HALF - i) * 256 + HALF).__floor__(), 256)
            pairs = [(i, 1 - alpha), (i + 1, alpha)]
            choices.append([(wrap(t.addr[d], j, n, t.normalized), w) for j, w in pairs if w])
        else:
            mode = "clamp_to_edge" if t.addr[d] == "clamp_ogl" else t.addr[d]
            choices.append([(wrap(mode, p.__floor__(), n, t.normalized), Fraction(1))])
    corners = [([], Fraction(1))]
    for choice in choices:
        corners = [(index + [i], w * v) for index, w in corners for i, v in choice]
    if len(corners) == 1:
        return fetch(t, level, corners[0][0], plane, reference)
    total = [Fraction(0)] * 4
    for index, w in corners:
        texel = fetch(t, level, index, plane, reference)
        total = [a + w * value(c) for a, c in zip(total, texel)]
    return [formats.f32(a) for a in total]


def texel(t, coords, plane=0, offset=(0, 0, 0), level=0):
    """At integer coordinates: no filter, not normalised."""
    size = t.image.at(level)
    index = []
    for d in range(t.image.dims):
        mode = "clamp_to_edge" if t.addr[d] == "clamp_ogl" else t.addr[d]
        index.append(wrap(mode, coords[d] + offset[d], size[d], False))
    return fetch(t, level, index, plane)


def mipmapped(t, lod, coords, plane=0, offset=(0, 0, 0), reference=None):
    """At a level of detail."""
    lod = max(Fraction(0), min(Fraction(t.image.levels - 1), lod))
    if t.mip_linear:
        first = lod.__floor__()
        alpha = Fraction(((lod - first) * 256 + HALF).__floor__(), 256)
        a = sample(t, first, coords, plane, offset, reference)
        if alpha == 0:
            return a
        b = sample(t, first + 1, coords, plane, offset, reference)
        return [formats.f32((1 - alpha) * value(x) + alpha * value(y)) for x, y in zip(a, b)]
    level = (lod + HALF).__ceil__() - 1
    return sample(t, level, coords, plane, offset, reference)


def gather(t, component, coords, plane=0, offset=(0, 0, 0), reference=None):
    """tld4: (i0,j1) (i1,j1) (i1,j0) (i0,j0)."""
    index = []
    for d in range(2):
        n = t.image.size[d]
        p = position(t, d, n, coords[d], offset[d])
        if t.addr[d] == "clamp_ogl":
            p = max(Fraction(0), min(Fraction(n), p))
        i = (p - HALF).__floor__()
        index.append([wrap(t.addr[d], i, n, t.normalized), wrap(t.addr[d], i + 1, n, t.normalized)])
    (i0, i1), (j0, j1) = index
    return [fetch(t, 0, [i, j], plane, reference)[component] for i, j in [(i0, j1), (i1, j1), (i1, j0), (i0, j0)]]


def face(x, y, z):
    """OpenGL table 8.19: layer, s, t."""
    if abs(x) >= abs(y) and abs(x) >= abs(z):
        layer, sc, tc, ma = (0, -z, -y, x) if x > 0 else (1, z, -y, x)
    elif abs(y) >= abs(z):
        layer, sc, tc, ma = (2, x, z, y) if y > 0 else (3, x, -z, y)
    else:
        layer, sc, tc, ma = (4, x, -y, z) if z > 0 else (5, -x, -y, z)
    return layer, (sc / abs(ma) + 1) / 2, (tc / abs(ma) + 1) / 2
