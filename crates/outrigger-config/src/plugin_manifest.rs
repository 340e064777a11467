//! The keys of a plugin's manifest (`outrigger.plugin.toml`). `docs/plugin-manifest.schema.json` is generated from this table.
//!
//! [`outrigger_protocol::manifest::Manifest`] reads a manifest and depends on serde alone; a test compares both.

use outrigger_schema::{PORT, POSITIVE, Schema, schema};

const KIND: Schema = schema!(
    "hook" | "capability" | "connector" | "toolset" | "skill-source" | "provider" | "bridge"
);
const PRIORITY: Schema = Schema::Integer {
    min: i32::MIN as i64,
    max: i32::MAX as i64,
};

const POINT_EXAMPLE: Schema = schema!({
    /// What handlers are given.
    input?: {},
    /// What handlers may change.
    output?: {},
});

const POINT: Schema = schema!({
    /// PLUGIN/domain.name; other plugins bring a hook of this name.
    name: string,
    /// What it is for.
    description: string,
    /// JSON Schema of the input.
    input?: {},
    /// JSON Schema of the output, an object; its properties are what may be patched.
    output?: {},
    /// What handlers may do besides observing: change the output, refuse (by throwing, or with a HookBlock).
    allows?: ["observe" | "patch" | "block"],
    /// How long a handler may take: 0.5, 5 or 30 seconds, unless the settings say otherwise.
    deadline?: "fast" | "normal" | "slow",
    /// What it is reached with, held against its schemas whenever the plugin is loaded.
    examples?: [POINT_EXAMPLE],
});

const EVENT_EXAMPLE: Schema = schema!({
    /// Its payload.
    properties: {},
});

const EVENT: Schema = schema!({
    /// PLUGIN/domain.name: the type of the event.
    name: string,
    /// What it tells.
    description: string,
    /// JSON Schema of its properties, an object.
    schema?: {},
    /// What it tells, held against its schema whenever the plugin is loaded.
    examples?: [EVENT_EXAMPLE],
});

const PROVIDER_EXAMPLE: Schema = schema!({
    /// One of its models.
    model: string,
    /// What the model is asked.
    prompt: string,
});

const PROVIDER: Schema = schema!({
    /// One of provides.providers.
    id: string,
    /// What it is.
    description: string,
    /// What it is asked by `outrigger plugin test`, which sends it.
    examples?: [PROVIDER_EXAMPLE],
});

const PERMISSIONS: Schema = schema!({
    files?: {
        /// ${project} or paths below it that it reads; of places outside the user grants each.
        read?: [string],
        /// ${project} or paths below it that it reads and changes; of places outside the user grants each.
        write?: [string],
    },
    network?: {
        /// Hosts that it connects to; without any it opens no TCP connection.
        hosts?: [string],
        /// TCP ports that it listens on; the user grants them.
        listen?: [PORT],
    },
    /// Environment variables that are not secrets; * at the end stands for any rest.
    env?: [string],
    /// Environment variables that are secrets; the user grants each by name.
    secrets?: [string],
    /// Routes of the client, as GET /session/*; without it all that plugins may use.
    client?: [string],
    /// Programs that it runs, by name or path; without it all, with an empty list none.
    processes?: [string],
    /// UNIX sockets; the user grants them.
    unix_sockets?: boolean,
});

const SUBPLUGIN: Schema = schema!({
    /// What it is called below its host: a-z, 0-9, - and _.
    id: string,
    /// Module that is imported, inside the host's package.
    entry: string,
    /// Names of its tools; it registers no others.
    tools?: [string],
    /// Hooks that are called; without it those that its host may have.
    hooks?: [string],
    /// No hook of it runs longer, in milliseconds.
    max_timeout_ms?: POSITIVE,
    /// What it asks for. It gets of it what its host asks for and has, too; of the client's routes those that it names.
    permissions?: PERMISSIONS,
});

/// Every key of a manifest.
pub const MANIFEST: Schema = schema!({
    /// What the plugin is called: letters, digits and -_./@:
    id: string,
    /// Its version.
    version: string,
    /// What it is.
    kind: KIND,
    /// Module that is imported, inside the package. Without it, what package.json says.
    entry?: string,
    /// False: it runs only when the user switches it on.
    #[alias = "enabledByDefault"]
    enabled_by_default?: boolean,
    #[alias = "capabilities"]
    provides?: {
        /// Names of its tools; it can register no others.
        #[alias = "provides_tools"]
        tools?: [string],
        /// Names of the connectors that it executes: `[connectors.NAME] plugin = "ID"` in the user's outrigger.toml
        /// has the tool of that name called for contracts.
        #[alias = "provides_connectors"]
        connectors?: [string],
        /// Names of its providers of models.
        #[alias = "provides_providers"]
        providers?: [string],
        /// Folders of its package with skills (`**/SKILL.md`).
        #[alias = "provides_skill_sources"]
        skill_sources?: [string],
        /// It changes something outside of the session.
        has_side_effects?: boolean,
    },
    /// Plugins that must be there, by id.
    #[alias = "dependsOn"]
    depends_on?: [string],
    requirements?: {
        /// Variables that must be set.
        env?: [string],
        /// Groups of variables of which one must be set.
        env_any?: [[string]],
        /// Programs that must be on PATH.
        external_bins?: [string],
    },
    #[alias = "hookPolicy"]
    hook_policy?: {
        /// Its hooks or their points: they do what their points allow, and others that it brings are not called.
        /// Without it all are called, and do what is open to every plugin.
        #[alias = "allowedHooks"]
        allowed_hooks?: [string],
        /// No hook of it runs longer, in milliseconds.
        #[alias = "maxTimeoutMs"]
        max_timeout_ms?: POSITIVE,
        /// Higher comes first, where the user has said nothing else.
        priority?: PRIORITY,
        /// Hooks whose failure refuses what they guard, and which may refuse: points where the table opens
        /// refusals, and those of other plugins. At others the user says so.
        #[alias = "failClosed"]
        fail_closed?: [string],
    },
    /// What it asks for.
    permissions?: PERMISSIONS,
    /// Hook points of its own, which other plugins subscribe to.
    points?: [POINT],
    /// Bus events of its own.
    events?: [EVENT],
    /// What it says of its providers of models.
    providers?: [PROVIDER],
    /// Plugins that it hosts: each in a process of its own, with no more than both ask for.
    subplugins?: [SUBPLUGIN],
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::same_names::assert_same;
    use outrigger_protocol::manifest::{Manifest, PluginKind};
    use outrigger_schema::Field;
    use serde_json::{Value, json};

    fn members(schema: &Schema) -> &'static [Field] {
        match schema.plain() {
            Schema::Object(fields) => fields,
            _ => &[],
        }
    }

    /// Returns the member of an object at this path.
    fn at<'v>(object: &'v mut Value, path: &[&str]) -> &'v mut Value {
        path.iter().fold(object, |at, name| &mut at[*name])
    }

    /// Checks manifests that use the alias of each key, and that lack each required key.
    fn each_key(fields: &[Field], path: &[&str], whole: &Value) {
        let read = |value: &Value| serde_json::from_value::<Manifest>(value.clone());
        for field in fields {
            let mut without = whole.clone();
            let object = at(&mut without, path).as_object_mut().unwrap();
            let value = object.shift_remove(field.name).unwrap();
            assert_eq!(read(&without).is_err(), field.required, "{}", field.name);
            for alias in field.aliases {
                at(&mut without, path)[*alias] = value.clone();
                assert_eq!(read(&without).unwrap(), read(whole).unwrap(), "{alias}");
            }
            each_key(
                members(&field.schema),
                &[path, &[field.name]].concat(),
                whole,
            );
        }
    }

    /// The table and the type agree: every key is known, none is missing, each alias is the same key.
    #[test]
    fn the_table_is_the_type() {
        assert_same::<Manifest>(&MANIFEST);
        each_key(members(&MANIFEST), &[], &MANIFEST.example());
        let Schema::Word(kinds) = KIND else { panic!() };
        for words in kinds
            .iter()
            .chain(&["Toolset", "hook-plugin", "SkillSource"])
        {
            serde_json::from_value::<PluginKind>(json!(words)).unwrap();
        }
    }
}
