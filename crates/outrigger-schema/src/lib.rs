//! Schemas of values: one notation for settings (`outrigger.toml`), manifests of plugins, `opencode.json` and the bodies of
//! the HTTP API.
//!
//! A [`Schema`] is a constant, written with [`schema!`]. [`Schema::check`] finds mismatches, [`json::Writer`] converts it to
//! JSON Schema, [`Schema::expected`] describes it in words.
//!
//! ```
//! use outrigger_schema::{Schema, schema};
//! use serde_json::json;
//!
//! static ACTION: Schema = schema!("allow" | "ask" | "deny");
//! static RULE: Schema = schema!({
//!     /// What it is about.
//!     permission: string,
//!     action: ACTION,
//!     patterns?: [string],
//! });
//!
//! let value = json!({"permission": "bash", "action": "perhaps"});
//! let wrong = RULE.check(&value);
//! assert_eq!(wrong[0].pointer, "/action");
//! assert_eq!(wrong[0].expected, r#""allow", "ask" or "deny""#);
//! ```

mod check;
pub mod cost;
mod example;
pub mod json;
mod notation;
pub mod ts;
mod words;

pub use check::{Mismatch, UnknownMember, child, whole};

/// A schema.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    /// Anything.
    Any,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// This boolean.
    Exactly(bool),
    /// Any text.
    String,
    /// A text of this format.
    Text(Format),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any number.
    Number,
    /// An integer in this range.
    Integer {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
    /// A list.
    List(&'static Schema),
    /// A list of exactly two.
    Pair(&'static Schema, &'static Schema),
    /// An object whose members all match this schema.
    Map(&'static Schema),
    /// An object with these members. Whether others are allowed depends on the document.
    Object(&'static [Field]),
    /// Any of these.
    AnyOf(&'static [Schema]),
    /// Another constant.
    Of(&'static Schema),
    /// With a name in a document generated from it.
    Named(&'static str, &'static Schema),
    /// With another description of what is expected.
    Said(&'static str, &'static Schema),
}

/// An integer of any size.
pub const ANY_INTEGER: Schema = Schema::Integer {
    min: i64::MIN,
    max: i64::MAX,
};
/// A non-negative integer.
pub const COUNT: Schema = Schema::Integer {
    min: 0,
    max: i64::MAX,
};
/// A positive integer.
pub const POSITIVE: Schema = Schema::Integer {
    min: 1,
    max: i64::MAX,
};
/// A TCP port.
pub const PORT: Schema = Schema::Integer {
    min: 1,
    max: 65_535,
};

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Not empty.
    NotEmpty,
    /// A name: not empty, and not a number.
    Name,
    /// The name of an environment variable: not a pattern, and without a value.
    Variable,
    /// The path of a program.
    Program,
    /// The path of a folder.
    Folder,
}

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// The schema of its value.
    pub schema: Schema,
    /// It is required.
    pub required: bool,
    /// Its description: the lines of its comment.
    pub doc: &'static [&'static str],
    /// Accepted aliases.
    pub aliases: &'static [&'static str],
}

impl Field {
    /// Returns whether this is one of its names.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Returns its description, as one line.
    #[must_use]
    pub fn about(&self) -> String {
        joined(self.doc)
    }
}

/// Joins the lines of a comment.
#[must_use]
pub fn joined(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ").trim().to_owned()
}

impl Schema {
    /// Returns the schema without its name and description.
    #[must_use]
    pub fn plain(&self) -> &Self {
        match self {
            Self::Of(inner) | Self::Named(_, inner) | Self::Said(_, inner) => inner.plain(),
            other => other,
        }
    }
}
