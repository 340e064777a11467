//! Finds the text that a model meant to replace, although it copied it with small mistakes. The rules are OpenCode's, in its order; the
//! first rule that finds anything decides. Stricter than OpenCode in one point: if a rule finds several places with different texts,
//! nothing is replaced, since the wrong one might be changed silently.

mod blocks;
mod lines;

use std::ops::Range;

/// Maximum product of lines of the file and lines of the text for the lenient line rules: each compares every place with the whole text.
const MAX_LINES: usize = 4_000_000;

pub(crate) type Spans = Vec<Range<usize>>;

/// The reason why nothing was replaced. The texts are OpenCode's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoMatch {
    #[error("No changes to apply: oldString and newString are identical.")]
    Identical,
    #[error(
        "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings."
    )]
    Missing,
    #[error(
        "Found multiple matches for oldString. Provide more surrounding context to make the match unique."
    )]
    Several,
}

/// A range and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Replacement {
    spans: Spans,
    new: String,
}

/// Returns `content` with `old` replaced by `new`: everywhere, or at its only occurrence.
pub(crate) fn replace(
    content: &str,
    old: &str,
    new: &str,
    everywhere: bool,
) -> Result<String, NoMatch> {
    if old == new {
        return Err(NoMatch::Identical);
    }
    let found = find(content, old, new).ok_or(NoMatch::Missing)?;
    if found.spans.len() > 1 && !everywhere {
        return Err(NoMatch::Several);
    }
    let mut out = String::with_capacity(content.len() + found.new.len());
    let mut at = 0;
    for span in &found.spans {
        out.push_str(&content[at..span.start]);
        out.push_str(&found.new);
        at = span.end;
    }
    out.push_str(&content[at..]);
    Ok(out)
}

fn find(content: &str, old: &str, new: &str) -> Option<Replacement> {
    if old.is_empty() {
        return None;
    }
    let ends = Ends::of(content);
    // In a file of mixed line ends, the text may occur in either form.
    let forms = [ends.apply(old), old.replace("\r\n", "\n")];
    for form in &forms {
        let spans = exact(content, form);
        if !spans.is_empty() {
            let new = if form.contains('\n') && !form.contains("\r\n") {
                new.replace("\r\n", "\n")
            } else {
                ends.apply(new)
            };
            return Some(Replacement { spans, new });
        }
    }
    if old.trim().is_empty() {
        // White space alone would match nearly anywhere under the lenient rules.
        return None;
    }
    let plain = &forms[1];
    let lines = |text: &str| text.lines().count();
    let is_small = lines(content).saturating_mul(lines(plain)) <= MAX_LINES;
    let new = ends.apply(new);
    let lenient: [fn(&str, &str) -> Spans; 5] = [
        lines::trimmed,
        blocks::anchored,
        lines::whitespace_normalised,
        lines::indentation_flexible,
        escape_normalised,
    ];
    for rule in lenient.into_iter().filter(|_| is_small) {
        let spans = rule(content, plain);
        if !spans.is_empty() {
            return Some(Replacement { spans, new });
        }
    }
    if let Some(found) = trimmed_boundary(content, plain, &new) {
        return Some(found);
    }
    if !is_small {
        return None;
    }
    let spans = blocks::context_aware(content, plain);
    (!spans.is_empty()).then_some(Replacement { spans, new })
}

/// The line ends of a file.
#[derive(Clone, Copy)]
enum Ends {
    Lf,
    CrLf,
}

impl Ends {
    fn of(content: &str) -> Self {
        if content.contains("\r\n") {
            Self::CrLf
        } else {
            Self::Lf
        }
    }
    fn apply(self, text: &str) -> String {
        let plain = text.replace("\r\n", "\n");
        match self {
            Self::Lf => plain,
            Self::CrLf => plain.replace('\n', "\r\n"),
        }
    }
}

fn exact(content: &str, old: &str) -> Spans {
    content
        .match_indices(old)
        .map(|(at, found)| at..at + found.len())
        .collect()
}

// Matches if the model wrote `\n`, `\t` or `\"` where the file has the character itself.
fn escape_normalised(content: &str, old: &str) -> Spans {
    let plain = unescape(old);
    if plain == old {
        return Vec::new();
    }
    let spans = exact(content, &Ends::of(content).apply(&plain));
    if spans.is_empty() {
        lines::trimmed(content, &plain)
    } else {
        spans
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(c @ ('\'' | '"' | '`' | '\\' | '\n' | '$')) => out.push(c),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}

// Matches if the white space around the text is wrong. White space that both strings share is not part of the new text.
fn trimmed_boundary(content: &str, old: &str, new: &str) -> Option<Replacement> {
    let core = old.trim();
    if core.is_empty() || core == old {
        return None;
    }
    let spans = exact(content, &Ends::of(content).apply(core));
    if spans.is_empty() {
        return None;
    }
    let (before, after) = old.split_once(core)?;
    let mut new = new;
    if !before.is_empty() {
        new = new.strip_prefix(before).unwrap_or(new);
    }
    if !after.is_empty() {
        new = new.strip_suffix(after).unwrap_or(new);
    }
    Some(Replacement {
        spans,
        new: new.to_owned(),
    })
}

#[cfg(test)]
mod tests;
