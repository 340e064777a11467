//! The files that a patch names: before it is applied, all of them must be readable and writable under the rules.

/// Returns the files that a patch reads or writes, as its lines name them.
pub(super) fn files(patch: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in patch.lines() {
        let line = line.trim_end_matches('\r');
        if let Some(both) = line.strip_prefix("diff --git ") {
            found.extend(pair(both));
        }
        for start in ["rename from ", "rename to ", "copy from ", "copy to "] {
            found.extend(line.strip_prefix(start).map(plain));
        }
        // `rename old` and `rename new` are the form of old versions, which git still accepts.
        for start in ["rename old ", "rename new "] {
            found.extend(line.strip_prefix(start).map(plain));
        }
        for start in ["--- ", "+++ "] {
            if let Some(name) = line.strip_prefix(start) {
                // A time may follow a tab.
                let name = name.split('\t').next().unwrap_or_default();
                found.extend(cut(&plain(name)));
            }
        }
    }
    found.retain(|name| name != "/dev/null" && name != "dev/null");
    found.sort();
    found.dedup();
    found
}

/// Returns the two names of a first line: quoted, or halves of equal length (different names are in separate
/// lines).
fn pair(both: &str) -> Vec<String> {
    if both.contains('"') {
        let mut names = Vec::new();
        let mut rest = both;
        while !rest.is_empty() {
            let (name, behind) = match rest.strip_prefix('"') {
                Some(inner) => quoted(inner),
                None => match rest.split_once(' ') {
                    Some((name, behind)) => (name.to_owned(), behind),
                    None => (rest.to_owned(), ""),
                },
            };
            names.extend(cut(&name));
            rest = behind.trim_start();
        }
        return names;
    }
    let mut names = Vec::new();
    for (at, _) in both.match_indices(' ') {
        let (one, other) = both.split_at(at);
        let (one, other) = (cut(one), cut(other.trim_start()));
        if one == other {
            names.extend(one);
        }
    }
    names
}

/// Removes the first component, `a/` or `b/`.
fn cut(name: &str) -> Option<String> {
    let (_, rest) = name.split_once('/')?;
    Some(rest.trim_start_matches('/').to_owned())
}

fn plain(name: &str) -> String {
    match name.strip_prefix('"') {
        Some(inner) => quoted(inner).0,
        None => name.to_owned(),
    }
}

/// Returns the text up to the closing quote, unescaped, and the rest.
fn quoted(inner: &str) -> (String, &str) {
    let mut bytes = Vec::new();
    let mut rest = inner.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => {
                let behind = inner.get(at + 1..).unwrap_or_default();
                return (String::from_utf8_lossy(&bytes).into_owned(), behind);
            }
            '\\' => match rest.next() {
                Some((_, 'n')) => bytes.push(b'\n'),
                Some((_, 't')) => bytes.push(b'\t'),
                Some((from, '0'..='7')) => {
                    let digits = inner.get(from..from + 3).unwrap_or_default();
                    bytes.push(u8::from_str_radix(digits, 8).unwrap_or(b'?'));
                    rest.next();
                    rest.next();
                }
                Some((_, other)) => bytes.extend(other.to_string().into_bytes()),
                None => {}
            },
            other => bytes.extend(other.to_string().into_bytes()),
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_table() {
        for (patch, want) in [
            (
                "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
                vec!["x"],
            ),
            (
                "diff --git a/.env b/stolen.txt\nsimilarity index 100%\nrename from .env\nrename to stolen.txt\n",
                vec![".env", "stolen.txt"],
            ),
            ("diff --git a/a b b/a b\nnew mode 100755\n", vec!["a b"]),
            ("--- old/.env\t2020\n+++ new/.env\t2020\n", vec![".env"]),
            ("--- /dev/null\n+++ b/n/.env\n", vec!["n/.env"]),
            (
                "diff --git \"a/.\\145nv\" \"b/.\\145nv\"\nnew mode 100755\n",
                vec![".env"],
            ),
            (
                "rename from \"\\056env\"\nrename to \"t\\\"x\"\n",
                vec![".env", "t\"x"],
            ),
            ("copy from .env\ncopy to c\r\n", vec![".env", "c"]),
            ("rename old .env\nrename new c\n", vec![".env", "c"]),
            ("", vec![]),
        ] {
            assert_eq!(files(patch), want, "{patch:?}");
        }
    }
}
