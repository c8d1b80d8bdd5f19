//! The values of numeric literals.
//!
//! Invariant: an integer keeps its 64 bits and its signedness; a hexadecimal float keeps its bits; a decimal
//! float is the nearest double, ties to even (infinity beyond the largest double). PTX ISA §4.6, §4.6.1; a
//! single `0` is decimal, the suffix may be `U` or `u`.

/// The value of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// An integer; unsigned by its suffix, or because it does not fit in 63 bits.
    Integer {
        /// The value.
        value: u64,
        /// Whether its type is `.u64` rather than `.s64`.
        unsigned: bool,
    },
    /// A decimal or `0d` literal, as the bits of a double.
    Double(u64),
    /// A `0f` literal, as the bits of a single.
    Single(u32),
}

/// Why a literal is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// A character that is no digit of this base (`0128`, `12ab`, `0x1G`).
    BadDigit(char),
    /// A prefix without digits (`0x`).
    NoDigits,
    /// More than 64 bits.
    TooLarge,
    /// `0f` or `0d` with a wrong number of hexadecimal digits.
    WrongLength {
        /// The required number of digits.
        expected: usize,
        /// The number of digits.
        found: usize,
    },
    /// A size suffix such as C's `f`.
    FloatSuffix,
}

impl std::fmt::Display for NumberError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NumberError::BadDigit(c) => write!(f, "`{c}` is not a digit of this number"),
            NumberError::NoDigits => write!(f, "there are no digits after the prefix"),
            NumberError::TooLarge => write!(f, "it does not fit in 64 bits"),
            NumberError::WrongLength { expected, found } => {
                write!(f, "expected {expected} hexadecimal digits, found {found}")
            }
            NumberError::FloatSuffix => write!(f, "a floating-point number has no suffix"),
        }
    }
}

/// Decodes the text of a number token.
///
/// # Errors
/// The text is not a literal of PTX ISA §4.6, or is too large.
pub fn decode(text: &str) -> Result<Number, NumberError> {
    let lower = text.get(..2).map(str::to_ascii_lowercase);
    let rest = text.get(2..).unwrap_or("");
    match lower.as_deref() {
        Some("0x") => integer(rest, 16),
        Some("0b") => integer(rest, 2),
        Some("0f") => exact_bits(rest, 8).map(|bits| Number::Single(bits as u32)),
        Some("0d") => exact_bits(rest, 16).map(Number::Double),
        _ if text.contains(['.', 'e', 'E']) => decimal(text),
        _ => match text.strip_prefix('0') {
            Some(digits)
                if digits.starts_with(|c: char| c.is_ascii_alphanumeric() && !matches!(c, 'u' | 'U')) =>
            {
                integer(digits, 8)
            }
            _ => integer(text, 10),
        },
    }
}

fn integer(digits: &str, radix: u32) -> Result<Number, NumberError> {
    let (digits, suffix) = match digits.strip_suffix(['u', 'U']) {
        Some(rest) => (rest, true),
        None => (digits, false),
    };
    if digits.is_empty() {
        return Err(NumberError::NoDigits);
    }
    let mut value = 0u64;
    let mut fits = true;
    for c in digits.chars() {
        let digit = c.to_digit(radix).ok_or(NumberError::BadDigit(c))?;
        match value.checked_mul(u64::from(radix)).and_then(|v| v.checked_add(u64::from(digit))) {
            Some(next) => value = next,
            None => fits = false,
        }
    }
    if !fits {
        return Err(NumberError::TooLarge);
    }
    Ok(Number::Integer { value, unsigned: suffix || i64::try_from(value).is_err() })
}

fn exact_bits(digits: &str, expected: usize) -> Result<u64, NumberError> {
    if let Some(c) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
        return Err(NumberError::BadDigit(c));
    }
    if digits.len() != expected {
        return Err(NumberError::WrongLength { expected, found: digits.len() });
    }
    u64::from_str_radix(digits, 16).map_err(|_| NumberError::TooLarge)
}

fn decimal(text: &str) -> Result<Number, NumberError> {
    if text.ends_with(['f', 'F', 'u', 'U', 'l', 'L']) {
        return Err(NumberError::FloatSuffix);
    }
    let mut previous = ' ';
    for c in text.chars() {
        let sign_of_exponent = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
        if !c.is_ascii_digit() && !matches!(c, '.' | 'e' | 'E') && !sign_of_exponent {
            return Err(NumberError::BadDigit(c));
        }
        previous = c;
    }
    match text.parse::<f64>() {
        Ok(value) => Ok(Number::Double(value.to_bits())),
        Err(_) => Err(NumberError::NoDigits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: u64, unsigned: bool) -> Result<Number, NumberError> {
        Ok(Number::Integer { value, unsigned })
    }

    #[test]
    fn integers_of_every_radix() {
        assert_eq!(decode("0"), int(0, false));
        assert_eq!(decode("0U"), int(0, true));
        assert_eq!(decode("42"), int(42, false));
        assert_eq!(decode("42u"), int(42, true));
        assert_eq!(decode("0123"), int(0o123, false));
        assert_eq!(decode("0x1234"), int(0x1234, false));
        assert_eq!(decode("0X1234U"), int(0x1234, true));
        assert_eq!(decode("0b101"), int(5, false));
        assert_eq!(decode("00"), int(0, false));
    }

    #[test]
    fn what_does_not_fit_in_63_bits_is_unsigned() {
        assert_eq!(decode("9223372036854775807"), int(i64::MAX as u64, false));
        assert_eq!(decode("9223372036854775808"), int(1 << 63, true));
        assert_eq!(decode("0xfabc123400000000"), int(0xfabc_1234_0000_0000, true));
        assert_eq!(decode("18446744073709551615"), int(u64::MAX, true));
        assert_eq!(decode("18446744073709551616"), Err(NumberError::TooLarge));
        assert_eq!(decode("0x1FFFFFFFFFFFFFFFF"), Err(NumberError::TooLarge));
        assert_eq!(decode("01777777777777777777777"), int(u64::MAX, true));
        assert_eq!(decode("02000000000000000000000"), Err(NumberError::TooLarge));
    }

    #[test]
    fn malformed_numbers_say_why() {
        assert_eq!(decode("0128"), Err(NumberError::BadDigit('8')));
        assert_eq!(decode("12ab"), Err(NumberError::BadDigit('a')));
        assert_eq!(decode("0x1G"), Err(NumberError::BadDigit('G')));
        assert_eq!(decode("0b12"), Err(NumberError::BadDigit('2')));
        assert_eq!(decode("0x"), Err(NumberError::NoDigits));
        assert_eq!(decode("0xU"), Err(NumberError::NoDigits));
        assert_eq!(decode("0f3f8000"), Err(NumberError::WrongLength { expected: 8, found: 6 }));
        assert_eq!(decode("0d3f800000"), Err(NumberError::WrongLength { expected: 16, found: 8 }));
        assert_eq!(decode("0f3f80000g"), Err(NumberError::BadDigit('g')));
        assert_eq!(decode("1.0f"), Err(NumberError::FloatSuffix));
        assert_eq!(decode("1.5x"), Err(NumberError::BadDigit('x')));
        assert_eq!(decode("1e"), Err(NumberError::NoDigits));
    }

    #[test]
    fn floats_are_the_nearest_double() {
        assert_eq!(decode("1.0"), Ok(Number::Double(0x3FF0_0000_0000_0000)));
        assert_eq!(decode(".5"), Ok(Number::Double(0x3FE0_0000_0000_0000)));
        assert_eq!(decode("2."), Ok(Number::Double(0x4000_0000_0000_0000)));
        // 0.1 = 0x3FB999999999999A, the example of IEEE 754's nearest double.
        assert_eq!(decode("1e-1"), Ok(Number::Double(0x3FB9_9999_9999_999A)));
        assert_eq!(decode("1E+2"), Ok(Number::Double(0x4059_0000_0000_0000)));
        // 2^53 + 1 is half-way between two doubles; the even one is 2^53.
        assert_eq!(decode("9007199254740993.0"), Ok(Number::Double(0x4340_0000_0000_0000)));
        assert_eq!(decode("0F3f800000"), Ok(Number::Single(0x3F80_0000)));
        assert_eq!(decode("0dFFF8000000000001"), Ok(Number::Double(0xFFF8_0000_0000_0001)));
    }
}
