//! The JavaScript runtime for plugins in tests.

use std::path::{Path, PathBuf};

use crate::skip::skip;

/// Returns the root of the repository.
fn repository() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}

/// Returns Bun: the one in `OUTRIGGER_BUN`, or the one installed by `cargo xtask setup`. Without either, programs look for a
/// runtime themselves.
#[must_use]
pub fn bun() -> Option<PathBuf> {
    std::env::var_os("OUTRIGGER_BUN")
        .map(PathBuf::from)
        .or_else(|| Some(repository().join(".work/tools/node_modules/@oven/bun-linux-x64/bin/bun")))
        .filter(|path| path.is_file())
}

/// Like [`bun`]; without one, the test is recorded as skipped.
#[must_use]
pub fn bun_or_skip() -> Option<PathBuf> {
    let bun = bun();
    if bun.is_none() {
        skip("there is no Bun (OUTRIGGER_BUN, .work/tools)");
    }
    bun
}
