//! Limits that cannot be applied to the bundled tools, and names similar to those of bundled tools and agents: a limit without
//! effect is an error at the start, and no tool runs without it.

use super::ToolLimits;

/// Maximum deadline of a tool, in milliseconds: a day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1000;

/// Bundled tools, and those that roots apply to: whether they read and write files below them.
const TOOLS: &[(&str, Option<(bool, bool)>)] = &[
    ("read", Some((true, false))),
    ("glob", Some((true, false))),
    ("grep", Some((true, false))),
    ("write", Some((false, true))),
    ("edit", Some((true, true))),
    ("apply_patch", Some((true, true))),
    ("table", Some((true, true))),
    ("bash", None),
    ("python", None),
    ("lsp", None),
    ("webfetch", None),
    ("websearch", None),
    ("task", None),
    ("question", None),
    ("todowrite", None),
    ("skill", None),
];

/// Agents that are there without settings.
const AGENTS: &[&str] = &["build", "plan", "general", "explore"];

/// Returns the key of a limit that cannot be applied, with the reason.
pub(super) fn limit(tool: &str, limits: &ToolLimits) -> Option<(&'static str, String)> {
    if let Some(most) = limits.timeout_ms.filter(|it| *it == 0 || *it > MAX_TIMEOUT) {
        let why = format!("timeout_ms: at most {MAX_TIMEOUT} and at least 1, not {most}");
        return Some(("timeout_ms", why));
    }
    let known = TOOLS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(tool))?;
    let (name, roots) = *known;
    if name != tool {
        return Some(("", format!("the tool is called {name:?}")));
    }
    let (reads, writes) = roots.unwrap_or_default();
    let asked = [
        (
            "allowed_read_roots",
            &limits.allowed_read_roots,
            reads,
            "fs.read",
        ),
        (
            "allowed_write_roots",
            &limits.allowed_write_roots,
            writes,
            "fs.write",
        ),
    ];
    let (key, _, _, needs) = asked
        .into_iter()
        .find(|(_, asked, holds, _)| asked.is_some() && !holds)?;
    let why = match roots {
        Some(_) => format!("{key}: `{tool}` does not ask for {needs}"),
        None => format!("{key}: nothing would hold `{tool}` to it"),
    };
    Some((key, why))
}

/// Returns the bundled agent that a similar name means.
pub(super) fn agent(name: &str) -> Option<&'static str> {
    let meant = AGENTS.iter().find(|it| it.eq_ignore_ascii_case(name))?;
    (*meant != name).then_some(*meant)
}
