//! Routes for turns and their traces, files changed by prompts, and the audit.

use axum::extract::{Path, Query, State};
use axum::{Extension, Json};
use outrigger_api::{Trace, Turn};
use outrigger_protocol::audit::AuditKind;
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_store::{AuditQuery, StoredAudit, hex};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Source;
use crate::access::marks::FromPlugin;
use crate::access::scope::Scope;
use crate::error::{ApiError, JsonResult};
use crate::routes::session::edit::diffs_of;

/// Default and maximum page size.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;
/// Maximum number of messages searched for diffs.
const DIFFS: usize = 2000;

#[derive(Deserialize)]
pub(super) struct Limit {
    limit: Option<usize>,
}

impl Limit {
    fn get(&self) -> usize {
        self.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE)
    }
}

/// Restricts a route to the user: hooks and decisions of all plugins are not for plugins.
fn for_the_user(plugin: Option<Extension<FromPlugin>>) -> Result<(), ApiError> {
    match plugin {
        Some(_) => Err(ApiError::forbidden(
            "only the user can read traces and the audit, not a plugin's client",
        )),
        None => Ok(()),
    }
}

pub(super) async fn turns(
    State(source): State<Source>,
    Path(id): Path<SessionId>,
    scope: Option<Extension<Scope>>,
    Query(limit): Query<Limit>,
) -> JsonResult<Vec<Turn>> {
    source.find(&id, scope.as_ref())?;
    Ok(Json(source.reader()?.turns(&id, limit.get())?))
}

pub(super) async fn trace(
    State(source): State<Source>,
    Path((id, turn)): Path<(SessionId, TurnId)>,
    plugin: Option<Extension<FromPlugin>>,
) -> JsonResult<Trace> {
    for_the_user(plugin)?;
    let trace = source.reader()?.trace(&id, &turn)?;
    let missing = || ApiError::missing(format!("{id} has no turn {turn}"));
    Ok(Json(trace.ok_or_else(missing)?))
}

/// Returns the files that each prompt of a conversation changed, newest prompt last.
pub(super) async fn diffs(
    State(source): State<Source>,
    Path(id): Path<SessionId>,
    scope: Option<Extension<Scope>>,
) -> JsonResult<Vec<Value>> {
    source.find(&id, scope.as_ref())?;
    let reader = source.reader()?;
    let messages = reader.store().newest_messages(&id, None, DIFFS)?;
    let changed = messages.iter().filter_map(|message| {
        let diffs = diffs_of(&message.info).filter(|diffs| !diffs.is_empty())?;
        Some(json!({ "attempt": message.info.id(), "diffs": diffs }))
    });
    Ok(Json(changed.collect()))
}

#[derive(Deserialize)]
pub(super) struct Filter {
    session: Option<String>,
    plugin: Option<String>,
    kind: Option<String>,
    hook: Option<String>,
    decision: Option<String>,
    subject: Option<String>,
    since: Option<u64>,
    until: Option<u64>,
    after: Option<i64>,
    limit: Option<usize>,
}

/// Returns the newest matching records of the audit, or those after a number.
pub(super) async fn audit(
    State(source): State<Source>,
    plugin: Option<Extension<FromPlugin>>,
    Query(filter): Query<Filter>,
) -> JsonResult<Vec<Value>> {
    for_the_user(plugin)?;
    let kinds = match &filter.kind {
        Some(name) => vec![AuditKind::from_name(name).ok_or_else(|| {
            ApiError::bad_request(format!("there is no kind of audit record called `{name}`"))
        })?],
        None => Vec::new(),
    };
    let limit = Limit {
        limit: filter.limit,
    };
    let query = AuditQuery {
        kinds,
        session: filter.session,
        plugin: filter.plugin,
        hook: filter.hook,
        decision: filter.decision,
        subject: filter.subject,
        since: filter.since,
        until: filter.until,
        after: filter.after.unwrap_or(0),
        newest: filter.after.is_none(),
        limit: Some(limit.get()),
        ..AuditQuery::default()
    };
    let found = source.reader()?.store().audit_records(&query)?;
    Ok(Json(found.iter().map(StoredAudit::to_json).collect()))
}

/// Whether the audit is whole. Reads all of it.
pub(super) async fn verify(
    State(source): State<Source>,
    plugin: Option<Extension<FromPlugin>>,
) -> JsonResult<Value> {
    for_the_user(plugin)?;
    let store = source.reader()?.store().clone();
    let read = tokio::task::spawn_blocking(move || {
        Ok::<_, outrigger_store::StoreError>((store.verify_audit(None)?, store.audit_key()?))
    });
    let (report, key) = read
        .await
        .map_err(|lost| ApiError::internal(lost.to_string()))??;
    let faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    Ok(Json(json!({
        "valid": report.is_valid(), "rows": report.rows, "first": report.first, "removed": report.removed,
        "unlisted": report.unlisted, "seals": report.seals, "unsealed": report.unsealed, "head": report.head.seq,
        "key": key.map(|key| hex(&key)), "faults": faults,
    })))
}
