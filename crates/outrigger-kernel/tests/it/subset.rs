//! A hosted plugin never gets more than its host has, nor more than it asks for (C8).

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::subset::hosted;
use outrigger_protocol::manifest::{Manifest, Permissions, SubpluginDecl};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const ROOTS: &[&str] = &[
    "${project}",
    "${project}/src",
    "src",
    "src/a",
    "src/./a",
    "srcs",
    "out",
    "src/../out",
];
const NAMES: &[&str] = &["*", "A*", "A_*", "A_B", "B", "AB"];
const ROUTES: &[&str] = &[
    "GET /*",
    "* /session/*",
    "GET /session",
    "GET /session/*",
    "POST /session/x",
    "* /log",
    "* /*",
];
const HOSTS: &[&str] = &["*", "a.com", "*.a.com", "b.a.com", "*.b.a.com", "xa.com"];
const PROGRAMS: &[&str] = &["git", "node", "/usr/bin/git"];
const HOOKS: &[&str] = &[
    "chat.params",
    "llm.before_params",
    "chat.message",
    "event",
    "acme/x.y",
];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(of, 0..=of.len()).prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

fn permissions() -> impl Strategy<Value = Permissions> {
    let client = proptest::option::of(some(ROUTES));
    let files = (some(ROOTS), some(ROOTS));
    let net = (some(HOSTS), vec(select(vec![80u16, 81, 82]), 0..3));
    let client = (client, proptest::option::of(some(PROGRAMS)));
    (files, net, some(NAMES), some(NAMES), client, any::<bool>()).prop_map(
        |((read, write), (hosts, listen), env, secrets, (client, processes), unix_sockets)| {
            let mut all = Permissions {
                env,
                secrets,
                client,
                processes,
                unix_sockets,
                ..Permissions::default()
            };
            all.files.read = read;
            all.files.write = write;
            all.network.hosts = hosts;
            all.network.listen = listen;
            all
        },
    )
}

// A minimal reimplementation of what the host limits plugins to.
fn under(roots: &[String], path: &str) -> bool {
    roots.iter().any(|root| {
        let root = root.trim_start_matches("${project}");
        let parts: Vec<&str> = root
            .split('/')
            .filter(|it| !it.is_empty() && *it != ".")
            .collect();
        !parts.contains(&"..") && path.split('/').collect::<Vec<_>>().starts_with(&parts)
    })
}

fn fits(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|it| {
        it.strip_suffix('*')
            .map_or(it == name, |start| name.starts_with(start))
    })
}

fn reaches(hosts: &[String], host: &str) -> bool {
    hosts
        .iter()
        .any(|it| it == "*" || it == host || (it.starts_with("*.") && host.ends_with(&it[1..])))
}

fn routed(routes: Option<&Vec<String>>, method: &str, path: &str) -> bool {
    routes.is_none_or(|routes| {
        routes.iter().any(|route| {
            let (verb, pattern) = route.split_once(' ').unwrap();
            let fits = pattern.strip_suffix("/*").map_or(pattern == path, |start| {
                path.strip_prefix(start)
                    .is_some_and(|rest| rest.starts_with('/'))
            });
            fits && (verb == "*" || verb == method)
        })
    })
}

fn hooked(hooks: Option<&Vec<String>>, hook: &str) -> bool {
    let point = |name: &str| HookPoint::parse(name);
    hooks.is_none_or(|hooks| {
        hooks
            .iter()
            .any(|it| it == hook || (point(it).is_some() && point(it) == point(hook)))
    })
}

proptest! {
    #[test]
    fn what_is_allowed_is_what_both_allow(
        host in permissions(),
        own in permissions(),
        lists in (proptest::option::of(some(HOOKS)), proptest::option::of(some(HOOKS)), proptest::option::of(some(NAMES)), some(NAMES)),
        times in (proptest::option::of(1u64..9), proptest::option::of(1u64..9)),
    ) {
        let (host_hooks, hooks, host_tools, tools) = lists;
        let mut manifest = Manifest::inferred("acme", None);
        manifest.permissions = host.clone();
        manifest.hook_policy.allowed_hooks = host_hooks.clone();
        manifest.hook_policy.max_timeout_ms = times.0;
        manifest.provides.tools = host_tools.clone();
        let decl = SubpluginDecl {
            id: "inner".into(),
            entry: "inner.js".into(),
            tools: tools.clone(),
            hooks: hooks.clone(),
            max_timeout_ms: times.1,
            permissions: own.clone(),
        };
        let (got, _) = hosted(&manifest, &decl);
        let all = &got.permissions;
        let readable = |it: &Permissions, path: &str| under(&it.files.read, path) || under(&it.files.write, path);
        for path in ["src", "src/a", "src/a/b", "srcs", "out", "out/x", "x"] {
            prop_assert!(!under(&all.files.write, path) || (under(&host.files.write, path) && under(&own.files.write, path)));
            prop_assert!(!readable(all, path) || (readable(&host, path) && readable(&own, path)));
            // Nothing that both name is lost.
            prop_assert_eq!(under(&all.files.write, path), under(&host.files.write, path) && under(&own.files.write, path));
        }
        for name in ["A", "AB", "A_", "A_B", "A_BC", "B", "C"] {
            prop_assert_eq!(fits(&all.env, name), fits(&host.env, name) && fits(&own.env, name));
            let named = |it: &Permissions| it.secrets.iter().any(|secret| secret == name);
            prop_assert_eq!(named(all), named(&host) && named(&own));
            let brings = |list: Option<&Vec<String>>| list.is_none_or(|list| list.iter().any(|it| it == name));
            prop_assert_eq!(brings(got.provides.tools.as_ref()), brings(host_tools.as_ref()) && brings(Some(&tools)));
        }
        for name in ["a.com", "b.a.com", "c.b.a.com", "xa.com", "evil.com"] {
            prop_assert_eq!(reaches(&all.network.hosts, name), reaches(&host.network.hosts, name) && reaches(&own.network.hosts, name));
        }
        for name in PROGRAMS {
            let runs = |it: &Permissions| it.processes.as_ref().is_none_or(|list| list.iter().any(|it| it == name));
            // An absent list means nothing here too.
            let asked = own.processes.is_some() && runs(&own);
            prop_assert_eq!(runs(all), asked && runs(&host));
        }
        for port in [80, 81, 82] {
            let listens = |it: &Permissions| it.network.listen.contains(&port);
            prop_assert_eq!(listens(all), listens(&host) && listens(&own));
        }
        for path in ["/session", "/session/x", "/session/x/y", "/log", "/config"] {
            for method in ["GET", "POST"] {
                // An absent list means nothing for a hosted plugin.
                let asked = own.client.is_some() && routed(own.client.as_ref(), method, path);
                let wanted = asked && routed(host.client.as_ref(), method, path);
                prop_assert_eq!(routed(all.client.as_ref(), method, path), wanted, "{} {}", method, path);
            }
        }
        for hook in HOOKS {
            let wanted = hooked(host_hooks.as_ref(), hook) && hooked(hooks.as_ref(), hook);
            prop_assert_eq!(hooked(got.hook_policy.allowed_hooks.as_ref(), hook), wanted);
        }
        prop_assert_eq!(all.unix_sockets, host.unix_sockets && own.unix_sockets);
        prop_assert_eq!(got.hook_policy.max_timeout_ms, [times.0, times.1].into_iter().flatten().min());
        prop_assert!(got.points.is_empty() && got.events.is_empty() && got.subplugins.is_empty());
        prop_assert!(got.provides.providers.is_empty() && got.provides.connectors.is_empty());
        prop_assert!(got.hook_policy.fail_closed.is_empty());
    }
}
