#!/usr/bin/env python3
"""Runs the cases of `tests/textures` on a GPU, through the driver API.

    python3 textures.py [--library libcuda.so.1] [--jobs N] [NAME...]

Each form becomes the kernel of `crates/ptxvm/tests/texture.rs` that takes its texture or surface as a number
in a parameter: an object of `cuTexObjectCreate` or `cuSurfObjectCreate`. The report, one line per fact with
tabs between the fields:

    device   NAME   DRIVER
    refused  FILE   LINE   FORM   the driver's message
    trapped  FILE   LINE   FORM   status
    differs  FILE   LINE   FORM   OPERANDS   EXPECTED   HAVE   (all results; the largest distance of floats)
    file     FILE   forms   vectors   exact   close   far   skipped forms

A vector is close if all its results are floats within `NEAR` of what is expected. Of four results, only those
of channels that the array has count. Skipped are forms with what objects of CUDA do not have: samplers of their
own, other channel types and orders, `clamp_ogl`, wrapping and levels without normalized coordinates, depth
comparison, samples, unbound variables, integer coordinates of one dimension (CUDA has them for linear memory only), and
vectors that must trap.
"""
import ctypes
import pathlib
import re
import struct

from driver import Driver, in_processes, options

HERE = pathlib.Path(__file__).parent
SLOT = 8
SHOWN = 3
PATIENCE = 240
NEAR = 2.0**-8
# Channel types: CUarray_format, bytes, whether results are floats.
TYPES = {
    "unorm8": (0x01, 1, True),
    "unorm16": (0x02, 2, True),
    "snorm8": (0x08, 1, True),
    "snorm16": (0x09, 2, True),
    "u8": (0x01, 1, False),
    "u16": (0x02, 2, False),
    "u32": (0x03, 4, False),
    "s8": (0x08, 1, False),
    "s16": (0x09, 2, False),
    "s32": (0x0A, 4, False),
    "half": (0x10, 2, True),
    "float": (0x20, 4, True),
}
CHANNELS = {"r": 1, "rg": 2, "rgba": 4}
# Flags of CUDA_ARRAY3D_DESCRIPTOR.
LAYERED, SURFACE, CUBE, GATHER = 1, 2, 4, 8
MODES = {"wrap": 0, "clamp_to_edge": 1, "mirror": 2, "clamp_to_border": 3}


class Form:
    def __init__(self, line, text, setting):
        self.line = line
        self.name, outs, ins, self.body = [part.strip() for part in text.split("|")]
        self.outs = [word.split(":") for word in outs.split()]
        self.ins = [word.split(":") for word in ins.split()]
        self.setting = dict(setting)
        self.vectors = []
        self.after = None
        self.follows = False


def parse(text):
    forms = []
    setting = {"array": "", "levels": [], "bound": "", "sampler": "", "access": "variable", "fields": ""}
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rest = line.partition(" ")
        if word in ("", "#"):
            continue
        if word == "array":
            setting["array"], setting["levels"] = rest, []
        elif word == "level":
            setting["levels"] = setting["levels"] + [rest]
        elif word in ("texture", "surface", "unbound"):
            setting["bound"] = line
        elif word in ("sampler", "access", "fields"):
            setting[word] = rest
        elif word in ("form", "then"):
            forms.append(Form(number, rest, setting))
            forms[-1].follows = word == "then"
        elif word == "after":
            forms[-1].after = rest
        else:
            left, right = line.split("=")
            forms[-1].vectors.append((number, [int(one, 16) for one in left.split()], right.strip()))
    return forms


def fields(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def kernel(form):
    body = form.body.replace("[t", "[%t")
    ins, outs = len(form.ins) * SLOT, len(form.outs) * SLOT
    lines = [".version 6.4", ".target sm_70", ".address_size 64"]
    lines += [".visible .entry k(.param .u64 ins, .param .u64 outs, .param .u32 count, .param .u64 t)", "{"]
    lines += [f".reg .{kind} %{name};" for name, kind in form.outs + form.ins]
    lines += [
        ".reg .b64 %in, %out, %t;",
        ".reg .b32 %slot, %count;",
        ".reg .pred %off;",
        "mov.u32 %slot, %tid.x;",
        "ld.param.u32 %count, [count];",
        "setp.ge.u32 %off, %slot, %count;",
        "@%off ret;",
        "ld.param.u64 %in, [ins];",
        "ld.param.u64 %out, [outs];",
        f"mad.wide.u32 %in, %slot, {ins}, %in;",
        f"mad.wide.u32 %out, %slot, {outs}, %out;",
        "ld.param.u64 %t, [t];",
    ]
    lines += [f"ld.global.{kind} %{name}, [%in+{at * SLOT}];" for at, (name, kind) in enumerate(form.ins)]
    lines.append(body)
    lines += [f"st.global.{kind} [%out+{at * SLOT}], %{name};" for at, (name, kind) in enumerate(form.outs)]
    return "\n".join(lines + ["ret;", "}", ""])


class Texels:
    """A CUDA array, with its levels."""

    def __init__(self, driver, setting, surface, gather):
        _, geometry, kind, order, size = setting["array"].split()[:5]
        self.channels = CHANNELS[order]
        given = fields(setting["array"])
        self.driver = driver
        self.format, width, self.floats = TYPES[kind]
        self.pixel = width * CHANNELS[order]
        size = [int(number) for number in size.split("x")]
        layers, self.levels = int(given["layers"]), int(given["levels"])
        flags = (SURFACE if surface else 0) | (GATHER if gather else 0)
        self.extent = {
            "1d": (size[0], 0, 0),
            "2d": (size[0], size[1], 0),
            "3d": tuple(size),
            "a1d": (size[0], 0, layers),
            "a2d": (size[0], size[1], layers),
            "cube": (size[0], size[0], 6),
            "acube": (size[0], size[0], 6 * layers),
        }[geometry]
        self.cubes = geometry.endswith("cube")
        self.layered = geometry.startswith("a")
        flags |= (LAYERED if self.layered else 0) | (CUBE if self.cubes else 0)
        description = struct.pack("QQQiII4x", *self.extent, self.format, CHANNELS[order], flags)
        self.handle = ctypes.c_uint64()
        if self.levels > 1:
            driver.ok("cuMipmappedArrayCreate", ctypes.byref(self.handle), description, self.levels)
        else:
            driver.ok("cuArray3DCreate_v2", ctypes.byref(self.handle), description)
        for level, texels in enumerate(setting["levels"]):
            self.copy(level, bytes.fromhex(texels), None)

    def copy(self, level, data, into):
        """Copies a level's texels: `data` to the array, or the array into a buffer."""
        array = self.handle
        if self.levels > 1:
            array = ctypes.c_uint64()
            self.driver.ok("cuMipmappedArrayGetLevel", ctypes.byref(array), self.handle, level)
        width, height, depth = [max(number >> level, 1) for number in self.extent]
        if self.layered or self.cubes:
            depth = self.extent[2]
        row = width * self.pixel
        host = ctypes.create_string_buffer(data, row * height * depth) if into is None else into
        memory = struct.pack("4QI4xQQQQQQ", 0, 0, 0, 0, 1, ctypes.addressof(host), 0, 0, 0, row, height)
        texels = struct.pack("4QI4xQQQQQQ", 0, 0, 0, 0, 3, 0, 0, array.value, 0, 0, 0)
        pair = memory + texels if into is None else texels + memory
        self.driver.ok("cuMemcpy3D_v2", pair + struct.pack("3Q", row, height, depth))

    def read(self):
        width, height, depth = [max(number, 1) for number in self.extent]
        into = ctypes.create_string_buffer(width * height * depth * self.pixel)
        self.copy(0, None, into)
        return into.raw

    def object(self, bound):
        """The object that a `texture` or `surface` line describes, for this array."""
        resource = struct.pack("i4xQ120xI4x", 1 if self.levels > 1 else 0, self.handle.value, 0)
        handle = ctypes.c_uint64()
        if bound.startswith("surface"):
            self.driver.ok("cuSurfObjectCreate", ctypes.byref(handle), resource)
            return handle
        given = fields(bound)
        modes = [MODES[mode] for mode in given["addr"].split(",")]
        linear = [int(given[key] == "linear") for key in ("filter", "mip")]
        flags = (2 if given["normalized"] == "1" else 0) | (0 if self.floats else 1)
        sampling = struct.pack(
            "3iiIIifff4f48x", *modes, linear[0], flags, 0, linear[1], 0.0, 0.0, self.levels - 1, 0, 0, 0, 0
        )
        self.driver.ok("cuTexObjectCreate", ctypes.byref(handle), resource, sampling, None)
        return handle


def skips(form):
    """Whether CUDA's objects cannot express a form."""
    setting = form.setting
    words = setting["array"].split()
    bound = setting["bound"]
    given = fields(bound)
    if len(words) < 5 or setting["sampler"] or setting["fields"] or bound.startswith("unbound"):
        return True
    if words[2] not in TYPES or words[3] not in CHANNELS or fields(setting["array"])["samples"] != "0":
        return True
    if setting["access"] not in ("variable", "number") or words[1].startswith(("2dms", "a2dms")):
        return True
    if bound.startswith("surface"):
        return given["level"] != "0" or fields(setting["array"])["levels"] != "1"
    if "addr" not in given or "clamp_ogl" in given["addr"]:
        return True
    levels = fields(setting["array"])["levels"]
    if given["normalized"] == "0" and ("wrap" in given["addr"] or "mirror" in given["addr"] or levels != "1"):
        return True
    # A depth to compare with; a texture without brackets; integer coordinates of one dimension.
    return ", %f" in form.body or "[t" not in form.body or bool(re.search(r"1d\.v[24]\.\w+\.s32", form.body))


def floats_of(values):
    return [struct.unpack("f", struct.pack("I", value & 0xFFFFFFFF))[0] for value in values]


def distance(have, expected):
    far = 0.0
    for one, other in zip(floats_of(have), floats_of(expected)):
        if one != one or other != other or abs(one) == float("inf") or abs(other) == float("inf"):
            return float("inf")
        far = max(far, abs(one - other) / max(1.0, abs(other)))
    return far


def run_file(path, library):
    driver = Driver(library)
    report = []
    counts = {"vectors": 0, "exact": 0, "close": 0, "far": 0, "skipped": 0}
    forms = parse(path.read_text())
    texels, before = None, True
    for form in forms:
        place = [path.stem, str(form.line), form.name]
        plain = [vector for vector in form.vectors if not vector[2].startswith("trap")]
        if skips(form) or not plain or (form.follows and before):
            counts["skipped"] += 1
            before = True
            continue
        before = False
        module, why = driver.load(kernel(form))
        if module is None:
            report.append(["refused", *place, why])
            continue
        try:
            if not form.follows:
                texels = Texels(driver, form.setting, form.setting["bound"].startswith("surface"), "tld4" in form.body)
            handle = texels.object(form.setting["bound"])
        except RuntimeError as error:
            report.append(["refused", *place, str(error)])
            before = True
            continue
        words = b"".join(value.to_bytes(SLOT, "little") for _, ins, _ in plain for value in ins)
        source = driver.buffer(words)
        size = len(plain) * len(form.outs) * SLOT
        result = driver.buffer(bytes(size))
        threads = -(-len(plain) // 32) * 32
        count = ctypes.c_uint32(len(plain))
        status = driver.run(module, "k", (1, 1, 1), (threads, 1, 1), [source, result, count, handle])
        if status:
            report.append(["trapped", *place, str(status), "the rest of the file is not run"])
            break
        data = driver.read(result, size)
        values = [int.from_bytes(data[at : at + SLOT], "little") for at in range(0, size, SLOT)]
        width, shown = len(form.outs), 0
        for index, (line, ins, right) in enumerate(plain):
            have = values[index * width : (index + 1) * width]
            expected = [int(word, 16) for word in right.split()]
            if width == 4 and form.body.startswith("tex."):
                have, expected = have[: texels.channels], expected[: texels.channels]
            counts["vectors"] += 1
            if have == expected:
                counts["exact"] += 1
                continue
            far = distance(have, expected) if texels.floats else float("inf")
            counts["close" if far <= NEAR else "far"] += 1
            shown += far > NEAR
            if far > NEAR and shown <= SHOWN:
                given = " ".join(f"{value:x}" for value in ins)
                have = " ".join(f"{value:x}" for value in have)
                place = [path.stem, str(line), form.name]
                report.append(["differs", *place, given, right, have, f"{far:.4g}", form.setting["bound"]])
        if form.after is not None and texels.read() != bytes.fromhex(form.after):
            report.append(["differs", *place, "texels afterwards", form.after[:80], texels.read().hex()[:80]])
        driver.free(source)
        driver.free(result)
        driver.call("cuModuleUnload", module)
    report.append(["file", path.stem, str(len(forms)), *[f"{key} {number}" for key, number in counts.items()]])
    return report


def main():
    given, names = options(__doc__, {"--library": "libcuda.so.1", "--jobs": "4"})
    files = sorted((HERE.parent / "textures").glob("*.case"))
    files = [path for path in files if not names or path.stem.startswith(tuple(names))]
    for path, answer in in_processes(run_file, files, given["--library"], int(given["--jobs"]), PATIENCE):
        for line in [["lost", path.stem, answer]] if isinstance(answer, str) else answer:
            print("\t".join(line), flush=True)
    print("\t".join(["device", *Driver(given["--library"]).about()]))


if __name__ == "__main__":
    main()
