//! Applies the hunks of a patch to a text.

use super::{Hunk, Line, PatchError};

/// Maximum cost of all sections of a patch: one with many hunks in large files must not block everything.
const MAX_COST: usize = 20_000_000;
/// Bytes of lines that cost as much as one comparison.
const BYTES: usize = 64;

/// The cost of searching for the lines of one patch, in comparisons of short lines.
#[derive(Debug, Default)]
pub(crate) struct Cost(usize);

/// Returns the changed text. It ends with a line end, as in OpenCode; line ends are those of the text.
///
/// # Errors
/// A hunk does not match; `path` names the file in the message.
pub(crate) fn apply(
    path: &str,
    text: &str,
    places: &[Hunk],
    cost: &mut Cost,
) -> Result<String, PatchError> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let crlf = lines.iter().filter(|line| line.ends_with('\r')).count() * 2 > lines.len();
    let mut search = Search {
        path,
        lines: &lines,
        cost,
    };
    let mut changes = Vec::new();
    let mut from = 0;
    for place in places {
        let change = search.place(place, from)?;
        from = change.next;
        changes.push(change);
    }
    // Insertions at the end come after everything before them; those at one place keep their order.
    changes.sort_by_key(|change| change.at);
    Ok(joined(&lines, &changes, if crlf { "\r\n" } else { "\n" }))
}

fn joined(lines: &[&str], changes: &[Change<'_>], end: &str) -> String {
    let mut out = String::new();
    let keep = |out: &mut String, index: usize| {
        let line = lines.get(index).copied().unwrap_or_default();
        out.push_str(line);
        // The last line of the text may have had no line end.
        let last = index + 1 == lines.len() && !line.ends_with('\r');
        out.push_str(if last { end } else { "\n" });
    };
    let mut at = 0;
    for change in changes {
        (at..change.at).for_each(|index| keep(&mut out, index));
        for line in &change.new {
            match line {
                New::Kept(index) => keep(&mut out, *index),
                New::Written(line) => {
                    out.push_str(line);
                    out.push_str(end);
                }
            }
        }
        at = at.max(change.at + change.removed);
    }
    (at..lines.len()).for_each(|index| keep(&mut out, index));
    out
}

struct Change<'a> {
    at: usize,
    removed: usize,
    new: Vec<New<'a>>,
    /// Where the search for the next hunk starts.
    next: usize,
}

enum New<'a> {
    /// A line of the text, unchanged: a hunk may match although its white space differs.
    Kept(usize),
    Written(&'a str),
}

struct Search<'a> {
    path: &'a str,
    lines: &'a [&'a str],
    cost: &'a mut Cost,
}

impl Search<'_> {
    fn place<'p>(&mut self, place: &'p Hunk, from: usize) -> Result<Change<'p>, PatchError> {
        let from = match &place.context {
            None => from,
            Some(context) => {
                let found = self.find(&[context.as_str()], from, false)?;
                found.ok_or_else(|| PatchError::NoContext {
                    context: context.clone(),
                    path: self.path.to_owned(),
                })? + 1
            }
        };
        let inserts_only = !place
            .lines
            .iter()
            .any(|line| matches!(line, Line::Keep(_) | Line::Remove(_)));
        if inserts_only {
            // OpenCode's rule: what has no place is appended.
            let at = self.lines.len();
            let at = at - usize::from(self.lines.last() == Some(&""));
            return Ok(change(at, 0, place.lines.iter(), from));
        }
        for lines in forms(&place.lines) {
            let old: Vec<&str> = lines.iter().filter_map(|line| old(line)).collect();
            if let Some(at) = self.find(&old, from, place.at_end)? {
                return Ok(change(at, old.len(), lines.into_iter(), at + old.len()));
            }
        }
        let signed = place.lines.iter().filter(|line| **line != Line::Bare);
        let old: Vec<&str> = signed.filter_map(old).collect();
        Err(PatchError::NoLines {
            path: self.path.to_owned(),
            lines: old.join("\n"),
        })
    }

    /// Finds these lines at or after `from`: exactly, or without trailing white space, or without surrounding white space, or
    /// with plain characters for typographic ones.
    fn find(
        &mut self,
        wanted: &[&str],
        from: usize,
        at_end: bool,
    ) -> Result<Option<usize>, PatchError> {
        const RULES: [fn(&str, &str) -> bool; 4] = [
            |a, b| a == b,
            |a, b| a.trim_end() == b.trim_end(),
            |a, b| a.trim() == b.trim(),
            // Without such characters it equals the rule before.
            |a, b| {
                let is_plain = a.is_ascii() && b.is_ascii();
                a.trim() == b.trim() || !is_plain && plain(a.trim()) == plain(b.trim())
            },
        ];
        let Some(last) = self.lines.len().checked_sub(wanted.len()) else {
            return Ok(None);
        };
        for same in RULES {
            let end = (at_end && last >= from).then_some(last);
            for at in end.into_iter().chain(from..=last) {
                if self.stands(wanted, at, same)? {
                    return Ok(Some(at));
                }
            }
        }
        Ok(None)
    }

    fn stands(
        &mut self,
        wanted: &[&str],
        at: usize,
        same: fn(&str, &str) -> bool,
    ) -> Result<bool, PatchError> {
        for (line, want) in self.lines.iter().skip(at).zip(wanted) {
            // Lines that are nearly alike are compared in full, and copied by the last rule.
            let long = line.len().min(want.len()) / BYTES;
            self.cost.0 = self.cost.0.saturating_add(1 + long);
            if self.cost.0 > MAX_COST {
                return Err(PatchError::TooMuch {
                    path: self.path.to_owned(),
                });
            }
            if !same(line.trim_end_matches('\r'), want) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the readings of a hunk, in the order in which they are tried: bare lines are skipped, or are empty lines; an empty
/// line at its end may be missing in the text.
fn forms(lines: &[Line]) -> Vec<Vec<&Line>> {
    static EMPTY: Line = Line::Keep(String::new());
    let without: Vec<&Line> = lines.iter().filter(|line| **line != Line::Bare).collect();
    let mut forms = vec![without.clone()];
    if without.len() < lines.len() {
        let as_empty = |line| if line == &Line::Bare { &EMPTY } else { line };
        let mut with: Vec<&Line> = lines.iter().map(as_empty).collect();
        forms.push(with.clone());
        while with.last() == Some(&&EMPTY) {
            with.pop();
        }
        forms.push(with);
    }
    if without.iter().rev().find_map(|line| old(line)) == Some("") {
        forms.push(without_last_empty(without));
    }
    forms
}

fn without_last_empty(mut lines: Vec<&Line>) -> Vec<&Line> {
    if let Some(at) = lines.iter().rposition(|line| old(line).is_some()) {
        let kept = matches!(lines.get(at), Some(Line::Keep(_)));
        lines.remove(at);
        let ends_empty = |line: &&Line| matches!(line, Line::Insert(text) if text.is_empty());
        if !kept && lines.last().is_some_and(ends_empty) {
            lines.pop();
        }
    }
    lines
}

fn old(line: &Line) -> Option<&str> {
    match line {
        Line::Keep(text) | Line::Remove(text) => Some(text),
        Line::Bare => Some(""),
        Line::Insert(_) => None,
    }
}

fn change<'p>(
    at: usize,
    removed: usize,
    lines: impl Iterator<Item = &'p Line>,
    next: usize,
) -> Change<'p> {
    let mut index = at;
    let mut new = Vec::new();
    for line in lines {
        match line {
            Line::Insert(text) => new.push(New::Written(text)),
            Line::Remove(_) => index += 1,
            Line::Keep(_) => {
                new.push(New::Kept(index));
                index += 1;
            }
            Line::Bare => {}
        }
    }
    Change {
        at,
        removed,
        new,
        next,
    }
}

fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2018}'..='\u{201b}' => out.push('\''),
            '\u{201c}'..='\u{201f}' => out.push('"'),
            '\u{2010}'..='\u{2015}' => out.push('-'),
            '\u{2026}' => out.push_str("..."),
            '\u{a0}' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edits::patch::{Section, parse};

    fn patched(text: &str, body: &str) -> String {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
        let Some(Section::Update { places, .. }) = parse(&patch).unwrap().pop() else {
            panic!("{body:?} is not an update");
        };
        match apply("/p/f", text, &places, &mut Cost::default()) {
            Ok(text) => text,
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn places_are_found_as_opencode_finds_them() {
        for (text, body, want) in [
            ("a\nb\n", "@@\n-a\n+x", "x\nb\n"),
            // A line end is added after the last line.
            ("a\nb", "@@\n-b\n+x", "a\nx\n"),
            ("", "@@\n+x", "x\n"),
            ("a\n", "@@\n+x\n+y", "a\nx\ny\n"),
            // The context is the line before the hunk.
            ("f\n1\ng\n1\n", "@@ g\n-1\n+2", "f\n1\ng\n2\n"),
            ("f\n", "@@ h\n-1", "! Failed to find context 'h' in /p/f"),
            (
                "a\n",
                "@@\n-b\n c",
                "! Failed to find expected lines in /p/f:\nb\nc",
            ),
            // Hunks come in the order of the file.
            ("1\n2\n1\n", "@@\n-1\n+x\n@@\n-1\n+y", "x\n2\ny\n"),
            (
                "1\n2\n",
                "@@\n-2\n+x\n@@\n-1\n+y",
                "! Failed to find expected lines in /p/f:\n1",
            ),
            // White space and typographic characters may differ; kept lines are unchanged.
            ("  a  \n\tb\n", "@@\n a\n-b\n+c", "  a  \nc\n"),
            (
                "x = \u{201c}q\u{201d} \u{2014} z\nb\n",
                "@@\n x = \"q\" - z\n-b\n+c",
                "x = \u{201c}q\u{201d} \u{2014} z\nc\n",
            ),
            // Line ends are those of the file.
            ("a\r\nb\r\n", "@@\n a\n-b\n+c\n+d", "a\r\nc\r\nd\r\n"),
            ("a\nb\n", "@@\r\n a\r\n-b\r\n+c\r", "a\nc\n"),
            // The end of the file.
            ("a\nb\na\n", "@@\n-a\n+x\n*** End of File", "a\nb\nx\n"),
            (
                "a\nb\n",
                "@@\n-a\n+x\n*** End of File\n@@\n-b\n+y",
                "x\ny\n",
            ),
            // An empty line that lost its sign, one that is not part of the hunk, and one too many at the end.
            ("a\n\nb\n", "@@\n a\n\n-b\n+c", "a\n\nc\n"),
            ("a\nb\n", "@@\n a\n\n-b\n+c", "a\nc\n"),
            ("a\nb\n", "@@\n-a\n+c\n\n", "c\nb\n"),
            ("a\nb", "@@\n b\n+c\n ", "a\nb\nc\n"),
            // Without `@@`.
            ("a\n", "-a\n+b", "b\n"),
            // Multi-byte lines.
            (
                "\u{e4}\u{1F600}\nb\n",
                "@@\n-\u{e4}\u{1F600}\n+\u{fc}",
                "\u{fc}\nb\n",
            ),
        ] {
            assert_eq!(patched(text, body), want, "{text:?} {body:?}");
        }
    }

    #[test]
    fn a_search_without_end_is_ended() {
        let text = "a\n".repeat(100_000);
        let body = "@@\n".to_owned() + &" a\n".repeat(50_000) + "-b\n+c";
        assert!(patched(&text, &body).starts_with("! Looking for the lines of the patch in /p/f"));
        // Long lines cost more, and all sections of a patch share one cost.
        let long = "a".repeat(6_400);
        let text = format!("{long}b\n").repeat(10);
        let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n-{long}c\n+d\n*** End Patch");
        let Some(Section::Update { places, .. }) = parse(&patch).unwrap().pop() else {
            panic!("no update");
        };
        let mut cost = Cost::default();
        let mut costs = || {
            apply("/p/f", &text, &places, &mut cost).unwrap_err();
            cost.0
        };
        assert_eq!([costs(), costs()], [4 * 10 * 101, 8 * 10 * 101]);
        let refused = apply("/p/f", &text, &places, &mut Cost(MAX_COST - 100));
        assert!(matches!(refused, Err(PatchError::TooMuch { .. })));
    }

    proptest::proptest! {
        #[test]
        fn a_diff_that_is_written_as_a_patch_makes_the_new_text(
            old in proptest::collection::vec("[ab]{0,2}", 1..12),
            new in proptest::collection::vec("[ab]{0,2}", 1..12),
        ) {
            // One hunk over the whole file: removed, then inserted.
            let body = ["@@".to_owned()].into_iter()
                .chain(old.iter().map(|line| format!("-{line}")))
                .chain(new.iter().map(|line| format!("+{line}")))
                .collect::<Vec<_>>().join("\n");
            let text = old.join("\n") + "\n";
            proptest::prop_assert_eq!(patched(&text, &body), new.join("\n") + "\n");
        }
    }
}
