//! Files of a project that determine which programs are started in it.

/// Files and folders that this program reads as settings or loads as plugins: its own, and those of other programs.
/// Plugins, servers and commands must not write them.
pub const SETTINGS: [&str; 6] = [
    "opencode.json",
    "opencode.jsonc",
    "outrigger.toml",
    ".mcp.json",
    ".opencode",
    ".outrigger",
];
