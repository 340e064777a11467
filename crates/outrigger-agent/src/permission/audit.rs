//! What the agent writes into the audit (C13) besides what the store makes of hook, tool and client records:
//! permissions, grants, the life of plugins, started processes, and the intent of every tool call.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{Notice, NoticeFn, PluginStatus, Progress, ProgressFn};
use outrigger_protocol::audit::{AuditKind, AuditRecord, POLICY_PASSED, ToolAudit};
use outrigger_protocol::id::{PluginId, SessionId, TurnId};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::tool::{ToolCall, ToolSpec};
use outrigger_sandbox::{Level, ProcessStart, Spawner};
use outrigger_store::{Retention, Store};
use serde_json::Value;

use crate::ids::now;
use crate::permission::answering::Answering;
use crate::state::Inner;

/// The plugin whose tool it is.
pub(crate) fn owner(spec: Option<&ToolSpec>) -> Option<PluginId> {
    let id = spec?.source.strip_prefix("plugin:")?;
    Some(PluginId(id.to_owned()))
}

/// Says how much is kept and what must not get in: keys of the configuration, of the environment, and stored ones.
pub(crate) fn prepare(store: &Store, config: &Loaded, env: &BTreeMap<String, String>) {
    let audit = &config.settings.audit;
    let retention = Retention {
        records: audit.keep_records,
        days: audit.keep_days,
    };
    if let Err(error) = store.keep_audit(retention) {
        tracing::warn!("[audit] {error}");
    }
    let mut secrets = Vec::new();
    differing(&config.value, &config.redacted(), &mut secrets);
    store.redactor().hide(secrets);
    store.redactor().hide_environment(env);
}

/// Stored credentials, once it is known where they are.
pub(crate) fn hide_credentials(inner: &Inner) {
    let mut secrets = Vec::new();
    for stored in inner.models.credentials().all().values() {
        texts(
            &serde_json::to_value(&stored.credential).unwrap_or_default(),
            &mut secrets,
        );
    }
    // Words such as `oauth` or a date are in there as well; a key is longer.
    secrets.retain(|text| text.len() >= 16);
    inner.store.redactor().hide(secrets);
}

fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, out)),
        _ => {}
    }
}

/// The texts of `value` that stand otherwise in `shown`.
fn differing(value: &Value, shown: &Value, out: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                differing(value, b.get(key).unwrap_or(&Value::Null), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (value, shown) in a.iter().zip(b) {
                differing(value, shown, out);
            }
        }
        (a, b) if a != b => texts(a, out),
        _ => {}
    }
}

/// A started process.
fn process(start: &ProcessStart) -> AuditRecord {
    AuditRecord {
        subject: Some(format!("{} ({})", start.label, start.program)),
        detail: Some(format!(
            "pid {}, box: {}",
            start.pid,
            match start.level {
                None => "none asked for",
                Some(Level::None) => "none: the kernel has none of it",
                Some(Level::Full) if start.open => "open but for what is kept from it",
                Some(Level::Partial) => "partial: the system cannot enforce every rule",
                Some(Level::Full) => "full",
            }
        )),
        ..AuditRecord::new(AuditKind::Process, now(), "start")
    }
}

/// A spawner whose processes are written down.
pub(crate) fn recorded(store: &Store, spawner: Spawner) -> Spawner {
    let store = store.clone();
    spawner.with_recorder(Arc::new(move |start| {
        store.audit_lazily(now(), vec![process(start)]);
    }))
}

/// Passes a plugin's way on to whoever watches, and writes it down.
pub(crate) fn progress(store: &Store, then: ProgressFn) -> ProgressFn {
    let store = store.clone();
    Arc::new(move |progress: Progress| {
        if progress.fetched.is_none() {
            let cause = progress.cause.as_ref();
            let record = AuditRecord {
                plugin_id: Some(PluginId(progress.plugin.clone())),
                subject: Some(progress.spec.clone()),
                errored: cause.is_some(),
                detail: cause.map(|cause| format!("{}: {}", cause.code, cause.message)),
                ..AuditRecord::new(AuditKind::LifeCycle, now(), progress.stage.to_string())
            };
            store.audit_lazily(now(), vec![record]);
        }
        then(progress);
    })
}

/// The same for what becomes of plugins while they run.
pub(crate) fn notice(store: &Store, then: NoticeFn) -> NoticeFn {
    let store = store.clone();
    Arc::new(move |notice: Notice| {
        store.audit_lazily(now(), noticed(&notice));
        // That all is as it should be is nothing to tell clients, nor each request that the plugin was answered.
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
    let record = |plugin: &str, decision: String, hook: Option<&str>, detail: Option<&str>| {
        let hook = hook.and_then(HookPoint::parse);
        AuditRecord {
            plugin_id: Some(PluginId(plugin.to_owned())),
            hook_name: hook.map(|point| point.name().to_owned()),
            detail: detail.map(str::to_owned),
            errored: true,
            ..AuditRecord::new(AuditKind::LifeCycle, now(), decision)
        }
    };
    match notice {
        Notice::Breaker {
            plugin,
            hook,
            state,
            ..
        } => vec![record(plugin, format!("breaker {state}"), Some(hook), None)],
        Notice::Quarantine { plugin, cause } => {
            vec![record(plugin, "quarantine".into(), None, Some(cause))]
        }
        Notice::Restart {
            plugins,
            cause,
            culprit,
        } => {
            let told = |plugin: &String| match culprit {
                Some(culprit) if culprit != plugin => format!("caused by {culprit}: {cause}"),
                _ => cause.clone(),
            };
            let one = |plugin: &String| record(plugin, "restart".into(), None, Some(&told(plugin)));
            plugins.iter().map(one).collect()
        }
        Notice::Limit { plugins, cause } => plugins
            .iter()
            .map(|plugin| record(plugin, "limit".into(), None, Some(cause)))
            .collect(),
        Notice::Off { plugin, cause } => vec![record(plugin, "off".into(), None, Some(cause))],
        Notice::Network {
            plugins,
            host,
            port,
            address,
            refused,
            untold,
        } => network(
            plugins,
            (host, *port),
            address.as_deref(),
            refused.as_deref(),
            *untold,
        ),
        Notice::Refused {
            plugins,
            request,
            rule,
        } => {
            let record = |plugin: &String| AuditRecord {
                plugin_id: Some(PluginId(plugin.clone())),
                plugin_id_claimed: plugins.len() > 1,
                subject: Some(request.clone()),
                errored: true,
                policy_check_result: format!("refused: {rule}"),
                ..AuditRecord::new(AuditKind::Client, now(), "deny")
            };
            plugins.iter().map(record).collect()
        }
        // Its steps have records of their own.
        notice if notice.is_of_itself() => Vec::new(),
        Notice::State {
            plugin,
            action,
            error,
            generation,
            ..
        } => {
            let detail = match error {
                Some(error) => error.clone(),
                None => format!("generation {generation}"),
            };
            vec![AuditRecord {
                errored: error.is_some(),
                ..record(plugin, action.clone(), None, Some(&detail))
            }]
        }
        // What it says to the user; what became of the call has a record of its own.
        Notice::Command { .. } => Vec::new(),
    }
}

/// A connection that was made, or not, for each plugin of the process: which of them it was is not known.
fn network(
    plugins: &[String],
    (host, port): (&str, u16),
    address: Option<&str>,
    refused: Option<&str>,
    untold: u64,
) -> Vec<AuditRecord> {
    let more = (untold > 0).then(|| format!("{untold} refusals before it are not listed"));
    let detail: Vec<String> = address.map(str::to_owned).into_iter().chain(more).collect();
    let made = connection((host, port), refused, &detail);
    let record = |plugin: &String| AuditRecord {
        plugin_id: Some(PluginId(plugin.clone())),
        plugin_id_claimed: plugins.len() > 1,
        ..made.clone()
    };
    plugins.iter().map(record).collect()
}

/// A connection that was made, or refused with a code.
pub(crate) fn connection(
    (host, port): (&str, u16),
    refused: Option<&str>,
    detail: &[String],
) -> AuditRecord {
    let (decision, policy) = match refused {
        Some(code) => ("deny", format!("refused: {code}")),
        None => ("allow", POLICY_PASSED.to_owned()),
    };
    AuditRecord {
        subject: Some(format!("{host}:{port}")),
        errored: refused.is_some(),
        policy_check_result: policy,
        detail: (!detail.is_empty()).then(|| detail.join("; ")),
        ..AuditRecord::new(AuditKind::Network, now(), decision)
    }
}

/// What the user's settings grant single plugins beyond the box.
pub(crate) fn grants(inner: &Inner) {
    let settings = &inner.config.settings;
    let mut records = Vec::new();
    for plugin in inner.plugins.list() {
        records.extend(hosted(&plugin));
        let Some(rules) = settings
            .plugins
            .get(&plugin.id)
            .or_else(|| settings.plugins.get(&plugin.spec))
        else {
            continue;
        };
        let mut what = Vec::new();
        if !rules.env.is_empty() {
            what.push(format!("variables {}", rules.env.join(", ")));
        }
        if !rules.ports.is_empty() {
            let ports: Vec<String> = rules.ports.iter().map(u16::to_string).collect();
            what.push(format!("ports {}", ports.join(", ")));
        }
        for (word, places) in [("reading", &rules.read), ("writing", &rules.write)] {
            if !places.is_empty() {
                what.push(format!("{word} {}", places.join(", ")));
            }
        }
        if let Some(programs) = &rules.processes {
            what.push(format!("programs {}", programs.join(", ")));
        }
        if let Some(hosts) = &rules.hosts {
            what.push(format!("hosts {}", hosts.join(", ")));
        }
        if rules.unix_sockets {
            what.push("UNIX sockets".to_owned());
        }
        if what.is_empty() {
            continue;
        }
        // Withheld where the plugin is not the one that the setting names.
        let withheld = plugin
            .warnings
            .iter()
            .any(|warning| warning.contains("are for the npm package"));
        records.push(AuditRecord {
            plugin_id: Some(PluginId(plugin.id.clone())),
            subject: Some(what.join("; ")),
            detail: Some("outrigger.toml".to_owned()),
            policy_check_result: if withheld {
                "refused: another plugin of that name".into()
            } else {
                "passed".into()
            },
            ..AuditRecord::new(
                AuditKind::Grant,
                now(),
                if withheld { "deny" } else { "allow" },
            )
        });
    }
    inner.store.audit_lazily(now(), records);
}

/// What a hosted plugin asked for and its host does not have (C8).
fn hosted(plugin: &PluginStatus) -> Option<AuditRecord> {
    let host = plugin.host.as_ref()?;
    let withheld = plugin.manifest.as_ref().map(|it| it.withheld.join("; "));
    Some(AuditRecord {
        plugin_id: Some(PluginId(plugin.id.clone())),
        subject: Some(format!("no more than {host} has")),
        detail: withheld.filter(|it| !it.is_empty()),
        ..AuditRecord::new(AuditKind::Grant, now(), "allow")
    })
}

/// Who allowed something, by the text of the decision.
pub(crate) fn who_allowed(text: &str, answering: Answering) -> &'static str {
    match text {
        "allow" => "a rule",
        "allow (plugin)" => "a plugin",
        _ if answering == Answering::Allow => "--auto",
        "ask -> always" => "the user, always",
        _ => "the user",
    }
}

/// A permission question and its answer.
pub(crate) struct Decided<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) call: Option<&'a str>,
    pub(crate) permission: &'a str,
    pub(crate) patterns: &'a [String],
    /// `allow` or `deny`.
    pub(crate) decision: &'static str,
    /// Who decided: a rule, a plugin, the user, nobody.
    pub(crate) by: &'a str,
    /// Who wanted it, and who answered.
    pub(crate) causes: Provenance,
}

impl Inner {
    /// Writes a decision down. The intent of the call waits for the disk behind it, so it need not.
    pub(crate) fn audit_decision(&self, decided: Decided<'_>) {
        let denied = decided.decision == "deny";
        let record = AuditRecord {
            session_id: Some(decided.session.clone()),
            provenance: decided.causes,
            subject: Some(format!(
                "{}: {}",
                decided.permission,
                decided.patterns.join(", ")
            )),
            policy_check_result: if denied {
                format!("refused: {}", decided.by)
            } else {
                "passed".into()
            },
            detail: Some(match decided.call {
                Some(call) => format!("by {}, for {call}", decided.by),
                None => format!("by {}", decided.by),
            }),
            ..AuditRecord::new(AuditKind::Permission, now(), decided.decision)
        };
        self.store.audit_lazily(now(), vec![record]);
    }

    /// "Always": from now on nobody is asked about these.
    pub(crate) fn audit_grant(&self, session: &SessionId, permission: &str, patterns: &[String]) {
        let record = AuditRecord {
            session_id: Some(session.clone()),
            subject: Some(format!("{permission}: {}", patterns.join(", "))),
            detail: Some("by the user, until the end of this process".to_owned()),
            ..AuditRecord::new(AuditKind::Grant, now(), "allow")
        };
        self.store.audit_lazily(now(), vec![record]);
    }

    /// A tool is about to run with these arguments, all decisions behind it. Answers when that is stored (invariant 6).
    ///
    /// # Errors
    /// When it cannot be written down: then it must not run.
    pub(crate) async fn audit_intent(
        &self,
        (call, causes): (&ToolCall, Provenance),
        turn: &TurnId,
        input_hash: String,
    ) -> Result<(), String> {
        let plugin = self.owner_of(&call.tool);
        let record = AuditRecord {
            trace_id: turn.0.clone(),
            session_id: Some(call.session_id.clone()),
            step_id: self.turns.step_of(Some(turn)),
            plugin_id_claimed: plugin.as_ref().is_some_and(|id| self.is_claimed(id)),
            plugin_id: plugin,
            provenance: causes,
            subject: Some(format!("{} {}", call.tool, call.call_id)),
            input_hash: Some(input_hash),
            ..AuditRecord::new(AuditKind::ToolIntent, now(), "run")
        };
        self.store
            .audit(now(), vec![record])
            .await
            .map_err(|error| {
                format!("the call could not be written down and was not made: {error}")
            })
    }

    fn owner_of(&self, tool: &str) -> Option<PluginId> {
        let descriptor = self.runtime.descriptor(tool)?;
        owner(Some(&descriptor.spec))
    }

    /// Whether the plugin brought this tool.
    pub(crate) fn owns_tool(&self, plugin: &PluginId, tool: &str) -> bool {
        self.owner_of(tool).as_ref() == Some(plugin)
    }

    /// Other plugins live in its process: that it was this one, the process says.
    fn is_claimed(&self, plugin: &PluginId) -> bool {
        let all = self.plugins.list();
        let own = all.iter().find(|p| p.id == plugin.0).and_then(|p| p.pid);
        own.is_none() || all.iter().filter(|p| p.pid == own).count() > 1
    }

    /// What the audit keeps of a finished call.
    pub(crate) fn tool_audit(
        &self,
        turn: &TurnId,
        tool: &str,
        input_hash: Option<String>,
        output_hash: String,
    ) -> ToolAudit {
        let plugin = self.owner_of(tool);
        ToolAudit {
            step: self.turns.step_of(Some(turn)),
            claimed: plugin.as_ref().is_some_and(|id| self.is_claimed(id)),
            plugin,
            input_hash,
            output_hash: Some(output_hash),
        }
    }
}
