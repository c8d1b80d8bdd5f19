//! `cargo xtask docs --site`: the site below `target/site`, built by mdBook.
//!
//! Invariant: mdBook reads `docs/`, except for links that leave that folder. They become links to the file in
//! the repository, whose address is `--repository URL` or `repository` of `docs/book.toml`; without an
//! address they become plain text. mdBook must be installed (`cargo install mdbook --locked`).
//! [`super::check`] runs first.

use super::{files_below, name_of, read};
use std::path::Path;
use std::process::Command;

/// Builds the site.
pub(super) fn site(arguments: &[String]) -> Result<(), String> {
    let repository = match arguments {
        [] => None,
        [option, url] if option == "--repository" => Some(url.trim_end_matches('/')),
        _ => return Err("cargo xtask docs --site [--repository URL]".to_owned()),
    };
    let root = crate::root();
    let offences = super::check::offences(&root)?;
    if !offences.is_empty() {
        return Err(format!("docs found:\n  {}", offences.join("\n  ")));
    }
    let (from, staged) = (root.join("docs"), root.join("target/site-source"));
    let _first_time = std::fs::remove_dir_all(&staged);
    for file in files_below(&from, &["md", "toml", "css", "svg", "png"])? {
        let name = name_of(&from, &file);
        let to = staged.join(&name);
        std::fs::create_dir_all(to.parent().unwrap_or(&staged)).map_err(|error| error.to_string())?;
        let copied = if name.ends_with(".md") {
            std::fs::write(&to, with_outer_links(&read(&file)?, &name, repository))
        } else {
            std::fs::copy(&file, &to).map(|_bytes| ())
        };
        copied.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    let site = root.join("target/site");
    let status = Command::new("mdbook").arg("build").arg("--dest-dir").arg(&site).arg(&staged).status();
    let status = status.map_err(|error| {
        format!("mdbook cannot be started ({error}); `cargo install mdbook --locked` installs it")
    })?;
    if !status.success() {
        return Err(format!("mdbook failed ({status})"));
    }
    println!("{}", site.join("index.html").display());
    Ok(())
}

/// A page in which links to files outside of `docs/` lead to the repository, or are plain text.
fn with_outer_links(text: &str, name: &str, repository: Option<&str>) -> String {
    let depth = Path::new(name).components().count();
    let outside = "../".repeat(depth);
    let mut fenced = false;
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let mut done = String::new();
        let mut rest = line;
        while let Some(start) = rest.find(&format!("]({outside}")).filter(|_| !fenced) {
            let target = start + 2 + outside.len();
            let Some(length) = rest[target..].find(')') else { break };
            let path = &rest[target..target + length];
            match (repository, rest[..start].rfind('[')) {
                (Some(url), _) => done.push_str(&format!("{}]({url}/blob/main/{path})", &rest[..start])),
                (None, Some(open)) => {
                    done.push_str(&format!("{}{} (`{path}`)", &rest[..open], &rest[open + 1..start]));
                }
                // The text of the link begins on the line before.
                (None, None) => {
                    if let Some(before) = lines.last_mut()
                        && let Some(open) = before.rfind('[')
                    {
                        before.remove(open);
                    }
                    done.push_str(&format!("{} (`{path}`)", &rest[..start]));
                }
            }
            rest = &rest[target + length + 1..];
        }
        done.push_str(rest);
        lines.push(done);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::with_outer_links;

    #[test]
    fn links_that_leave_the_site() {
        let text = "See [the map](../ARCHITECTURE.md) and [a page](rust.md).\n```\n[x](../y)\n```\n";
        let linked = with_outer_links(text, "a.md", Some("https://host/p"));
        assert!(
            linked.starts_with(
                "See [the map](https://host/p/blob/main/ARCHITECTURE.md) and [a page](rust.md).\n"
            )
        );
        assert!(linked.ends_with("```\n[x](../y)\n```\n"));
        assert!(
            with_outer_links(text, "a.md", None).starts_with("See the map (`ARCHITECTURE.md`) and [a page]")
        );
        // The text of a link may continue on the next line.
        assert_eq!(with_outer_links("See [the\nmap](../M.md).\n", "a.md", None), "See the\nmap (`M.md`).\n");
        // In a subfolder, one `..` stays inside of the site.
        assert_eq!(with_outer_links("[a](../b.md)", "c/d.md", None), "[a](../b.md)\n");
    }
}
