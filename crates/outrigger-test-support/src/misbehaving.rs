//! The misbehaving plugin (`misbehaving.mjs`): it commits one fault at one place, both named by its options. `outrigger-plugins` tests
//! every fault at every place, `outrigger-cli` whole turns.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The plugin; its options name the fault and the place.
///
/// ```
/// use outrigger_test_support::World;
/// use outrigger_test_support::misbehaving::{HOOKS, SOURCE, short};
/// use serde_json::json;
///
/// let world = World::new([]);
/// let plugin = world.root().join("bad.mjs");
/// std::fs::write(&plugin, SOURCE).unwrap();
/// let options = json!({ "fault": "never", "where": HOOKS[2] });
/// world.config(json!({ "plugin": [[format!("file://{}", plugin.display()), options]] }));
/// assert_eq!(HOOKS.map(short), ["system", "params", "before"]);
/// ```
pub const SOURCE: &str = include_str!("misbehaving.mjs");
/// The hooks at which it can fail.
pub const HOOKS: [&str; 3] = [
    "experimental.chat.system.transform",
    "chat.params",
    "tool.execute.before",
];

/// Returns a place as named in the tables.
#[must_use]
pub fn short(place: &str) -> &str {
    if place == HOOKS[0] {
        "system"
    } else {
        place.rsplit('.').next().unwrap()
    }
}

/// Returns whether a fault is slow work rather than a hang.
#[must_use]
pub fn works(fault: &str) -> bool {
    matches!(fault, "stdout" | "stderr" | "huge" | "large" | "requests")
        || fault.starts_with("allocates")
}

/// Returns whether a fault blocks its caller until a deadline.
#[must_use]
pub fn is_hang(fault: &str) -> bool {
    let faults = [
        "never",
        "spin",
        "second",
        "spin_in_timer",
        "spin_later",
        "signals",
        "reads_nothing",
        "half_a_frame",
        "recursive",
    ];
    faults.contains(&fault)
}

/// Creates a runtime in `folder` that reports a wrong protocol version on its next start for `bad` once the file `mark` exists, and is
/// `bun` otherwise.
pub fn liar(folder: &Path, mark: &Path, bun: &Path) -> PathBuf {
    let hello = r#"{"jsonrpc":"2.0","method":"hello","params":{"protocol":"9.0","features":[],"runtime":"bun","version":"1.3.0"}}"#;
    let source = format!(
        "import {{ writeSync }} from 'node:fs'\nconst body = Buffer.from('{hello}')\nconst head = Buffer.alloc(4)\nhead.writeUInt32BE(body.length)\nwriteSync(3, Buffer.concat([head, body]))\nsetInterval(() => {{}}, 1000)\n"
    );
    let script = folder.join("liar.mjs");
    std::fs::write(&script, source).unwrap();
    let text = format!(
        "#!/bin/sh\ncase \"$HOME\" in */bad-*) if mv '{mark}' '{mark}.used' 2>/dev/null; then exec '{bun}' '{script}'; fi;; esac\nexec '{bun}' \"$@\"\n",
        mark = mark.display(),
        bun = bun.display(),
        script = script.display(),
    );
    let runtime = folder.join("bun");
    std::fs::write(&runtime, text).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
    runtime
}
