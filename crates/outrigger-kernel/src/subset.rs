//! Limits of a plugin hosted by another one (C8): what it requests, and no more than its host has. Pure.
//!
//! Law (property test): whatever the result allows, both the host's manifest and the plugin's own allow.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::manifest::{
    FilePermissions, HookPolicy, Manifest, NetworkPermissions, Permissions, Provides, Requirements,
    SubpluginDecl,
};

use crate::hooks::HookPoint;

/// Returns the manifest that a hosted plugin is started with, and descriptions of what it requested and does not get.
#[must_use]
pub fn hosted(host: &Manifest, own: &SubpluginDecl) -> (Manifest, Vec<String>) {
    let mut lost = Vec::new();
    let permissions = permissions(&host.permissions, &own.permissions, &mut lost);
    let allowed = host.hook_policy.allowed_hooks.as_deref();
    let hooks = own.hooks.as_ref().map_or_else(
        || allowed.map(<[String]>::to_vec),
        |hooks| {
            let has =
                |hook: &String| allowed.is_none_or(|list| list.iter().any(|it| same(it, hook)));
            Some(kept("the hook", hooks, has, &mut lost))
        },
    );
    let has_tool = |tool: &String| {
        let tools = host.provides.tools.as_ref();
        tools.is_none_or(|tools| tools.contains(tool))
    };
    let times = [host.hook_policy.max_timeout_ms, own.max_timeout_ms];
    let manifest = Manifest {
        id: named(&host.id, &own.id),
        version: host.version.clone(),
        enabled_by_default: host.enabled_by_default,
        kind: host.kind,
        entry: Some(own.entry.clone()),
        provides: Provides {
            // Unlike a user plugin, it must name what it contributes.
            tools: Some(kept("the tool", &own.tools, has_tool, &mut lost)),
            has_side_effects: host.provides.has_side_effects,
            ..Provides::default()
        },
        depends_on: Vec::new(),
        requirements: Requirements::default(),
        hook_policy: HookPolicy {
            allowed_hooks: hooks,
            max_timeout_ms: times.into_iter().flatten().min(),
            priority: host.hook_policy.priority,
            fail_closed: Vec::new(),
        },
        permissions,
        points: Vec::new(),
        events: Vec::new(),
        providers: Vec::new(),
        subplugins: Vec::new(),
    };
    (manifest, lost)
}

/// Returns the name of a hosted plugin: no user plugin can have such a name.
#[must_use]
pub fn named(host: &str, own: &str) -> String {
    format!("{host}>{own}")
}

/// Returns what both allow; what the second wants beyond that is reported.
#[must_use]
pub fn permissions(host: &Permissions, own: &Permissions, lost: &mut Vec<String>) -> Permissions {
    let (files, network) = (&own.files, &own.network);
    let readable = [host.files.read.as_slice(), &host.files.write].concat();
    // If no routes are named, a user plugin may use all and a hosted one none.
    let asked = own.client.as_deref().unwrap_or_default();
    let client = match &host.client {
        None => asked.to_vec(),
        Some(allowed) => common("the route", allowed, asked, routes, lost),
    };
    let has = |list: &[String], it: &String| list.contains(it);
    Permissions {
        files: FilePermissions {
            read: common("to read", &readable, &files.read, roots, lost),
            write: common("to write", &host.files.write, &files.write, roots, lost),
        },
        network: NetworkPermissions {
            hosts: common("the host", &host.network.hosts, &network.hosts, hosts, lost),
            listen: {
                let (kept, gone): (Vec<u16>, Vec<u16>) = network
                    .listen
                    .iter()
                    .partition(|port| host.network.listen.contains(port));
                lost.extend(gone.iter().map(|port| format!("the port {port}")));
                kept
            },
        },
        env: common("the variable", &host.env, &own.env, names, lost),
        secrets: kept(
            "the variable",
            &own.secrets,
            |it| has(&host.secrets, it),
            lost,
        ),
        client: Some(client),
        // As for routes: an absent list means everything for a user plugin and nothing for a hosted one.
        processes: {
            let asked = own.processes.as_deref().unwrap_or_default();
            Some(match &host.processes {
                None => asked.to_vec(),
                Some(allowed) => kept("the program", asked, |it| has(allowed, it), lost),
            })
        },
        unix_sockets: {
            if own.unix_sockets && !host.unix_sockets {
                lost.push("UNIX sockets".to_owned());
            }
            own.unix_sockets && host.unix_sockets
        },
    }
}

fn kept(
    what: &str,
    asked: &[String],
    has: impl Fn(&String) -> bool,
    lost: &mut Vec<String>,
) -> Vec<String> {
    let gone = asked.iter().filter(|it| !has(it));
    lost.extend(gone.map(|it| format!("{what} {it}")));
    asked.iter().filter(|it| has(it)).cloned().collect()
}

/// Returns what both sides allow, pattern by pattern. `meet` returns the intersection of two patterns, and never more
/// than that.
fn common(
    what: &str,
    host: &[String],
    own: &[String],
    meet: fn(&str, &str) -> Option<String>,
    lost: &mut Vec<String>,
) -> Vec<String> {
    let mut both: Vec<String> = Vec::new();
    for asked in own {
        let met: Vec<String> = host
            .iter()
            .filter_map(|allowed| meet(allowed, asked))
            .collect();
        if met.contains(asked) {
            both.push(asked.clone());
        } else {
            lost.push(format!("{what} {asked}"));
            both.extend(met);
        }
    }
    let mut once: Vec<String> = Vec::new();
    for it in both {
        if !once.contains(&it) {
            once.push(it);
        }
    }
    once
}

/// Returns the narrower of two patterns if one covers the other; otherwise they are treated as disjoint.
fn narrower(a: &str, b: &str, covers: fn(&str, &str) -> bool) -> Option<String> {
    match (covers(a, b), covers(b, a)) {
        (true, _) => Some(b.to_owned()),
        (false, true) => Some(a.to_owned()),
        (false, false) => None,
    }
}

fn roots(a: &str, b: &str) -> Option<String> {
    narrower(a, b, root_covers)
}

fn names(a: &str, b: &str) -> Option<String> {
    narrower(a, b, name_covers)
}

fn hosts(a: &str, b: &str) -> Option<String> {
    narrower(a, b, host_covers)
}

fn routes(a: &str, b: &str) -> Option<String> {
    let ((verb, path), (other, under)) = (a.split_once(' ')?, b.split_once(' ')?);
    let path = narrower(path, under, path_covers)?;
    let verb = narrower(verb, other, |a, b| a == "*" || a == b)?;
    Some(format!("{verb} {path}"))
}

/// Returns whether two names mean the same hook.
fn same(a: &str, b: &str) -> bool {
    let point = HookPoint::parse(a);
    a == b || (point.is_some() && point == HookPoint::parse(b))
}

/// Start of a root.
#[derive(PartialEq, Eq)]
enum Start {
    Project,
    System,
    Home,
}

/// Returns the components of a root after its start. A root with `..` or in another form is invalid: it covers nothing
/// and is covered by nothing.
fn parts(root: &str) -> Option<(Start, Vec<&str>)> {
    let (start, rest) = match root.strip_prefix("${project}") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (Start::Project, rest),
        _ if root == "~" || root.starts_with("~/") => (Start::Home, root.trim_start_matches('~')),
        _ if root.starts_with('/') => (Start::System, root),
        _ if root.contains('$') || root.starts_with('~') => return None,
        _ => (Start::Project, root),
    };
    let parts: Vec<&str> = rest
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    (!parts.contains(&"..")).then_some((start, parts))
}

fn root_covers(a: &str, b: &str) -> bool {
    match (parts(a), parts(b)) {
        (Some((start, a)), Some((same, b))) => start == same && b.starts_with(&a),
        _ => false,
    }
}

fn name_covers(a: &str, b: &str) -> bool {
    match a.strip_suffix('*') {
        Some(start) => b.starts_with(start),
        None => a == b,
    }
}

/// Returns whether one host pattern covers another. Hosts are compared as written, so an unrecognised port, case or form
/// restricts and never permits. `*` matches names: an address, or this machine, must be named by both.
fn host_covers(a: &str, b: &str) -> bool {
    let under = |rest: &str| rest.starts_with('.') && b.ends_with(rest) && b.len() > rest.len();
    match a.strip_prefix('*') {
        Some("") => a == b || is_name(b),
        Some(rest) => a == b || under(rest),
        None => a == b,
    }
}

fn is_name(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let last = name.rsplit('.').next().unwrap_or_default();
    let named = last.starts_with(|c: char| c.is_ascii_alphabetic()) && last != "localhost";
    named && port.chars().all(|c| c.is_ascii_digit()) && !name.contains(['/', '[', '%'])
}

fn path_covers(a: &str, b: &str) -> bool {
    match a.strip_suffix("/*") {
        Some(start) => b
            .strip_prefix(start)
            .is_some_and(|rest| rest.starts_with('/')),
        None => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn patterns_by_table() {
        type Meet = fn(&str, &str) -> Option<String>;
        type Row = (
            Meet,
            &'static [&'static str],
            &'static [&'static str],
            &'static [&'static str],
        );
        let rows: [Row; 14] = [
            (
                roots,
                &["${project}"],
                &["src", "${project}/out"],
                &["src", "${project}/out"],
            ),
            (roots, &["src/a"], &["src", "out"], &["src/a"]),
            (
                roots,
                &["src"],
                &["srcs", "src/../out", "src//b/."],
                &["src//b/."],
            ),
            (roots, &[], &["src"], &[]),
            (
                roots,
                &["${project}"],
                &["/opt/a", "~/x", "~", "$HOME"],
                &[],
            ),
            (
                roots,
                &["/opt", "~/x"],
                &["opt", "/opt/a", "/", "~/x/y", "~root/x"],
                &["/opt/a", "/opt", "~/x/y"],
            ),
            (
                names,
                &["ACME_*"],
                &["*", "ACME_KEY", "OTHER"],
                &["ACME_*", "ACME_KEY"],
            ),
            (names, &["A"], &["A*", "AB"], &["A"]),
            (
                hosts,
                &["*.acme.com", "b.org"],
                &["*", "x.acme.com", "acme.com"],
                &["*.acme.com", "b.org", "x.acme.com"],
            ),
            (
                hosts,
                &["*"],
                &[
                    "a.b:443",
                    "127.0.0.1",
                    "::1",
                    "localhost:80",
                    "10.0.0.0/8",
                    "fe80::a",
                ],
                &["a.b:443"],
            ),
            (hosts, &["a.com"], &["evil-a.com", "A.com"], &[]),
            (
                routes,
                &["GET /session/*"],
                &["* /session/*", "GET /session/x", "GET /session"],
                &["GET /session/*", "GET /session/x"],
            ),
            (
                routes,
                &["* /log"],
                &["POST /log", "POST /log/*"],
                &["POST /log"],
            ),
            (routes, &["GET /*"], &["POST /*", "GET /a/*"], &["GET /a/*"]),
        ];
        for (meet, host, own, both) in rows {
            let mut lost = vec![];
            let got = common("", &texts(host), &texts(own), meet, &mut lost);
            assert_eq!(got, texts(both), "{host:?} {own:?}");
        }
    }
}
