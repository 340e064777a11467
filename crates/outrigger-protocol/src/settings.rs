//! What of a project says which programs are started in it.

/// Files and folders that this program reads as settings or loads as plugins: its own, and those of other programs. No
/// plugin, server or command writes them (issue 5, item 5).
pub const SETTINGS: [&str; 6] = [
    "opencode.json",
    "opencode.jsonc",
    "outrigger.toml",
    ".mcp.json",
    ".opencode",
    ".outrigger",
];
