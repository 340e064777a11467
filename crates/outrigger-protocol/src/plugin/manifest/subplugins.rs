//! Plugins hosted by a plugin (C8).

use serde::{Deserialize, Serialize};

use super::check::is_inside;
use super::{Manifest, ManifestProblem, Permissions};

/// Maximum number of plugins that one plugin may host: each has a process.
const MAX_HOSTED: usize = 16;

/// A hosted plugin. It cannot host others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubpluginDecl {
    /// What it is called below its host: a-z, 0-9, `-` and `_`.
    pub id: String,
    /// Module that is imported, inside the host's package.
    pub entry: String,
    /// Names of its tools; it registers no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Hooks that are called; without it those that its host may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Vec<String>>,
    /// No hook of it runs longer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_timeout_ms: Option<u64>,
    /// The requested permissions, limited to those of its host. It has no client routes that are not named.
    #[serde(default)]
    pub permissions: Permissions,
}

/// Returns the first problem.
pub(super) fn problems(manifest: &Manifest) -> Option<ManifestProblem> {
    let subs = &manifest.subplugins;
    let wrong = subs.iter().enumerate().find_map(|(at, it)| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        let id = &it.id;
        if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
            return Some(format!("{id:?} is not an id (a-z, 0-9, - and _)"));
        }
        if subs.iter().take(at).any(|other| other.id == *id) {
            return Some(format!("{id:?} is there twice"));
        }
        if !is_inside(&it.entry) {
            return Some(format!(
                "the entry {:?} of {id:?} does not lie inside of the package",
                it.entry
            ));
        }
        if it.max_timeout_ms == Some(0) {
            return Some(format!("max_timeout_ms of {id:?} is not a time"));
        }
        // The same checks as for a top-level plugin.
        let alone = Manifest {
            permissions: it.permissions.clone(),
            ..Manifest::inferred("a", None)
        };
        let problem = alone.problems().into_iter().next()?;
        Some(format!("{} of {id:?}: {}", problem.key, problem.message))
    });
    let many = (subs.len() > MAX_HOSTED).then(|| format!("more than {MAX_HOSTED} are hosted"));
    wrong.or(many).map(|message| ManifestProblem {
        key: "subplugins",
        message,
    })
}
