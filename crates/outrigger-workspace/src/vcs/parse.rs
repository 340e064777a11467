//! Parses git's output.

use std::collections::BTreeMap;

use super::Change;

pub(super) fn change(code: &str) -> Change {
    if code == "??" || code.contains('A') {
        Change::Added
    } else if code.contains('D') {
        Change::Deleted
    } else {
        Change::Modified
    }
}

/// Parses a line of `git diff --numstat`; binary files have `-` for numbers.
pub(super) fn count(line: &str) -> Option<(String, (u64, u64))> {
    let mut columns = line.splitn(3, '\t');
    let mut number = || Some(columns.next()?.parse().unwrap_or(0));
    let counts = (number()?, number()?);
    Some((columns.next()?.to_owned(), counts))
}

/// Splits a patch by file.
pub(super) fn split(patch: &str) -> BTreeMap<String, String> {
    let mut files: Vec<String> = Vec::new();
    for line in patch.split_inclusive('\n') {
        match files.last_mut() {
            Some(file) if !line.starts_with("diff --git ") => file.push_str(line),
            _ => files.push(line.to_owned()),
        }
    }
    files
        .into_iter()
        .filter_map(|file| Some((name(&file)?, file)))
        .collect()
}

/// Returns the file of a piece of a patch: from the `+++` or `---` line, otherwise (mode changes, binary and empty
/// files) from the first line, whose two names are equal since renames are off.
fn name(patch: &str) -> Option<String> {
    let named = |start: &str| {
        let line = patch.lines().take_while(|l| !l.starts_with("@@"));
        let mut found = line.filter_map(|line| line.strip_prefix(start));
        let name = found.next()?.trim_end_matches('\t');
        Some(name.trim_matches('"').to_owned())
    };
    named("+++ b/").or_else(|| named("--- a/")).or_else(|| {
        let both = patch.lines().next()?.strip_prefix("diff --git a/")?;
        // `x b/x`: three characters separate two names of the same length.
        both.get(..both.len().checked_sub(3)? / 2)
            .map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_distinguished_by_their_file() {
        let patch = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\t\n+++ b/a b.txt\t\n@@ -1 +1 @@\n-+++ b/no\n+x\n\
diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";
        let files: Vec<String> = split(patch).into_keys().collect();
        assert_eq!(files, ["a b.txt", "gone", "run.sh"]);
        assert_eq!(
            split(patch).into_values().collect::<String>().len(),
            patch.len()
        );
    }

    #[test]
    fn counts_of_binary_files_are_none() {
        assert_eq!(count("3\t1\ta\tb"), Some(("a\tb".into(), (3, 1))));
        assert_eq!(count("-\t-\tx.png"), Some(("x.png".into(), (0, 0))));
        assert_eq!(count(""), None);
    }
}
