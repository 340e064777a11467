//! `docs/bypass/attempts.toml`: attempts to bypass the rules, and the tests that make them.
//!
//! The file is the source; `cargo xtask generate` writes one page of tables for each `[[page]]` next to it.

use std::fmt::Write as _;

use serde::Deserialize;

/// The file with the attempts.
pub(crate) const FILE: &str = "docs/bypass/attempts.toml";

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attempts {
    pub(crate) page: Vec<Page>,
}

/// One generated page, `docs/bypass/NAME.md`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    name: String,
    title: String,
    pub(crate) section: Vec<Section>,
}

/// Attempts of one kind, in one table of the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    pub(crate) title: String,
    #[serde(default)]
    note: String,
    pub(crate) attempt: Vec<Attempt>,
}

/// One attempt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attempt {
    /// Cited elsewhere, so it is never reused.
    pub(crate) id: u32,
    attempt: String,
    /// Tests that make the attempt, as `PATH::TEST`.
    pub(crate) tests: Vec<String>,
}

/// Parses the text of [`FILE`].
pub(crate) fn parse(text: &str) -> Result<Attempts, String> {
    toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))
}

impl Page {
    /// Returns the path of the page in the repository.
    pub(crate) fn path(&self) -> String {
        format!("docs/bypass/{}.md", self.name)
    }

    /// Returns the text of the page.
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!(
            "# Refused: {}\n\n\
             Made by `cargo xtask generate` from [attempts.toml](attempts.toml). [bypass.md](../bypass.md) says what is not refused.\n",
            self.title
        );
        for section in &self.section {
            let _ = write!(out, "\n## {}\n\n", section.title);
            if !section.note.is_empty() {
                let _ = write!(out, "{}\n\n", section.note);
            }
            out.push_str("| No. | Attempt | Refused in |\n|---|---|---|\n");
            for attempt in &section.attempt {
                let tests: Vec<String> = attempt
                    .tests
                    .iter()
                    .map(|test| format!("`{test}`"))
                    .collect();
                let _ = writeln!(
                    out,
                    "| {} | {} | {} |",
                    attempt.id,
                    attempt.attempt,
                    tests.join(", ")
                );
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_each_attempt_with_its_tests() {
        let text = "[[page]]\nname = \"files\"\ntitle = \"Files\"\n[[page.section]]\ntitle = \"Links\"\nnote = \"Why.\"\n\
             [[page.section.attempt]]\nid = 7\nattempt = \"`cat link`\"\ntests = [\"a.rs::b\", \"a.rs::c\"]\n";
        let attempts = parse(text).unwrap();
        assert_eq!(attempts.page[0].path(), "docs/bypass/files.md");
        assert_eq!(
            attempts.page[0].markdown(),
            "# Refused: Files\n\n\
             Made by `cargo xtask generate` from [attempts.toml](attempts.toml). [bypass.md](../bypass.md) says what is not refused.\n\n\
             ## Links\n\nWhy.\n\n| No. | Attempt | Refused in |\n|---|---|---|\n| 7 | `cat link` | `a.rs::b`, `a.rs::c` |\n"
        );
        assert!(parse("[[page]]\nname = 1\n").unwrap_err().starts_with(FILE));
    }
}
