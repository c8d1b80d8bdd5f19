//! A reader of Markdown pages for the checks and the runner: headings, links and fenced blocks, each with its
//! line.
//!
//! Invariant: text inside a fenced block or a code span is neither heading nor link. It is not a full
//! Markdown parser: reference links, underlined headings and HTML are not supported.

/// A page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Anchors of headings, as GitHub and mdBook make them.
    pub(super) anchors: Vec<String>,
    pub(super) links: Vec<Link>,
    pub(super) blocks: Vec<Block>,
}

/// `[text](target)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of its opening fence, from 1.
    pub(super) line: usize,
    /// The words after the opening fence.
    pub(super) words: Vec<String>,
    pub(super) text: String,
}

impl Page {
    /// Reads a page.
    pub(super) fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut open: Option<(String, Block)> = None;
        for (index, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            if let Some((fence, block)) = &mut open {
                if trimmed.trim_end() == fence {
                    page.blocks.extend(open.take().map(|(_, block)| block));
                } else {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                continue;
            }
            let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
            if ticks >= 3 {
                let words = trimmed[ticks..].split_whitespace().map(str::to_owned).collect();
                open = Some(("`".repeat(ticks), Block { line: index + 1, words, text: String::new() }));
                continue;
            }
            if line.starts_with('#') {
                let title = line.trim_start_matches('#');
                if title.starts_with(' ') {
                    page.add_anchor(title.trim());
                }
            }
            page.add_links(index + 1, &without_code(line));
        }
        // A fence without an end extends to the end of the page.
        page.blocks.extend(open.map(|(_, block)| block));
        page
    }

    fn add_anchor(&mut self, title: &str) {
        let slug = slug(title);
        let same = |anchor: &&String| **anchor == slug;
        let mut anchor = slug.clone();
        let mut count = 0;
        while self.anchors.contains(&anchor) {
            count += 1;
            anchor = format!("{slug}-{count}");
        }
        debug_assert!(
            count == 0 || self.anchors.iter().any(|a| same(&a)),
            "a repeated heading has a first one"
        );
        self.anchors.push(anchor);
    }

    fn add_links(&mut self, line: usize, text: &str) {
        let mut rest = text;
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let Some(end) = rest.find(')') else { break };
            self.links.push(Link { line, target: rest[..end].to_owned() });
            rest = &rest[end..];
        }
    }
}

/// The anchor of a heading: lower case, words joined by `-`, everything but letters, digits, `-` and `_`
/// dropped.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for character in title.chars() {
        match character {
            ' ' | '-' => slug.push('-'),
            '_' => slug.push('_'),
            c if c.is_alphanumeric() => slug.extend(c.to_lowercase()),
            _ => {}
        }
    }
    slug
}

/// A line without its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::{Page, slug};

    #[test]
    fn headings_links_and_blocks() {
        let page = Page::read(
            "# The `add` instruction\n## A98\n## A98\n[a](b.md#c), `[no](link)`, [d](e)\n\
             ```console exit=1\n$ x\n# not a heading\n```\n````text\n```\n[no](link)\n```\n````\n[f](g)\n",
        );
        assert_eq!(page.anchors, ["the-add-instruction", "a98", "a98-1"]);
        let links: Vec<_> = page.links.iter().map(|link| (link.line, link.target.as_str())).collect();
        assert_eq!(links, [(4, "b.md#c"), (4, "e"), (14, "g")]);
        let blocks: Vec<_> = page.blocks.iter().map(|block| (block.line, block.words.join(" "))).collect();
        assert_eq!(blocks, [(5, "console exit=1".to_owned()), (9, "text".to_owned())]);
        assert_eq!(page.blocks[0].text, "$ x\n# not a heading\n");
    }

    #[test]
    fn anchors_are_those_of_the_site() {
        assert_eq!(slug("What is closed, and the way around"), "what-is-closed-and-the-way-around");
        assert_eq!(slug("`--sm` and PTXVM_SM"), "--sm-and-ptxvm_sm");
    }
}
