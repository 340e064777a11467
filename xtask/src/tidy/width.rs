//! The width of pages. `cargo xtask fmt-docs` breaks the paragraphs that have a longer line; tables, code and comments stay.

use std::path::Path;

use super::{Repo, pages};
use crate::{Result, failed};

/// Columns of a line of prose. An HTML comment at the end of a line is not part of it.
const WIDTH: usize = 120;

/// The lines of prose that are too long, where they could be broken.
pub(super) fn check(repo: &Repo) -> Vec<String> {
    repo.iter()
        .filter(|(path, text)| is_page(path, text))
        .filter(|(_, text)| formatted(text) != *text)
        .map(|(path, _)| {
            format!("{path} has lines of more than {WIDTH} columns: run `cargo xtask fmt-docs`")
        })
        .collect()
}

/// Pages that people write; generated ones have the width that their generator gives them.
fn is_page(path: &str, text: &str) -> bool {
    // Fixtures of tests are data.
    let is_prose = !path.contains("/tests/") || path.starts_with("tests/");
    path.ends_with(".md") && is_prose && !pages::is_generated(text)
}

/// `cargo xtask fmt-docs`: rewrites the pages in the working tree.
pub(super) fn write(root: &Path, repo: &Repo) -> Result {
    for (path, text) in repo.iter().filter(|(path, text)| is_page(path, text)) {
        let formatted = formatted(text);
        if formatted != text {
            let written = std::fs::write(root.join(path), formatted);
            written.or_else(|error| failed(format!("cannot write {path}: {error}")))?;
            println!("fmt-docs: {path}");
        }
    }
    Ok(())
}

/// The page with every paragraph broken anew that has a line over [`WIDTH`].
fn formatted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut paragraph: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|it| trimmed.starts_with(it));
        if fence.is_some() || mark.is_some() {
            flush(&mut paragraph, &mut out);
            fence = match (fence, mark) {
                (None, mark) => mark,
                (Some(open), Some(mark)) if open == mark => None,
                (open, _) => open,
            };
            out.push_str(line);
        } else if is_block(line) {
            flush(&mut paragraph, &mut out);
            out.push_str(line);
        } else {
            if starts_item(trimmed) {
                flush(&mut paragraph, &mut out);
            }
            paragraph.push(line);
        }
    }
    flush(&mut paragraph, &mut out);
    out
}

/// A line that is not prose: blank, a heading, a row of a table, indented code, a quotation, a line of HTML.
fn is_block(line: &str) -> bool {
    let trimmed = line.trim();
    let starts = ["#", "|", ">", "<", "![", "---"];
    trimmed.is_empty()
        || starts.iter().any(|it| trimmed.starts_with(it))
        || (line.starts_with("    ") && !starts_item(trimmed) && !is_continuation(line))
}

/// Lines of list items may be indented by as much as code. Only two and three columns are used in these pages.
fn is_continuation(line: &str) -> bool {
    line.len() - line.trim_start().len() < 4
}

/// Whether a line begins an item of a list.
fn starts_item(trimmed: &str) -> bool {
    let number = trimmed.trim_start_matches(|it: char| it.is_ascii_digit());
    trimmed.starts_with("- ")
        || trimmed.starts_with("* ")
        || (number.len() < trimmed.len() && number.starts_with(". "))
}

fn flush(paragraph: &mut Vec<&str>, out: &mut String) {
    let lines = std::mem::take(paragraph);
    if lines.iter().all(|line| columns(line) <= WIDTH) {
        out.extend(lines);
        return;
    }
    let first = lines.first().copied().unwrap_or_default();
    let indent = first.len() - first.trim_start().len();
    let item = first.trim_start();
    let hang = match item.split_once(' ') {
        Some((mark, _)) if starts_item(item) => indent + mark.len() + 1,
        _ => indent,
    };
    let text = lines.concat();
    let mut line = " ".repeat(indent);
    let mut is_empty = true;
    for word in words(&text) {
        let is_comment = word.starts_with("<!--");
        let is_over = columns(&line) + 1 + word.chars().count() > WIDTH;
        if !is_empty
            && !is_comment
            && is_over
            && !is_block(word)
            && !starts_item(&format!("{word} "))
        {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(hang);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    if text.ends_with('\n') {
        out.push('\n');
    }
}

/// The columns of a line without its comments.
fn columns(line: &str) -> usize {
    let mut columns = 0;
    let mut rest = line.trim_end();
    while let Some((before, after)) = rest.split_once("<!--") {
        columns += before.chars().count();
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    columns + rest.chars().count()
}

/// The words of a paragraph. A comment, code in backticks and the text of a link are one word each.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = word_end(rest);
        let (word, tail) = rest.split_at(end);
        words.push(word);
        rest = tail.trim_start();
    }
    words
}

fn word_end(text: &str) -> usize {
    if text.starts_with("<!--") {
        return text.find("-->").map_or(text.len(), |at| at + 3);
    }
    let mut is_code = false;
    for (at, it) in text.char_indices() {
        match it {
            '`' => is_code = !is_code,
            _ if it.is_whitespace() && !is_code => return at,
            _ => {}
        }
    }
    // A backtick without its partner.
    text.find(char::is_whitespace).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paragraphs_are_broken_and_nothing_else() {
        let word = "abcdefghi ";
        let prose = format!(
            "Long {}end. <!-- shown by: {} -->\nNext\nline.\n",
            word.repeat(13),
            word.repeat(20)
        );
        let item = format!(
            "1. A `code {}x` {}\n",
            "y ".repeat(20),
            word.repeat(12).trim_end()
        );
        let kept = format!(
            "# {0}\n\n| {0} |\n\n    {0}\n\n```\n{0}\n```\n\n<!-- {0} -->\n\nshort\nlines\nstay\n",
            word.repeat(20)
        );
        let text = formatted(&format!("{prose}\n{item}{kept}"));
        let long: Vec<&str> = text.lines().filter(|line| columns(line) > WIDTH).collect();
        assert_eq!(long.len(), 4, "{long:?}");
        assert!(text.ends_with(&kept), "{text}");
        assert!(text.contains("end. <!-- shown by: abcdefghi"), "{text}");
        assert!(text.contains("\n   abcdefghi"), "{text}");
        assert_eq!(formatted(&text), text);
        let without = |it: &str| it.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(without(&text), without(&format!("{prose}\n{item}{kept}")));
    }
}
