//! Lifecycle of plugins: their stages, events while they run, and the grants of the user's settings.

use std::sync::Arc;

use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{Notice, NoticeFn, PluginStatus, Progress, ProgressFn, UserGrants};
use outrigger_protocol::audit::{AuditKind, AuditRecord, POLICY_PASSED};
use outrigger_protocol::id::PluginId;
use outrigger_stdx::clock::now_ms;
use outrigger_store::Store;

use crate::processes::connection;

/// Records a plugin's progress and passes it on.
#[must_use]
pub fn progress(store: &Store, then: ProgressFn) -> ProgressFn {
    let store = store.clone();
    Arc::new(move |progress: Progress| {
        if progress.fetched.is_none() {
            let cause = progress.cause.as_ref();
            let record = AuditRecord {
                plugin_id: Some(PluginId(progress.plugin.clone())),
                subject: Some(progress.spec.clone()),
                errored: cause.is_some(),
                detail: cause.map(|cause| format!("{}: {}", cause.code, cause.message)),
                ..AuditRecord::new(AuditKind::LifeCycle, now_ms(), progress.stage.to_string())
            };
            store.audit_lazily(now_ms(), vec![record]);
        }
        then(progress);
    })
}

/// Like [`progress`], for notices of running plugins.
#[must_use]
pub fn notice(store: &Store, then: NoticeFn) -> NoticeFn {
    let store = store.clone();
    Arc::new(move |notice: Notice| {
        store.audit_lazily(now_ms(), noticed(&notice));
        // Normal operation is not reported to clients, nor is each refused request of the plugin.
        let quiet = matches!(
            notice,
            Notice::Network { refused: None, .. } | Notice::Refused { .. }
        );
        if !quiet {
            then(notice);
        }
    })
}

fn noticed(notice: &Notice) -> Vec<AuditRecord> {
    match notice {
        Notice::Breaker {
            plugin,
            hook,
            state,
            ..
        } => {
            let hook = HookPoint::parse(hook);
            vec![AuditRecord {
                hook_name: hook.map(|point| point.name().to_owned()),
                ..life(plugin, format!("breaker {state}"), None)
            }]
        }
        Notice::Quarantine { plugin, cause } => vec![life(plugin, "quarantine", Some(cause))],
        Notice::Restart {
            plugins,
            cause,
            culprit,
        } => restart(plugins, cause, culprit.as_ref()),
        Notice::Limit { plugins, cause } => {
            let record = |plugin: &String| life(plugin, "limit", Some(cause));
            plugins.iter().map(record).collect()
        }
        Notice::Off { plugin, cause } => vec![life(plugin, "off", Some(cause))],
        Notice::Network {
            plugins,
            host,
            port,
            address,
            refused,
            unreported,
        } => network(
            plugins,
            host,
            *port,
            address.as_deref(),
            refused.as_deref(),
            *unreported,
        ),
        Notice::Refused {
            plugins,
            request,
            rule,
        } => refused_requests(plugins, request, rule),
        // Its steps have separate records.
        notice if notice.is_of_itself() => Vec::new(),
        Notice::State {
            plugin,
            action,
            error,
            generation,
            ..
        } => vec![changed(plugin, action, error.as_deref(), *generation)],
        // A message for the user; the result of the call has a separate record.
        Notice::Command { .. } | Notice::Waiting { .. } => Vec::new(),
    }
}

/// Records a state change of a plugin, or a failed one.
fn changed(plugin: &str, action: &str, error: Option<&str>, generation: u64) -> AuditRecord {
    let detail = match error {
        Some(error) => error.to_owned(),
        None => format!("generation {generation}"),
    };
    AuditRecord {
        errored: error.is_some(),
        ..life(plugin, action, Some(&detail))
    }
}

/// Creates a record about a plugin.
fn life(plugin: &str, decision: impl Into<String>, detail: Option<&str>) -> AuditRecord {
    AuditRecord {
        plugin_id: Some(PluginId(plugin.to_owned())),
        detail: detail.map(str::to_owned),
        errored: true,
        ..AuditRecord::new(AuditKind::LifeCycle, now_ms(), decision)
    }
}

fn restart(plugins: &[String], cause: &str, culprit: Option<&String>) -> Vec<AuditRecord> {
    let detail = |plugin: &String| match culprit {
        Some(culprit) if culprit != plugin => format!("caused by {culprit}: {cause}"),
        _ => cause.to_owned(),
    };
    let one = |plugin: &String| life(plugin, "restart", Some(&detail(plugin)));
    plugins.iter().map(one).collect()
}

fn refused_requests(plugins: &[String], request: &str, rule: &str) -> Vec<AuditRecord> {
    let record = |plugin: &String| AuditRecord {
        plugin_id: Some(PluginId(plugin.clone())),
        plugin_id_claimed: plugins.len() > 1,
        subject: Some(request.to_owned()),
        errored: true,
        policy_check_result: format!("refused: {rule}"),
        ..AuditRecord::new(AuditKind::Client, now_ms(), "deny")
    };
    plugins.iter().map(record).collect()
}

/// Records a connection, or its refusal, for each plugin of the process: it is unknown which of them made it.
fn network(
    plugins: &[String],
    host: &str,
    port: u16,
    address: Option<&str>,
    refused: Option<&str>,
    unreported: u64,
) -> Vec<AuditRecord> {
    let more = (unreported > 0).then(|| format!("{unreported} earlier refusals are not listed"));
    let detail: Vec<String> = address.map(str::to_owned).into_iter().chain(more).collect();
    let made = connection((host, port), refused, &detail);
    let record = |plugin: &String| AuditRecord {
        plugin_id: Some(PluginId(plugin.clone())),
        plugin_id_claimed: plugins.len() > 1,
        ..made.clone()
    };
    plugins.iter().map(record).collect()
}

/// Records what the user's settings grant single plugins beyond the sandbox, and what of it does not count for a plugin that merely
/// goes by the name.
pub fn grants(store: &Store, plugins: &[PluginStatus]) {
    let records = plugins.iter().flat_map(|plugin| {
        let of_user = of_user(&plugin.id, &plugin.grants);
        hosted(plugin).into_iter().chain(of_user)
    });
    store.audit_lazily(now_ms(), records.collect());
}

fn of_user(plugin: &str, grants: &UserGrants) -> Vec<AuditRecord> {
    let withheld = "refused: there is another plugin of that name";
    [
        (&grants.given, "allow", POLICY_PASSED),
        (&grants.withheld, "deny", withheld),
    ]
    .into_iter()
    .filter(|(what, ..)| !what.is_empty())
    .map(|(what, decision, result)| AuditRecord {
        plugin_id: Some(PluginId(plugin.to_owned())),
        subject: Some(what.join("; ")),
        detail: Some("outrigger.toml".to_owned()),
        policy_check_result: result.to_owned(),
        ..AuditRecord::new(AuditKind::Grant, now_ms(), decision)
    })
    .collect()
}

/// Records what a hosted plugin requested and its host does not have (C8).
fn hosted(plugin: &PluginStatus) -> Option<AuditRecord> {
    let host = plugin.host.as_ref()?;
    let withheld = plugin.manifest.as_ref().map(|it| it.withheld.join("; "));
    Some(AuditRecord {
        plugin_id: Some(PluginId(plugin.id.clone())),
        subject: Some(format!("no more than {host} has")),
        detail: withheld.filter(|it| !it.is_empty()),
        ..AuditRecord::new(AuditKind::Grant, now_ms(), "allow")
    })
}
