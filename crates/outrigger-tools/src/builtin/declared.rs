//! Declarations of the bundled tools (D6).

use outrigger_protocol::descriptor::{Capability, Constraints, Contract, Declared, SandboxProfile};
use serde_json::json;

/// Version of the bundled tools' interface, not of the program.
const VERSION: &str = "1.0.0";

/// Returns contract, capabilities and sandbox of a bundled tool, and whether it opens files only through the path
/// guard.
pub(super) fn of(name: &str) -> (Declared, bool) {
    use Capability::{Exec, FsRead, FsWrite, Net, Session, Spawn, User};
    let (contract, capabilities, rooted): (_, &[Capability], _) = match name {
        "read" => (Some(Contract::Read), &[FsRead], true),
        "glob" | "grep" => (None, &[FsRead], true),
        "write" => (Some(Contract::Write), &[FsWrite], true),
        "edit" => (Some(Contract::Edit), &[FsRead, FsWrite], true),
        "apply_patch" => (None, &[FsRead, FsWrite], true),
        "bash" => (Some(Contract::Exec), &[Exec], false),
        "table" => (None, &[FsRead, FsWrite], true),
        "python" => (None, &[Exec], false),
        "lsp" => (None, &[FsRead], false),
        "webfetch" | "websearch" => (None, &[Net], false),
        "task" => (None, &[Spawn], false),
        "question" => (None, &[User], false),
        "todowrite" => (None, &[Session], false),
        _ => (None, &[], false),
    };
    let declared = Declared {
        version: VERSION.to_owned(),
        output_schema: Some(json!({ "type": "string" })),
        capabilities: capabilities.to_vec(),
        constraints: Constraints {
            max_retries: if name == "webfetch" { 1 } else { 0 },
            sandbox_profile: match name {
                "bash" | "python" => SandboxProfile::Configured,
                _ => SandboxProfile::NoIsolation,
            },
            ..Constraints::default()
        },
        contract,
        safe_to_repeat: false,
    };
    (declared, rooted)
}
