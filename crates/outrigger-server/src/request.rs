//! Common parts of requests: a folder, and a body with a limit.

use axum::extract::{Query, Request};

/// Maximum bytes of a request's body: a prompt may contain images.
pub(crate) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Returns the folder that a request names: `directory` of the query or `location[directory]` in the newer form,
/// otherwise the header, which the SDK percent-encodes.
pub(crate) fn directory_of(request: &Request) -> Option<String> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok();
    let named = query.and_then(|Query(pairs)| {
        let of = |name: &str| {
            pairs
                .iter()
                .find(|(key, value)| key == name && !value.is_empty())
                .map(|(_, value)| value.clone())
        };
        of("directory").or_else(|| of("location[directory]"))
    });
    named.or_else(|| {
        let header = request.headers().get("x-opencode-directory")?;
        let header = std::str::from_utf8(header.as_bytes()).ok()?;
        (!header.is_empty()).then(|| decoded(header))
    })
}

/// Decodes percent-encoding; returns the text unchanged if it is invalid.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            }
            _ => return text.to_owned(),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn the_folder_that_a_request_names() {
        for (uri, header, named) in [
            ("/session", None, None),
            ("/session?directory=%2Fa%20b", None, Some("/a b")),
            ("/session?directory=/q", Some("%2Fh"), Some("/q")),
            ("/session?directory=", Some("%2Fh%2Fx%20y"), Some("/h/x y")),
            ("/api/x?location[directory]=/l", Some("/h"), Some("/l")),
            ("/session", Some("/plain"), Some("/plain")),
            ("/session", Some("/100%"), Some("/100%")),
            ("/session", Some("/%zz"), Some("/%zz")),
            ("/session", Some(""), None),
        ] {
            let mut request = Request::builder().uri(uri);
            if let Some(header) = header {
                request = request.header("x-opencode-directory", header);
            }
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(directory_of(&request).as_deref(), named, "{uri} {header:?}");
        }
    }
}
