"""Writes the texture and surface cases: python3 gen.py. No value comes from ptxvm."""
import pathlib
import struct
from fractions import Fraction

import formats
import images
from formats import ORDERS, PACKED, TYPES, f16, f32, value
from images import Image, Texture

HERE = pathlib.Path(__file__).resolve().parent.parent
ADDR = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"]


class Suite:
    def __init__(self, name):
        self.name, self.lines, self.last = name, [], {}

    def put(self, text):
        key = text.split()[0]
        key = "bound" if key in ("texture", "surface", "unbound") else key
        if key == "array":
            self.last.pop("bound", None)
        if self.last.get(key) != text:
            self.lines.append(text)
            self.last[key] = text

    def covers(self, *ids):
        """The features that the forms after it execute."""
        self.lines.append("# covers: " + " ".join(ids))

    def forms_go_on(self, name, results, operands, body, vectors, after=None):
        """A form that works on the array as the form before it left it."""
        self.form(name, results, operands, body, vectors, after, "then")

    def form(self, name, results, operands, body, vectors, after=None, word="form"):
        """A vector is a list of operands, and a list of results or the trap that must come."""
        self.lines.append(f"{word} {name} | {results} | {operands} | {body}")
        for ins, outs in vectors:
            text = lambda w: w if isinstance(w, str) else "%08x" % (w & 0xFFFFFFFFFFFFFFFF)
            outs = outs if isinstance(outs, str) else " ".join(text(w) for w in outs)
            self.lines.append((" ".join(text(w) for w in ins) + " = " + outs).strip())
        if after is not None:
            self.lines.append("after " + after)

    def save(self):
        (HERE / (self.name + ".case")).write_text("# Written by oracle/gen.py; see README.md.\n" + "\n".join(self.lines) + "\n")


RGBA = "r:b32 g:b32 b:b32 a:b32"
OUT = "{%r, %g, %b, %a}"


def bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def exact(x):
    """A float near x, as bits and as its exact value."""
    b = bits(float(x))
    return b, value(b)


def floats(r, n, normalized, count):
    """Coordinates at texel edges and centres, inside and outside, and random ones."""
    steps = [Fraction(k, 4) for k in (-4 * n - 2, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 4 * n - 2, 4 * n - 1, 4 * n, 4 * n + 1, 4 * n + 2, 8 * n + 3, 12 * n + 1)]
    out = [exact(s / n if normalized else s) for s in steps]
    # Coordinates that are not exact in binary must not lie where a rounding decides.
    while len(out) < count:
        out.append(exact(r.uniform(-2, 3) * (1 if normalized else n)))
    return out


def lookups():
    s = Suite("lookup")
    s.covers("tex.1d", "tex.2d", "tex.3d", "opq.filter_nearest", "opq.filter_linear", "opq.normalized_coords")
    s.covers("opq.addr_wrap", "opq.addr_mirror", "opq.addr_clamp_ogl", "opq.addr_clamp_edge", "opq.addr_clamp_border")
    sizes = {"1d": [6], "2d": [5, 3], "3d": [4, 3, 2]}
    for geom, size in sizes.items():
        dims = len(size)
        im = Image("a", geom, "unorm8", "rgba", size)
        s.put(im.text())
        xs = ["x", "y", "z"][:dims]
        tuple_ = ", ".join("%" + x for x in xs) + (", _" if False else "")
        pad = ", %z" if dims == 3 else ""
        r = formats.rng("lookup " + geom)
        for mode in ADDR:
            addr = (mode, ADDR[(ADDR.index(mode) + 1) % 5], ADDR[(ADDR.index(mode) + 3) % 5])
            t = Texture(im, addr=addr)
            s.put(t.text())
            vectors = []
            for _ in range(40):
                c = [r.choice([-(2 ** 31), -n - 1, -1, 0, 1, n - 1, n, n + 1, 2 * n, 2 ** 31 - 1, r.randrange(n), r.randrange(n)]) for n in size]
                vectors.append((c, images.texel(t, c)))
            ins = " ".join(x + ":s32" for x in xs)
            s.form(f"tex.{geom}.s32 {mode}", RGBA, ins, f"tex.{geom}.v4.f32.s32 {OUT}, [t, {{{tuple_}{pad}}}];", [([w & 0xFFFFFFFF for w in c], o) for c, o in vectors])
            for normalized in (False, True):
                for linear in (False, True):
                    t = Texture(im, normalized, linear, addr)
                    s.put(t.text())
                    lists = [floats(r, n, normalized, 40) for n in size]
                    for l in lists[1:]:
                        r.shuffle(l)
                    vectors = [([b for b, _ in c], images.sample(t, 0, [v for _, v in c])) for c in zip(*lists)]
                    ins = " ".join(x + ":f32" for x in xs)
                    name = f"tex.{geom}.f32 {mode} {'normalized' if normalized else 'texels'} {'linear' if linear else 'nearest'}"
                    s.form(name, RGBA, ins, f"tex.{geom}.v4.f32.f32 {OUT}, [t, {{{tuple_}{pad}}}];", vectors)
    s.save()


def format_cases():
    s = Suite("format")
    s.covers("opq.channel_data_type", "opq.channel_order", "tex.dtype_f16", "tex.v2_f16x2")
    for ty in TYPES:
        for order in ORDERS:
            if (order != "rgb") and ty in PACKED:
                continue
            im = Image("a", "1d", ty, order, [12])
            s.put(im.text())
            t = Texture(im, linear=True)
            s.put(t.text())
            texels = [images.texel(t, [x]) for x in range(12)]
            dtype = "f32" if formats.is_float(ty) else "u32" if ty[0] == "u" else "s32"
            s.form(f"{ty} {order}", RGBA, "x:s32", f"tex.1d.v4.{dtype}.s32 {OUT}, [t, {{%x}}];", [([x], texels[x]) for x in range(12)])
            r = formats.rng(f"format {ty} {order}")
            cs = [exact(r.uniform(-1, 13)) for _ in range(6)]
            s.form(f"{ty} {order} filtered", RGBA, "x:f32", f"tex.1d.v4.{dtype}.f32 {OUT}, [t, {{%x}}];", [([b], images.sample(t, 0, [v])) for b, v in cs])
            if formats.is_float(ty):
                halves = [[f16(value(c)) for c in texel] for texel in texels]
                s.form(f"{ty} {order} f16", "r:b16 g:b16 b:b16 a:b16", "x:s32", f"tex.1d.v4.f16.s32 {OUT}, [t, {{%x}}];", [([x], halves[x]) for x in range(12)])
                pairs = [[h[1] << 16 | h[0], h[3] << 16 | h[2]] for h in halves]
                s.form(f"{ty} {order} f16x2", "p:b32 q:b32", "x:s32", "tex.1d.v2.f16x2.s32 {%p, %q}, [t, {%x}];", [([x], pairs[x]) for x in range(12)])
    s.save()


def arrays():
    s = Suite("array")
    s.covers("tex.a1d", "tex.a2d", "tex.cube", "tex.acube", "tex.2dms", "tex.a2dms", "tex.offset")
    r = formats.rng("arrays")
    layers = [0, 1, 2, 3, 4, 7, 0xFFFFFFFF]
    layer = lambda i, n: min(i, n - 1)
    im = Image("a", "a1d", "float", "rg", [7], layers=4)
    s.put(im.text())
    for linear in (False, True):
        t = Texture(im, True, linear, ("mirror",) * 3)
        s.put(t.text())
        vectors = []
        for b, v in floats(r, 7, True, 50):
            i = r.choice(layers)
            vectors.append(([i, b], images.sample(t, 0, [v], layer(i, 4))))
        s.form(f"tex.a1d linear={linear}", RGBA, "i:u32 x:f32", f"tex.a1d.v4.f32.f32 {OUT}, [t, {{%i, %x}}];", vectors)
    vectors = [([i, x & 0xFFFFFFFF], images.texel(t, [x], layer(i, 4))) for i in layers for x in (-1, 0, 3, 6, 7)]
    s.form("tex.a1d.s32", RGBA, "i:u32 x:s32", f"tex.a1d.v4.f32.s32 {OUT}, [t, {{%i, %x}}];", vectors)
    im = Image("a", "a2d", "unorm16", "rgba", [4, 5], layers=3)
    s.put(im.text())
    for linear in (False, True):
        t = Texture(im, False, linear, ("clamp_to_border", "clamp_ogl", "wrap"))
        s.put(t.text())
        vectors = []
        for (b, v), (c, w) in zip(floats(r, 4, False, 50), reversed(floats(r, 5, False, 50))):
            i = r.choice(layers)
            vectors.append(([i, b, c], images.sample(t, 0, [v, w], layer(i, 3))))
        s.form(f"tex.a2d linear={linear}", RGBA, "i:u32 x:f32 y:f32", f"tex.a2d.v4.f32.f32 {OUT}, [t, {{%i, %x, %y, %y}}];", vectors)
    vectors = [([i, x & 0xFFFFFFFF, y & 0xFFFFFFFF], images.texel(t, [x, y], layer(i, 3))) for i in layers for x in (-1, 0, 3, 4) for y in (-1, 2, 5)]
    s.form("tex.a2d.s32", RGBA, "i:u32 x:s32 y:s32", f"tex.a2d.v4.f32.s32 {OUT}, [t, {{%i, %x, %y, %y}}];", vectors)

    def direction(r):
        while True:
            d = [exact(r.uniform(-4, 4)) for _ in range(3)]
            m = sorted(abs(v) for _, v in d)
            if m[2] > m[1]:
                return d
    for geom, cubes in (("cube", 0), ("acube", 3)):
        im = Image("a", geom, "unorm8", "rgba", [6, 6], layers=cubes)
        s.put(im.text())
        for linear in (False, True):
            t = Texture(im, True, linear, ("clamp_to_edge", "wrap", "wrap"))
            s.put(t.text())
            vectors = []
            axes = [[exact(a), exact(b), exact(c)] for a, b, c in [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]]
            for d in axes + [direction(r) for _ in range(60)]:
                plane, u, v = images.face(*[x for _, x in d])
                i = r.choice([0, 1, 2, 3, 9]) if cubes else 0
                o = images.sample(t, 0, [u, v], plane + 6 * (min(i, cubes - 1) if cubes else 0)) if near(t, u, v) else None
                if o is None:
                    continue
                vectors.append((([i] if cubes else []) + [b for b, _ in d], o))
            ins = ("i:u32 " if cubes else "") + "x:f32 y:f32 z:f32"
            c = "{%i, %x, %y, %z}" if cubes else "{%x, %y, %z, %z}"
            s.form(f"tex.{geom} linear={linear}", RGBA, ins, f"tex.{geom}.v4.f32.f32 {OUT}, [t, {c}];", vectors)
    for geom, layers_ in (("2dms", 0), ("a2dms", 2)):
        im = Image("a", geom, "s16", "rg", [4, 3], layers=layers_, samples=4)
        s.put(im.text())
        t = Texture(im, addr=("clamp_to_border", "clamp_to_edge", "wrap"))
        s.put(t.text())
        vectors, offsets = [], []
        for _ in range(60):
            i, k, x, y = r.randrange(4), r.randrange(6), r.randrange(-2, 6), r.randrange(-2, 5)
            plane = min(i, max(1, layers_) - 1) * 4 + min(k, 3)
            w = ([i] if layers_ else []) + [k, x & 0xFFFFFFFF, y & 0xFFFFFFFF]
            vectors.append((w, images.texel(t, [x, y], plane)))
            offsets.append((w, images.texel(t, [x, y], plane, (-2, 1))))
        ins = ("i:u32 " if layers_ else "") + "k:u32 x:s32 y:s32"
        c = "{%i, %k, %x, %y}" if layers_ else "{%k, %x, %y, %y}"
        s.form(f"tex.{geom}", RGBA, ins, f"tex.{geom}.v4.s32.s32 {OUT}, [t, {c}];", vectors)
        s.form(f"tex.{geom} offset", RGBA, ins, f"tex.{geom}.v4.s32.s32 {OUT}, [t, {c}], {{-2, 1}};", offsets)
    s.save()


def near(t, u, v):
    """Whether no rounding of the coordinates decides: the weights and texels are the same a little to either side."""
    for c, n in ((u, t.image.size[0]), (v, t.image.size[1])):
        for scale in (n, n * 256):
            for shift in (Fraction(0), Fraction(1, 2)):
                p = c * scale + shift
                if abs(p - round(p)) < Fraction(1, 2 ** 40):
                    # Exact multiples come out exact only where the division does.
                    if p.denominator & (p.denominator - 1):
                        return False
    return True


def levels():
    s = Suite("level")
    s.covers("tex.base", "tex.level", "tex.grad", "tex.lod_math", "tex.offset")
    r = formats.rng("levels")
    im = Image("a", "2d", "unorm8", "rgba", [16, 8], levels=5)
    s.put(im.text())
    for linear, mip in ((False, False), (True, False), (True, True), (False, True)):
        t = Texture(im, True, linear, ("wrap", "mirror", "wrap"), mip)
        s.put(t.text())
        vectors, base = [], []
        lods = [-3, 0, 0.25, 0.49, 0.51, 1, 1.25, 2.75, 3.3, 4, 5, 100, 0.125, 2, 3] + [r.uniform(-1, 5) for _ in range(25)]
        for lod in lods:
            (b, v), (c, w), (l, d) = exact(r.uniform(-1, 2)), exact(r.uniform(-1, 2)), exact(lod)
            vectors.append(([b, c, l], images.mipmapped(t, d, [v, w])))
            base.append(([b, c], images.sample(t, 0, [v, w])))
        s.form(f"tex.level.2d linear={linear} mip={mip}", RGBA, "x:f32 y:f32 l:f32", f"tex.level.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], %l;", vectors)
        s.form(f"tex.base.2d linear={linear} mip={mip}", RGBA, "x:f32 y:f32", f"tex.base.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}];", base)
        s.form(f"tex.level.2d offset linear={linear} mip={mip}", RGBA, "x:f32 y:f32 l:f32", f"tex.level.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], %l, {{-8, 7}};",
               [(i, images.mipmapped(t, value(i[2]), [value(i[0]), value(i[1])], 0, (-8, 7))) for i, _ in vectors])
        # Gradients: lengths whose logarithm is exact, or (without a filter between levels) not near a half.
        vectors = []
        for lod in (-2, 0, 1, 2, 3, 4, 6):
            for flip in (False, True):
                step = Fraction(2) ** lod
                a, z = exact(step / 16), exact(0)
                b2 = exact(step / 8 / 2)
                g = [a, z, z, b2] if flip else [z, b2, a, z]
                (b, v), (c, w) = exact(r.uniform(-1, 2)), exact(r.uniform(-1, 2))
                vectors.append(([b, c] + [x for x, _ in g], images.mipmapped(t, Fraction(lod), [v, w])))
        if not mip:
            for _ in range(30):
                g = [exact(r.uniform(-0.5, 0.5)) for _ in range(4)]
                n = [16, 8, 16, 8]
                square = max(sum((g[i][1] * n[i]) ** 2 for i in (0, 1)), sum((g[i][1] * n[i]) ** 2 for i in (2, 3)))
                # log2(length) rounds to k where 2^(2k-1) < square <= 2^(2k+1).
                k = next(k for k in range(-9, 9) if square <= Fraction(2) ** (2 * k + 1))
                (b, v), (c, w) = exact(r.uniform(-1, 2)), exact(r.uniform(-1, 2))
                vectors.append(([b, c] + [x for x, _ in g], images.mipmapped(t, Fraction(k), [v, w])))
        s.form(f"tex.grad.2d linear={linear} mip={mip}", RGBA, "x:f32 y:f32 p:f32 q:f32 u:f32 v:f32", f"tex.grad.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], {{%p, %q}}, {{%u, %v}};", vectors)
    vectors = [([x & 0xFFFFFFFF, y, l & 0xFFFFFFFF], images.texel(t, [x, y], level=max(0, min(4, l)))) for x in (0, 1, 3, 20, -1) for y in (0, 1, 7) for l in (-1, 0, 1, 2, 4, 5)]
    s.form("tex.level.2d.s32", RGBA, "x:s32 y:s32 l:s32", f"tex.level.2d.v4.f32.s32 {OUT}, [t, {{%x, %y}}], %l;", vectors)
    for geom, size, layers in (("1d", [16], 0), ("3d", [8, 4, 2], 0), ("a1d", [8], 3), ("a2d", [8, 8], 2)):
        im = Image("a", geom, "float", "r", size, layers=layers, levels=4)
        s.put(im.text())
        t = Texture(im, True, True)
        s.put(t.text())
        vectors, grads = [], []
        for lod in (0, 1, 2, 3, 0.3, 1.7):
            for _ in range(5):
                c = [exact(r.uniform(-0.5, 1.5)) for _ in size]
                i = r.randrange(layers + 1) if layers else 0
                plane = min(i, layers - 1) if layers else 0
                head = ([i] if layers else []) + [b for b, _ in c]
                o = images.mipmapped(t, exact(lod)[1], [v for _, v in c], plane)
                vectors.append((head + [exact(lod)[0]], o))
                if lod == int(lod):
                    grads.append((head + [exact(Fraction(2 ** int(lod), size[0]))[0]], o))
        names = ["x", "y", "z"][:len(size)]
        ins = ("i:u32 " if layers else "") + " ".join(n + ":f32" for n in names)
        c = (["%i"] if layers else []) + ["%" + n for n in names]
        c += ["%x"] * (1 if len(c) == 3 else 0)
        c = "{" + ", ".join(c) + "}"
        s.form(f"tex.level.{geom}", RGBA, ins + " l:f32", f"tex.level.{geom}.v4.f32.f32 {OUT}, [t, {c}], %l;", vectors)
        g = {1: "{%l}, {0f00000000}", 2: "{%l, 0f00000000}, {0f00000000, 0f00000000}", 3: "{%l, 0f00000000, 0f00000000, %l}, {0f00000000, 0f00000000, 0f00000000, %l}"}[len(size)]
        s.form(f"tex.grad.{geom}", RGBA, ins + " l:f32", f"tex.grad.{geom}.v4.f32.f32 {OUT}, [t, {c}], {g};", grads)
    for geom, cubes in (("cube", 0), ("acube", 2)):
        im = Image("a", geom, "unorm8", "rgba", [8, 8], layers=cubes, levels=4)
        s.put(im.text())
        t = Texture(im, True, True)
        s.put(t.text())
        vectors, grads = [], []
        for lod in (0, 1, 2, 3):
            for sign in (1, -1):
                for axis in range(3):
                    # |major| is 2, so that every quotient is exact.
                    d = [Fraction(r.randrange(-500, 500), 256) for _ in range(3)]
                    d[axis] = Fraction(2 * sign)
                    plane, u, v = images.face(*d)
                    i = r.randrange(3) if cubes else 0
                    o = images.mipmapped(t, Fraction(lod), [u, v], plane + 6 * (min(i, 1) if cubes else 0))
                    head = ([i] if cubes else []) + [exact(x)[0] for x in d]
                    vectors.append((head + [exact(lod)[0]], o))
                    # A change of a minor axis by g changes the face's coordinate by g / |major| / 2, in texels by 8 g / 4.
                    g = [Fraction(0)] * 3
                    g[(axis + 1) % 3] = Fraction(2 ** lod, 2)
                    grads.append((head + [exact(x)[0] for x in g], o))
        ins = ("i:u32 " if cubes else "") + "x:f32 y:f32 z:f32"
        c = "{%i, %x, %y, %z}" if cubes else "{%x, %y, %z, %z}"
        s.form(f"tex.level.{geom}", RGBA, ins + " l:f32", f"tex.level.{geom}.v4.f32.f32 {OUT}, [t, {c}], %l;", vectors)
        s.form(f"tex.grad.{geom}", RGBA, ins + " p:f32 q:f32 w:f32", f"tex.grad.{geom}.v4.f32.f32 {OUT}, [t, {c}], {{%p, %q, %w, %w}}, {{0f00000000, 0f00000000, 0f00000000, %w}};", grads)
    s.save()


def gathers():
    s = Suite("gather")
    s.covers("tld4.2d", "tld4.a2d", "tld4.cube", "tld4.acube", "tld4.offset_compare")
    r = formats.rng("gathers")
    comp = "rgba"
    for ty, dtype in (("unorm8", "f32"), ("s16", "s32"), ("u32", "u32")):
        im = Image("a", "2d", ty, "rgba", [5, 4])
        s.put(im.text())
        for k, mode in enumerate(ADDR):
            t = Texture(im, k % 2 == 0, False, (mode, ADDR[(k + 2) % 5], "wrap"))
            s.put(t.text())
            c = k % 4
            xs, ys = floats(r, 5, t.normalized, 40), floats(r, 4, t.normalized, 40)
            r.shuffle(ys)
            xy = list(zip(xs, ys))
            # Coordinates are exact where the size is a power of two; elsewhere texel edges are left out.
            xy = [p for p in xy if not t.normalized or near(t, p[0][1], p[1][1])]
            for c in range(4) if k == 0 else [k % 4]:
                s.form(f"tld4.{comp[c]}.2d {ty} {mode}", RGBA, "x:f32 y:f32", f"tld4.{comp[c]}.2d.v4.{dtype}.f32 {OUT}, [t, {{%x, %y}}];",
                       [([x[0], y[0]], images.gather(t, c, [x[1], y[1]])) for x, y in xy])
            s.form(f"tld4.{comp[c]}.2d {ty} {mode} offset", RGBA, "x:f32 y:f32", f"tld4.{comp[c]}.2d.v4.{dtype}.f32 {OUT}, [t, {{%x, %y}}], {{3, -2}};",
                   [([x[0], y[0]], images.gather(t, c, [x[1], y[1]], 0, (3, -2))) for x, y in xy])
    im = Image("a", "a2d", "unorm8", "rgba", [4, 4], layers=3)
    s.put(im.text())
    t = Texture(im, False, True, ("clamp_to_border", "clamp_to_edge", "wrap"))
    s.put(t.text())
    vectors = []
    for x, y in zip(floats(r, 4, False, 40), reversed(floats(r, 4, False, 40))):
        i = r.randrange(5)
        vectors.append(([i, x[0], y[0]], images.gather(t, 1, [x[1], y[1]], min(i, 2))))
    s.form("tld4.g.a2d", RGBA, "i:u32 x:f32 y:f32", f"tld4.g.a2d.v4.f32.f32 {OUT}, [t, {{%i, %x, %y, %y}}];", vectors)
    for geom, cubes in (("cube", 0), ("acube", 2)):
        im = Image("a", geom, "unorm8", "rgba", [4, 4], layers=cubes)
        s.put(im.text())
        t = Texture(im, True)
        s.put(t.text())
        vectors = []
        for axis in range(3):
            for sign in (1, -1):
                for _ in range(8):
                    d = [Fraction(r.randrange(-500, 500), 256) for _ in range(3)]
                    d[axis] = Fraction(2 * sign)
                    plane, u, v = images.face(*d)
                    i = r.randrange(3) if cubes else 0
                    vectors.append((([i] if cubes else []) + [exact(x)[0] for x in d], images.gather(t, 2, [u, v], plane + 6 * (min(i, 1) if cubes else 0))))
        ins = ("i:u32 " if cubes else "") + "x:f32 y:f32 z:f32"
        c = "{%i, %x, %y, %z}" if cubes else "{%x, %y, %z, %z}"
        s.form(f"tld4.b.{geom}", RGBA, ins, f"tld4.b.{geom}.v4.f32.f32 {OUT}, [t, {c}];", vectors)
    s.save()


def depth():
    s = Suite("depth")
    s.covers("tex.depth_compare", "tex.offset", "tld4.offset_compare")
    r = formats.rng("depth")
    im = Image("a", "2d", "unorm16", "r", [4, 4])
    s.put(im.text())
    stored = [value(formats.decode("unorm16", "r", im.bytes_at(0, x, y, 0))[0]) for x in range(4) for y in range(4)]
    for compare in ("lequal", "less", "equal", "greater", "notequal", "gequal", "never", "always"):
        for linear in (False, True):
            t = Texture(im, False, linear, ("clamp_to_edge", "clamp_to_border", "wrap"), compare=compare)
            s.put(t.text())
            xy = list(zip(floats(r, 4, False, 30), reversed(floats(r, 4, False, 30))))
            vectors, gathered, moved = [], [], []
            for x, y in xy:
                f = exact(r.choice(stored + [Fraction(1, 2)]))
                w = [x[0], y[0], f[0]]
                vectors.append((w, images.sample(t, 0, [x[1], y[1]], reference=f[1])))
                moved.append((w, images.sample(t, 0, [x[1], y[1]], 0, (1, -1), f[1])))
                gathered.append((w, images.gather(t, 0, [x[1], y[1]], reference=f[1])))
            s.form(f"tex.2d {compare} linear={linear}", RGBA, "x:f32 y:f32 f:f32", f"tex.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], %f;", vectors)
            s.form(f"tex.2d {compare} offset linear={linear}", RGBA, "x:f32 y:f32 f:f32", f"tex.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], {{1, -1}}, %f;", moved)
            s.form(f"tld4.r.2d {compare} linear={linear}", RGBA, "x:f32 y:f32 f:f32", f"tld4.r.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], %f;", gathered)
    s.save()


if __name__ == "__main__":
    import forms
    import surfaces

    lookups()
    format_cases()
    arrays()
    levels()
    gathers()
    depth()
    surfaces.write(Suite)
    forms.write(Suite)
