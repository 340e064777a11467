//! The audit as OpenTelemetry traces, in the JSON form of OTLP that collectors read from files: one `TracesData` per
//! line.

use outrigger_plugins::hash;
use outrigger_protocol::audit::AuditRecord;
use outrigger_store::{StoredAudit, hex};
use serde_json::{Value, json};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `STATUS_CODE_OK`, `STATUS_CODE_ERROR`.
const OK: u8 = 1;
const ERROR: u8 = 2;

/// Returns one line of the file: a span for each record.
pub(crate) fn traces(records: &[StoredAudit]) -> Value {
    let spans: Vec<Value> = records.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            attribute("service.name", json!("outrigger")),
            attribute("service.version", json!(env!("CARGO_PKG_VERSION"))),
        ]},
        "scopeSpans": [{"scope": {"name": "outrigger.audit"}, "spans": spans}],
    }]})
}

fn span(stored: &StoredAudit) -> Value {
    let record = &stored.record;
    // OTLP's identifiers are 16 and 8 bytes; records of one trace share one.
    let trace = hash(&record.trace_id);
    let start = u128::from(record.at) * 1_000_000;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a duration of hours fits many times over, and none is negative"
    )]
    let took = (record.duration_ms.max(0.0) * 1_000_000.0) as u128;
    let name = match &record.hook_name {
        Some(hook) => format!("{} {hook}", record.kind.name()),
        None => record.kind.name().to_owned(),
    };
    json!({
        "traceId": trace.get(..32).unwrap_or_default(),
        "spanId": hex(stored.hash.get(..8).unwrap_or_default()),
        "name": name,
        "kind": INTERNAL,
        // 64-bit numbers are strings in OTLP's JSON.
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": (start + took).to_string(),
        "attributes": attributes(stored.seq, record),
        "status": {"code": if record.errored { ERROR } else { OK }},
    })
}

/// Returns every other field under its name in the audit.
fn attributes(seq: i64, record: &AuditRecord) -> Vec<Value> {
    let mut all = vec![attribute("outrigger.audit.seq", json!(seq))];
    if let Value::Object(fields) = json!(record) {
        let rest = fields.into_iter().filter(|(name, _)| name != "at");
        all.extend(rest.map(|(name, value)| attribute(&format!("outrigger.audit.{name}"), value)));
    }
    all
}

fn attribute(key: &str, value: Value) -> Value {
    let value = match value {
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(n) if n.is_f64() => json!({"doubleValue": n}),
        Value::Number(n) => json!({"intValue": n.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    json!({"key": key, "value": value})
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::audit::AuditKind;

    use super::*;

    #[test]
    fn a_record_is_a_span() {
        let record = AuditRecord {
            trace_id: "trn_1".into(),
            hook_name: Some("tool.before_call".into()),
            plugin_id: Some("guard".into()),
            duration_ms: 1.5,
            errored: true,
            ..AuditRecord::new(AuditKind::Hook, 1_000, "block")
        };
        let stored = StoredAudit {
            seq: 7,
            hash: [0xab; 32],
            prev_hash: [0; 32],
            record,
        };
        let traces = traces(&[stored]);
        let span = &traces["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["spanId"], "abababababababab");
        assert_eq!(span["name"], "hook tool.before_call");
        assert_eq!(span["startTimeUnixNano"], "1000000000");
        assert_eq!(span["endTimeUnixNano"], "1001500000");
        assert_eq!(span["status"], json!({"code": 2}));
        let attributes = span["attributes"].as_array().unwrap();
        for want in [
            json!({"key": "outrigger.audit.seq", "value": {"intValue": "7"}}),
            json!({"key": "outrigger.audit.traceId", "value": {"stringValue": "trn_1"}}),
            json!({"key": "outrigger.audit.pluginId", "value": {"stringValue": "guard"}}),
            json!({"key": "outrigger.audit.durationMs", "value": {"doubleValue": 1.5}}),
            json!({"key": "outrigger.audit.timeout", "value": {"boolValue": false}}),
            json!({"key": "outrigger.audit.decision", "value": {"stringValue": "block"}}),
        ] {
            assert!(attributes.contains(&want), "{want} in {attributes:?}");
        }
    }
}
