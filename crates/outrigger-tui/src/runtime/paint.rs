//! Output for a new frame: only the cells that changed.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr as _;

/// The terminal shows everything between these at once (synchronized output), so that no half frame is
/// visible.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";

/// The current content of the terminal.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    shown: Option<Buffer>,
    cursor: Option<Position>,
}

/// The style of the next cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Painter {
    /// Forgets what the terminal shows: the next frame is sent whole.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns what to send so that the terminal shows this frame.
    pub(crate) fn frame(&mut self, next: Buffer, cursor: Option<Position>) -> String {
        let mut out = String::new();
        let before = self.shown.take().filter(|it| it.area == next.area);
        let is_whole = before.is_none();
        let before = before.unwrap_or_else(|| Buffer::empty(next.area));
        if is_whole {
            out.push_str("\u{1b}[0m\u{1b}[2J");
        }
        let (mut pen, mut at) = (Pen::default(), None);
        for (x, y, cell) in before.diff(&next) {
            move_to(&mut out, at, Position::new(x, y));
            pen = pen.becomes(cell, &mut out);
            out.push_str(cell.symbol());
            let columns = u16::try_from(cell.symbol().width()).unwrap_or(1);
            at = Some(Position::new(x + columns, y)).filter(|it| it.x < next.area.width);
        }
        if pen != Pen::default() {
            out.push_str("\u{1b}[0m");
        }
        let drew = !out.is_empty();
        if drew || is_whole || cursor != self.cursor {
            match cursor {
                Some(position) => {
                    let _ = write!(out, "\u{1b}[{};{}H", position.y + 1, position.x + 1);
                    if self.cursor.is_none() || is_whole {
                        out.push_str("\u{1b}[?25h");
                    }
                }
                None if self.cursor.is_some() || is_whole => out.push_str("\u{1b}[?25l"),
                None => {}
            }
        }
        self.shown = Some(next);
        self.cursor = cursor;
        if out.is_empty() {
            out
        } else {
            format!("{BEGIN}{out}{END}")
        }
    }
}

/// Moves from where the last cell ended.
fn move_to(out: &mut String, from: Option<Position>, to: Position) {
    let _ = match from {
        Some(from) if from == to => Ok(()),
        Some(from) if from.y == to.y && to.x == from.x + 1 => write!(out, "\u{1b}[C"),
        Some(from) if from.y == to.y && to.x > from.x => write!(out, "\u{1b}[{}C", to.x - from.x),
        _ => write!(out, "\u{1b}[{};{}H", to.y + 1, to.x + 1),
    };
}

/// Modifiers and their parameters.
const MODIFIERS: [(Modifier, &str); 6] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::REVERSED, "7"),
    (Modifier::CROSSED_OUT, "9"),
];

impl Pen {
    fn becomes(self, cell: &Cell, out: &mut String) -> Self {
        let next = Self {
            fg: cell.fg,
            bg: cell.bg,
            modifier: cell.modifier,
        };
        if next == self {
            return next;
        }
        let mut parameters: Vec<String> = Vec::new();
        // Modifiers can only be reset all at once.
        let from = if self.modifier.difference(next.modifier).is_empty() {
            self
        } else {
            parameters.push("0".to_owned());
            Self::default()
        };
        let added = next.modifier.difference(from.modifier);
        let added = MODIFIERS
            .iter()
            .filter(|(modifier, _)| added.contains(*modifier));
        parameters.extend(added.map(|(_, parameter)| (*parameter).to_owned()));
        if next.fg != from.fg {
            parameters.push(colour(next.fg, 30));
        }
        if next.bg != from.bg {
            parameters.push(colour(next.bg, 40));
        }
        let _ = write!(out, "\u{1b}[{}m", parameters.join(";"));
        next
    }
}

/// Returns a colour's parameter; `base` is 30 for the foreground and 40 for the background.
fn colour(colour: Color, base: u8) -> String {
    let named = |n: u8| match n {
        0..=7 => (base + n).to_string(),
        8..=15 => (base + 60 + n - 8).to_string(),
        n => format!("{};5;{n}", base + 8),
    };
    match colour {
        Color::Reset => (base + 9).to_string(),
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => named(8),
        Color::LightRed => named(9),
        Color::LightGreen => named(10),
        Color::LightYellow => named(11),
        Color::LightBlue => named(12),
        Color::LightMagenta => named(13),
        Color::LightCyan => named(14),
        Color::White => named(15),
        Color::Indexed(n) => named(n),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    fn of(lines: &[&str]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
        for (y, line) in (0..).zip(lines) {
            buffer.set_string(0, y, line, Style::new());
        }
        buffer
    }

    #[test]
    fn only_what_changed_is_sent_and_nothing_for_nothing() {
        let mut painter = Painter::default();
        let cursor = Some(Position::new(3, 1));
        let first = painter.frame(of(&["abc", "def"]), cursor);
        assert!(
            first.starts_with(BEGIN) && first.ends_with(END),
            "{first:?}"
        );
        assert_eq!(painter.frame(of(&["abc", "def"]), cursor), "");
        let word = painter.frame(of(&["abc x", "def"]), cursor);
        assert_eq!(word, format!("{BEGIN}\u{1b}[1;5Hx\u{1b}[2;4H{END}"));
        assert_eq!(
            painter.frame(of(&["abc x", "def"]), None),
            format!("{BEGIN}\u{1b}[?25l{END}")
        );
    }

    #[test]
    fn colours_end_with_the_frame() {
        let mut painter = Painter::default();
        painter.frame(of(&["a"]), None);
        let mut next = of(&["a"]);
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        next.set_string(0, 0, "日x", style);
        next.set_string(4, 0, "y", Style::new().fg(Color::Indexed(203)));
        let sent = painter.frame(next, None);
        assert_eq!(
            sent,
            format!("{BEGIN}\u{1b}[1;1H\u{1b}[1;31m日x\u{1b}[C\u{1b}[0;38;5;203my\u{1b}[0m{END}")
        );
    }
}
