//! Secrets of the user that the model can type by name, without reading them.

use std::collections::BTreeMap;

use outrigger_browser_core::frame::{FrameSite, may_type};
use outrigger_browser_core::masked::mask;
use serde_json::Value;

use crate::error::BrowserError;

/// Values shorter than this are not masked in pages, because they would match everywhere.
const MIN_HIDDEN: usize = 4;

/// Secrets, each with the hosts at which it may be typed.
#[derive(Clone, Default)]
pub struct Secrets {
    /// By name: pattern of hosts, and value.
    all: BTreeMap<String, (String, String)>,
}

/// Values are not shown.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}

impl Secrets {
    /// Reads a list of `NAME@HOST` with their values. Entries without a value or host are ignored.
    #[must_use]
    pub fn of(list: &[String], value: impl Fn(&str) -> Option<String>) -> Self {
        let mut all = BTreeMap::new();
        for entry in list {
            let Some((name, host)) = entry.split_once('@').filter(|(_, host)| !host.is_empty())
            else {
                tracing::warn!(
                    "browser.secrets: {entry:?} names no host, as NAME@example.com; it is not typed anywhere"
                );
                continue;
            };
            match value(name).filter(|it| !it.is_empty()) {
                Some(value) => {
                    all.insert(name.to_owned(), (host.to_owned(), value));
                }
                None => tracing::warn!("browser.secrets: the environment has no {name}"),
            }
        }
        Self { all }
    }

    /// Returns the value of a secret for a field in these frames, from the innermost to the page.
    ///
    /// # Errors
    /// [`BrowserError::Secret`].
    pub(crate) fn get(&self, name: &str, frames: &[FrameSite]) -> Result<&str, BrowserError> {
        let found = self.all.get(name);
        let hosts = found.map(|(hosts, _)| hosts.as_str());
        may_type(name, hosts, frames).map_err(BrowserError::Secret)?;
        Ok(found.map_or("", |(_, value)| value))
    }

    /// Replaces secrets by their names in all strings of a JSON value.
    pub(crate) fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.hide(text),
            Value::Array(all) => all.iter_mut().for_each(|it| self.hide_in(it)),
            Value::Object(all) => all.values_mut().for_each(|it| self.hide_in(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces secrets by their names, in all encodings ([`mask`]).
    pub(crate) fn hide(&self, text: &mut String) {
        for (name, (_, value)) in &self.all {
            if value.len() >= MIN_HIDDEN {
                *text = mask(text, value, &format!("[secret {name}]"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_for_their_hosts_and_are_not_shown() {
        let list = [
            "PASS@*.shop.example".to_owned(),
            "NONE@x".to_owned(),
            "LOST".to_owned(),
        ];
        let secrets = Secrets::of(&list, |name| {
            (name != "NONE").then(|| "hunter22".to_owned())
        });
        let page = |host: &str| {
            [FrameSite {
                origin: format!("https://{host}"),
                url: String::new(),
            }]
        };
        assert_eq!(
            secrets.get("PASS", &page("a.shop.example")).unwrap(),
            "hunter22"
        );
        for (name, host) in [
            ("PASS", "shop.example.evil"),
            ("NONE", "x"),
            ("LOST", "x"),
            ("OTHER", "x"),
        ] {
            assert_eq!(
                secrets.get(name, &page(host)).unwrap_err().code(),
                "browser.secret",
                "{name} {host}"
            );
        }
        let mut text = "it is hunter22!".to_owned();
        secrets.hide(&mut text);
        assert_eq!(text, "it is [secret PASS]!");
        assert_eq!(format!("{secrets:?}"), r#"{"PASS"}"#);
    }
}
