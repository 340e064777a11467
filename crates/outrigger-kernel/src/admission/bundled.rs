//! The bundled plugins (D5): one row each with id, profile, requirements and tools. What such a plugin contributes is built
//! in its own crate (tools in `outrigger-tools`, models in `outrigger-models`, MCP in `outrigger-mcp`).

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::manifest::PluginKind;

use super::{Candidate, Profile, Source};

/// A bundled plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundled {
    /// What it is called.
    pub id: &'static str,
    /// Kind of plugin.
    pub kind: PluginKind,
    /// It always runs, and its id is reserved (D4).
    pub required: bool,
    /// Lowest profile that includes it.
    pub profile: Profile,
    /// Tools that exist only while it runs.
    pub tools: &'static [&'static str],
    /// Its tools are offered to a model only if a permission rule or an agent names them.
    pub optional: bool,
    /// It changes something outside of the session.
    pub side_effects: bool,
    /// Variables that must be set.
    pub env: &'static [&'static str],
    /// Groups of variables of which one must be set.
    pub env_any: &'static [&'static [&'static str]],
    /// Programs that must be on `PATH`.
    pub external_bins: &'static [&'static str],
}

const fn toolset(id: &'static str, tools: &'static [&'static str]) -> Bundled {
    Bundled {
        id,
        kind: PluginKind::Toolset,
        required: false,
        profile: Profile::Minimal,
        tools,
        optional: false,
        side_effects: true,
        env: &[],
        env_any: &[],
        external_bins: &[],
    }
}

/// All bundled plugins.
pub const BUNDLED: &[Bundled] = &[
    Bundled {
        required: true,
        side_effects: false,
        ..toolset(
            "builtin-tools",
            &["invalid", "question", "task", "todowrite", "lsp"],
        )
    },
    Bundled {
        kind: PluginKind::SkillSource,
        required: true,
        side_effects: false,
        ..toolset("skill-source-local", &["skill"])
    },
    toolset(
        "core-fs",
        &["read", "glob", "grep", "edit", "write", "apply_patch"],
    ),
    toolset("core-command", &["bash"]),
    Bundled {
        optional: true,
        ..toolset("core-table", &["table"])
    },
    toolset("core-web", &["webfetch", "websearch"]),
    Bundled {
        optional: true,
        external_bins: &["python3"],
        ..toolset("core-python", &["python"])
    },
    Bundled {
        kind: PluginKind::Provider,
        env: &["OPENROUTER_API_KEY"],
        ..toolset("openrouter", &[])
    },
    Bundled {
        kind: PluginKind::Connector,
        profile: Profile::Messaging,
        env_any: &[&["TELEGRAM_BOT_TOKEN", "TELOXIDE_TOKEN"]],
        ..toolset("telegram", &[])
    },
    Bundled {
        kind: PluginKind::Bridge,
        profile: Profile::Full,
        ..toolset("mcp", &[])
    },
];

/// Returns the bundled plugin with this id.
#[must_use]
pub fn bundled(id: &str) -> Option<&'static Bundled> {
    BUNDLED.iter().find(|plugin| plugin.id == id)
}

impl Bundled {
    /// Returns it as a candidate.
    #[must_use]
    pub fn candidate(&self) -> Candidate {
        let texts =
            |list: &[&str]| -> Vec<String> { list.iter().map(|it| (*it).to_owned()).collect() };
        Candidate {
            required: self.required,
            profile: Some(self.profile),
            side_effects: self.side_effects,
            env: texts(self.env),
            env_any: self.env_any.iter().map(|group| texts(group)).collect(),
            external_bins: texts(self.external_bins),
            ..Candidate::new(self.id, Source::Bundled, "bundled")
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use outrigger_protocol::manifest::RESERVED_IDS;

    use super::*;

    #[test]
    fn the_required_ones_are_those_whose_ids_are_reserved() {
        let required: Vec<&str> = BUNDLED
            .iter()
            .filter(|it| it.required)
            .map(|it| it.id)
            .collect();
        assert_eq!(required, RESERVED_IDS);
        let ids: BTreeSet<&str> = BUNDLED.iter().map(|it| it.id).collect();
        assert_eq!(ids.len(), BUNDLED.len());
        let tools: Vec<&str> = BUNDLED.iter().flat_map(|it| it.tools).copied().collect();
        let each: BTreeSet<&str> = tools.iter().copied().collect();
        assert_eq!(each.len(), tools.len(), "a tool belongs to one of them");
    }
}
