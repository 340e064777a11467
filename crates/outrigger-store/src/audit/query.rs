//! Queries of the audit by each of its fields (C13).

use outrigger_protocol::Millis;
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_stdx::text::hex;
use rusqlite::types::Value;
use rusqlite::{Connection, Result};

use crate::chain::Hash;

/// Selects records of the audit. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// Of these kinds; empty for all.
    pub kinds: Vec<AuditKind>,
    /// `traceId`.
    pub trace: Option<String>,
    /// `sessionId`.
    pub session: Option<String>,
    /// `stepId`.
    pub step: Option<String>,
    /// `hookName`, the point's name.
    pub hook: Option<String>,
    /// `pluginId`.
    pub plugin: Option<String>,
    /// `subPluginId`.
    pub sub_plugin: Option<String>,
    /// `inputHash`, or a prefix of it.
    pub input_hash: Option<String>,
    /// `outputHash`, or a prefix of it.
    pub output_hash: Option<String>,
    /// `decision`.
    pub decision: Option<String>,
    /// Minimum of `durationMs`.
    pub least_ms: Option<f64>,
    /// `timeout`.
    pub timeout: Option<bool>,
    /// `errored`.
    pub errored: Option<bool>,
    /// `policyCheckResult`, or a prefix of it: `passed`, `refused`.
    pub policy: Option<String>,
    /// A cause in `provenance` has all of these: the actor (`user`, `model`, `plugin`, …), a plugin's name, the action.
    pub cause: Vec<String>,
    /// `subject` contains this.
    pub subject: Option<String>,
    /// Started at this time or later.
    pub since: Option<Millis>,
    /// Started before this time.
    pub until: Option<Millis>,
    /// With a greater number.
    pub after: i64,
    /// With this number.
    pub seq: Option<i64>,
    /// Maximum number of records.
    pub limit: Option<usize>,
    /// The newest ones, if there are more than the limit; still in order.
    pub newest: bool,
}

/// A record of the audit with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAudit {
    /// Its number; numbers are consecutive.
    pub seq: i64,
    /// Its hash.
    pub hash: Hash,
    /// Hash of the previous record.
    pub prev_hash: Hash,
    /// Its content.
    pub record: AuditRecord,
}

impl StoredAudit {
    /// Returns the record with its number and hashes, as exported.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = serde_json::json!({ "seq": self.seq });
        let record = serde_json::json!(self.record);
        if let (Some(fields), serde_json::Value::Object(record)) = (value.as_object_mut(), record) {
            fields.extend(record);
            // Use the names of C8 if one plugin hosts another.
            if let (Some(top), Some(_)) = (&self.record.plugin_id, &self.record.sub_plugin_id) {
                fields.insert("topPluginId".into(), serde_json::json!(top));
            }
            fields.insert("prevHash".into(), hex(&self.prev_hash).into());
            fields.insert("hash".into(), hex(&self.hash).into());
        }
        value
    }
}

/// A stored row: number, hash, previous hash, body.
pub(crate) type Raw = (i64, Vec<u8>, Vec<u8>, String);

#[derive(Default)]
struct Filter {
    sql: String,
    values: Vec<Value>,
}

impl Filter {
    fn and(&mut self, sql: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.push(value.into());
    }
    fn field(&mut self, name: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.and(
                &format!("json_extract(body, '$.{name}') = ?"),
                value.clone(),
            );
        }
    }
    // As a literal prefix, without wildcards.
    fn begins(&mut self, name: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.and(
                &format!(
                    "substr(json_extract(body, '$.{name}'), 1, {}) = ?",
                    value.chars().count()
                ),
                value.clone(),
            );
        }
    }
    fn flag(&mut self, name: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.and(
                &format!("json_extract(body, '$.{name}') = ?"),
                i64::from(value),
            );
        }
    }
}

fn filter(query: &AuditQuery) -> Filter {
    let mut filter = Filter::default();
    filter.and("seq > ?", query.after);
    if let Some(seq) = query.seq {
        filter.and("seq = ?", seq);
    }
    if !query.kinds.is_empty() {
        let places = vec!["?"; query.kinds.len()].join(",");
        filter.sql.push_str(&format!(" AND kind IN ({places})"));
        let names = query.kinds.iter().map(|kind| kind.name().to_owned().into());
        filter.values.extend(names);
    }
    filter.field("traceId", query.trace.as_ref());
    filter.field("sessionId", query.session.as_ref());
    filter.field("stepId", query.step.as_ref());
    filter.field("hookName", query.hook.as_ref());
    filter.field("pluginId", query.plugin.as_ref());
    filter.field("subPluginId", query.sub_plugin.as_ref());
    filter.field("decision", query.decision.as_ref());
    filter.begins("inputHash", query.input_hash.as_ref());
    filter.begins("outputHash", query.output_hash.as_ref());
    filter.begins("policyCheckResult", query.policy.as_ref());
    filter.flag("timeout", query.timeout);
    filter.flag("errored", query.errored);
    if !query.cause.is_empty() {
        const WORDS: [&str; 4] = ["by", "did", "topPluginId", "subPluginId"];
        let words = WORDS.map(|word| format!("ifnull(json_extract(it.value, '$.{word}'), '')"));
        let has = format!("? IN ({})", words.join(", "));
        let has = vec![has; query.cause.len()].join(" AND ");
        filter.sql.push_str(&format!(
            " AND EXISTS (SELECT 1 FROM json_each(body, '$.provenance') AS it WHERE {has})"
        ));
        let words = query.cause.iter().cloned();
        filter.values.extend(words.map(Value::from));
    }
    if let Some(subject) = &query.subject {
        filter.and(
            "instr(json_extract(body, '$.subject'), ?) > 0",
            subject.clone(),
        );
    }
    if let Some(ms) = query.least_ms {
        filter.and("json_extract(body, '$.durationMs') >= ?", ms);
    }
    let time = |at: Millis| i64::try_from(at).unwrap_or(i64::MAX);
    if let Some(since) = query.since {
        filter.and("json_extract(body, '$.at') >= ?", time(since));
    }
    if let Some(until) = query.until {
        filter.and("json_extract(body, '$.at') < ?", time(until));
    }
    filter
}

/// Returns the rows of a query, in order.
pub(crate) fn select(conn: &Connection, query: &AuditQuery) -> Result<Vec<Raw>> {
    let mut filter = filter(query);
    let order = if query.newest { "DESC" } else { "ASC" };
    let limit = query.limit.map_or(-1, |n| i64::try_from(n).unwrap_or(-1));
    filter.values.push(limit.into());
    let sql = format!(
        "SELECT seq, hash, prev_hash, body FROM audit WHERE 1{} ORDER BY seq {order} LIMIT ?",
        filter.sql
    );
    let mut rows: Vec<Raw> = conn
        .prepare(&sql)?
        .query_map(rusqlite::params_from_iter(filter.values), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_>>()?;
    if query.newest {
        rows.reverse();
    }
    Ok(rows)
}
