//! Expected results of a case, and their comparison with the actual results.
//!
//! Invariant: every field of an expectation is compared; a trap is compared between the engines in all its
//! fields except times.

use crate::process::Ended;
use serde_json::Value;

/// How the program must end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Outcome {
    /// Status 0.
    #[default]
    Ok,
    /// Status 1: diagnostics with these codes, in this order (others may stand between).
    Rejected(Vec<String>),
    /// Status 2.
    Error,
    /// Status 3, and the kind of trap.
    Trap(String),
    /// Any of these statuses.
    Any(Vec<i32>),
}

/// The line that a trap or a diagnostic names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Line {
    /// The marked one.
    #[default]
    Marked,
    /// This one.
    Number(u64),
    /// It depends on time.
    Any,
}

/// An expectation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expect {
    pub(crate) outcome: Outcome,
    line: Line,
    thread: Option<Vec<u64>>,
    cta: Option<Vec<u64>>,
    address: Option<String>,
    /// What must stand on standard error (the output, where the status is 0).
    says: Vec<String>,
    /// What the kernel must have printed.
    prints: Vec<String>,
}

/// Splits at blanks outside of double quotes.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => {
                all.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()))
            }
            c => word.push(c),
        }
    }
    all.extend(Some(word).filter(|w| !w.is_empty()));
    all
}

impl Expect {
    /// Reads `trap illegal_address thread:5,0,0 address:data+64` and the like.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut expect = Self::default();
        let words = words(text);
        let (first, mut rest) = words.split_first().ok_or("an empty expectation")?;
        expect.outcome = match first.as_str() {
            "ok" => Outcome::Ok,
            "error" => Outcome::Error,
            "rejected" => {
                let codes = rest.iter().take_while(|word| word.starts_with('P')).count();
                let (codes, after) = rest.split_at(codes);
                rest = after;
                Outcome::Rejected(codes.to_vec())
            }
            "trap" => {
                let (kind, after) = rest.split_first().ok_or("`trap` needs its kind")?;
                rest = after;
                Outcome::Trap(kind.clone())
            }
            "status" => {
                let (list, after) = rest.split_first().ok_or("`status` needs a list")?;
                rest = after;
                let list = list.split(',').map(|s| s.parse().map_err(|_| "a status is a number".to_owned()));
                Outcome::Any(list.collect::<Result<_, _>>()?)
            }
            other => return Err(format!("unknown outcome `{other}`")),
        };
        for word in rest {
            expect.field(word)?;
        }
        Ok(expect)
    }

    fn field(&mut self, word: &str) -> Result<(), String> {
        let (key, value) = word.split_once(':').ok_or_else(|| format!("`{word}`: expected `key:value`"))?;
        let triple = || -> Result<_, String> {
            let parts: Result<Vec<u64>, _> = value.split(',').map(str::parse).collect();
            parts.ok().filter(|p| p.len() == 3).map(Some).ok_or_else(|| format!("`{value}` is not `x,y,z`"))
        };
        match key {
            "line" if value == "any" => self.line = Line::Any,
            "line" => {
                self.line = Line::Number(value.parse().map_err(|_| format!("`{value}` is not a line"))?)
            }
            "thread" => self.thread = triple()?,
            "cta" => self.cta = triple()?,
            "address" => self.address = Some(value.to_owned()),
            "says" => self.says.push(value.to_owned()),
            "prints" => self.prints.push(value.to_owned()),
            _ => return Err(format!("unknown field `{key}`")),
        }
        Ok(())
    }

    /// Whether where a trap happened depends on time.
    pub(crate) fn anywhere(&self) -> bool {
        self.line == Line::Any
    }

    /// What is wrong with how the program ended; `marked` is the line that the case marks.
    pub(crate) fn judge(&self, ended: &Ended, marked: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        let statuses = match &self.outcome {
            Outcome::Ok => vec![0],
            Outcome::Rejected(_) => vec![1],
            Outcome::Error => vec![2],
            Outcome::Trap(_) => vec![3],
            Outcome::Any(list) => list.clone(),
        };
        if !ended.status.is_some_and(|status| statuses.contains(&status)) {
            wrong.push(format!("ended with {} instead of status {statuses:?}", ended.how()));
        }
        let everything = format!("{}{}", ended.err, ended.out);
        if everything.contains("ptxvm bug") || everything.contains("panicked") {
            wrong.push("a panic".to_owned());
        }
        let said = if ended.status == Some(0) { &everything } else { &ended.err };
        wrong.extend(
            self.says.iter().filter(|s| !said.contains(s.as_str())).map(|s| format!("does not say `{s}`")),
        );
        match &self.outcome {
            Outcome::Rejected(codes) => self.judge_diagnostics(codes, ended, marked, &mut wrong),
            Outcome::Error if !ended.err.contains("ptxvm: ") && !ended.err.contains("error: ") => {
                wrong.push("no message".to_owned());
            }
            Outcome::Trap(kind) if ended.status == Some(3) => {
                self.judge_trap(kind, ended, marked, &mut wrong)
            }
            Outcome::Ok | Outcome::Error | Outcome::Trap(_) | Outcome::Any(_) => {}
        }
        if !self.prints.is_empty() {
            let output =
                ended.json().and_then(|j| j["output"].as_str().map(str::to_owned)).unwrap_or_default();
            let missing = self.prints.iter().filter(|p| !output.contains(p.as_str()));
            wrong.extend(missing.map(|p| format!("the kernel printed {output:?} without `{p}`")));
        }
        wrong
    }

    fn judge_diagnostics(&self, codes: &[String], ended: &Ended, marked: usize, wrong: &mut Vec<String>) {
        let mut rest = ended.err.as_str();
        for code in codes {
            match rest.find(&format!("error[{code}]")) {
                Some(at) => rest = &rest[at + 1..],
                None => wrong.push(format!("no error {code} (in this order)")),
            }
        }
        if !ended.err.contains("error[") {
            wrong.push("no diagnostic".to_owned());
        }
        let line = match self.line {
            Line::Marked => marked as u64,
            Line::Number(number) => number,
            Line::Any => 0,
        };
        if line != 0 && !ended.err.contains(&format!(".ptx:{line}:")) {
            wrong.push(format!("no diagnostic of line {line}"));
        }
    }

    fn judge_trap(&self, kind: &str, ended: &Ended, marked: usize, wrong: &mut Vec<String>) {
        let Some(json) = ended.json() else {
            return wrong.push("no JSON object on standard output".to_owned());
        };
        let trap = &json["trap"];
        let mut differs = |what: &str, found: String, wanted: String| {
            if found != wanted {
                wrong.push(format!("{what} {found} instead of {wanted}"));
            }
        };
        let place = |value: &Value| {
            let numbers = value.as_array().into_iter().flatten().filter_map(Value::as_u64);
            numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        };
        let joined = |list: &[u64]| list.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        differs("kind", trap["kind"].as_str().unwrap_or("none").to_owned(), kind.to_owned());
        match self.line {
            Line::Marked => differs("line", trap["line"].to_string(), marked.to_string()),
            Line::Number(line) => differs("line", trap["line"].to_string(), line.to_string()),
            Line::Any => {}
        }
        if let Some(thread) = &self.thread {
            differs("thread", place(&trap["tid"]), joined(thread));
        }
        if let Some(cta) = &self.cta {
            differs("cta", place(&trap["ctaid"]), joined(cta));
        }
        if let Some(wanted) = &self.address {
            let found = trap["address"].as_str().unwrap_or("none");
            if let Err(why) = check_address(wanted, found, trap["nearest"].as_str().unwrap_or("")) {
                wrong.push(why);
            }
        }
    }
}

/// `0x10`: exactly; `..10`: the last hexadecimal digits; `none`: there is none; `data+64`, `data-1`: from the
/// start of the allocation called `data`, of which the report says where it starts.
fn check_address(wanted: &str, found: &str, nearest: &str) -> Result<(), String> {
    let fail = || format!("address {found} ({nearest}) instead of {wanted}");
    if let Some(digits) = wanted.strip_prefix("..") {
        return if found.ends_with(digits) { Ok(()) } else { Err(fail()) };
    }
    if wanted == "none" || wanted.starts_with("0x") {
        return if found == wanted { Ok(()) } else { Err(fail()) };
    }
    let at = wanted.rfind(['+', '-']).ok_or_else(|| format!("`{wanted}` is no address"))?;
    let (name, offset) = wanted.split_at(at);
    let offset: i64 = offset.parse().map_err(|_| format!("`{wanted}` is no address"))?;
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x")?;
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        u64::from_str_radix(&digits[..end], 16).ok()
    };
    let base = nearest.split_once(" at ").and_then(|(_, rest)| hex(rest));
    match (base, hex(found)) {
        (Some(base), Some(found))
            if nearest.contains(&format!("`{name}`")) && base.wrapping_add_signed(offset) == found =>
        {
            Ok(())
        }
        _ => Err(fail()),
    }
}

/// What two engines say of the same trap that must not differ.
pub(crate) fn difference(one: &Ended, other: &Ended, anywhere: bool) -> Option<String> {
    let (Some(a), Some(b)) = (one.json(), other.json()) else { return None };
    let fields: &[&str] = if anywhere {
        &["kind"]
    } else {
        &[
            "kind", "message", "line", "function", "ctaid", "tid", "warp", "lane", "address", "bytes",
            "space", "access", "nearest",
        ]
    };
    let differ = fields.iter().filter(|field| a["trap"][*field] != b["trap"][*field]);
    let said: Vec<String> =
        differ.map(|field| format!("{field}: {} and {}", a["trap"][*field], b["trap"][*field])).collect();
    if a["status"] != b["status"] {
        return Some(format!("status: {} and {}", a["status"], b["status"]));
    }
    if !said.is_empty() {
        return Some(said.join("; "));
    }
    (!anywhere && a["output"] != b["output"]).then(|| format!("output: {} and {}", a["output"], b["output"]))
}
