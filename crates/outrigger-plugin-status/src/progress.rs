//! What is reported while plugins load.

use std::sync::Arc;

use serde::Serialize;

use crate::stage::Stage;

/// Why a plugin is skipped, failed or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// How far it had come.
    pub at: Stage,
    /// Stable code of the error.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A report to the caller that watches plugins load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Plugin.
    pub plugin: String,
    /// As declared.
    pub spec: String,
    /// How far it is now.
    pub stage: Stage,
    /// Why, for `Skipped`, `Failed` and `Off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// It is left out and its user may not know: worth a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mention: bool,
    /// Hooks of it that are refused without it (C5), by OpenCode's names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<String>,
    /// How much has come, from time to time while it is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Fetched>,
}

impl Progress {
    /// A plugin that is at this stage, and nothing else of it.
    #[must_use]
    pub fn at(plugin: &str, spec: &str, stage: Stage) -> Self {
        Self {
            plugin: plugin.to_owned(),
            spec: spec.to_owned(),
            stage,
            cause: None,
            mention: false,
            guards: Vec::new(),
            fetched: None,
        }
    }
}

/// How much of an installation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// Unpacked bytes.
    pub bytes: u64,
    /// What they will be in the end, about; `None` where that depends on what else must come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Notified of every step of every plugin. Called on the task that makes the step; it must not block.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;
