//! Reads a git settings file as git does, to find settings that start programs. Invalid files are read as far as possible:
//! finding a setting that git ignores is harmless.

use std::path::Path;

/// A setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// In lower case.
    pub(crate) section: String,
    pub(crate) subsection: Option<String>,
    /// In lower case.
    pub(crate) name: String,
    /// `None` if it has no value, which means true.
    pub(crate) value: Option<String>,
}

impl Setting {
    /// Returns git's name of the setting: `remote.origin.url`.
    pub(crate) fn key(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.name),
            None => format!("{}.{}", self.section, self.name),
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

/// Returns the settings of a small file; empty if it is missing or not a regular file.
pub(crate) fn read(path: &Path) -> Vec<Setting> {
    let bytes = outrigger_files::read(path, outrigger_files::SETTINGS).unwrap_or_default();
    parse(&String::from_utf8_lossy(&bytes))
}

/// Parses a text.
pub(crate) fn parse(text: &str) -> Vec<Setting> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let (mut section, mut subsection) = (String::new(), None);
    let mut found = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => {}
            '#' | ';' => while chars.next_if(|it| *it != '\n').is_some() {},
            '[' => (section, subsection) = header(&mut chars),
            c => {
                let mut name = c.to_ascii_lowercase().to_string();
                while let Some(c) = chars.next_if(|it| !matches!(it, '=' | '\n' | '#' | ';')) {
                    name.push(c.to_ascii_lowercase());
                }
                let value = chars.next_if_eq(&'=').map(|_| value(&mut chars));
                found.push(Setting {
                    section: section.clone(),
                    subsection: subsection.clone(),
                    name: name.trim().to_owned(),
                    value,
                });
            }
        }
    }
    found
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Parses a header after `[`: `section]`, `section "subsection"]`, or the old `section.subsection]`.
fn header(chars: &mut Chars<'_>) -> (String, Option<String>) {
    let mut name = String::new();
    let mut quoted = None;
    while let Some(c) = chars.next() {
        match c {
            ']' | '\n' => break,
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => text.extend(chars.next()),
                        c => text.push(c),
                    }
                }
                quoted = Some(text);
            }
            c => name.push(c),
        }
    }
    let name = name.trim().to_ascii_lowercase();
    match (quoted, name.split_once('.')) {
        (Some(quoted), _) => (name, Some(quoted)),
        (None, Some((section, rest))) => (section.to_owned(), Some(rest.to_owned())),
        (None, None) => (name, None),
    }
}

/// Parses a value after `=`, up to the end of its line, which `\` continues.
fn value(chars: &mut Chars<'_>) -> String {
    let mut text = String::new();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\n' => break,
            '#' | ';' if !quoted => while chars.next_if(|it| *it != '\n').is_some() {},
            '"' => quoted = !quoted,
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('b') => text.push('\u{8}'),
                Some(c) => text.push(c),
            },
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

/// Writes these settings, one section each.
pub(crate) fn write(settings: &[Setting]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::new();
    for setting in settings {
        let section = &setting.section;
        match &setting.subsection {
            Some(subsection) => {
                text.push_str(&format!("[{section} \"{}\"]\n", escaped(subsection)));
            }
            None => text.push_str(&format!("[{section}]\n")),
        }
        match &setting.value {
            Some(value) => {
                let value = escaped(value).replace('\n', "\\n").replace('\t', "\\t");
                text.push_str(&format!("\t{} = \"{value}\"\n", setting.name));
            }
            None => text.push_str(&format!("\t{}\n", setting.name)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them_and_written_again() {
        let text = "\u{feff}# c\n[core]\n\tbare = false ; no\n\tFsMonitor = \"./a b\" # x\n[Remote \"o\\\"x\"] url = a\\\\b\n\
            [alias]st = \"!touch x; y\"\n[filter.lfs]\n\tclean = git-\\\nlfs\n[x]\n\talone\n\ttwo=1\r\n";
        let found = parse(text);
        let keys: Vec<(String, Option<&str>)> = found
            .iter()
            .map(|it| (it.key(), it.value.as_deref()))
            .collect();
        let want: Vec<(String, Option<&str>)> = [
            ("core.bare", Some("false")),
            ("core.fsmonitor", Some("./a b")),
            ("remote.o\"x.url", Some("a\\b")),
            ("alias.st", Some("!touch x; y")),
            ("filter.lfs.clean", Some("git-lfs")),
            ("x.alone", None),
            ("x.two", Some("1")),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        assert_eq!(keys, want);
        assert_eq!(parse(&write(&found)), found);
    }
}
