#!/usr/bin/env python3
"""Runs the instruction vectors on a GPU, through the driver API.

Each form becomes the kernel that `crates/ptxvm/tests/vectors/kernel.rs` makes of it (the way `Whole`), the
driver compiles it, and every result is compared with what the vector allows. Standard library only.

    python3 vectors.py [--library libcuda.so.1] [--jobs N] [--dump FILE] [--vectors FOLDER] [NAME...]

NAMEs select files by the start of their names. The report, one line per fact with tabs between the fields:

    device   NAME   DRIVER
    refused  FILE   LINE   FORM   the driver's message
    trapped  FILE   LINE   FORM   status
    differs  FILE   LINE   FORM   OPERANDS   RESULT   EXPECTED   HAVE
    lost     FILE   NUMBER   the process ended, or had no result in time; forms from NUMBER on are missing
    file     FILE   vectors   wrong

`--dump` writes all results (zlib, one line for each vector), to compare two devices where a vector allows
several results. The exit status is 0 however many results differ: a difference is to be judged by a reader.

Forms with addresses of 32 bits are skipped, since 64-bit drivers have none.
"""
import pathlib
import zlib

from driver import Driver, in_processes, options

FOLDER = pathlib.Path(__file__).parent.parent / "vectors"
SLOT = 8
BLOCK = 128
# Results reported for a form.
SHOWN = 6
# Seconds for one file.
PATIENCE = 240


class Form:
    """A form of an instruction with its vectors; see README.md for the format."""

    def __init__(self, line, head):
        fields = head.split(" | ")
        title = fields[0].split(" @")
        self.line = line
        self.name = title[0].strip()
        options = dict(option.strip().split("=", 1) for option in title[1:])
        self.version = options.get("version", "6.4")
        self.target = options.get("target", "sm_70")
        self.narrow = options.get("address") == "32"
        self.lanes = int(options["lanes"]) if "lanes" in options else None
        self.outs = [tuple(word.split(":")) for word in fields[1].split()]
        self.ins = [tuple(word.split(":")) for word in fields[2].split()]
        self.body = fields[3] if len(fields) > 3 else ""
        self.module = fields[4] if len(fields) > 4 else ""
        if not self.body:
            names = ["%" + name for name, _ in self.outs + self.ins]
            self.body = f"{self.name} {', '.join(names)};"
        self.vectors = []


def parse(text):
    forms = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("form "):
            forms.append(Form(number, line[5:]))
        elif line and not line.startswith("#"):
            left, right = line.split(" = ")
            forms[-1].vectors.append((number, [int(word, 16) for word in left.split()], right.split()))
    return forms


REGISTERS = {"f16x2": "b32", "bf16x2": "b32", "bf16": "b16"}
MEMORY = {"f16x2": "b32", "bf16x2": "b32", "bf16": "b16", "f16": "b16"}


def kernel(form):
    old = form.version.startswith("1.")
    lines = [f".version {form.version}", f".target {form.target}"]
    if not old and form.version not in ("2.0", "2.1", "2.2"):
        lines.append(".address_size 64")
    lines.append(form.module.replace("; ", ";\n"))
    if form.version in ("1.0", "1.1", "1.2", "1.3"):
        lines += [".entry run", "{", ".param .u64 source;", ".param .u64 result;"]
    else:
        lines += [".visible .entry run(.param .u64 source, .param .u64 result)", "{"]
    read = "cvt.u32.u16" if old else "mov.u32"
    lines += [
        ".reg .u64 %in, %out, %group, %step;",
        ".reg .u32 %slot, %thread, %cta, %threads, %flag32;",
        ".reg .pred %live;",
        "ld.param.u64 %group, [source];",
        "ld.param.u64 %out, [result];",
        f"{read} %thread, %tid.x;",
        f"{read} %cta, %ctaid.x;",
        f"{read} %threads, %ntid.x;",
        "mul.lo.u32 %cta, %cta, %threads;",
    ]

    def place(to, start, index, size):
        lines.append(f"mul.wide.u32 %step, {index}, {size};")
        lines.append(f"add.u64 {to}, {start}, %step;")

    place("%group", "%group", "%cta", len(form.ins) * SLOT)
    place("%in", "%group", "%thread", len(form.ins) * SLOT)
    lines.append("add.u32 %cta, %cta, %thread;")
    place("%out", "%out", "%cta", len(form.outs) * SLOT)
    lines.append("shl.b32 %slot, %thread, 3;")
    lines += [f".reg .{REGISTERS.get(kind, kind)} %{name};" for name, kind in form.outs + form.ins]
    for index, (name, kind) in enumerate(form.ins):
        if kind == "pred":
            lines.append(f"ld.global.u32 %flag32, [%in+{index * SLOT}];")
            lines.append(f"setp.ne.u32 %{name}, %flag32, 0;")
        else:
            lines.append(f"ld.global.{MEMORY.get(kind, kind)} %{name}, [%in+{index * SLOT}];")
    lines.append(form.body.replace("; ", ";\n"))
    for index, (name, kind) in enumerate(form.outs):
        if kind == "pred":
            lines.append(f"selp.u32 %flag32, 1, 0, %{name};")
            lines.append(f"st.global.u32 [%out+{index * SLOT}], %flag32;")
        else:
            lines.append(f"st.global.{MEMORY.get(kind, kind)} [%out+{index * SLOT}], %{name};")
    return "\n".join(lines + ["ret;", "}", ""])


def infinity(kind):
    """The encoding of +infinity, and the sign bit."""
    if kind == "bf16":
        return 0x7F80, 1 << 15
    bits = {"f16x2": 32, "bf16x2": 32}.get(kind) or int(kind[1:])
    return {16: (0x7C00, 1 << 15), 32: (0x7F800000, 1 << 31), 64: (0x7FF << 52, 1 << 63)}[bits]


def allows(expected, have, kind):
    """Whether a vector allows a result."""
    if "|" in expected:
        return any(allows(one, have, kind) for one in expected.split("|"))
    if expected == "*":
        return True
    if ":" in expected:
        high, low = expected.split(":")
        half = "bf16" if kind == "bf16x2" else "f16"
        return allows(high, have >> 16, half) and allows(low, have & 0xFFFF, half)
    if expected == "nan":
        limit, sign = infinity(kind)
        return have & ~sign > limit
    if ".." in expected:
        limit, sign = infinity(kind)

        def place(bits):
            return -(bits & ~sign) - 1 if bits & sign else bits

        low, high = (int(end, 16) for end in expected.split(".."))
        return have & ~sign <= limit and place(low) <= place(have) <= place(high)
    return int(expected, 16) == have


def words(values):
    return b"".join(value.to_bytes(SLOT, "little") for value in values)


def run_form(driver, form):
    """The results of all vectors, or a word and a message."""
    module, why = driver.load(kernel(form))
    if module is None:
        return None, ("refused", why)
    block = form.lanes or min(len(form.vectors), BLOCK)
    grid = -(-len(form.vectors) // block)
    threads = grid * block
    given = [operands for _, operands, _ in form.vectors]
    given += [given[-1]] * (threads - len(given))
    source = driver.buffer(words(value for operands in given for value in operands))
    size = threads * len(form.outs) * SLOT
    result = driver.buffer(bytes(size))
    status = driver.run(module, "run", (grid, 1, 1), (block, 1, 1), [source, result])
    if status:
        return None, ("trapped", str(status))
    data = driver.read(result, size)
    driver.free(source)
    driver.free(result)
    driver.call("cuModuleUnload", module)
    values = [int.from_bytes(data[at : at + SLOT], "little") for at in range(0, size, SLOT)]
    count = len(form.outs)
    return [values[at : at + count] for at in range(0, len(form.vectors) * count, count)], None


def run_forms(task, library):
    """Runs the forms of a file from a number on, up to one that traps. Returns how many are done, the report,
    the counts of vectors and wrong results, and the results as text."""
    path, first = task
    driver = Driver(library)
    report, dump = [], []
    forms = parse(path.read_text())
    vectors = wrong = 0
    for number, form in enumerate(forms[first:], first + 1):
        if form.narrow:
            continue
        results, why = run_form(driver, form)
        place = [path.stem, str(form.line), form.name]
        if results is None:
            report.append([why[0], *place, why[1]])
            if why[0] == "trapped":
                return number, report, (vectors, wrong), dump
            continue
        shown = 0
        for (line, operands, expected), have in zip(form.vectors, results):
            vectors += 1
            dump.append(f"{path.stem} {line} {' '.join(f'{value:x}' for value in have)}")
            for (name, kind), allowed, value in zip(form.outs, expected, have):
                if allows(allowed, value, kind):
                    continue
                wrong += 1
                shown += 1
                if shown <= SHOWN:
                    given = " ".join(f"{operand:x}" for operand in operands)
                    place = [path.stem, str(line), form.name]
                    report.append(["differs", *place, given, name, allowed, f"{value:x}"])
    return len(forms), report, (vectors, wrong), dump


def main():
    given, names = options(__doc__, {"--library": "libcuda.so.1", "--jobs": "4", "--dump": "", "--vectors": FOLDER})
    files = sorted(pathlib.Path(given["--vectors"]).glob("*.vec"), key=lambda path: -path.stat().st_size)
    files = [path for path in files if not names or path.stem.startswith(tuple(names))]
    counts = {path: [0, 0] for path in files}
    tasks, texts = [(path, 0) for path in files], []
    for task, answer in in_processes(run_forms, tasks, given["--library"], int(given["--jobs"]), PATIENCE):
        path, first = task
        if isinstance(answer, str):
            print("\t".join(["lost", path.stem, str(first), answer]), flush=True)
            continue
        done, report, (vectors, wrong), lines = answer
        for line in report:
            print("\t".join(line), flush=True)
        texts += lines
        counts[path][0] += vectors
        counts[path][1] += wrong
        if done < len(parse(path.read_text())):
            tasks.append((path, done))
    for path, (vectors, wrong) in sorted(counts.items()):
        print("\t".join(["file", path.stem, str(vectors), str(wrong)]))
    print("\t".join(["device", *Driver(given["--library"]).about()]))
    if given["--dump"]:
        text = "\n".join(sorted(texts)).encode()
        pathlib.Path(given["--dump"]).write_bytes(zlib.compress(text, 9))


if __name__ == "__main__":
    main()
