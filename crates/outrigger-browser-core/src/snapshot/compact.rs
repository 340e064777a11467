//! Fewer lines that say the same: what has no meaning of its own is left out, and what stands in it moves up.

use alloc::string::String;
use alloc::vec::Vec;

use super::Node;

/// Roles without a meaning of their own, unless something happens when one is clicked.
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

/// The lines that are left, at their new depths.
#[must_use]
pub fn compact(nodes: Vec<Node>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::with_capacity(nodes.len());
    // For each element that the present one is in: its depth in the page, that of what is in it now, and the name that repeats its text.
    let mut around: Vec<Around> = Vec::new();
    for mut node in nodes {
        while around.last().is_some_and(|it| it.depth >= node.depth) {
            around.pop();
        }
        let inside = around.last().map_or(0, |it| it.inside);
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
        // An element's name is made of its text, mostly; what is in an element that is left out is as it would be without it.
        let said = match stays && !node.name.is_empty() && !is_text {
            true => Some(node.name.clone()),
            false => said,
        };
        around.push(Around {
            depth,
            inside: inside + usize::from(stays),
            said,
        });
        if !stays {
            continue;
        }
        node.depth = inside;
        match out
            .last_mut()
            .filter(|last| is_text && last.role == "text" && last.depth == node.depth)
        {
            // Text that is only divided by what was left out.
            Some(last) => {
                last.name.push(' ');
                last.name.push_str(node.name.trim());
            }
            None => out.push(node),
        }
    }
    out
}

struct Around {
    depth: usize,
    inside: usize,
    said: Option<String>,
}

/// Whether a name holds a text, white space apart.
fn holds(name: &str, text: &str) -> bool {
    let flat = |text: &str| -> String { text.chars().filter(|it| !it.is_whitespace()).collect() };
    flat(name).contains(flat(text).as_str())
}
