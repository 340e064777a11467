//! Maps requests to methods of the SDK's client, by the routes of OpenCode's v1 API.

/// HTTP method, path with placeholders, name of the method in the SDK.
#[rustfmt::skip]
const ROUTES: &[(&str, &str, &str)] = &[
    ("PUT", "/auth/{providerID}", "auth.set"),
    ("DELETE", "/auth/{providerID}", "auth.remove"),
    ("POST", "/log", "app.log"),
    ("GET", "/global/health", "global.health"),
    ("GET", "/global/event", "global.event"),
    ("GET", "/global/config", "global.config.get"),
    ("PATCH", "/global/config", "global.config.update"),
    ("POST", "/global/dispose", "global.dispose"),
    ("POST", "/global/upgrade", "global.upgrade"),
    ("GET", "/event", "event.subscribe"),
    ("GET", "/config", "config.get"),
    ("PATCH", "/config", "config.update"),
    ("GET", "/config/providers", "config.providers"),
    ("GET", "/experimental/tool", "tool.list"),
    ("GET", "/experimental/tool/ids", "tool.ids"),
    ("GET", "/experimental/session", "experimental.session.list"),
    ("POST", "/experimental/session/{sessionID}/background", "experimental.session.background"),
    ("GET", "/experimental/resource", "experimental.resource.list"),
    ("GET", "/find", "find.text"),
    ("GET", "/find/file", "find.files"),
    ("GET", "/find/symbol", "find.symbols"),
    ("GET", "/file", "file.list"),
    ("GET", "/file/content", "file.read"),
    ("GET", "/file/status", "file.status"),
    ("POST", "/instance/dispose", "instance.dispose"),
    ("GET", "/path", "path.get"),
    ("GET", "/vcs", "vcs.get"),
    ("GET", "/vcs/status", "vcs.status"),
    ("GET", "/vcs/diff", "vcs.diff"),
    ("GET", "/vcs/diff/raw", "vcs.diff.raw"),
    ("POST", "/vcs/apply", "vcs.apply"),
    ("GET", "/command", "command.list"),
    ("GET", "/agent", "app.agents"),
    ("GET", "/skill", "app.skills"),
    ("GET", "/lsp", "lsp.status"),
    ("GET", "/formatter", "formatter.status"),
    ("GET", "/mcp", "mcp.status"),
    ("POST", "/mcp", "mcp.add"),
    ("POST", "/mcp/{name}/auth", "mcp.auth.start"),
    ("DELETE", "/mcp/{name}/auth", "mcp.auth.remove"),
    ("POST", "/mcp/{name}/auth/callback", "mcp.auth.callback"),
    ("POST", "/mcp/{name}/auth/authenticate", "mcp.auth.authenticate"),
    ("POST", "/mcp/{name}/connect", "mcp.connect"),
    ("POST", "/mcp/{name}/disconnect", "mcp.disconnect"),
    ("GET", "/project", "project.list"),
    ("GET", "/project/current", "project.current"),
    ("POST", "/project/git/init", "project.initGit"),
    ("PATCH", "/project/{projectID}", "project.update"),
    ("GET", "/project/{projectID}/directories", "project.directories"),
    ("POST", "/experimental/project/{projectID}/copy/generate-name", "experimental.projectCopy.generateName"),
    ("GET", "/pty/shells", "pty.shells"),
    ("GET", "/pty", "pty.list"),
    ("POST", "/pty", "pty.create"),
    ("GET", "/pty/{ptyID}", "pty.get"),
    ("PUT", "/pty/{ptyID}", "pty.update"),
    ("DELETE", "/pty/{ptyID}", "pty.remove"),
    ("POST", "/pty/{ptyID}/connect-token", "pty.connectToken"),
    ("GET", "/question", "question.list"),
    ("POST", "/question/{requestID}/reply", "question.reply"),
    ("POST", "/question/{requestID}/reject", "question.reject"),
    ("GET", "/permission", "permission.list"),
    ("POST", "/permission/{requestID}/reply", "permission.reply"),
    ("GET", "/provider", "provider.list"),
    ("GET", "/provider/auth", "provider.auth"),
    ("POST", "/provider/{providerID}/oauth/authorize", "provider.oauth.authorize"),
    ("POST", "/provider/{providerID}/oauth/callback", "provider.oauth.callback"),
    ("GET", "/session", "session.list"),
    ("POST", "/session", "session.create"),
    ("GET", "/session/status", "session.status"),
    ("GET", "/session/{sessionID}", "session.get"),
    ("DELETE", "/session/{sessionID}", "session.delete"),
    ("PATCH", "/session/{sessionID}", "session.update"),
    ("GET", "/session/{sessionID}/children", "session.children"),
    ("GET", "/session/{sessionID}/todo", "session.todo"),
    ("GET", "/session/{sessionID}/diff", "session.diff"),
    ("GET", "/session/{sessionID}/message", "session.messages"),
    ("POST", "/session/{sessionID}/message", "session.prompt"),
    ("GET", "/session/{sessionID}/message/{messageID}", "session.message"),
    ("DELETE", "/session/{sessionID}/message/{messageID}", "session.deleteMessage"),
    ("POST", "/session/{sessionID}/fork", "session.fork"),
    ("POST", "/session/{sessionID}/abort", "session.abort"),
    ("POST", "/session/{sessionID}/init", "session.init"),
    ("POST", "/session/{sessionID}/share", "session.share"),
    ("DELETE", "/session/{sessionID}/share", "session.unshare"),
    ("POST", "/session/{sessionID}/summarize", "session.summarize"),
    ("POST", "/session/{sessionID}/prompt_async", "session.promptAsync"),
    ("POST", "/session/{sessionID}/command", "session.command"),
    ("POST", "/session/{sessionID}/shell", "session.shell"),
    ("POST", "/session/{sessionID}/revert", "session.revert"),
    ("POST", "/session/{sessionID}/unrevert", "session.unrevert"),
    ("POST", "/session/{sessionID}/permissions/{permissionID}", "permission.respond"),
    ("DELETE", "/session/{sessionID}/message/{messageID}/part/{partID}", "part.delete"),
    ("PATCH", "/session/{sessionID}/message/{messageID}/part/{partID}", "part.update"),
    ("POST", "/sync/start", "sync.start"),
    ("POST", "/sync/replay", "sync.replay"),
    ("POST", "/sync/steal", "sync.steal"),
    ("POST", "/sync/history", "sync.history.list"),
    ("POST", "/tui/append-prompt", "tui.appendPrompt"),
    ("POST", "/tui/open-help", "tui.openHelp"),
    ("POST", "/tui/open-sessions", "tui.openSessions"),
    ("POST", "/tui/open-themes", "tui.openThemes"),
    ("POST", "/tui/open-models", "tui.openModels"),
    ("POST", "/tui/submit-prompt", "tui.submitPrompt"),
    ("POST", "/tui/clear-prompt", "tui.clearPrompt"),
    ("POST", "/tui/execute-command", "tui.executeCommand"),
    ("POST", "/tui/show-toast", "tui.showToast"),
    ("POST", "/tui/publish", "tui.publish"),
    ("POST", "/tui/select-session", "tui.selectSession"),
    ("GET", "/tui/control/next", "tui.control.next"),
    ("POST", "/tui/control/response", "tui.control.response"),
    ("POST", "/experimental/project/{projectID}/copy", "v2.projectCopy.create"),
    ("DELETE", "/experimental/project/{projectID}/copy", "v2.projectCopy.remove"),
    ("POST", "/experimental/project/{projectID}/copy/refresh", "v2.projectCopy.refresh"),
    ("GET", "/pty/{ptyID}/connect", "pty.connect"),
];

/// Returns the name of the operation, or the request itself if the API has no such route. Placeholders in a route match
/// one segment; of two matching routes the one with fewer placeholders is used.
#[must_use]
pub(super) fn operation(method: &str, path: &str) -> String {
    let fits = |route: &str| {
        let (mut wanted, mut given) = (route.split('/'), path.trim_end_matches('/').split('/'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                (Some(place), Some(segment))
                    if place == segment || (place.starts_with('{') && !segment.is_empty()) => {}
                _ => return false,
            }
        }
    };
    ROUTES
        .iter()
        .filter(|(m, route, _)| *m == method && fits(route))
        .min_by_key(|(_, route, _)| route.matches('{').count())
        .map_or_else(
            || format!("{method} {path}"),
            |(_, _, name)| (*name).to_owned(),
        )
}

/// Returns the names of all operations.
pub(super) fn operations() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_after_its_route() {
        for (method, path, want) in [
            ("POST", "/session/ses_1/message", "session.prompt"),
            ("GET", "/session/status", "session.status"),
            ("GET", "/session/ses_1", "session.get"),
            ("GET", "/session/ses_1/", "session.get"),
            ("POST", "/tui/show-toast", "tui.showToast"),
            ("GET", "/no/such", "GET /no/such"),
            ("GET", "/session//message", "GET /session//message"),
        ] {
            assert_eq!(operation(method, path), want, "{method} {path}");
        }
    }
}
