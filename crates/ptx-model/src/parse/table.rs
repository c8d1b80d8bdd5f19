//! Parses the table of threads: its head, its rows, and labels.

use super::lex::Kind;
use super::{MOST_CODE, MOST_THREADS, Parser, thread_number};
use crate::Error;
use crate::test::{Instruction, Op, Placement, Thread};

/// The labels of a thread: places in its code, and the jumps that name them.
#[derive(Default)]
pub(super) struct Labels<'t> {
    places: Vec<(&'t str, usize)>,
    /// The jump, the label and its token.
    pub(super) jumps: Vec<(usize, &'t str, usize)>,
}

impl<'t> Parser<'t> {
    /// The head, the rows, and then the first values of registers.
    pub(super) fn table(&mut self) -> Result<(), Error> {
        self.head()?;
        let mut labels: Vec<Labels<'t>> = self.threads.iter().map(|_| Labels::default()).collect();
        // Registers with first values are known as registers before code uses them.
        for (number, name, value, place) in std::mem::take(&mut self.inits) {
            let Some(thread) = self.threads.iter().position(|thread| thread.number == number) else {
                return Err(self.error_at(place, format!("there is no thread P{number}")));
            };
            let register = self.register(thread, name);
            self.threads[thread].init[register.0] = value;
        }
        while !self.is_end_of_table() {
            self.row(&mut labels)?;
        }
        for (thread, labels) in labels.iter().enumerate() {
            self.resolve(thread, labels)?;
        }
        Ok(())
    }

    fn is_end_of_table(&self) -> bool {
        match self.peek() {
            Kind::End | Kind::Mark("~") => true,
            Kind::Word("exists" | "forall" | "filter" | "locations" | "not") => true,
            Kind::Mark("!") => matches!(self.peek_at(1), Kind::Word("exists")),
            Kind::Word(_) | Kind::Number(_) | Kind::Mark(_) => false,
        }
    }

    fn head(&mut self) -> Result<(), Error> {
        loop {
            let place = self.at;
            let word = self.want_word("a thread such as `P0@cta 0,gpu 0`")?;
            let Some(number) = thread_number(word) else {
                return Err(self.error_at(place, format!("`{word}` is no thread; `P0` is")));
            };
            if self.threads.iter().any(|thread| thread.number == number) {
                return Err(self.error_at(place, format!("there are two threads `{word}`")));
            }
            if self.threads.len() >= MOST_THREADS {
                return Err(self.error_at(place, format!("there are more than {MOST_THREADS} threads")));
            }
            let (placement, lane) = self.placement()?;
            let taken = |other: &Thread| (other.placement, other.lane) == (placement, lane);
            if lane.is_some()
                && let Some(other) = self.threads.iter().find(|other| taken(other))
            {
                let what = format!("P{number} and P{} are one lane of one warp", other.number);
                return Err(self.error_at(place, what));
            }
            self.threads.push(Thread {
                number,
                placement,
                lane,
                registers: Vec::new(),
                init: Vec::new(),
                code: Vec::new(),
            });
            if self.take(";") {
                return Ok(());
            }
            self.want("|")?;
        }
    }

    /// `@cta 0,gpu 0`, optionally with `,warp 0,lane 0`.
    fn placement(&mut self) -> Result<(Placement, Option<(u32, u32)>), Error> {
        let (mut cta, mut gpu) = (0, 0);
        let (mut warp, mut lane) = (None, None);
        if !self.take("@") {
            return Ok((Placement::Device { cta, gpu }, None));
        }
        if self.take_word("host") {
            return Ok((Placement::Host, None));
        }
        loop {
            let place = self.at;
            let word = self.want_word("`cta N`, `gpu N`, `warp N`, `lane N` or `host`")?;
            let number = match self.take_number() {
                Some(number) => u32::try_from(number)
                    .map_err(|_| self.error_at(place, "the number is too large".to_owned()))?,
                None => return Err(self.wrong("a number is wanted")),
            };
            match word {
                "cta" => cta = number,
                "gpu" => gpu = number,
                "warp" => warp = Some(number),
                "lane" if number < 32 => lane = Some(number),
                "lane" => {
                    return Err(self.error_at(place, "a warp has the lanes 0 to 31".to_owned()));
                }
                _ => {
                    let what = "is no place of a thread: `cta`, `gpu`, `warp` and `lane` are";
                    return Err(self.error_at(place, format!("`{word}` {what}")));
                }
            }
            if !self.take(",") {
                let place_in_warp = match (warp, lane) {
                    (Some(warp), Some(lane)) => Some((warp, lane)),
                    (None, None) => None,
                    _ => return Err(self.wrong("`warp` and `lane` are wanted together")),
                };
                return Ok((Placement::Device { cta, gpu }, place_in_warp));
            }
        }
    }

    fn row(&mut self, labels: &mut [Labels<'t>]) -> Result<(), Error> {
        let mut thread = 0;
        loop {
            if thread >= self.threads.len() && !self.is_end_of_cell() {
                let have = self.threads.len();
                return Err(self.wrong(&format!("a row has at most {have} cells, so `;` is wanted")));
            }
            while !self.is_end_of_cell() {
                self.cell(thread, &mut labels[thread])?;
            }
            if self.take("||") {
                thread += 2;
            } else if self.take("|") {
                thread += 1;
            } else if self.take(";") || self.is_end_of_table() {
                return Ok(());
            } else {
                return Err(self.wrong("`|` or `;` is wanted"));
            }
        }
    }

    fn is_end_of_cell(&self) -> bool {
        matches!(self.peek(), Kind::End | Kind::Mark("|" | "||" | ";"))
            || (self.is_end_of_table() && !matches!(self.peek(), Kind::Word("not")))
    }

    /// A label or an instruction.
    fn cell(&mut self, thread: usize, labels: &mut Labels<'t>) -> Result<(), Error> {
        let first = self.token();
        let place = self.at;
        if let Kind::Word(label) = first.kind
            && self.peek_at(1) == Kind::Mark(":")
        {
            self.next();
            self.next();
            if labels.places.iter().any(|(known, _)| *known == label) {
                return Err(self.error_at(place, format!("the label `{label}` stands twice in one thread")));
            }
            labels.places.push((label, self.threads[thread].code.len()));
            return Ok(());
        }
        if self.threads[thread].code.len() >= MOST_CODE {
            return Err(self.wrong(&format!("a thread has at most {MOST_CODE} instructions")));
        }
        let mut guard = None;
        if self.take("@") {
            let holds = !self.take("!");
            let name = self.want_word("a predicate")?;
            guard = Some((self.register(thread, name), holds));
        }
        let Some(op) = self.instruction(thread, labels)? else { return Ok(()) };
        if !self.is_end_of_cell() {
            return Err(self.wrong("the end of the instruction is wanted"));
        }
        let last = self.tokens[self.at.saturating_sub(1)];
        let text = self.text[first.start..last.end].split_whitespace().collect::<Vec<_>>().join(" ");
        self.threads[thread].code.push(Instruction { op, guard, text, line: first.line });
        Ok(())
    }

    /// Sets the targets of jumps.
    fn resolve(&mut self, thread: usize, labels: &Labels<'t>) -> Result<(), Error> {
        for (jump, label, place) in &labels.jumps {
            let Some((_, at)) = labels.places.iter().find(|(known, _)| known == label) else {
                let number = self.threads[thread].number;
                return Err(self.error_at(*place, format!("there is no label `{label}` in P{number}")));
            };
            if let Some(Instruction { op: Op::Branch { target, .. }, .. }) =
                self.threads[thread].code.get_mut(*jump)
            {
                *target = *at;
            }
        }
        Ok(())
    }
}
