//! Reads litmus tests in the herd-style PTX format: a header, initial values, a table of threads, and a
//! clause. The format is described in `docs/litmus.md`.
//!
//! Invariant: every text gives a test or an error with its place; sizes and depths are bounded by the
//! constants below.

mod clause;
mod code;
mod lex;
mod memory;
mod table;

use crate::Error;
use crate::test::{Clause, Location, Operand, Quantifier, Reg, Test, Thread, Type};
use lex::{Kind, Token};

/// Longest text in bytes.
const MOST_TEXT: usize = 1 << 20;
/// Most threads.
const MOST_THREADS: usize = 16;
/// Most instructions of a thread.
const MOST_CODE: usize = 512;
/// Most locations, and bytes of one.
const MOST_LOCATIONS: usize = 256;
const MOST_BYTES: u32 = 1024;
/// Deepest nesting of a clause.
const MOST_DEPTH: usize = 100;

/// Reads a litmus test.
///
/// # Errors
/// The first mistake in the text.
pub fn parse(text: &str) -> Result<Test, Error> {
    if text.len() > MOST_TEXT {
        return Err(Error::text(1, 1, format!("the text has more than {MOST_TEXT} bytes")));
    }
    let (name, start) = header(text)?;
    let mut parser = Parser {
        text,
        tokens: lex::tokens(text, start)?,
        at: 0,
        locations: Vec::new(),
        declared: Vec::new(),
        threads: Vec::new(),
        aliased: Vec::new(),
        inits: Vec::new(),
    };
    parser.initial_state()?;
    parser.table()?;
    let (filter, quantifier, clause) = parser.clauses()?;
    parser.set_sizes();
    Ok(Test { name, locations: parser.locations, threads: parser.threads, filter, quantifier, clause })
}

/// The name of the test, and where its initial state begins.
fn header(text: &str) -> Result<(String, usize), Error> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let c = rest.chars().next().unwrap_or(' ');
        match lex::comment(rest) {
            Some(length) => at += length,
            None if c.is_whitespace() || c == '\u{feff}' => at += c.len_utf8(),
            None => break,
        }
    }
    let rest = &text[at..];
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    if !rest[..end].eq_ignore_ascii_case("ptx") {
        let (line, column) = lex::place(text, at);
        return Err(Error::text(line, column, "a litmus test begins with `PTX` and its name".to_owned()));
    }
    let line_end = rest.find(['\n', '{']).unwrap_or(rest.len());
    let name = rest[end..line_end].trim().to_owned();
    at += line_end;
    // Descriptions in quotes, comments, and other text before the initial state.
    while at < text.len() {
        let rest = &text[at..];
        let c = rest.chars().next().unwrap_or(' ');
        at += match c {
            '{' => return Ok((name, at)),
            '"' => rest[1..].find('"').map_or(1, |end| end + 2),
            _ => lex::comment(rest).unwrap_or(c.len_utf8()),
        };
    }
    let (line, column) = lex::place(text, text.len());
    Err(Error::text(line, column, "the initial state `{ ... }` is missing".to_owned()))
}

/// A location as it was declared.
#[derive(Clone, Copy, Debug, Default)]
struct Declared {
    /// Whether its space was given.
    space: bool,
    /// The largest offset behind a byte that an access names.
    reach: u32,
    /// The size of the largest typed access.
    largest: u32,
    /// Whether only uses of its name have been seen, which may stand before its declaration.
    used: bool,
    /// Whether it is a name for another proxy, which has the virtual address of its location.
    special: bool,
}

/// Reads tokens.
struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    locations: Vec<Location>,
    declared: Vec<Declared>,
    threads: Vec<Thread>,
    /// The tokens of the names that aliases are of, with the locations.
    aliased: Vec<(usize, usize)>,
    /// First values of registers: number of the thread, register, value, token.
    inits: Vec<(u32, &'t str, Operand, usize)>,
}

impl<'t> Parser<'t> {
    fn token(&self) -> Token<'t> {
        // The last token is the end, which nothing takes.
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> Kind<'t> {
        self.token().kind
    }

    fn peek_at(&self, ahead: usize) -> Kind<'t> {
        self.tokens.get(self.at + ahead).map_or(Kind::End, |token| token.kind)
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.token();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    /// Takes a mark if it is next.
    fn take(&mut self, mark: &str) -> bool {
        let is = matches!(self.peek(), Kind::Mark(found) if found == mark);
        if is {
            self.next();
        }
        is
    }

    /// Takes a word if it is next.
    fn take_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Kind::Word(found) if found == word);
        if is {
            self.next();
        }
        is
    }

    fn want(&mut self, mark: &str) -> Result<(), Error> {
        if self.take(mark) { Ok(()) } else { Err(self.wrong(&format!("`{mark}` is wanted"))) }
    }

    fn want_word(&mut self, what: &str) -> Result<&'t str, Error> {
        match self.peek() {
            Kind::Word(word) => {
                self.next();
                Ok(word)
            }
            Kind::Number(_) | Kind::Mark(_) | Kind::End => Err(self.wrong(&format!("{what} is wanted"))),
        }
    }

    /// A constant, with its sign.
    fn take_number(&mut self) -> Option<u64> {
        let negative = self.peek() == Kind::Mark("-") && matches!(self.peek_at(1), Kind::Number(_));
        if negative {
            self.next();
        }
        match self.peek() {
            Kind::Number(number) => {
                self.next();
                Some(if negative { number.wrapping_neg() } else { number })
            }
            Kind::Word(_) | Kind::Mark(_) | Kind::End => None,
        }
    }

    /// An error at the next token, which is named.
    fn wrong(&self, what: &str) -> Error {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::Word(_) | Kind::Number(_) | Kind::Mark(_) => {
                format!("`{}`", &self.text[token.start..token.end])
            }
        };
        Error::text(token.line, token.column, format!("{what}, not {found}"))
    }

    fn error_at(&self, token: usize, message: String) -> Error {
        let token = self.tokens[token.min(self.tokens.len() - 1)];
        Error::text(token.line, token.column, message)
    }

    /// The number of a thread: `P1` or `1`, before a colon.
    fn take_thread(&mut self) -> Option<u32> {
        let number = match self.peek() {
            Kind::Word(word) => thread_number(word),
            Kind::Number(number) => u32::try_from(number).ok(),
            Kind::Mark(_) | Kind::End => None,
        };
        if self.peek_at(1) != Kind::Mark(":") {
            return None;
        }
        number.inspect(|_| {
            self.next();
            self.next();
        })
    }

    fn location_named(&self, name: &str) -> Option<usize> {
        self.locations.iter().position(|location| location.name == name)
    }

    /// The register of a thread with a name, made if there is none.
    fn register(&mut self, thread: usize, name: &str) -> Reg {
        let of = &mut self.threads[thread];
        if let Some(found) = of.registers.iter().position(|register| register == name) {
            return Reg(found);
        }
        of.registers.push(name.to_owned());
        of.init.push(Operand::Const(0));
        Reg(of.registers.len() - 1)
    }

    /// Determines the size of untyped locations from their accesses, and of aliases from their locations.
    fn set_sizes(&mut self) {
        for index in 0..self.locations.len() {
            let target = self.locations[index].alias;
            if let Some(target) = target {
                let mut physical = target;
                while let Some(next) = self.locations[physical].alias {
                    physical = next;
                }
                let used = self.declared[index];
                let reach = &mut self.declared[physical];
                reach.reach = reach.reach.max(used.reach);
                reach.largest = reach.largest.max(used.largest);
            }
        }
        for (location, declared) in self.locations.iter_mut().zip(&self.declared) {
            if location.typed || location.alias.is_some() || declared.reach == 0 {
                continue;
            }
            if declared.reach <= 8 {
                location.element = declared.reach.next_power_of_two();
            } else {
                location.element = declared.largest.clamp(1, 8);
                location.elements = declared.reach.div_ceil(location.element);
            }
        }
        for index in 0..self.locations.len() {
            let (mut physical, mut view) = (index, index);
            while let Some(next) = self.locations[physical].alias {
                if self.declared[physical].special && view == physical {
                    view = next;
                }
                physical = next;
            }
            if physical != index {
                let of = &self.locations[physical];
                let (element, elements, space) = (of.element, of.elements, of.space);
                let location = &mut self.locations[index];
                (location.element, location.elements, location.space) = (element, elements, space);
            }
            self.locations[index].view = view;
        }
    }

    /// The filter and the clause.
    fn clauses(&mut self) -> Result<(Clause, Quantifier, Clause), Error> {
        let mut filter = Clause::True;
        loop {
            if self.take_word("locations") {
                self.skip_locations()?;
            } else if self.take_word("filter") {
                filter = self.clause()?;
                self.take(";");
            } else {
                break;
            }
        }
        let not = self.take("~") || self.take("!") || self.take_word("not");
        let quantifier = match self.peek() {
            Kind::Word("exists") => {
                if not {
                    Quantifier::NotExists
                } else {
                    Quantifier::Exists
                }
            }
            Kind::Word("forall") if !not => Quantifier::Forall,
            _ => return Err(self.wrong("`exists`, `~exists` or `forall` is wanted")),
        };
        self.next();
        let clause = self.clause()?;
        self.take(";");
        if self.peek() != Kind::End {
            return Err(self.wrong("the end of the text is wanted"));
        }
        Ok((filter, quantifier, clause))
    }

    /// `locations [x; 0:r1;]`: herd's output list, which does not affect the verdict.
    fn skip_locations(&mut self) -> Result<(), Error> {
        self.want("[")?;
        while !self.take("]") {
            if self.peek() == Kind::End {
                return Err(self.wrong("`]` is wanted"));
            }
            self.next();
        }
        self.take(";");
        Ok(())
    }
}

/// The number of a word such as `P1`.
fn thread_number(word: &str) -> Option<u32> {
    let digits = word.strip_prefix(['P', 'T'])?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// A scalar type by its name without the dot.
fn type_named(name: &str) -> Option<Type> {
    let of = |size, signed| Some(Type { size, signed, packed: false });
    match name {
        "b8" | "u8" => of(1, false),
        "s8" => of(1, true),
        "b16" | "u16" | "f16" => of(2, false),
        "s16" => of(2, true),
        "b32" | "u32" | "f32" => of(4, false),
        "s32" => of(4, true),
        "b64" | "u64" | "f64" => of(8, false),
        "s64" => of(8, true),
        "f16x2" => Some(Type { size: 4, signed: false, packed: true }),
        _ => None,
    }
}
