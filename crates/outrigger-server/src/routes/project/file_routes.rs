//! Which routes show files, or their names: each keeps to the rules (issue 18). A route that stands in neither list is one that
//! nobody has looked at.

/// Routes that show files, and what holds them to the rules.
const FILES: &[(&str, &str)] = &[
    ("/api/fs/find", "`View::may_read` of each name"),
    ("/file", "`View::may_read` of each name"),
    (
        "/file/content",
        "`View::may_read` of the name and where it leads",
    ),
    ("/file/status", "it answers nothing"),
    ("/find", "`View::may_read` of each file"),
    ("/find/file", "`View::may_read` of each name"),
    ("/find/symbol", "language servers do not see denied files"),
    (
        "/outrigger/v1/conversation/{sessionID}/diff",
        "snapshots withhold denied files",
    ),
    (
        "/session/{sessionID}/diff",
        "snapshots withhold denied files",
    ),
    ("/vcs/diff", "`Agent::may` of each file"),
    ("/vcs/diff/raw", "`Agent::may` of each file"),
    ("/vcs/status", "`Agent::may` of each file"),
];

/// Those that show none.
const OTHERS: &[&str] = &[
    "/agent",
    "/api/agent",
    "/api/command",
    "/api/health",
    "/api/integration",
    "/api/location",
    "/api/model",
    "/api/provider",
    "/api/reference",
    "/api/session",
    "/api/session/{sessionID}",
    "/api/skill",
    "/command",
    "/config",
    "/config/providers",
    "/doc",
    "/event",
    "/experimental/capabilities",
    "/experimental/console",
    "/experimental/console/orgs",
    "/experimental/resource",
    "/experimental/session",
    "/experimental/tool",
    "/experimental/tool/ids",
    "/experimental/workspace",
    "/experimental/workspace/adapter",
    "/experimental/workspace/status",
    "/experimental/worktree",
    "/formatter",
    "/global/config",
    "/global/event",
    "/global/health",
    "/lsp",
    "/mcp",
    "/outrigger/plugin",
    "/outrigger/session/latest",
    "/outrigger/session/{sessionID}/event",
    "/outrigger/session/{sessionID}/interrupted",
    "/outrigger/v1/audit",
    "/outrigger/v1/audit/verify",
    "/outrigger/v1/conversation",
    "/outrigger/v1/conversation/{sessionID}",
    "/outrigger/v1/conversation/{sessionID}/content/{ref}",
    "/outrigger/v1/conversation/{sessionID}/message",
    "/outrigger/v1/conversation/{sessionID}/stream",
    "/outrigger/v1/conversation/{sessionID}/turn",
    "/outrigger/v1/conversation/{sessionID}/turn/{turnID}",
    "/outrigger/v1/plugin",
    "/outrigger/v1/stream",
    "/outrigger/v1/waiting",
    "/path",
    "/permission",
    "/project",
    "/project/current",
    "/project/{projectID}/directories",
    "/provider",
    "/provider/auth",
    "/pty",
    "/pty/shells",
    "/pty/{ptyID}",
    "/pty/{ptyID}/connect",
    "/question",
    "/session",
    "/session/status",
    "/session/{sessionID}",
    "/session/{sessionID}/children",
    "/session/{sessionID}/message",
    "/session/{sessionID}/message/{messageID}",
    "/session/{sessionID}/todo",
    "/skill",
    "/tui/control/next",
    "/vcs",
];

#[test]
fn every_route_that_shows_files_is_known() {
    let mut seen = 0;
    for line in include_str!("../../doc.txt").lines() {
        let mut words = line.split(' ');
        if words.next() != Some("GET") {
            continue;
        }
        let path = words.next().unwrap();
        let shows = FILES.iter().any(|(known, _)| *known == path);
        assert_ne!(shows, OTHERS.contains(&path), "{path}: does it show files?");
        seen += 1;
    }
    assert_eq!(seen, FILES.len() + OTHERS.len());
}
