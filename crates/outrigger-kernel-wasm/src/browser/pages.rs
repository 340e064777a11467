//! What is known of the page of each tab: its references, what was observed last, what a model was shown last.

use std::collections::BTreeMap;

use outrigger_browser_core::expect::{self, Download, Expectation, Facts, Request};
use outrigger_browser_core::frame::{Inside, name_strangers};
use outrigger_browser_core::snapshot::{
    KeptReferences, Line, Node, References, Snapshot, changes, number, page,
};
use outrigger_browser_core::untrusted::mark;
use outrigger_kernel::permission::evaluate;
use outrigger_protocol::permission::{Action, Rule};
use serde::Deserialize;
use serde_json::json;

use crate::{Answer, Failure, text};

/// The permission whose patterns are addresses of pages.
const PERMISSION: &str = "browser";
/// Tokens of a snapshot where nothing is said.
const BUDGET: usize = 3_000;
/// Tokens of what has changed.
const CHANGES: usize = 800;

/// A page as its browser describes it, with what was recorded since an action began.
#[derive(Deserialize)]
pub(crate) struct Observed {
    tab: String,
    url: String,
    title: String,
    nodes: Vec<Node>,
    /// The origin of the page.
    #[serde(default)]
    origin: String,
    /// Which of the elements are of which frames.
    #[serde(default)]
    frames: Vec<Inside>,
    /// The rules that say which frames are not shown, in rising precedence.
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    requests: Vec<SeenRequest>,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    downloads: Vec<SeenDownload>,
}

#[derive(Deserialize)]
struct SeenRequest {
    method: String,
    url: String,
    status: Option<u16>,
}

#[derive(Deserialize)]
struct SeenDownload {
    name: String,
    complete: bool,
}

/// References of tabs, as they are kept.
pub(crate) type KeptPages = BTreeMap<String, KeptReferences>;

#[derive(Default)]
struct View {
    references: References,
    /// What was observed last.
    facts: Facts,
    now: Snapshot,
    shown: Option<Snapshot>,
}

/// The pages of all tabs.
#[derive(Default)]
pub(crate) struct Pages(BTreeMap<String, View>);

impl Pages {
    pub(crate) fn recall(kept: KeptPages) -> Self {
        let view = |references| View {
            references,
            ..View::default()
        };
        let kept = kept.into_iter();
        Self(
            kept.map(|(tab, kept)| (tab, view(References::recall(kept))))
                .collect(),
        )
    }

    pub(crate) fn keep(&self) -> KeptPages {
        self.0
            .iter()
            .map(|(tab, view)| (tab.clone(), view.references.keep()))
            .collect()
    }

    pub(crate) fn forget(&mut self, tab: &str) {
        self.0.remove(tab);
    }

    /// Takes a page in, and answers with its text: what its hash is made of.
    pub(crate) fn observe(&mut self, mut it: Observed) -> String {
        for frame in &mut it.frames {
            let address = frame.site.address();
            frame.denied = evaluate(PERMISSION, &address, &[&it.rules]) == Action::Deny;
        }
        name_strangers(&mut it.nodes, &it.origin, &it.frames);
        let view = self.0.entry(it.tab).or_default();
        let words: Vec<&str> = it
            .nodes
            .iter()
            .filter(|node| node.role == "text")
            .map(|node| node.name.as_str())
            .collect();
        let words = words.join(" ");
        let (snapshot, elements) = Snapshot::of(&it.url, &it.title, it.nodes, &mut view.references);
        let requests = it.requests.into_iter().map(|it| Request {
            method: it.method,
            url: it.url,
            status: it.status,
        });
        let downloads = it.downloads.into_iter().map(|it| Download {
            name: it.name,
            complete: it.complete,
        });
        view.facts = Facts {
            url: it.url,
            title: it.title,
            text: words,
            elements,
            requests: requests.collect(),
            errors: it.errors,
            downloads: downloads.collect(),
            stable: view.now == snapshot,
        };
        view.now = snapshot;
        json!({ "text": view.now.text(), "stable": view.facts.stable }).to_string()
    }

    /// What a model reads of the page: what has changed since it was shown, a part, a page of it, or all.
    pub(crate) fn show(
        &mut self,
        tab: &str,
        reference: Option<&str>,
        full: bool,
        number_of_page: Option<usize>,
        budget: Option<usize>,
    ) -> Answer {
        let view = self.view(tab)?;
        let before = view.shown.replace(view.now.clone());
        let now = &view.now;
        let whole = full || budget.is_some() || number_of_page.is_some_and(|it| it > 1);
        let paged = |lines: &[Line]| {
            let page = page(lines, budget.unwrap_or(BUDGET), number_of_page.unwrap_or(1));
            let more = match page.of {
                0 | 1 => String::new(),
                of => format!(
                    "(page {} of {of}; `page` shows another one, `ref` a part)",
                    page.number
                ),
            };
            mark(
                &now.url,
                &format!("title {:?}\n{}{more}", now.title, page.text),
            )
        };
        let shown = match reference {
            Some(reference) => {
                let below = number(reference).map(|it| now.below(it));
                match below.filter(|it| !it.is_empty()) {
                    Some(below) => paged(&below),
                    None => return Err(stale(reference)),
                }
            }
            None => {
                let changed = before
                    .filter(|_| !whole)
                    .and_then(|before| changes(&before, now));
                match changed {
                    Some(it) if it.is_empty() => {
                        "Nothing has changed since the last snapshot.".to_owned()
                    }
                    Some(it) => mark(&now.url, &format!("changed since the last snapshot:\n{it}")),
                    None => paged(&now.lines),
                }
            }
        };
        Ok(text(&shown))
    }

    /// What has changed since the page was shown, for the answer of an action.
    pub(crate) fn changed(&mut self, tab: &str) -> Answer {
        let view = self.view(tab)?;
        let before = view.shown.replace(view.now.clone());
        let changed = before.and_then(|before| changes(&before, &view.now));
        let shown = match changed {
            Some(it) if it.is_empty() => it,
            Some(it) if it.len() <= CHANGES * 4 => format!("changed:\n{it}"),
            _ => {
                let page = page(&view.now.lines, CHANGES, 1);
                let more = match page.of {
                    0 | 1 => "",
                    _ => "(browser_snapshot shows the rest)",
                };
                format!(
                    "the page now, title {:?}:\n{}{more}",
                    view.now.title, page.text
                )
            }
        };
        Ok(text(&shown))
    }

    pub(crate) fn unmet(&mut self, tab: &str, expected: &[Expectation]) -> Answer {
        if expected.iter().any(Expectation::is_empty) {
            return Err(Failure::new("kernel.request", "`expect` is empty"));
        }
        let unmet = expect::unmet(expected, &self.view(tab)?.facts);
        let sentence = if unmet.is_empty() {
            String::new()
        } else {
            expect::sentence(&unmet)
        };
        Ok(json!({ "unmet": unmet, "sentence": sentence }).to_string())
    }

    pub(crate) fn element(&mut self, tab: &str, reference: &str) -> Answer {
        let view = self.view(tab)?;
        let key = view.references.key(reference).cloned();
        let number = number(reference);
        let line = view
            .now
            .lines
            .iter()
            .find(|it| it.reference.is_some() && it.reference == number);
        let words = line.map_or(String::new(), |it| it.text.clone());
        let key = key.ok_or_else(|| stale(reference))?;
        Ok(json!({ "key": key, "words": words }).to_string())
    }

    /// What was observed last of a tab, and the text of its page.
    pub(super) fn observed(&self, tab: &str) -> Result<(&Facts, String), Failure> {
        let view = self.0.get(tab).ok_or_else(|| missing(tab))?;
        Ok((&view.facts, view.now.text()))
    }

    fn view(&mut self, tab: &str) -> Result<&mut View, Failure> {
        self.0.get_mut(tab).ok_or_else(|| missing(tab))
    }
}

fn missing(tab: &str) -> Failure {
    Failure::new("kernel.place", format!("there is no tab {tab}"))
}

fn stale(reference: &str) -> Failure {
    let message = format!("{reference} leads nowhere: the page has changed; take a new snapshot");
    Failure::new("browser.stale", message)
}
