//! A diff of a file: unified, or side by side if there is room.

use similar::{ChangeTag, TextDiff};

use super::highlight::Highlighter;
use super::text::{self, Piece, Row, cut};
use super::theme::{Role, Theme};

/// Minimum number of columns for a side-by-side diff.
pub const SIDE_BY_SIDE: usize = 120;
/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Larger contents are not compared: that would take too long.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// A line of a diff.
struct Line {
    old: Option<usize>,
    new: Option<usize>,
    text: String,
}

/// Returns the rows of a diff, `width` columns wide.
#[must_use]
pub fn rows(old: &str, new: &str, path: &str, width: usize, theme: &Theme) -> Vec<Row> {
    if old.len() + new.len() > MAX_BYTES {
        let text = format!("{} bytes before, {} after", old.len(), new.len());
        return vec![text::row(vec![(text, theme.style(Role::Dim))])];
    }
    let diff = TextDiff::from_lines(old, new);
    let mut rows = Vec::new();
    for (n, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if n > 0 {
            rows.push(text::row(vec![("  ⋮".to_owned(), theme.style(Role::Dim))]));
        }
        let changes = group.iter().flat_map(|op| diff.iter_changes(op));
        let lines: Vec<Line> = changes
            .map(|change| Line {
                old: change
                    .old_index()
                    .filter(|_| change.tag() != ChangeTag::Insert),
                new: change
                    .new_index()
                    .filter(|_| change.tag() != ChangeTag::Delete),
                text: text::lines(change.value().trim_end_matches(['\n', '\r'])),
            })
            .collect();
        if width >= SIDE_BY_SIDE {
            side_by_side(&lines, path, width, theme, &mut rows)
        } else {
            inline(&lines, path, width, theme, &mut rows)
        }
    }
    rows
}

/// Returns how many lines were added and removed.
#[must_use]
pub fn counts(old: &str, new: &str) -> (usize, usize) {
    if old.len() + new.len() > MAX_BYTES {
        return (0, 0);
    }
    let diff = TextDiff::from_lines(old, new);
    diff.iter_all_changes()
        .fold((0, 0), |(added, removed), change| match change.tag() {
            ChangeTag::Insert => (added + 1, removed),
            ChangeTag::Delete => (added, removed + 1),
            ChangeTag::Equal => (added, removed),
        })
}

/// Renders number, mark and text of one side.
fn side(
    number: Option<usize>,
    mark: char,
    line: &Line,
    highlighter: &mut Highlighter,
    theme: &Theme,
) -> Vec<Piece> {
    let number = number.map_or_else(|| "    ".to_owned(), |it| format!("{:>4}", it + 1));
    let role = match mark {
        '+' => Role::Added,
        '-' => Role::Removed,
        _ => Role::Dim,
    };
    let mut pieces = vec![
        (number, theme.style(Role::Dim)),
        (format!(" {mark} "), theme.style(role)),
    ];
    match mark {
        ' ' => pieces.extend(
            highlighter
                .line(&line.text)
                .into_iter()
                .map(|(text, role)| (text.to_owned(), theme.style(role))),
        ),
        _ => pieces.push((line.text.clone(), theme.style(role))),
    }
    pieces
}

fn inline(lines: &[Line], path: &str, width: usize, theme: &Theme, rows: &mut Vec<Row>) {
    let mut highlighter = Highlighter::of_path(path);
    for line in lines {
        let mark = match (line.old, line.new) {
            (None, _) => '+',
            (_, None) => '-',
            _ => ' ',
        };
        let pieces = side(line.new.or(line.old), mark, line, &mut highlighter, theme);
        let blanks = vec![("       ".to_owned(), theme.style(Role::Dim))];
        rows.extend(text::wrap(&pieces, width, &[], &blanks));
    }
}

fn side_by_side(lines: &[Line], path: &str, width: usize, theme: &Theme, rows: &mut Vec<Row>) {
    let half = width.saturating_sub(3) / 2;
    let mut highlighter = Highlighter::of_path(path);
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if line.old.is_some() && line.new.is_some() {
            let left = side(line.old, ' ', line, &mut highlighter, theme);
            let right = side(line.new, ' ', line, &mut Highlighter::of_path(path), theme);
            rows.push(beside(&left, &right, half, theme));
            at += 1;
            continue;
        }
        let rest = lines.get(at..).unwrap_or_default();
        let removed = rest.iter().take_while(|it| it.new.is_none()).count();
        let added = rest
            .iter()
            .skip(removed)
            .take_while(|it| it.old.is_none())
            .count();
        for n in 0..removed.max(added) {
            let left = rest.get(n).filter(|_| n < removed);
            let right = rest.get(removed + n).filter(|_| n < added);
            let left = left.map(|it| side(it.old, '-', it, &mut highlighter, theme));
            let right = right.map(|it| side(it.new, '+', it, &mut highlighter, theme));
            rows.push(beside(
                &left.unwrap_or_default(),
                &right.unwrap_or_default(),
                half,
                theme,
            ));
        }
        at += (removed + added).max(1);
    }
}

/// Puts two texts side by side, each cut to its half.
fn beside(left: &[Piece], right: &[Piece], half: usize, theme: &Theme) -> Row {
    let mut pieces = fitted(left, half);
    pieces.push((" │ ".to_owned(), theme.style(Role::Dim)));
    pieces.extend(fitted(right, half));
    text::row(pieces)
}

fn fitted(pieces: &[Piece], columns: usize) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut left = columns;
    for (text, style) in pieces {
        let text = cut(text, left);
        left = left.saturating_sub(text::width(&text));
        out.push((text, *style));
    }
    out.push((" ".repeat(left), ratatui::style::Style::new()));
    out
}

#[cfg(test)]
mod tests {
    use super::super::theme::Depth;
    use super::*;

    fn shown(width: usize) -> String {
        let theme = Theme::new("system", Depth::None);
        let (old, new) = ("a\nb\nc\nd\n", "a\nB\nbb\nc\nd\n");
        let rows = rows(old, new, "x.rs", width, &theme);
        rows.iter()
            .map(|row| format!("{}\n", row.to_string().trim_end()))
            .collect()
    }

    #[test]
    fn below_each_other_and_side_by_side() {
        insta::assert_snapshot!(shown(80), @r"
           1   a
           2 - b
           2 + B
           3 + bb
           4   c
           5   d
        ");
        let wide = shown(SIDE_BY_SIDE);
        let rows: Vec<Vec<&str>> = wide
            .lines()
            .map(|it| it.split('│').map(str::trim).collect())
            .collect();
        assert_eq!(
            rows,
            [
                ["1   a", "1   a"],
                ["2 - b", "2 + B"],
                ["", "3 + bb"],
                ["3   c", "4   c"],
                ["4   d", "5   d"]
            ]
        );
        assert_eq!(counts("a\nb\n", "a\nc\nd\n"), (2, 1));
    }
}
