//! Known projects, as listed by `GET /project`.
//!
//! A project is stored when an agent starts in it, under `project.info:ID` in the store's values: its name and path are not
//! part of any session's history.

use std::collections::BTreeSet;

use outrigger_protocol::Object;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::session::Project;
use outrigger_store::{Store, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::state::Agent;
use outrigger_stdx::clock::now_ms;

const KEY: &str = "project.info:";
/// Prefix of values written by [`crate::ProjectLocation`]: the project of a folder.
const FOLDER_KEY: &str = "project:";

/// Changes by `PATCH /project/{id}`. An absent key keeps the value, `null` removes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ProjectPatch {
    /// Display name.
    #[serde(default, deserialize_with = "given")]
    pub name: Option<Option<String>>,
    /// Keys of the icon: `url`, `override`, `color`.
    #[serde(default, deserialize_with = "given")]
    pub icon: Option<Option<Object>>,
    /// Commands: `start`.
    #[serde(default, deserialize_with = "given")]
    pub commands: Option<Option<Object>>,
}

fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

fn read(text: Option<String>) -> Option<Project> {
    serde_json::from_str(&text?).ok()
}

fn write(project: &Project) -> Option<String> {
    serde_json::to_string(project).ok()
}

/// Returns the stored project updated with what was detected now. A new or moved project is stored.
pub(crate) async fn remember(store: &Store, found: Project) -> Project {
    let key = format!("{KEY}{}", found.id);
    let known = read(store.meta_get(&key).ok().flatten());
    // Folders without version control form one project without a location.
    let worktree = if found.id == "global" {
        "/".to_owned()
    } else {
        found.worktree.clone()
    };
    let record = Project {
        worktree,
        vcs: found.vcs.clone(),
        ..known.clone().unwrap_or_else(|| found.clone())
    };
    if known.as_ref() != Some(&record)
        && let Err(error) = store.meta_set(&key, write(&record).as_deref()).await
    {
        tracing::warn!("[store] cannot record the project: {error}");
    }
    Project {
        worktree: found.worktree,
        ..record
    }
}

fn merge(old: Option<Object>, new: Option<Object>) -> Option<Object> {
    let mut merged = old.unwrap_or_default();
    for (name, value) in new? {
        if value.is_null() {
            merged.shift_remove(&name);
        } else {
            merged.insert(name, value);
        }
    }
    Some(merged).filter(|fields| !fields.is_empty())
}

impl ProjectPatch {
    fn apply(self, mut project: Project, at: u64) -> Project {
        if let Some(name) = self.name {
            project.name = name;
        }
        if let Some(icon) = self.icon {
            project.icon = merge(project.icon, icon);
        }
        if let Some(commands) = self.commands {
            project.commands = merge(project.commands, commands);
        }
        if let Some(time) = project.time.as_object_mut() {
            time.insert("updated".into(), json!(at));
        }
        project
    }
}

impl Agent {
    /// The agent's project as clients have changed it since the start.
    ///
    /// # Errors
    /// Those of the store.
    pub fn current_project(&self) -> Result<Project, StoreError> {
        let own = self.project();
        let known = self.store().meta_get(&format!("{KEY}{}", own.id))?;
        Ok(match read(known) {
            Some(known) => Project {
                worktree: own.worktree.clone(),
                vcs: own.vcs.clone(),
                ..known
            },
            None => own.clone(),
        })
    }

    /// Every project that an agent of this data folder was started in, by identifier.
    ///
    /// # Errors
    /// Those of the store.
    pub fn projects(&self) -> Result<Vec<Project>, StoreError> {
        let known = self.store().meta_list(KEY)?;
        Ok(known
            .into_iter()
            .filter_map(|(_, text)| read(Some(text)))
            .collect())
    }

    /// Changes what a project is called and shown as, and publishes `project.updated`; `None` when there is no such project.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn update_project(
        &self,
        id: &str,
        patch: ProjectPatch,
    ) -> Result<Option<Project>, AgentError> {
        let at = now_ms();
        let changed = self
            .store()
            .meta_update(&format!("{KEY}{id}"), move |old| {
                let project = patch.apply(read(old)?, at);
                write(&project)
            })
            .await?;
        let Some(project) = read(changed) else {
            return Ok(None);
        };
        let properties = match json!(project) {
            Value::Object(fields) => fields,
            _ => Object::default(),
        };
        self.publish(Event::Custom(CustomEvent {
            depth: 0,
            kind: "project.updated".into(),
            properties,
        }))
        .await?;
        Ok(Some(project))
    }

    /// The folders that hold a project: more than one when it was cloned several times. Those that are gone are left out.
    ///
    /// # Errors
    /// Those of the store.
    pub fn project_directories(&self, id: &str) -> Result<Vec<String>, StoreError> {
        let mut folders: BTreeSet<String> = self
            .store()
            .meta_list(FOLDER_KEY)?
            .into_iter()
            .filter(|(_, project)| project == id)
            .filter_map(|(key, _)| Some(key.strip_prefix(FOLDER_KEY)?.to_owned()))
            .collect();
        folders.retain(|folder| std::path::Path::new(folder).is_dir());
        let own = self.project();
        if own.id == id {
            folders.remove(&own.worktree);
            return Ok(std::iter::once(own.worktree.clone())
                .chain(folders)
                .collect());
        }
        Ok(folders.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_names() {
        let patch = |text: Value| -> ProjectPatch { serde_json::from_value(text).unwrap() };
        let first = patch(json!({"name": "N", "icon": {"color": "red", "url": "u"}})).apply(
            Project {
                time: json!({"created": 1, "updated": 1}),
                ..Project::default()
            },
            7,
        );
        assert_eq!(first.name.as_deref(), Some("N"));
        assert_eq!(first.time, json!({"created": 1, "updated": 7}));
        let second = patch(json!({"icon": {"url": null}, "commands": {"start": "make"}}))
            .apply(first.clone(), 8);
        assert_eq!(second.name, first.name);
        assert_eq!(json!(second.icon), json!({"color": "red"}));
        let third = patch(json!({"name": null, "icon": null})).apply(second, 9);
        assert_eq!((third.name, third.icon), (None, None));
        assert_eq!(json!(third.commands), json!({"start": "make"}));
        assert!(serde_json::from_value::<ProjectPatch>(json!({"name": 3})).is_err());
    }
}
