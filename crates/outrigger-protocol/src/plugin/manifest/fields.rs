//! The keys of a manifest, for its JSON Schema.

/// What a key of a manifest holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number from this one.
    Whole(i64),
    /// A list of texts.
    Texts,
    /// A list of lists of texts.
    TextLists,
    /// A list of TCP ports.
    Ports,
    /// A list of words.
    Words(&'static [&'static str]),
    /// A JSON Schema.
    Schema,
    /// A table of any keys.
    Object,
    /// A list of tables with these keys.
    Tables(&'static [ManifestField]),
}

/// A key of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestField {
    /// Dotted name.
    pub key: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// It has to be there.
    pub required: bool,
    /// Other names that are accepted, of C6 and D9.
    pub aliases: &'static [&'static str],
    /// What it is for.
    pub about: &'static str,
}

const fn field(key: &'static str, kind: FieldKind, about: &'static str) -> ManifestField {
    ManifestField {
        key,
        kind,
        required: false,
        aliases: &[],
        about,
    }
}

const fn required(key: &'static str, kind: FieldKind, about: &'static str) -> ManifestField {
    ManifestField {
        required: true,
        ..field(key, kind, about)
    }
}

const fn also(field: ManifestField, aliases: &'static [&'static str]) -> ManifestField {
    ManifestField { aliases, ..field }
}

const KINDS: &[&str] = &[
    "hook",
    "capability",
    "connector",
    "toolset",
    "skill-source",
    "provider",
    "bridge",
];

const POINT: &[ManifestField] = &[
    required(
        "name",
        FieldKind::Text,
        "PLUGIN/domain.name; other plugins bring a hook of this name.",
    ),
    required("description", FieldKind::Text, "What it is for."),
    field("input", FieldKind::Schema, "JSON Schema of the input."),
    field(
        "output",
        FieldKind::Schema,
        "JSON Schema of the output, an object; its properties are what may be patched.",
    ),
    field(
        "allows",
        FieldKind::Words(&["observe", "patch", "block"]),
        "What handlers may do besides looking: change the output, refuse (by throwing, or with a HookBlock).",
    ),
    field(
        "deadline",
        FieldKind::Word(&["fast", "normal", "slow"]),
        "How long a handler may take: 0.5, 5 or 30 seconds, unless the settings say otherwise.",
    ),
    field(
        "examples",
        FieldKind::Tables(POINT_EXAMPLE),
        "What it is reached with, held against its schemas whenever the plugin is loaded.",
    ),
];

const POINT_EXAMPLE: &[ManifestField] = &[
    field("input", FieldKind::Object, "What handlers are given."),
    field("output", FieldKind::Object, "What handlers may change."),
];

const EVENT_EXAMPLE: &[ManifestField] = &[required(
    "properties",
    FieldKind::Object,
    "What is told with it.",
)];

const EVENT: &[ManifestField] = &[
    required(
        "name",
        FieldKind::Text,
        "PLUGIN/domain.name: the type of the event.",
    ),
    required("description", FieldKind::Text, "What it tells."),
    field(
        "schema",
        FieldKind::Schema,
        "JSON Schema of its properties, an object.",
    ),
    field(
        "examples",
        FieldKind::Tables(EVENT_EXAMPLE),
        "What it tells, held against its schema whenever the plugin is loaded.",
    ),
];

const SUBPLUGIN: &[ManifestField] = &[
    required(
        "id",
        FieldKind::Text,
        "What it is called below its host: a-z, 0-9, - and _.",
    ),
    required(
        "entry",
        FieldKind::Text,
        "Module that is imported, inside the host's package.",
    ),
    field(
        "tools",
        FieldKind::Texts,
        "Names of its tools; it registers no others.",
    ),
    field(
        "hooks",
        FieldKind::Texts,
        "Hooks that are called; without it those that its host may have.",
    ),
    field(
        "max_timeout_ms",
        FieldKind::Whole(1),
        "No hook of it runs longer, in milliseconds.",
    ),
    field(
        "permissions.files.read",
        FieldKind::Texts,
        "As for its host, which has to have it too; so for all below.",
    ),
    field("permissions.files.write", FieldKind::Texts, "As above."),
    field("permissions.network.hosts", FieldKind::Texts, "As above."),
    field("permissions.network.listen", FieldKind::Ports, "As above."),
    field("permissions.env", FieldKind::Texts, "As above."),
    field("permissions.secrets", FieldKind::Texts, "As above."),
    field(
        "permissions.client",
        FieldKind::Texts,
        "Routes of the client; without it none.",
    ),
    field("permissions.unix_sockets", FieldKind::Flag, "As above."),
];

/// Every key of a manifest; the committed JSON Schema is made from this table (`cargo xtask generate`).
pub const FIELDS: &[ManifestField] = &[
    required(
        "id",
        FieldKind::Text,
        "What the plugin is called: letters, digits and -_./@:",
    ),
    required("version", FieldKind::Text, "Its version."),
    required("kind", FieldKind::Word(KINDS), "What it is."),
    field(
        "entry",
        FieldKind::Text,
        "Module that is imported, inside the package. Without it, what package.json says.",
    ),
    also(
        field(
            "enabled_by_default",
            FieldKind::Flag,
            "False: it runs only when the user switches it on.",
        ),
        &["enabledByDefault"],
    ),
    also(
        field(
            "provides.tools",
            FieldKind::Texts,
            "Names of its tools; it can register no others.",
        ),
        &["provides_tools"],
    ),
    also(
        field(
            "provides.connectors",
            FieldKind::Texts,
            "Names of the connectors that it executes: `[connectors.NAME] plugin = \"ID\"` in the user's outrigger.toml has the tool of that name called for contracts.",
        ),
        &["provides_connectors"],
    ),
    also(
        field(
            "provides.providers",
            FieldKind::Texts,
            "Names of its providers of models.",
        ),
        &["provides_providers"],
    ),
    also(
        field(
            "provides.skill_sources",
            FieldKind::Texts,
            "Folders of its package with skills (`**/SKILL.md`).",
        ),
        &["provides_skill_sources"],
    ),
    field(
        "provides.has_side_effects",
        FieldKind::Flag,
        "It changes something outside of the session.",
    ),
    also(
        field(
            "depends_on",
            FieldKind::Texts,
            "Plugins that have to be there, by id.",
        ),
        &["dependsOn"],
    ),
    field(
        "requirements.env",
        FieldKind::Texts,
        "Variables that have to be set.",
    ),
    field(
        "requirements.env_any",
        FieldKind::TextLists,
        "Groups of variables of which one has to be set.",
    ),
    field(
        "requirements.external_bins",
        FieldKind::Texts,
        "Programs that have to be on PATH.",
    ),
    also(
        field(
            "hook_policy.allowed_hooks",
            FieldKind::Texts,
            "Its hooks or their points: they do what their points allow, and others that it brings are not called. Without it all are called, and do what is open to every plugin.",
        ),
        &["allowedHooks"],
    ),
    also(
        field(
            "hook_policy.max_timeout_ms",
            FieldKind::Whole(1),
            "No hook of it runs longer, in milliseconds.",
        ),
        &["maxTimeoutMs"],
    ),
    field(
        "hook_policy.priority",
        FieldKind::Whole(i32::MIN as i64),
        "Higher comes first, where the user has said nothing else.",
    ),
    also(
        field(
            "hook_policy.fail_closed",
            FieldKind::Texts,
            "Hooks whose failure refuses what they guard, and which may refuse: points where the table opens refusals, and those of other plugins. At others the user says so.",
        ),
        &["failClosed"],
    ),
    field(
        "permissions.files.read",
        FieldKind::Texts,
        "${project} or paths below it that it reads; of places outside the user grants each.",
    ),
    field(
        "permissions.files.write",
        FieldKind::Texts,
        "${project} or paths below it that it reads and changes; of places outside the user grants each.",
    ),
    field(
        "permissions.network.hosts",
        FieldKind::Texts,
        "Hosts that it connects to; without any it opens no TCP connection.",
    ),
    field(
        "permissions.network.listen",
        FieldKind::Ports,
        "TCP ports that it listens on; the user grants them.",
    ),
    field(
        "permissions.env",
        FieldKind::Texts,
        "Environment variables that are no secrets; * at the end stands for any rest.",
    ),
    field(
        "permissions.secrets",
        FieldKind::Texts,
        "Environment variables that are secrets; the user grants each by name.",
    ),
    field(
        "permissions.client",
        FieldKind::Texts,
        "Routes of the client, as GET /session/*; without it all that plugins may use.",
    ),
    field(
        "permissions.processes",
        FieldKind::Texts,
        "Programs that it runs, by name or path; without it all, with an empty list none.",
    ),
    field(
        "permissions.unix_sockets",
        FieldKind::Flag,
        "UNIX sockets; the user grants them.",
    ),
    field(
        "points",
        FieldKind::Tables(POINT),
        "Hook points of its own, which other plugins subscribe to.",
    ),
    field("events", FieldKind::Tables(EVENT), "Bus events of its own."),
    field(
        "subplugins",
        FieldKind::Tables(SUBPLUGIN),
        "Plugins that it hosts: each in a process of its own, with no more than both ask for.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::manifest::{Manifest, PluginKind};
    use serde_json::{Value, json};

    fn whole() -> Value {
        every(FIELDS)
    }

    fn every(fields: &[ManifestField]) -> Value {
        let mut whole = json!({});
        for field in fields {
            let value = match field.kind {
                FieldKind::Text if field.key == "name" => json!("1.0/deploy.before"),
                FieldKind::Text => json!("1.0"),
                FieldKind::Word(words) => json!(words[0]),
                FieldKind::Flag => json!(true),
                FieldKind::Whole(_) => json!(5),
                FieldKind::Texts => json!(["A"]),
                FieldKind::TextLists => json!([["A"]]),
                FieldKind::Ports => json!([80]),
                FieldKind::Words(words) => json!(words),
                FieldKind::Schema => json!({"type": "object"}),
                FieldKind::Object => json!({"any": "thing"}),
                FieldKind::Tables(fields) => json!([every(fields)]),
            };
            put(&mut whole, field.key, value);
        }
        whole
    }

    fn put(object: &mut Value, key: &str, value: Value) {
        match key.split_once('.') {
            Some((first, rest)) => put(&mut object[first], rest, value),
            None => object[key] = value,
        }
    }

    /// The table and the types say the same: every key is known, none is left out, each alias is the same key.
    #[test]
    fn the_table_is_the_type() {
        let manifest: Manifest = serde_json::from_value(whole()).unwrap();
        assert_eq!(serde_json::to_value(&manifest).unwrap(), whole());
        for field in FIELDS {
            for alias in field.aliases {
                let mut other = whole();
                let (table, name) = field.key.rsplit_once('.').unwrap_or(("", field.key));
                let place = table.split('.').filter(|part| !part.is_empty());
                let object = place.fold(&mut other, |at, part| &mut at[part]);
                let value = object.as_object_mut().unwrap().remove(name).unwrap();
                object[*alias] = value;
                let read: Manifest = serde_json::from_value(other).unwrap();
                assert_eq!(read, manifest, "{alias}");
            }
            let mut without = whole();
            let pointer = format!("/{}", field.key.replace('.', "/"));
            let (table, name) = pointer.rsplit_once('/').unwrap();
            without
                .pointer_mut(table)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(name);
            let read = serde_json::from_value::<Manifest>(without);
            assert_eq!(read.is_err(), field.required, "{}", field.key);
        }
        let mut more = whole();
        more["permissions"]["more"] = json!(1);
        assert!(serde_json::from_value::<Manifest>(more).is_err());
        for (words, kind) in [
            ("Toolset", PluginKind::Toolset),
            ("hook-plugin", PluginKind::Hook),
            ("SkillSource", PluginKind::SkillSource),
        ] {
            assert_eq!(
                serde_json::from_value::<PluginKind>(json!(words)).unwrap(),
                kind
            );
        }
        assert_eq!(Manifest::inferred("a", None).problems(), []);
    }

    #[test]
    fn problems_by_table() {
        for (key, value, wrong) in [
            ("id", json!("a/b@c.d"), false),
            ("id", json!("../a"), true),
            ("id", json!("a b"), true),
            ("id", json!("builtin-tools"), true),
            ("version", json!("latest"), true),
            ("entry", json!("dist/a.js"), false),
            ("entry", json!("a/../../b"), true),
            (
                "permissions.files.read",
                json!(["${project}/a", "b/c", "${project}"]),
                false,
            ),
            (
                "permissions.files.read",
                json!(["/opt/acme", "~/notes"]),
                false,
            ),
            ("permissions.files.read", json!(["/opt/../etc"]), true),
            ("permissions.files.read", json!(["~"]), true),
            ("permissions.files.read", json!(["~root/x"]), true),
            (
                "permissions.processes",
                json!(["git", "/usr/bin/rg"]),
                false,
            ),
            ("permissions.processes", json!(["./run"]), true),
            ("permissions.files.read", json!(["${project}x"]), true),
            ("permissions.files.read", json!(["${home}"]), true),
            ("permissions.files.write", json!(["a/../../b"]), true),
            ("permissions.env", json!(["*", "A_*", "A"]), false),
            ("permissions.env", json!(["*A"]), true),
            ("permissions.secrets", json!(["A_*"]), true),
            (
                "permissions.client",
                json!(["GET /session/*", "* /log"]),
                false,
            ),
            ("permissions.client", json!(["/session"]), true),
            ("permissions.network.listen", json!([0]), true),
            ("requirements.external_bins", json!(["/bin/sh"]), true),
            ("hook_policy.max_timeout_ms", json!(0), true),
        ] {
            let mut manifest = whole();
            put(&mut manifest, "permissions.client", json!(["GET /a"]));
            put(&mut manifest, "requirements.external_bins", json!(["sh"]));
            put(&mut manifest, "points", json!([]));
            put(&mut manifest, "events", json!([]));
            put(&mut manifest, "subplugins", json!([]));
            put(&mut manifest, key, value.clone());
            let manifest: Manifest = serde_json::from_value(manifest).unwrap();
            let problems = manifest.problems();
            assert_eq!(
                problems.first().map(|it| it.key),
                wrong.then_some(key),
                "{key} {value}"
            );
        }
    }
}
