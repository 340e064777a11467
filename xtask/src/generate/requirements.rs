//! `docs/requirements/rows.toml`: the implementation and the tests of each requirement, and what is missing.
//!
//! The file is the source; `cargo xtask generate` creates `docs/requirements.md` from it.

use std::fmt::Write as _;

use serde::Deserialize;

/// The file with the rows.
pub(crate) const FILE: &str = "docs/requirements/rows.toml";
/// The generated page.
pub(crate) const PAGE: &str = "docs/requirements.md";

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirements {
    section: Vec<Section>,
}

/// The requirements of one letter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    #[serde(default)]
    note: String,
    row: Vec<Row>,
}

/// One requirement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// Cited elsewhere, so it is never reused.
    pub(crate) number: String,
    in_short: String,
    /// Files and folders of this repository.
    #[serde(default)]
    pub(crate) built_in: Vec<String>,
    /// Tests as `PATH::TEST`, rules as `tidy:RULE`, tasks as `cargo xtask TASK`.
    #[serde(default)]
    pub(crate) shown_by: Vec<String>,
    /// What is not implemented, or implemented and not tested, and why.
    #[serde(default)]
    pub(crate) left_out: String,
}

/// Parses the text of [`FILE`].
pub(crate) fn parse(text: &str) -> Result<Requirements, String> {
    toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))
}

impl Requirements {
    /// Iterates over all requirements, in the order of the file.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.section.iter().flat_map(|section| &section.row)
    }

    /// Returns the text of [`PAGE`].
    pub(crate) fn markdown(&self) -> String {
        let mut out = String::from(
            "# Requirements\n\n\
             Made by `cargo xtask generate` from [rows.toml](requirements/rows.toml).\n\n\
             Comments, tests and pages cite numbers such as `A7` or `C13`. This is what each one says in short, where it is built,\n\
             which tests show it, and what is left out and why. A number is never used again for something else. \"OpenCode\" means\n\
             the published program, `opencode-ai` 1.18.33 on npm, which the tests run beside this one.\n\n\
             `cargo xtask tidy` (`requirement-numbers`) checks that every number cited in the source stands here, that each row\n\
             names existing files and tests, and that a row without a test says what is missing.\n",
        );
        for section in &self.section {
            let _ = write!(out, "\n## {}\n", section.title);
            if !section.note.is_empty() {
                let _ = write!(out, "\n{}\n", section.note);
            }
            for row in &section.row {
                row.write(&mut out);
            }
        }
        out
    }
}

impl Row {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "\n### {}\n\n{}\n", self.number, self.in_short);
        let mut lines = Vec::new();
        if !self.built_in.is_empty() {
            lines.push(format!("- Built in: `{}`", self.built_in.join("`, `")));
        }
        if !self.shown_by.is_empty() {
            lines.push("- Shown by:".to_owned());
            lines.extend(self.shown_by.iter().map(|name| format!("  - `{name}`")));
        }
        if !self.left_out.is_empty() {
            lines.push(format!("- Left out: {}", self.left_out));
        }
        if !lines.is_empty() {
            let _ = write!(out, "\n{}\n", lines.join("\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_each_row_with_what_it_has() {
        let text = "[[section]]\ntitle = \"A. A host\"\nnote = \"Why.\"\n\
             [[section.row]]\nnumber = \"A1\"\nin_short = \"It is measured.\"\nbuilt_in = [\"a.rs\", \"b\"]\nshown_by = [\"a.rs::b\"]\n\
             [[section.row]]\nnumber = \"A2\"\nin_short = \"It is fast.\"\nleft_out = \"All of it.\"\n";
        let page = parse(text).unwrap().markdown();
        let (_, rows) = page.split_once("\n## ").unwrap();
        assert_eq!(
            rows,
            "A. A host\n\nWhy.\n\n### A1\n\nIt is measured.\n\n- Built in: `a.rs`, `b`\n- Shown by:\n  - `a.rs::b`\n\
             \n### A2\n\nIt is fast.\n\n- Left out: All of it.\n"
        );
        assert!(
            parse("[[section]]\ntitle = 1\n")
                .unwrap_err()
                .starts_with(FILE)
        );
    }
}
