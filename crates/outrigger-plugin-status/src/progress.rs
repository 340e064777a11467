//! Reports while plugins load.

use std::sync::Arc;

use serde::Serialize;

use crate::stage::Stage;

/// Why a plugin is skipped, failed or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Stage that it had reached.
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
    /// Id of the plugin.
    pub plugin: String,
    /// Spec as declared.
    pub spec: String,
    /// Its current stage.
    pub stage: Stage,
    /// Cause, for `Skipped`, `Failed` and `Off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// It is skipped and the user may not know: worth a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mention: bool,
    /// Its hooks that are refused without it (C5), by OpenCode's names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<String>,
    /// Amount fetched, reported repeatedly during installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Fetched>,
}

impl Progress {
    /// Creates a report of a plugin at this stage, without details.
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

/// Progress of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// Unpacked bytes.
    pub bytes: u64,
    /// Approximate total; `None` if it depends on what else must be fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Receives every step of every plugin. Called on the task that makes the step; must not block.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;
