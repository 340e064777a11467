//! Persistent state: the last received message, and the session of each chat.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_files::Readers;
use outrigger_stdx::sync::lock;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    kept: Mutex<StoredState>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
struct StoredState {
    /// The number of the next message.
    next: i64,
    /// Session by chat.
    sessions: BTreeMap<i64, String>,
}

impl State {
    /// Opens a file. A missing one, or an unreadable one, which is logged, starts empty.
    pub(crate) fn open(path: &Path) -> Self {
        let kept = match outrigger_files::read(path, outrigger_files::DATA) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(
                    "[telegram] cannot read {}: {error}; chats begin anew",
                    path.display()
                );
                StoredState::default()
            }),
            Err(_) => StoredState::default(),
        };
        Self {
            path: path.to_owned(),
            kept: Mutex::new(kept),
        }
    }

    /// Returns the number of the next message.
    pub(crate) fn next(&self) -> i64 {
        lock(&self.kept).next
    }

    /// Records a received message.
    pub(crate) fn took(&self, id: i64) -> Result<(), String> {
        self.change(|kept| kept.next = kept.next.max(id + 1))
    }

    pub(crate) fn session(&self, chat: i64) -> Option<String> {
        let kept = lock(&self.kept);
        kept.sessions.get(&chat).cloned()
    }

    pub(crate) fn talks_to(&self, chat: i64, session: Option<String>) -> Result<(), String> {
        self.change(|kept| match session {
            Some(session) => drop(kept.sessions.insert(chat, session)),
            None => drop(kept.sessions.remove(&chat)),
        })
    }

    /// Written to a temporary file and renamed, so that a crash leaves the old or the new one.
    fn change(&self, change: impl FnOnce(&mut StoredState)) -> Result<(), String> {
        let mut kept = lock(&self.kept);
        let mut new = kept.clone();
        change(&mut new);
        if new == *kept {
            return Ok(());
        }
        let text = serde_json::to_vec(&new).map_err(|error| error.to_string())?;
        outrigger_files::replace(&self.path, &text, Readers::Owner)
            .map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        *kept = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_there_again_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telegram.json");
        let state = State::open(&path);
        assert_eq!((state.next(), state.session(7)), (0, None));
        state.took(41).unwrap();
        state.took(40).unwrap();
        state.talks_to(7, Some("ses_1".into())).unwrap();
        let again = State::open(&path);
        assert_eq!((again.next(), again.session(7)), (42, Some("ses_1".into())));
        again.talks_to(7, None).unwrap();
        assert_eq!(State::open(&path).session(7), None);
        fs::write(&path, "{").unwrap();
        assert_eq!(State::open(&path).next(), 0);
        let fresh = State::open(&dir.path().join("a folder/telegram.json"));
        fresh.took(1).unwrap();
        let nowhere = State::open(&path.join("telegram.json"));
        let error = nowhere.took(1).unwrap_err();
        assert!(
            error.starts_with("cannot write ") && error.contains("telegram.json"),
            "{error}"
        );
        assert_eq!(nowhere.next(), 0);
    }
}
