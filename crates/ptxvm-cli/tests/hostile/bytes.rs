//! The expressions that describe input files: strings, repetition, concatenation.
//!
//! Invariant: the size of an expression is bounded before it is built, so that a mistake in a case does not
//! fill the machine.

/// The most that an expression may make, in bytes.
const LIMIT: usize = 64 << 20;

/// The bytes of `"text" * 3 ("a" "b") * 2 hex:00ff`: items one after another, each repeated as often as the
/// number after its `*`.
pub(crate) fn evaluate(text: &str) -> Result<Vec<u8>, String> {
    let mut reader = Reader { rest: text };
    let bytes = reader.sequence()?;
    if reader.rest.is_empty() { Ok(bytes) } else { Err(format!("`{}` is left over", reader.rest)) }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Items up to the end or a closing parenthesis.
    fn sequence(&mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest.is_empty() || self.rest.starts_with(')') {
                return Ok(all);
            }
            let item = self.item()?;
            let times = self.times()?;
            if item.len().saturating_mul(times).saturating_add(all.len()) > LIMIT {
                return Err(format!("more than {LIMIT} bytes"));
            }
            all.extend(item.repeat(times));
        }
    }

    fn item(&mut self) -> Result<Vec<u8>, String> {
        if let Some(rest) = self.rest.strip_prefix('(') {
            self.rest = rest;
            let inner = self.sequence()?;
            self.rest = self.rest.strip_prefix(')').ok_or("a `(` is not closed")?;
            return Ok(inner);
        }
        if let Some(rest) = self.rest.strip_prefix("hex:") {
            let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
            let (digits, rest) = rest.split_at(end);
            self.rest = rest;
            let pairs = (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16));
            return pairs.collect::<Result<_, _>>().map_err(|e| e.to_string());
        }
        let rest = self.rest.strip_prefix('"').ok_or_else(|| format!("`{}`: expected an item", self.rest))?;
        let (bytes, used) = string(rest)?;
        self.rest = &rest[used..];
        Ok(bytes)
    }

    fn times(&mut self) -> Result<usize, String> {
        self.skip_blanks();
        let Some(rest) = self.rest.strip_prefix('*') else { return Ok(1) };
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.rest = rest;
        digits.parse().map_err(|_| "a `*` without a number".to_owned())
    }
}

/// The bytes of a string up to its closing quote, and how much of the text it took.
fn string(text: &str) -> Result<(Vec<u8>, usize), String> {
    let mut bytes = Vec::new();
    let mut at = 0;
    let source = text.as_bytes();
    while let Some(&byte) = source.get(at) {
        at += 1;
        match byte {
            b'"' => return Ok((bytes, at)),
            b'\\' => {
                let escaped = source.get(at).ok_or("a `\\` at the end")?;
                at += 1;
                match escaped {
                    b'n' => bytes.push(b'\n'),
                    b'r' => bytes.push(b'\r'),
                    b't' => bytes.push(b'\t'),
                    b'x' => {
                        let digits = text.get(at..at + 2).ok_or("`\\x` needs two digits")?;
                        bytes.push(u8::from_str_radix(digits, 16).map_err(|e| e.to_string())?);
                        at += 2;
                    }
                    b'"' | b'\\' => bytes.push(*escaped),
                    _ => return Err(format!("unknown escape `\\{}`", char::from(*escaped))),
                }
            }
            _ => bytes.push(byte),
        }
    }
    Err("a string is not closed".to_owned())
}
