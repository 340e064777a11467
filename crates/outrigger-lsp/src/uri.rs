//! `file://` URIs.

use std::path::{Path, PathBuf};

/// Returns the URI of an absolute path.
pub(crate) fn of_path(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Returns the path of a URI, if it names a file of this machine.
pub(crate) fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        if byte == b'%' {
            let high = char::from(left.next()?).to_digit(16)?;
            let low = char::from(left.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for path in ["/a/b.ts", "/a b/#1/ü%.py", "/"] {
            assert_eq!(to_path(&of_path(Path::new(path))), Some(path.into()));
        }
        for uri in [
            "file:///a%2",
            "file:///a%zz",
            "http://x/a",
            "untitled:1",
            "file://host/a",
        ] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
        assert_eq!(to_path("file://localhost/a"), Some("/a".into()));
    }
}
