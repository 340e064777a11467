//! The files of the page, by name. Only listed names exist: there is no folder that a name could escape.

use include_dir::{Dir, include_dir};

/// The folder exists in every clone, and is empty until the page is built. `cargo xtask web` touches this file, so that it is
/// re-read.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../web/dist");

/// The start file of the page.
pub const INDEX: &str = "index.html";

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Its contents.
    pub bytes: &'static [u8],
    /// Its media type.
    pub media_type: &'static str,
    /// Whether its name contains a digest of its content (added by Vite), so that it never changes.
    pub is_permanent: bool,
}

/// Returns whether the page was built with this program.
#[must_use]
pub fn is_built() -> bool {
    file(INDEX).is_some()
}

/// Returns a file by its name.
#[must_use]
pub fn file(name: &str) -> Option<File> {
    if name.starts_with('.') {
        return None;
    }
    Some(File {
        bytes: FILES.get_file(name)?.contents(),
        media_type: media_type(name),
        is_permanent: name != INDEX,
    })
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_or_not_and_leads_nowhere() {
        for name in [
            "",
            ".",
            "..",
            "../index.html",
            "/index.html",
            "./index.html",
            ".gitignore",
        ] {
            assert_eq!(file(name), None, "{name}");
        }
        for file in FILES.files() {
            let name = file.path().to_str().unwrap();
            if let Some(found) = super::file(name) {
                assert_eq!(found.bytes, file.contents());
                assert_ne!(found.media_type, "application/octet-stream", "{name}");
            }
        }
        assert_eq!(is_built(), FILES.files().count() > 1);
    }
}
