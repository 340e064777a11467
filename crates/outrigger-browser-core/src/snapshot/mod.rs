//! What a model reads of a page: its accessibility tree, one line per element, with references that are valid as long as the element
//! exists; later only the changes; within a token budget.

mod changes;
mod compact;
mod references;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub use self::changes::changes;
pub use self::compact::compact;
pub use self::references::{KeptReferences, Key, References, number};
use crate::expect::Element;
use crate::field::FieldKind;

/// Bytes per token, for estimates.
const BYTES_PER_TOKEN: usize = 4;
/// Minimum budget in tokens, so that a page of a snapshot has at least a few lines.
const MIN_BUDGET: usize = 100;
/// Maximum length of an element's name, in characters; longer ones are read with `ref`.
const MAX_NAME: usize = 300;

/// An element of a page, as described by the browser. A page is a list of them in document order, each with its depth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Number of ancestors.
    pub depth: usize,
    /// Its key in the browser.
    pub key: Key,
    /// Role, `text` for text.
    pub role: String,
    /// Name, or the text.
    pub name: String,
    /// Value of a field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `disabled`, `checked`, `expanded` …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// The kind of protected field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldKind>,
    /// Whether it is interactive.
    pub actionable: bool,
    /// The look of a shape; the page's name (`#send`, `.star`) of an element without a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// A line of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Indentation.
    pub depth: usize,
    /// Number of its reference; none for text.
    pub reference: Option<u32>,
    /// The rest of the line.
    pub text: String,
    /// The full rest of the line, if `text` was shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
}

/// A page at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// The document; another one has other references.
    pub document: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A page of a snapshot, within a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its lines.
    pub text: String,
    /// Its number, starting at 1.
    pub number: usize,
    /// Number of pages.
    pub of: usize,
}

impl Snapshot {
    /// Creates a snapshot from the browser's description; also returns its elements.
    #[must_use]
    pub fn of(
        url: &str,
        title: &str,
        nodes: Vec<Node>,
        references: &mut References,
    ) -> (Self, Vec<Element>) {
        let document = nodes
            .first()
            .map(|it| it.key.document.clone())
            .unwrap_or_default();
        let (mut lines, mut elements) = (Vec::new(), Vec::new());
        for node in compact(nodes) {
            let reference = (node.role != "text").then(|| references.of(&node.key));
            lines.push(Line {
                depth: node.depth,
                reference,
                text: words(&node, MAX_NAME),
                whole: is_long(&node).then(|| words(&node, usize::MAX)),
            });
            elements.push(Element {
                reference: reference.map(|it| format!("e{it}")).unwrap_or_default(),
                role: node.role,
                name: node.name,
                value: node.value,
                states: node.states,
            });
        }
        let snapshot = Self {
            url: url.to_string(),
            title: title.to_string(),
            document,
            lines,
        };
        (snapshot, elements)
    }

    /// Returns an element with its content, with long names and values in full; empty if it does not exist.
    #[must_use]
    pub fn below(&self, reference: u32) -> Vec<Line> {
        let Some(at) = self
            .lines
            .iter()
            .position(|it| it.reference == Some(reference))
        else {
            return Vec::new();
        };
        let rest = self.lines.get(at..).unwrap_or_default();
        let depth = rest.first().map_or(0, |it| it.depth);
        let end = rest
            .iter()
            .skip(1)
            .position(|it| it.depth <= depth)
            .map_or(rest.len(), |it| it + 1);
        let mut lines = rest.get(..end).unwrap_or_default().to_vec();
        for line in &mut lines {
            if let Some(whole) = line.whole.take() {
                line.text = whole;
            }
        }
        lines
    }

    /// Returns all lines as one text, for hashing.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.url, self.title);
        for line in &self.lines {
            text.push_str(&line.shown(0));
        }
        text
    }
}

impl Line {
    /// Formats the line with indentation, reference and line end.
    fn shown(&self, from: usize) -> String {
        let indent = self.depth.saturating_sub(from).min(24);
        let reference = self
            .reference
            .map(|it| format!("e{it} "))
            .unwrap_or_default();
        format!("{:indent$}{reference}{}\n", "", self.text)
    }
}

/// Returns one page of lines with a maximum number of tokens.
#[must_use]
pub fn page(lines: &[Line], budget: usize, number: usize) -> Page {
    let most = budget.max(MIN_BUDGET) * BYTES_PER_TOKEN;
    let from = lines.iter().map(|it| it.depth).min().unwrap_or_default();
    let mut pages: Vec<String> = Vec::from([String::new()]);
    for line in lines {
        let mut shown = line.shown(from);
        if shown.len() > most {
            let end = (0..=most - 8).rev().find(|at| shown.is_char_boundary(*at));
            shown.truncate(end.unwrap_or_default());
            shown.push_str("…\n");
        }
        let is_full = pages.last().is_some_and(|it| it.len() + shown.len() > most);
        if is_full {
            pages.push(String::new());
        }
        if let Some(last) = pages.last_mut() {
            last.push_str(&shown);
        }
    }
    let of = pages.len();
    let number = number.clamp(1, of);
    let text = pages.into_iter().nth(number - 1).unwrap_or_default();
    Page { text, number, of }
}

/// Estimates the number of tokens of a text.
#[must_use]
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

/// Returns whether its texts exceed [`MAX_NAME`].
fn is_long(node: &Node) -> bool {
    let value = node.value.as_deref().unwrap_or_default();
    [node.name.as_str(), value]
        .iter()
        .any(|it| it.trim().chars().nth(MAX_NAME).is_some())
}

/// Returns the text of a line: role, name, value, states, each with a maximum length.
fn words(node: &Node, most: usize) -> String {
    if node.role == "text" {
        return quoted(&node.name, most);
    }
    let mut words = node.role.clone();
    if !node.name.is_empty() {
        words.push(' ');
        words.push_str(&quoted(&node.name, most));
    }
    if let Some(value) = &node.value {
        words.push_str(" = ");
        words.push_str(&quoted(value, most));
    }
    if let Some(field) = node.field {
        words.push_str(&format!(" ({})", field.name()));
    }
    if !node.hint.is_empty() {
        words.push_str(&format!(" ({})", node.hint));
    }
    for state in &node.states {
        words.push(' ');
        words.push_str(state);
    }
    words
}

/// Quotes a text on one line, with a maximum length.
fn quoted(text: &str, most: usize) -> String {
    let mut out = String::from("\"");
    let mut blank = false;
    for (count, c) in text.trim().chars().enumerate() {
        if count >= most {
            out.push('…');
            break;
        }
        match c {
            c if c.is_whitespace() => {
                if !blank {
                    out.push(' ');
                }
            }
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
        blank = c.is_whitespace();
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
