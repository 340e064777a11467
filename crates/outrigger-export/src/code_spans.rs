//! Code in Markdown of others, written so that every renderer takes the same text for code.
//!
//! Renderers disagree about where code begins and ends: about tabs, blanks after a closing fence, fences in lists and quotes,
//! spans over several lines. Text that one takes for code, another runs. So only code in its plainest form stays code, and every
//! other mark of code becomes an entity, which is shown and marks nothing.

use std::ops::Range;

/// Maximum indentation of a fence; with more, it is a block by itself.
const MAX_INDENT: usize = 3;

/// Returns a text in which fences and spans of code are unmistakable, and outside of them `<` and images are entities.
pub(crate) fn plain_code(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at + 1..).unwrap_or_default();
        match Fence::of(line).and_then(|it| Some((it.end(rest)?, it))) {
            Some((end, fence)) => {
                out.push(fence.written(rest.get(..end).unwrap_or_default()));
                at += end + 2;
            }
            None => {
                out.push(plain_line(line));
                at += 1;
            }
        }
    }
    out.join("\n")
}

/// Returns the ranges of code in what [`plain_code`] returned, each line behind `prefix`; in order, and disjoint.
pub(crate) fn code_ranges(text: &str, prefix: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let inner = line.strip_prefix(prefix).unwrap_or(line);
        let mark = inner.trim_start_matches(' ');
        let fence = mark.get(..run(mark, '`')).unwrap_or_default();
        match open {
            Some((start, opened)) if mark.trim_end() == opened => {
                all.push(start..at + line.len());
                open = None;
            }
            Some(_) => {}
            None if fence.len() > 2 => open = Some((at, fence)),
            None => all.extend(spans(line).map(|it| at + it.start..at + it.end)),
        }
        at += line.len();
    }
    all
}

/// A line that opens a block of code.
struct Fence<'a> {
    indent: usize,
    mark: char,
    length: usize,
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let indent = run(line, ' ');
        let rest = line.get(indent..).filter(|_| indent <= MAX_INDENT)?;
        let mark = rest.chars().next().filter(|it| matches!(it, '`' | '~'))?;
        let length = run(rest, mark);
        let info = rest.get(length..)?.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+#.-_".contains(c);
        let is_language = info.chars().all(is_plain);
        (length > 2 && !info.contains('`')).then_some(Self {
            indent,
            mark,
            length,
            language: if is_language { info } else { "" },
        })
    }

    /// Returns the line that closes it. Content that is indented less may end a list, and the code with it.
    fn end(&self, rest: &[&str]) -> Option<usize> {
        let closes = |line: &&str| {
            let mark = line.trim_matches([' ', '\t']);
            mark.len() >= self.length && run(mark, self.mark) == mark.len()
        };
        let end = rest.iter().position(closes)?;
        let mut content = rest.iter().take(end);
        let is_inside = |line: &&str| line.trim().is_empty() || run(line, ' ') >= self.indent;
        content.all(is_inside).then_some(end)
    }

    /// Writes the block with fences that are longer than any run in it.
    fn written(&self, content: &[&str]) -> String {
        let runs = content.iter().flat_map(|it| it.split(|c| c != '`'));
        let longest = runs.map(str::len).max().unwrap_or_default();
        let fence = "`".repeat((longest + 1).max(3));
        let indent = " ".repeat(self.indent);
        let mut lines = vec![format!("{indent}{fence}{}", self.language)];
        lines.extend(content.iter().map(|it| (*it).to_owned()));
        lines.push(format!("{indent}{fence}"));
        lines.join("\n")
    }
}

/// Writes a line outside of blocks: spans that begin and end in it stay.
fn plain_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    let last = line.len()..line.len();
    for span in spans(line).chain([last]) {
        let text = line.get(at..span.start).unwrap_or_default();
        let text = text
            .replace('`', "&#96;")
            .replace("~~~", "&#126;&#126;&#126;");
        out.push_str(&text.replace('<', "&lt;").replace("![", "&#33;["));
        out.push_str(line.get(span.clone()).unwrap_or_default());
        at = span.end;
    }
    out
}

/// Returns the spans of code that begin and end in a line, with their marks.
fn spans(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(start) = line.get(from..).and_then(|it| it.find('`')) {
        let start = from + start;
        let length = run(line.get(start..).unwrap_or_default(), '`');
        let inside = start + length;
        let is_escaped = line.get(..start).is_some_and(|it| it.ends_with('\\'));
        let end = closing(line, inside, length).filter(|_| length < 3 && !is_escaped);
        from = end.map_or(inside, |end| end + length);
        // A table ends a cell at `|`, in code as well.
        let is_one = |end: usize| !line.get(inside..end).is_none_or(|it| it.contains('|'));
        if end.is_some_and(is_one) {
            all.push(start..from);
        }
    }
    all.into_iter()
}

fn closing(line: &str, from: usize, length: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = line.get(at..).and_then(|it| it.find('`')) {
        let start = at + found;
        let run = run(line.get(start..).unwrap_or_default(), '`');
        if run == length {
            return Some(start);
        }
        at = start + run;
    }
    None
}

fn run(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}
