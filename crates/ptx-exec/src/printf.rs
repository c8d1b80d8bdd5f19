//! Formats the text of `vprintf` as C's `printf` does.
//!
//! The argument buffer holds the promoted arguments one after another, each aligned to its own size: 4 bytes
//! for `int`, 8 for `long` (on a 64-bit target), `long long`, `double`; pointers have the width of addresses.
//!
//! Invariant: reads only memory that the lane may read. A malformed conversion is printed unchanged, as CUDA
//! does.

use crate::mem::View;
use crate::trap::{Fault, FaultKind};
use ptx::isa::Space;

#[cfg(test)]
mod tests;

/// The largest width and precision, so that a format cannot request gigabytes.
const WIDTH_LIMIT: usize = 4096;

/// The most arguments of a call, as in CUDA; a conversion beyond them is printed unchanged.
const ARGUMENTS: u32 = 32;

/// Bytes of output between two checks of the launch's limits, because one call can print for seconds.
const ASK: usize = 64 << 10;

/// The limits of a call.
pub(crate) struct Room<'a> {
    /// Bytes of output to keep.
    pub(crate) bytes: usize,
    /// The reason to stop the launch now, if any.
    pub(crate) stop: &'a dyn Fn() -> Option<FaultKind>,
}

/// The result of a call.
pub(crate) struct Written {
    /// The text.
    pub(crate) text: Vec<u8>,
    /// Bytes of output beyond the limit.
    pub(crate) dropped: u64,
    /// Arguments that were used: the result of CUDA's `printf`.
    pub(crate) arguments: u32,
}

/// A parsed conversion specification.
#[derive(Clone, Copy, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

struct Arguments<'a> {
    view: &'a mut View,
    lane: usize,
    at: u64,
    used: u32,
}

impl Arguments<'_> {
    fn next(&mut self, bytes: u64) -> Result<u64, Box<Fault>> {
        // Sizes are powers of two. Near the end of the address space the address saturates, and the read is a
        // fault.
        self.at = self.at.saturating_add(bytes - 1) & !(bytes - 1);
        let raw = self.view.read_bytes(Space::Generic, self.lane, self.at, bytes)?;
        self.at = self.at.saturating_add(bytes);
        self.used += 1;
        Ok(raw.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

/// Formats for one lane. `values` is the generic address of the argument buffer, and the width of a pointer
/// in bytes.
///
/// # Errors
/// A fault of reading the arguments, or of a launch that must stop.
pub(crate) fn format(
    view: &mut View,
    lane: usize,
    format: &[u8],
    (values, pointer): (u64, u32),
    room: &Room<'_>,
) -> Result<Written, Box<Fault>> {
    let mut args = Arguments { view, lane, at: values, used: 0 };
    let (mut text, mut dropped, mut asked) = (Vec::new(), 0, 0);
    let mut put = |piece: &[u8]| {
        let kept = piece.len().min(room.bytes - text.len());
        text.extend_from_slice(&piece[..kept]);
        dropped += (piece.len() - kept) as u64;
        asked += piece.len();
        if asked < ASK {
            return Ok(());
        }
        asked = 0;
        match (room.stop)() {
            Some(kind) => Err(Fault::new(kind, lane)),
            None => Ok(()),
        }
    };
    let mut rest = format;
    while let Some((&first, after)) = rest.split_first() {
        let found = match first {
            b'%' if args.used < ARGUMENTS || after.starts_with(b"%") => {
                conversion(&mut args, after, u64::from(pointer))?
            }
            _ => None,
        };
        match found {
            Some((piece, left)) => {
                put(&piece)?;
                rest = left;
            }
            None => {
                put(&[first])?;
                rest = after;
            }
        }
    }
    Ok(Written { text, dropped, arguments: args.used })
}

/// The text of a conversion, and the rest of the format.
type Piece<'f> = (Vec<u8>, &'f [u8]);

/// Formats the conversion after a `%`; also returns the rest of the format. `None` if it is malformed.
fn conversion<'f>(
    args: &mut Arguments<'_>,
    format: &'f [u8],
    pointer: u64,
) -> Result<Option<Piece<'f>>, Box<Fault>> {
    let mut spec = Spec::default();
    let mut at = 0;
    while let Some(flag) = format.get(at) {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        at += 1;
    }
    if format.get(at) == Some(&b'*') {
        let width = args.next(4)? as u32 as i32;
        spec.left |= width < 0;
        spec.width = (width.unsigned_abs() as usize).min(WIDTH_LIMIT);
        at += 1;
    } else {
        spec.width = digits(format, &mut at);
    }
    if format.get(at) == Some(&b'.') {
        at += 1;
        if format.get(at) == Some(&b'*') {
            let precision = args.next(4)? as u32 as i32;
            spec.precision = usize::try_from(precision).ok().map(|p| p.min(WIDTH_LIMIT));
            at += 1;
        } else {
            spec.precision = Some(digits(format, &mut at));
        }
    }
    let length_start = at;
    while matches!(format.get(at), Some(b'h' | b'l' | b'j' | b'z' | b't' | b'L' | b'q')) {
        at += 1;
    }
    // `long`, `size_t` and `ptrdiff_t` have the width of addresses.
    let (bytes, bits) = match &format[length_start..at] {
        b"hh" => (4, 8),
        b"h" => (4, 16),
        b"l" | b"z" | b"t" => (pointer, 8 * pointer as u32),
        b"ll" | b"j" | b"q" | b"L" => (8, 64),
        _ => (4, 32),
    };
    let Some(kind) = format.get(at) else { return Ok(None) };
    let piece = match kind {
        b'%' => b"%".to_vec(),
        b'd' | b'i' => {
            let value = (args.next(bytes)? << (64 - bits)) as i64 >> (64 - bits);
            integer(&spec, value < 0, &value.unsigned_abs().to_string(), "", true)
        }
        b'u' | b'x' | b'X' | b'o' => {
            let value = args.next(bytes)? << (64 - bits) >> (64 - bits);
            let (digits, prefix) = match kind {
                b'u' => (value.to_string(), ""),
                b'x' => (format!("{value:x}"), "0x"),
                b'X' => (format!("{value:X}"), "0X"),
                _ => (format!("{value:o}"), "0"),
            };
            // The octal prefix makes the first digit a zero, also for an empty number.
            let prefix = if spec.alternate && (value != 0 || *kind == b'o') { prefix } else { "" };
            integer(&spec, false, &digits, prefix, false)
        }
        b'p' => match args.next(pointer)? {
            // As glibc prints it.
            0 => pad(&spec, "", b"(nil)", false),
            address => pad(&spec, "", format!("0x{address:x}").as_bytes(), false),
        },
        b'c' => pad(&spec, "", &[args.next(4)? as u8], false),
        b's' => {
            let address = args.next(pointer)?;
            let mut bytes = if address == 0 {
                b"(null)".to_vec()
            } else {
                args.view.read_c_string(Space::Generic, args.lane, address)?
            };
            bytes.truncate(spec.precision.unwrap_or(usize::MAX));
            pad(&spec, "", &bytes, false)
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let value = f64::from_bits(args.next(8)?);
            float(&spec, *kind, value)
        }
        _ => return Ok(None),
    };
    Ok(Some((piece, &format[at + 1..])))
}

fn digits(format: &[u8], at: &mut usize) -> usize {
    let mut value = 0usize;
    while let Some(digit @ b'0'..=b'9') = format.get(*at) {
        value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0')).min(WIDTH_LIMIT);
        *at += 1;
    }
    value
}

/// Pads to the width: with blanks, or with zeros between sign and digits.
fn pad(spec: &Spec, sign: &str, body: &[u8], zeroes: bool) -> Vec<u8> {
    let missing = spec.width.saturating_sub(sign.len() + body.len());
    let mut text = Vec::new();
    if !spec.left && !zeroes {
        text.resize(missing, b' ');
    }
    text.extend_from_slice(sign.as_bytes());
    if !spec.left && zeroes {
        text.resize(text.len() + missing, b'0');
    }
    text.extend_from_slice(body);
    if spec.left {
        text.resize(text.len() + missing, b' ');
    }
    text
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

fn integer(spec: &Spec, negative: bool, digits: &str, prefix: &str, signed: bool) -> Vec<u8> {
    let digits = match spec.precision {
        Some(0) if digits == "0" => String::new(),
        Some(precision) => format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len()))),
        None => digits.to_owned(),
    };
    // The octal prefix is a digit and is not doubled.
    let prefix = if prefix == "0" && digits.starts_with('0') { "" } else { prefix };
    let sign = if signed { sign(spec, negative) } else { "" };
    pad(spec, &format!("{sign}{prefix}"), digits.as_bytes(), spec.zero && spec.precision.is_none())
}

fn float(spec: &Spec, kind: u8, value: f64) -> Vec<u8> {
    let upper = kind.is_ascii_uppercase();
    let sign = sign(spec, value.is_sign_negative());
    let cased = |text: String| if upper { text.to_uppercase() } else { text };
    if !value.is_finite() {
        let text = cased(if value.is_nan() { "nan".to_owned() } else { "inf".to_owned() });
        return pad(spec, sign, text.as_bytes(), false);
    }
    let magnitude = value.abs();
    let body = match kind.to_ascii_lowercase() {
        b'f' => with_point(spec, format!("{magnitude:.*}", spec.precision.unwrap_or(6))),
        b'e' => exponent(spec, magnitude, spec.precision.unwrap_or(6)),
        b'g' => general(spec, magnitude),
        _ => hexadecimal(spec, magnitude),
    };
    let (sign, body) = match body.strip_prefix("0x") {
        // The prefix precedes the padding zeros.
        Some(digits) => (format!("{sign}0x"), digits.to_owned()),
        None => (sign.to_owned(), body),
    };
    pad(spec, &cased(sign), cased(body).as_bytes(), spec.zero)
}

fn with_point(spec: &Spec, digits: String) -> String {
    if spec.alternate && !digits.contains('.') { digits + "." } else { digits }
}

/// `d.ddde±dd`
fn exponent(spec: &Spec, value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{}e{sign}{power:0>2}", with_point(spec, mantissa.to_owned()))
}

/// `%g`: `%e` if the exponent is below -4 or at least the precision, else `%f`; without trailing zeros.
fn general(spec: &Spec, value: f64) -> String {
    let precision = spec.precision.unwrap_or(6).max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let power: i32 = scientific.split_once('e').and_then(|(_, p)| p.parse().ok()).unwrap_or(0);
    let trim = |digits: &str| {
        if spec.alternate || !digits.contains('.') {
            digits.to_owned()
        } else {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    if power < -4 || power >= precision as i32 {
        let text = exponent(spec, value, precision - 1);
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "+00"));
        format!("{}e{power}", trim(mantissa))
    } else {
        let decimals = (precision as i32 - 1 - power).max(0) as usize;
        trim(&with_point(spec, format!("{value:.decimals$}")))
    }
}

/// `0x1.hhhp±d`
fn hexadecimal(spec: &Spec, value: f64) -> String {
    let bits = value.to_bits();
    let (mut power, mut mantissa) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
    let mut lead = u64::from(power != 0);
    power = match (power, mantissa) {
        (0, 0) => 0,
        (0, _) => -1022,
        (power, _) => power - 1023,
    };
    let mut digits = 13;
    if let Some(precision) = spec.precision
        && precision < 13
    {
        // Rounds half to even at the last remaining digit.
        let drop = 4 * (13 - precision as u32);
        let whole = lead << 52 | mantissa;
        let (kept, lost, half) = (whole >> drop, whole & ((1 << drop) - 1), 1u64 << (drop - 1));
        let up = lost > half || lost == half && kept & 1 == 1;
        let rounded = (kept + u64::from(up)) << drop;
        (lead, mantissa) = (rounded >> 52, rounded & ((1 << 52) - 1));
        digits = precision;
    }
    let mut text = format!("{mantissa:013x}");
    text.truncate(digits);
    match spec.precision {
        None => text.truncate(text.trim_end_matches('0').len()),
        Some(precision) => text.extend(std::iter::repeat_n('0', precision.saturating_sub(13))),
    }
    let point = if text.is_empty() && !spec.alternate { "" } else { "." };
    format!("0x{lead}{point}{text}p{power:+}")
}
