//! Parts of addresses.

/// The host of an address or origin; empty where it has none.
pub(crate) fn host_of(url: &str) -> String {
    url::Url::parse(url)
        .ok()
        .and_then(|it| it.host_str().map(str::to_owned))
        .unwrap_or_default()
}

/// An address without what may be a secret.
pub(crate) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}
