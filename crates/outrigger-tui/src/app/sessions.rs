//! The list of sessions: their age, their folder, and of those with one title how each began.

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use outrigger_protocol::session::Session;
use serde_json::{Value, json};

use super::App;
use super::history::get;
use crate::render::text::inline;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind, Picker};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl App {
    /// Lists the top-level sessions. If some have one title, asks how they began.
    pub(crate) fn list_sessions(&mut self, mut all: Vec<Session>) -> Vec<Effect> {
        all.retain(|it| it.parent_id.is_none());
        let project = all.first().map(|it| it.project_id.clone());
        let items = newest_first(all, (self.clock)());
        let is_ambiguous = titles(&items).into_values().any(|count| count > 1);
        let own = self.session.as_ref().map(|it| it.id.to_string());
        self.fill(ListKind::Sessions, items, own.as_deref());
        let project = project.filter(|_| is_ambiguous);
        let path = project.map(|project| {
            let project = outrigger_client::encoded(&project);
            format!("/outrigger/v1/conversation?limit=100&project={project}")
        });
        path.map(|path| get(path, Then::Openings))
            .into_iter()
            .collect()
    }

    /// Handles a key of the list that renames or deletes the selected session, with OpenCode's keys; `None` for the others. Deleting
    /// takes the key twice.
    pub(crate) fn change_session(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let picker = self.picker.as_mut()?;
        let doomed = picker.subject.take();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let chosen = picker.chosen()?.clone();
        match key.code {
            KeyCode::Char('r') if control => {
                let title = format!("Title of {}", chosen.label);
                let id = chosen.value.as_str();
                self.picker = Some(Picker::typed(ListKind::Rename, title, id, &chosen.label));
                Some(Vec::new())
            }
            KeyCode::Char('d') if control && doomed.as_ref() == Some(&chosen.value) => {
                let id = chosen.value;
                Some(vec![Effect::Call {
                    method: "DELETE",
                    path: format!("/session/{}", outrigger_client::encoded(&id)),
                    body: None,
                    then: Then::Deleted(id),
                }])
            }
            KeyCode::Char('d') if control => {
                picker.subject = Some(chosen.value);
                Some(Vec::new())
            }
            _ => None,
        }
    }

    /// Shows how sessions with one title began.
    pub(crate) fn tell_apart(&mut self, page: &Value) {
        let picker = self.picker.as_mut();
        let Some(picker) = picker.filter(|it| it.kind == ListKind::Sessions) else {
            return;
        };
        let openings: HashMap<&str, &str> = page["conversations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some((it["id"].as_str()?, it["opening"].as_str()?)))
            .collect();
        let titles: HashMap<String, usize> = titles(picker.items())
            .into_iter()
            .map(|(title, count)| (title.to_owned(), count))
            .collect();
        picker.amend(|item| {
            let is_ambiguous = titles.get(&item.label).is_some_and(|count| *count > 1);
            if let Some(opening) = openings.get(item.value.as_str()).filter(|_| is_ambiguous) {
                item.detail = format!("{} · {}", item.detail, inline(opening));
            }
        });
    }
}

/// Requests another title for a session.
pub(crate) fn retitled(id: &str, title: &str, then: Then) -> Effect {
    Effect::Call {
        method: "PATCH",
        path: format!("/session/{}", outrigger_client::encoded(id)),
        body: Some(json!({ "title": title })),
        then,
    }
}

/// Returns sessions by their last use, latest first.
pub(crate) fn newest_first(mut all: Vec<Session>, now: u64) -> Vec<Item> {
    all.sort_by_key(|it| std::cmp::Reverse(it.time.updated));
    all.iter()
        .map(|it| {
            let mut detail = ago(now.saturating_sub(it.time.updated));
            if !it.path.is_empty() {
                detail = format!("{detail} · {}", inline(&it.path));
            }
            Item::new(it.id.as_str(), inline(&it.title), detail)
        })
        .collect()
}

fn titles(items: &[Item]) -> HashMap<&str, usize> {
    let mut titles = HashMap::new();
    for item in items {
        *titles.entry(item.label.as_str()).or_default() += 1;
    }
    titles
}

/// Returns a duration in milliseconds as an age.
fn ago(ms: u64) -> String {
    match ms {
        ..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", ms / MINUTE),
        HOUR..DAY => format!("{} h ago", ms / HOUR),
        DAY.. => format!("{} d ago", ms / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_in_their_largest_unit() {
        for (ms, want) in [
            (0, "just now"),
            (MINUTE - 1, "just now"),
            (MINUTE, "1 min ago"),
            (HOUR - 1, "59 min ago"),
            (3 * HOUR, "3 h ago"),
            (40 * DAY, "40 d ago"),
        ] {
            assert_eq!(ago(ms), want);
        }
    }
}
