//! Names of permissions that no tool has as its own name. Rules, questions and records use them.

/// Leaving the project folder.
pub const EXTERNAL_DIRECTORY: &str = "external_directory";

/// Repeating a call that does not help the model.
pub const DOOM_LOOP: &str = "doom_loop";

/// All permissions that are not tools. A plugin may set rules for its own tools and ask questions about them, so its tool with
/// one of these names would speak for what the permission guards.
pub const NOT_TOOLS: [&str; 4] = [EXTERNAL_DIRECTORY, DOOM_LOOP, "plan_enter", "plan_exit"];

/// Returns why no tool of a plugin or an MCP server may have this name: it is the name of a permission, or holds a character that
/// could stand for others in a rule or draw something else where it is shown.
#[must_use]
pub fn refused_name(name: &str) -> Option<&'static str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | ':');
    if NOT_TOOLS.iter().any(|it| it.eq_ignore_ascii_case(name)) {
        return Some(
            "a permission has that name, and a rule for the tool would be one for what it guards",
        );
    }
    (name.is_empty() || !name.chars().all(is_plain)).then_some(
        "its name may have ASCII letters, digits, `_`, `-`, `.` and `:`, and nothing else",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_not_named_like_a_permission_or_a_pattern() {
        for name in [
            "external_directory",
            "External_Directory",
            "doom_loop",
            "plan_enter",
            "plan_exit",
            "*",
            "edi?",
            "ba*",
            "bash *",
            "",
            " ",
            "a\nb",
            "a\u{1b}b",
            "a\u{202e}b",
            "b\u{430}sh",
        ] {
            assert!(refused_name(name).is_some(), "{name:?}");
        }
        for name in ["weather", "my-tool_2", "a.b", "a:b", "edit", "external"] {
            assert_eq!(refused_name(name), None, "{name:?}");
        }
    }
}
