//! The `--arg` grammar: a kernel parameter on the command line.
//!
//! Invariant: parsing uses the text only; `run` opens files and matches parameters.

use crate::UsageError;
use crate::object::{Kind, Object};
use std::path::PathBuf;

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arg {
    /// `TYPE:VALUE`
    Scalar {
        /// The type, such as `f32`.
        ty: String,
        /// Its bits, little-endian, as wide as the type.
        bytes: Vec<u8>,
    },
    /// `in:FILE.npy`
    In(PathBuf),
    /// `inout:FILE.npy[=OUT.npy]`: the input file and the output file.
    InOut(PathBuf, PathBuf),
    /// `out:DTYPE[SHAPE]=FILE.npy`
    Out {
        /// Element type, as numpy spells it.
        dtype: String,
        /// Extents.
        shape: Vec<u64>,
        /// The output file, written after the launch.
        file: PathBuf,
    },
    /// `zeros:BYTES`
    Zeros(u64),
    /// `bytes:HEX`
    Bytes(Vec<u8>),
    /// `tex:...`, `surf:...`, `sampler:...`: the handle of the object.
    Object(Box<Object>),
}

impl Arg {
    /// Parses one `--arg`.
    pub(crate) fn parse(text: &str) -> Result<Self, UsageError> {
        let fail = |why: &str| UsageError(format!("`--arg {text}`: {why}"));
        let (kind, rest) = text.split_once(':').ok_or_else(|| {
            fail("expected `TYPE:VALUE`, `in:`, `inout:`, `out:`, `zeros:`, `bytes:`, `tex:`, `surf:` or `sampler:`")
        })?;
        if let Some(kind) = Kind::of(kind) {
            return Object::parse(kind, rest).map(Box::new).map(Arg::Object).map_err(|e| fail(&e));
        }
        match kind {
            "in" => Ok(Arg::In(path(rest).map_err(|e| fail(&e))?)),
            "inout" => {
                let (from, to) = rest.split_once('=').unwrap_or((rest, rest));
                Ok(Arg::InOut(path(from).map_err(|e| fail(&e))?, path(to).map_err(|e| fail(&e))?))
            }
            "out" => out(rest).map_err(|e| fail(&e)),
            "zeros" => rest.parse().map(Arg::Zeros).map_err(|_| fail("expected a number of bytes")),
            "bytes" => {
                hex(rest).map(Arg::Bytes).ok_or_else(|| fail("expected an even number of hexadecimal digits"))
            }
            _ => match scalar(kind, rest) {
                Ok(bytes) => Ok(Arg::Scalar { ty: kind.to_owned(), bytes }),
                Err(why) => Err(fail(&why)),
            },
        }
    }
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("the file name is missing".to_owned()) } else { Ok(PathBuf::from(text)) }
}

/// `DTYPE[SHAPE]=FILE.npy`
fn out(text: &str) -> Result<Arg, String> {
    let expected = || "expected `out:DTYPE[SHAPE]=FILE.npy`, such as `out:f4[64,64]=c.npy`".to_owned();
    let (dtype, rest) = text.split_once('[').ok_or_else(expected)?;
    let (shape, file) = rest.split_once("]=").ok_or_else(expected)?;
    let shape = shape.split(',').map(str::trim).filter(|s| !s.is_empty());
    let shape =
        shape.map(|s| s.parse().map_err(|_| format!("`{s}` is not an extent"))).collect::<Result<_, _>>()?;
    Ok(Arg::Out { dtype: dtype.to_owned(), shape, file: path(file)? })
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The bytes of a scalar.
fn scalar(ty: &str, value: &str) -> Result<Vec<u8>, String> {
    let (kind, bits) = ty.split_at_checked(1).ok_or("expected a type")?;
    let bits: u32 = bits.parse().ok().filter(|b| matches!(b, 8 | 16 | 32 | 64)).ok_or_else(|| unknown(ty))?;
    let bytes = match kind {
        "f" if bits >= 16 => {
            float(bits, value).ok_or_else(|| format!("`{value}` is not a value of type {ty}"))?
        }
        "u" | "s" | "b" => {
            let number = integer(value).ok_or_else(|| format!("`{value}` is not an integer"))?;
            let (low, high) = match kind {
                "u" => (0, (1i128 << bits) - 1),
                "s" => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                _ => (-(1i128 << (bits - 1)), (1i128 << bits) - 1),
            };
            // A hexadecimal value of a signed type may be a bit pattern.
            let high = if kind == "s" && is_hex(value) { (1i128 << bits) - 1 } else { high };
            if number < low || number > high {
                return Err(format!("{value} is outside {low}..={high}"));
            }
            number as u64
        }
        _ => return Err(unknown(ty)),
    };
    Ok(bytes.to_le_bytes()[..(bits / 8) as usize].to_vec())
}

fn unknown(ty: &str) -> String {
    format!("`{ty}` is not a type (u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64 b8 b16 b32 b64)")
}

fn is_hex(text: &str) -> bool {
    text.trim_start_matches('-').get(..2).is_some_and(|p| p.eq_ignore_ascii_case("0x"))
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let magnitude = if is_hex(digits) { parse_hex(&digits[2..])? } else { digits.parse::<u64>().ok()? };
    Some(if negative { -i128::from(magnitude) } else { i128::from(magnitude) })
}

fn parse_hex(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        None
    } else {
        u64::from_str_radix(digits, 16).ok()
    }
}

/// Bits of a float: decimal, `inf`, `nan`, `0f` with 8 digits, `0d` with 16, or `0x` with the bits of the
/// type itself.
fn float(bits: u32, text: &str) -> Option<u64> {
    let prefix = text.get(..2).map(str::to_ascii_lowercase);
    let value = match prefix.as_deref() {
        Some("0x") => {
            let raw = parse_hex(&text[2..])?;
            return (bits == 64 || raw >> bits == 0).then_some(raw);
        }
        Some("0f") if text.len() == 10 => {
            let raw = parse_hex(&text[2..])? as u32;
            if bits == 32 {
                return Some(raw.into());
            }
            f64::from(f32::from_bits(raw))
        }
        Some("0d") if text.len() == 18 => {
            let raw = parse_hex(&text[2..])?;
            if bits == 64 {
                return Some(raw);
            }
            f64::from_bits(raw)
        }
        _ => {
            if bits == 32 {
                // Parsed as f32, so that a decimal is rounded once.
                return text.parse::<f32>().ok().map(|v| v.to_bits().into());
            }
            text.parse().ok()?
        }
    };
    Some(match bits {
        16 => half::f16::from_f64(value).to_bits().into(),
        32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Option<u64> {
        match Arg::parse(text) {
            Ok(Arg::Scalar { bytes, .. }) => {
                let mut all = [0; 8];
                all[..bytes.len()].copy_from_slice(&bytes);
                Some(u64::from_le_bytes(all))
            }
            Ok(_) | Err(_) => None,
        }
    }

    #[test]
    fn scalars() {
        assert_eq!(bits("u8:255"), Some(255));
        assert_eq!(bits("s8:-128"), Some(0x80));
        assert_eq!(bits("s32:-1"), Some(0xffff_ffff));
        assert_eq!(bits("s32:0xFFFFFFFF"), Some(0xffff_ffff));
        assert_eq!(bits("u64:18446744073709551615"), Some(u64::MAX));
        assert_eq!(bits("s64:-9223372036854775808"), Some(1 << 63));
        assert_eq!(bits("b16:-1"), Some(0xffff));
        assert_eq!(bits("f32:1.5"), Some(0x3fc0_0000));
        assert_eq!(bits("f32:0f3F800000"), Some(0x3f80_0000));
        assert_eq!(bits("f32:0d3FF8000000000000"), Some(0x3fc0_0000));
        assert_eq!(bits("f64:0d3FF8000000000000"), Some(0x3ff8_0000_0000_0000));
        assert_eq!(bits("f64:0f3F800000"), Some(0x3ff0_0000_0000_0000));
        assert_eq!(bits("f32:-inf"), Some(0xff80_0000));
        assert!(f32::from_bits(bits("f32:nan").unwrap() as u32).is_nan());
        assert_eq!(bits("f16:1.0"), Some(0x3c00));
        assert_eq!(bits("f16:0x3C00"), Some(0x3c00));
        for wrong in [
            "u8:256",
            "u8:-1",
            "s8:128",
            "u33:1",
            "f8:1",
            "u32:",
            "u32:1.5",
            "f32:one",
            "f16:0x10000",
            "x:1",
            "u32",
            "f32:0f3F8",
        ] {
            assert_eq!(bits(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn files_and_bytes() {
        assert_eq!(Arg::parse("in:a.npy").unwrap(), Arg::In("a.npy".into()));
        assert_eq!(Arg::parse("inout:a.npy").unwrap(), Arg::InOut("a.npy".into(), "a.npy".into()));
        assert_eq!(Arg::parse("inout:a.npy=b.npy").unwrap(), Arg::InOut("a.npy".into(), "b.npy".into()));
        let out = Arg::Out { dtype: "f4".into(), shape: vec![64, 2], file: "c.npy".into() };
        assert_eq!(Arg::parse("out:f4[64,2]=c.npy").unwrap(), out);
        assert_eq!(Arg::parse("zeros:12").unwrap(), Arg::Zeros(12));
        assert_eq!(Arg::parse("bytes:00fF").unwrap(), Arg::Bytes(vec![0, 255]));
        for wrong in [
            "in:",
            "inout:",
            "out:f4=c.npy",
            "out:f4[x]=c.npy",
            "out:f4[1]=",
            "zeros:x",
            "bytes:0",
            "bytes:zz",
        ] {
            assert!(Arg::parse(wrong).is_err(), "{wrong}");
        }
    }
}
