//! The image that a linker of PTX makes: the texts one after another, each after a line with its length.
//!
//! Programs may copy or store such an image, and load it later like a text.
//!
//! Invariant: [`Bundle::read`] gives what [`Bundle::write`] was given.

/// The prefix of the lines between texts.
const MARK: &str = "// ptxvm linked image ";
/// The first line of an image with a limit of registers per thread.
const LIMIT: &str = "// ptxvm linked for registers ";

/// The contents of a linked image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The texts with their names.
    pub texts: Vec<(String, String)>,
    /// The limit of registers per thread, if the link had one.
    pub registers: Option<u32>,
}

impl Bundle {
    /// The image.
    pub fn write(texts: &[(String, String)], registers: Option<u32>) -> String {
        let limit = registers.map(|most| format!("{LIMIT}{most}\n"));
        let one = |(name, text): &(String, String)| {
            format!("{MARK}{} {}\n{text}\n", text.len(), name.replace('\n', " "))
        };
        limit.into_iter().chain(texts.iter().map(one)).collect()
    }

    /// Reads an image; `None` for other text.
    pub fn read(image: &str) -> Option<Self> {
        let mut rest = image;
        let mut registers = None;
        if let Some(after) = rest.strip_prefix(LIMIT) {
            let (most, body) = after.split_once('\n')?;
            registers = Some(most.parse().ok()?);
            rest = body;
        }
        let mut texts = Vec::new();
        while let Some(after) = rest.strip_prefix(MARK) {
            let (head, body) = after.split_once('\n')?;
            let (length, name) = head.split_once(' ')?;
            let length: usize = length.parse().ok()?;
            texts.push((name.to_owned(), body.get(..length)?.to_owned()));
            rest = body.get(length..)?.strip_prefix('\n')?;
        }
        (rest.is_empty() && !texts.is_empty()).then_some(Self { texts, registers })
    }

    /// The first bytes of images.
    pub const PREFIXES: [&str; 2] = [MARK, LIMIT];
}

#[cfg(test)]
mod tests {
    use super::Bundle;

    #[test]
    fn what_is_bundled_comes_apart_again() {
        let texts = vec![("a b".to_owned(), "one\ntwo".to_owned()), ("c".to_owned(), String::new())];
        for registers in [None, Some(57)] {
            let texts = texts.clone();
            assert_eq!(Bundle::read(&Bundle::write(&texts, registers)), Some(Bundle { texts, registers }));
        }
        for wrong in ["", "// ptxvm linked image 99 x\nshort\n", "// ptxvm linked image x"] {
            assert_eq!(Bundle::read(wrong), None);
        }
    }
}
