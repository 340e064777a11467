//! Matchers, by Claude Code's rule: one of letters, digits, `_`, `-`, spaces, `,` and `|` alone is a list of whole names;
//! anything else is a JavaScript regular expression that may match anywhere in a name.

use fancy_regex::{Regex, RegexBuilder};

/// Maximum number of backtracking steps. Names of tools are short.
const MAX_STEPS: usize = 100_000;

/// A matcher, ready for use.
pub(crate) enum Matcher {
    All,
    Names(Vec<String>),
    Expression {
        expression: Box<Regex>,
        /// It states what must not match.
        negates: bool,
    },
}

impl Matcher {
    /// # Errors
    /// Why the text is not an expression.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
        if text.chars().all(plain) {
            let names = text.split(['|', ',']).map(str::trim);
            return Ok(Self::Names(
                names
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
            ));
        }
        let expression = RegexBuilder::new(text).backtrack_limit(MAX_STEPS).build();
        Ok(Self::Expression {
            expression: Box::new(expression.map_err(|error| error.to_string())?),
            negates: text.contains("(?!"),
        })
    }

    /// Returns whether it matches one of the names. The first is the one that commands are given, and the only one that a
    /// negating expression is matched against.
    pub(crate) fn means(&self, names: &[String]) -> bool {
        match self {
            Self::All => true,
            Self::Names(own) => own.iter().any(|name| names.contains(name)),
            Self::Expression {
                expression,
                negates,
            } => {
                let held = if *negates { 1 } else { names.len() };
                let mut held = names.iter().take(held);
                // A command that was not called could not refuse.
                held.any(|name| expression.is_match(name).unwrap_or(true))
            }
        }
    }

    /// Returns the names of a list that denote a whole MCP server, and so no tool.
    pub(crate) fn means_nothing(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Names(names) => names.as_slice(),
            _ => &[],
        };
        let server = |name: &&str| {
            name.strip_prefix("mcp__")
                .is_some_and(|rest| !rest.contains("__"))
        };
        names.iter().map(String::as_str).filter(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_javascript_within_bounds() {
        let names = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (text, tool, want) in [
            ("^(?!Bash$)", &["Bash", "bash"][..], false),
            ("(?<=mcp__)\\d+\\/x", &["mcp__12/x"], true),
            // Too many steps to wait for the answer: the command is called.
            (
                "^((?=a)a|a)+c$",
                &["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"],
                true,
            ),
        ] {
            let matcher = Matcher::new(text).unwrap();
            assert_eq!(matcher.means(&names(tool)), want, "{text} {tool:?}");
        }
        for text in ["(", "[a", "a**"] {
            assert!(Matcher::new(text).is_err(), "{text}");
        }
    }
}
