//! The initial bytes of memory whose contents the manual leaves undefined.
//!
//! Without a pattern, all memory is initially zero. With a pattern, undefined memory is filled with it:
//! buffers, blocks of `malloc`, a CTA's shared memory, a thread's local memory. The pattern repeats from the
//! first byte of each of them. Memory that the manual or the caller defines as zero stays zero: `.global`
//! variables without an initialiser (PTX ISA §5.4.4), parameters, texels.
//!
//! Invariant: the pattern is set before the first allocation, and does not change.

use super::{Class, LOCAL_ROW, LOCAL_WORD, Memory};

/// A pattern of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill(Box<[u8]>);

/// The longest pattern. Chosen: longer than any value of a kernel.
const LONGEST: usize = 256;

impl Fill {
    /// These bytes, in the order of their addresses. `None` for no bytes, and for more than 256.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=LONGEST).contains(&bytes.len()).then(|| Self(bytes.into()))
    }

    /// The bytes of hexadecimal digits, two for each, in the order of their addresses; `0x` may stand in
    /// front.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
        if let Some(wrong) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(format!("`{wrong}` is no hexadecimal digit: give bytes such as `a5` or `deadbeef`"));
        }
        let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or(""));
        let bytes: Option<Vec<u8>> =
            pairs.map(|pair| u8::from_str_radix(pair, 16).ok().filter(|_| pair.len() == 2)).collect();
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            return Err(format!("{} hexadecimal digits are no whole bytes: two for each", digits.len()));
        };
        Self::new(&bytes).ok_or_else(|| format!("{} bytes are more than {LONGEST}", bytes.len()))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Eight bytes of the repeated pattern, from an offset on.
    fn word(&self, at: u64) -> [u8; 8] {
        let length = self.0.len() as u64;
        std::array::from_fn(|i| self.0[((at + i as u64) % length) as usize])
    }
}

impl Memory {
    /// Sets the pattern, for good. False where one is set already.
    pub fn set_fill(&self, fill: Fill) -> bool {
        self.store.fill.set(fill).is_ok()
    }

    /// Whether there is a pattern.
    pub fn has_fill(&self) -> bool {
        self.store.fill.get().is_some()
    }

    /// Gives an allocation of a class its first contents; the bytes from `used` on are zero as yet.
    pub(super) fn begin(&self, start: u64, bytes: u64, class: Class, used: u64) {
        match (self.store.fill.get(), class) {
            (Some(_), Class::Global | Class::Malloc) => self.repeat(start, bytes),
            _ => self.zero(start, used),
        }
    }

    /// Writes the pattern to bytes of an allocation or window; where there is none, makes them zero.
    pub(super) fn repeat(&self, start: u64, bytes: u64) {
        match self.store.fill.get() {
            Some(fill) => self.put_by(start, bytes, |at| fill.word(at)),
            None => self.zero(start, bytes),
        }
    }

    /// Writes the pattern to rows of words: each word of a row is the same word of the pattern.
    pub(super) fn repeat_words(&self, start: u64, rows: u64) {
        let Some(fill) = self.store.fill.get() else { return };
        self.put_by(start, rows * LOCAL_ROW, |at| {
            let [a, b, c, d, ..] = fill.word(at / LOCAL_ROW * LOCAL_WORD);
            [a, b, c, d, a, b, c, d]
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx::check::module::AddressSize;

    #[test]
    fn patterns_are_read_as_people_write_them() {
        assert_eq!(Fill::parse("a5").expect("a byte").bytes(), [0xa5]);
        assert_eq!(Fill::parse("0xDEADBEEF").expect("four bytes").bytes(), [0xde, 0xad, 0xbe, 0xef]);
        for wrong in ["", "0x", "a", "abc", "xy", "a5 a5", "-1", "ä5", &"00".repeat(257)] {
            assert!(Fill::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_undefined_begins_with_the_pattern_and_what_is_freed_again_too() {
        let memory = Memory::new(AddressSize::Bits64).expect("addresses");
        assert!(memory.set_fill(Fill::new(&[1, 2, 3]).expect("a pattern")));
        for class in [Class::Global, Class::Malloc] {
            for _ in 0..2 {
                let at = memory.alloc(class, 11, 256, "buffer").expect("room");
                let mut bytes = [0; 11];
                memory.read(at, &mut bytes).expect("inside");
                assert_eq!(bytes, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2], "{class:?}");
                memory.write(at, &[9; 11]).expect("inside");
                memory.free(at).expect("allocated");
            }
        }
        let at = memory.alloc(Class::Texture, 4, 256, "texels").expect("room");
        let mut bytes = [7; 4];
        memory.read(at, &mut bytes).expect("inside");
        assert_eq!(bytes, [0; 4]);
    }
}
