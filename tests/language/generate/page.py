"""One data file of the language tests: modules, lines that are valid, lines that carry a mistake.

A line names registers `%TYPE_NUMBER` (`%u32_0`, `%pred_1`) and the variables of `VARIABLES`; what a module uses is declared in
it. Everything here is text: nothing is taken from ptxvm's own table.
"""

import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent

BITS = ["b8", "b16", "b32", "b64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
SIGNED = ["s8", "s16", "s32", "s64"]
FLOAT = ["f16", "f16x2", "f32", "f64"]
REGISTERS = BITS + UNSIGNED + SIGNED + FLOAT
"""Types that registers have, save `.pred`. PTX ISA 5.2.1."""
EVERY = ["pred"] + REGISTERS
"""Types that an instruction of PTX 6.4 could be written with."""

INT = ["u16", "u32", "u64", "s16", "s32", "s64"]
"""The types of integer arithmetic."""
ANY = ["b16", "b32", "b64", *INT, "f32", "f64"]
"""The types of selection and comparison."""

VARIABLES = {
    "gvar": ".global .align 32 .b8 gvar[256];",
    "gword": ".global .u32 gword;",
    "gquad": ".global .u64 gquad;",
    "garr": ".global .u32 garr[8];",
    "cvar": ".const .align 16 .b8 cvar[64];",
    "svar": ".shared .align 32 .b8 svar[256];",
    "tref": ".global .texref tref;",
    "dfun": ".func dfun()\n{\n    ret;\n}",
}
"""Module variables that a line may use, with their declarations."""
LOCALS = {"lvar": "    .local .align 16 .b8 lvar[64];", "callpar": "    .param .b32 callpar;"}
"""Variables of the body."""


TAKEN = [
    ("P0202", r"^vsh[lr]\.\w+\.\w+\.\w+\.(clamp|wrap)\.sat ", "P0905"),
    ("P0204", r"^selp\.u32 .*, !%", "P0911"),
    ("P0204", r"^setp\.[a-z.]+\.f16x2 %pred_0, %f16x2_0, %f16x2_1", "P0905"),
    ("P0204", r"^mov\.\S+ \S+ %\w+\+\d+;", "P0909"),
    ("P0205", r"\[%u16_1\]", "P0905"),
    ("P0205", r"^mov\.u16 %u16_0, (gvar|svar|dfun|kernel);", "P0905"),
    ("P0210", r"^lop3\.b32 .*, (256|-1|0x100|4294967295);", "P0902"),
    ("P0501", r"^nanosleep\.u32 20;", "P0905"),
]
"""What the manual forbids and ptxas takes: the error it would be, the text of the line, and the code of the warning. From the project's
table of what ptxas accepts; the meaning of each is plain."""


def size(ty):
    """The number of bits of a type."""
    if ty == "pred":
        return 1
    return 32 if ty == "f16x2" else int(ty[1:])


def kind(ty):
    """The first letter of a type: `u`, `s`, `b` or `f`."""
    return ty[0]


def agrees(instruction, register):
    """Whether a register of one type may stand for a value of the other. PTX ISA 9.4, table 23."""
    if "pred" in (instruction, register):
        return instruction == register
    if size(instruction) != size(register):
        return False
    a, b = kind(instruction), kind(register)
    return "b" in (a, b) or (a in "us") == (b in "us") and (a in "us" or instruction == register)


def fits(instruction, register):
    """Whether a register may be the data operand of `ld`, `st` or `cvt`. PTX ISA 9.4.1, tables 24 and 25."""
    if register == "pred" or size(register) < size(instruction):
        return False
    a, b = kind(instruction), kind(register)
    if a == "f":
        return b == "b" or instruction == register
    return a == "b" or b in "bus"


def r(ty, number=0):
    """The name of a register."""
    return f"%{ty}_{number}"


class Page:
    """A file; modules are added in order."""

    def __init__(self, name, about):
        self.name = name
        self.text = [f"// {about}", "// Made by generate/ in this folder; edit that."]
        self.module = None

    def begin(self, title, version="6.4", target="sm_70", wide=True, gpu=None):
        """Begins a module."""
        self._close()
        self.module = (title, version, target, wide, gpu)
        self.lines = []
        self.parameters = []

    def ok(self, ids, *lines):
        """Lines that are valid uses of these rows."""
        for line in lines:
            self.lines.append(f"    {line} //+ {ids}")

    def bad(self, code, ids, *lines):
        """Lines that each carry one mistake, or one of the mistakes that ptxas takes."""
        for line in lines:
            taken = next((warning for error, text, warning in TAKEN if error == code and re.search(text, line)), None)
            mark = f"//! {taken}" if taken else f"//~ {code}"
            self.lines.append(f"    {line} {mark} {ids}".rstrip())

    def warn(self, code, ids, *lines):
        """Lines that are accepted with a warning."""
        for line in lines:
            self.lines.append(f"    {line} //! {code} {ids}")

    def order(self, ids, *lines):
        """Lines whose modifiers stand in an order that the manual does not print: ptxas takes them, and so do we."""
        self.warn("P0905", ids, *lines)

    def raw(self, *lines):
        """Lines that say nothing by themselves."""
        self.lines += [f"    {line}" for line in lines]

    def types(self, code, ids, good, line, skip=()):
        """One mistake for each type that is not in `good`; `line` makes the text of a type."""
        for ty in EVERY:
            if ty not in good and ty not in skip:
                self.bad(code, ids, line(ty))

    def _close(self):
        if self.module is None:
            return
        title, version, target, wide, gpu = self.module
        out = self.text
        out.append(f"//==== {title}" + (f" @gpu={gpu}" if gpu else ""))
        out += [f".version {version}", f".target {target}"]
        if wide:
            out.append(".address_size 64")
        body = "\n".join(self.lines)
        used = lambda name: re.search(rf"(?<![\w%.]){name}\b", body)
        out += [text for name, text in VARIABLES.items() if used(name)]
        old = tuple(map(int, version.split("."))) < (1, 2)
        visible = "" if old else ".visible "
        word = ".u64" if wide else ".u32"
        out += [f"{visible}.entry kernel(.param {word} kpar)", "{"]
        highest = {}
        for ty, number in re.findall(r"%([bsuf]\d+|f16x2|pred)_(\d+)\b", body):
            highest[ty] = max(highest.get(ty, 0), int(number))
        for ty in EVERY:
            if ty in highest:
                out.append(f"    .reg .{ty} %{ty}_<{highest[ty] + 1}>;")
        for lanes, ty in sorted(set(re.findall(r"%v([24])([bsuf]\d+)_0", body))):
            out.append(f"    .reg .v{lanes} .{ty} %v{lanes}{ty}_0;")
        out += [text for name, text in LOCALS.items() if used(name)]
        out += self.lines
        out += ["    ret;" if version < "1.0" else "    exit;", "}"]
        self.module = None

    def write(self):
        """Writes the file."""
        self._close()
        (FOLDER / f"{self.name}.ptx").write_text("\n".join(self.text) + "\n")
