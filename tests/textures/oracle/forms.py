"""Every form of tex and tld4 in every geometry, every way to name an object, and every trap."""
from fractions import Fraction

import formats
import images
import surfaces
from formats import f16, f32, value
from images import Image, Texture

RGBA = "r:b32 g:b32 b:b32 a:b32"
OUT = "{%r, %g, %b, %a}"
# Powers of two: coordinates with few bits and their products are exact.
SIZES = {"1d": ([8], 0), "2d": ([8, 4], 0), "3d": ([4, 8, 2], 0), "a1d": ([4], 3), "a2d": ([4, 4], 2), "cube": ([4, 4], 0), "acube": ([4, 4], 2)}
ADDR = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"]
ACCESSES = ["variable", "parameter", "address", "parameter_address", "number", "memory"]


class Place:
    """Coordinates of a geometry: how they are written, and random ones with what they mean."""

    def __init__(self, geom, layers, integer=False):
        self.geom, self.layers, self.integer = geom, layers, integer
        self.cube = "cube" in geom
        self.dims = 3 if self.cube else {"1d": 1, "a1d": 1, "3d": 3}.get(geom, 2)
        names = ["x", "y", "z"][:self.dims]
        self.ins = ("i:u32 " if layers else "") + " ".join(n + (":s32" if integer else ":f32") for n in names)
        c = (["%i"] if layers else []) + ["%" + n for n in names]
        c += [c[-1]] * (1 if len(c) == 3 else 0)
        self.tuple = "{" + ", ".join(c) + "}"

    def random(self, r, t):
        """Words, coordinates, plane."""
        size = t.image.size
        layer = r.choice([0, 1, 2, 3, 0xFFFFFFFF]) if self.layers else 0
        head = [layer] if self.layers else []
        layer = min(layer, max(1, self.layers) - 1)
        if self.cube:
            d = [Fraction(r.randrange(-500, 500), 256) for _ in range(3)]
            axis = r.randrange(3)
            d[axis] = Fraction(r.choice([2, -2]))
            plane, u, v = images.face(*d)
            return head + [f32(x) for x in d], [u, v], plane + 6 * layer
        if self.integer:
            c = [r.choice([-1, 0, n - 1, n, n + 3, r.randrange(n)]) for n in size[:self.dims]]
            return head + [x & 0xFFFFFFFF for x in c], c, layer
        scale = 1 if t.normalized else size[0]
        c = [Fraction(r.randrange(-128, 384), 256) * (1 if t.normalized else n) for n in size[:self.dims]]
        return head + [f32(x) for x in c], c, layer

    def gradient(self, t, lod):
        """Two vectors whose longer one is 2^lod texels, as words; for cubes, along an axis that the face does not have as its own."""
        n = t.image.size[0]
        step = Fraction(2) ** lod / (n if t.normalized else 1)
        size = {1: 1, 2: 2}.get(self.dims, 4)
        return [f32(step)] + [0] * (size - 1), [0] * size


def vector(words):
    text = ", ".join("0f%08X" % w for w in words)
    return "{" + text + "}"


def expect(t, place, words, coords, plane, lod, offset, reference):
    if place.integer:
        level = max(0, min(t.image.levels - 1, lod))
        return images.texel(t, coords, plane, offset, level)
    return images.mipmapped(t, Fraction(lod), coords, plane, offset, reference)


def lookups(suite):
    s = suite("form")
    s.covers("tex.base", "tex.level", "tex.grad", "tex.lod_math", "tex.offset", "tex.depth_compare")
    for geom, (size, layers) in SIZES.items():
        r = formats.rng("forms " + geom)
        s.covers("tex." + geom)
        for integer in ([False] if "cube" in geom else [False, True]):
            place = Place(geom, layers, integer)
            for order in ("r", "rgba"):
                im = Image("a", geom, "unorm8" if order == "rgba" else "unorm16", order, size, layers=layers, levels=3)
                s.put(im.text())
                # Repeating and a filter for colours; border and single texels for depths.
                colour = order == "rgba"
                t = Texture(im, True if place.cube else colour and not integer, colour, ("clamp_to_edge",) * 3 if place.cube else (("mirror", "wrap", "wrap") if colour else ("clamp_to_border", "clamp_to_edge", "clamp_ogl")))
                s.put(t.text())
                ctype = "s32" if integer else "f32"
                for mip in ("", ".base", ".level", ".grad"):
                    if mip == ".grad" and place.cube:
                        continue  # level.case has them
                    for shifted in (False, True):
                        if shifted and place.cube:
                            continue
                        for compared in (False, True):
                            if compared and (colour or geom == "3d" or integer):
                                continue
                            for fixed in (0, 1, 2) if mip == ".grad" else (None,):
                                offset = tuple(r.randrange(-8, 8) for _ in range(3)) if shifted else (0, 0, 0)
                                vectors = []
                                for _ in range(4):
                                    words, coords, plane = place.random(r, t)
                                    lod = 0 if mip in ("", ".base") else fixed if fixed is not None else r.choice([-1, 0, 1, 2, 5])
                                    ins = list(words)
                                    if mip == ".level":
                                        ins.append(lod & 0xFFFFFFFF if integer else f32(Fraction(lod)))
                                    reference = None
                                    if compared:
                                        reference = r.choice([Fraction(1, 2), Fraction(r.randrange(0, 65536), 65536)])
                                        ins.append(f32(reference))
                                    vectors.append((ins, expect(t, place, words, coords, plane, lod, offset, reference)))
                                tail = {"": "", ".base": "", ".level": ", %l"}.get(mip)
                                if tail is None:
                                    dx, dy = place.gradient(t, fixed)
                                    tail = f", {vector(dx)}, {vector(dy)}"
                                if shifted:
                                    o = offset[:place.dims] + ((0,) if place.dims == 3 else ())
                                    tail += ", {" + ", ".join(map(str, o)) + "}"
                                tail += ", %f" if compared else ""
                                operands = place.ins + (f" l:{ctype}" if mip == ".level" else "") + (" f:f32" if compared else "")
                                name = f"tex{mip}.{geom}.{ctype} {order}" + (f" offset {offset}" if shifted else "") + (" compare" if compared else "")
                                s.form(name, RGBA, operands, f"tex{mip}.{geom}.v4.f32.{ctype} {OUT}, [t, {place.tuple}]{tail};", vectors)
    # Offsets in registers.
    im = Image("a", "2d", "u32", "rgba", [8, 4])
    s.put(im.text())
    t = Texture(im, addr=("clamp_to_border", "clamp_to_edge", "wrap"))
    s.put(t.text())
    r = formats.rng("forms registers")
    vectors = []
    for _ in range(12):
        c, o = [r.randrange(-2, 10), r.randrange(-2, 6)], [r.randrange(-8, 8), r.randrange(-8, 8)]
        vectors.append(([w & 0xFFFFFFFF for w in c + o], images.texel(t, c, 0, tuple(o) + (0,))))
    s.form("tex.2d offset in registers", RGBA, "x:s32 y:s32 o:s32 p:s32", f"tex.2d.v4.u32.s32 {OUT}, [t, {{%x, %y}}], {{%o, %p}};", vectors)
    types(s)
    old(s)
    s.save()


def types(s):
    """Every destination type in every geometry and with every kind of level."""
    s.covers("tex.dtype_f16", "tex.v2_f16x2")
    for geom, (size, layers) in list(SIZES.items()) + [("2dms", ([4, 2], 0)), ("a2dms", ([4, 2], 2))]:
        r = formats.rng("types " + geom)
        samples = 4 if "ms" in geom else 0
        for ty, dtypes in (("unorm8", ("f16", "f16x2")), ("s16", ("s32",)), ("u8", ("u32",)), ("float", ("f32",))):
            if ty == "float" and not samples:
                continue
            im = Image("a", geom, ty, "rgba", size, layers=layers, samples=samples, levels=1 if samples else 2)
            s.put(im.text())
            t = Texture(im, "cube" in geom)
            s.put(t.text())
            for dtype in dtypes:
                for mip in ("", ".base") if samples else ("", ".level", ".grad"):
                    if mip == ".grad" and "cube" in geom:
                        continue
                    place = Place(geom, layers, bool(samples))
                    vectors = []
                    lod = 0 if mip in ("", ".base") else 1
                    for _ in range(5):
                        if samples:
                            i, k, c = r.randrange(3), r.randrange(5), [r.randrange(-1, 5), r.randrange(-1, 3)]
                            ins = ([i] if layers else []) + [k] + [x & 0xFFFFFFFF for x in c]
                            texel = images.texel(t, c, min(i, max(1, layers) - 1) * 4 + min(k, 3))
                        else:
                            ins, c, plane = place.random(r, t)
                            texel = images.mipmapped(t, Fraction(lod), c, plane)
                        if dtype == "f16":
                            texel = [f16(value(c)) for c in texel]
                        elif dtype == "f16x2":
                            h = [f16(value(c)) for c in texel]
                            texel = [h[1] << 16 | h[0], h[3] << 16 | h[2]]
                        vectors.append((ins, texel))
                    if samples:
                        operands = ("i:u32 " if layers else "") + "k:u32 x:s32 y:s32"
                        c, ctype = ("{%i, %k, %x, %y}" if layers else "{%k, %x, %y, %y}"), "s32"
                    else:
                        operands, c, ctype = place.ins, place.tuple, "f32"
                    tail = ""
                    if mip == ".level":
                        tail = ", 0f3F800000"
                    if mip == ".grad":
                        dx, dy = place.gradient(t, 1)
                        tail = f", {vector(dx)}, {vector(dy)}"
                    results = {"f16": "r:b16 g:b16 b:b16 a:b16", "f16x2": "p:b32 q:b32"}.get(dtype, RGBA)
                    d, vec = ("{%p, %q}", "v2") if dtype == "f16x2" else (OUT, "v4")
                    s.form(f"tex{mip}.{geom} {dtype}", results, operands, f"tex{mip}.{geom}.{vec}.{dtype}.{ctype} {d}, [t, {c}]{tail};", vectors)


def old(s):
    """Old programs: no brackets, four coordinates whatever the geometry."""
    s.covers("tex.compat")
    for geom, size in (("1d", [8]), ("2d", [8, 4]), ("3d", [4, 4, 2])):
        im = Image("a", geom, "float", "rgba", size)
        s.put(im.text())
        t = Texture(im)
        s.put(t.text())
        r = formats.rng("old " + geom)
        for integer in (False, True):
            ctype = "s32" if integer else "f32"
            names = ["x", "y", "z"][:len(size)]
            vectors = []
            for _ in range(6):
                c = [r.randrange(-1, n + 1) for n in size]
                vectors.append(([x & 0xFFFFFFFF if integer else f32(Fraction(x)) for x in c], images.texel(t, c)))
            c = ["%" + n for n in names]
            forms = {"{" + ", ".join(c + ["%x"] * (4 - len(c))) + "}"}
            forms.add("{" + ", ".join(c if len(c) < 3 else c + ["%z"]) + "}")
            if len(c) == 1:
                forms.add(c[0])
            for coords in sorted(forms):
                ins = " ".join(n + ":" + ctype for n in names)
                s.form(f"tex.{geom}.{ctype} without brackets", RGBA, ins, f"tex.{geom}.v4.f32.{ctype} {OUT}, t, {coords};", vectors)
                s.form(f"tex.{geom}.{ctype} with padding", RGBA, ins, f"tex.{geom}.v4.f32.{ctype} {OUT}, [t, {coords}];", vectors)


def gathers(suite):
    s = suite("gather_form")
    s.covers("tld4.2d", "tld4.a2d", "tld4.cube", "tld4.acube", "tld4.offset_compare")
    for geom in ("2d", "a2d", "cube", "acube"):
        size, layers = SIZES[geom]
        place = Place(geom, layers)
        r = formats.rng("gathers " + geom)
        for ty, dtype in (("snorm8", "f32"), ("s8", "s32"), ("u16", "u32"), ("unorm16", "f32")):
            depth = ty == "unorm16"
            im = Image("a", geom, ty, "r" if depth else "rgba", size, layers=layers)
            s.put(im.text())
            t = Texture(im, True, True, ("clamp_to_edge",) * 3 if place.cube else ("mirror", "clamp_to_border", "wrap"), compare="greater" if depth else "lequal")
            s.put(t.text())
            for comp in range(1 if depth else 4):
                for shifted in (False, True):
                    if shifted and place.cube:
                        continue
                    offset = (r.randrange(-8, 8), r.randrange(-8, 8)) if shifted else (0, 0)
                    vectors = []
                    for _ in range(5):
                        words, coords, plane = place.random(r, t)
                        reference = Fraction(r.randrange(0, 65536), 65536) if depth else None
                        ins = words + ([f32(reference)] if depth else [])
                        vectors.append((ins, images.gather(t, comp, coords, plane, offset + (0,), reference)))
                    tail = (f", {{{offset[0]}, {offset[1]}}}" if shifted else "") + (", %f" if depth else "")
                    ins = place.ins + (" f:f32" if depth else "")
                    s.form(f"tld4.{'rgba'[comp]}.{geom} {ty}{tail}", RGBA, ins, f"tld4.{'rgba'[comp]}.{geom}.v4.{dtype}.f32 {OUT}, [t, {place.tuple}]{tail};", vectors)
    s.save()


def sampler(linear, addr, force=False, mip=False, compare="lequal"):
    return f"sampler s force={int(force)} filter={'linear' if linear else 'nearest'} addr={','.join(addr)} mip={'linear' if mip else 'nearest'} compare={compare}"


def access(suite):
    s = suite("access")
    r = formats.rng("access")
    s.covers("opq.texref", "opq.pointer", "tex.indirect", "opq.mode_unified")
    im = Image("a", "2d", "unorm8", "rgba", [4, 4], levels=2)
    for way in ACCESSES:
        s.put("access " + way)
        s.put(im.text())
        t = Texture(im, True, True, ("wrap", "clamp_to_border", "wrap"))
        s.put(t.text())
        place = Place("2d", 0)
        picks = [place.random(r, t) for _ in range(4)]
        s.form("tex by " + way, RGBA, place.ins, f"tex.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}];", [(w, images.sample(t, 0, c)) for w, c, _ in picks])
        s.form("tex.level by " + way, RGBA, place.ins, f"tex.level.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}], 0f3F800000;", [(w, images.sample(t, 1, c)) for w, c, _ in picks])
        s.form("tld4 by " + way, RGBA, place.ins, f"tld4.g.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}];", [(w, images.gather(t, 1, c)) for w, c, _ in picks])
        for query, number in (("width", 4), ("channel_order", 0x10B5), ("normalized_coords", 1), ("filter_mode", 1), ("addr_mode_1", 4), ("num_mipmap_levels", 2)):
            s.form(f"txq.{query} by {way}", "d:b32", "x:u32", f"txq.{query}.b32 %d, [t];", [([0], [number])])
        if way not in ("variable", "parameter"):
            is_type(s, "texref")
    s.covers("opq.surfref", "su.indirect", "suq.size", "suq.channel")
    im = Image("a", "2d", "u32", "rg", [4, 2])
    for way in ACCESSES:
        s.put("access " + way)
        s.put(im.text())
        s.put("surface t a level=0")
        memory = surfaces.rows(im)
        at = [(0, 0), (8, 1), (28, 0)]
        read = lambda x, y: int.from_bytes(memory[0][y][x:x + 4], "little")
        s.form("suld by " + way, "d:b32", "x:s32 y:s32", "suld.b.2d.b32.trap %d, [t, {%x, %y}];", [([x, y], [read(x, y)]) for x, y in at])
        for x, y in at:
            memory[0][y][x:x + 4] = (x * 77 + y).to_bytes(4, "little")
        s.form("sust by " + way, "", "x:s32 y:s32 v:b32", "sust.b.2d.b32.trap [t, {%x, %y}], %v;", [([x, y, x * 77 + y], []) for x, y in at], surfaces.flat(memory))
        memory = surfaces.rows(im)
        for x, y in at:
            memory[0][y][x:x + 4] = (read(x, y) + 5 & 0xFFFFFFFF).to_bytes(4, "little")
        s.form("sured by " + way, "", "x:s32 y:s32 v:u32", "sured.b.add.2d.u32.trap [t, {%x, %y}], %v;", [([x, y, 5], []) for x, y in at], surfaces.flat(memory))
        for query, number in (("width", 4), ("height", 2), ("channel_data_type", 0x10DC), ("channel_order", 0x10B2)):
            s.form(f"suq.{query} by {way}", "d:b32", "x:u32", f"suq.{query}.b32 %d, [t];", [([0], [number])])
        if way not in ("variable", "parameter"):
            is_type(s, "surfref")
    s.put("access address")
    s.covers("istypep")
    is_none = lambda name, load: [s.form(f"istypep.{ty} of {name}", "d:b32", "x:b64", f"{{ .reg .pred %q; {load} istypep.{ty} %q, %t; selp.u32 %d, 1, 0, %q; }}", [([0x1234], [0])]) for ty in ("texref", "samplerref", "surfref")]
    is_none("a number", "mov.b64 %t, %x;")
    is_none("null", "mov.u64 %t, 0;")
    is_none("a buffer", "mov.u64 %t, %in;")
    independent(s)
    initial(s)
    later(s)
    s.save()


def is_type(s, have):
    s.covers("istypep")
    for ty in ("texref", "samplerref", "surfref"):
        s.form(f"istypep.{ty} of a {have}", "d:b32", "x:u32", f"{{ .reg .pred %q; istypep.{ty} %q, %t; selp.u32 %d, 1, 0, %q; }}", [([0], [int(ty == have)])])


def independent(s):
    """The texture's own sampler fields do not count; the sampler may force unnormalised coordinates."""
    s.covers("opq.mode_independent", "opq.samplerref", "tex.sampler", "opq.force_unnormalized", "txq.sampler", "txq.force_unnorm")
    r = formats.rng("independent")
    im = Image("a", "2d", "unorm8", "rgba", [4, 4])
    for way in ("variable", "parameter"):
        s.put("access " + way)
        s.put(im.text())
        for normalized in (False, True):
            for force in (False, True):
                for linear in (False, True):
                    addr = (r.choice(ADDR), r.choice(ADDR), r.choice(ADDR))
                    ignored = Texture(im, normalized, not linear, ("clamp_to_border",) * 3)
                    s.put(ignored.text())
                    s.put(sampler(linear, addr, force))
                    t = Texture(im, normalized and not force, linear, addr)
                    place = Place("2d", 0)
                    picks = [place.random(r, t) for _ in range(6)]
                    s.form("tex with a sampler", RGBA, place.ins, f"tex.2d.v4.f32.f32 {OUT}, [t, s, {{%x, %y}}];", [(w, images.sample(t, 0, c)) for w, c, _ in picks])
                    s.form("tld4 with a sampler", RGBA, place.ins, f"tld4.b.2d.v4.f32.f32 {OUT}, [t, s, {{%x, %y}}];", [(w, images.gather(t, 2, c)) for w, c, _ in picks])
                    for query, number in [("filter_mode", int(linear)), ("force_unnormalized_coords", int(force))] + [(f"addr_mode_{i}", ADDR.index(addr[i])) for i in range(3)]:
                        s.form(f"txq.{query} of a sampler", "d:b32", "x:u32", f"txq.{query}.b32 %d, [s];", [([0], [number])])
                    s.form("txq.normalized_coords of a texture", "d:b32", "x:u32", "txq.normalized_coords.b32 %d, [t];", [([0], [int(normalized)])])
        # Old form, and a depth compared by the sampler's function.
        s.form("tex with a sampler, without brackets", RGBA, place.ins, f"tex.2d.v4.f32.f32 {OUT}, t, s, {{%x, %y, %y, %y}};" if way == "variable" else f"tex.2d.v4.f32.f32 {OUT}, t, s, {{%x, %y}};", [(w, images.sample(t, 0, c)) for w, c, _ in picks])
        depth = Image("a", "2d", "unorm16", "r", [4, 4])
        s.put(depth.text())
        s.put(Texture(depth).text())
        s.put(sampler(False, ("wrap",) * 3, compare="gequal"))
        d = Texture(depth, addr=("wrap",) * 3, compare="gequal")
        picks = [place.random(r, d) for _ in range(6)]
        half = f32(Fraction(1, 2))
        s.form("tex with a sampler, compared", RGBA, place.ins, f"tex.2d.v4.f32.f32 {OUT}, [t, s, {{%x, %y}}], 0f3F000000;", [(w, images.sample(d, 0, c, reference=value(half))) for w, c, _ in picks])
        s.form("tex.level with a sampler, compared", RGBA, place.ins, f"tex.level.2d.v4.f32.f32 {OUT}, [t, s, {{%x, %y}}], 0f00000000, {{0, 0}}, 0f3F000000;", [(w, images.sample(d, 0, c, reference=value(half))) for w, c, _ in picks])
    s.put("sampler ")
    s.put("access variable")


def initial(s):
    """What the variable is initialised with holds where the host says nothing."""
    s.covers("opq.init", "opq.filter_linear", "opq.filter_nearest", "opq.normalized_coords", "opq.addr_wrap", "opq.addr_mirror", "opq.addr_clamp_ogl", "opq.addr_clamp_edge", "opq.addr_clamp_border")
    r = formats.rng("initial")
    im = Image("a", "2d", "float", "rg", [4, 4])
    place = Place("2d", 0)
    s.put(im.text())
    s.last.clear()
    s.put("texture t a")
    for k, mode in enumerate(ADDR):
        for linear in (False, True):
            normalized = mode in ("wrap", "mirror") or linear
            other = ADDR[(k + 2) % 5]
            t = Texture(im, normalized, linear, (mode, other, "clamp_to_edge"))
            s.put(f"fields addr_mode_0 = {mode}, addr_mode_1 = {other}, filter_mode = {'linear' if linear else 'nearest'}, normalized_coords = {int(normalized)}")
            picks = [place.random(r, t) for _ in range(6)]
            s.form("tex as initialised", RGBA, place.ins, f"tex.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}];", [(w, images.sample(t, 0, c)) for w, c, _ in picks])
            for query, number in (("filter_mode", int(linear)), ("addr_mode_0", k), ("addr_mode_1", (k + 2) % 5), ("normalized_coords", int(normalized))):
                s.form(f"txq.{query} as initialised", "d:b32", "x:u32", f"txq.{query}.b32 %d, [t];", [([0], [number])])
    # A variable without fields: unnormalised, nearest.
    s.put("fields ")
    t = Texture(im)
    picks = [place.random(r, t) for _ in range(6)]
    s.form("tex without fields", RGBA, place.ins, f"tex.2d.v4.f32.f32 {OUT}, [t, {{%x, %y}}];", [(w, images.sample(t, 0, c)) for w, c, _ in picks])
    # Nothing is bound: the fields alone answer.
    s.put("unbound texref")
    fields = {"width": 640, "height": 480, "depth": 3, "channel_data_type": 0x10D2, "channel_order": 0x10B5, "normalized_coords": 1}
    s.put("fields " + ", ".join(f"{k} = {v}" for k, v in fields.items()))
    for query, number in fields.items():
        s.form(f"txq.{query} of an unbound texture", "d:b32", "x:u32", f"txq.{query}.b32 %d, [t];", [([0], [number])])
    s.put("unbound surfref")
    fields = {"width": 17, "height": 5, "channel_data_type": 0x10DE, "channel_order": 0x10B0}
    s.put("fields " + ", ".join(f"{k} = {v}" for k, v in fields.items()))
    for query, number in fields.items():
        s.form(f"suq.{query} of an unbound surface", "d:b32", "x:u32", f"suq.{query}.b32 %d, [t];", [([0], [number])])
    s.put("fields ")


def later(s):
    """A later launch sees what an earlier one stored, as a surface and as a texture."""
    s.covers("mach.tex_coherence", "mach.persistence")
    for geom, size, layers, levels in (("1d", [8], 0, 2), ("2d", [4, 4], 0, 3), ("3d", [4, 2, 2], 0, 2), ("a1d", [4], 3, 1), ("a2d", [4, 2], 2, 2)):
        r = formats.rng("later " + geom)
        im = Image("a", geom, "u32", "r", size, layers=layers, levels=levels)
        level = levels - 1
        s.put(im.text())
        s.put(f"surface t a level={level}")
        w, h, d = im.at(level)
        place = Place(geom, layers, True)
        spots = [(i, x, y, z) for i in range(max(1, layers)) for x in range(w) for y in range(h) for z in range(d)]
        head = lambda i, x, y, z: ([i] if layers else []) + [x, y, z][:place.dims]
        values = {spot: r.getrandbits(32) for spot in spots}
        stores = [(head(i, 4 * x, y, z) + [values[i, x, y, z]], []) for i, x, y, z in spots]
        s.form(f"sust.b.{geom}", "", place.ins + " v:b32", f"sust.b.{geom}.b32.trap [t, {place.tuple}], %v;", stores)
        s.forms_go_on(f"suld.b.{geom}", "d:b32", place.ins, f"suld.b.{geom}.b32.trap %d, [t, {place.tuple}];", [(head(i, 4 * x, y, z), [values[i, x, y, z]]) for i, x, y, z in spots])
        s.put("texture t a normalized=0 filter=nearest addr=wrap,wrap,wrap mip=nearest compare=lequal")
        s.forms_go_on(f"tex.{geom}", "d:b32", place.ins, f"tex.level.{geom}.v4.u32.s32 {{%d, _, _, _}}, [t, {place.tuple}], {level};", [(head(i, x, y, z), [values[i, x, y, z]]) for i, x, y, z in spots])
        s.last.clear()


def traps(suite):
    s = suite("trap")
    s.covers("su.clamp.trap")
    for geom, (size, layers) in surfaces.GEOMS.items():
        im = Image("a", geom, "u32", "r", size, layers=layers)
        s.put(im.text())
        s.put("surface t a level=0")
        place = Place(geom, layers, True)
        w, h, d = im.size
        for unit in ("byte", "sample"):
            scale = 4 if unit == "byte" else 1
            inside = ([0] if layers else []) + [0, 0, 0][:place.dims]
            beyond = []
            for axis, n in enumerate([w * scale, h, d][:place.dims]):
                for value_ in (-scale if axis == 0 else -1, n, n + 1000 * scale, 2 ** 31 - scale if axis == 0 else 2 ** 31 - 1, -2 ** 31):
                    c = list(inside)
                    c[axis + (1 if layers else 0)] = value_ & 0xFFFFFFFF
                    beyond.append(c)
            if layers:
                beyond += [[n] + inside[1:] for n in (layers, layers + 7, 2 ** 32 - 1)]
            trap = [(c, "trap surface_bounds") for c in beyond]
            with_value = [(c + [1], "trap surface_bounds") for c in beyond]
            if unit == "byte":
                s.form(f"suld.b.{geom}", "d:b32", place.ins, f"suld.b.{geom}.b32.trap %d, [t, {place.tuple}];", trap, surfaces.flat(surfaces.rows(im)))
                s.form(f"sust.b.{geom}", "", place.ins + " v:b32", f"sust.b.{geom}.b32.trap [t, {place.tuple}], %v;", with_value, surfaces.flat(surfaces.rows(im)))
                # Without a modifier .trap is meant (A140).
                s.form(f"suld.b.{geom} as in the examples", "d:b32", place.ins, f"suld.b.{geom}.b32 %d, [t, {place.tuple}];", trap[:2])
                # The last bytes of a row are not enough for a wide access.
                wide = ([0] if layers else []) + [(w * 4 - 4) // 8 * 8] + [0, 0][:place.dims - 1]
                if wide[1 if layers else 0] + 8 > w * 4:
                    s.form(f"suld.b.{geom} at the end of a row", "d:b64", place.ins, f"suld.b.{geom}.b64.trap %d, [t, {place.tuple}];", [(wide, "trap surface_bounds")])
            if geom in ("1d", "2d", "3d"):
                u = "b" if unit == "byte" else "p"
                ctype = "u32" if unit == "byte" else "b32"
                s.form(f"sured.{u}.{geom}", "", place.ins + f" v:{ctype}", f"sured.{u}.add.{geom}.{ctype}.trap [t, {place.tuple}], %v;", with_value, surfaces.flat(surfaces.rows(im)))
                if unit == "sample":
                    s.form(f"sust.p.{geom}", "", place.ins + " v:b32", f"sust.p.{geom}.b32.trap [t, {place.tuple}], %v;", with_value, surfaces.flat(surfaces.rows(im)))
    # Of formats that are no 32-bit integers the manual gives sured.p no meaning.
    im = Image("a", "1d", "float", "r", [4])
    s.put(im.text())
    s.put("surface t a level=0")
    s.form("sured.p of floats", "", "x:s32 v:b32", "sured.p.add.1d.b32.trap [t, {%x}], %v;", [([0, 1], "trap bad_texture")])
    # Bytes that do not begin at a multiple of the access.
    s.form("suld.b misaligned", "d:b32", "x:s32", "suld.b.1d.b32.trap %d, [t, {%x}];", [([1], "trap misaligned"), ([2], "trap misaligned"), ([7], "trap misaligned")])
    # What is not there, or something else.
    s.covers("opq.texref", "opq.surfref", "opq.pointer")
    bad = [([0], "trap bad_texture")]
    lookup = f"tex.1d.v4.f32.s32 {OUT}, [t, {{%x}}];"
    load = "suld.b.1d.b32.trap %r, [t, {%x}];"
    for name, body in (("tex", lookup), ("txq", "txq.width.b32 %r, [t];"), ("tld4", f"tld4.r.2d.v4.f32.f32 {OUT}, [t, {{%x, %x}}];")):
        s.put("unbound texref")
        s.form(name + " of an unbound texture", RGBA, "x:b32", body, bad)
    for name, body in (("suld", load), ("suq", "suq.width.b32 %r, [t];")):
        s.put("unbound surfref")
        s.form(name + " of an unbound surface", RGBA, "x:b32", body, bad)
    s.put("access number")
    s.put("surface t a level=0")
    s.form("tex of a surface", RGBA, "x:b32", lookup, bad)
    s.put(Texture(im).text())
    s.form("suld of a texture", RGBA, "x:b32", load, bad)
    s.form("tex of a number", RGBA, "x:b32", "mov.u64 %t, 4660; " + lookup, bad)
    s.form("tex of null", RGBA, "x:b32", "mov.u64 %t, 0; " + lookup, bad)
    s.form("tex of a buffer", RGBA, "x:b32", "mov.u64 %t, %in; " + lookup, bad)
    s.form("txq of null", RGBA, "x:b32", "mov.u64 %t, 0; txq.width.b32 %r, [t];", bad)
    # The image of another geometry.
    s.put("access variable")
    geoms = {"1d": "{%x}", "2d": "{%x, %x}", "3d": "{%x, %x, %x, %x}", "a1d": "{%x, %x}", "a2d": "{%x, %x, %x, %x}"}
    for have in geoms:
        size, layers = surfaces.GEOMS[have]
        im = Image("a", have, "float", "r", size, layers=layers)
        s.put(im.text())
        for kind in ("texture", "surface"):
            s.put(Texture(im).text() if kind == "texture" else "surface t a level=0")
            for want, c in geoms.items():
                if want == have:
                    continue
                body = f"tex.{want}.v4.f32.s32 {OUT}, [t, {c}];" if kind == "texture" else f"suld.b.{want}.b32.trap %r, [t, {c}];"
                s.form(f"{want} access of a {have} {kind}", RGBA, "x:b32", body, bad)
    s.save()


def write(suite):
    lookups(suite)
    gathers(suite)
    access(suite)
    traps(suite)
