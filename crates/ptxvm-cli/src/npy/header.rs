//! The header of a `.npy` file: a dictionary with the keys `descr`, `fortran_order` and `shape`, as numpy
//! writes it.
//!
//! Invariants: reading takes one pass over at most [`MAX_HEADER`] bytes, without recursion; unknown syntax is
//! refused. Element types are texts here, and the caller validates them. Structured types (a list in `descr`)
//! are refused.

use std::io::Read;

/// The longest header in bytes: the maximum of version 1 of the format. Longer ones describe structured
/// types.
const MAX_HEADER: usize = 65_535;
/// Most axes of an array, as in numpy.
pub(super) const MAX_AXES: usize = 64;

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// numpy's type string.
    pub(super) dtype: String,
    /// Fortran order.
    pub(super) fortran: bool,
    /// Extents.
    pub(super) shape: Vec<u64>,
}

impl Header {
    /// Reads a header, and no bytes after it.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(|_| "not a .npy file".to_owned())?;
        let [b'\x93', b'N', b'U', b'M', b'P', b'Y', major, minor] = start else {
            return Err("not a .npy file".to_owned());
        };
        let mut length = [0; 4];
        let width = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => return Err(format!("version {major}.{minor} of the .npy format is not 1.0, 2.0 or 3.0")),
        };
        let short = |_| "the file ends in its header".to_owned();
        reader.read_exact(&mut length[..width]).map_err(short)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER {
            return Err(format!("a header of {length} bytes is over the limit of {MAX_HEADER}"));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text).map_err(short)?;
        let text = std::str::from_utf8(&text).map_err(|_| "the header is not text".to_owned())?;
        Scanner { rest: text }.header()
    }

    /// The bytes of a header that is followed by data at a multiple of 64 bytes, as numpy writes it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let order = if self.fortran { "True" } else { "False" };
        let mut shape = self.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        if self.shape.len() == 1 {
            shape.push(',');
        }
        let mut text =
            format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({shape}), }}", self.dtype);
        let filled = (10 + text.len() + 1).next_multiple_of(64) - 11;
        text.extend(std::iter::repeat_n(' ', filled - text.len()));
        text.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        // At most 64 extents of 20 digits.
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }
}

/// The rest of the text.
struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    fn header(&mut self) -> Result<Header, String> {
        let (mut dtype, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.eat('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" if self.eat('[') => return Err("structured arrays are not supported".to_owned()),
                "descr" => dtype = Some(self.string()?.to_owned()),
                "fortran_order" => fortran = Some(self.flag()?),
                "shape" => shape = Some(self.shape()?),
                _ => {
                    return Err(
                        "its header has a key other than `descr`, `fortran_order` and `shape`".to_owned()
                    );
                }
            }
            if !self.eat(',') {
                self.expect('}')?;
                break;
            }
        }
        self.blanks();
        if !self.rest.is_empty() {
            return Err("its header goes on behind the dictionary".to_owned());
        }
        let missing = |key: &str| format!("its header has no `{key}`");
        Ok(Header {
            dtype: dtype.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.blanks();
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.eat(wanted) {
            return Ok(());
        }
        Err(match self.rest.chars().next() {
            Some(found) => format!("its header: expected `{wanted}`, found `{}`", found.escape_debug()),
            None => format!("its header: expected `{wanted}`, found the end"),
        })
    }

    /// A text in quotes, without escapes.
    fn string(&mut self) -> Result<&'t str, String> {
        let quote = if self.eat('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect(quote)?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or("its header has a text without end")?;
        self.rest = rest;
        Ok(text)
    }

    fn flag(&mut self) -> Result<bool, String> {
        self.blanks();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("its `fortran_order` is neither `True` nor `False`".to_owned())
    }

    /// `(3, 4)`, `(3,)`, `()`; Python 2 writes `3L`.
    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.eat(')') {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let extent = digits.parse().map_err(|_| "an extent of its shape is not a number of 64 bits")?;
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if shape.len() == MAX_AXES {
                return Err(format!("its shape has more than {MAX_AXES} axes"));
            }
            shape.push(extent);
            if !self.eat(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, text: &str) -> Vec<u8> {
        let mut bytes = [b"\x93NUMPY", &[version, 0][..]].concat();
        let length = (text.len() as u32).to_le_bytes();
        bytes.extend(&length[..if version == 1 { 2 } else { 4 }]);
        bytes.extend(text.as_bytes());
        bytes
    }

    fn read(version: u8, text: &str) -> Result<Header, String> {
        Header::read(&mut &file(version, text)[..])
    }

    fn header(dtype: &str, fortran: bool, shape: &[u64]) -> Header {
        Header { dtype: dtype.to_owned(), fortran, shape: shape.to_vec() }
    }

    #[test]
    fn headers_that_numpy_writes_are_read() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n";
        for version in [1, 2, 3] {
            assert_eq!(read(version, text), Ok(header("<f4", false, &[3, 4])));
        }
        let python2 = "{'descr': '|u1', 'fortran_order': True, 'shape': (3L,)}";
        assert_eq!(read(1, python2), Ok(header("|u1", true, &[3])));
        let other_order = "{\"shape\":(),\"fortran_order\":False,\"descr\":\">i8\"}";
        assert_eq!(read(1, other_order), Ok(header(">i8", false, &[])));
    }

    /// The output of numpy 2.4.6 for such arrays (`numpy.lib.format.write_array_header_1_0`), without padding
    /// blanks.
    #[test]
    fn headers_are_written_as_numpy_writes_them() {
        let ones = "1, ".repeat(MAX_AXES);
        let cases: [(&[u64], bool, &str); 4] = [
            (&[], false, "()"),
            (&[7], false, "(7,)"),
            (&[3, 5], true, "(3, 5)"),
            (&[1; MAX_AXES], false, &format!("({})", ones.trim_end_matches(", "))),
        ];
        for (shape, fortran, text) in cases {
            let order = if fortran { "True" } else { "False" };
            let numpy = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {text}, }}");
            let header = header("<f4", fortran, shape);
            assert_eq!(read(1, &format!("{numpy:<117}\n")).as_ref(), Ok(&header));
            let bytes = header.encode();
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00");
            assert_eq!(usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), bytes.len() - 10);
            let written = std::str::from_utf8(&bytes[10..]).unwrap();
            assert_eq!(written.trim_end(), numpy);
            assert!(written.ends_with('\n'));
            assert_eq!(Header::read(&mut &bytes[..]), Ok(header));
        }
    }

    /// Nested lists, 40 deep, once took exponential time.
    #[test]
    fn what_is_no_header_is_refused_at_once() {
        let with = |descr: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")
        };
        let deep = |open: &str, close: &str| open.repeat(20_000) + "1" + &close.repeat(20_000);
        for text in [
            String::new(),
            "{".to_owned(),
            "{}".to_owned(),
            "{'descr': '<f4'}".to_owned(),
            "{'descr: 1".to_owned(),
            with("'<f4'", "(1,)") + "x",
            with("'<f4'", "(-1,)"),
            with("'<f4'", "(99999999999999999999,)"),
            with("'<f4'", "(,)"),
            with("'<f4'", &format!("({})", "1,".repeat(MAX_AXES + 1))),
            with("'<f4'", &deep("(", ",)")),
            with(&deep("[", "]"), "(1,)"),
            with(&deep("{", "}"), "(1,)"),
            deep("{", "}"),
            "é".repeat(30_000),
        ] {
            assert!(read(1, &text).is_err(), "{}", text.chars().take(80).collect::<String>());
        }
        assert_eq!(
            read(2, &" ".repeat(65_536)).unwrap_err(),
            "a header of 65536 bytes is over the limit of 65535"
        );
        assert_eq!(
            read(1, &with("[('a', '<f4')]", "(1,)")).unwrap_err(),
            "structured arrays are not supported"
        );
        for broken in [
            &b""[..],
            b"\x93NUMPY",
            b"\x93NUMPY\x01\x00",
            b"\x93NUMPY\x01\x00\xff\xff{",
            b"\x93NUMPY\x09\x00ab",
        ] {
            assert!(Header::read(&mut &broken[..]).is_err());
        }
    }
}
