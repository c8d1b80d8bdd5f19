//! Properties of every text: the fuzz targets search for violations of them, and texts that violated one
//! earlier are tested again.

use crate::facts::facts;
use ptx::check::{CheckOptions, Checked, check, print};
use ptx::diag::render::{Color, Source};
use ptx::diag::{Diagnostic, Severity};
use ptx::ir::verify::verify;
use ptx::syntax::{Token, format, lexer, parse};

/// How many diagnostics of a text are rendered; rendering is linear in the line, and a text has as many
/// mistakes as lines.
const RENDERED: usize = 8;

/// Tokens follow each other without a gap, none is empty, and joined they give the text.
pub(crate) fn lexes(text: &str) {
    let lexed = lexer::lex(text);
    joined(&lexed.tokens, text);
    places(&lexed.diagnostics, text);
}

/// The tree gives back the text, and what was found can be rendered.
pub(crate) fn parses(text: &str) {
    let parsed = parse(text);
    joined(&parsed.tree.tokens, text);
    assert!(parsed.tree.print(text) == text);
    places(&parsed.diagnostics, text);
    render(&parsed.diagnostics, text);
}

/// There is a module or an error, never both; what was found can be rendered.
pub(crate) fn checks(text: &str) -> Checked {
    let checked = check("text.ptx", text, &CheckOptions::default());
    let errors = checked.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    assert_eq!(checked.module.is_none(), errors > 0, "{:?}", checked.diagnostics);
    // Places are in the text that the preprocessor left.
    places(&checked.diagnostics, &checked.source.text);
    render(&checked.diagnostics, &checked.source.text);
    let strict = CheckOptions { strict: true, ..CheckOptions::default() };
    check("text.ptx", text, &strict);
    checked
}

/// Formatting changes only white space, and once formatted nothing; a module that is printed and checked
/// again is the same module.
pub(crate) fn prints(text: &str) {
    if let Ok(formatted) = format::format(text) {
        let solid = |text: &str| -> String {
            let tokens = lexer::lex(text).tokens;
            let solid = tokens.into_iter().filter(|t| t.kind != ptx::syntax::TokenKind::Whitespace);
            solid.map(|t| t.span.text(text).trim_end().to_owned() + "\n").collect()
        };
        assert_eq!(solid(text), solid(&formatted));
        let again = format::format(&formatted);
        assert_eq!(again.as_deref(), Ok(formatted.as_str()), "formatting again");
    }
    let Some(module) = check("text.ptx", text, &CheckOptions::default()).module else { return };
    let printed = print(&module);
    let checked = check("printed.ptx", &printed, &CheckOptions::default());
    let Some(second) = checked.module else {
        panic!("{:?}\n{printed}", checked.diagnostics.iter().find(|d| d.severity == Severity::Error));
    };
    assert_eq!(facts(&module), facts(&second), "{printed}");
    assert_eq!(print(&second), printed, "printing again");
}

/// What has been checked lowers to a program that keeps the rules of the IR.
pub(crate) fn lowers(text: &str) {
    let Some(module) = check("text.ptx", text, &CheckOptions::default()).module else { return };
    let program = ptx::ir::lower(module);
    let violations: Vec<String> = verify(&program).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}\n{program}", violations.join("\n"));
}

fn joined(tokens: &[Token], text: &str) {
    let mut at = 0;
    for token in tokens {
        assert!(token.span.start == at && token.span.end > at, "{token:?} at {at}");
        assert!(text.is_char_boundary(at as usize));
        at = token.span.end;
    }
    assert_eq!(at as usize, text.len());
}

fn places(diagnostics: &[Diagnostic], text: &str) {
    let mut before = 0;
    for d in diagnostics {
        assert!(d.span.start >= before, "not in the order of the text: {d:?}");
        before = d.span.start;
        let spans = d.related.iter().map(|label| label.span).chain([d.span]);
        for span in spans {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{d:?}");
        }
        assert!(!d.message.is_empty());
    }
}

fn render(diagnostics: &[Diagnostic], text: &str) {
    let source = Source::new("text.ptx", text);
    for d in diagnostics.iter().take(RENDERED) {
        source.human(d, Color::Never);
        source.json(d);
    }
}
