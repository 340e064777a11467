//! Limits the number of records per source. A source whose requests cost nothing, or are just refused, must not fill
//! the audit: its records would displace those of others. Records over the limit are counted, and the count is a record
//! itself.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use outrigger_protocol::Millis;
use outrigger_protocol::audit::{AuditKind, AuditRecord, POLICY_PASSED};
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_stdx::sync::lock;
use outrigger_stdx::tally::Tallies;

/// Maximum number of refusals of one source listed within [`PERIOD`], for each kind and rule.
const REFUSALS: u32 = 30;
/// Maximum number of other records of one source listed within [`PERIOD`], for each kind and decision.
const OTHERS: u32 = 600;
const PERIOD: Duration = Duration::from_secs(60);
/// Number of sources with a separate count.
const SOURCES: usize = 1024;

/// Decision of a record that states how many are not listed.
pub(crate) const NOT_LISTED: &str = "not listed";

/// Source of a record, as far as it cannot choose it itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    kind: AuditKind,
    plugin: Option<PluginId>,
    /// For permission questions, which name no plugin.
    session: Option<SessionId>,
    /// For process starts, which name neither: the purpose of the process.
    purpose: Option<String>,
    decision: String,
    policy: String,
}

impl Source {
    fn of(record: &AuditRecord) -> Self {
        let asks = record.kind == AuditKind::Permission;
        let started = record
            .subject
            .as_deref()
            .filter(|_| record.kind == AuditKind::Process);
        Self {
            purpose: started.map(purpose),
            kind: record.kind,
            plugin: record.plugin_id.clone(),
            session: record.session_id.clone().filter(|_| asks),
            decision: record.decision.clone(),
            policy: record.policy_check_result.clone(),
        }
    }

    /// Returns the record that states how many of this source are not listed.
    fn not_listed(self, at: Millis, count: u64) -> AuditRecord {
        AuditRecord {
            plugin_id: self.plugin,
            session_id: self.session,
            subject: Some(format!("{count} records")),
            detail: Some(format!(
                "more came within {} s than are listed{}: decision {}, policy {}",
                PERIOD.as_secs(),
                self.purpose
                    .map(|purpose| format!(" of {purpose}"))
                    .unwrap_or_default(),
                self.decision,
                self.policy
            )),
            ..AuditRecord::new(self.kind, at, NOT_LISTED)
        }
    }
}

/// Returns the first word of a label (`git (/usr/bin/git)`, `mcp:notes (node)`): the names of servers and tools
/// determine the rest. Processes of plugins keep theirs, since the number of plugins is limited.
fn purpose(label: &str) -> String {
    let label = label.split_once(" (").map_or(label, |(label, _)| label);
    match label.split_once([':', ' ']) {
        Some((first, _)) if first != "plugin" => first.to_owned(),
        _ => label.to_owned(),
    }
}

/// Counts the records of each source.
pub(crate) struct Bound(Mutex<Tables>);

struct Tables {
    refusals: Tallies<Source>,
    others: Tallies<Source>,
}

impl Default for Bound {
    fn default() -> Self {
        Self(Mutex::new(Tables {
            refusals: Tallies::new(REFUSALS, PERIOD, SOURCES),
            others: Tallies::new(OTHERS, PERIOD, SOURCES),
        }))
    }
}

/// Returns whether records of a kind are limited. Runs of hooks and tools are sequential work of the program, and
/// custom points are limited where they are called; all of these are listed.
fn is_bounded(kind: AuditKind) -> bool {
    !matches!(
        kind,
        AuditKind::Hook | AuditKind::ToolIntent | AuditKind::ToolOutcome | AuditKind::Retention
    )
}

impl Bound {
    fn lock(&self) -> std::sync::MutexGuard<'_, Tables> {
        lock(&self.0)
    }

    /// Returns whether the record is listed, and how many before it were not.
    fn take(&self, source: &Source) -> Option<u64> {
        let now = Instant::now();
        let mut tables = self.lock();
        if source.policy == POLICY_PASSED {
            tables.others.take(source, now)
        } else {
            tables.refusals.take(source, now)
        }
    }

    /// Returns the listed records, with counts of the unlisted ones before them.
    pub(crate) fn records(&self, at: Millis, records: Vec<AuditRecord>) -> Vec<AuditRecord> {
        let mut listed = Vec::with_capacity(records.len());
        for record in records {
            if is_bounded(record.kind) {
                let source = Source::of(&record);
                match self.take(&source) {
                    None => continue,
                    Some(0) => {}
                    Some(unreported) => listed.push(source.not_listed(at, unreported)),
                }
            }
            listed.push(record);
        }
        listed
    }

    /// Removes client requests over the limit from the records of the log; returns counts of those removed before.
    pub(crate) fn requests(&self, at: Millis, records: &mut Vec<LogRecord>) -> Vec<AuditRecord> {
        let mut counts = Vec::new();
        records.retain(|record| {
            let LogRecord::Client(client) = record else {
                return true;
            };
            let source = match AuditRecord::of(record) {
                Some(record) => Source::of(&record),
                None => Source::of(&AuditRecord {
                    plugin_id: client.plugin.clone(),
                    ..AuditRecord::new(AuditKind::Client, at, "read")
                }),
            };
            match self.take(&source) {
                None => return false,
                Some(0) => {}
                Some(unreported) => counts.push(source.not_listed(at, unreported)),
            }
            true
        });
        counts
    }

    /// Returns counts that are not reported yet.
    pub(crate) fn rest(&self, at: Millis) -> Vec<AuditRecord> {
        let mut tables = self.lock();
        let mut rest = tables.refusals.rest();
        rest.extend(tables.others.rest());
        drop(tables);
        let nobody = || Source {
            kind: AuditKind::Client,
            plugin: None,
            session: None,
            purpose: None,
            decision: "any".to_owned(),
            policy: "any".to_owned(),
        };
        rest.into_iter()
            .map(|(source, count)| source.unwrap_or_else(nobody).not_listed(at, count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::AuditQuery;
    use super::super::tamper_tests::runtime;
    use super::*;
    use crate::store::Store;
    use outrigger_protocol::log::ClientRecord;

    fn request(plugin: &str, method: &str, status: u16) -> LogRecord {
        LogRecord::Client(Box::new(ClientRecord {
            plugin: Some(plugin.into()),
            method: method.into(),
            path: "/session".into(),
            session: None,
            status,
            duration_ms: 1.0,
            at: 1,
        }))
    }

    fn refused(plugin: Option<&str>, kind: AuditKind) -> AuditRecord {
        AuditRecord {
            plugin_id: plugin.map(Into::into),
            policy_check_result: "refused: rule".into(),
            ..AuditRecord::new(kind, 1, "deny")
        }
    }

    /// Returns the number of a plugin's listed records and the reports of unlisted ones.
    fn found(store: &Store, plugin: Option<&str>) -> (usize, Vec<String>) {
        let records = store
            .audit_records(&AuditQuery {
                plugin: plugin.map(str::to_owned),
                ..AuditQuery::default()
            })
            .unwrap();
        let (counts, listed): (Vec<_>, Vec<_>) = records
            .into_iter()
            .map(|stored| stored.record)
            .partition(|record| record.decision == NOT_LISTED);
        let counts = counts.into_iter().filter_map(|record| record.subject);
        (listed.len(), counts.collect())
    }

    #[test]
    fn one_source_cannot_fill_the_audit_and_what_is_left_out_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
        // A flush reports counts with the current time; much older ones would be removed.
        let days = 0;
        store
            .keep_audit(super::super::Retention { records: 0, days })
            .unwrap();
        runtime().block_on(async {
            for _ in 0..1000 {
                store.audit_lazily(1, vec![refused(Some("loud"), AuditKind::Network)]);
                store.append_lazily(1, vec![request("loud", "POST", 403)]);
                store.append_lazily(1, vec![request("loud", "GET", 200)]);
            }
            store.audit_lazily(1, vec![refused(Some("quiet"), AuditKind::Network)]);
            store.append_lazily(1, vec![request("quiet", "POST", 200)]);
            // The end of a turn reports the counts so far.
            store.flush(true).await.unwrap();
        });
        let (listed, mut counts) = found(&store, Some("loud"));
        counts.sort();
        assert_eq!(listed, 60);
        assert_eq!(counts, ["400 records", "970 records", "970 records"]);
        assert_eq!(found(&store, Some("quiet")), (2, Vec::new()));
        let log = store.plugin_use().unwrap();
        let of = |plugin: &str| -> u64 {
            log.iter()
                .filter(|it| it.plugin.as_deref() == Some(plugin))
                .map(|it| it.count)
                .sum()
        };
        assert_eq!((of("loud"), of("quiet")), (630, 1));
        let report = store.verify_audit(None).unwrap();
        assert!(report.is_valid());
        assert_eq!(report.unlisted, 2340);
    }

    /// Actions of the program itself are all listed.
    #[test]
    fn intents_and_outcomes_are_all_listed() {
        let bound = Bound::default();
        for kind in [
            AuditKind::Hook,
            AuditKind::ToolIntent,
            AuditKind::ToolOutcome,
        ] {
            let records = vec![refused(Some("acme"), kind); 2000];
            assert_eq!(bound.records(1, records).len(), 2000, "{kind:?}");
        }
        // A request that any client can send.
        let knocks = vec![refused(None, AuditKind::Bridge); 100];
        assert_eq!(bound.records(1, knocks).len(), 30);
        let asks = |session: &str| AuditRecord {
            session_id: Some(session.into()),
            ..refused(None, AuditKind::Permission)
        };
        assert_eq!(bound.records(1, vec![asks("ses_1"); 100]).len(), 30);
        assert_eq!(bound.records(1, vec![asks("ses_2")]).len(), 1);
    }

    /// A source that starts many processes does not affect the others.
    #[test]
    fn starts_are_bounded_for_each_purpose() {
        let bound = Bound::default();
        for (subject, many, want) in [
            ("git (/usr/bin/git)", 1000, 600),
            ("git (/opt/git)", 1, 0),
            ("bash (/bin/bash)", 1, 1),
            ("mcp:a (node)", 600, 600),
            ("mcp:b (node)", 1, 0),
            ("plugin:a (bun)", 600, 600),
            ("plugin:b (bun)", 1, 1),
        ] {
            let start = AuditRecord {
                subject: Some(subject.into()),
                ..AuditRecord::new(AuditKind::Process, 1, "start")
            };
            let listed = bound.records(1, vec![start; many]);
            assert_eq!(listed.len(), want, "{subject}");
        }
        let mut counts: Vec<_> = bound.rest(1).into_iter().map(|it| it.detail).collect();
        counts.sort();
        let said = counts.first().cloned().flatten().unwrap_or_default();
        assert!(said.contains(" of git: "), "{said}");
    }
}
