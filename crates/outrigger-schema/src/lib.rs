//! What values may be: one notation for settings (`outrigger.toml`), manifests of plugins, `opencode.json` and the bodies of
//! the HTTP API.
//!
//! A [`Schema`] is a constant, written with [`schema!`]. [`Schema::check`] finds what does not fit it, [`json::Writer`] makes
//! JSON Schema of it, [`Schema::expected`] says it in words.
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
mod example;
pub mod json;
mod notation;
pub mod ts;
mod words;

pub use check::{Mismatch, UnknownMember, whole};

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    /// Anything.
    Any,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// This of both.
    Exactly(bool),
    /// Any text.
    String,
    /// A text of this form.
    Text(Format),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any number.
    Number,
    /// A whole number in this range.
    Integer {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A list.
    List(&'static Schema),
    /// A list of exactly two.
    Pair(&'static Schema, &'static Schema),
    /// An object whose members are all of this kind.
    Map(&'static Schema),
    /// An object with these members. Whether others may stand beside them depends on the document.
    Object(&'static [Field]),
    /// Any of these.
    AnyOf(&'static [Schema]),
    /// What another constant says.
    Of(&'static Schema),
    /// With a name of its own in a document that is made of it.
    Named(&'static str, &'static Schema),
    /// With other words for what is expected.
    Said(&'static str, &'static Schema),
}

/// A whole number of any size.
pub const ANY_INTEGER: Schema = Schema::Integer {
    min: i64::MIN,
    max: i64::MAX,
};
/// A whole number from 0.
pub const COUNT: Schema = Schema::Integer {
    min: 0,
    max: i64::MAX,
};
/// A whole number from 1.
pub const POSITIVE: Schema = Schema::Integer {
    min: 1,
    max: i64::MAX,
};
/// A TCP port.
pub const PORT: Schema = Schema::Integer {
    min: 1,
    max: 65_535,
};

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Not empty.
    NotEmpty,
    /// A name: not empty, and no number.
    Name,
    /// The name of an environment variable: no pattern, and no value behind it.
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
    /// What its value may be.
    pub schema: Schema,
    /// It must be there.
    pub required: bool,
    /// What it is for: the lines of its comment.
    pub doc: &'static [&'static str],
    /// Other names of it that are accepted.
    pub aliases: &'static [&'static str],
}

impl Field {
    /// Whether this is one of its names.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// What it is for, as one line.
    #[must_use]
    pub fn about(&self) -> String {
        joined(self.doc)
    }
}

/// The lines of a comment as one.
#[must_use]
pub fn joined(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ").trim().to_owned()
}

impl Schema {
    /// Without the names and words around it.
    #[must_use]
    pub fn plain(&self) -> &Self {
        match self {
            Self::Of(inner) | Self::Named(_, inner) | Self::Said(_, inner) => inner.plain(),
            other => other,
        }
    }
}
