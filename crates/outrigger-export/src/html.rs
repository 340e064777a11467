//! A single HTML file: the page of `outrigger web` with a conversation in it. It makes no requests.
//!
//! The conversation is JSON in an element that browsers do not execute, and `<` is written as `\u003c` in it, so that no text can end
//! the element. The page's policy allows two texts by their digests: the script and the style of the page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::document::Document;
use crate::error::ExportError;

/// The files of the page that are embedded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The script, which must not contain `</script`.
    pub script: String,
    /// The style, which must not contain `</style`.
    pub style: String,
}

impl Page {
    /// Returns the files built before this program.
    ///
    /// # Errors
    /// [`ExportError::NoPage`] if there are none.
    pub fn built() -> Result<Self, ExportError> {
        let text = |name| {
            let file = outrigger_web::file(name)?;
            String::from_utf8(file.bytes.to_vec()).ok()
        };
        let script = text("export.js").filter(|it| !ends(it, "script"));
        let style = text("export.css").filter(|it| !ends(it, "style"));
        let (script, style) = script.zip(style).ok_or(ExportError::NoPage)?;
        Ok(Self { script, style })
    }
}

/// Returns whether a text would end its element.
fn ends(text: &str, element: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains(&format!("</{element}")) || text.contains("<!--")
}

/// Returns the content of the file.
///
/// # Errors
/// A value that is not JSON.
pub fn html(document: &Document, page: &Page) -> Result<String, ExportError> {
    let title = document
        .conversations
        .first()
        .map_or("", |first| first.conversation.title.as_str());
    let title = escaped(title);
    let data = data(document)?;
    let Page { script, style } = page;
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        digest(script),
        digest(style)
    );
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1, viewport-fit=cover\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<div id=\"root\"></div>\n\
         <noscript>This file needs JavaScript, of which it brings its own and runs no other.</noscript>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    ))
}

fn data(document: &Document) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(document)?;
    // In JSON these occur only in strings.
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026"))
}

fn escaped(text: &str) -> String {
    outrigger_terminal::name(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
