//! The text of a sequence of calls of the driver API.
//!
//! A line is the name of a function, and the arguments that differ from valid ones:
//!
//! ```text
//! # A comment.
//! cuGraphAddKernelNode
//! cuMemcpyDtoH_v2 to=freed bytes=4294967295
//! cuStreamDestroy_v2 stream=dead:stream
//! cuGraphDestroyNode node=call1.node
//! cuMemcpy3D_v2 given=[6=device+65535,16=low:255]
//! enter
//! strike
//! ```
//!
//! An argument is a number, a value of the environment by name ([`crate::world`]) with or without an offset,
//! the result of an earlier call (the number of its line, without comments, and its parameter), or a
//! structure with other words than a valid one. Half a word is `low:` or `high:` and a number. `enter` makes
//! the environment's context current, and `strike` makes a kernel trap in it.
//!
//! Invariant: a step and its text are equivalent. Neither contains an index into a table or an address, so a
//! text keeps its meaning when functions and values are added.

use crate::table::{Parameter, implemented, table};
use crate::world::World;
use std::fmt;
use std::sync::OnceLock;

/// A function and its parameters.
pub(crate) type Row = (&'static str, Vec<Parameter>);

/// The implemented functions.
pub(crate) fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let row = |(name, row): (&'static str, &'static str)| {
            (name, table().remove(row).unwrap_or_else(|| panic!("{name} is not in the table")))
        };
        implemented().into_iter().map(row).collect()
    })
}

/// A step of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The environment's context becomes current.
    Enter,
    /// A kernel traps.
    Strike,
    /// A call of a function of [`rows`], and its arguments that are not valid ones, by parameter.
    Call(usize, Vec<(usize, Value)>),
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(u64),
    /// A value of the environment plus a number.
    Named(&'static str, u64),
    /// The result of a call: its place in the sequence, from 1, and its parameter.
    Result(usize, &'static str),
    /// The words of a structure that differ from those of a valid one.
    Structure(Vec<(usize, Word)>),
}

/// A word of a structure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Word {
    Whole(Value),
    Low(u32),
    High(u32),
}

fn number(value: u64) -> String {
    if value < 1 << 16 { value.to_string() } else { format!("{value:#x}") }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(value) => f.write_str(&number(*value)),
            Value::Named(name, 0) => f.write_str(name),
            Value::Named(name, offset) => write!(f, "{name}+{}", number(*offset)),
            Value::Result(call, parameter) => write!(f, "call{call}.{parameter}"),
            Value::Structure(words) => {
                let words: Vec<_> = words.iter().map(|(index, word)| format!("{index}={word}")).collect();
                write!(f, "[{}]", words.join(","))
            }
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Whole(value) => value.fmt(f),
            Word::Low(half) => write!(f, "low:{}", number((*half).into())),
            Word::High(half) => write!(f, "high:{}", number((*half).into())),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step::Call(row, changes) = self else {
            return f.write_str(if *self == Step::Enter { "enter" } else { "strike" });
        };
        let (name, parameters) = &rows()[*row];
        f.write_str(name)?;
        changes.iter().try_for_each(|(index, value)| write!(f, " {}={value}", parameters[*index].name))
    }
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A result's parameter, by name.
fn parameter_of_any(name: &str) -> Option<&'static str> {
    let mut all = rows().iter().flat_map(|(_, parameters)| parameters);
    all.find(|parameter| parameter.name == name).map(|parameter| parameter.name)
}

impl Value {
    fn parse(text: &str) -> Option<Self> {
        if let Some(words) = text.strip_prefix('[') {
            let words = words.strip_suffix(']')?.split(',').filter(|word| !word.is_empty());
            let word = |text: &str| {
                let (index, word) = text.split_once('=')?;
                Some((index.parse().ok().filter(|index| *index < 40)?, Word::parse(word)?))
            };
            return words.map(word).collect::<Option<_>>().map(Value::Structure);
        }
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            return parse_number(text).map(Value::Number);
        }
        if let Some((call, parameter)) = text.strip_prefix("call").and_then(|text| text.split_once('.')) {
            return Some(Value::Result(call.parse().ok()?, parameter_of_any(parameter)?));
        }
        let (name, offset) = match text.split_once('+') {
            Some((name, offset)) => (name, parse_number(offset)?),
            None => (text, 0),
        };
        let name = World::names().iter().find(|known| **known == name)?;
        Some(Value::Named(name, offset))
    }
}

impl Word {
    fn parse(text: &str) -> Option<Self> {
        let half = |text| parse_number(text).and_then(|half| u32::try_from(half).ok());
        if let Some(low) = text.strip_prefix("low:") {
            return half(low).map(Word::Low);
        }
        if let Some(high) = text.strip_prefix("high:") {
            return half(high).map(Word::High);
        }
        Value::parse(text).map(Word::Whole)
    }
}

impl Step {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        if let "enter" | "strike" = name {
            let step = if name == "enter" { Step::Enter } else { Step::Strike };
            return words.next().is_none().then_some(step);
        }
        let row = rows().iter().position(|(known, _)| *known == name)?;
        let change = |word: &str| {
            let (name, value) = word.split_once('=')?;
            let index = rows()[row].1.iter().position(|parameter| parameter.name == name)?;
            Some((index, Value::parse(value)?))
        };
        Some(Step::Call(row, words.map(change).collect::<Option<_>>()?))
    }
}

/// The steps of a text.
///
/// # Errors
/// The first line that is no step.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>, &str> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| Step::parse(line).ok_or(line)).collect()
}
