//! A tool's declaration besides name and schema (D6), and its validation.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::tool::ToolSpec;

/// A capability that a tool must be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Capability {
    /// Reads files.
    #[serde(rename = "fs.read")]
    FsRead,
    /// Writes files.
    #[serde(rename = "fs.write")]
    FsWrite,
    /// Runs programs.
    #[serde(rename = "process.exec")]
    Exec,
    /// Connects to hosts.
    #[serde(rename = "net.connect")]
    Net,
    /// Calls MCP servers.
    #[serde(rename = "mcp.call")]
    Mcp,
    /// Starts agents.
    #[serde(rename = "agent.spawn")]
    Spawn,
    /// Changes its session.
    #[serde(rename = "session.write")]
    Session,
    /// Asks the user.
    #[serde(rename = "user.ask")]
    User,
    /// Reads pages in a browser.
    #[serde(rename = "browser.read")]
    BrowserRead,
    /// Opens pages in a browser and changes them.
    #[serde(rename = "browser.write")]
    BrowserWrite,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 10] = [
        Self::FsRead,
        Self::FsWrite,
        Self::Exec,
        Self::Net,
        Self::Mcp,
        Self::Spawn,
        Self::Session,
        Self::User,
        Self::BrowserRead,
        Self::BrowserWrite,
    ];

    /// Returns the name in settings and descriptors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FsRead => "fs.read",
            Self::FsWrite => "fs.write",
            Self::Exec => "process.exec",
            Self::Net => "net.connect",
            Self::Mcp => "mcp.call",
            Self::Spawn => "agent.spawn",
            Self::Session => "session.write",
            Self::User => "user.ask",
            Self::BrowserRead => "browser.read",
            Self::BrowserWrite => "browser.write",
        }
    }

    /// Returns the capability of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What a tool does for the model, independent of its provider (C11). Routing rules bind a contract to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contract {
    /// Shows a file or folder.
    Read,
    /// Writes a whole file.
    Write,
    /// Replaces a part of a file.
    Edit,
    /// Runs a command line.
    #[serde(alias = "bash")]
    Exec,
    /// Shows a page of a browser.
    #[serde(rename = "browser.read")]
    BrowserRead,
    /// Opens a page in a browser, or changes one.
    #[serde(rename = "browser.write")]
    BrowserWrite,
}

impl Contract {
    /// Every contract.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Edit,
        Self::Exec,
        Self::BrowserRead,
        Self::BrowserWrite,
    ];

    /// The contracts of the bridge's frames (C16: unchanged).
    pub const OF_BRIDGE: [Self; 4] = [Self::Read, Self::Write, Self::Edit, Self::Exec];

    /// Returns whether it is about a browser.
    #[must_use]
    pub const fn is_of_browser(self) -> bool {
        matches!(self, Self::BrowserRead | Self::BrowserWrite)
    }

    /// Returns the canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Exec => "exec",
            Self::BrowserRead => "browser.read",
            Self::BrowserWrite => "browser.write",
        }
    }

    /// Returns the contract of that name; `bash` is `exec`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "bash" => Some(Self::Exec),
            _ => Self::ALL.into_iter().find(|it| it.name() == name),
        }
    }

    /// Returns the capabilities that its provider must be granted.
    #[must_use]
    pub const fn needs(self) -> &'static [Capability] {
        match self {
            Self::Read => &[Capability::FsRead],
            Self::Write => &[Capability::FsWrite],
            Self::Edit => &[Capability::FsRead, Capability::FsWrite],
            Self::Exec => &[Capability::Exec],
            Self::BrowserRead => &[Capability::BrowserRead],
            Self::BrowserWrite => &[Capability::BrowserWrite],
        }
    }
}

/// The sandbox that a tool runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxProfile {
    /// None: it runs in the host, or as the user. Displayed as such.
    #[default]
    NoIsolation,
    /// A process that writes to temporary folders only: the result of [`Self::Configured`] with `tools.sandbox = "read-only"`.
    ReadOnly,
    /// A process that writes to the project and to temporary folders: the result with `"workspace-write"`.
    WorkspaceWrite,
    /// The process of a plugin or server, with its grants.
    Process,
    /// A process under the setting `tools.sandbox`. A list of tools shows the result instead.
    Configured,
}

/// The constraints of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Constraints {
    /// Maximum duration of a call, including all attempts, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How often a failed call is made again. Only for tools that are safe to repeat.
    pub max_retries: u32,
    /// Pause before the first retry, in milliseconds; it doubles with each.
    pub retry_backoff_ms: u64,
    /// The sandbox that it runs in.
    pub sandbox_profile: SandboxProfile,
    /// Equal calls of one step have one answer: the tool runs once for them.
    pub deterministic_hooks: bool,
    /// It reads below these only; relative ones start at the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_read_roots: Option<Vec<String>>,
    /// It writes below these only; relative ones start at the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_write_roots: Option<Vec<String>>,
}

/// A tool's declaration besides its [`ToolSpec`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declared {
    /// Version of its behaviour.
    pub version: String,
    /// JSON Schema of its answer: of the text if it allows a string, otherwise of the JSON in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The capabilities that it needs.
    pub capabilities: Vec<Capability>,
    /// Its constraints.
    pub constraints: Constraints,
    /// Its contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<Contract>,
    /// A call whose outcome is unknown may be repeated.
    pub safe_to_repeat: bool,
}

impl Default for Declared {
    fn default() -> Self {
        Self {
            version: "0.0.0".to_owned(),
            output_schema: None,
            capabilities: Vec::new(),
            constraints: Constraints::default(),
            contract: None,
            safe_to_repeat: false,
        }
    }
}

/// A complete tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDescriptor {
    /// Name, schema, source.
    #[serde(flatten)]
    pub spec: ToolSpec,
    /// The rest.
    #[serde(flatten)]
    pub declared: Declared,
}

/// A problem of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorProblem {
    /// Key.
    pub key: &'static str,
    /// What is wrong, and with what.
    pub message: String,
}

/// Maximum timeout that a tool may declare: a day.
const MAX_TIMEOUT_MS: u64 = 86_400_000;
const MAX_RETRIES: u32 = 10;
const MAX_BACKOFF_MS: u64 = 60_000;

impl ToolDescriptor {
    /// Returns whether a call may be repeated: the tool changes nothing, or declares it.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.spec.read_only || self.declared.safe_to_repeat
    }

    /// Returns its problems. `rooted`: the tool opens files only through the path guard, so roots can be enforced.
    #[must_use]
    pub fn problems(&self, rooted: bool) -> Vec<DescriptorProblem> {
        let mut found = Problems(Vec::new());
        found.in_names(self);
        found.in_limits(self);
        found.in_capabilities(self);
        found.in_roots(self, rooted);
        found.0
    }
}

struct Problems(Vec<DescriptorProblem>);

impl Problems {
    fn add_if(&mut self, key: &'static str, is_wrong: bool, message: impl Into<String>) {
        if is_wrong {
            let message = message.into();
            self.0.push(DescriptorProblem { key, message });
        }
    }

    fn in_names(&mut self, tool: &ToolDescriptor) {
        let name = &tool.spec.name;
        let odd = name.is_empty() || name.len() > 256 || name.chars().any(char::is_control);
        self.add_if("name", odd, format!("{name:?} is not the name of a tool"));
        let version = &tool.declared.version;
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
        let odd = !version.starts_with(|c: char| c.is_ascii_digit()) || !version.chars().all(fits);
        self.add_if("version", odd, format!("{version:?} is not a version"));
    }

    fn in_limits(&mut self, tool: &ToolDescriptor) {
        let limits = &tool.declared.constraints;
        let time = limits.timeout_ms.unwrap_or(1);
        self.add_if(
            "timeout_ms",
            !(1..=MAX_TIMEOUT_MS).contains(&time),
            format!("{time} is not from 1 to {MAX_TIMEOUT_MS}"),
        );
        let retries = limits.max_retries;
        self.add_if(
            "max_retries",
            retries > MAX_RETRIES,
            format!("{retries} is more than {MAX_RETRIES}"),
        );
        self.add_if(
            "max_retries",
            retries > 0 && !tool.is_repeatable(),
            "only a tool that is safe to repeat is called again; declare `safe_to_repeat`",
        );
        let pause = limits.retry_backoff_ms;
        self.add_if(
            "retry_backoff_ms",
            pause > MAX_BACKOFF_MS,
            format!("{pause} is more than {MAX_BACKOFF_MS}"),
        );
    }

    fn in_capabilities(&mut self, tool: &ToolDescriptor) {
        let declared = &tool.declared;
        let has = |it: Capability| declared.capabilities.contains(&it);
        self.add_if(
            "capabilities",
            tool.spec.read_only && has(Capability::FsWrite),
            "it changes nothing and asks for fs.write",
        );
        if let Some(contract) = declared.contract
            && let Some(lacking) = contract.needs().iter().find(|it| !has(**it))
        {
            let (contract, lacking) = (contract.name(), lacking.name());
            let message = format!("{contract} needs the capability {lacking}");
            self.add_if("contract", true, message);
        }
        let profile = declared.constraints.sandbox_profile;
        self.add_if(
            "sandbox_profile",
            profile == SandboxProfile::ReadOnly && has(Capability::FsWrite),
            "ReadOnly, and it asks for fs.write",
        );
    }

    fn in_roots(&mut self, tool: &ToolDescriptor, rooted: bool) {
        let limits = &tool.declared.constraints;
        let (reads, writes) = (&limits.allowed_read_roots, &limits.allowed_write_roots);
        for (key, roots, needs) in [
            ("allowed_read_roots", reads, Capability::FsRead),
            ("allowed_write_roots", writes, Capability::FsWrite),
        ] {
            let Some(roots) = roots else { continue };
            if let Some(wrong) = roots.iter().find(|root| !is_root(root)) {
                self.add_if(key, true, format!("{wrong:?} is not the path of a folder"));
            }
            let has = tool.declared.capabilities.contains(&needs);
            self.add_if(key, !has, format!("it does not ask for {}", needs.name()));
            self.add_if(
                key,
                !rooted,
                "nothing would hold it to them: its process is held to the roots of its plugin's manifest",
            );
        }
    }
}

fn is_root(root: &str) -> bool {
    let up = |part: Component<'_>| part == Component::ParentDir;
    !root.is_empty() && !root.contains('\0') && !Path::new(root).components().any(up)
}

#[cfg(test)]
mod tests;
