//! Helpers that the standard library lacks: one copy of each, for all crates except the kernel, which is `no_std`.

#[cfg(not(target_arch = "wasm32"))]
pub mod clock;
pub mod path;
#[cfg(not(target_arch = "wasm32"))]
pub mod random;
pub mod sync;
pub mod tally;
pub mod text;
