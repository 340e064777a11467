//! What a matcher means, by Claude Code's rule: of letters, digits, `_`, `-`, spaces, `,` and `|` alone it is a list of whole
//! names; anything else is a JavaScript regular expression that may match anywhere in a name.

use serde_json::json;

/// A matcher, ready to be used.
pub(crate) enum Matcher {
    All,
    Names(Vec<String>),
    Expression {
        expression: Box<jsonschema::Validator>,
        /// It says what is not meant.
        negates: bool,
    },
}

impl Matcher {
    /// # Errors
    /// Why the text is no expression.
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
        // `pattern` of a JSON Schema is such an expression, searched for anywhere.
        let schema = json!({ "pattern": text });
        match jsonschema::validator_for(&schema) {
            Ok(validator) => Ok(Self::Expression {
                expression: Box::new(validator),
                negates: text.contains("(?!"),
            }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether it means one of the names. The first is the one that commands are given, and the only one that an expression
    /// is held against whose point is what it does not match.
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
                held.any(|name| expression.is_valid(&json!(name)))
            }
        }
    }

    /// The names of a list that stand for a whole MCP server, and so for no tool.
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
