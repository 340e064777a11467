//! Reviewing and accepting changes without starting anything.

use std::path::PathBuf;

use outrigger_config::settings::Trust;
use outrigger_config::{PluginSpec, PolicyFile};
use outrigger_plugin_package::{Cache, PackageError, Source, name_of, resolve, resolve_path};
use outrigger_protocol::Millis;
use outrigger_sandbox::Spawner;
use serde::Serialize;

use crate::changes::Changes;
use crate::content::Before;
use crate::error::TrustError;
use crate::gate::Candidate;
use crate::signature::{self, Signed};
use crate::store::{ProjectLock, Trusted, TrustedBy};

/// Options of a review.
pub struct ReviewOptions {
    /// The plugins of the configuration.
    pub plugins: Vec<PluginSpec>,
    /// The rules.
    pub rules: Trust,
    /// Outrigger's data folder.
    pub data: PathBuf,
    /// Outrigger's cache folder.
    pub cache: PathBuf,
    /// The root of the project.
    pub project: PathBuf,
    /// For the cache; nothing is started.
    pub spawner: Spawner,
}

/// State of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reviewed {
    /// Unchanged since it was trusted.
    Trusted,
    /// Changed since it was trusted.
    Changed,
    /// Never trusted here.
    New,
    /// It cannot be checked, or may not be trusted.
    Refused,
}

/// Review of one plugin.
#[derive(Clone, Debug, Serialize)]
pub struct Review {
    /// Id of the plugin.
    pub id: String,
    /// Spec as declared.
    pub spec: String,
    /// Its state.
    pub state: Reviewed,
    /// Its trust record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<Trusted>,
    /// Hash over its current files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The changes; for a new plugin, its files.
    pub changes: Changes,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Reviews the plugins, or those of one name.
pub async fn review(options: &ReviewOptions, name: Option<&str>) -> Vec<Review> {
    let mut all = Vec::new();
    for declared in wanted(options, name) {
        all.push(one(options, declared).await);
    }
    all
}

/// Trusts the plugins, or those of one name, as they were reviewed: one that is not as it was then is not trusted. `pin`
/// writes them into the project's own `outrigger.lock` too.
///
/// # Errors
/// `plugin.changed` when files changed after the review; `plugin.trust_file`; those of looking at the files.
pub async fn accept(
    options: &ReviewOptions,
    reviewed: &[Review],
    pin: bool,
    now: Millis,
) -> Result<(), TrustError> {
    let mut lock = ProjectLock::read(&options.project)?.unwrap_or_default();
    for declared in &options.plugins {
        let spec = &declared.spec;
        let Some(review) = reviewed.iter().find(|review| review.spec == *spec) else {
            continue;
        };
        if matches!(review.state, Reviewed::Refused) {
            continue;
        }
        let cache = Cache::new(&options.cache, None, options.spawner.clone());
        let resolved = resolve(declared, &cache, |_| {}).await?;
        let (data, project) = (&options.data, &options.project);
        let found = Candidate::of(declared, &resolved, data, project, &options.rules).await?;
        if review.hash != Some(found.content.hash()) {
            return Err(TrustError::Changed {
                spec: spec.clone(),
                id: resolved.id.clone(),
                what: "its files changed after they were reviewed".to_owned(),
            });
        }
        if review.state != Reviewed::Trusted {
            found.trust(TrustedBy::Review, now).await?;
        }
        lock.plugins.insert(
            ProjectLock::name(&options.project, declared),
            found.content.own(),
        );
    }
    if pin {
        lock.version = 1;
        lock.write(&options.project)?;
    }
    Ok(())
}

fn wanted<'a>(
    options: &'a ReviewOptions,
    name: Option<&'a str>,
) -> impl Iterator<Item = &'a PluginSpec> {
    let called = move |plugin: &&PluginSpec| {
        name.is_none_or(|name| {
            name_of(plugin) == name
                || plugin.spec == name
                || plugin.key() == name
                || own_id(plugin).as_deref() == Some(name)
        })
    };
    options.plugins.iter().filter(called)
}

/// Returns the id in the manifest of a local plugin.
fn own_id(plugin: &PluginSpec) -> Option<String> {
    match Source::parse(&plugin.spec, &plugin.declared_in) {
        Ok(Source::Path(path)) => {
            let resolved = resolve_path(&plugin.spec, &name_of(plugin), &path);
            resolved.ok().map(|it| it.id)
        }
        _ => None,
    }
}

/// Verification of a plugin's signature.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Id of the plugin.
    pub id: String,
    /// Spec as declared.
    pub spec: String,
    /// The text that a signature covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Result of the verification.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// Why its signature would prevent a start, or why it cannot be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Verifies the signatures of the plugins, or of those of one name. Nothing is started or trusted.
pub async fn verify(
    options: &ReviewOptions,
    policies: &[PolicyFile],
    name: Option<&str>,
) -> Vec<Verification> {
    let mut all = Vec::new();
    for declared in wanted(options, name) {
        let cache = Cache::new(&options.cache, None, options.spawner.clone());
        let (data, project) = (&options.data, &options.project);
        let looked = async {
            let resolved = resolve(declared, &cache, |_| {}).await?;
            let found = Candidate::of(declared, &resolved, data, project, &options.rules).await?;
            Ok::<_, TrustError>((resolved, found))
        };
        all.push(match looked.await {
            Ok((resolved, found)) => {
                let signed = signature::signed(&resolved.dir, &found.content, policies);
                Verification {
                    id: resolved.id,
                    spec: declared.spec.clone(),
                    digest: Some(signature::digest(&found.content)),
                    problem: signature::problem(&signed, policies),
                    signed: Some(signed),
                }
            }
            Err(error) => Verification {
                id: name_of(declared),
                spec: declared.spec.clone(),
                digest: None,
                signed: None,
                problem: Some(error.to_string()),
            },
        });
    }
    all
}

async fn one(options: &ReviewOptions, declared: &PluginSpec) -> Review {
    let mut review = Review {
        id: name_of(declared),
        spec: declared.spec.clone(),
        state: Reviewed::Refused,
        trusted: None,
        hash: None,
        changes: Changes::default(),
        reason: None,
    };
    let cache = Cache::new(&options.cache, None, options.spawner.clone());
    let resolved = match resolve(declared, &cache, |_| {}).await {
        Ok(resolved) => resolved,
        Err(error) => {
            review.reason = Some(match error {
                PackageError::NoInstaller { .. } => {
                    "it is not installed yet; the first start installs it".to_owned()
                }
                error => error.to_string(),
            });
            return review;
        }
    };
    review.id.clone_from(&resolved.id);
    let (data, project) = (&options.data, &options.project);
    let found = match Candidate::of(declared, &resolved, data, project, &options.rules).await {
        Ok(found) => found,
        Err(error) => {
            review.reason = Some(error.to_string());
            return review;
        }
    };
    let hash = found.content.hash();
    (review.state, review.changes) = match &found.known {
        Some(known) if known.hash == hash => (Reviewed::Trusted, Changes::default()),
        Some(_) => (Reviewed::Changed, found.changes()),
        None => {
            let all = Changes::between(&Before::default(), &found.content, &found.store);
            (Reviewed::New, all)
        }
    };
    if let Err(error) = found.pinned(&options.project) {
        review.reason = Some(error.to_string());
    }
    review.trusted.clone_from(&found.known);
    review.hash = Some(hash);
    review
}
