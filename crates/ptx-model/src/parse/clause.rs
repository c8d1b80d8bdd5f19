//! Parses clauses: conditions on the final state, and on relations between instructions.

use super::lex::Kind;
use super::{MOST_DEPTH, Parser};
use crate::Error;
use crate::test::{Clause, Comparison, Link, Term};

impl Parser<'_> {
    pub(super) fn clause(&mut self) -> Result<Clause, Error> {
        self.disjunction(0)
    }

    fn disjunction(&mut self, depth: usize) -> Result<Clause, Error> {
        let mut all = vec![self.conjunction(depth)?];
        while self.take("\\/") || self.take("||") || self.take_word("or") {
            all.push(self.conjunction(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Clause::Or(all) })
    }

    fn conjunction(&mut self, depth: usize) -> Result<Clause, Error> {
        let mut all = vec![self.unit(depth)?];
        while self.take("/\\") || self.take("&&") || self.take_word("and") {
            all.push(self.unit(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Clause::And(all) })
    }

    fn unit(&mut self, depth: usize) -> Result<Clause, Error> {
        if depth > MOST_DEPTH {
            return Err(self.wrong(&format!("clauses nest at most {MOST_DEPTH} deep")));
        }
        if self.take("~") || self.take("!") || self.take_word("not") {
            return Ok(Clause::Not(Box::new(self.unit(depth + 1)?)));
        }
        if self.take("(") {
            let inner = self.disjunction(depth + 1)?;
            self.want(")")?;
            return Ok(inner);
        }
        if self.take_word("true") {
            return Ok(Clause::True);
        }
        if self.take_word("false") {
            return Ok(Clause::Not(Box::new(Clause::True)));
        }
        if self.peek_at(1) == Kind::Mark("(")
            && let Kind::Word(word) = self.peek()
            && let Some(link) = Link::ALL.into_iter().find(|link| link.name() == word)
        {
            self.next();
            self.next();
            let a = self.instruction_place()?;
            self.want(",")?;
            let b = self.instruction_place()?;
            self.want(")")?;
            return Ok(Clause::Related(link, a, b));
        }
        let a = self.term()?;
        let comparison = match self.peek() {
            Kind::Mark("=" | "==") => Comparison::Eq,
            Kind::Mark("!=") => Comparison::Ne,
            Kind::Mark("<") => Comparison::Lt,
            Kind::Mark("<=") => Comparison::Le,
            Kind::Mark(">") => Comparison::Gt,
            Kind::Mark(">=") => Comparison::Ge,
            _ => return Err(self.wrong("a comparison is wanted")),
        };
        self.next();
        let b = self.term()?;
        Ok(Clause::Compare(comparison, a, b))
    }

    /// `P0:1`: the second instruction of a thread.
    fn instruction_place(&mut self) -> Result<(usize, usize), Error> {
        let place = self.at;
        let Some(number) = self.take_thread() else {
            return Err(self.wrong("an instruction such as `P0:1` is wanted"));
        };
        let thread = self.thread_of(number, place)?;
        let most = self.threads[thread].code.len();
        match self.take_number() {
            Some(at) if at < most as u64 => Ok((thread, at as usize)),
            _ => Err(self.error_at(place, format!("P{number} has {most} instructions, counted from 0"))),
        }
    }

    fn thread_of(&self, number: u32, place: usize) -> Result<usize, Error> {
        let found = self.threads.iter().position(|thread| thread.number == number);
        found.ok_or_else(|| self.error_at(place, format!("there is no thread P{number}")))
    }

    fn term(&mut self) -> Result<Term, Error> {
        let place = self.at;
        if let Some(number) = self.take_thread() {
            let thread = self.thread_of(number, place)?;
            let name = self.want_word("a register")?;
            return Ok(Term::Reg(thread, self.register(thread, name)));
        }
        if let Some(number) = self.take_number() {
            return Ok(Term::Const(number));
        }
        let address = self.take("&");
        let bracket = !address && self.take("[");
        let name = self.want_word("a register, a location or a number")?;
        let location = match self.location_named(name) {
            Some(location) => location,
            None => self.add_location(name, place)?,
        };
        if address {
            return Ok(Term::Address(location));
        }
        let mut element = 0;
        if self.take("[") {
            element = match self.take_number() {
                Some(number) if number < u64::from(self.locations[location].elements) => number as u32,
                _ => {
                    let most = self.locations[location].elements;
                    return Err(self.error_at(place, format!("`{name}` has {most} elements, counted from 0")));
                }
            };
            self.want("]")?;
        }
        if bracket {
            self.want("]")?;
        }
        Ok(Term::Memory(location, element))
    }
}
