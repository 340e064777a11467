//! A plugin as the configuration declares it: its name and its location.

use outrigger_config::{PluginSource, PluginSpec};

use crate::error::PackageError;
use crate::install::Cache;
use crate::resolve::{ResolvedPlugin, resolve_package, resolve_path};
use crate::spec::Source;

/// Returns the name of a configured plugin until its module has been read.
#[must_use]
pub fn name_of(plugin: &PluginSpec) -> String {
    let source = Source::parse(&plugin.spec, &plugin.declared_in);
    source.map_or_else(
        |_| plugin.spec.clone(),
        |source| label(plugin.source, &source),
    )
}

/// Returns the label of a plugin until its module has been read.
fn label(kind: PluginSource, source: &Source) -> String {
    match (kind, source) {
        (PluginSource::Tool, Source::Path(path)) => format!("tool:{}", stem(path)),
        _ => source.label(),
    }
}

fn stem(path: &std::path::Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// One plugin of the configuration, installed if it has to be.
///
/// # Errors
/// Those of [`Source::parse`], [`Cache::get`], [`resolve_path`] and [`resolve_package`].
pub async fn resolve(
    plugin: &PluginSpec,
    cache: &Cache,
    installing: impl FnMut(Option<u64>) + Send,
) -> Result<ResolvedPlugin, PackageError> {
    let source = Source::parse(&plugin.spec, &plugin.declared_in)?;
    let id = label(plugin.source, &source);
    let mut resolved = match &source {
        Source::Path(path) => resolve_path(&plugin.spec, &id, path)?,
        Source::Npm { name, request } => {
            let package = cache.get(&plugin.spec, name, request, installing).await?;
            resolve_package(&plugin.spec, &id, &package.dir, false)?
        }
    };
    resolved.options.clone_from(&plugin.options);
    if let (PluginSource::Tool, Source::Path(path)) = (plugin.source, &source) {
        resolved.tools = Some(stem(path));
    }
    Ok(resolved)
}
