//! The context of a fault for its report: the registers that the instruction reads, in the faulting lane, and
//! the source lines around it.
//!
//! Invariant: a reported value is the value that the instruction read. Therefore only registers that the
//! instruction reads are reported: native code keeps others outside of the register file, but the operands of
//! an interpreter step are in the file. Nothing here fails: registers without names and places without lines
//! are omitted.

use crate::lanes::Registers;
use ptx::Span;
use ptx::check::module::Source;
use ptx::ir::inline::Inlined;
use ptx::ir::{Function, Program};
use ptx::isa::{Dir, rows_of};

/// The most registers of a report.
const MOST_REGISTERS: usize = 16;
/// The most bytes of a reported line.
const LINE: usize = 160;

/// The registers of one lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneRegisters {
    pred: Vec<bool>,
    r16: Vec<u16>,
    r32: Vec<u32>,
    r64: Vec<u64>,
}

impl LaneRegisters {
    /// The registers of lane `lane`.
    pub(crate) fn of(registers: &Registers, lane: usize) -> Self {
        Self {
            pred: registers.pred.iter().map(|mask| mask >> lane & 1 != 0).collect(),
            r16: registers.r16.iter().map(|values| values.0[lane]).collect(),
            r32: registers.r32.iter().map(|values| values.0[lane]).collect(),
            r64: registers.r64.iter().map(|values| values.0[lane]).collect(),
        }
    }

    /// The registers of an inlined function, from those of the function that it is inlined into.
    pub(crate) fn of_inlined(&self, inlined: &Inlined) -> Self {
        fn pick<T: Copy + Default>(all: &[T], places: &[Option<u32>]) -> Vec<T> {
            let at = |place: &Option<u32>| place.and_then(|place| all.get(place as usize).copied());
            places.iter().map(|place| at(place).unwrap_or_default()).collect()
        }
        let [pred, r16, r32, r64] = &inlined.registers;
        Self {
            pred: pick(&self.pred, pred),
            r16: pick(&self.r16, r16),
            r32: pick(&self.r32, r32),
            r64: pick(&self.r64, r64),
        }
    }

    /// The value of the register with this name, as text.
    fn value(&self, function: &Function, name: &str) -> Option<String> {
        let [pred, r16, r32, r64] = &function.reg_names;
        let place = |names: &[String]| names.iter().position(|other| other == name);
        if let Some(value) = place(pred).and_then(|i| self.pred.get(i)) {
            return Some(value.to_string());
        }
        if let Some(value) = place(r16).and_then(|i| self.r16.get(i)) {
            return Some(format!("{value:#06x}"));
        }
        if let Some(value) = place(r32).and_then(|i| self.r32.get(i)) {
            return Some(format!("{value:#010x}"));
        }
        place(r64).and_then(|i| self.r64.get(i)).map(|value| format!("{value:#018x}"))
    }

    /// The registers that the instruction reads, with their values, in the order of its text.
    pub(crate) fn read_by(&self, function: &Function, instruction: &str) -> Vec<(String, String)> {
        self.values(function, names_in(read_operands(instruction)))
    }

    /// All registers that the instruction names, with their values, in the order of its text.
    pub(crate) fn named_in(&self, function: &Function, instruction: &str) -> Vec<(String, String)> {
        self.values(
            function,
            names_in(instruction.split_once(char::is_whitespace).map_or("", |(_, rest)| rest)),
        )
    }

    fn values<'n>(&self, function: &Function, names: impl Iterator<Item = &'n str>) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for name in names {
            if found.len() < MOST_REGISTERS
                && found.iter().all(|(other, _)| other != name)
                && let Some(value) = self.value(function, name)
            {
                found.push((name.to_owned(), value));
            }
        }
        found
    }
}

/// The function of the text that contains an instruction of `function`, and how it is inlined there if it is
/// another one. The text of a function begins with its name and ends before the next name.
pub(crate) fn function_at(
    program: &Program,
    function: u32,
    span: Span,
) -> Option<(&Function, Option<&Inlined>)> {
    let own = program.functions.get(function as usize)?;
    let inlined = own
        .inlined
        .iter()
        .filter_map(|inlined| Some((program.functions.get(inlined.function.0 as usize)?, Some(inlined))));
    let before = inlined.chain([(own, None)]).filter(|(function, _)| function.span.start <= span.start);
    Some(before.max_by_key(|(function, _)| function.span.start).unwrap_or((own, None)))
}

/// The operands that the instruction reads: without the first operand if that is written.
fn read_operands(instruction: &str) -> &str {
    let (opcode, operands) = instruction.split_once(char::is_whitespace).unwrap_or((instruction, ""));
    let mnemonic = opcode.split('.').next().unwrap_or_default();
    let form = rows_of(mnemonic).first().map(|row| row.form());
    let writes = form.and_then(|form| form.operands.first()).is_some_and(|operand| operand.dir == Dir::Out);
    if writes { behind_first(operands) } else { operands }
}

/// The identifiers in operands.
fn names_in(operands: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'));
    operands.split(part).filter(|name| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()))
}

/// The text after the first operand, which may be a list in braces.
fn behind_first(operands: &str) -> &str {
    let mut depth = 0usize;
    for (index, c) in operands.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return &operands[index + 1..],
            _ => {}
        }
    }
    ""
}

/// The line of a place with the line before and after it, with line numbers.
pub(crate) fn lines_around(source: &Source, span: Span) -> Vec<(u32, String)> {
    let line = source.line(span);
    let name = source.name_of(span);
    let bytes = |at: u32| source.lines().bytes(&source.text, at);
    let own = bytes(span.start);
    let shown = |range: std::ops::Range<usize>| {
        let text = source.text.get(range).unwrap_or_default();
        let cut = &text[..text.floor_char_boundary(LINE)];
        let cut: String = cut.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if text.len() > LINE { cut + "…" } else { cut }
    };
    let mut lines = Vec::new();
    if let Some(before) = own.start.checked_sub(1).filter(|_| line > 1) {
        lines.push((line - 1, shown(bytes(before as u32))));
    }
    lines.push((line, shown(own.clone())));
    let next = source.text[own.end.min(source.text.len())..].find('\n').map(|i| own.end + i + 1);
    if let Some(next) = next.filter(|next| *next < source.text.len())
        && source.name_of(Span::new(next as u32, next as u32)) == name
    {
        lines.push((line + 1, shown(bytes(next as u32))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(instruction: &str) -> Vec<&str> {
        names_in(read_operands(instruction)).collect()
    }

    #[test]
    fn registers_that_an_instruction_reads() {
        assert_eq!(names("ld.global.u32 %r1, [%rd1+4];"), ["%rd1"]);
        assert_eq!(names("ld.global.v2.u32 {%r1, %r2}, [%rd1];"), ["%rd1"]);
        assert_eq!(names("st.global.u32 [%rd3], %r2;"), ["%rd3", "%r2"]);
        assert_eq!(names("atom.global.add.u32 %r1, [%rd1], %r2;"), ["%rd1", "%r2"]);
        assert_eq!(names("trap;"), Vec::<&str>::new());
    }

    #[test]
    fn a_line_has_its_neighbours() {
        let source = Source::new("x", "one\ntwo\nthree\n");
        let at = |at: u32| lines_around(&source, Span::new(at, at + 1));
        let line = |number: u32, text: &str| (number, text.to_owned());
        assert_eq!(at(4), [line(1, "one"), line(2, "two"), line(3, "three")]);
        assert_eq!(at(0), [line(1, "one"), line(2, "two")]);
        assert_eq!(at(8), [line(2, "two"), line(3, "three")]);
    }
}
