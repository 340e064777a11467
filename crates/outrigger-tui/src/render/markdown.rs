//! Renders Markdown as rows.
//!
//! A streaming text is re-rendered with every piece, so the part that can no longer change is kept: all top-level blocks but
//! the last one ([`Rendered::settled`]).

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

use super::highlight::Highlighter;
use super::nesting;
use super::table::Table;
use super::text::{self, Piece, Row, columns, wrap};
use super::theme::{Role, Theme};

/// Rows of a text, and the part that is final.
#[derive(Clone, Debug, Default)]
pub struct Rendered {
    /// The rows.
    pub rows: Vec<Row>,
    /// Bytes of the text before its last top-level block, and the number of their rows.
    pub settled: (usize, usize),
}

/// A text that grows at its end, with the rows of its final part.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    bytes: usize,
    width: usize,
    rows: Vec<Row>,
}

impl Stream {
    /// Returns the rows of the current text, which extends the previous one.
    pub fn rows(&mut self, markdown: &str, width: usize, theme: &Theme) -> Vec<Row> {
        if self.width != width || markdown.len() < self.bytes {
            *self = Self {
                width,
                ..Self::default()
            };
        }
        let rest = markdown.get(self.bytes..).unwrap_or_default();
        let mut new = render(rest, width, theme);
        let (bytes, rows) = new.settled;
        if !self.rows.is_empty() && !new.rows.is_empty() {
            new.rows.insert(0, Row::default());
        }
        let gap = usize::from(!self.rows.is_empty());
        let shown = self
            .rows
            .iter()
            .cloned()
            .chain(new.rows.iter().cloned())
            .collect();
        if bytes > 0 {
            self.bytes += bytes;
            // The blank row before the last block comes with that.
            let kept = (rows + gap).min(new.rows.len());
            self.rows.extend(new.rows.into_iter().take(kept));
        }
        shown
    }
}

/// Renders a text.
#[must_use]
pub fn render(markdown: &str, width: usize, theme: &Theme) -> Rendered {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(width, *theme);
    let mut depth = 0_usize;
    let mut settled = (0, 0);
    let (parsed, too_deep) = nesting::split(markdown);
    for (event, range) in Parser::new_ext(parsed, options).into_offset_iter() {
        match &event {
            Event::Start(_) | Event::Rule if depth == 0 => {
                settled = (range.start, writer.rows.len());
                writer.gap();
                depth += usize::from(matches!(event, Event::Start(_)));
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        writer.on(event);
    }
    writer.flush();
    if !too_deep.is_empty() {
        writer.as_written(too_deep);
    }
    Rendered {
        rows: writer.rows,
        settled,
    }
}

struct Writer {
    width: usize,
    theme: Theme,
    rows: Vec<Row>,
    inline: Vec<Piece>,
    styles: Vec<Style>,
    /// Numbers of the open lists; `None` for a bulleted one.
    lists: Vec<Option<u64>>,
    /// What comes before the next row, and before further ones.
    marker: Option<Vec<Piece>>,
    indent: Vec<Piece>,
    /// Lengths of `indent` to return to.
    indents: Vec<usize>,
    code: Option<(String, String)>,
    table: Option<Table>,
    link: Option<String>,
}

impl Writer {
    fn new(width: usize, theme: Theme) -> Self {
        Self {
            width,
            theme,
            rows: Vec::new(),
            inline: Vec::new(),
            styles: vec![Style::new()],
            lists: Vec::new(),
            marker: None,
            indent: Vec::new(),
            indents: Vec::new(),
            code: None,
            table: None,
            link: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Adds a blank row between blocks.
    fn gap(&mut self) {
        if self.rows.last().is_some_and(|row| row.width() > 0) {
            self.rows.push(Row::default());
        }
    }

    fn say(&mut self, text: &str, style: Style) {
        if let Some(cell) = self
            .table
            .as_mut()
            .and_then(|it| it.cells.last_mut()?.last_mut())
        {
            return cell.push_str(text);
        }
        self.inline.push((text.to_owned(), style));
    }

    /// Writes the collected paragraph.
    fn flush(&mut self) {
        if self.inline.is_empty() && self.marker.is_none() {
            return;
        }
        let pieces = std::mem::take(&mut self.inline);
        let first = self.marker.take().unwrap_or_else(|| self.indent.clone());
        self.rows
            .extend(wrap(&pieces, self.width, &first, &self.indent));
    }

    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.say(&text, self.style()),
            },
            Event::Code(code) => self.say(&code, self.style().patch(self.theme.style(Role::Code))),
            Event::Html(text) | Event::InlineHtml(text) => {
                self.say(text.trim_end_matches('\n'), self.theme.style(Role::Dim));
            }
            Event::SoftBreak => self.say(" ", self.style()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                let rule = "─".repeat(self.width.min(40));
                self.rows
                    .push(text::row(vec![(rule, self.theme.style(Role::Dim))]));
            }
            Event::TaskListMarker(done) => self.say(if done { "☑ " } else { "☐ " }, self.style()),
            Event::FootnoteReference(name) => self.say(&format!("[{name}]"), self.style()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.say(&text, self.style()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                let style = self.theme.style(Role::Accent).add_modifier(Modifier::BOLD);
                if level > HeadingLevel::H2 {
                    self.say("# ", self.theme.style(Role::Dim));
                }
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.deepen(("▎ ".to_owned(), self.theme.style(Role::Dim)));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(name) => name.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.push(Modifier::ITALIC),
            Tag::Strong => self.push(Modifier::BOLD),
            Tag::Strikethrough => self.push(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.push(Modifier::UNDERLINED);
            }
            Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.say("image: ", self.theme.style(Role::Dim));
                self.push(Modifier::UNDERLINED);
            }
            Tag::Table(aligned) => self.table = Some(Table::new(aligned)),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.cells.push(Vec::new());
                }
            }
            Tag::TableCell => {
                if let Some(row) = self.table.as_mut().and_then(|it| it.cells.last_mut()) {
                    row.push(String::new());
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let depth = self.lists.len();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ if depth.is_multiple_of(2) => "◦ ".to_owned(),
            _ => "• ".to_owned(),
        };
        let mut marker = self.indent.clone();
        let blanks = " ".repeat(columns(&[(mark.clone(), Style::new())]));
        marker.push((mark, self.theme.style(Role::Accent)));
        self.marker = Some(marker);
        self.deepen((blanks, Style::new()));
    }

    /// Indents what follows, until the quote or the item ends. Half of each row stays for the text, however deep it is
    /// nested: each row begins with the whole indent, so that the rows would outgrow the text, too.
    fn deepen(&mut self, piece: Piece) {
        self.indents.push(self.indent.len());
        let wanted = columns(&self.indent) + text::width(&piece.0);
        if wanted <= self.width / 2 {
            self.indent.push(piece);
        }
    }

    /// Writes lines that are not parsed.
    fn as_written(&mut self, text: &str) {
        self.gap();
        for line in text.lines() {
            let piece = (line.to_owned(), Style::new());
            self.rows.extend(wrap(&[piece], self.width, &[], &[]));
        }
    }

    fn push(&mut self, modifier: Modifier) {
        let style = self.style().add_modifier(modifier);
        self.styles.push(style);
    }

    fn pop(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                if !self.indents.is_empty() && self.lists.is_empty() {
                    self.rows.push(text::row(self.indent.clone()));
                }
            }
            TagEnd::Heading(_) => {
                self.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                let length = self.indents.pop().unwrap_or_default();
                if self
                    .rows
                    .last()
                    .is_some_and(|row| row.width() <= columns(&self.indent))
                    && tag != TagEnd::Item
                {
                    self.rows.pop();
                }
                self.indent.truncate(length);
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// A URL that the text does not show is shown after it: users do not follow links that they cannot read.
    fn end_link(&mut self) {
        self.pop();
        let Some(address) = self.link.take() else {
            return;
        };
        let shown = self.inline.last().is_some_and(|(text, _)| *text == address);
        if !shown && !address.is_empty() {
            self.say(&format!(" ({address})"), self.theme.style(Role::Dim));
        }
    }

    fn code_block(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        let mut highlighter = Highlighter::new(&language);
        let bar: Piece = ("│ ".to_owned(), self.theme.style(Role::Dim));
        for line in code.lines() {
            let pieces: Vec<Piece> = highlighter
                .line(line)
                .into_iter()
                .map(|(text, role)| (text.to_owned(), self.theme.style(role)))
                .collect();
            let mut prefix = self.marker.take().unwrap_or_else(|| self.indent.clone());
            prefix.push(bar.clone());
            let mut next = self.indent.clone();
            next.push(bar.clone());
            self.rows.extend(wrap(&pieces, self.width, &prefix, &next));
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let room = self.width.saturating_sub(text::columns(&self.indent));
        let mut prefix = self.marker.take();
        for mut row in table.rows(room, &self.theme) {
            let before = prefix.take().unwrap_or_else(|| self.indent.clone());
            let before = text::row(before);
            row.spans.splice(0..0, before.spans);
            self.rows.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::theme::Depth;
    use super::*;

    fn theme() -> Theme {
        Theme::new("system", Depth::Sixteen)
    }

    fn shown(markdown: &str, width: usize) -> String {
        let rows = render(markdown, width, &theme()).rows;
        rows.iter()
            .map(|row| format!("{}\n", row.to_string().trim_end()))
            .collect()
    }

    #[test]
    fn blocks_as_they_are_shown() {
        let markdown = "# Title\n\nSome **bold** text with `code` that wraps here.\n\n- one\n- two\n  - deep\n\n1. first\n2. second\n\n\
                        > said\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| one | 2 |\n\n---\n\n[text](http://x)";
        insta::assert_snapshot!(shown(markdown, 30), @r"
        Title

        Some bold text with code that
        wraps here.

        • one
        • two
          ◦ deep

        1. first
        2. second

        ▎ said

        │ fn main() {}

        a   │ b
        one │ 2

        ──────────────────────────────

        text (http://x)
        ");
    }

    /// What a text makes to do: its rows, their pieces and their bytes.
    fn work(markdown: &str) -> usize {
        let rows = render(markdown, 80, &theme()).rows;
        let row = |row: &Row| {
            row.spans
                .iter()
                .map(|it| 1 + it.content.len())
                .sum::<usize>()
                + 1
        };
        rows.iter().map(row).sum()
    }

    #[test]
    fn hostile_texts_make_no_more_rows_than_they_are_long() {
        let depth = |n: usize, mark: &str| mark.repeat(n) + "x";
        let cases: [(&str, &dyn Fn(usize) -> String); 18] = [
            ("quotes", &|n| depth(n, ">")),
            ("quotes with blanks", &|n| depth(n, "> ")),
            ("quotes of a long text", &|n| {
                depth(n, ">") + &" x".repeat(n)
            }),
            ("quotes, then lines", &|n| depth(n, ">") + &"\nx".repeat(n)),
            ("quotes, then blank lines", &|n| {
                depth(n, ">") + &"\n".repeat(n)
            }),
            ("allowed quotes of a long text", &|n| {
                depth(90, ">") + &" x".repeat(n)
            }),
            ("allowed quotes, then lines", &|n| {
                depth(90, ">") + &"\nx".repeat(n)
            }),
            ("items", &|n| depth(n, "- ")),
            ("numbers", &|n| depth(n, "1. ")),
            ("allowed numbers", &|n| {
                (depth(40, "1. ") + "\n\n").repeat(n / 40)
            }),
            ("items in quotes", &|n| depth(n, "> - ")),
            ("quotes around code", &|n| {
                depth(n, ">") + "\n```\n" + &"x\n".repeat(n)
            }),
            ("opened emphasis", &|n| "*a _b ".repeat(n)),
            ("nested emphasis", &|n| {
                "*a **b ".repeat(n) + &"c** d*".repeat(n)
            }),
            ("opened links", &|n| "[a](".repeat(n)),
            ("columns without cells", &|n| {
                "|a".repeat(n) + "|\n" + &"|-".repeat(n) + "|\n" + &"|\n".repeat(n)
            }),
            ("empty columns", &|n| {
                "|".repeat(n) + "\n" + &"|-".repeat(n - 1) + "|\n" + &"|\n".repeat(n)
            }),
            ("a long name", &|n| {
                format!("|{}|b|\n|-|-|\n", "a ".repeat(n)) + &"|c|d|\n".repeat(n)
            }),
        ];
        for (name, text) in cases {
            let (one, two) = (work(&text(2_000)), work(&text(4_000)));
            // A row has at most its 80 columns, of up to four bytes each.
            assert!(two <= text(4_000).len() * 400, "{name}: {two}");
            assert!(two <= one * 9 / 4, "{name}: {one}, then {two}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_shown_as_it_is_written() {
        let deep = ">".repeat(101);
        assert_eq!(
            shown(&format!("*a*\n\n{deep}x\n*b*"), 120),
            format!("a\n\n{deep}x\n*b*\n")
        );
        // Half of a row stays for the text.
        assert_eq!(
            shown(&(">".repeat(50) + "some text"), 20),
            "▎ ▎ ▎ ▎ ▎ some text\n"
        );
    }

    /// Rendering piece by piece gives the same result as rendering the whole.
    #[test]
    fn a_stream_ends_as_the_whole() {
        let markdown = "# A\n\none two\nthree\n\n- a\n\n- b\n\n```js\nlet x = 1\n\nlet y\n```\n\nend **of** it\n\n> q\n\n1. x\n2. y\n";
        let deep = format!("# A\n\nb\n\n{}c\n\nd", "> ".repeat(80));
        for markdown in [markdown, &deep] {
            let mut stream = Stream::default();
            let mut rows = Vec::new();
            for (at, c) in markdown.char_indices() {
                rows = stream.rows(&markdown[..at + c.len_utf8()], 20, &theme());
            }
            assert_eq!(rows, render(markdown, 20, &theme()).rows);
        }
    }
}
