//! Rewrites a page so that a parser of HTML builds from it the tree that it says, and no deeper one.
//!
//! The rules of HTML for wrong markup make a tree that no count of tags bounds: an end tag that fits nothing is ignored, and
//! open formatting is repeated in each paragraph. Here every element is closed where it was opened, formatting is open once
//! at a time, and only elements remain that Markdown has a form for.

use super::{INLINE, Piece, pieces};

// Limits beyond those of real pages. The converter is recursive in the nesting, and quadratic in the children of an
// element and in the lines of nested lists and quotations.
const MAX_DEPTH: usize = 64;
const MAX_INDENTED: usize = 16;
const MAX_ELEMENTS: usize = 20_000;
const MAX_SIZE: usize = 2 << 20;
// Maximum length of an attribute in bytes; a longer one is left out.
const MAX_VALUE: usize = 4096;

// Elements that are dropped with what is in them.
const UNSEEN: &[&str] = &[
    "script", "style", "noscript", "template", "iframe", "object", "embed", "svg", "math",
];
const FORMATTING: &[&str] = &["a", "b", "code", "del", "em", "i", "s", "strong"];
const BLOCKS: &[&str] = &[
    "blockquote",
    "div",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "li",
    "ol",
    "p",
    "pre",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];
const VOID: &[&str] = &["br", "hr", "img"];
// Elements without an end tag that show nothing.
const NOTHING: &[&str] = &[
    "area", "base", "body", "col", "colgroup", "head", "html", "input", "link", "meta", "param",
    "source", "track", "wbr",
];
const ATTRIBUTES: &[(&str, &[&str])] = &[
    ("a", &["href", "title"]),
    ("img", &["src", "alt", "title"]),
    ("code", &["class"]),
    ("ol", &["start"]),
];

/// Returns the page with every element closed; `None` if it exceeds a limit.
pub(super) fn balanced(page: &str) -> Option<String> {
    let mut out = Writer::default();
    let mut hidden: Option<String> = None;
    for piece in pieces(page) {
        match (piece, &hidden) {
            (Piece::Tag { name, closes, .. }, Some(outer)) => {
                if closes && *outer == name {
                    hidden = None;
                }
            }
            (_, Some(_)) => {}
            (Piece::Text("<"), None) => out.page.push_str("&lt;"),
            (Piece::Text(text), None) => out.text(text),
            (Piece::Tag { name, closes, .. }, None) if UNSEEN.contains(&name.as_str()) => {
                if !closes && name != "embed" {
                    hidden = Some(name);
                }
            }
            (
                Piece::Tag {
                    name, closes: true, ..
                },
                None,
            ) => out.close(&name),
            (
                Piece::Tag {
                    name, attributes, ..
                },
                None,
            ) => out.open(name, attributes),
        }
        if out.exceeds() {
            return None;
        }
    }
    out.close_to(0);
    Some(out.page)
}

#[derive(Default)]
struct Writer {
    page: String,
    open: Vec<Open>,
    elements: usize,
}

struct Open {
    /// As in the page.
    name: String,
    /// As written; `None` if it is not.
    written: Option<&'static str>,
}

impl Writer {
    fn exceeds(&self) -> bool {
        let written = self.open.iter().filter(|it| it.written.is_some()).count();
        let indented = self
            .open
            .iter()
            .filter(|it| matches!(it.written, Some("blockquote" | "li" | "ol" | "ul")));
        self.page.len() > MAX_SIZE
            || self.elements > MAX_ELEMENTS
            || self.open.len() > 4 * MAX_DEPTH
            || written > MAX_DEPTH
            || indented.count() > 2 * MAX_INDENTED
    }

    fn text(&mut self, text: &str) {
        // A tag that does not end is text.
        if text.starts_with('<') {
            self.page.push_str(&text.replace('<', "&lt;"));
        } else {
            self.page.push_str(text);
        }
    }

    fn open(&mut self, name: String, attributes: &str) {
        self.elements += 1;
        let all = [BLOCKS, FORMATTING, VOID].into_iter().flatten();
        let known = all.copied().find(|it| *it == name);
        let block = !INLINE.contains(&name.as_str()) && name != "br";
        if block {
            self.end_implied(&name);
        }
        let written = match known {
            Some(it) if FORMATTING.contains(&it) && self.is_open(it) => None,
            None if NOTHING.contains(&name.as_str()) => return,
            None => block.then_some("div"),
            known => known,
        };
        if let Some(it) = written {
            self.page.push('<');
            self.page.push_str(it);
            let kept = ATTRIBUTES.iter().find(|(element, _)| *element == it);
            for wanted in kept.into_iter().flat_map(|(_, names)| *names) {
                self.attribute(wanted, attributes);
            }
            self.page.push('>');
        }
        if !VOID.contains(&name.as_str()) {
            self.open.push(Open { name, written });
        }
    }

    fn is_open(&self, written: &str) -> bool {
        self.open.iter().any(|it| it.written == Some(written))
    }

    /// Closes what the start of a block closes: a paragraph, and an item or a cell before it.
    fn end_implied(&mut self, name: &str) {
        let (ends, within): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol"]),
            "td" | "th" => (&["td", "th"], &["table", "tr"]),
            "tr" => (&["tr"], &["table"]),
            "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "option" => (&["option"], &["select"]),
            _ => (&[], &[]),
        };
        let last = |names: &[&str]| {
            let mut open = self.open.iter();
            open.rposition(|it| names.contains(&it.name.as_str()))
        };
        if let Some(at) = last(ends).filter(|at| last(within).is_none_or(|it| it < *at)) {
            self.close_to(at);
        }
        let block = self
            .open
            .iter()
            .rposition(|it| !INLINE.contains(&it.name.as_str()));
        if let Some(at) = block.filter(|at| self.open.get(*at).is_some_and(|it| it.name == "p")) {
            self.close_to(at);
        }
    }

    fn close(&mut self, name: &str) {
        let mut open = self.open.iter();
        // An end tag ends nothing outside of its table.
        let outer = self
            .open
            .iter()
            .rposition(|it| it.name == "table")
            .unwrap_or(0);
        let at = open.rposition(|it| it.name == name);
        if let Some(at) = at.filter(|at| *at >= outer || name == "table") {
            self.close_to(at);
        }
    }

    fn close_to(&mut self, at: usize) {
        while self.open.len() > at {
            if let Some(written) = self.open.pop().and_then(|it| it.written) {
                self.page.push_str(&format!("</{written}>"));
            }
        }
    }

    fn attribute(&mut self, wanted: &str, attributes: &str) {
        let found = values(attributes).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if let Some((_, value)) = found.filter(|(_, value)| value.len() <= MAX_VALUE) {
            let value = value.replace('"', "&quot;");
            self.page.push_str(&format!(" {wanted}=\"{value}\""));
        }
    }
}

/// Iterates over the attributes of a tag that have a value.
fn values(attributes: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = attributes;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/'));
            let (name, behind) = rest.split_at(end?);
            let Some(value) = behind.trim_ascii_start().strip_prefix('=') else {
                rest = behind;
                continue;
            };
            let value = value.trim_ascii_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let (value, after) = match quote {
                Some(quote) => {
                    let inner = value.get(1..).unwrap_or("");
                    inner.split_once(quote).unwrap_or((inner, ""))
                }
                None => {
                    let end = value.find(|c: char| c.is_ascii_whitespace());
                    value.split_at(end.unwrap_or(value.len()))
                }
            };
            rest = after;
            return Some((name, value));
        }
    })
}
