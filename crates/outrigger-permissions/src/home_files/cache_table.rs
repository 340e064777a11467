//! The caches of the home folder: what commands may do with each, and whether the user's programs run what is in it. Entries are as
//! in the [other lists](super::lists).

use Commands::{Change, Own, Read};
use Holds::{Data, Programs};

/// What commands do with a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commands {
    /// They change it: it is what builds fetch and store, not the settings, credentials and programs next to it.
    Change,
    /// They use it as they find it: it was fetched for the user.
    Read,
    /// They have a cache of their own under that name.
    Own,
}

/// What is in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// What no program of the user runs because it is there.
    Data,
    /// What the user's programs run, source or unpickle: commands never change it, like a start-up file.
    Programs,
}

/// A cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cache {
    pub(super) path: &'static str,
    pub(super) commands: Commands,
    pub(super) holds: Holds,
}

const fn cache(path: &'static str, commands: Commands, holds: Holds) -> Cache {
    Cache {
        path,
        commands,
        holds,
    }
}

/// The caches. Commands see nothing else of `.cache`, where much is run by the user's programs: what they keep there themselves is in
/// a folder of their own ([`super::command_caches`]).
pub(super) const CACHES: &[Cache] = &[
    cache(".cache/outrigger-commands", Change, Data),
    cache(".cache/ccache", Change, Data),
    cache(".cache/sccache", Change, Data),
    cache(".cache/go-build", Change, Data),
    cache(".cache/zig", Change, Data),
    cache(".cache/pip", Change, Data),
    cache(".cache/pdm", Change, Data),
    cache(".cache/pypoetry/cache", Change, Data),
    cache(".cache/pypoetry/artifacts", Change, Data),
    cache(".cache/node-gyp", Change, Data),
    cache(".cache/pnpm", Change, Data),
    cache(".cache/yarn", Change, Data),
    cache(".cache/cabal", Change, Data),
    cache(".cache/composer", Change, Data),
    cache(".cache/coursier", Change, Data),
    cache(".cache/dune", Change, Data),
    cache(".cache/rebar3", Change, Data),
    cache(".cache/vcpkg", Change, Data),
    cache(".cache/org.swift.swiftpm", Change, Data),
    cache(".cargo/registry", Change, Data),
    cache(".cargo/git", Change, Data),
    cache(".cargo/.package-cache", Change, Data),
    cache(".cargo/.package-cache-mutate", Change, Data),
    cache(".cargo/.global-cache", Change, Data),
    cache(".npm/_cacache", Change, Data),
    cache(".npm/_logs", Change, Data),
    cache(".npm/_prebuilds", Change, Data),
    cache(".local/share/pnpm/store", Change, Data),
    cache(".pnpm-store", Change, Data),
    cache(".yarn/berry/cache", Change, Data),
    cache(".yarn/berry/metadata", Change, Data),
    cache("go/pkg", Change, Data),
    cache(".gradle/caches", Change, Data),
    cache(".gradle/daemon", Change, Data),
    cache(".gradle/notifications", Change, Data),
    cache(".m2/repository", Change, Data),
    cache(".ivy2/cache", Change, Data),
    cache(".sbt/boot", Change, Data),
    cache(".nuget/packages", Change, Data),
    cache(".composer/cache", Change, Data),
    cache(".cabal/packages", Change, Data),
    cache(".hex/packages", Change, Data),
    cache(".ccache", Change, Data),
    cache(".conan2/p", Change, Data),
    cache(".julia/compiled", Change, Data),
    cache(".terraform.d/plugin-cache", Change, Data),
    cache(".cache/.bun", Own, Programs),
    cache(".cache/antidote", Own, Programs),
    cache(".cache/antigen", Own, Programs),
    cache(".cache/bazelisk", Read, Programs),
    cache(".cache/bun", Own, Programs),
    cache(".cache/claude*", Own, Programs),
    cache(".cache/codex*", Own, Programs),
    cache(".cache/Cypress", Read, Programs),
    cache(".cache/deno", Own, Programs),
    cache(".cache/direnv", Own, Programs),
    cache(".cache/electron", Read, Programs),
    cache(".cache/fish", Own, Programs),
    cache(".cache/gitstatus", Own, Programs),
    cache(".cache/hermit", Read, Programs),
    cache(".cache/huggingface", Read, Data),
    cache(".cache/huggingface/modules", Own, Programs),
    cache(".cache/JetBrains", Own, Programs),
    cache(".cache/mise", Read, Programs),
    cache(".cache/ms-playwright", Read, Programs),
    cache(".cache/node", Read, Data),
    cache(".cache/node/corepack", Own, Programs),
    cache(".cache/nvim", Own, Programs),
    cache(".cache/oh-my-zsh", Own, Programs),
    cache(".cache/opencode", Read, Programs),
    cache(".cache/outrigger", Own, Programs),
    cache(".cache/p10k-*", Own, Programs),
    cache(".cache/pipx", Read, Programs),
    cache(".cache/pre-commit", Read, Programs),
    cache(".cache/prisma", Read, Programs),
    cache(".cache/puppeteer", Read, Programs),
    cache(".cache/pypoetry/virtualenvs", Own, Programs),
    cache(".cache/rattler", Read, Programs),
    cache(".cache/selenium", Read, Programs),
    cache(".cache/starship", Own, Programs),
    cache(".cache/torch", Read, Programs),
    cache(".cache/torch_extensions", Read, Programs),
    cache(".cache/tree-sitter", Read, Programs),
    cache(".cache/uv", Own, Programs),
    cache(".cache/vim", Own, Programs),
    cache(".cache/virtualenv", Read, Programs),
    cache(".cache/wal", Own, Programs),
    cache(".cache/zcompdump*", Own, Programs),
    cache(".cache/zsh", Own, Programs),
    cache(".bun/install/cache", Own, Programs),
];

/// Caches that commands change, at a path given by a variable.
pub(super) const BY_VARIABLE: &[(&str, &str)] = &[
    ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"),
    ("CARGO_HOME", ".package-cache"),
    ("CARGO_HOME", ".package-cache-mutate"),
    ("CARGO_TARGET_DIR", ""),
    ("GOCACHE", ""),
    ("GOMODCACHE", ""),
    ("PIP_CACHE_DIR", ""),
    ("npm_config_cache", "_cacache"),
    ("CCACHE_DIR", ""),
    ("SCCACHE_DIR", ""),
];

/// Returns the caches that commands change.
pub(super) fn changed_by_commands() -> impl Iterator<Item = &'static str> {
    CACHES
        .iter()
        .filter(|cache| cache.commands == Change)
        .map(|cache| cache.path)
}

/// Returns the caches that commands see: those that they change, and those that they use.
pub(super) fn seen_by_commands() -> impl Iterator<Item = &'static str> {
    CACHES
        .iter()
        .filter(|cache| cache.commands != Own)
        .map(|cache| cache.path)
}

/// Returns the caches whose files are executed later.
pub(super) fn of_programs() -> impl Iterator<Item = &'static str> {
    CACHES
        .iter()
        .filter(|cache| cache.holds == Programs)
        .map(|cache| cache.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_change_no_cache_that_is_run() {
        for cache in CACHES {
            let is_changed = cache.commands == Change;
            assert!(!is_changed || cache.holds == Data, "{}", cache.path);
            // One that commands neither change nor see is in the table because it is run.
            assert!(
                cache.commands != Own || cache.holds == Programs,
                "{}",
                cache.path
            );
        }
    }
}
