//! Choice of the runtime for the plugins of a project, and the single fetch of Bun.
//!
//! If Bun is installed, it is used. If only Node is installed, Bun is fetched before the start if a plugin's file cannot run
//! under Node, and afterwards if an import requires it (a module of Bun's, a file named without its extension). It is not fetched
//! with `js.install = "ask"` without consent, with `"never"`, if the user named another runtime, or without npm.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_config::Settings;
use outrigger_config::settings::{Install, Js, JsRuntime as Wanted};
use outrigger_js::{JsRuntime, Lookup, RuntimeKind};
use outrigger_plugin_package::{BUN_SPEC, setup_bun};
use outrigger_plugin_status::{Cause, Fetched, Progress, ProgressFn, Stage};
use outrigger_sandbox::Spawner;
use outrigger_sandbox::host_path::which_of_host;

use crate::options::{ConsentFn, LoadOptions};
use outrigger_plugin_registry::Registry;
use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_registry::error::PluginError;

/// Fetches Bun, at most once.
pub(crate) struct Fetch {
    npm: PathBuf,
    data: PathBuf,
    spawner: Spawner,
    progress: ProgressFn,
    /// Who must agree first, if the setting is to ask.
    consent: Option<Option<ConsentFn>>,
    /// Why there is none: the first attempt is final.
    failed: Option<String>,
}

impl Fetch {
    /// Returns `None` if Bun must not, cannot or need not be fetched.
    pub(crate) fn allowed(
        options: &LoadOptions,
        found: &Result<JsRuntime, PluginError>,
    ) -> Option<Self> {
        let lookup = &options.runtimes;
        if options.settings.js.install == Install::Never
            || !has_a_use(&options.settings.js, lookup, found)
        {
            return None;
        }
        Some(Self {
            npm: which_of_host("npm", &lookup.path)?,
            data: options.data.clone(),
            spawner: options.installers.clone(),
            progress: options.progress.clone(),
            consent: (options.settings.js.install == Install::Ask).then(|| options.consent.clone()),
            failed: None,
        })
    }

    /// Fetches Bun; returns the reason if that fails.
    pub(crate) async fn bun(&mut self) -> Result<JsRuntime, String> {
        if let Some(reason) = &self.failed {
            return Err(reason.clone());
        }
        if let Some(reason) = self.refusal().await {
            self.failed = Some(reason.clone());
            return Err(reason);
        }
        self.tell(Stage::Installing, None);
        let progress = &self.progress;
        let mut growing = |fetched| progress(coming(fetched));
        match setup_bun(&self.data, Some(&self.npm), &self.spawner, &mut growing).await {
            Ok(path) => {
                self.tell(Stage::Active, None);
                Ok(JsRuntime::at(RuntimeKind::Bun, path))
            }
            Err(error) => {
                // Each plugin that needed it fails with this reason, so it is not reported separately.
                let reason = error.to_string();
                let cause = PluginError::from(error).cause(Stage::Installing);
                self.tell(Stage::Skipped, Some(cause));
                self.failed = Some(reason.clone());
                Err(reason)
            }
        }
    }

    /// Returns why Bun must not be fetched, if the setting is to ask.
    async fn refusal(&self) -> Option<String> {
        let reason = match self.consent.as_ref()? {
            None => {
                "nobody can be asked whether to fetch it (`js.install = \"auto\"` does so without asking)"
            }
            Some(ask) if ask(BUN_SPEC).await => return None,
            Some(_) => "it was not to be fetched",
        };
        Some(format!("Bun is not there, and {reason}"))
    }

    fn tell(&self, stage: Stage, cause: Option<Cause>) {
        (self.progress)(bun_progress(stage, cause));
    }
}

/// Returns what a start may ask to fetch from npm (`js.install = "ask"`), as an npm spec: Bun, if a plugin may need it. The
/// required runtime is known only after installation and import, so this is an upper bound. `None` if there is no user to ask.
#[must_use]
pub fn may_be_fetched(
    settings: &Settings,
    lookup: &Lookup,
    consent: Option<&ConsentFn>,
) -> Option<&'static str> {
    consent?;
    let settings = PluginSettings::from(settings);
    let js = &settings.js;
    let is_asked = js.install == Install::Ask && which_of_host("npm", &lookup.path).is_some();
    (is_asked && has_a_use(js, lookup, &settings.runtime(lookup))).then_some(BUN_SPEC)
}

/// Returns the consent to use: none is needed if the user agreed already.
#[must_use]
pub fn answered(consent: Option<ConsentFn>, agreed: bool) -> Option<ConsentFn> {
    if agreed {
        Some(Arc::new(|_| Box::pin(std::future::ready(true))))
    } else {
        consent
    }
}

fn bun_progress(stage: Stage, cause: Option<Cause>) -> Progress {
    Progress {
        cause,
        ..Progress::at("bun", BUN_SPEC, stage)
    }
}

fn coming(fetched: Fetched) -> Progress {
    Progress {
        fetched: Some(fetched),
        ..bun_progress(Stage::Installing, None)
    }
}

/// Returns whether a fetched Bun would be used: not if one exists or the user named another runtime.
fn has_a_use(js: &Js, lookup: &Lookup, found: &Result<JsRuntime, PluginError>) -> bool {
    let bun_is_there = found.as_ref().is_ok_and(|r| r.kind == RuntimeKind::Bun);
    let bun_is_named = lookup.configured.is_some() || js.bun.is_some() || lookup.bun.is_some();
    let node_is_named = js.node.is_some() || lookup.node.is_some();
    !bun_is_there
        && !bun_is_named
        && match js.runtime {
            Wanted::Auto => !node_is_named,
            Wanted::Bun => true,
            Wanted::Node => false,
        }
}

/// The runtime that plugins will run under, after Bun was fetched if that would be taken: `outrigger plugin setup`.
/// `progress` is called before a fetch begins.
///
/// # Errors
/// `plugin.bun` as [`setup_bun`] has it, `plugin.no_runtime`.
pub async fn setup_runtime(
    settings: &PluginSettings,
    lookup: &Lookup,
    data: &Path,
    spawner: &Spawner,
    progress: &ProgressFn,
) -> Result<JsRuntime, PluginError> {
    let found = settings.runtime(lookup);
    if !has_a_use(&settings.js, lookup, &found) {
        return found;
    }
    let npm = which_of_host("npm", &lookup.path);
    if npm.is_some() {
        progress(bun_progress(Stage::Installing, None));
    }
    let mut growing = |fetched| progress(coming(fetched));
    let path = setup_bun(data, npm.as_deref(), spawner, &mut growing).await?;
    Ok(JsRuntime::at(RuntimeKind::Bun, path))
}

/// Returns the runtime for the plugins that were found, after fetching Bun if one of them needs it. `None`: there is none, and
/// the plugins are listed as failed.
pub(crate) async fn runtime(
    registry: &Registry,
    found: Result<JsRuntime, PluginError>,
    fetch: Option<&mut Fetch>,
    spawner: &Spawner,
) -> Option<JsRuntime> {
    let Some(fetch) = fetch else {
        return found.ok();
    };
    let ready = registry.resolved_files();
    let needed = match &found {
        Ok(node) => any_for_bun(&ready, node, spawner).await,
        Err(_) => !ready.is_empty(),
    };
    if !needed {
        registry.may_wait_for_bun();
        return found.ok();
    }
    let reason = match fetch.bun().await {
        Ok(bun) => return Some(bun),
        Err(reason) => reason,
    };
    match found {
        Ok(node) => {
            registry.no_bun(reason);
            Some(node)
        }
        Err(error) => {
            for (index, _) in ready {
                registry.fail(index, &error.because(&reason));
            }
            None
        }
    }
}

async fn any_for_bun(files: &[(usize, PathBuf)], node: &JsRuntime, spawner: &Spawner) -> bool {
    let mut typescript = false;
    for (_, file) in files {
        match kind(file) {
            Kind::Bun => return true,
            Kind::TypeScript => typescript = true,
            Kind::Plain => {}
        }
    }
    // Asking Node for its version starts a process, so only do it if the answer matters.
    typescript && !node.version(spawner).await.is_ok_and(|v| strips_types(&v))
}

/// Runtime needed to import a file.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Bun, or a Node that strips types.
    TypeScript,
    /// Only Bun.
    Bun,
}

// Node does not strip types of files in `node_modules` and does not support JSX.
fn kind(file: &Path) -> Kind {
    let installed = || file.iter().any(|part| part == "node_modules");
    match file.extension().and_then(OsStr::to_str) {
        Some("tsx" | "jsx") => Kind::Bun,
        Some("ts" | "mts" | "cts") if installed() => Kind::Bun,
        Some("ts" | "mts" | "cts") => Kind::TypeScript,
        _ => Kind::Plain,
    }
}

/// Returns whether this Node imports TypeScript without a flag: 22.18, 23.6 and later.
fn strips_types(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match major {
        ..22 => false,
        22 => minor >= 18,
        23 => minor >= 6,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_need_more_than_node() {
        for (file, expected) in [
            ("/p/.opencode/plugin/a.js", Kind::Plain),
            ("/p/.opencode/plugin/a.mjs", Kind::Plain),
            ("/p/.opencode/plugin/a.ts", Kind::TypeScript),
            ("/p/a.mts", Kind::TypeScript),
            ("/p/a.tsx", Kind::Bun),
            ("/p/a.jsx", Kind::Bun),
            ("/c/x@1/node_modules/x/src/index.ts", Kind::Bun),
            ("/c/x@1/node_modules/x/dist/index.js", Kind::Plain),
            ("/p/none", Kind::Plain),
        ] {
            assert_eq!(kind(Path::new(file)), expected, "{file}");
        }
    }

    #[test]
    fn versions_of_node_that_import_typescript() {
        for (version, strips) in [
            ("20.20.2", false),
            ("22.17.1", false),
            ("22.18.0", true),
            ("23.5.0", false),
            ("23.6.0", true),
            ("24.0.0", true),
            ("", false),
        ] {
            assert_eq!(strips_types(version), strips, "{version}");
        }
    }
}
