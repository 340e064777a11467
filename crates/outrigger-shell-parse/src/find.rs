//! Programs started by `find` and `fd`.

use crate::wrappers::{Inner, fill};
use crate::{UNKNOWN, Word};

/// Parses `find … -exec PROGRAM … ;`.
pub(crate) fn read(arguments: &[Word]) -> Option<Vec<Inner>> {
    let mut found = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        // A word that starts with something unknown may be an option, and a variable may be several
        // words.
        let may_be_option = word.value.starts_with([UNKNOWN, '-']);
        let may_be_many = word.raw.contains('$') && !word.is_one();
        if word.known().is_none() && (may_be_option || may_be_many) {
            return None;
        }
        let is_there = match word.value.as_str() {
            "-exec" | "-ok" => false,
            "-execdir" | "-okdir" => true,
            _ => continue,
        };
        let mut inner: Vec<Word> = Vec::new();
        loop {
            let next = words.next()?;
            let ends = match next.known()? {
                ";" => true,
                "+" => inner.last().is_some_and(|last| last.value == "{}"),
                _ => false,
            };
            if ends {
                break;
            }
            inner.push(next.clone());
        }
        fill(&mut inner, Some("{}"));
        found.push(if is_there {
            Inner::Anywhere(inner)
        } else {
            Inner::Words(inner)
        });
    }
    Some(found)
}

/// Returns whether a call of `fd` starts a program, or may.
pub(crate) fn fd_runs(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| match word.value.as_str() {
        text if text.starts_with("--") => text.starts_with("--exec"),
        text => text.starts_with(UNKNOWN) || text.starts_with('-') && text.contains(['x', 'X']),
    })
}
