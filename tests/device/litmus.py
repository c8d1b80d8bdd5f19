#!/usr/bin/env python3
"""Runs litmus tests on a GPU, many instances at a time, and asks the checker whether it allows what was seen.

    python3 litmus.py --generate FOLDER
    python3 litmus.py ../litmus FOLDER --library libcuda.so.1 --seconds 3 > seen.tsv
    python3 litmus.py --judge seen.tsv --checker ../../target/release/ptxvm ../litmus FOLDER

The first writes tests of two threads: six shapes with all orders and scopes of each thread. The second prints
one line per fact, with tabs between the fields:

    device   NAME   DRIVER
    skipped  TEST   REASON
    seen     TEST   COUNT   P0:r0 == 1 /\\ x == 0 ...   (registers, then locations that the test writes)
    failed   TEST   REASON

The third prints, for each of these tests, how many outcomes were seen, whether the checker allows its clause,
how many of the instances the clause describes, and each outcome that the checker forbids:

    test       TEST   OUTCOMES   INSTANCES   Ok or No   OF THE CLAUSE
    forbidden  TEST   COUNT   OUTCOME

Each thread of a test is a warp, so 32 instances run in lockstep, with locations of their own. All CTAs of a
group meet before each instance. Layout, delays and reads beforehand that fill caches change from launch to
launch. Tests that need a host thread, several GPUs, a proxy, or that may wait for ever are skipped.
"""
import collections
import ctypes
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

from driver import Driver, in_processes, options

GROUPS = 24
ITERATIONS = 64
POLLS = 3000
# Threads of these wait for a barrier for ever in some execution.
HANGS = {"bar-waits-for-ever", "bar-count-never-reached", "bar-crossed", "SB-bar-other-number"}
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
MASK = (1 << 64) - 1


class Unfit(Exception):
    """Why a test is skipped."""


def number(text):
    try:
        return int(text, 0) & MASK
    except ValueError:
        return None


class Test:
    """A parsed test: header facts, locations, threads, clause."""

    def __init__(self, path):
        self.name = path.stem
        self.text = path.read_text()
        facts = dict(re.findall(r"^// (expect|model|check): *(\S+)", self.text, re.M))
        self.expect, self.model = facts.get("expect"), facts.get("model", "ptx-6.0")
        if "check" in facts:
            raise Unfit("not about a final state")
        if self.name in HANGS:
            raise Unfit("may wait for ever")
        plain = re.sub(r"//[^\n]*|\(\*.*?\*\)|\"[^\"]*\"", "", self.text, flags=re.S)
        head, init, rest = re.fullmatch(r"([^{]*)\{(.*?)\n\}(.*)", plain, re.S).groups()
        rows, _, clause = rest.rpartition(";")
        self.clause = " ".join(clause.split())
        self.init(init)
        self.threads(rows.split(";"))

    def init(self, text):
        # Location: type, initial words (numbers, or names whose addresses they are).
        self.locations, self.first = {}, {}
        for part in filter(None, map(str.strip, text.split(";"))):
            register = re.fullmatch(r"P(\d+):(%?\w+) *= *(\S+)", part)
            if register:
                self.first[int(register[1]), register[2]] = register[3]
                continue
            match = re.fullmatch(r"(?:\.global )?(?:\.([busf]\d+) +)?(\w+)(?:\[(\d+)\])? *= *(.+)", part)
            if not match or "?" in part:
                raise Unfit(f"location `{part}`")
            kind, name, count, value = match.groups()
            values = [word.strip() for word in value.strip("{} ").split(",")]
            if count and len(values) != int(count):
                raise Unfit(f"location `{part}`")
            for word in values:
                if number(word) is None and not word.startswith("&"):
                    raise Unfit(f"location `{part}`")
            self.locations[name] = (kind, values)

    def threads(self, rows):
        cells = [[cell.strip() for cell in row.split("|")] for row in rows if row.strip()]
        self.ctas = []
        for cell in cells[0]:
            match = re.fullmatch(r"P(\d+) *@ *cta (\d+), *gpu (\d+)", cell)
            if not match:
                raise Unfit(f"thread `{cell}`")
            if match[3] != "0":
                raise Unfit("several GPUs")
            self.ctas.append(int(match[2]))
        self.code = [[row[at] for row in cells[1:] if at < len(row) and row[at]] for at in range(len(self.ctas))]


class Code:
    """The PTX of a test."""

    def __init__(self, test):
        self.test = test
        self.names = list(test.locations)
        self.registers = []
        bodies = [self.thread(at, lines) for at, lines in enumerate(test.code)]
        self.written = [name for name in self.names if test.locations[name][0] is None or len(test.locations[name][1]) == 1]
        numbers = sorted(set(test.ctas))
        self.roles = [[at for at, cta in enumerate(test.ctas) if cta == number] for number in numbers]
        self.warps = max(map(len, self.roles))
        self.words = len(self.registers) + len(self.written)
        self.ptx = self.kernel(bodies) + self.fill() + self.gather()

    def size(self, name):
        kind, values = self.test.locations[name]
        return SIZES[kind[1:]] if kind else 8

    # Operands.

    def register(self, thread, name):
        if (thread, name) not in self.registers:
            self.registers.append((thread, name))
        return f"%x{self.registers.index((thread, name))}"

    def value(self, thread, text):
        text = text.strip()
        if text in self.test.locations or text[1:] in self.test.locations and text[0] == "&":
            return f"%a{self.names.index(text.lstrip('&'))}"
        if number(text) is not None:
            return text
        if re.fullmatch(r"%?r\d+", text):
            return self.register(thread, text)
        raise Unfit(f"operand `{text}`")

    def address(self, thread, text):
        match = re.fullmatch(r"\[?(\w+)(?: *\+ *(\d+))?\]?", text.strip())
        if not match or number(match[1]) is not None:
            raise Unfit(f"address `{text}`")
        return f"[{self.value(thread, match[1])}+{match[2] or 0}]"

    # Statements.

    def thread(self, thread, lines):
        self.labels = set(re.findall(r"\b(\w+):", "\n".join(lines)))
        return [part for line in lines for part in self.statement(thread, line)]

    def statement(self, thread, line):
        label = re.fullmatch(r"(\w+):", line)
        if label:
            return [f"L{thread}_{label[1]}:"]
        opcode, _, rest = line.partition(" ")
        operands = [part.strip() for part in re.findall(r"\s*(\{[^}]*\}|\[[^]]*\]|[^,]+)", rest)]
        op, *mods = opcode.split(".")
        value = lambda at: self.value(thread, operands[at])
        if op in ("fence", "membar") and "proxy" not in mods:
            return [f"{opcode};"]
        if op in ("bar", "barrier") and mods[-1] == "sync" and not {"arrive", "cta", "warp"} & set(mods):
            # Warps stand for threads.
            if number(operands[0]) is None:
                raise Unfit("a barrier in a register")
            same = self.test.ctas[thread]
            users = [at for at, code in enumerate(self.test.code)
                     if self.test.ctas[at] == same and re.search(r"\bbar(rier)?\.", "\n".join(code))]
            count = int(operands[1]) if len(operands) > 1 else len(users)
            return [f"{opcode} {operands[0]}, {32 * count};"]
        if op in ("bar", "barrier") and mods == ["arrive"] and len(operands) == 2:
            return [f"{opcode} {operands[0]}, {32 * int(operands[1])};"]
        if op in ("beq", "bne") and operands[2] in self.labels:
            return [f"setp.{op[1:]}.b64 %p, {value(0)}, {value(1)};", f"@%p bra L{thread}_{operands[2]};"]
        if op in ("bra", "goto") and operands[0] in self.labels:
            return [f"bra L{thread}_{operands[0]};"]
        if op == "exit":
            return [f"bra END{thread};"]
        if op == "mov" and not mods or op == "ld" and not mods and operands[1] not in self.test.locations:
            return [f"mov.b64 {value(0)}, {value(1)};"]
        if op in ("add", "sub") and not mods:
            return [f"{op}.u64 {value(0)}, {value(1)}, {value(2)};"]
        if op in ("ld", "st", "atom", "red"):
            return self.access(thread, op, mods, operands)
        raise Unfit(f"instruction `{opcode}`")

    def access(self, thread, op, mods, operands):
        mods = [mod for mod in mods if mod != "global"]
        kind = next((mod for mod in mods if re.fullmatch(r"[bus](8|16|32|64)", mod)), None)
        order = [mod for mod in mods if mod in ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile")]
        scope = [mod for mod in mods if mod in ("cta", "gpu", "sys")]
        vector = [mod for mod in mods if mod in ("v2", "v4")]
        action = [mod for mod in mods if mod not in (kind, *order, *scope, *vector)]
        start = ".".join([op, *order, *scope, "global", *action, *vector])
        if op in ("ld", "st") and action:
            raise Unfit(f"`{'.'.join([op, *mods])}`")
        where = self.address(thread, operands[1] if op in ("ld", "atom") else operands[0])
        if op in ("ld", "st"):
            data = operands[0] if op == "ld" else operands[1]
            if vector:
                parts = ", ".join(self.value(thread, part) for part in data.strip("{}").split(","))
                data = f"{{{parts}}}"
            else:
                data = self.value(thread, data)
            # A constant needs the type's register class.
            lines = []
            if op == "st" and number(data) is not None:
                lines, data = [f"mov.b64 %t, {data};"], "%t"
            pair = [data, where] if op == "ld" else [where, data]
            return [*lines, f"{start}.{kind or 'b64'} {', '.join(pair)};"]
        if action not in (["add"], ["and"], ["or"], ["xor"], ["min"], ["max"], ["inc"], ["dec"], ["exch"], ["cas"]):
            raise Unfit(f"`{'.'.join([op, *mods])}`")
        bits = action[0] in ("exch", "cas", "and", "or", "xor")
        kind = ("b" + kind[1:] if bits else kind) if kind else "b64" if bits else "u64"
        wide = kind.endswith("64")
        given = operands[2:] if op == "atom" else operands[1:]
        lines, words = [], []
        for at, text in enumerate(given):
            lines.append(f"mov.b64 %t, {self.value(thread, text)};")
            lines.append(f"mov.b64 %s{at}, %t;" if wide else f"cvt.u32.u64 %w{at}, %t;")
            words.append(f"%s{at}" if wide else f"%w{at}")
        if op == "red":
            return [*lines, f"{start}.{kind} {where}, {', '.join(words)};"]
        result = self.value(thread, operands[0])
        lines.append(f"{start}.{kind} {'%t' if wide else '%w2'}, {where}, {', '.join(words)};")
        sign = kind if kind[0] == "s" else "u32"
        return [*lines, f"mov.b64 {result}, %t;" if wide else f"cvt.u64.{sign} {result}, %w2;"]

    # Kernels. The address of location j of instance i is memory + i * a + j * b.

    def kernel(self, bodies):
        count = len(self.roles)
        lines = [
            ".version 6.4\n.target sm_70\n.address_size 64",
            ".visible .entry run(.param .u64 memory, .param .u64 results, .param .u64 meet, .param .u64 a, .param .u64 b,",
            " .param .u32 seed, .param .u32 touch, .param .u32 delay, .param .u32 mixed)\n{",
            ".reg .pred %p, %q;\n.reg .b64 %a<20>, %x<40>, %t, %s<3>, %m, %res, %meet, %la, %lb, %i, %d;",
            ".reg .b32 %w<4>, %c, %k, %g, %warp, %lane, %it, %h, %n, %seed, %touch, %delay, %goal, %mixed, %u;",
            "ld.param.u64 %m, [memory];\nld.param.u64 %res, [results];\nld.param.u64 %meet, [meet];",
            "ld.param.u64 %la, [a];\nld.param.u64 %lb, [b];\nld.param.u32 %seed, [seed];",
            "ld.param.u32 %touch, [touch];\nld.param.u32 %delay, [delay];\nld.param.u32 %mixed, [mixed];",
            "mov.u32 %c, %ctaid.x;\nmov.u32 %w0, %tid.x;\nshr.u32 %warp, %w0, 5;\nand.b32 %lane, %w0, 31;\nmov.b64 %d, 0;",
            f"setp.eq.u32 %p, %mixed, 0;\nrem.u32 %k, %c, {count};\ndiv.u32 %g, %c, {count};",
            f"@%p rem.u32 %g, %c, {GROUPS};\n@%p div.u32 %k, %c, {GROUPS};",
            "mul.wide.u32 %t, %g, 256;\nadd.u64 %meet, %meet, %t;\nmov.u32 %it, 0;",
            "AGAIN:",
            # The place of a lane's instance differs by warp, and the order of instances by launch.
            "mad.lo.u32 %h, %it, 7, %seed;\nadd.u32 %h, %h, %lane;\nand.b32 %h, %h, 31;",
            f"mad.lo.u32 %u, %g, {ITERATIONS}, %it;\nmad.lo.u32 %h, %u, 32, %h;\ncvt.u64.u32 %i, %h;",
            "mad.lo.u64 %a0, %i, %la, %m;",
        ]
        lines += [f"add.u64 %a{at}, %a{at - 1}, %lb;" for at in range(1, len(self.names))]
        # Reads beforehand, whose sum is used.
        for at, name in enumerate(self.names):
            lines += [f"shr.u32 %w0, %touch, {at};\nand.b32 %w0, %w0, 1;\nsetp.ne.u32 %p, %w0, 0;",
                      f"@%p ld.global.b32 %w1, [%a{at}];\n@%p cvt.u64.u32 %t, %w1;\n@%p add.u64 %d, %d, %t;"]
        # All warps of the group meet, or go on after a while.
        total = len(self.test.ctas)
        lines += [
            "bar.warp.sync -1;\nsetp.ne.u32 %p, %lane, 0;\n@%p bra MET;",
            f"mad.lo.u32 %goal, %it, {total}, {total};\nred.relaxed.gpu.global.add.u32 [%meet], 1;\nmov.u32 %n, {POLLS};",
            "POLL:\nld.relaxed.gpu.global.u32 %w0, [%meet];\nsetp.ge.u32 %p, %w0, %goal;\n@%p bra MET;",
            "sub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra POLL;",
            "MET:\nbar.warp.sync -1;",
            # A delay of the warp.
            "mad.lo.u32 %h, %it, 0x9E3779B1, %seed;\nmad.lo.u32 %h, %warp, 0x85EBCA77, %h;\nmad.lo.u32 %h, %k, 0xC2B2AE3D, %h;",
            "shr.u32 %n, %h, 17;\nand.b32 %n, %n, %delay;",
            "WAIT:\nsetp.eq.u32 %p, %n, 0;\n@%p bra GO;\nld.volatile.global.u32 %w0, [%meet];\nsub.u32 %n, %n, 1;\nbra WAIT;\nGO:",
        ]
        names = [(k, warp, at) for k, roles in enumerate(self.roles) for warp, at in enumerate(roles)]
        for k, warp, at in names:
            lines += [f"setp.eq.u32 %p, %k, {k};\nsetp.eq.and.u32 %p, %warp, {warp}, %p;\n@%p bra ROLE{at};"]
        lines.append("bra NEXT;")
        for _, _, at in names:
            own = [index for index, (thread, _) in enumerate(self.registers) if thread == at]
            lines.append(f"ROLE{at}:")
            for index in own:
                first = self.test.first.get(self.registers[index], "0")
                lines.append(f"mov.b64 %x{index}, {self.value(at, first)};")
            lines += [*bodies[at], f"END{at}:", f"mad.lo.u64 %t, %i, {8 * self.words}, %res;"]
            lines += [f"st.global.u64 [%t+{8 * index}], %x{index};" for index in own]
            lines.append("bra NEXT;")
        lines += [
            f"NEXT:\nadd.u32 %it, %it, 1;\nsetp.lt.u32 %p, %it, {ITERATIONS};\n@%p bra AGAIN;",
            "setp.eq.u64 %p, %d, 0x123456789abcdef;\n@%p st.global.u64 [%meet+64], %d;\nret;\n}\n",
        ]
        return "\n".join(lines)

    def all_instances(self, name, body):
        head = f""".visible .entry {name}(.param .u64 memory, .param .u64 results, .param .u64 a, .param .u64 b)
{{
.reg .pred %p;
.reg .b64 %a<20>, %t, %m, %res, %la, %lb, %i;
.reg .b32 %w<3>;
ld.param.u64 %m, [memory];
ld.param.u64 %res, [results];
ld.param.u64 %la, [a];
ld.param.u64 %lb, [b];
mov.u32 %w0, %ctaid.x;
mov.u32 %w1, %tid.x;
mad.lo.u32 %w2, %w0, 256, %w1;
cvt.u64.u32 %i, %w2;
mad.lo.u64 %a0, %i, %la, %m;
mad.lo.u64 %res, %i, {8 * self.words}, %res;
"""
        addresses = [f"add.u64 %a{at}, %a{at - 1}, %lb;" for at in range(1, len(self.names))]
        return head + "\n".join([*addresses, *body, "ret;", "}", ""])

    def fill(self):
        body = []
        for at, name in enumerate(self.names):
            size = self.size(name)
            for place, word in enumerate(self.test.locations[name][1]):
                value = f"%a{self.names.index(word[1:])}" if word[0] == "&" else word
                body += [f"mov.b64 %t, {value};", f"st.global.b{8 * size} [%a{at}+{place * size}], %t;"]
        return self.all_instances("fill", body)

    def gather(self):
        body = []
        for at, name in enumerate(self.written):
            kind = self.test.locations[name][0] or "u64"
            body += [f"ld.global.{kind} %t, [%a{self.names.index(name)}];",
                     f"st.global.u64 [%res+{8 * (len(self.registers) + at)}], %t;"]
        return self.all_instances("gather", body)


INSTANCES = GROUPS * ITERATIONS * 32


def watch_all(task, library):
    """Runs tests for some time each; for each its outcomes with their numbers, or a reason."""
    paths, seconds, seed = task
    driver = Driver(library)
    return [watch(driver, path, seconds, seed) for path in paths]


def watch(driver, path, seconds, seed):
    test = Test(path)
    code = Code(test)
    module, why = driver.load(code.ptx)
    if module is None:
        return why
    chance = random.Random(seed)
    room = 512 * max(len(code.names), 1)
    memory = driver.buffer(bytes(INSTANCES * room))
    results = driver.buffer(bytes(INSTANCES * code.words * 8))
    meet = driver.buffer(bytes(256 * GROUPS))
    record = struct.Struct(f"<{code.words}Q")
    seen = collections.Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pad = chance.choice([16, 32, 64, 128, 512])
        if chance.random() < 0.5:
            a, b = pad * len(code.names), pad
        else:
            a, b = pad, pad * INSTANCES
        driver.ok("cuMemsetD8_v2", meet, ctypes.c_ubyte(0), ctypes.c_size_t(256 * GROUPS))
        places = [memory, results, ctypes.c_uint64(a), ctypes.c_uint64(b)]
        touch = chance.choice([0, chance.getrandbits(16), 0xFFFF])
        delay = chance.choice([0, 1, 3, 15, 63])
        numbers = [chance.getrandbits(32), touch, delay, chance.getrandbits(1)]
        steps = [
            ("fill", INSTANCES // 256, 256, places),
            ("run", GROUPS * len(code.roles), 32 * code.warps,
             [memory, results, meet, *places[2:], *map(ctypes.c_uint32, numbers)]),
            ("gather", INSTANCES // 256, 256, places),
        ]
        for name, grid, block, arguments in steps:
            status = driver.run(module, name, (grid, 1, 1), (block, 1, 1), arguments)
            if status:
                return f"{name} returns {status}"
        data = driver.read(results, INSTANCES * code.words * 8)
        records = record.iter_unpack(data)
        if pointers(test):
            records = named(records, memory.value, a, b, code.names)
        seen.update(records)
    for place in (memory, results, meet):
        driver.free(place)
    driver.call("cuModuleUnload", module)
    fields = [f"P{thread}:{name}" for thread, name in code.registers] + code.written
    return [(count, " /\\ ".join(f"{field} == {word}" for field, word in zip(fields, words)))
            for words, count in seen.most_common()]


def pointers(test):
    return "&" in test.text or any(re.search(r"\bst\.\S+ \w+, [a-z]\b", "\n".join(code)) for code in test.code)


def named(records, memory, a, b, names):
    """The outcomes, with the names of locations in place of their addresses."""
    for instance, words in enumerate(records):
        places = {memory + instance * a + at * b: f"&{name}" for at, name in enumerate(names)}
        yield tuple(places.get(word, word) for word in words)


# Tests of one process.
PART = 12


def observe(folders, given):
    paths = []
    for path in (path for folder in folders for path in sorted(pathlib.Path(folder).glob("*.litmus"))):
        if given["--only"] and given["--only"] not in path.stem:
            continue
        try:
            Code(Test(path))
            paths.append(path)
        except Unfit as why:
            print(f"skipped\t{path.stem}\t{why}")
    library = given["--library"]
    print("\t".join(["device", *Driver(library).about()]))
    tasks = [(paths[at : at + PART], float(given["--seconds"]), int(given["--seed"])) for at in range(0, len(paths), PART)]
    for (part, *_), answers in in_processes(watch_all, tasks, library, int(given["--jobs"]), 300):
        if isinstance(answers, str):
            answers = [answers] * len(part)
        for path, answer in zip(part, answers):
            if isinstance(answer, str):
                print(f"failed\t{path.stem}\t{answer}")
                continue
            for count, outcome in answer:
                print(f"seen\t{path.stem}\t{count}\t{outcome}")


# Threads by their accesses (a write has a value), and the outcome that sequential consistency forbids.
SHAPES = {
    "MP": ([["x=1", "y=1"], ["y", "x"]], "P1:r0 == 1 /\\ P1:r1 == 0"),
    "SB": ([["x=1", "y"], ["y=1", "x"]], "P0:r1 == 0 /\\ P1:r1 == 0"),
    "LB": ([["x", "y=1"], ["y", "x=1"]], "P0:r0 == 1 /\\ P1:r0 == 1"),
    "S": ([["x=2", "y=1"], ["y", "x=1"]], "P1:r0 == 1 /\\ x == 2"),
    "R": ([["x=1", "y=1"], ["y=2", "x"]], "P1:r1 == 0 /\\ y == 2"),
    "2+2W": ([["x=1", "y=2"], ["y=1", "x=2"]], "x == 1 /\\ y == 1"),
}


def thread(accesses, style, scope):
    """The instructions of a thread: its accesses are weak, relaxed, or release and acquire each other (`ra`), or
    they are relaxed with a fence between."""
    lines = []
    for at, access in enumerate(accesses):
        name, _, value = access.partition("=")
        order = f"relaxed.{scope}"
        if style == "weak":
            order = "weak"
        elif style == "ra":
            order = f"{'release' if value else 'acquire'}.{scope}"
        lines.append(f"st.{order} {name}, {value}" if value else f"ld.{order} r{at}, {name}")
        if style.startswith("fence") and at == 0:
            lines.append(f"{style}.{scope}")
    return lines


def generate(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    styles = [("weak", "")]
    styles += [(style, scope) for style in ("relaxed", "ra", "fence.acq_rel", "fence.sc") for scope in ("cta", "gpu")]
    for shape, (threads, clause) in SHAPES.items():
        for first in styles:
            for second in styles:
                for cta in (0, 1):
                    left, right = thread(threads[0], *first), thread(threads[1], *second)
                    rows = max(len(left), len(right))
                    cells = zip(left + [""] * (rows - len(left)), right + [""] * (rows - len(right)))
                    words = [".".join(filter(None, style)) for style in (first, second)]
                    name = f"{shape}-{'-'.join(words)}-{'other' if cta else 'same'}"
                    text = [f"PTX {name}", "{", "x = 0;", "y = 0;", "}", f" P0@cta 0,gpu 0 | P1@cta {cta},gpu 0 ;"]
                    text += [f" {a} | {b} ;" for a, b in cells]
                    (folder / f"{name}.litmus").write_text("\n".join([*text, f"exists ({clause})", ""]))


def judge(report, folders, checker):
    paths = {path.stem: path for folder in folders for path in pathlib.Path(folder).glob("*.litmus")}
    seen = collections.defaultdict(list)
    for line in pathlib.Path(report).read_text().splitlines():
        kind, *fields = line.split("\t")
        if kind == "seen":
            seen[fields[0]].append((int(fields[1]), fields[2]))
    with tempfile.TemporaryDirectory() as place:
        files, number = {}, 0
        for name, outcomes in sorted(seen.items()):
            test = Test(paths[name])
            body = test.text[: test.text.rindex(";") + 1]
            clause = re.sub(r"^(~exists|exists|forall)", "", test.clause).strip()
            outcomes = [(0, ""), *outcomes]
            for count, outcome in outcomes:
                kinds = {"allowed": f"exists ({outcome})", "clause": f"exists (({outcome}) /\\ {clause})"}
                if not outcome:
                    kinds = {"possible": f"exists {clause}"}
                for kind, text in kinds.items():
                    file = pathlib.Path(place) / test.model / f"{number}-{kind}.litmus"
                    file.parent.mkdir(exist_ok=True)
                    file.write_text(f"{body}\n{text}\n")
                    files[str(file)] = (name, kind, count, outcome)
                number += 1
        verdicts = {}
        for model in pathlib.Path(place).iterdir():
            done = subprocess.run([checker, "litmus", "--model", model.name, str(model)], capture_output=True, text=True)
            sys.stderr.write(done.stderr)
            for line in done.stdout.splitlines():
                file, _, verdict = line.rpartition(": ")
                verdicts[file] = verdict
    described, possible = collections.Counter(), {}
    for file, (name, kind, count, outcome) in files.items():
        if kind == "clause" and verdicts.get(file) == "Ok":
            described[name] += count
        if kind == "possible":
            possible[name] = verdicts.get(file)
        if kind == "allowed" and verdicts.get(file) != "Ok":
            print(f"forbidden\t{name}\t{count}\t{outcome}\t{verdicts.get(file)}")
    for name, outcomes in sorted(seen.items()):
        numbers = [len(outcomes), sum(count for count, _ in outcomes), possible[name], described[name]]
        print("\t".join(["test", name, *map(str, numbers)]))


def main():
    known = {"--library": "libcuda.so.1", "--jobs": "4", "--seconds": "3", "--seed": "1", "--only": "",
             "--judge": "", "--checker": "ptxvm", "--generate": ""}
    given, folders = options(__doc__, known)
    if given["--generate"]:
        generate(given["--generate"])
    elif given["--judge"]:
        judge(given["--judge"], folders, given["--checker"])
    else:
        observe(folders, given)


if __name__ == "__main__":
    main()
