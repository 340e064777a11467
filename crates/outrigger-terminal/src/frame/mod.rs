//! What a question shows of others' text, in a frame that the text cannot leave.
//!
//! Who answers a question looks at the bottom of the screen. A text that could stand at the beginning of a line there, by a
//! line end of its own, by wrapping or by pushing the rest off, could be another question. So each row of it comes after a
//! mark, is wrapped here, and there are at most as many rows as fit on the screen:
//!
//! ```text
//!  command │ touch "$(echo pwned)" #␠×2340? allow bash (ls
//!   folder │ sub
//! ```
//!
//! `┊` in the place of `│` continues a line that is longer than a row, and what comes after `⋮` is ours.

#[cfg(test)]
mod tests;

use crate::sanitize::{is_control, is_invisible, name};

/// Columns of a tab, at most.
const TAB: usize = 8;
/// Columns of a character that is shown by its number, at most.
const ESCAPED: usize = 12;
/// A longer run of one character, or of blanks, is shown by its length.
const MAX_RUN: usize = 24;
/// More empty lines in a row are counted.
const MAX_EMPTY: usize = 2;
/// Columns of a label.
const LABEL: usize = 8;
/// Columns of a mark with the blanks around it.
const MARK: usize = 4;
/// A narrower terminal has labels on rows of their own.
const MIN_LABELLED: usize = 30;
/// A narrower one cannot be wrapped for.
const MIN_COLUMNS: usize = 8;
/// Rows that are not for a frame: that of the prompt, and one of what was there before.
const OUTSIDE: usize = 2;
/// A lower terminal shows as much as this all the same.
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
    /// Where a terminal does not say.
    pub const USUAL: Self = Self {
        columns: 80,
        rows: 24,
    };

    /// Of what a terminal says; `None` where there is none.
    #[must_use]
    pub fn of(size: Option<(u16, u16)>) -> Option<Self> {
        let (columns, rows) = size?;
        Some(match columns > 0 && rows > 0 {
            true => Self {
                columns: usize::from(columns),
                rows: usize::from(rows),
            },
            false => Self::USUAL,
        })
    }

    /// What is left below these lines of ours.
    pub fn less(self, above: &str) -> Self {
        let rows = above
            .lines()
            .map(|line| line.len().div_ceil(self.columns.max(1)).max(1));
        Self {
            rows: self.rows.saturating_sub(rows.sum()),
            ..self
        }
    }

    /// Rows that a frame may have so that the prompt below it is on the same screen.
    fn frame_rows(self) -> usize {
        self.rows.saturating_sub(OUTSIDE).max(MIN_ROWS)
    }
}

/// Texts from outside, each with a label of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    fields: Vec<(String, String)>,
}

/// A frame as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whole rows.
    pub text: String,
    /// Something is left out.
    pub is_cut: bool,
}

/// A row: what stands before its mark, the mark, and the text.
struct Row {
    label: String,
    mark: char,
    text: String,
}

impl Frame {
    /// One without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text; an empty one is nothing. A label has at most eight characters, ours.
    pub fn with(mut self, label: &str, text: impl Into<String>) -> Self {
        self.add(label, text);
        self
    }

    /// As [`Self::with`].
    pub fn add(&mut self, label: &str, text: impl Into<String>) {
        let text = text.into();
        if !text.trim_end_matches('\n').is_empty() {
            self.fields.push((label.to_owned(), text));
        }
    }

    /// As much as fits above a prompt, of each text its beginning and its end; `how` says what shows the rest.
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
            // One row says what is left out.
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

    /// All of it, a screen at a time.
    pub fn pages(&self, size: Size) -> Vec<String> {
        let rows: Vec<Row> = self.rows(size.columns).into_iter().flatten().collect();
        let pages = rows.chunks(size.frame_rows()).map(|rows| {
            let mut text = String::new();
            rows.iter()
                .for_each(|row| row.print(size.columns, &mut text));
            text
        });
        pages.collect()
    }

    /// All of it.
    pub fn whole(&self, columns: usize) -> String {
        let mut text = String::new();
        for row in self.rows(columns).iter().flatten() {
            row.print(columns, &mut text);
        }
        text
    }

    /// The rows of each text.
    fn rows(&self, columns: usize) -> Vec<Vec<Row>> {
        let fields = self.fields.iter();
        fields
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

    /// As much of the text as a row holds.
    fn cut(mut self, columns: usize) -> Self {
        let rows = wrapped(&self.text, room(columns));
        self.text = rows.into_iter().next().unwrap_or_default();
        self
    }
}

/// The mark of a row that is a label alone.
const LABELLED: char = ':';

fn room(columns: usize) -> usize {
    let columns = columns.max(MIN_COLUMNS);
    // The last column stays free: what comes after a full row differs among terminals.
    match columns >= MIN_LABELLED {
        true => columns - 1 - LABEL - MARK,
        false => narrow(columns),
    }
}

/// Columns of a text with a mark alone before it.
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

/// How many rows each of the texts gets: the short ones all of theirs, and the long ones the same part of the rest.
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

/// A line in which nothing is hidden by what it does not show, or shows too often.
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

/// A short text as one row of at most so many columns: its beginning, and how much more there is.
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

/// Lines from outside among entries of ours: a mark before each row.
pub fn set_off(text: &str, columns: usize) -> String {
    let rows = text.lines().flat_map(|line| wrapped(line, narrow(columns)));
    rows.map(|row| format!("│ {row}\n")).collect()
}

/// The same of an entry of ours, which begins with a mark of its own.
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

/// What is seen as nothing.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{2800}' | '\u{180e}')
}

/// Pieces of at most so many columns, one at least.
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

/// The most columns that a character takes on any terminal, as it is sent.
fn width(c: char) -> usize {
    match c {
        '\t' => TAB,
        // `\\udb40\\udc41` stands for it.
        c if (is_control(c) || is_invisible(c)) && !c.is_ascii() || c == '\u{7f}' => ESCAPED,
        c if c.is_ascii() && !c.is_control() => 1,
        _ => 2,
    }
}

/// The last line of a question, in words of ours alone. `short` is for a terminal that is too narrow for the other.
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
