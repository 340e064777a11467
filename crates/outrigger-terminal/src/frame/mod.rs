//! Frames that show untrusted text in a question; the text cannot leave its frame.
//!
//! A user who answers a question looks at the bottom of the screen. A text that could appear at the start of a line there,
//! by its own newline, by wrapping or by pushing the rest off, could imitate a question. So each of its rows comes after a
//! mark and is wrapped here, and there are at most as many rows as fit on the screen:
//!
//! ```text
//!  command │ touch "$(echo pwned)" #␠×2340? allow bash (ls
//!   folder │ sub
//! ```
//!
//! `┊` instead of `│` continues a line that is longer than a row, and text after `⋮` is ours.

#[cfg(test)]
mod tests;

use crate::sanitize::{is_control, is_invisible, name};

/// Maximum columns of a tab.
const TAB: usize = 8;
/// Maximum columns of an escaped character.
const ESCAPED: usize = 12;
/// A longer run of one character, or of blanks, is abbreviated to its length.
const MAX_RUN: usize = 24;
/// More consecutive empty lines are counted.
const MAX_EMPTY: usize = 2;
/// Columns of a label.
const LABEL: usize = 8;
/// Columns of a mark with the blanks around it.
const MARK: usize = 4;
/// A narrower terminal has labels on their own rows.
const MIN_LABELLED: usize = 30;
/// Minimum width for wrapping.
const MIN_COLUMNS: usize = 8;
/// Rows outside the frame: the prompt, and one of the earlier output.
const OUTSIDE: usize = 2;
/// Minimum number of rows, even on a lower terminal.
const MIN_ROWS: usize = 6;

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

impl Size {
    /// The size if a terminal does not report one.
    pub const USUAL: Self = Self {
        columns: 80,
        rows: 24,
    };

    /// Converts the size that a terminal reports; `None` if there is none.
    #[must_use]
    pub fn of(size: Option<(u16, u16)>) -> Option<Self> {
        let (columns, rows) = size?;
        Some(if columns > 0 && rows > 0 {
            Self {
                columns: usize::from(columns),
                rows: usize::from(rows),
            }
        } else {
            Self::USUAL
        })
    }

    /// Returns what is left below these lines of ours.
    pub fn less(self, above: &str) -> Self {
        let rows = above
            .lines()
            .map(|line| line.len().div_ceil(self.columns.max(1)).max(1));
        Self {
            rows: self.rows.saturating_sub(rows.sum()),
            ..self
        }
    }

    /// Returns the number of rows for a frame that leave the prompt below it on the same screen.
    fn frame_rows(self) -> usize {
        self.rows.saturating_sub(OUTSIDE).max(MIN_ROWS)
    }
}

/// Untrusted texts, each with a label of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    fields: Vec<(String, String)>,
}

/// A rendered frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whole rows.
    pub text: String,
    /// Something is omitted.
    pub is_cut: bool,
}

/// A row: the text before its mark, the mark, and the text.
struct Row {
    label: String,
    mark: char,
    text: String,
}

impl Frame {
    /// Creates a frame without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text, unless it is empty. The label is ours and has at most eight characters.
    pub fn with(mut self, label: &str, text: impl Into<String>) -> Self {
        self.add(label, text);
        self
    }

    /// Like [`Self::with`].
    pub fn add(&mut self, label: &str, text: impl Into<String>) {
        let text = text.into();
        if !text.trim_end_matches('\n').is_empty() {
            self.fields.push((label.to_owned(), text));
        }
    }

    /// Renders as much as fits above a prompt, of each text its start and its end; `how` describes how to see the rest.
    pub fn bounded(&self, size: Size, how: &str) -> Shown {
        let fields: Vec<Vec<Row>> = self.rows(size.columns);
        let lengths: Vec<usize> = fields.iter().map(Vec::len).collect();
        let shares = shares(&lengths, size.frame_rows());
        let mut is_cut = false;
        let mut text = String::new();
        for (rows, share) in fields.iter().zip(shares) {
            if rows.len() <= share {
                rows.iter()
                    .for_each(|row| row.print(size.columns, &mut text));
                continue;
            }
            is_cut = true;
            // One row reports the omission.
            let kept = share.saturating_sub(1);
            let (head, tail) = (kept - kept / 3, kept / 3);
            let end = rows.len() - tail;
            let left_out = rows.get(head..end).unwrap_or_default();
            let characters: usize = left_out.iter().map(|row| row.text.chars().count()).sum();
            let note = Row {
                label: match rows.first() {
                    Some(first) if head == 0 => first.label.clone(),
                    _ => String::new(),
                },
                mark: '⋮',
                text: format!(
                    "{} more lines, {characters} characters{how}",
                    left_out.len()
                ),
            };
            let rows = rows.iter();
            rows.clone()
                .take(head)
                .for_each(|row| row.print(size.columns, &mut text));
            note.cut(size.columns).print(size.columns, &mut text);
            rows.skip(end)
                .for_each(|row| row.print(size.columns, &mut text));
        }
        Shown { text, is_cut }
    }

    /// Renders all of it, a screen at a time.
    pub fn pages(&self, size: Size) -> Vec<String> {
        let rows: Vec<Row> = self.rows(size.columns).into_iter().flatten().collect();
        rows.chunks(size.frame_rows())
            .map(|rows| {
                let mut text = String::new();
                rows.iter()
                    .for_each(|row| row.print(size.columns, &mut text));
                text
            })
            .collect()
    }

    /// Renders all of it.
    pub fn whole(&self, columns: usize) -> String {
        let mut text = String::new();
        for row in self.rows(columns).iter().flatten() {
            row.print(columns, &mut text);
        }
        text
    }

    /// Returns the rows of each text.
    fn rows(&self, columns: usize) -> Vec<Vec<Row>> {
        self.fields
            .iter()
            .map(|(label, text)| rows(label, text, columns))
            .collect()
    }
}

impl Row {
    fn print(&self, columns: usize, text: &mut String) {
        if columns >= MIN_LABELLED {
            text.push_str(&format!(
                "{:>LABEL$} {} {}\n",
                self.label, self.mark, self.text
            ));
        } else if self.mark == LABELLED {
            text.push_str(&format!("{}:\n", self.label));
        } else {
            text.push_str(&format!("{} {}\n", self.mark, self.text));
        }
    }

    /// Truncates the text to a row.
    fn cut(mut self, columns: usize) -> Self {
        let rows = wrapped(&self.text, room(columns));
        self.text = rows.into_iter().next().unwrap_or_default();
        self
    }
}

/// The mark of a row that is only a label.
const LABELLED: char = ':';

fn room(columns: usize) -> usize {
    let columns = columns.max(MIN_COLUMNS);
    // The last column stays free: terminals differ in what follows a full row.
    if columns >= MIN_LABELLED {
        columns - 1 - LABEL - MARK
    } else {
        narrow(columns)
    }
}

/// Returns the columns of a text with only a mark before it.
fn narrow(columns: usize) -> usize {
    columns.max(MIN_COLUMNS) - 1 - (MARK - 1)
}

fn rows(label: &str, text: &str, columns: usize) -> Vec<Row> {
    let row = |mark: char, text: String| Row {
        label: String::new(),
        mark,
        text,
    };
    let has_label = columns >= MIN_LABELLED;
    let mut rows: Vec<Row> = Vec::new();
    if !has_label {
        rows.push(row(LABELLED, String::new()));
    }
    let lines: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
    let is_empty = |line: &&str| line.chars().all(is_blank);
    for group in lines.chunk_by(|a, b| is_empty(a) == is_empty(b)) {
        if group.len() > MAX_EMPTY && group.first().is_some_and(is_empty) {
            let note = row('⋮', format!("{} empty lines", group.len()));
            rows.push(note.cut(columns));
            continue;
        }
        for line in group {
            let parts = wrapped(&shortened(line), room(columns)).into_iter();
            rows.extend(parts.enumerate().map(|(n, part)| match n {
                0 => row('│', part),
                _ => row('┊', part),
            }));
        }
    }
    if let Some(first) = rows.first_mut() {
        label.clone_into(&mut first.label);
    }
    rows
}

/// Distributes rows among the texts: short ones get all of theirs, and long ones equal parts of the rest.
fn shares(lengths: &[usize], rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|at| lengths.get(*at).copied());
    let mut shares = vec![0; lengths.len()];
    let (mut left, mut fields) = (rows, lengths.len());
    for at in order {
        let fair = (left / fields.max(1)).max(1);
        let length = lengths.get(at).copied().unwrap_or_default();
        let share = length.min(fair);
        if let Some(it) = shares.get_mut(at) {
            *it = share;
        }
        left = left.saturating_sub(share);
        fields -= 1;
    }
    shares
}

/// Shortens a line so that nothing is hidden by invisible or repeated characters.
pub fn shortened(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let alike = |a: &char, b: &char| a == b || is_blank(*a) && is_blank(*b);
    characters.chunk_by(alike).map(run).collect()
}

fn run(run: &[char]) -> String {
    match run {
        [first, ..] if run.len() > MAX_RUN => {
            let is_one = run.iter().all(|c| c == first);
            let what = match first {
                ' ' => "␠".to_owned(),
                first if is_one => visible(*first),
                _ => "␠".to_owned(),
            };
            format!("{what}×{}", run.len())
        }
        _ => run.iter().copied().map(visible).collect(),
    }
}

/// Shortens a text to one row of at most `columns` columns: its start, and how much more there is.
pub fn brief(text: &str, columns: usize) -> String {
    let text = shortened(text);
    let rows = wrapped(&text, columns);
    match rows.as_slice() {
        [first, _, ..] => {
            let more = text.chars().count() - first.chars().count();
            format!("{first}… ({more} characters more)")
        }
        _ => text,
    }
}

/// Marks each row of untrusted lines between our own entries.
pub fn set_off(text: &str, columns: usize) -> String {
    text.lines()
        .flat_map(|line| wrapped(line, narrow(columns)))
        .map(|row| format!("│ {row}\n"))
        .collect()
}

/// Like [`set_off`], below one of our entries, which starts with its own mark.
pub fn set_off_below(entry: &str, columns: usize) -> String {
    let shown = set_off(entry, columns);
    shown.strip_prefix("│ ").unwrap_or(&shown).to_owned()
}

fn visible(c: char) -> String {
    match c {
        ' ' => " ".to_owned(),
        c if is_blank(c) && !is_control(c) => format!("\\u{:04x}", u32::from(c)),
        c => name(c.encode_utf8(&mut [0; 4])),
    }
}

/// Returns whether a character appears blank.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{2800}' | '\u{180e}')
}

/// Splits a text into at least one piece of at most `columns` columns.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let width = width(c);
        if used + width > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// Returns the maximum width of a character on any terminal, as it is sent.
fn width(c: char) -> usize {
    match c {
        '\t' => TAB,
        // Shown as `\\udb40\\udc41`.
        c if (is_control(c) || is_invisible(c)) && !c.is_ascii() || c == '\u{7f}' => ESCAPED,
        c if c.is_ascii() && !c.is_control() => 1,
        _ => 2,
    }
}

/// Returns the last line of a question, which contains only our own words. `short` is for a terminal that is too narrow for
/// the other.
pub fn prompt(what: &str, short: &str, keys: &[&str], size: Size) -> String {
    let long = format!("? {what}? {}: ", keys.join(", "));
    if long.len() < size.columns {
        return long;
    }
    let letters = keys
        .iter()
        .filter_map(|key| Some(key.split_once(']')?.0.trim_start_matches('[')));
    format!("? {short}? {}: ", letters.collect::<Vec<_>>().join("/"))
}
