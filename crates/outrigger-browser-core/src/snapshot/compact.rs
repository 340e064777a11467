//! Compact snapshots: elements without meaning are omitted, and their content moves up.

use alloc::string::String;
use alloc::vec::Vec;

use super::Node;

/// Roles without meaning, unless the element is clickable.
const PLAIN: [&str; 15] = [
    "rootwebarea",
    "generic",
    "none",
    "presentation",
    "group",
    "paragraph",
    "document",
    "labeltext",
    "emphasis",
    "strong",
    "layouttable",
    "layouttablerow",
    "layouttablecell",
    "menulistpopup",
    "svgroot",
];

/// Returns the remaining lines at their new depths.
#[must_use]
pub fn compact(nodes: Vec<Node>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::with_capacity(nodes.len());
    // For each ancestor of the current element: its depth in the page, the new depth of its content, and the name that repeats its text.
    let mut around: Vec<Around> = Vec::new();
    // The block of the last line's text.
    let mut last_block = None;
    for (place, mut node) in nodes.into_iter().enumerate() {
        while around.last().is_some_and(|it| it.depth >= node.depth) {
            around.pop();
        }
        let inside = around.last().map_or(0, |it| it.inside);
        let block = around.last().map_or(0, |it| it.block);
        let said = around.last().and_then(|it| it.said.clone());
        let depth = node.depth;
        let is_text = node.role == "text";
        let is_said = said
            .as_ref()
            .is_some_and(|said| is_text && holds(said, &node.name));
        let is_plain =
            PLAIN.contains(&node.role.as_str()) && !node.actionable && node.value.is_none();
        let is_empty = is_text && node.name.trim().is_empty();
        let stays = !(is_said || is_plain || is_empty);
        // The name of an element usually consists of its text; the content of an omitted element is treated as if it did not exist.
        let said = if stays && !node.name.is_empty() && !is_text {
            Some(node.name.clone())
        } else {
            said
        };
        around.push(Around {
            depth,
            inside: inside + usize::from(stays),
            // An inline element without meaning is in the same block as its text.
            block: if node.role == "none" { block } else { place },
            said,
        });
        let joins = is_text && !is_said && last_block == Some((block, inside));
        match out.last_mut().filter(|_| joins) {
            // Text that is only separated by inline elements.
            Some(last) => last.name.push_str(&node.name),
            None if stays => {
                last_block = is_text.then_some((block, inside));
                node.depth = inside;
                out.push(node);
            }
            None => {}
        }
    }
    let mut out = unwrapped(lifted(out));
    let depths: Vec<usize> = out.iter().map(|it| it.depth).skip(1).collect();
    for (at, node) in out.iter_mut().enumerate() {
        let has_content = depths.get(at).is_some_and(|next| *next > node.depth);
        if node.hint.starts_with(['#', '.']) && (has_content || !node.name.is_empty()) {
            node.hint.clear();
        }
    }
    out
}

struct Around {
    depth: usize,
    inside: usize,
    /// Index of the nearest element that is not inline.
    block: usize,
    said: Option<String>,
}

/// An element without a name whose only content is a line of text takes that text as its name.
fn lifted(nodes: Vec<Node>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::with_capacity(nodes.len());
    let mut nodes = nodes.into_iter().peekable();
    while let Some(node) = nodes.next() {
        let is_alone = nodes.peek().is_none_or(|next| next.depth < node.depth);
        match out.last_mut().filter(|outer| {
            let is_empty = outer.name.is_empty() && outer.value.is_none() && outer.role != "text";
            is_alone && node.role == "text" && is_empty && outer.depth + 1 == node.depth
        }) {
            Some(outer) => outer.name = node.name,
            None => out.push(node),
        }
    }
    out
}

/// An element that only listens for clicks and contains a single clickable element is omitted.
fn unwrapped(mut nodes: Vec<Node>) -> Vec<Node> {
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        let depth = node.depth;
        let inside = nodes.iter().skip(at + 1).take_while(|it| it.depth > depth);
        let count = inside.clone().count();
        let mut children = inside.filter(|it| it.depth == depth + 1);
        let only = children.next().filter(|_| children.next().is_none());
        let is_wrapper = PLAIN.contains(&node.role.as_str())
            && node.name.is_empty()
            && node.value.is_none()
            && node.states.is_empty()
            && only.is_some_and(|it| it.actionable);
        if is_wrapper {
            nodes.remove(at);
            for it in nodes.iter_mut().skip(at).take(count) {
                it.depth -= 1;
            }
        } else {
            at += 1;
        }
    }
    nodes
}

/// Returns whether a name contains a text, ignoring white space.
fn holds(name: &str, text: &str) -> bool {
    let flat = |text: &str| -> String { text.chars().filter(|it| !it.is_whitespace()).collect() };
    flat(name).contains(flat(text).as_str())
}
