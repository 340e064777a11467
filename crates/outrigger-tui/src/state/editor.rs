//! The prompt editor: a text with a cursor, in grapheme clusters.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Maximum number of undo steps.
const MAX_UNDO: usize = 200;

/// A text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Editor {
    text: String,
    /// In bytes, on a grapheme cluster boundary.
    cursor: usize,
    /// The text cut last.
    cut: String,
    undo: Vec<(String, usize)>,
    redo: Vec<(String, usize)>,
}

/// A cursor movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One cluster back.
    Left,
    /// One cluster on.
    Right,
    /// The start of this word or of the previous one.
    WordLeft,
    /// The end of this word or the next.
    WordRight,
    /// The start of the next word.
    NextWord,
    /// The start of the line.
    LineStart,
    /// The end of the line.
    LineEnd,
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
}

impl Editor {
    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the cursor position, in bytes.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes the text.
    pub fn take(&mut self) -> String {
        self.remember();
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Replaces the text and moves the cursor to its end.
    pub fn set(&mut self, text: impl Into<String>) {
        self.remember();
        self.text = text.into();
        self.cursor = self.text.len();
    }

    /// Inserts at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.remember();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.cursor, &text);
        self.cursor = self.boundary(self.cursor + text.len());
    }

    /// Returns the text before and after the cursor.
    #[must_use]
    pub fn around(&self) -> (&str, &str) {
        self.text
            .split_at_checked(self.cursor)
            .unwrap_or((&self.text, ""))
    }

    /// Moves the cursor.
    pub fn go(&mut self, to: To) {
        self.cursor = self.place(to);
    }

    /// Deletes up to there. Words and lines can be restored by [`Self::yank`].
    pub fn delete(&mut self, to: To) {
        let place = self.place(to);
        let (from, until) = (place.min(self.cursor), place.max(self.cursor));
        // At the end of a line, its newline is deleted.
        let until = match to {
            To::LineEnd if from == until && until < self.text.len() => until + 1,
            _ => until,
        };
        if from == until {
            return;
        }
        self.remember();
        let gone: String = self.text.drain(from..until).collect();
        if !matches!(to, To::Left | To::Right) {
            self.cut = gone;
        }
        self.cursor = from;
    }

    /// Like [`Self::delete`], but keeps the newline at the end of a line.
    pub fn delete_if_any(&mut self, to: To) {
        if self.place(to) != self.cursor {
            self.delete(to);
        }
    }

    /// Deletes the line with its newline.
    pub fn delete_line(&mut self) {
        self.copy_line();
        let (from, until) = self.line();
        let until = (until + 1).min(self.text.len());
        // For the last line, the newline before it is deleted.
        let from = if until == self.text.len() && !self.text.ends_with('\n') {
            from.saturating_sub(1)
        } else {
            from
        };
        if from < until {
            self.remember();
            self.text.drain(from..until);
            self.cursor = from.min(self.text.len());
        }
    }

    /// Copies the line for [`Self::yank`].
    pub fn copy_line(&mut self) {
        let (from, until) = self.line();
        self.cut = self.text.get(from..until).unwrap_or_default().to_owned();
    }

    /// Returns the start and end of the cursor's line.
    fn line(&self) -> (usize, usize) {
        (self.place(To::LineStart), self.place(To::LineEnd))
    }

    /// Returns whether the cursor is at the start of a line.
    #[must_use]
    pub fn at_line_start(&self) -> bool {
        self.place(To::LineStart) == self.cursor
    }

    /// Inserts the text cut last.
    pub fn yank(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        self.insert(&cut);
        self.cut = cut;
    }

    /// Replaces the bytes from there to the cursor.
    pub fn replace_from(&mut self, from: usize, text: &str) {
        if self.text.is_char_boundary(from) && from <= self.cursor {
            self.remember();
            self.text.replace_range(from..self.cursor, text);
            self.cursor = from + text.len();
        }
    }

    /// Undoes the last change.
    pub fn undo(&mut self) {
        if let Some((text, cursor)) = self.undo.pop() {
            self.redo
                .push((std::mem::replace(&mut self.text, text), self.cursor));
            self.cursor = cursor;
        }
    }

    /// Redoes the last undone change.
    pub fn redo(&mut self) {
        if let Some((text, cursor)) = self.redo.pop() {
            self.undo
                .push((std::mem::replace(&mut self.text, text), self.cursor));
            self.cursor = cursor;
        }
    }

    /// Moves a row up or down at this width; returns `false` if there is none.
    pub fn vertical(&mut self, up: bool, width: usize) -> bool {
        let rows = self.rows(width);
        let (row, column) = self.position(width);
        let target = if up {
            row.checked_sub(1)
        } else {
            Some(row + 1)
        };
        let Some(&(from, until)) = target.and_then(|it| rows.get(it)) else {
            return false;
        };
        let line = self.text.get(from..until).unwrap_or_default();
        let mut used = 0;
        let within = line.graphemes(true).take_while(|it| {
            used += it.width();
            used <= column
        });
        self.cursor = from + within.map(str::len).sum::<usize>();
        true
    }

    /// Returns the byte range of each row at this width, broken after words. A blank may be in the column after the
    /// last.
    #[must_use]
    pub fn rows(&self, width: usize) -> Vec<(usize, usize)> {
        let width = width.max(2);
        let (mut rows, mut from) = (Vec::new(), 0);
        for line in self.text.split('\n') {
            let (mut start, mut used, mut word) = (0, 0, 0);
            for (at, cluster) in line.grapheme_indices(true) {
                let columns = cluster.width();
                let hangs = cluster == " " && used == width;
                if used + columns > width && !hangs {
                    // A word longer than a row is broken.
                    let end = if word > start { word } else { at };
                    rows.push((from + start, from + end));
                    used = line.get(end..at).unwrap_or_default().width();
                    start = end;
                }
                used += columns;
                if cluster == " " {
                    word = at + 1;
                }
            }
            rows.push((from + start, from + line.len()));
            from += line.len() + 1;
        }
        rows
    }

    /// Returns row and column of the cursor at this width.
    #[must_use]
    pub fn position(&self, width: usize) -> (usize, usize) {
        let rows = self.rows(width);
        let row = rows
            .iter()
            .rposition(|(from, _)| *from <= self.cursor)
            .unwrap_or(0);
        let from = rows.get(row).map_or(0, |(from, _)| *from);
        let before = self.text.get(from..self.cursor).unwrap_or_default();
        (row, before.width())
    }

    fn remember(&mut self) {
        self.redo.clear();
        if self.undo.len() == MAX_UNDO {
            self.undo.remove(0);
        }
        self.undo.push((self.text.clone(), self.cursor));
    }

    fn place(&self, to: To) -> usize {
        let (before, after) = self.around();
        match to {
            To::Left => before
                .grapheme_indices(true)
                .next_back()
                .map_or(0, |(at, _)| at),
            To::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            To::WordLeft => {
                let words = before.split_word_bound_indices();
                words
                    .rev()
                    .find(|(_, word)| is_word(word))
                    .map_or(0, |(at, _)| at)
            }
            To::WordRight => {
                let mut words = after.split_word_bound_indices();
                let word = words.find(|(_, word)| is_word(word));
                word.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
            }
            To::NextWord => {
                let mut words = after
                    .split_word_bound_indices()
                    .skip(1)
                    .filter(|(_, word)| is_word(word));
                words
                    .next()
                    .map_or(self.text.len(), |(at, _)| self.cursor + at)
            }
            To::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            To::LineEnd => after
                .find('\n')
                .map_or(self.text.len(), |at| self.cursor + at),
            To::Start => 0,
            To::End => self.text.len(),
        }
    }

    /// Returns this position, or the end of the cluster that contains it.
    fn boundary(&self, at: usize) -> usize {
        let mut ends = self
            .text
            .grapheme_indices(true)
            .map(|(start, it)| start + it.len());
        if at == 0 {
            0
        } else {
            ends.find(|end| *end >= at).unwrap_or(self.text.len())
        }
    }
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn words_and_lines_as_in_emacs() {
        let mut editor = of("one two\nthree four");
        editor.delete(To::WordLeft);
        assert_eq!(editor.text(), "one two\nthree ");
        editor.go(To::LineStart);
        editor.delete(To::LineEnd);
        assert_eq!(editor.text(), "one two\n");
        editor.go(To::Start);
        editor.yank();
        assert_eq!(editor.text(), "three one two\n");
        editor.undo();
        editor.undo();
        assert_eq!(editor.text(), "one two\nthree ");
        editor.redo();
        assert_eq!(editor.text(), "one two\n");
        editor.go(To::Start);
        editor.go(To::WordRight);
        editor.delete(To::LineEnd);
        editor.delete(To::LineEnd);
        assert_eq!(editor.text(), "one", "at its end the line end goes");
    }

    #[test]
    fn clusters_are_whole_and_rows_hold_wide_ones() {
        let mut editor = of("e\u{301}日本👩\u{200d}💻");
        assert_eq!(editor.rows(3), [(0, 6), (6, 9), (9, 20)]);
        assert_eq!(editor.position(3), (2, 2));
        editor.delete(To::Left);
        assert_eq!(editor.text(), "e\u{301}日本");
        assert!(editor.vertical(true, 3));
        assert_eq!(editor.cursor(), 3);
        assert!(!editor.vertical(true, 3));
        editor.delete(To::Left);
        assert_eq!(editor.text(), "日本");
    }

    proptest! {
        /// Whatever is typed, the cursor is between two characters and in a row.
        #[test]
        fn the_cursor_stays_in_the_text(steps in proptest::collection::vec((0..14_u8, ".{0,3}"), 0..40), width in 0..12_usize) {
            let mut editor = Editor::default();
            let places = [To::Left, To::Right, To::WordLeft, To::WordRight, To::LineStart, To::LineEnd, To::Start, To::End];
            for (step, text) in steps {
                let to = places[usize::from(step) % places.len()];
                match step % 7 {
                    0 => editor.insert(&text),
                    1 => editor.insert("\n日e\u{301}"),
                    2 => editor.go(to),
                    3 => editor.delete(to),
                    4 => editor.yank(),
                    5 => { editor.undo(); }
                    _ => { editor.vertical(step % 2 == 0, width); }
                }
                prop_assert!(editor.text().is_char_boundary(editor.cursor()));
                let (row, _) = editor.position(width);
                prop_assert!(row < editor.rows(width).len());
            }
        }
    }
}
