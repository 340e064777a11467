//! Rows of text, wrapped at words by the display width of characters.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// A row of the screen.
pub type Row = Line<'static>;
/// A text with one style.
pub type Piece = (String, Style);

/// Replacement of a tab.
const TAB: &str = "    ";

/// Returns the display width of a grapheme.
#[must_use]
pub fn width(grapheme: &str) -> usize {
    grapheme.width()
}

/// Sanitizes text from outside to one line.
#[must_use]
pub fn inline(text: &str) -> String {
    outrigger_terminal::name(text.trim_end_matches('\n'))
}

/// Sanitizes text from outside and keeps its lines; tabs become blanks.
#[must_use]
pub fn lines(text: &str) -> String {
    outrigger_terminal::safe(text, false).replace('\t', TAB)
}

/// Converts a command's output with its colours. Colour sequences are interpreted here and not passed on; other control characters
/// are shown. Background colours, concealed text, and colours close to black or white are ignored, so that everything is readable.
#[must_use]
pub fn coloured(line: &str, base: Style) -> Vec<Piece> {
    let (mut pieces, mut style, mut rest): (Vec<Piece>, _, _) = (Vec::new(), base, line);
    let mut push = |text: &str, style| {
        let text = lines(text);
        if !text.is_empty() {
            pieces.push((text, style));
        }
    };
    let mut from = 0;
    while let Some(at) = rest
        .get(from..)
        .and_then(|it| it.find("\u{1b}["))
        .map(|it| it + from)
    {
        let (before, sequence) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let parameters = sequence.get(2..).unwrap_or_default();
        let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':');
        match length.and_then(|it| parameters.split_at_checked(it)) {
            Some((parameters, after)) if after.starts_with('m') => {
                push(before, style);
                style = sgrs(style, parameters, base);
                rest = after.get(1..).unwrap_or_default();
                from = 0;
            }
            _ => from = at + 2,
        }
    }
    push(rest, style);
    pieces
}

/// Applies a sequence with these parameters to a style.
fn sgrs(mut style: Style, parameters: &str, base: Style) -> Style {
    let mut all = parameters.split([';', ':']);
    while let Some(parameter) = all.next() {
        match parameter {
            "38" | "48" | "58" => {
                let color = match all.next() {
                    Some("5") => all.next().and_then(|it| it.parse().ok()).and_then(palette),
                    Some("2") => {
                        let mut next = || all.next().and_then(|it| it.parse().ok());
                        match (next(), next(), next()) {
                            (Some(r), Some(g), Some(b)) => readable(r, g, b),
                            _ => None,
                        }
                    }
                    _ => None,
                };
                if parameter == "38" {
                    style.fg = color.or(base.fg);
                }
            }
            parameter => style = sgr(style, parameter, base),
        }
    }
    style
}

/// Returns a colour of the palette that is readable on any background.
fn palette(n: u8) -> Option<Color> {
    match n {
        1..=6 | 9..=14 => Some(Color::Indexed(n)),
        0 | 7 | 8 | 15 => None,
        232..=255 => Some(Color::Indexed(n)).filter(|_| (238..=248).contains(&n)),
        n => {
            let n = n - 16;
            let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            readable(step(n / 36), step(n / 6 % 6), step(n % 6)).map(|_| Color::Indexed(n + 16))
        }
    }
}

fn readable(r: u8, g: u8, b: u8) -> Option<Color> {
    let sum = u16::from(r) + u16::from(g) + u16::from(b);
    (150..=660).contains(&sum).then_some(Color::Rgb(r, g, b))
}

fn sgr(style: Style, parameter: &str, base: Style) -> Style {
    let colour = |n: u8| Color::Indexed(n);
    match parameter.trim_start_matches('0') {
        "" => base,
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "3" => style.add_modifier(Modifier::ITALIC),
        "4" => style.add_modifier(Modifier::UNDERLINED),
        "22" => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
        "23" => style.remove_modifier(Modifier::ITALIC),
        "24" => style.remove_modifier(Modifier::UNDERLINED),
        "39" => Style {
            fg: base.fg,
            ..style
        },
        number => match number.parse::<u8>() {
            Ok(n @ 31..=36) => style.fg(colour(n - 30)),
            Ok(n @ 90..=96) => style.fg(colour(n - 82)),
            _ => style,
        },
    }
}

/// Joins pieces to a row.
#[must_use]
pub fn row(pieces: Vec<Piece>) -> Row {
    let spans = pieces
        .into_iter()
        .map(|(text, style)| Span::styled(text, style));
    Line::from(spans.collect::<Vec<_>>())
}

/// Returns the display width of pieces.
#[must_use]
pub fn columns(pieces: &[Piece]) -> usize {
    pieces.iter().map(|(text, _)| text.width()).sum()
}

/// Wraps pieces to rows of at most `columns_of_row` columns, broken after blanks if possible. `first` comes before the first row,
/// `next` before the others.
#[must_use]
pub fn wrap(pieces: &[Piece], columns_of_row: usize, first: &[Piece], next: &[Piece]) -> Vec<Row> {
    let cells: Vec<(&str, usize, Style)> = pieces
        .iter()
        .flat_map(|(text, style)| text.graphemes(true).map(|it| (it, it.width(), *style)))
        .collect();
    let (mut rows, mut start) = (Vec::new(), 0);
    loop {
        let prefix = if rows.is_empty() { first } else { next };
        let room = columns_of_row.saturating_sub(columns(prefix)).max(2);
        let end = row_end(cells.get(start..).unwrap_or_default(), room) + start;
        // A blank before a break is not shown either.
        let is_broken = end < cells.len() && end > start + 1;
        let blank = end
            .checked_sub(1)
            .filter(|_| is_broken)
            .is_some_and(|at| cells.get(at).is_some_and(|(text, ..)| *text == " "));
        let shown = end - usize::from(blank);
        let mut pieces = prefix.to_vec();
        for (text, _, style) in cells.get(start..shown).unwrap_or_default() {
            match pieces.last_mut() {
                Some((last, same)) if same == style => last.push_str(text),
                _ => pieces.push(((*text).to_owned(), *style)),
            }
        }
        rows.push(row(pieces));
        start = end;
        // A blank at which a line was broken is not shown on the next one.
        if cells.get(start).is_some_and(|(text, ..)| *text == " ") {
            start += 1;
        }
        if start >= cells.len() {
            return rows;
        }
    }
}

/// Returns the end of the row that starts here.
fn row_end(cells: &[(&str, usize, Style)], room: usize) -> usize {
    let (mut used, mut after_blank) = (0, None);
    for (at, (text, width, _)) in cells.iter().enumerate() {
        if used + width > room {
            return match (*text, after_blank) {
                (" ", _) => at.max(1),
                (_, Some(after)) if after > 0 => after,
                _ => at.max(1),
            };
        }
        used += width;
        if *text == " " {
            after_blank = Some(at + 1);
        }
    }
    cells.len()
}

/// Truncates a text to this many columns, with an ellipsis.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let kept = text.graphemes(true).take_while(|it| {
        used += it.width();
        used <= columns
    });
    kept.collect::<String>() + if columns > 0 { "…" } else { "" }
}

/// Like [`cut`], but after a whole word, if that does not cost more than half of the columns.
#[must_use]
pub fn cut_words(text: &str, columns: usize) -> String {
    let short = cut(text, columns);
    if short == text {
        return short;
    }
    let words = short.trim_end_matches('…').rsplit_once(' ');
    match words {
        Some((words, _)) if words.width() >= columns / 2 => format!("{}…", words.trim_end()),
        _ => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let rows = wrap(&[(text.to_owned(), Style::new())], columns, &[], &[]);
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_end_after_words_and_wide_characters_fit() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("日本語です", 4), ["日本", "語で", "す"]);
        assert_eq!(
            wrapped("e\u{301}e\u{301}e\u{301}", 2),
            ["e\u{301}e\u{301}", "e\u{301}"]
        );
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn plain_colours_pass_and_nothing_else() {
        let pieces = coloured("a\u{1b}[31mred\u{1b}[0m\u{1b}[2J", Style::new());
        let texts: Vec<&str> = pieces.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["a", "red", "␛[2J"]);
        assert_eq!(pieces[1].1.fg, Some(Color::Indexed(1)));
        assert_eq!(pieces[2].1, Style::new());
        for (sequence, color) in [
            ("38;5;208", Some(Color::Indexed(208))),
            ("1;38;2;200;100;0", Some(Color::Rgb(200, 100, 0))),
            ("38;5;16;48;5;16", None),
            ("48;2;0;0;0", None),
            ("8", None),
            ("30;40", None),
            ("38;5", None),
        ] {
            let pieces = coloured(&format!("\u{1b}[{sequence}mx\u{1b}["), Style::new());
            assert_eq!(pieces[0].1.fg, color, "{sequence}");
            assert_eq!(pieces[0].1.bg, None);
            assert_eq!(pieces[0].0, "x␛[");
        }
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut_words("one two three", 11), "one two…");
        assert_eq!(cut_words("one two three", 13), "one two three");
        assert_eq!(cut_words("a incomprehensible", 10), "a incompr…");
    }
}
