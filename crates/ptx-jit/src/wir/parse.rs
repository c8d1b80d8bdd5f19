//! Reads the text form of WIR ([`print`](super::print)).
//!
//! Invariant: no text makes the parser panic, and nothing is sized by a number of the text that was not
//! compared with a limit before. What it returns has a kind for every value, but may break any other rule:
//! [`verify`](super::verify) checks them.
//!
//! Comments begin with `;` and end with the line. Empty lines mean nothing.

use super::group::{Group, GroupKind, Member};
use super::prefetch::Deferral;
use super::uses::DefUse;
use super::{
    Affine, Block, BlockId, Chain, Cond, Entry, Exit, ExitReason, Func, GuardKind, Kind, Op, OpKind, Pending,
    Phi, Resume, Shape, Site, Term, Value,
};
use ptx::ir::{Reg, RegClass};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

/// The highest number of a value. Chosen: a function of the most operations that are compiled has fewer
/// values.
const MAX_VALUE: u32 = 1 << 20;
/// The most lanes of a coarse warp.
const MAX_LANES: usize = 1024;

/// Why a text is not WIR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

type Parsed<T> = Result<T, String>;

/// Reads a function.
///
/// # Errors
/// Names the first line that is not of the language.
pub fn parse(text: &str) -> Result<Func, ParseError> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        let code = line.split(';').next().unwrap_or_default();
        let mut words = Words::new(code);
        let read = if words.peek().is_some() { reader.line(&mut words) } else { Ok(()) };
        read.map_err(|message| ParseError { line: at + 1, message })?;
    }
    reader.finish().map_err(|message| ParseError { line: text.lines().count(), message })
}

/// The words of a line; each of `()[]:=` is a word by itself.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        Self { rest: line.trim_start() }
    }

    fn peek(&self) -> Option<&'a str> {
        let is_mark = |c: char| "()[]:=".contains(c);
        let first = self.rest.chars().next()?;
        let end = match is_mark(first) {
            true => first.len_utf8(),
            false => self.rest.find(|c: char| c.is_whitespace() || is_mark(c)).unwrap_or(self.rest.len()),
        };
        self.rest.get(..end)
    }

    fn word(&mut self) -> Parsed<&'a str> {
        let word = self.peek().ok_or("the line ends too early")?;
        self.rest = self.rest.get(word.len()..).unwrap_or_default().trim_start();
        Ok(word)
    }

    /// Takes the next word if it is that one.
    fn takes(&mut self, wanted: &str) -> bool {
        let is = self.peek() == Some(wanted);
        if is {
            let _ = self.word();
        }
        is
    }

    fn expect(&mut self, wanted: &str) -> Parsed<()> {
        let found = self.peek().unwrap_or("the end of the line");
        if self.takes(wanted) { Ok(()) } else { Err(format!("expected `{wanted}`, found `{found}`")) }
    }

    fn end(&self) -> Parsed<()> {
        self.peek().map_or(Ok(()), |word| Err(format!("`{word}` is too much")))
    }

    fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("`{word}` is not a number, or too large"))
    }

    /// A number in hexadecimal digits behind `0x`.
    fn bits(&mut self) -> Parsed<u64> {
        let word = self.word()?;
        let digits = word.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let bits = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        bits.ok_or_else(|| format!("`{word}` is not a number such as 0x2a"))
    }

    fn value(&mut self) -> Parsed<Value> {
        let word = self.word()?;
        let number = word.strip_prefix('v').and_then(|number| number.parse().ok());
        let number = number.filter(|number| *number <= MAX_VALUE);
        number
            .map(Value)
            .ok_or_else(|| format!("`{word}` is not a value such as v1, of at most v{MAX_VALUE}"))
    }

    fn block(&mut self) -> Parsed<BlockId> {
        let word = self.word()?;
        let number = word.strip_prefix('b').and_then(|number| number.parse().ok());
        number.map(BlockId).ok_or_else(|| format!("`{word}` is not a block such as b1"))
    }

    fn site(&mut self) -> Parsed<Site> {
        let word = self.word()?;
        let site = word
            .split_once('.')
            .and_then(|(block, index)| Some(Site { block: block.parse().ok()?, index: index.parse().ok()? }));
        site.ok_or_else(|| format!("`{word}` is not an instruction such as 0.3"))
    }

    fn reg(&mut self) -> Parsed<Reg> {
        let word = self.word()?;
        let reg = word.split_once('.').and_then(|(class, index)| {
            let Kind::Reg(class) = kind(if class == "p" { "pred" } else { class })? else { return None };
            Some(Reg { class, index: index.parse().ok()? })
        });
        reg.ok_or_else(|| format!("`{word}` is not a register such as r32.1"))
    }

    /// All values up to the end of the line or the next mark.
    fn values(&mut self) -> Parsed<Vec<Value>> {
        let mut values = Vec::new();
        while self.peek().is_some_and(|word| word.starts_with('v')) {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn regs(&mut self) -> Parsed<Vec<(Reg, Value)>> {
        let mut regs = Vec::new();
        self.expect("[")?;
        while !self.takes("]") {
            let reg = self.reg()?;
            self.expect("=")?;
            regs.push((reg, self.value()?));
        }
        Ok(regs)
    }

    fn exit(&mut self) -> Parsed<Exit> {
        let why = match self.word()? {
            "finished" => ExitReason::Finished,
            "yield" => ExitReason::Yield { block: self.number()? },
            "terminator" => ExitReason::Terminator { block: self.number()? },
            "before" => ExitReason::Before(self.site()?),
            "declined" => ExitReason::Declined,
            word => return Err(format!("`{word}` is not a reason to exit")),
        };
        self.expect("mask")?;
        let mask = self.value()?;
        self.expect("live")?;
        let live = self.value()?;
        let carry = if self.takes("carry") { Some(self.value()?) } else { None };
        self.expect("steps")?;
        let (full_steps, masked_steps, lane_steps) = (self.value()?, self.value()?, self.value()?);
        self.expect("fuel")?;
        let turns = self.value()?;
        let resume = if self.takes("resume") { Some(self.number()?) } else { None };
        let regs = self.regs()?;
        let mut parked = Vec::new();
        while self.takes("pending") {
            parked.push(Pending { block: self.number()?, mask: self.value()?, regs: self.regs()? });
        }
        Ok(Exit { why, mask, live, carry, regs, parked, full_steps, masked_steps, lane_steps, turns, resume })
    }

    /// A group of accesses, behind the word `group`.
    fn group(&mut self, block: &Block) -> Parsed<Group> {
        let word = self.word()?;
        let kind = GroupKind::ALL.into_iter().find(|kind| kind.name() == word);
        let kind = kind.ok_or_else(|| format!("`{word}` is not a kind of group"))?;
        let word = self.word()?;
        let mut access =
            Group::access(word).ok_or_else(|| format!("`{word}` is not an access such as ld.global.u32"))?;
        let base = self.value()?;
        self.expect("[")?;
        let mut members = Vec::new();
        while !self.takes("]") {
            let word = self.word()?;
            let (site, offset) = member(word)
                .ok_or_else(|| format!("`{word}` is not an instruction with its offset, such as 0.3+4"))?;
            let is_it = |op: &Op| matches!(op.kind, OpKind::Inst(own) if own == site);
            let at = block.ops.iter().position(is_it);
            let at =
                at.ok_or_else(|| format!("the block has no instruction {}.{}", site.block, site.index))?;
            members.push(Member { at, offset });
        }
        if kind == GroupKind::Gather {
            access.count = members.len() as u32;
        }
        Ok(Group { kind, base, access, members })
    }

    /// Runs of numbers such as `[0+4x32 5-1x2]`.
    fn runs(&mut self) -> Parsed<Box<[i32]>> {
        let mut numbers = Vec::new();
        self.expect("[")?;
        while !self.takes("]") {
            let word = self.word()?;
            let (first, step, count) =
                run(word).ok_or_else(|| format!("`{word}` is not a run such as 0+4x32"))?;
            if count > MAX_LANES - numbers.len() {
                return Err(format!("more than {MAX_LANES} lanes"));
            }
            for at in 0..count as i64 {
                let number = first + at * step;
                numbers
                    .push(i32::try_from(number).map_err(|_| "a constant of more than 32 bits".to_owned())?);
            }
        }
        Ok(numbers.into())
    }

    fn shape(&mut self) -> Parsed<Shape> {
        self.expect("(")?;
        let shape = match self.word()? {
            "bottom" => Shape::Bottom,
            "uniform" => Shape::Uniform(None),
            "=" => Shape::Uniform(Some(self.bits()?)),
            "varying" => Shape::Varying,
            "affine" => {
                let by_chunk = self.takes("by-chunk");
                self.expect("align")?;
                let align = self.number()?;
                self.expect("lanes")?;
                let lanes = self.runs()?;
                let rows = if self.takes("rows") { self.runs()? } else { Box::default() };
                Shape::Affine(Box::new(Affine { by_chunk, align, lanes, rows }))
            }
            word => return Err(format!("`{word}` is not a shape")),
        };
        self.expect(")")?;
        Ok(shape)
    }
}

fn run(word: &str) -> Option<(i64, i64, usize)> {
    let (numbers, count) = word.split_once('x')?;
    let sign = numbers.char_indices().skip(1).find(|(_, c)| matches!(c, '+' | '-'))?.0;
    let (first, step) = numbers.split_at_checked(sign)?;
    let (first, step): (i32, i64) = (first.parse().ok()?, step.parse().ok()?);
    let near = step.unsigned_abs() <= u64::from(u32::MAX);
    Some((i64::from(first), step, count.parse().ok().filter(|count| *count > 0 && near)?))
}

/// An instruction and an offset, such as `0.3+4`.
fn member(word: &str) -> Option<(Site, i64)> {
    let (site, offset) = word.split_at_checked(word.find(['+', '-'])?)?;
    let (block, index) = site.split_once('.')?;
    Some((Site { block: block.parse().ok()?, index: index.parse().ok()? }, offset.parse().ok()?))
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "pred" => Kind::Reg(RegClass::Pred),
        "r16" => Kind::Reg(RegClass::R16),
        "r32" => Kind::Reg(RegClass::R32),
        "r64" => Kind::Reg(RegClass::R64),
        "mask" => Kind::Mask,
        "count" => Kind::Count,
        _ => return None,
    })
}

/// What has been read.
#[derive(Default)]
struct Reader {
    start: Option<BlockId>,
    entries: Vec<Entry>,
    resumes: Vec<Resume>,
    zeros: Vec<Value>,
    undef: Vec<Value>,
    blocks: Vec<Block>,
    /// Whether the last block has its terminator.
    ended: bool,
    /// Values with their kinds, and their shapes where they are given.
    defs: Vec<(Value, Kind, Option<Shape>)>,
    /// The highest value that is named.
    highest: u32,
}

impl Reader {
    fn line(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        match words.peek().unwrap_or_default() {
            "start" => {
                words.word()?;
                self.start = Some(words.block()?);
            }
            "entry" => {
                words.word()?;
                self.entries.push(Entry {
                    block: words.number()?,
                    node: words.block()?,
                    relies: words.regs()?,
                });
            }
            "resume" => {
                words.word()?;
                self.resume(words)?;
            }
            word @ ("zero" | "undef") => {
                words.word()?;
                let zero = self.def(words)?;
                self.zeros.push(zero);
                if word == "undef" {
                    self.undef.push(zero);
                }
            }
            word if word.starts_with('b') && word[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.header(words)?;
            }
            _ => self.operation(words)?,
        }
        words.end()
    }

    fn resume(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        let number: usize = words.number()?;
        if number != self.resumes.len() {
            return Err(format!("expected resume {}", self.resumes.len()));
        }
        words.expect("ptx")?;
        let block = words.number()?;
        let id = match words.word()? {
            "barrier" => Some(words.number()?),
            "loop" => None,
            word => return Err(format!("expected `barrier` or `loop`, found `{word}`")),
        };
        let counted = words.takes("counted");
        let (node, kept) = (words.block()?, words.regs()?);
        self.resumes.push(Resume { block, id, counted, node, kept });
        Ok(())
    }

    fn header(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        let id = words.block()?;
        if id.0 as usize != self.blocks.len() {
            return Err(format!("expected b{}", self.blocks.len()));
        }
        if !self.blocks.is_empty() && !self.ended {
            return Err(format!("b{} has no terminator", self.blocks.len() - 1));
        }
        words.expect("ptx")?;
        let block = words.number()?;
        let full = match words.word()? {
            "full" => true,
            "masked" => false,
            word => return Err(format!("expected `full` or `masked`, found `{word}`")),
        };
        let mut preds = Vec::new();
        if words.takes("from") {
            while words.peek() != Some(":") {
                preds.push(words.block()?);
            }
        }
        words.expect(":")?;
        self.blocks.push(Block { preds, ..Block::new(block, full, Vec::new(), Term::Goto(id)) });
        self.ended = false;
        Ok(())
    }

    fn operation(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        if self.blocks.is_empty() || self.ended {
            return Err("an operation outside of a block".to_owned());
        }
        let mut defs = Vec::new();
        while words.peek().is_some_and(|word| word.starts_with('v')) {
            defs.push(self.def(words)?);
        }
        if !defs.is_empty() {
            words.expect("=")?;
        }
        let word = words.word()?;
        if let Some(term) = term(word, words)? {
            if !defs.is_empty() {
                return Err("a terminator defines nothing".to_owned());
            }
            term.for_each_use(&mut |value| self.highest = self.highest.max(value.0));
            if let Some(block) = self.blocks.last_mut() {
                block.term = term;
            }
            self.ended = true;
            return Ok(());
        }
        let Some(block) = self.blocks.last_mut() else { return Ok(()) };
        if block.deferral.is_some() {
            return Err("an operation behind deferred prefetches".to_owned());
        }
        if word == "defer-prefetches" {
            if !defs.is_empty() {
                return Err("deferred prefetches define nothing".to_owned());
            }
            let to = words.block()?;
            words.expect("lines")?;
            block.deferral = Some(Deferral { to, lines: words.number()? });
            return Ok(());
        }
        if word == "group" {
            if !defs.is_empty() {
                return Err("a group defines nothing".to_owned());
            }
            let group = words.group(block)?;
            self.highest = self.highest.max(group.base.0);
            block.groups.push(Rc::new(group));
            return Ok(());
        }
        if !block.groups.is_empty() {
            return Err("an operation behind a group".to_owned());
        }
        if word == "phi" {
            let [def] = defs[..] else { return Err("a phi defines one value".to_owned()) };
            if !block.ops.is_empty() {
                return Err("a phi behind an operation".to_owned());
            }
            let from = words.values()?;
            from.iter().for_each(|value| self.highest = self.highest.max(value.0));
            block.phis.push(Phi { def, from });
            return Ok(());
        }
        let (mut kind, uses) = op_kind(word, words)?;
        if let OpKind::Guard(_, _, exit) | OpKind::Ahead(exit) | OpKind::Spare(_, exit) = &mut kind {
            **exit = words.exit()?;
        }
        if let OpKind::Chain(chain) = &mut kind {
            let mask = *uses.first().ok_or("a chain without a mask")?;
            while words.takes("[") {
                let def = self.def(words)?;
                words.expect("=")?;
                let kind = OpKind::Inst(words.site()?);
                let uses: Vec<Value> = std::iter::once(mask).chain(words.values()?).collect();
                uses.iter().for_each(|value| self.highest = self.highest.max(value.0));
                chain.ops.push(Op { kind, uses, defs: vec![def], access: None, prefetch: None });
                words.expect("]")?;
            }
            for (word, values) in [("tested", &mut chain.tested), ("any-nan", &mut chain.any_nan)] {
                if words.takes(word) {
                    *values = words.values()?;
                }
            }
        }
        let Some(block) = self.blocks.last_mut() else { return Ok(()) };
        let op = Op { kind, uses, defs, access: None, prefetch: None };
        op.for_each_use(&mut |value| self.highest = self.highest.max(value.0));
        block.ops.push(op);
        Ok(())
    }

    /// A value where it is defined.
    fn def(&mut self, words: &mut Words<'_>) -> Parsed<Value> {
        let value = words.value()?;
        words.expect(":")?;
        let word = words.word()?;
        let kind = kind(word).ok_or_else(|| format!("`{word}` is not a kind of value"))?;
        let shape = if words.peek() == Some("(") { Some(words.shape()?) } else { None };
        self.highest = self.highest.max(value.0);
        self.defs.push((value, kind, shape));
        Ok(value)
    }

    fn finish(mut self) -> Parsed<Func> {
        let start = self.start.ok_or("there is no start")?;
        if self.blocks.is_empty() || !self.ended {
            return Err("the last block has no terminator".to_owned());
        }
        let kept = self.resumes.iter().flat_map(|resume| &resume.kept);
        for (_, value) in kept.chain(self.entries.iter().flat_map(|entry| &entry.relies)) {
            self.highest = self.highest.max(value.0);
        }
        let count = self.highest as usize + 1;
        // What nothing defines is the verifier's affair.
        let mut kinds = vec![Kind::Count; count];
        let shaped = self.defs.iter().any(|(_, _, shape)| shape.is_some());
        let mut shapes = if shaped { vec![Shape::Bottom; count] } else { Vec::new() };
        for (value, kind, shape) in self.defs {
            kinds[value.0 as usize] = kind;
            if let Some(shape) = shape {
                shapes[value.0 as usize] = shape;
            }
        }
        let (blocks, entries, resumes) = (self.blocks, self.entries, self.resumes);
        let (zeros, undef, needed) = (self.zeros, self.undef, Vec::new());
        let (slot_memory, lane_widths) = (None, HashMap::new());
        let mut func = Func {
            blocks,
            kinds,
            shapes,
            entries,
            start,
            resumes,
            zeros,
            undef,
            needed,
            slot_memory,
            lane_widths,
        };
        let uses = DefUse::new(&func);
        func.needed = (0..count as u32).map(|value| uses.reads(Value(value)) > 0).collect();
        Ok(func)
    }
}

/// The kind of an operation, without its exit, and the values that it reads.
fn op_kind(word: &str, words: &mut Words<'_>) -> Parsed<(OpKind, Vec<Value>)> {
    // Replaced by what is read behind the operands.
    let zero = Value(0);
    let exit = || {
        Box::new(Exit {
            why: ExitReason::Declined,
            mask: zero,
            live: zero,
            carry: None,
            regs: Vec::new(),
            parked: Vec::new(),
            full_steps: zero,
            masked_steps: zero,
            lane_steps: zero,
            turns: zero,
            resume: None,
        })
    };
    let kind = match word {
        "inst" => OpKind::Inst(words.site()?),
        // Its instructions are behind the operands.
        "chain" => {
            OpKind::Chain(Box::new(Chain { ops: Vec::new(), tested: Vec::new(), any_nan: Vec::new() }))
        }
        "select-mask" => OpKind::SelectMask,
        "select-pred" => OpKind::SelectPred { negated: false },
        "select-pred-not" => OpKind::SelectPred { negated: true },
        "load" => OpKind::Load(words.reg()?),
        "reload" => OpKind::Reload(words.reg()?),
        "spill" => OpKind::Spill(words.reg()?),
        "restore" => OpKind::Restore(words.number()?, words.reg()?),
        "reduced" => OpKind::Reduced(words.number()?, words.reg()?),
        "mask" => {
            let bits = words.bits()?;
            OpKind::Mask(u32::try_from(bits).map_err(|_| "a mask of more than 32 lanes".to_owned())?)
        }
        "entry-mask" => OpKind::EntryMask,
        "entry-live" => OpKind::EntryLive,
        "entry-carry" => OpKind::EntryCarry,
        "entry-fuel" => OpKind::EntryTurns,
        "count" => OpKind::Count(words.number()?),
        "truths" => OpKind::Truths { negated: false },
        "truths-not" => OpKind::Truths { negated: true },
        "in-range" => OpKind::InRange { first: words.number()?, count: words.number()? },
        "picks-first" => OpKind::Picks { site: words.site()?, second: false },
        "picks-second" => OpKind::Picks { site: words.site()?, second: true },
        "same-quotient" => OpKind::SameQuotient(words.site()?),
        "rebase" => OpKind::Rebase,
        "and" => OpKind::And,
        "and-not" => OpKind::AndNot,
        "or" => OpKind::Or,
        "add" => OpKind::Add(words.number()?),
        "add-lanes" => OpKind::AddLanes(words.number()?),
        "add-warps" => OpKind::AddWarps(words.number()?),
        "wrap-guard" => OpKind::Guard(words.site()?, GuardKind::Exact, exit()),
        "same-guard" => OpKind::Guard(words.site()?, GuardKind::SameInAll, exit()),
        "wrap-guard-active" => OpKind::Guard(words.site()?, GuardKind::ExactInActive, exit()),
        "block-check" => OpKind::Ahead(exit()),
        "access-exit" => OpKind::Spare(words.site()?, exit()),
        _ => return Err(format!("`{word}` is not an operation")),
    };
    Ok((kind, words.values()?))
}

/// The terminator that begins with a word; `None`: the word begins none.
fn term(word: &str, words: &mut Words<'_>) -> Parsed<Option<Term>> {
    Ok(Some(match word {
        "goto" => Term::Goto(words.block()?),
        "if" => {
            let cond = cond(words)?;
            words.expect("then")?;
            let then = words.block()?;
            words.expect("else")?;
            let els = words.block()?;
            let likely = match words.peek() {
                Some("likely") => Some(true),
                Some("unlikely") => Some(false),
                _ => None,
            };
            if likely.is_some() {
                words.word()?;
            }
            Term::If { cond, then, els, likely }
        }
        "switch" => {
            let value = words.value()?;
            words.expect("[")?;
            let mut targets = Vec::new();
            while !words.takes("]") {
                targets.push(words.block()?);
            }
            words.expect("else")?;
            Term::Switch { value, targets, beyond: words.block()? }
        }
        "exit" => Term::Exit(Box::new(words.exit()?)),
        _ => return Ok(None),
    }))
}

fn cond(words: &mut Words<'_>) -> Parsed<Cond> {
    Ok(match words.word()? {
        "pred" => Cond::Pred { value: words.value()?, negated: false },
        "not-pred" => Cond::Pred { value: words.value()?, negated: true },
        "empty" => Cond::Empty(words.value()?),
        "equal" => Cond::Equal(words.value()?, words.value()?),
        "full" => Cond::Full(words.value()?),
        "negative" => Cond::Negative(words.value()?),
        "together" => {
            let site = words.site()?;
            words.expect("mask")?;
            let mask = words.value()?;
            words.expect("live")?;
            let live = words.value()?;
            let members = if words.takes("members") { Some(words.value()?) } else { None };
            Cond::Together { site, members, mask, live }
        }
        word => return Err(format!("`{word}` is not a condition")),
    })
}
