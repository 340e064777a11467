//! The rows of the [table of settings](super::sections).

use outrigger_schema::Schema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Settings;
use super::sections::{PLUGIN_KEYS, SECTIONS, TOP};

/// What a project's own file may do about a setting, whether or not the user trusts the project. None of the settings that it
/// may change makes a plugin or hook of the user run shorter, less, later or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectFile {
    /// Nothing: it decides what other people's code may do, so a project could loosen its own sandbox.
    Security,
    /// Nothing: it is about the user's own things, including plugins and hooks.
    UserOnly,
    /// It applies to plugins that the project contributes, and to nothing else.
    OwnPlugins,
    /// It applies, and can only make something stricter: lists add up.
    Adds,
    /// It applies if it is less than what the user set.
    Lowers,
    /// It applies: it is about the work in this project.
    Counts,
}

/// One setting.
#[derive(Debug)]
pub struct Key<T: 'static> {
    /// Dotted name: `js.runtime`. For plugins only the last part.
    pub name: &'static str,
    /// Accepted aliases.
    pub aliases: &'static [&'static str],
    /// Accepted values.
    pub schema: Schema,
    /// Description in Markdown: the lines of its comment.
    pub doc: &'static [&'static str],
    /// What a project's own file may do about it.
    pub project: ProjectFile,
    /// Sets it to a valid value.
    pub(crate) apply: fn(&mut T, Value),
}

/// The settings of one table of the file.
#[derive(Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Description: the lines of its comment.
    pub doc: &'static [&'static str],
    /// Its settings.
    pub keys: &'static [Key<Settings>],
}

/// A [`Key`]: comment, name, what it may be, and what a project's file may do about it.
macro_rules! key {
    ($(#[doc = $doc:literal])* $(#[alias = $alias:literal])*
        $field:ident $(. $inner:ident)?: $schema:tt, $project:ident) => {
        Key {
            name: concat!(stringify!($field) $(, ".", stringify!($inner))?),
            aliases: &[$($alias),*],
            schema: schema!($schema),
            doc: &[$($doc),*],
            project: ProjectFile::$project,
            apply: |settings, value| {
                $crate::settings::keys::set(&mut settings.$field $(. $inner)?, value);
            },
        }
    };
}
pub(super) use key;

/// Structs of sections with their defaults, and the tables of their keys: `SECTIONS`, or `PLUGIN_KEYS` for a `plugin`, whose
/// fields after `and` are not settings.
macro_rules! settings {
    (@struct $(#[doc = $about:literal])* $Section:ident {
        $($(#[$meta:meta])* $key:ident: $type:ty = $default:expr;)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        pub struct $Section {
            $($(#[$meta])* pub $key: $type,)*
        }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }
    };
    ($(#[doc = $about:literal])* plugin $Plugin:ident {
        $($(#[doc = $doc:literal])* $(#[alias = $alias:literal])*
            $key:ident: $type:ty = $default:expr, $schema:tt, $project:ident;)*
    } and {
        $($(#[$meta:meta])* $field:ident: $field_type:ty,)*
    }) => {
        settings! {@struct $(#[doc = $about])* $Plugin {
            $($(#[doc = $doc])* $key: $type = $default;)*
            $($(#[$meta])* $field: $field_type = Default::default();)*
        }}

        /// The settings of `[plugins.NAME]`.
        pub const PLUGIN_KEYS: &[Key<$Plugin>] = &[$(key! {
            $(#[doc = $doc])* $(#[alias = $alias])* $key: $schema, $project
        },)*];
    };
    ($($(#[doc = $about:literal])* $section:ident: $Section:ident {
        $($(#[doc = $doc:literal])* $key:ident: $type:ty = $default:expr, $schema:tt, $project:ident;)*
    })*) => {
        $(settings! {@struct $(#[doc = $about])* $Section {
            $($(#[doc = $doc])* $key: $type = $default;)*
        }})*

        /// The settings of each section.
        pub const SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            doc: &[$($about),*],
            keys: &[$(key! {
                $(#[doc = $doc])* $section.$key: $schema, $project
            },)*],
        },)*];
    };
}
pub(super) use settings;

/// Sets a field to a value that the setting's schema has accepted.
pub(crate) fn set<T: DeserializeOwned>(field: &mut T, value: Value) {
    match serde_json::from_value(value) {
        Ok(value) => *field = value,
        Err(error) => debug_assert!(false, "the schema accepts what the type does not: {error}"),
    }
}

/// Returns every setting except those of single plugins.
pub fn all() -> impl Iterator<Item = &'static Key<Settings>> {
    let sections = SECTIONS.iter().flat_map(|section| section.keys);
    TOP.iter().chain(sections)
}

/// Returns the setting of this name.
pub(crate) fn find(name: &str) -> Option<&'static Key<Settings>> {
    all().find(|key| key.name == name)
}

/// Returns the plugin setting of this name.
pub(crate) fn find_for_plugin(name: &str) -> Option<&'static Key<super::Plugin>> {
    let mut keys = PLUGIN_KEYS.iter();
    keys.find(|key| key.name == name || key.aliases.contains(&name))
}

/// Returns `name.key`, with the key in quotes if it is not a bare TOML key.
pub(crate) fn dotted(name: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare {
        format!("{name}.{key}")
    } else {
        format!("{name}.\"{key}\"")
    }
}
