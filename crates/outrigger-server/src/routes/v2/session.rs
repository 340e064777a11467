//! The parts of OpenCode's second API that the web client uses besides the lists of [`crate::routes::v2::catalog`]: the server's health,
//! and the sessions of every project (for a plugin: of its own), in pages.
//!
//! As in OpenCode, a page has cursors to both its neighbours, which contain the order and the first or last session of the page. They are
//! generated per client, and are base64url of JSON as there.

use std::cmp::Ordering;

use axum::extract::{Path, Query, State};
use axum::routing::get;
use axum::{Extension, Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::Millis;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_store::SessionFilter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::scope::{Scope, in_scope};
use crate::error::ApiError;
use crate::routes::cursor;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/api/health", get(health))
        .route("/api/session", get(sessions))
        .route("/api/session/{id}", get(session))
}

/// Default page size.
const PAGE: usize = 50;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    #[default]
    Desc,
}

/// Which neighbour of the page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Previous,
    Next,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Anchor {
    id: SessionId,
    /// When it was created.
    time: Millis,
    direction: Direction,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cursor {
    order: Order,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search: Option<String>,
    anchor: Anchor,
}

impl Cursor {
    fn decode(text: &str) -> Result<Self, ApiError> {
        cursor::decode(text).ok_or_else(|| {
            ApiError::bad_request("invalid `cursor`: use `cursor` of the previous page")
        })
    }
}

#[derive(Deserialize)]
struct ListQuery {
    limit: Option<usize>,
    order: Option<Order>,
    search: Option<String>,
    cursor: Option<String>,
}

async fn health() -> Json<Value> {
    Json(json!({ "healthy": true }))
}

async fn session(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(json!({ "data": form(&agent.session(&id)?) })))
}

async fn sessions(
    State(agent): State<Agent>,
    scope: Option<Extension<Scope>>,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<Value>, ApiError> {
    let cursor = wanted
        .cursor
        .as_deref()
        .filter(|text| !text.is_empty())
        .map(Cursor::decode)
        .transpose()?;
    let order = match &cursor {
        Some(cursor) => cursor.order,
        None => wanted.order.unwrap_or_default(),
    };
    let search = match &cursor {
        Some(cursor) => cursor.search.clone(),
        None => wanted.search,
    };
    let filter = SessionFilter {
        search: search.clone(),
        ..SessionFilter::default()
    };
    let anchor = cursor.map(|cursor| cursor.anchor);
    let limit = wanted.limit.unwrap_or(PAGE);
    let mut found = agent.store().sessions(&filter)?;
    found.retain(|session| in_scope(scope.as_ref(), session));
    let page = page(found, order, anchor, limit);
    let beside = |at: Option<&Session>, direction| {
        at.map(|session| {
            let anchor = Anchor {
                id: session.id.clone(),
                time: session.time.created,
                direction,
            };
            let search = search.clone();
            cursor::encode(&Cursor {
                order,
                search,
                anchor,
            })
        })
        .transpose()
    };
    Ok(Json(json!({
        "data": page.iter().map(form).collect::<Vec<Value>>(),
        "cursor": {
            "previous": beside(page.first(), Direction::Previous)?,
            "next": beside(page.last(), Direction::Next)?,
        },
    })))
}

/// Returns the sessions of a page: in order, after or before the anchor.
fn page(mut all: Vec<Session>, order: Order, anchor: Option<Anchor>, limit: usize) -> Vec<Session> {
    let compare = |(time, id): (Millis, &SessionId), session: &Session| {
        let ascending = (session.time.created, &session.id).cmp(&(time, id));
        match order {
            Order::Asc => ascending,
            Order::Desc => ascending.reverse(),
        }
    };
    all.sort_by(|a, b| compare((b.time.created, &b.id), a));
    let Some(anchor) = anchor else {
        all.truncate(limit);
        return all;
    };
    let wanted = match anchor.direction {
        Direction::Next => Ordering::Greater,
        Direction::Previous => Ordering::Less,
    };
    all.retain(|session| compare((anchor.time, &anchor.id), session) == wanted);
    if anchor.direction == Direction::Previous {
        // Those next to the anchor.
        all.drain(..all.len().saturating_sub(limit));
    }
    all.truncate(limit);
    all
}

/// Returns a session in the second API's form: with a separate location, and without its summary.
fn form(session: &Session) -> Value {
    let mut value = json!(session);
    let Some(fields) = value.as_object_mut() else {
        return value;
    };
    let known = [
        "id",
        "parentID",
        "projectID",
        "agent",
        "model",
        "cost",
        "tokens",
        "time",
        "title",
    ];
    fields.retain(|key, _| known.contains(&key.as_str()));
    fields.insert("location".into(), json!({ "directory": session.directory }));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, created: Millis) -> Session {
        serde_json::from_value(json!({
            "id": id, "slug": id, "projectID": "p", "directory": "/d", "path": "", "title": id, "version": "1", "cost": 0,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "time": {"created": created, "updated": 9 - created},
        }))
        .unwrap()
    }

    fn ids(page: &[Session]) -> String {
        let ids: Vec<&str> = page.iter().map(|session| session.id.as_str()).collect();
        ids.join(" ")
    }

    #[test]
    fn pages_meet_without_a_gap_in_both_orders_and_directions() {
        let all = || {
            vec![
                session("b", 2),
                session("d", 3),
                session("a", 1),
                session("c", 2),
            ]
        };
        for (order, whole) in [(Order::Asc, "a b c d"), (Order::Desc, "d c b a")] {
            assert_eq!(ids(&page(all(), order, None, 9)), whole);
            for limit in 1..=4 {
                let (mut forth, mut anchor) = (Vec::new(), None);
                loop {
                    let found = page(all(), order, anchor.clone(), limit);
                    let Some(last) = found.last() else { break };
                    anchor = Some(Anchor {
                        id: last.id.clone(),
                        time: last.time.created,
                        direction: Direction::Next,
                    });
                    forth.extend(found);
                }
                assert_eq!(ids(&forth), whole, "{order:?} by {limit}");
                let (mut back, mut anchor) = (Vec::new(), anchor.unwrap());
                loop {
                    anchor.direction = Direction::Previous;
                    let found = page(all(), order, Some(anchor.clone()), limit);
                    let Some(first) = found.first() else { break };
                    anchor.id = first.id.clone();
                    anchor.time = first.time.created;
                    back.splice(0..0, found);
                }
                // The last one was the anchor.
                let most = whole.rsplit_once(' ').unwrap().0;
                assert_eq!(ids(&back), most, "{order:?} back by {limit}");
            }
        }
    }

    #[test]
    fn cursors_are_those_of_opencode() {
        // Recorded from opencode 1.18.33.
        let text = "eyJvcmRlciI6ImRlc2MiLCJhbmNob3IiOnsiaWQiOiJzZXNfZGZjOWMyMTFlZmZlNzl1V0o2aFQ1ZXcxV2EiLCJ0aW1lIjoxNzk1MzUzMjA2NDk3LCJkaXJlY3Rpb24iOiJuZXh0In19";
        let cursor = Cursor::decode(text).unwrap();
        assert_eq!(cursor.anchor.time, 1_795_353_206_497);
        assert_eq!(cursor::encode(&cursor).unwrap(), text);
        assert!(Cursor::decode("nonsense").is_err());
    }
}
