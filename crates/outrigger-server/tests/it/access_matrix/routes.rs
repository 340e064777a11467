//! Every route of the server's own table is either tried here or known to use no file of the project.
//!
//! A `GET` is sent as listed in the table, with the identifiers of a session in which every file has changed, so a new one is tried
//! from its first day. Others are sent by the probes, which the harness records.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::probes::encode;
use super::{Faults, Location, Matrix};

/// The source of `GET /doc`.
const TABLE: &str = include_str!("../../../src/doc.txt");

/// Routes with a body, which probes try.
const SENT: &[&str] = &[
    "PATCH /session/{sessionID}/message/{messageID}/part/{partID}",
    "POST /outrigger/session/{sessionID}/turn",
    "POST /session",
    "POST /session/{sessionID}/command",
    "POST /session/{sessionID}/fork",
    "POST /session/{sessionID}/init",
    "POST /session/{sessionID}/message",
    "POST /session/{sessionID}/prompt_async",
    "POST /session/{sessionID}/revert",
    "POST /session/{sessionID}/summarize",
    "POST /session/{sessionID}/unrevert",
    "POST /vcs/apply",
];

/// Routes that use no file of the project, by reason.
const NO_FILE: &[(&str, &[&str])] = &[
    (
        "a command or terminal of the user's own, which is in no sandbox",
        &[
            "POST /session/{sessionID}/shell",
            "POST /pty",
            "GET /pty/{ptyID}",
            "PUT /pty/{ptyID}",
            "DELETE /pty/{ptyID}",
            "GET /pty/{ptyID}/connect",
            "POST /pty/{ptyID}/connect-token",
        ],
    ),
    (
        "it answers a question; what is then done is tried as a tool's call",
        &[
            "POST /outrigger/permission/{requestID}/grant",
            "POST /outrigger/v1/permission/{requestID}/reply",
            "POST /outrigger/v1/question/{requestID}/reject",
            "POST /outrigger/v1/question/{requestID}/reply",
            "POST /permission/{requestID}/reply",
            "POST /question/{requestID}/reject",
            "POST /question/{requestID}/reply",
            "POST /session/{sessionID}/permissions/{permissionID}",
        ],
    ),
    (
        "it changes, ends or removes what the store holds of a session",
        &[
            "PATCH /session/{sessionID}",
            "DELETE /session/{sessionID}",
            "DELETE /session/{sessionID}/message/{messageID}",
            "DELETE /session/{sessionID}/message/{messageID}/part/{partID}",
            "POST /session/{sessionID}/abort",
            "POST /outrigger/session/{sessionID}/cancel",
            "POST /experimental/control-plane/move-session",
        ],
    ),
    (
        "it writes settings, logins or names of the user's, none of which is read back from a file of the project",
        &[
            "DELETE /auth/{providerID}",
            "PUT /auth/{providerID}",
            "PATCH /config",
            "PATCH /global/config",
            "PATCH /project/{projectID}",
            "POST /project/git/init",
            "POST /provider/{providerID}/oauth/authorize",
            "POST /provider/{providerID}/oauth/callback",
        ],
    ),
    (
        "it starts, ends or logs in at servers and plugins, whose sandbox the tests of commands try",
        &[
            "POST /mcp",
            "DELETE /mcp/{name}/auth",
            "POST /mcp/{name}/auth",
            "POST /mcp/{name}/auth/authenticate",
            "POST /mcp/{name}/auth/callback",
            "POST /mcp/{name}/connect",
            "POST /mcp/{name}/disconnect",
            "POST /outrigger/plugin/reload",
            "POST /outrigger/plugin/resume",
            "POST /outrigger/plugin/suspend",
            "POST /global/dispose",
            "POST /global/upgrade",
            "POST /instance/dispose",
        ],
    ),
    (
        "it is about no folder: the user's own settings, and this table",
        &["GET /doc", "GET /global/config"],
    ),
    (
        "it passes a text on as it came",
        &[
            "POST /log",
            "POST /outrigger/check",
            "GET /tui/control/next",
            "POST /tui/append-prompt",
            "POST /tui/clear-prompt",
            "POST /tui/control/response",
            "POST /tui/execute-command",
            "POST /tui/open-help",
            "POST /tui/open-models",
            "POST /tui/open-sessions",
            "POST /tui/open-themes",
            "POST /tui/publish",
            "POST /tui/select-session",
            "POST /tui/show-toast",
            "POST /tui/submit-prompt",
        ],
    ),
    (
        "it is not provided, or has nothing",
        &[
            "POST /experimental/console/switch",
            "POST /experimental/project/{projectID}/copy",
            "DELETE /experimental/project/{projectID}/copy",
            "POST /experimental/project/{projectID}/copy/generate-name",
            "POST /experimental/project/{projectID}/copy/refresh",
            "POST /experimental/session/{sessionID}/background",
            "POST /experimental/workspace",
            "DELETE /experimental/worktree",
            "POST /experimental/worktree",
            "POST /experimental/worktree/reset",
            "POST /session/{sessionID}/share",
            "DELETE /session/{sessionID}/share",
            "POST /sync/history",
            "POST /sync/replay",
            "POST /sync/start",
            "POST /sync/steal",
        ],
    ),
];

/// Query parameters that a `GET` needs.
const QUERIES: &[(&str, &str)] = &[
    ("/api/fs/find", "query=secret&limit=200"),
    ("/experimental/tool", "provider=mock&model=m1"),
    ("/file", "path=."),
    ("/file/content", "path=hello.txt"),
    ("/find", "pattern=head"),
    ("/find/file", "query=secret&limit=200"),
    ("/find/symbol", "query=head"),
    ("/outrigger/v1/search", "q=secret&limit=200"),
    ("/outrigger/session/{sessionID}/event", "after=0"),
    ("/session/{sessionID}/diff", "messageID={messageID}"),
    ("/vcs/diff", "mode=git"),
];

/// They answer as long as the client listens.
const STREAMS: &[&str] = &[
    "/event",
    "/global/event",
    "/outrigger/v1/conversation/{sessionID}/stream",
    "/outrigger/v1/stream",
];

/// Routes that repeat the user's own rules, or calls in which the model named the file itself.
const NAMED: &[&str] = &[
    "/agent",
    "/api/agent",
    "/config",
    "/event",
    "/global/event",
    "/outrigger/v1/audit",
    "/outrigger/v1/conversation",
    "/outrigger/v1/search",
    "/outrigger/v1/stream",
];

/// Routes that list changed files.
const CHANGES: &[&str] = &[
    "/outrigger/v1/conversation/{sessionID}/diff",
    "/session/{sessionID}/diff",
    "/vcs/diff",
    "/vcs/diff/raw",
    "/vcs/status",
];

/// Returns `METHOD path` of every route.
fn table() -> impl Iterator<Item = &'static str> {
    TABLE.lines().map(|line| {
        let end = line.match_indices(' ').nth(1).unwrap().0;
        &line[..end]
    })
}

fn without_files() -> BTreeSet<&'static str> {
    NO_FILE
        .iter()
        .flat_map(|(_, routes)| routes.iter())
        .copied()
        .collect()
}

#[test]
fn every_route_is_tried_or_comes_to_no_file() {
    let (sent, without) = (BTreeSet::from_iter(SENT.iter().copied()), without_files());
    let all: BTreeSet<&str> = table().collect();
    for route in &all {
        let ways = usize::from(route.starts_with("GET ") && !without.contains(route))
            + usize::from(sent.contains(route))
            + usize::from(without.contains(route));
        assert_eq!(
            ways, 1,
            "{route}: does it come to files? Try it, or say why not"
        );
    }
    for route in sent.iter().chain(&without) {
        assert!(all.contains(route), "{route} is not a route");
    }
    let counted: usize = NO_FILE.iter().map(|(_, routes)| routes.len()).sum();
    assert_eq!(
        (counted, SENT.len()),
        (without.len(), sent.len()),
        "one twice"
    );
    for path in [CHANGES, NAMED, STREAMS]
        .concat()
        .into_iter()
        .chain(QUERIES.iter().map(|it| it.0))
    {
        assert!(
            all.contains(&*format!("GET {path}")),
            "{path} is not a route"
        );
    }
}

/// Checks whether a path has this form, in which `{x}` is one segment.
fn is_of(form: &str, path: &str) -> bool {
    let (mut forms, mut parts) = (form.split('/'), path.split('/'));
    loop {
        match (forms.next(), parts.next()) {
            (None, None) => return true,
            (Some(form), Some(part)) if form == part || form.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// Checks that each route listed as tried was answered successfully.
pub(super) fn all_were_tried(matrix: &Matrix, faults: &mut Faults) {
    let without = without_files();
    let answered = matrix.harness.answered();
    for route in table().filter(|route| !without.contains(route)) {
        let (method, form) = route.split_once(' ').unwrap();
        let is_tried = answered
            .iter()
            .filter_map(|it| it.split_once(' '))
            .any(|(by, path)| by == method && is_of(form, path));
        if !is_tried {
            faults.0.push(format!("{route} was not answered"));
        }
    }
}

/// Returns identifiers for the parameters of routes.
async fn parameters(matrix: &Matrix, session: &str) -> BTreeMap<&'static str, String> {
    let harness = &matrix.harness;
    let base = format!("/outrigger/v1/conversation/{session}");
    let turns = harness
        .ok("GET", &format!("{base}/turn"), Value::Null)
        .await;
    let entries = harness
        .ok("GET", &format!("{base}/message"), Value::Null)
        .await;
    let mut cut = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["shortened"][0]["ref"].as_str());
    let project = harness.ok("GET", "/project/current", Value::Null).await;
    let message = &harness.messages(session).await[0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    BTreeMap::from([
        ("{sessionID}", session.to_owned()),
        ("{messageID}", text(&message["info"]["id"])),
        ("{turnID}", text(&turns[0]["id"])),
        ("{projectID}", text(&project["id"])),
        ("{ref}", encode(cut.next_back().unwrap(), true)),
    ])
}

/// Sends every `GET` of the table, for this session, in which files have changed.
pub(super) async fn every_get(matrix: &Matrix, faults: &mut Faults, session: &str) {
    let parameters = parameters(matrix, session).await;
    let without = without_files();
    for route in table().filter(|route| !without.contains(route)) {
        let Some(form) = route.strip_prefix("GET ") else {
            continue;
        };
        let mut path = form.to_owned();
        if let Some((_, query)) = QUERIES.iter().find(|(of, _)| *of == form) {
            path.push_str(&format!("?{query}"));
        }
        for (name, value) in &parameters {
            path = path.replace(name, value);
        }
        let answer = if STREAMS.contains(&form) {
            matrix.harness.beginning(&path).await
        } else {
            matrix.harness.text("GET", &path).await
        };
        for victim in &matrix.victims {
            let is_kept = matrix.keeps(victim);
            if CHANGES.contains(&form) && victim.place == Location::Project {
                faults.hold_name(victim, &path, is_kept, &answer);
            }
            faults.hold_absent(victim, &path, is_kept, !NAMED.contains(&form), &answer);
        }
    }
}

/// Covers what follows a session in which files have changed: its copy, its summary, what is reverted and restored.
pub(super) async fn what_becomes_of_it(matrix: &Matrix, faults: &mut Faults, session: &str) {
    let harness = &matrix.harness;
    let messages = harness.messages(session).await;
    let user = messages[0]["info"]["id"].as_str().unwrap();
    let now: Vec<_> = matrix
        .victims
        .iter()
        .map(|it| std::fs::read_to_string(&it.path).unwrap_or_default())
        .collect();
    let send = async |path: &str, body: Value| -> (Value, String) {
        let path = format!("/session/{session}/{path}");
        let answer = harness.ok("POST", &path, body).await;
        let all = format!("{answer}{}", harness.mock.last().body);
        (answer, all)
    };
    let copy = harness
        .ok("POST", &format!("/session/{session}/fork"), json!({}))
        .await;
    let copied = json!(harness.messages(copy["id"].as_str().unwrap()).await);
    let model = json!({ "providerID": "mock", "modelID": "m1" });
    let summary = send("summarize", model.clone()).await.1;
    let reverted = send("revert", json!({ "messageID": user })).await;
    let reverted_files: Vec<_> = matrix
        .victims
        .iter()
        .map(|it| std::fs::read_to_string(&it.path).unwrap_or_default())
        .collect();
    let unreverted = send("unrevert", Value::Null).await.1;
    let mut begin = model;
    begin["messageID"] = json!("msg_zzzzzzzzzzzzzzzzzzzzzzzzzz");
    let begun = send("init", begin).await.1;
    for ((victim, now), reverted_files) in matrix.victims.iter().zip(&now).zip(&reverted_files) {
        let is_kept = matrix.keeps(victim);
        for (by, answer) in [
            ("fork", copied.to_string()),
            ("summarize", summary.clone()),
            ("revert", reverted.1.clone()),
            ("unrevert", unreverted.clone()),
            ("init", begun.clone()),
        ] {
            faults.hold_absent(victim, by, is_kept, false, &answer);
        }
        faults.hold_absent(victim, "revert", is_kept, true, &reverted.0.to_string());
        if is_kept && reverted_files != now {
            faults
                .0
                .push(format!("{} was changed by a revert", victim.what));
        }
    }
}
