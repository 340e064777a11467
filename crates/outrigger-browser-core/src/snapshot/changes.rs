//! Changes between two snapshots of a document.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Line, Snapshot};

/// Number of lines that are shown as changes even of a small page.
const FEW: usize = 8;

/// Returns lines that were added (`+`), removed (`-`) or changed (`~`). `None` if it is another document, or if most of it has changed and the
/// whole snapshot is shorter.
#[must_use]
pub fn changes(before: &Snapshot, after: &Snapshot) -> Option<String> {
    if before.document != after.document {
        return None;
    }
    let mut out: Vec<String> = Vec::new();
    let mut old: BTreeMap<u32, &Line> = BTreeMap::new();
    let mut texts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &before.lines {
        match line.reference {
            Some(reference) => {
                old.insert(reference, line);
            }
            None => *texts.entry(&line.text).or_default() += 1,
        }
    }
    if before.url != after.url {
        out.push(format!("~ address {}\n", after.url));
    }
    if before.title != after.title {
        out.push(format!("~ title {:?}\n", after.title));
    }
    for line in &after.lines {
        let Some(reference) = line.reference else {
            match texts.get_mut(line.text.as_str()).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => out.push(format!("+ {}\n", line.text)),
            }
            continue;
        };
        match old.remove(&reference) {
            None => out.push(format!("+ {}", line.shown(line.depth))),
            Some(was) if was.text != line.text => out.push(format!("~ {}", line.shown(line.depth))),
            Some(_) => {}
        }
    }
    out.extend(
        old.values()
            .map(|line| format!("- {}", line.shown(line.depth))),
    );
    let gone = texts.into_iter().filter(|(_, left)| *left > 0);
    out.extend(gone.map(|(text, _)| format!("- {text}\n")));
    let (size, whole) = (
        out.iter().map(String::len).sum::<usize>(),
        after.text().len(),
    );
    (size * 3 <= whole * 2 || out.len() <= FEW).then(|| out.concat())
}
