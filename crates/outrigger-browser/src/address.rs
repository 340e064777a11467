//! Parts of addresses.

/// Returns the host of an address or origin; empty if it has none.
pub(crate) fn host_of(url: &str) -> String {
    url::Url::parse(url)
        .ok()
        .and_then(|it| it.host_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Returns an address without parts that may be secret.
pub(crate) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}
