//! Arithmetic: `((…))`, `$((…))` and the three parts of a `for`.

use super::{NESTED, Reader};

impl Reader<'_> {
    /// Reads an expression after `((`, up to and including its `))`. `None` for parentheses that are subshells.
    pub(super) fn arithmetic(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > NESTED {
            return None;
        }
        let mut open = 0usize;
        loop {
            match self.peek()? {
                b')' if open == 0 => {
                    self.starts("))").then_some(())?;
                    self.at += 2;
                    self.depth -= 1;
                    return Some(());
                }
                b')' => {
                    open -= 1;
                    self.at += 1;
                }
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                // The text of a here-document would follow.
                b'\n' if !self.heredocs.is_empty() => return None,
                _ => self.operand()?,
            }
        }
    }

    fn operand(&mut self) -> Option<()> {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#' | b'@' | b'.');
        let from = self.at;
        let c = self.peek()?;
        match c {
            b'$' | b'`' => {
                self.dollar(true)?;
                let raw = self.src.get(from..self.at)?;
                self.doubt.missed |= !self.doubt.values.evaluate_word(raw);
            }
            b'0'..=b'9' => self.at += self.rest().bytes().take_while(is_part).count(),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
                self.at += self.rest().bytes().take_while(is_part).count();
                let name = self.src.get(from..self.at)?;
                let after = self.rest().trim_start();
                if after.starts_with('=') && !after.starts_with("==") {
                    self.doubt.values.is_number(name);
                } else {
                    self.doubt.values.evaluate(name);
                }
                self.doubt.missed |= after.starts_with('[');
            }
            c if b" \t\n+-*/%<>=!&|^~?:,;".contains(&c) => self.at += 1,
            _ => {
                self.doubt.missed = true;
                self.scan_one()?;
            }
        }
        Some(())
    }
}
