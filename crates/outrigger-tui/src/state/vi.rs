//! vi key bindings in the prompt: a mode, and operators that wait for a motion.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::{Editor, To};

/// The input mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Keys insert text.
    #[default]
    Insert,
    /// Keys are commands.
    Normal,
}

/// The state of the vi key bindings.
#[derive(Clone, Debug, Default)]
pub struct Vi {
    /// The mode.
    pub mode: Mode,
    /// An operator that waits for its motion, or `g`.
    pending: Option<char>,
    count: usize,
}

impl Vi {
    /// Handles a key; returns `false` if it has its usual meaning.
    pub fn key(&mut self, key: &KeyEvent, editor: &mut Editor) -> bool {
        let is_plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (self.mode, key.code) {
            (Mode::Insert, KeyCode::Esc) => {
                self.mode = Mode::Normal;
                if !editor.at_line_start() {
                    editor.go(To::Left);
                }
                true
            }
            (Mode::Insert, _) => false,
            // With nothing pending, escape interrupts.
            (Mode::Normal, KeyCode::Esc) => {
                self.pending.take().is_some() || std::mem::take(&mut self.count) > 0
            }
            (Mode::Normal, KeyCode::Char('r')) if key.modifiers == KeyModifiers::CONTROL => {
                editor.redo();
                true
            }
            // In an empty prompt these keys start a command or a file.
            (Mode::Normal, KeyCode::Char('/' | '!' | '@')) if is_plain && editor.is_empty() => {
                self.mode = Mode::Insert;
                false
            }
            (Mode::Normal, KeyCode::Char(c)) if is_plain => {
                self.command(c, editor);
                true
            }
            (Mode::Normal, _) => false,
        }
    }

    /// Enters insert mode.
    pub fn insert(&mut self) {
        *self = Self::default();
    }

    fn command(&mut self, c: char, editor: &mut Editor) {
        if let Some(digit) = c.to_digit(10).filter(|it| *it > 0 || self.count > 0) {
            self.count = (self.count * 10 + usize::try_from(digit).unwrap_or(0)).min(999);
            return;
        }
        let count = std::mem::take(&mut self.count).max(1);
        match (self.pending.take(), c) {
            (None, 'd' | 'c' | 'g' | 'y') => {
                self.pending = Some(c);
                self.count = if count > 1 { count } else { 0 };
            }
            (Some('g'), 'g') => editor.go(To::Start),
            (Some('d'), 'd') => (0..count).for_each(|_| editor.delete_line()),
            (Some('c'), 'c') => {
                editor.go(To::LineStart);
                editor.delete_if_any(To::LineEnd);
                self.mode = Mode::Insert;
            }
            (Some('y'), 'y') => editor.copy_line(),
            (Some(operator @ ('d' | 'c')), c) => {
                // `cw` ends where the word ends.
                let to = match (operator, c) {
                    ('c', 'w') => Some(To::WordRight),
                    (_, c) => motion(c),
                };
                if let Some(to) = to {
                    (0..count).for_each(|_| editor.delete_if_any(to));
                    if operator == 'c' {
                        self.mode = Mode::Insert;
                    }
                }
            }
            (Some(_), _) => {}
            (None, c) => self.single(c, count, editor),
        }
    }

    fn single(&mut self, c: char, count: usize, editor: &mut Editor) {
        if let Some(to) = motion(c) {
            (0..count).for_each(|_| editor.go(to));
            return;
        }
        let to_insert = match c {
            'i' => None,
            'I' => Some(To::LineStart),
            'a' => Some(To::Right),
            'A' => Some(To::LineEnd),
            'o' => {
                editor.go(To::LineEnd);
                editor.insert("\n");
                None
            }
            'O' => {
                editor.go(To::LineStart);
                editor.insert("\n");
                Some(To::Left)
            }
            's' => {
                editor.delete_if_any(To::Right);
                None
            }
            'C' => {
                editor.delete_if_any(To::LineEnd);
                None
            }
            _ => return Self::change(c, count, editor),
        };
        if let Some(to) = to_insert {
            editor.go(to);
        }
        self.mode = Mode::Insert;
    }

    fn change(c: char, count: usize, editor: &mut Editor) {
        match c {
            'x' => (0..count).for_each(|_| editor.delete_if_any(To::Right)),
            'X' => (0..count).for_each(|_| editor.delete_if_any(To::Left)),
            'D' => editor.delete_if_any(To::LineEnd),
            'p' => {
                editor.go(To::Right);
                editor.yank();
            }
            'P' => editor.yank(),
            'u' => editor.undo(),
            'G' => editor.go(To::End),
            _ => {}
        }
    }
}

fn motion(c: char) -> Option<To> {
    Some(match c {
        'h' => To::Left,
        'l' | ' ' => To::Right,
        'w' | 'W' => To::NextWord,
        'b' | 'B' => To::WordLeft,
        'e' | 'E' => To::WordRight,
        '0' | '^' => To::LineStart,
        '$' => To::LineEnd,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys; `~` is escape.
    fn typed(text: &str, keys: &str) -> (String, usize, Mode) {
        let (mut vi, mut editor) = (Vi::default(), Editor::default());
        editor.insert(text);
        for c in keys.chars() {
            let code = if c == '~' {
                KeyCode::Esc
            } else {
                KeyCode::Char(c)
            };
            if !vi.key(&KeyEvent::new(code, KeyModifiers::NONE), &mut editor) && c != '~' {
                editor.insert(c.encode_utf8(&mut [0; 4]));
            }
        }
        (editor.text().to_owned(), editor.cursor(), vi.mode)
    }

    #[test]
    fn motions_and_operators() {
        for (keys, text) in [
            ("~0dw", "two three"),
            ("~0d2w", "three"),
            ("~02dw", "three"),
            ("~bD", "one two "),
            ("~0cwfour~", "four two three"),
            ("~0x", "ne two three"),
            ("~03x", " two three"),
            ("~ofour~", "one two three\nfour"),
            ("~Ofour~", "four\none two three"),
            ("~dd", ""),
            ("~ddP", "one two three"),
            ("~0dwu", "one two three"),
            ("~ccnew~", "new"),
            ("~I(~A)~", "(one two three)"),
            ("~0d~w", "one two three"),
            ("x", "one two threex"),
        ] {
            assert_eq!(typed("one two three", keys).0, text, "{keys}");
        }
        assert_eq!(
            typed("one two", "~").1,
            6,
            "the cursor stands on a character"
        );
        assert_eq!(typed("one two", "~gg").1, 0);
        assert_eq!(typed("", "~/").2, Mode::Insert, "a command begins at once");
    }
}
