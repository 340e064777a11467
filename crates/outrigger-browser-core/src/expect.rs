//! Whether an action had its effect (C12). Expectations are compared with what is observed in a tab. An unmet one is
//! `failed_verify`, with what was observed instead, and nothing can turn it into a success (C9, 7).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::pattern::matches;

/// Status of a failed verification. The kernel's guard protects it (`outrigger_kernel::guard::PLACES`).
pub const FAILED: &str = "failed_verify";
/// Status of a successful verification.
pub const VERIFIED: &str = "verified";
/// Status if nothing was expected and nothing observable changed.
pub const UNCHANGED: &str = "unchanged";
/// Default timeout of expectations, in milliseconds.
pub const WAIT_MS: u64 = 5_000;
/// Maximum timeout of expectations, in milliseconds.
pub const MAX_WAIT_MS: u64 = 60_000;
/// Maximum length of the report of what was observed, in characters.
const MAX_SEEN: usize = 160;

/// An expectation. All given keys must be met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// The address: a part of it, or all of it with `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The title: a part of it, or all of it with `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Text that must be visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Text that must be gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// A reference, such as `e12`; with `value` or `state`, otherwise it must exist.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A role, such as `button`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The name of an element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of elements with that role and name. 0: gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// The value of the element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// A state of the element, such as `checked`; `!checked`: without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// A request since the action: a part of its address, or all of it with `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Its method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Status of its response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// No errors on the console since the action.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub no_console_error: bool,
    /// A complete download: a part of its name, or all of it with `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download: Option<String>,
    /// The page must have stopped moving.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub stable: bool,
}

/// An observed element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its reference, such as `e12`; empty if it has none.
    pub reference: String,
    /// Role.
    pub role: String,
    /// Name.
    pub name: String,
    /// Value.
    pub value: Option<String>,
    /// States.
    pub states: Vec<String>,
}

/// An observed request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Address.
    pub url: String,
    /// Status of its response, if there is one.
    pub status: Option<u16>,
}

/// A download.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Download {
    /// Its name.
    pub name: String,
    /// Whether it is complete.
    pub complete: bool,
}

/// Observations of a tab.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// Text with its white space.
    pub text: String,
    /// Elements.
    pub elements: Vec<Element>,
    /// Requests since the action.
    pub requests: Vec<Request>,
    /// Errors on the console since the action.
    pub errors: Vec<String>,
    /// Downloads since the action.
    pub downloads: Vec<Download>,
    /// Whether nothing has moved since the last observation.
    pub stable: bool,
}

/// An unmet expectation, or part of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// What was expected.
    pub expected: String,
    /// What was observed.
    pub seen: String,
}

impl Unmet {
    /// Creates it with a shortened observation.
    fn new(expected: String, seen: &str) -> Self {
        Self {
            expected,
            seen: short(seen),
        }
    }
}

impl Expectation {
    /// Returns whether it has any key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns its unmet parts.
    #[must_use]
    pub fn unmet(&self, facts: &Facts) -> Vec<Unmet> {
        let mut found = Vec::new();
        self.page_unmet(facts, &mut found);
        self.records_unmet(facts, &mut found);
        found.extend(self.request_unmet(facts));
        found.extend(self.element_unmet(facts));
        found
    }

    /// Address, title and text.
    fn page_unmet(&self, facts: &Facts, found: &mut Vec<Unmet>) {
        if let Some(url) = self.url.as_ref().filter(|it| !matches(it, &facts.url)) {
            found.push(Unmet::new(format!("the address {url}"), &facts.url));
        }
        if let Some(title) = self.title.as_ref().filter(|it| !matches(it, &facts.title)) {
            let seen = format!("{:?}", facts.title);
            found.push(Unmet::new(format!("the title {title:?}"), &seen));
        }
        if let Some(text) = self.text.as_ref().filter(|it| !has(&facts.text, it)) {
            let seen = near(&facts.text, text);
            found.push(Unmet::new(format!("the text {text:?}"), &seen));
        }
        if let Some(text) = self.gone.as_ref().filter(|it| has(&facts.text, it)) {
            let expected = format!("the text {text:?} gone");
            found.push(Unmet::new(expected, "it is still there"));
        }
    }

    /// Console, movement, downloads.
    fn records_unmet(&self, facts: &Facts, found: &mut Vec<Unmet>) {
        if let Some(first) = facts.errors.first().filter(|_| self.no_console_error) {
            found.push(Unmet::new("no error on the console".into(), first));
        }
        if self.stable && !facts.stable {
            let expected = "a page that does not change".into();
            found.push(Unmet::new(expected, "it still changes"));
        }
        let Some(name) = &self.download else { return };
        let mut named = facts.downloads.iter().filter(|it| matches(name, &it.name));
        if named.any(|it| it.complete) {
            return;
        }
        let seen = match facts.downloads.first() {
            None => "no download".to_string(),
            Some(it) if it.complete => format!("{:?}", it.name),
            Some(it) => format!("{:?}, which is not complete", it.name),
        };
        found.push(Unmet::new(
            format!("the download {name:?}, complete"),
            &seen,
        ));
    }

    fn request_unmet(&self, facts: &Facts) -> Option<Unmet> {
        if self.request.is_none() && self.method.is_none() && self.status.is_none() {
            return None;
        }
        let (url, method) = (
            self.request.as_deref().unwrap_or("*"),
            self.method.as_deref(),
        );
        let asked = |it: &&Request| {
            matches(url, &it.url)
                && method.is_none_or(|method| method.eq_ignore_ascii_case(&it.method))
        };
        let answered = |it: &&Request| self.status.is_none_or(|status| it.status == Some(status));
        if facts.requests.iter().filter(asked).any(|it| answered(&it)) {
            return None;
        }
        let status = self
            .status
            .map(|it| format!(" with the status {it}"))
            .unwrap_or_default();
        let seen = match facts.requests.iter().rfind(asked).or(facts.requests.last()) {
            None => "no request was made".to_string(),
            Some(it) => match it.status {
                Some(status) => format!("{} {} with the status {status}", it.method, it.url),
                None => format!("{} {}, not answered", it.method, it.url),
            },
        };
        let expected = format!("a request {} {url}{status}", method.unwrap_or("to"));
        Some(Unmet {
            expected,
            seen: short(&seen),
        })
    }

    fn element_unmet(&self, facts: &Facts) -> Option<Unmet> {
        if self.target.is_none() && self.role.is_none() && self.name.is_none() {
            return None;
        }
        let named = |it: &&Element| {
            self.target
                .as_ref()
                .is_none_or(|it_is| *it_is == it.reference)
                && self.role.as_ref().is_none_or(|role| *role == it.role)
                && self.name.as_ref().is_none_or(|name| has(&it.name, name))
        };
        let fits = |it: &&Element| {
            self.value
                .as_ref()
                .is_none_or(|value| it.value.as_ref() == Some(value))
                && self
                    .state
                    .as_ref()
                    .is_none_or(|state| match state.strip_prefix('!') {
                        Some(state) => it.states.iter().all(|it| it != state),
                        None => it.states.contains(state),
                    })
        };
        let all: Vec<&Element> = facts.elements.iter().filter(named).collect();
        let fitting = all.iter().filter(|it| fits(it)).count();
        let holds = self.count.map_or(fitting > 0, |count| fitting == count);
        if holds {
            return None;
        }
        let seen = match (self.count, all.first()) {
            (_, None) => "there is none".to_string(),
            (Some(_), _) => format!("there are {fitting}"),
            (None, Some(it)) => {
                format!(
                    "{} {:?} has the value {:?} and the states {:?}",
                    it.role,
                    it.name,
                    it.value.as_deref().unwrap_or(""),
                    it.states
                )
            }
        };
        Some(Unmet {
            expected: self.element_words(),
            seen: short(&seen),
        })
    }

    fn element_words(&self) -> String {
        let mut words = match self.count {
            Some(0) => "no".to_string(),
            Some(count) => format!("{count} times"),
            None => "an element".to_string(),
        };
        for word in [&self.target, &self.role].into_iter().flatten() {
            words.push(' ');
            words.push_str(word);
        }
        if let Some(name) = &self.name {
            words.push_str(&format!(" {name:?}"));
        }
        if let Some(value) = &self.value {
            words.push_str(&format!(" with the value {value:?}"));
        }
        if let Some(state) = &self.state {
            words.push_str(&format!(" that is {state}"));
        }
        words
    }
}

/// Returns the unmet parts of several expectations.
#[must_use]
pub fn unmet(all: &[Expectation], facts: &Facts) -> Vec<Unmet> {
    all.iter().flat_map(|it| it.unmet(facts)).collect()
}

/// Returns the model's text for a failed verification. The tool runtime restores it if a hook removes it.
#[must_use]
pub fn sentence(unmet: &[Unmet]) -> String {
    let parts: Vec<String> = unmet
        .iter()
        .map(|it| format!("expected {}, but {}", it.expected, seen_words(&it.seen)))
        .collect();
    format!("{FAILED}: {}", parts.join("; "))
}

fn seen_words(seen: &str) -> String {
    match seen {
        "" => "saw nothing of it".into(),
        seen => format!("saw: {seen}"),
    }
}

/// Returns whether a text contains another one; white space of any kind and length counts as one blank.
fn has(text: &str, part: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    flat(text).contains(flat(part).as_str())
}

/// Returns the beginning of the text, or the part around the first expected word.
fn near(text: &str, part: &str) -> String {
    let word = part.split_whitespace().next().unwrap_or_default();
    let at = if word.is_empty() {
        None
    } else {
        text.find(word)
    };
    let from = text.get(at.unwrap_or_default()..).unwrap_or_default();
    format!("{:?}", short(from))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_SEEN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests;
