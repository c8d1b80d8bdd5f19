"""Surface accesses (PTX ISA 9.7.10) and queries, after the manual."""
from itertools import cycle

import formats
from formats import ORDERS, PACKED, TYPES
from images import Image

# Rows of 32 bytes and more hold two accesses of every width.
GEOMS = {"1d": ([3], 0), "2d": ([3, 2], 0), "3d": ([2, 2, 2], 0), "a1d": ([3], 2), "a2d": ([2, 2], 2)}


def rows(im):
    """Bytes of each row, by plane and y."""
    return [[bytearray(b"".join(row)) for row in plane] for plane in im.data[0]]


def flat(all_rows):
    return "".join(row.hex() for plane in all_rows for row in plane)


def locate(clamp, c, size, extent):
    """The place of an access, or None."""
    if 0 <= c and c + size <= extent:
        return c
    if clamp == "zero" or extent < size:
        return None
    c = max(0, min(c, extent - size))
    return c // size * size


def place(im, clamp, geom, coords, size, unit):
    w, h, d = im.size
    x = coords[1] if geom[0] == "a" else coords[0]
    rest = coords[2:] if geom[0] == "a" else coords[1:]
    extent = w * formats.texel_bytes(im.ty, im.order) if unit == "byte" else w
    y, z = (list(rest) + [0, 0])[:2]
    plane = (coords[0], max(1, im.layers)) if geom[0] == "a" else (z, d)
    found = [locate(clamp, x, size, extent), locate(clamp, y, 1, h), locate(clamp, plane[0], 1, plane[1])]
    return None if None in found else found


def coordinates(r, im, geom, size, unit, inside=False):
    w, h, d = im.size
    extent = w * formats.texel_bytes(im.ty, im.order) if unit == "byte" else w
    step = size if unit == "byte" else 1
    last = extent // step - 1
    near = lambda n: r.randrange(n) if inside or r.random() < 0.6 else r.choice([-1, n, n + 1, -(2 ** 31), 2 ** 31 - 1])
    x = r.randrange(last + 1) * step if inside or r.random() < 0.6 else r.choice([-step, (last + 1) * step, (last + 2) * step, -(2 ** 31), 2 ** 31 - step])
    out = [x]
    if geom in ("2d", "3d", "a2d"):
        out.append(near(h))
    if geom == "3d":
        out.append(near(d))
    if geom[0] == "a":
        layer = r.randrange(im.layers) if inside or r.random() < 0.6 else r.choice([im.layers, im.layers + 5, 2 ** 32 - 1])
        out.insert(0, layer)
    return out


NAMES = {"1d": ["x"], "2d": ["x", "y"], "3d": ["x", "y", "z"], "a1d": ["i", "x"], "a2d": ["i", "x", "y"]}


def operands(geom):
    ins = " ".join(n + ":" + ("u32" if n == "i" else "s32") for n in NAMES[geom])
    c = ["%" + n for n in NAMES[geom]]
    if len(c) == 3:
        c.append(c[-1])
    return ins, "{" + ", ".join(c) + "}"


def write(suite):
    s = suite("surface")
    r = formats.rng("surfaces")
    loads, stores = cycle(["", ".ca", ".cg", ".cs", ".cv"]), cycle(["", ".wb", ".cg", ".cs", ".wt"])
    clamps = cycle(["trap", "clamp", "zero"])
    s.covers("su.clamp.trap", "su.clamp.clamp", "su.clamp.zero", "su.cacheop")
    for geom, (size, layers) in GEOMS.items():
        s.covers("suld.b." + geom, "sust.b." + geom)
        im = Image("a", geom, "u32", "rgba", size, layers=layers)
        s.put(im.text())
        s.put("surface t a level=0")
        ins, c = operands(geom)
        for width in (8, 16, 32, 64):
            for vec in (1, 2, 4):
                if width * vec > 128:
                    continue
                bytes_ = width // 8 * vec
                names = ["d", "e", "f", "g"][:vec]
                reg = {8: "b16"}.get(width, f"b{width}")
                results = " ".join(f"{n}:{reg}" for n in names)
                tuple_ = "%d" if vec == 1 else "{" + ", ".join("%" + n for n in names) + "}"
                dot = "" if vec == 1 else f".v{vec}"
                for clamp in ("trap", "clamp", "zero"):
                    cop = next(loads)
                    memory = rows(im)
                    vectors = []
                    for _ in range(7):
                        at = coordinates(r, im, geom, bytes_, "byte", clamp == "trap")
                        p = place(im, clamp, geom, at, bytes_, "byte")
                        data = bytes(bytes_) if p is None else memory[p[2]][p[1]][p[0]:p[0] + bytes_]
                        n = width // 8
                        vectors.append(([w & 0xFFFFFFFF for w in at], [int.from_bytes(data[i * n:i * n + n], "little") for i in range(vec)]))
                    s.form(f"suld.b.{geom} b{width} v{vec} {clamp}", results, ins, f"suld.b.{geom}{cop}{dot}.b{width}.{clamp} {tuple_}, [t, {c}];", vectors)
                    # Stores: each place at most once, so that no order decides.
                    cop = next(stores)
                    taken, vectors = set(), []
                    for _ in range(7):
                        at = coordinates(r, im, geom, bytes_, "byte", clamp == "trap")
                        p = place(im, clamp, geom, at, bytes_, "byte")
                        if p is not None and tuple(p) in taken:
                            continue
                        values = [r.getrandbits(width) for _ in range(vec)]
                        if p is not None:
                            taken.add(tuple(p))
                            memory[p[2]][p[1]][p[0]:p[0] + bytes_] = b"".join(v.to_bytes(width // 8, "little") for v in values)
                        vectors.append(([w & 0xFFFFFFFF for w in at] + values, []))
                    values = " ".join(f"{n}:{reg}" for n in names)
                    s.form(f"sust.b.{geom} b{width} v{vec} {clamp}", "", ins + " " + values, f"sust.b.{geom}{cop}{dot}.b{width}.{clamp} [t, {c}], {tuple_};", vectors, flat(memory))
    for geom in ("1d", "2d", "3d"):
        size, _ = GEOMS[geom]
        ins, c = operands(geom)
        s.covers("sured.b.add", "sured.b.minmax", "sured.b.andor", "sured.p")
        for op, types in (("add", ["u32", "s32", "u64"]), ("min", ["u32", "s32"]), ("max", ["u32", "s32"]), ("and", ["b32"]), ("or", ["b32"])):
            for ty in types:
                for clamp in ("trap", "clamp", "zero"):
                    im = Image("a", geom, "u32", "rg", size)
                    s.put(im.text())
                    s.put("surface t a level=0")
                    width = int(ty[1:])
                    bytes_ = width // 8
                    memory, vectors = rows(im), []
                    for _ in range(10):
                        at = coordinates(r, im, geom, bytes_, "byte", clamp == "trap")
                        b = r.getrandbits(width)
                        p = place(im, clamp, geom, at, bytes_, "byte")
                        if p is not None:
                            row = memory[p[2]][p[1]]
                            old = int.from_bytes(row[p[0]:p[0] + bytes_], "little")
                            row[p[0]:p[0] + bytes_] = reduce(op, ty, old, b).to_bytes(bytes_, "little")
                        vectors.append(([w & 0xFFFFFFFF for w in at] + [b], []))
                    s.form(f"sured.b.{op}.{geom}.{ty} {clamp}", "", ins + f" v:{ty}", f"sured.b.{op}.{geom}.{ty}.{clamp} [t, {c}], %v;", vectors, flat(memory))
            for channel in ("u32", "s32"):
                for clamp in ("trap", "clamp", "zero"):
                    im = Image("a", geom, channel, "r", size)
                    s.put(im.text())
                    memory, vectors = rows(im), []
                    for _ in range(10):
                        at = coordinates(r, im, geom, 1, "sample", clamp == "trap")
                        b = r.getrandbits(32)
                        p = place(im, clamp, geom, at, 1, "sample")
                        if p is not None:
                            row = memory[p[2]][p[1]]
                            old = int.from_bytes(row[4 * p[0]:4 * p[0] + 4], "little")
                            row[4 * p[0]:4 * p[0] + 4] = reduce(op, channel, old, b).to_bytes(4, "little")
                        vectors.append(([w & 0xFFFFFFFF for w in at] + [b], []))
                    s.form(f"sured.p.{op}.{geom} {channel} {clamp}", "", ins + " v:b32", f"sured.p.{op}.{geom}.b32.{clamp} [t, {c}], %v;", vectors, flat(memory))
        s.covers("sust.p", "opq.channel_data_type", "opq.channel_order")
        for ty in TYPES:
            for order in ORDERS:
                if ty in PACKED and order != "rgb" or order not in ("rgba", "rgb" if ty in PACKED else "argb") and geom != "1d":
                    continue
                im = Image("a", geom, ty, order, size)
                s.put(im.text())
                s.put("surface t a level=0")
                vec = {1: 1, 2: 2}.get(0 if ty in PACKED else len(formats.STORED[order]), 4)
                # A component that the sample has must be in the vector, else it is unpredictable (A142).
                if any("rgba".index(x) >= vec for x in formats.STORED[order]):
                    vec = 4
                clamp = next(clamps)
                memory, taken, vectors = rows(im), set(), []
                n = formats.texel_bytes(ty, order)
                for _ in range(8):
                    at = coordinates(r, im, geom, 1, "sample", clamp == "trap")
                    p = place(im, clamp, geom, at, 1, "sample")
                    if p is not None and tuple(p) in taken:
                        continue
                    values = [component(r, ty) for _ in range(vec)]
                    if p is not None:
                        taken.add(tuple(p))
                        memory[p[2]][p[1]][n * p[0]:n * p[0] + n] = formats.encode(ty, order, values + [0] * (4 - vec))
                    vectors.append(([w & 0xFFFFFFFF for w in at] + values, []))
                names = ["d", "e", "f", "g"][:vec]
                tuple_ = "%d" if vec == 1 else "{" + ", ".join("%" + x for x in names) + "}"
                dot = "" if vec == 1 else f".v{vec}"
                s.form(f"sust.p.{geom} {ty} {order} {clamp}", "", ins + " " + " ".join(x + ":b32" for x in names), f"sust.p.{geom}{dot}.b32.{clamp} [t, {c}], {tuple_};", vectors, flat(memory))
    s.save()
    queries(suite)


def component(r, ty):
    if not formats.is_float(ty):
        return r.choice([0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2 ** 31, 2 ** 32 - 1, r.getrandbits(32)])
    if ty == "half":
        return formats.f32(formats.value(r.choice([0x3F800000, 0x42C80000])) * r.randrange(-4000, 4000) / 4093)
    return formats.f32(r.choice([0, 1, -1, 2, -3]) if r.random() < 0.3 else formats.value(0x3F800000) * r.randrange(-70000, 70000) / 65536)


def reduce(op, ty, a, b):
    bits = int(ty[1:])
    mask = (1 << bits) - 1
    if op == "add":
        return a + b & mask
    if op in ("and", "or"):
        return a & b if op == "and" else a | b
    key = (lambda v: v - (1 << bits) if v >> (bits - 1) else v) if ty[0] == "s" else (lambda v: v)
    return (min if op == "min" else max)(a, b, key=key)


def queries(suite):
    s = suite("query")
    s.covers("txq.width", "txq.channel", "txq.normalized", "txq.array_size", "txq.mipmap_levels", "txq.num_samples", "txq.level", "txq.sampler")
    s.covers("suq.size", "suq.channel", "suq.array_size", "suq.memory_layout", "opq.width_height_depth", "opq.array_size", "opq.num_mipmap_levels", "opq.num_samples")
    number = lambda table, base, name: base + table.index(name)
    shapes = [("1d", [13], 0, 1, 0), ("2d", [7, 5], 0, 3, 0), ("3d", [6, 5, 4], 0, 1, 0), ("a1d", [9], 4, 1, 0), ("a2d", [8, 4], 3, 4, 0), ("cube", [4, 4], 0, 1, 0), ("acube", [4, 4], 2, 1, 0), ("2dms", [4, 3], 0, 1, 8), ("a2dms", [4, 3], 5, 1, 2)]
    addr = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"]
    for k, (geom, size, layers, levels, samples) in enumerate(shapes):
        ty, order = TYPES[k], "rgb" if TYPES[k] in PACKED else ORDERS[k]
        im = Image("a", geom, ty, order, size, layers, levels, samples)
        s.put(im.text())
        modes = [addr[(k + i) % 5] for i in range(3)]
        s.put(f"texture t a normalized={k % 2} filter={'linear' if k % 2 else 'nearest'} addr={','.join(modes)} mip=nearest compare=lequal")
        extent = size + [0] * (3 - len(size))
        expected = {"width": extent[0], "height": extent[1], "depth": extent[2], "channel_data_type": 0x10D0 + TYPES.index(ty), "channel_order": 0x10B0 + ORDERS.index(order),
                    "normalized_coords": k % 2, "array_size": layers, "num_mipmap_levels": levels if levels > 1 else 0, "num_samples": samples,
                    "filter_mode": k % 2, **{f"addr_mode_{i}": addr.index(modes[i]) for i in range(3)}}
        for query, value in expected.items():
            s.form(f"txq.{query} {geom}", "d:b32", "x:u32", f"txq.{query}.b32 %d, [t];", [([0], [value])])
        for query, n in (("width", extent[0]), ("height", extent[1]), ("depth", extent[2])):
            s.form(f"txq.level.{query} {geom}", "d:b32", "x:u32", f"txq.level.{query}.b32 %d, [t], %x;", [([l], [max(1, n >> l) if n else 0]) for l in range(levels)])
        if samples == 0 and "cube" not in geom:
            s.last.clear()
            s.put(f"surface t a level={levels - 1}")
            expected = {"width": extent[0], "height": extent[1], "depth": extent[2]}
            expected = {q: max(1, n >> levels - 1) if n else 0 for q, n in expected.items()}
            expected.update({"channel_data_type": 0x10D0 + TYPES.index(ty), "channel_order": 0x10B0 + ORDERS.index(order), "array_size": layers, "memory_layout": 0})
            for query, value in expected.items():
                s.form(f"suq.{query} {geom}", "d:b32", "x:u32", f"suq.{query}.b32 %d, [t];", [([0], [value])])
        s.last.clear()
    s.save()
