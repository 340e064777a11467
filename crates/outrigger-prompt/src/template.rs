//! Slash commands: expands a template with the arguments to the text of a prompt.

use std::sync::LazyLock;

/// Expands a template as OpenCode does: `$1` … are single words (quotes keep words together), the highest numbered
/// one takes the rest; `$ARGUMENTS` is everything; a template with neither gets the arguments after an empty line.
#[must_use]
pub fn expand(template: &str, arguments: &str) -> String {
    let words = words(arguments);
    let highest = placeholders(template).map(|(_, _, n)| n).max().unwrap_or(0);
    let mut text = String::with_capacity(template.len() + arguments.len());
    let mut from = 0;
    for (start, end, n) in placeholders(template) {
        text.push_str(template.get(from..start).unwrap_or_default());
        from = end;
        let index = n.saturating_sub(1);
        if n == highest {
            text.push_str(&words.get(index..).unwrap_or_default().join(" "));
        } else if let Some(word) = words.get(index) {
            text.push_str(word);
        }
    }
    text.push_str(template.get(from..).unwrap_or_default());
    let whole = template.contains("$ARGUMENTS");
    let mut text = text.replace("$ARGUMENTS", arguments);
    if highest == 0 && !whole && !arguments.trim().is_empty() {
        text.push_str("\n\n");
        text.push_str(arguments);
    }
    text.trim().to_owned()
}

/// Returns the shell commands of a template, `` !`…` ``, with their byte ranges.
#[must_use]
pub fn shell_places(text: &str) -> Vec<(std::ops::Range<usize>, String)> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(start) = text
        .get(from..)
        .and_then(|rest| rest.find("!`"))
        .map(|at| from + at)
    {
        let Some(len) = text.get(start + 2..).and_then(|rest| rest.find('`')) else {
            break;
        };
        let end = start + 2 + len;
        places.push((
            start..end + 1,
            text.get(start + 2..end).unwrap_or_default().to_owned(),
        ));
        from = end + 1;
    }
    places
}

/// Returns `(start, end, number)` of every `$N`.
fn placeholders(template: &str) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    template.match_indices('$').filter_map(|(start, _)| {
        let digits: String = template
            .get(start + 1..)?
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let number = digits.parse().ok().filter(|n| *n > 0)?;
        Some((start, start + 1 + digits.len(), number))
    })
}

/// Splits an argument line into words; single and double quotes keep words together and are removed.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The bundled commands: name, description, template.
pub static BUNDLED: LazyLock<Vec<(&'static str, &'static str, &'static str)>> = LazyLock::new(
    || {
        vec![
            (
                "init",
                "write an AGENTS.md for this project",
                "Look at this project and write an AGENTS.md in its root (or improve the one that is there): how to build, lint and run \
             one test, and the conventions that an agent would otherwise get wrong. At most 30 lines, only what is true of this \
             project. $ARGUMENTS",
            ),
            (
                "review",
                "review the current changes",
                "Review the changes of this project: the commit, branch or pull request named here, else what is not committed yet \
             (git diff, git status). Report defects with file and line and say how sure you are; do not change anything. $ARGUMENTS",
            ),
        ]
    },
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_by_table() {
        for (template, arguments, want) in [
            ("Say hello to $ARGUMENTS", "world", "Say hello to world"),
            ("Plain", "", "Plain"),
            ("Plain", "more text", "Plain\n\nmore text"),
            ("$1 then $2", "a b c", "a then b c"),
            ("$1 then $2", "'a b' c", "a b then c"),
            ("$2 and $1", "a", "and a"),
            ("cost $5x", "a b c d e f", "cost e fx"),
            ("price $ 3", "", "price $ 3"),
        ] {
            assert_eq!(
                expand(template, arguments),
                want,
                "{template} | {arguments}"
            );
        }
    }

    #[test]
    fn shell_commands_are_found() {
        let text = "A !`git diff` and !`ls -l`.";
        let found = shell_places(text);
        assert_eq!(
            found.iter().map(|(_, c)| c.as_str()).collect::<Vec<_>>(),
            ["git diff", "ls -l"]
        );
        assert_eq!(
            text.get(found.first().unwrap().0.clone()),
            Some("!`git diff`")
        );
        assert!(shell_places("open !`never closed").is_empty());
    }
}
