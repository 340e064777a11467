//! The patch language of `apply_patch`, which GPT models are trained on: sections that add, delete, change or move files,
//! between `*** Begin Patch` and `*** End Patch`. Parsing follows OpenCode, plus what its own grammar of the language
//! also allows: lines before the first `@@`, and `*** End of File` with more hunks after it.

mod apply;

pub(crate) use apply::{Cost, apply};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The reason why a patch cannot be applied. The texts are OpenCode's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    #[error("Invalid patch format: missing Begin/End markers")]
    NoMarkers,
    #[error("Failed to find context '{context}' in {path}")]
    NoContext { context: String, path: String },
    #[error("Failed to find expected lines in {path}:\n{lines}")]
    NoLines { path: String, lines: String },
    #[error(
        "Looking for the lines of the patch in {path} takes too long; change fewer places at once"
    )]
    TooMuch { path: String },
}

/// One section of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Add {
        path: String,
        content: String,
    },
    Delete {
        path: String,
    },
    Update {
        path: String,
        to: Option<String>,
        places: Vec<Hunk>,
    },
}

/// A line of a hunk, without its sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Keep(String),
    Remove(String),
    Insert(String),
    /// An empty line without even a sign. OpenCode skips it; it may be an empty line whose sign was lost.
    Bare,
}

/// A hunk: a place in a file and its replacement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line after `@@`, which comes before the hunk.
    pub(crate) context: Option<String>,
    pub(crate) lines: Vec<Line>,
    /// It is the end of the file.
    pub(crate) at_end: bool,
}

/// Returns the files that a patch changes, as it names them, and whether each is created; `None` if it cannot be parsed.
#[must_use]
pub fn patched(text: &str) -> Option<Vec<(String, bool)>> {
    let mut files = Vec::new();
    for section in parse(text).ok()? {
        match section {
            Section::Add { path, .. } => files.push((path, true)),
            Section::Delete { path } => files.push((path, false)),
            Section::Update { path, to, .. } => {
                files.push((path, false));
                files.extend(to.map(|to| (to, true)));
            }
        }
    }
    Some(files)
}

/// Parses a patch. Lines outside sections are skipped, as in OpenCode.
pub(crate) fn parse(text: &str) -> Result<Vec<Section>, PatchError> {
    let lines: Vec<&str> = without_heredoc(text.trim()).split('\n').collect();
    let find = |marker: &str| lines.iter().position(|line| line.trim() == marker);
    let (Some(begin), Some(end)) = (find(BEGIN), find(END)) else {
        return Err(PatchError::NoMarkers);
    };
    let Some(mut rest) = lines.get(begin + 1..end) else {
        return Err(PatchError::NoMarkers);
    };
    let mut sections = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if let Some(path) = header(first, ADD) {
            let content = take_added(&mut rest);
            sections.push(Section::Add { path, content });
        } else if let Some(path) = header(first, DELETE) {
            sections.push(Section::Delete { path });
        } else if let Some(path) = header(first, UPDATE) {
            let to = rest.first().and_then(|line| line.strip_prefix(MOVE));
            if to.is_some() {
                rest = rest.get(1..).unwrap_or_default();
            }
            let to = to.map(str::trim).filter(|to| !to.is_empty());
            sections.push(Section::Update {
                path,
                to: to.map(str::to_owned),
                places: take_places(&mut rest),
            });
        }
    }
    Ok(sections)
}

/// Returns whether there is nothing between the markers: that has its own error.
pub(crate) fn is_empty(text: &str) -> bool {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.trim() == format!("{BEGIN}\n{END}")
}

fn header(line: &str, kind: &str) -> Option<String> {
    let path = line.strip_prefix(kind)?.trim();
    (!path.is_empty()).then(|| path.to_owned())
}

// Models that learned to write patches for a shell wrap them: `<<'EOF'` ... `EOF`.
fn without_heredoc(text: &str) -> &str {
    let body = || {
        let rest = match text.strip_prefix("cat") {
            Some(rest) => rest.strip_prefix(char::is_whitespace)?.trim_start(),
            None => text,
        };
        let (marker, body) = rest.strip_prefix("<<")?.split_once('\n')?;
        let marker = marker.trim_end().trim_matches(['\'', '"']);
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if marker.is_empty() || !marker.chars().all(word) {
            return None;
        }
        body.strip_suffix(marker)?.strip_suffix('\n')
    };
    body().unwrap_or(text)
}

fn take_added(rest: &mut &[&str]) -> String {
    let mut content = String::new();
    while let Some(line) = next_of_section(rest) {
        if let Some(line) = line.strip_prefix('+') {
            content.push_str(line);
            content.push('\n');
        }
    }
    content
}

fn take_places(rest: &mut &[&str]) -> Vec<Hunk> {
    let mut places = Vec::new();
    let mut place = Hunk::default();
    loop {
        // The only line with stars that does not end a section.
        let at_end = rest
            .first()
            .is_some_and(|line| line.trim_end() == END_OF_FILE);
        let line = if at_end {
            *rest = rest.get(1..).unwrap_or_default();
            place.at_end = true;
            None
        } else {
            next_of_section(rest)
        };
        let context = line.and_then(|line| line.strip_prefix("@@"));
        if let (Some(line), None) = (line, context) {
            place.lines.extend(read_line(line));
            continue;
        }
        if place.lines.iter().any(|line| *line != Line::Bare) {
            places.push(std::mem::take(&mut place));
        }
        place = Hunk::default();
        match context.map(str::trim) {
            Some(context) if !context.is_empty() => place.context = Some(context.to_owned()),
            Some(_) => {}
            None if at_end => {}
            None => return places,
        }
    }
}

fn read_line(line: &str) -> Option<Line> {
    let bare = line.trim_end_matches('\r');
    let mut chars = bare.chars();
    let sign = chars.next();
    let rest = chars.as_str().to_owned();
    match sign {
        None => Some(Line::Bare),
        Some(' ') => Some(Line::Keep(rest)),
        Some('-') => Some(Line::Remove(rest)),
        Some('+') => Some(Line::Insert(rest)),
        Some(_) => None,
    }
}

fn next_of_section<'a>(rest: &mut &[&'a str]) -> Option<&'a str> {
    let (first, behind) = rest.split_first()?;
    if first.starts_with("***") {
        return None;
    }
    *rest = behind;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(sections) => format!("{sections:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn sections_are_read_as_opencode_reads_them() {
        let missing = "Invalid patch format: missing Begin/End markers";
        let add = r#"[Add { path: "a", content: "x\n" }]"#;
        for (text, want) in [
            ("", missing),
            ("*** Begin Patch\n*** Add File: a\n+x", missing),
            ("*** End Patch\n*** Begin Patch", missing),
            ("*** Begin Patch\n*** End Patch", "[]"),
            ("*** Begin Patch\n*** Add File: \n+x\n*** End Patch", "[]"),
            (
                "talk\n  *** Begin Patch \n*** Add File: a\n+x\n*** End Patch\nmore",
                add,
            ),
            (
                "<<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF",
                add,
            ),
            (
                "cat <<EOF\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF\n",
                add,
            ),
            (
                "*** Begin Patch\n*** Add File: a\nno sign\n+x\n*** End Patch",
                add,
            ),
            (
                "*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n",
                r#"[Add { path: "a", content: "x\r\n" }]"#,
            ),
            (
                "*** Begin Patch\n*** Delete File: a b\n*** Add File: c\n*** End Patch",
                r#"[Delete { path: "a b" }, Add { path: "c", content: "" }]"#,
            ),
            (
                "*** Begin Patch\n*** Update File: a\n*** Move to: b/c\n*** End Patch",
                r#"[Update { path: "a", to: Some("b/c"), places: [] }]"#,
            ),
            (
                "*** Begin Patch\n*** Update File: a\n@@ fn x()\n k\n-r\n+i\n*** End of File\n@@\n-z\n*** End Patch",
                r#"[Update { path: "a", to: None, places: [Hunk { context: Some("fn x()"), lines: [Keep("k"), Remove("r"), Insert("i")], at_end: true }, Hunk { context: None, lines: [Remove("z")], at_end: false }] }]"#,
            ),
            (
                "*** Begin Patch\n*** Update File: a\n-r\n+i\n\n*** End Patch",
                r#"[Update { path: "a", to: None, places: [Hunk { context: None, lines: [Remove("r"), Insert("i"), Bare], at_end: false }] }]"#,
            ),
        ] {
            assert_eq!(shown(text), want, "{text:?}");
        }
        assert!(is_empty(" *** Begin Patch\r\n*** End Patch\n"));
        assert!(!is_empty("*** Begin Patch\n*** x\n*** End Patch"));
    }
}
