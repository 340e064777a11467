//! The routes available to a plugin's client: all that read, and those on a list of the ones that change something.
//!
//! A plugin must not use this process, which is not sandboxed, for what it cannot do in its own. So a route that starts a
//! process, changes settings or credentials, or switches what the user runs is not on the list, and neither is a new route.

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::access::marks::FromPlugin;
use crate::error::ApiError;

/// Changing routes that plugins may use, with `{}` for parameters. Some refuse part of the requests themselves: other projects,
/// other plugins' providers, what a rule denies, rules that would be wider.
const OPEN: &[(&str, &str)] = &[
    ("DELETE", "/auth/{}"),
    ("PUT", "/auth/{}"),
    ("POST", "/experimental/project/{}/copy/generate-name"),
    ("POST", "/experimental/session/{}/background"),
    ("POST", "/instance/dispose"),
    ("POST", "/log"),
    ("POST", "/outrigger/v1/permission/{}/reply"),
    ("POST", "/outrigger/v1/question/{}/reject"),
    ("POST", "/outrigger/v1/question/{}/reply"),
    ("POST", "/permission/{}/reply"),
    ("POST", "/project/git/init"),
    ("POST", "/provider/{}/oauth/authorize"),
    ("POST", "/provider/{}/oauth/callback"),
    ("POST", "/question/{}/reject"),
    ("POST", "/question/{}/reply"),
    ("POST", "/session"),
    ("DELETE", "/session/{}"),
    ("PATCH", "/session/{}"),
    ("POST", "/session/{}/abort"),
    ("POST", "/session/{}/command"),
    ("POST", "/session/{}/fork"),
    ("POST", "/session/{}/init"),
    ("POST", "/session/{}/message"),
    ("DELETE", "/session/{}/message/{}"),
    ("DELETE", "/session/{}/message/{}/part/{}"),
    ("PATCH", "/session/{}/message/{}/part/{}"),
    ("POST", "/session/{}/permissions/{}"),
    ("POST", "/session/{}/prompt_async"),
    ("POST", "/session/{}/revert"),
    ("DELETE", "/session/{}/share"),
    ("POST", "/session/{}/share"),
    ("POST", "/session/{}/summarize"),
    ("POST", "/session/{}/unrevert"),
    ("POST", "/tui/append-prompt"),
    ("POST", "/tui/clear-prompt"),
    ("POST", "/tui/control/response"),
    ("POST", "/tui/execute-command"),
    ("POST", "/tui/open-help"),
    ("POST", "/tui/open-models"),
    ("POST", "/tui/open-sessions"),
    ("POST", "/tui/open-themes"),
    ("POST", "/tui/publish"),
    ("POST", "/tui/select-session"),
    ("POST", "/tui/show-toast"),
    ("POST", "/tui/submit-prompt"),
    ("POST", "/vcs/apply"),
];

/// Routes that give plugins the regular answer: the feature is not provided, or they explain themselves why a plugin does not
/// get it.
const SPEAKING: &[(&str, &str)] = &[
    ("PATCH", "/config"),
    ("PATCH", "/global/config"),
    ("POST", "/experimental/console/switch"),
    ("POST", "/experimental/project/{}/copy"),
    ("DELETE", "/experimental/project/{}/copy"),
    ("POST", "/experimental/project/{}/copy/refresh"),
    ("POST", "/experimental/workspace"),
    ("DELETE", "/experimental/worktree"),
    ("POST", "/experimental/worktree"),
    ("POST", "/experimental/worktree/reset"),
    ("POST", "/global/dispose"),
    ("POST", "/global/upgrade"),
    ("POST", "/outrigger/plugin/reload"),
    ("POST", "/outrigger/plugin/resume"),
    ("POST", "/outrigger/plugin/suspend"),
    ("DELETE", "/pty/{}"),
    ("POST", "/pty"),
    ("PUT", "/pty/{}"),
    ("POST", "/pty/{}/connect-token"),
    ("POST", "/session/{}/shell"),
    ("POST", "/sync/history"),
    ("POST", "/sync/replay"),
    ("POST", "/sync/start"),
    ("POST", "/sync/steal"),
];

/// Lets a plugin's request through to a permitted route. Must wrap matched routes: an unknown route is answered as for every
/// client.
pub(crate) async fn listed(request: Request, next: Next) -> Response {
    if request.extensions().get::<FromPlugin>().is_some() {
        let path = request.uri().path();
        if !has(request.method(), path) {
            return ApiError::forbidden(format!(
                "plugin clients cannot use {} {path}: it starts processes or changes the user's data outside the plugin \
                 sandbox (docs/plugins/writing.md lists the routes of plugin clients)",
                request.method()
            ))
            .into_response();
        }
    }
    next.run(request).await
}

/// Returns whether plugins may use the route of a path.
fn has(method: &Method, path: &str) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    let named = |(verb, known): &(&str, &str)| *verb == method.as_str() && is_same(known, path);
    reads || OPEN.iter().chain(SPEAKING).any(named)
}

/// Returns whether two paths are equal except for their parameters.
fn is_same(known: &str, path: &str) -> bool {
    let (mut one, mut other) = (known.split('/'), path.split('/'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || a == "{}" && !b.is_empty() => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Routes that plugins may not use, each reviewed. A new route that changes something must be on one of the lists.
    const CLOSED: &[(&str, &str)] = &[
        ("POST", "/experimental/control-plane/move-session"),
        ("POST", "/mcp"),
        ("DELETE", "/mcp/{}/auth"),
        ("POST", "/mcp/{}/auth"),
        ("POST", "/mcp/{}/auth/authenticate"),
        ("POST", "/mcp/{}/auth/callback"),
        ("POST", "/mcp/{}/connect"),
        ("POST", "/mcp/{}/disconnect"),
        ("POST", "/outrigger/check"),
        ("POST", "/outrigger/permission/{}/grant"),
        ("POST", "/outrigger/session/{}/cancel"),
        ("POST", "/outrigger/session/{}/turn"),
        ("PATCH", "/project/{}"),
    ];

    #[test]
    fn every_route_was_looked_at() {
        let mut closed = 0;
        let mut listed = 0;
        for line in include_str!("../doc.txt").lines() {
            let mut words = line.split(' ');
            let method: Method = words.next().unwrap().parse().unwrap();
            let path = words.next().unwrap();
            if method == Method::GET {
                assert!(has(&method, path));
                continue;
            }
            let named = CLOSED
                .iter()
                .any(|(verb, known)| *verb == method.as_str() && is_same(known, path));
            assert_ne!(has(&method, path), named, "{method} {path}");
            closed += usize::from(named);
            listed += usize::from(!named);
        }
        assert_eq!(closed, CLOSED.len());
        assert_eq!(listed, OPEN.len() + SPEAKING.len());
    }

    #[test]
    fn what_is_not_listed_is_refused() {
        for (method, path, want) in [
            ("POST", "/session/{id}/message", true),
            ("POST", "/session/{id}/message/{other}", false),
            ("POST", "/mcp", false),
            ("POST", "/new", false),
            ("GET", "/new", true),
            ("HEAD", "/new", true),
            ("BREW", "/session", false),
            ("PUT", "/session", false),
        ] {
            assert_eq!(has(&method.parse().unwrap(), path), want, "{method} {path}");
        }
    }
}
