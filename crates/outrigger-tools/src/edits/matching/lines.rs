//! Rules that compare line by line.

use std::ops::Range;

use super::Spans;

/// A line of a text, without its line end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    /// After the text, before the line end.
    pub(super) end: usize,
    /// After the line end.
    pub(super) next: usize,
}

/// Splits a text into lines. A final line end does not start another, empty line.
pub(super) fn split(text: &str) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = line.strip_suffix('\r').unwrap_or(line);
        out.push(Line {
            text: line,
            start: at,
            end: at + line.len(),
            next: at + whole.len(),
        });
        at += whole.len();
    }
    out
}

/// Returns the span of some lines. It includes the last line end if the searched text ended with one, so that the new text, which
/// does too, does not leave an empty line behind.
pub(super) fn span(lines: &[Line<'_>], old: &str) -> Option<Range<usize>> {
    let (first, last) = (lines.first()?, lines.last()?);
    let end = if old.ends_with('\n') {
        last.next
    } else {
        last.end
    };
    Some(first.start..end)
}

/// Returns every place where a run of lines equals that of `old` under `same`, without overlaps.
fn windows(content: &str, old: &str, same: impl Fn(&[Line<'_>], &[Line<'_>]) -> bool) -> Spans {
    let (here, wanted) = (split(content), split(old));
    let mut spans: Spans = Vec::new();
    if wanted.is_empty() || wanted.iter().all(|line| line.text.trim().is_empty()) {
        return spans;
    }
    for window in here.windows(wanted.len()) {
        let Some(span) = span(window, old) else {
            continue;
        };
        if spans.last().is_some_and(|last| last.end > span.start) || !same(window, &wanted) {
            continue;
        }
        spans.push(span);
    }
    spans
}

/// Matches lines that are equal except for white space at their ends.
pub(super) fn trimmed(content: &str, old: &str) -> Spans {
    windows(content, old, |a, b| {
        a.iter().zip(b).all(|(a, b)| a.text.trim() == b.text.trim())
    })
}

/// Matches lines that are equal if every run of white space is one space, or a part of a line that is.
pub(super) fn whitespace_normalised(content: &str, old: &str) -> Spans {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let spans = windows(content, old, |a, b| {
        a.iter()
            .zip(b)
            .all(|(a, b)| squeeze(a.text) == squeeze(b.text))
    });
    if !spans.is_empty() || split(old).len() != 1 {
        return spans;
    }
    let words: Vec<&str> = old.split_whitespace().collect();
    split(content)
        .iter()
        .flat_map(|line| {
            words_in(line.text, &words)
                .into_iter()
                .map(|r| r.start + line.start..r.end + line.start)
        })
        .collect()
}

// Returns places in a line where these words follow one another, with any white space between them. The first may be the end of a
// longer word, and the last the start of one.
fn words_in(line: &str, words: &[&str]) -> Spans {
    let Some((first, rest)) = words.split_first() else {
        return Vec::new();
    };
    let mut spans: Spans = Vec::new();
    for (start, _) in line.match_indices(first) {
        let mut at = start + first.len();
        let fits = rest.iter().all(|word| {
            let behind = &line[at..];
            let text = behind.trim_start();
            if text.len() == behind.len() || !text.starts_with(word) {
                return false;
            }
            at += behind.len() - text.len() + word.len();
            true
        });
        if fits && spans.last().is_none_or(|last| last.end <= start) {
            spans.push(start..at);
        }
    }
    spans
}

/// Matches lines that are equal after the common indentation is removed on both sides.
pub(super) fn indentation_flexible(content: &str, old: &str) -> Spans {
    windows(content, old, |a, b| dedent(a) == dedent(b))
}

fn dedent<'a>(lines: &[Line<'a>]) -> Vec<&'a str> {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let common = lines
        .iter()
        .filter(|line| !line.text.trim().is_empty())
        .map(|line| indent(line.text))
        .min()
        .unwrap_or(0);
    lines
        .iter()
        .map(|line| {
            if line.text.trim().is_empty() {
                ""
            } else {
                line.text.get(common..).unwrap_or(line.text)
            }
        })
        .collect()
}
