//! `outrigger audit`: who did what, authorised by whom, and whether the record is intact (C13).

mod otlp;

use std::fmt::Write as _;

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::audit::AuditKind;
use outrigger_store::{AuditQuery, Store, StoredAudit, hex};

use crate::args::{AuditCommand, AuditFilter, ExportForm, Global};
use crate::failure::Failure;
use crate::terminal::out;
use crate::terminal::progress::Line;

/// Number of records read at once.
const PAGE: usize = 5_000;

/// Runs the command. Starts no plugin.
pub(crate) fn audit(global: &Global, command: AuditCommand) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let store = crate::commands::session::stored::open(&boot)?;
    match command {
        AuditCommand::List {
            filter,
            limit,
            json,
        } => list(&store, &filter, limit, json),
        AuditCommand::Show { number } => show(&store, number),
        AuditCommand::Verify { key } => verify(&store, key.as_deref()),
        AuditCommand::Export { filter, form } => export(&store, &filter, form),
    }
}

fn query(filter: &AuditFilter) -> Result<AuditQuery, Failure> {
    let kinds = filter
        .kind
        .iter()
        .map(|name| AuditKind::from_name(name).ok_or_else(|| unknown_kind(name)))
        .collect::<Result<_, _>>()?;
    Ok(AuditQuery {
        kinds,
        trace: filter.trace.clone(),
        session: filter.session.clone(),
        step: filter.step.clone(),
        hook: filter
            .hook
            .as_deref()
            .map(|hook| HookPoint::parse(hook).map_or(hook, |point| point.name()))
            .map(str::to_owned),
        plugin: filter.plugin.clone(),
        sub_plugin: filter.sub_plugin.clone(),
        input_hash: filter.input_hash.clone(),
        output_hash: filter.output_hash.clone(),
        decision: filter.decision.clone(),
        least_ms: filter.least_ms,
        timeout: filter.timeout.then_some(true),
        errored: filter.errored.then_some(true),
        policy: filter.policy.clone(),
        cause: filter.cause.clone(),
        subject: filter.subject.clone(),
        since: filter.since.as_deref().map(time).transpose()?,
        until: filter.until.as_deref().map(time).transpose()?,
        ..AuditQuery::default()
    })
}

fn unknown_kind(name: &str) -> Failure {
    let known: Vec<&str> = AuditKind::ALL.into_iter().map(AuditKind::name).collect();
    Failure::usage(
        format!("there is no kind of audit record called `{name}`"),
        Some(format!("one of {}", known.join(", "))),
    )
}

/// Parses a time: `2026-11-22T10:00:00Z`, or `2h`, `3d` ago.
fn time(text: &str) -> Result<u64, Failure> {
    let now = jiff::Timestamp::now().as_millisecond();
    let ago = |unit: i64, count: &str| Some(now - unit.checked_mul(count.parse().ok()?)?);
    let at = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((count, "m")) => ago(60_000, count),
        Some((count, "h")) => ago(3_600_000, count),
        Some((count, "d")) => ago(86_400_000, count),
        _ => text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_millisecond),
    };
    at.and_then(|at| u64::try_from(at).ok()).ok_or_else(|| {
        Failure::usage(
            format!("invalid time `{text}`"),
            Some("write 30m, 2h or 3d for so long ago, or 2026-11-22T10:00:00Z".into()),
        )
    })
}

fn list(store: &Store, filter: &AuditFilter, limit: usize, json: bool) -> Result<u8, Failure> {
    let found = store.audit_records(&AuditQuery {
        limit: Some(limit),
        newest: true,
        ..query(filter)?
    })?;
    let mut text = String::new();
    for stored in &found {
        if json {
            let _ = writeln!(text, "{}", stored.to_json());
        } else {
            text.push_str(&line(stored));
        }
    }
    out(&text);
    Ok(0)
}

/// Formats one line: number, time, kind, actor, subject, decision.
fn line(stored: &StoredAudit) -> String {
    let record = &stored.record;
    let mut who = String::new();
    if let Some(plugin) = &record.plugin_id {
        let _ = write!(who, " {}", one_line(&plugin.to_string()));
        if let Some(sub) = &record.sub_plugin_id {
            let _ = write!(who, "/{}", one_line(&sub.to_string()));
        }
    }
    let mut text = format!(
        "{:>6} {} {:<12}{who}",
        stored.seq,
        stamp(record.at),
        record.kind.name()
    );
    for part in [&record.hook_name, &record.subject].into_iter().flatten() {
        let _ = write!(text, " {}", one_line(part));
    }
    let _ = write!(text, ": {}", record.decision);
    if record.policy_check_result != "passed" {
        let _ = write!(text, ", {}", one_line(&record.policy_check_result));
    } else if let Some(detail) = &record.detail {
        let _ = write!(text, " ({})", one_line(detail));
    }
    if !record.provenance.is_plain() {
        let _ = write!(text, " [{}]", one_line(&record.provenance.to_string()));
    }
    text.push('\n');
    text
}

fn one_line(text: &str) -> String {
    const MAX_LENGTH: usize = 160;
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_LENGTH)
        .collect();
    if text.chars().nth(MAX_LENGTH).is_some() {
        line.push_str("...");
    }
    line
}

fn stamp(ms: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0)).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S%.3f")
        .to_string()
}

fn show(store: &Store, number: i64) -> Result<u8, Failure> {
    let found = store.audit_records(&AuditQuery {
        seq: Some(number),
        ..AuditQuery::default()
    })?;
    let Some(stored) = found.first() else {
        return Err(Failure::new(
            "audit.none",
            format!("the audit has no record {number}"),
            Some("`outrigger audit list` shows which there are".into()),
        ));
    };
    let text = serde_json::to_string_pretty(&stored.to_json()).unwrap_or_default();
    out(&format!("{text}\n"));
    Ok(0)
}

fn verify(store: &Store, key: Option<&str>) -> Result<u8, Failure> {
    let key = key.map(unhex).transpose()?;
    let report = store.verify_audit(key.as_deref())?;
    let mut text = format!(
        "{} records from number {}, {} seals",
        report.rows, report.first, report.seals
    );
    if report.unsealed > 0 {
        let _ = write!(text, ", {} records behind the last seal", report.unsealed);
    }
    text.push('\n');
    if let Some(key) = store.audit_key()? {
        let _ = writeln!(text, "key {}", hex(&key));
    }
    if report.removed > 0 {
        let _ = writeln!(
            text,
            "records 1 to {} were removed as audit.keep_records and audit.keep_days say; the cut is sealed",
            report.removed
        );
        if let Some(last) = &report.last_removal {
            let _ = writeln!(text, "the last time {}", one_line(last));
        }
    }
    if report.unlisted > 0 {
        let _ = writeln!(
            text,
            "{} records are counted and not listed: more came from one source than is kept (`outrigger audit list --decision 'not listed'`)",
            report.unlisted
        );
    }
    if report.is_valid() {
        text.push_str(match report.removed {
            0 => "no tampering found\n",
            _ => "no tampering found in the rest\n",
        });
        out(&text);
        return Ok(0);
    }
    for fault in &report.faults {
        let _ = writeln!(text, "{fault}");
    }
    out(&text);
    Err(Failure::new(
        "audit.tampered",
        format!(
            "the audit log was modified: {}",
            problems(report.faults.len())
        ),
        Some("keep the file unchanged; `outrigger audit export` prints its current records".into()),
    ))
}

fn problems(count: usize) -> String {
    match count {
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    }
}

fn unhex(text: &str) -> Result<Vec<u8>, Failure> {
    let wrong = || {
        Failure::usage(
            "the key is not 64 hexadecimal digits".to_owned(),
            Some(
                "`outrigger audit verify` prints it; keep it where this machine cannot write"
                    .into(),
            ),
        )
    };
    outrigger_stdx::text::unhex(text)
        .filter(|key| key.len() == 32)
        .ok_or_else(wrong)
}

fn export(store: &Store, filter: &AuditFilter, form: ExportForm) -> Result<u8, Failure> {
    let mut query = AuditQuery {
        limit: Some(PAGE),
        ..query(filter)?
    };
    loop {
        let found = store.audit_records(&query)?;
        let Some(last) = found.last() else {
            return Ok(0);
        };
        query.after = last.seq;
        let mut text = String::new();
        match form {
            ExportForm::Jsonl => {
                for stored in &found {
                    let _ = writeln!(text, "{}", stored.to_json());
                }
            }
            ExportForm::Otlp => {
                let _ = writeln!(text, "{}", otlp::traces(&found));
            }
        }
        out(&text);
    }
}
