//! An execution as a picture: threads as columns of events, relations as coloured curves with their names.
//!
//! Invariant: the text is well-formed SVG whatever the names and instructions contain.

use crate::execution::Execution;
use crate::test::Link;
use std::fmt::Write as _;

/// Width of a column, height of a row, and the margin, in pixels. Chosen to fit the longest instructions of
/// litmus tests.
const COLUMN: i64 = 300;
const ROW: i64 = 70;
const MARGIN: i64 = 40;
/// Size of the box of an event.
const BOX: (i64, i64) = (230, 40);

impl Execution {
    /// The picture, with a title.
    pub fn svg(&self, title: &str) -> String {
        let columns = self.threads.len().max(1) as i64;
        let mut place = Vec::new();
        let mut next = vec![0_i64; self.threads.len()];
        for event in &self.events {
            place.push((event.thread as i64, next[event.thread]));
            next[event.thread] += 1;
        }
        let rows = next.iter().max().copied().unwrap_or(0).max(1);
        let (width, height) = (2 * MARGIN + columns * COLUMN, 2 * MARGIN + (rows + 1) * ROW + 60);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"12\">\n<defs>\n"
        );
        for link in Link::ALL {
            let (name, color) = (link.name(), color(link));
            let _infallible = writeln!(
                svg,
                "<marker id=\"{name}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
                 orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"{color}\"/></marker>"
            );
        }
        let _infallible = writeln!(
            svg,
            "</defs>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
             <text x=\"{MARGIN}\" y=\"24\" font-size=\"14\">{}</text>",
            escaped(title)
        );
        for (thread, name) in self.threads.iter().enumerate() {
            let x = MARGIN + thread as i64 * COLUMN + BOX.0 / 2;
            let _infallible = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
                MARGIN + 20,
                escaped(name)
            );
        }
        for (event, at) in self.events.iter().zip(&place) {
            let (x, y) = corner(*at);
            let _infallible = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"#f4f4f4\" stroke=\"#888\"/>\
                 <text x=\"{}\" y=\"{}\">{}: {}</text><text x=\"{}\" y=\"{}\" fill=\"#666\">{}</text>",
                BOX.0,
                BOX.1,
                x + 6,
                y + 16,
                escaped(&event.name),
                escaped(&event.text),
                x + 6,
                y + 32,
                escaped(&event.source)
            );
        }
        for (number, (link, a, b)) in self.links.iter().enumerate() {
            svg.push_str(&arrow(*link, place[*a], place[*b], number as i64));
        }
        let state: Vec<String> =
            self.state.iter().map(|(name, value)| format!("{name}={}", value.cast_signed())).collect();
        let _infallible = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{}\">final: {}</text>\n</svg>",
            height - MARGIN,
            escaped(&state.join("  "))
        );
        svg
    }
}

/// The corner of the box of an event.
fn corner((column, row): (i64, i64)) -> (i64, i64) {
    (MARGIN + column * COLUMN, MARGIN + 40 + row * ROW)
}

fn arrow(link: Link, from: (i64, i64), to: (i64, i64), number: i64) -> String {
    let ((x1, y1), (x2, y2)) = (corner(from), corner(to));
    // Arrows between the same boxes are drawn at different heights.
    let shift = 8 + number * 7 % 26;
    let (start, end, bend) = if from.0 == to.0 {
        ((x1 + BOX.0, y1 + shift), (x2 + BOX.0, y2 + shift), (30, 0))
    } else if from.0 < to.0 {
        ((x1 + BOX.0, y1 + shift), (x2, y2 + shift), (0, -12))
    } else {
        ((x1, y1 + shift), (x2 + BOX.0, y2 + shift), (0, 12))
    };
    let middle = ((start.0 + end.0) / 2 + bend.0, (start.1 + end.1) / 2 + bend.1);
    let (name, color) = (link.name(), color(link));
    format!(
        "<path d=\"M{} {} Q{} {} {} {}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\" marker-end=\"url(#{name})\"/>\
         <text x=\"{}\" y=\"{}\" fill=\"{color}\">{name}</text>\n",
        start.0,
        start.1,
        middle.0,
        middle.1,
        end.0,
        end.1,
        (start.0 + 2 * middle.0 + end.0) / 4,
        (start.1 + 2 * middle.1 + end.1) / 4 - 3,
    )
}

fn color(link: Link) -> &'static str {
    match link {
        Link::Rf => "#c00000",
        Link::Co => "#8a4b08",
        Link::Fr => "#d07000",
        Link::Sc => "#6a1b9a",
        Link::Sw => "#0050b0",
        Link::Cause => "#2e7d32",
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML allows no other control characters.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
