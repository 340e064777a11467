//! Names that tools of plugins may have.

use outrigger_plugins::PluginToolEntry;
use outrigger_protocol::permission_names::refused_name;
use outrigger_tools::{ToolRuntime, builtin};

/// Bundled tools that no plugin can replace: the tools by which the model asks the user and reports its work, and the reply to an
/// invalid call.
const RESERVED: [&str; 3] = ["question", "todowrite", "invalid"];

/// Returns the tools that cannot be registered because of their names, by index in the list of tools, and why. No tool of a
/// project takes a name that the runtime keeps for the user; those of the user's plugins are kept from now on.
#[must_use]
pub fn refused(tools: &[PluginToolEntry], runtime: &ToolRuntime) -> Vec<(usize, String)> {
    for tool in tools.iter().filter(|tool| !tool.is_local) {
        runtime.keep_for_user(&tool.spec.name);
    }
    let tools = tools.iter().enumerate();
    tools
        .clone()
        .filter_map(|(index, tool)| {
            let name = &tool.spec.name;
            let is_reserved = RESERVED
                .iter()
                .any(|it| name.trim().eq_ignore_ascii_case(it));
            if is_reserved {
                return Some((
                    index,
                    "a plugin cannot replace the bundled tool of that name".into(),
                ));
            }
            if let Some(why) = refused_name(name) {
                return Some((index, why.to_owned()));
            }
            if !tool.is_local {
                return None;
            }
            let mut of_user = tools
                .clone()
                .map(|(_, it)| it)
                .filter(|it| it.spec.name == *name && !it.is_local);
            let owner = match of_user.next() {
                Some(of_user) => format!("your plugin {}", of_user.spec.source),
                None if runtime.is_kept_for_user(name) => {
                    "a plugin or an MCP server of yours".to_owned()
                }
                None => return None,
            };
            Some((
                index,
                format!(
                    "{owner} already has a tool of this name; a project plugin cannot replace it"
                ),
            ))
        })
        .collect()
}

/// Returns whether rules and questions under this name are about a tool of its own that a plugin contributed, and about nothing
/// of this program: neither a bundled tool, registered or not, nor a permission.
#[must_use]
pub fn is_foreign(name: &str) -> bool {
    !builtin::is_bundled(name) && refused_name(name).is_none()
}

/// Returns what "always" covers if a plugin's tool asks for a permission that is not its own: only the patterns asked about.
/// Otherwise an approval of one command would cover everything that the model runs after it.
#[must_use]
pub fn lasting(permission: &str, patterns: &[String]) -> Vec<String> {
    let is_wide = |text: &str| text.contains(['*', '?']);
    if is_wide(permission) {
        return Vec::new();
    }
    let exact = patterns.iter().filter(|it| !is_wide(it));
    exact.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_covers_what_a_plugin_asked_about_and_no_more() {
        let texts = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (permission, patterns, want) in [
            (
                "bash",
                &["npm test", "npm run x"][..],
                &["npm test", "npm run x"][..],
            ),
            ("bash", &["npm test", "*"], &["npm test"]),
            ("*", &["npm test"], &[]),
            ("ba?h", &["npm test"], &[]),
        ] {
            assert_eq!(
                lasting(permission, &texts(patterns)),
                texts(want),
                "{permission}"
            );
        }
    }
}
