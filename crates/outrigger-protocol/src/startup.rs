//! Files of a project that cause something to run later: the one list for the tools, the sandboxes of commands and plugins, and
//! bridges. Files that users edit all day and run themselves (`package.json`, `Makefile`, workflows) are part of their project and
//! not listed.

use std::path::Path;

use crate::settings::SETTINGS;

/// Git's own folder, or the file that refers to it.
pub const GIT: &str = ".git";

/// A file or folder of the list, with everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartupFile {
    /// The path, relative to any folder of the project.
    pub path: &'static str,
    /// What runs it, and when, as the end of a sentence.
    pub runs: &'static str,
}

const BY_GIT: &str = "git runs or obeys it at its next command";
const BY_BUN: &str = "Bun runs what it preloads, before any file in the folder";
const BY_JUJUTSU: &str = "Jujutsu runs or obeys it at its next command";
const BY_MERCURIAL: &str = "Mercurial runs or obeys it at its next command";
const BY_AGENTS: &str = "an agent runs or obeys it when it starts next";
const BY_EDITORS: &str = "an editor runs or obeys it when it opens the folder next";
const BY_CONSOLES: &str = "a console runs it when it starts in the folder next";
const BY_BUILDS: &str =
    "a build tool or a package manager runs or obeys it at its next command, whatever that is";
const BY_NOTEBOOKS: &str = "Jupyter runs it when it starts in the folder next";
const BY_SHELLS: &str = "a shell runs it when it enters the folder next";
const BY_CONTAINERS: &str = "it runs when the container is opened next";

/// Folders of other agents, which are completely protected from commands and plugins if they exist.
pub const OF_AGENTS: [&str; 5] = [".claude", ".codex", ".gemini", ".qwen", ".cursor"];

const fn file(path: &'static str, runs: &'static str) -> StartupFile {
    StartupFile { path, runs }
}

/// The list, except for what git reads. Of `.opencode` and `.claude` only what is executed or obeyed; plans and notes are text.
pub const STARTUP: &[StartupFile] = &[
    file("opencode.json", BY_AGENTS),
    file("opencode.jsonc", BY_AGENTS),
    file("outrigger.toml", BY_AGENTS),
    file(".outrigger", BY_AGENTS),
    file(".mcp.json", BY_AGENTS),
    file(".opencode/opencode.json", BY_AGENTS),
    file(".opencode/opencode.jsonc", BY_AGENTS),
    file(".opencode/package.json", BY_AGENTS),
    file(".opencode/bun.lock", BY_AGENTS),
    file(".opencode/node_modules", BY_AGENTS),
    file(".opencode/plugin", BY_AGENTS),
    file(".opencode/plugins", BY_AGENTS),
    file(".opencode/tool", BY_AGENTS),
    file(".opencode/tools", BY_AGENTS),
    file(".opencode/command", BY_AGENTS),
    file(".opencode/commands", BY_AGENTS),
    file(".opencode/agent", BY_AGENTS),
    file(".opencode/agents", BY_AGENTS),
    file(".opencode/mode", BY_AGENTS),
    file(".opencode/modes", BY_AGENTS),
    file(".opencode/skill", BY_AGENTS),
    file(".opencode/skills", BY_AGENTS),
    file(".claude/settings.json", BY_AGENTS),
    file(".claude/settings.local.json", BY_AGENTS),
    file(".claude/commands", BY_AGENTS),
    file(".claude/agents", BY_AGENTS),
    file(".claude/skills", BY_AGENTS),
    file(".claude/hooks", BY_AGENTS),
    file(".claude/plugins", BY_AGENTS),
    file(".agents", BY_AGENTS),
    file(".codex", BY_AGENTS),
    file(".gemini", BY_AGENTS),
    file(".qwen", BY_AGENTS),
    file(".cursor", BY_AGENTS),
    file(".windsurf", BY_AGENTS),
    file(".roo", BY_AGENTS),
    file(".kilocode", BY_AGENTS),
    file(".continue", BY_AGENTS),
    file(".amp", BY_AGENTS),
    file(".amazonq", BY_AGENTS),
    file(".kiro", BY_AGENTS),
    file(".junie", BY_AGENTS),
    file(".github/hooks", BY_AGENTS),
    file(".github/agents", BY_AGENTS),
    file(".copilot", BY_AGENTS),
    file(".factory", BY_AGENTS),
    file(".trae", BY_AGENTS),
    file(".iflow", BY_AGENTS),
    file(".vibe", BY_AGENTS),
    file(".pi", BY_AGENTS),
    file(".openhands", BY_AGENTS),
    file(".opencode.json", BY_AGENTS),
    file(".roomodes", BY_AGENTS),
    file("crush.json", BY_AGENTS),
    file(".crush.json", BY_AGENTS),
    file(".aider.conf.yml", BY_AGENTS),
    file(".vscode/tasks.json", BY_EDITORS),
    file(".vscode/settings.json", BY_EDITORS),
    file(".vscode/launch.json", BY_EDITORS),
    file(".vscode/mcp.json", BY_EDITORS),
    file(".vscode/c_cpp_properties.json", BY_EDITORS),
    file(".run", BY_EDITORS),
    file(".idea", BY_EDITORS),
    file(".zed/settings.json", BY_EDITORS),
    file(".zed/tasks.json", BY_EDITORS),
    file(".zed/debug.json", BY_EDITORS),
    file(".helix", BY_EDITORS),
    file(".nvim.lua", BY_EDITORS),
    file(".nvimrc", BY_EDITORS),
    file(".exrc", BY_EDITORS),
    file(".gvimrc", BY_EDITORS),
    file(".vimrc", BY_EDITORS),
    file(".lvimrc", BY_EDITORS),
    file(".local.vimrc", BY_EDITORS),
    file(".fleet/run.json", BY_EDITORS),
    file(".theia/tasks.json", BY_EDITORS),
    file(".gdbinit", BY_EDITORS),
    file(".lldbinit", BY_EDITORS),
    file(".lazy.lua", BY_EDITORS),
    file(".neoconf.json", BY_EDITORS),
    file(".nlsp-settings", BY_EDITORS),
    file(".vim/coc-settings.json", BY_EDITORS),
    file(".cargo/config.toml", BY_EDITORS),
    file(".cargo/config", BY_EDITORS),
    file(".dir-locals.el", BY_EDITORS),
    file(".dir-locals-2.el", BY_EDITORS),
    file(".ycm_extra_conf.py", BY_EDITORS),
    file(".clangd", BY_EDITORS),
    file(".ccls", BY_EDITORS),
    file(".luarc.json", BY_EDITORS),
    file(".Rprofile", BY_CONSOLES),
    file(".irbrc", BY_CONSOLES),
    file(".pryrc", BY_CONSOLES),
    file(".iex.exs", BY_CONSOLES),
    file(".ghci", BY_CONSOLES),
    file(".octaverc", BY_CONSOLES),
    file(".ocamlinit", BY_CONSOLES),
    file(".pdbrc", BY_CONSOLES),
    file(".rdbgrc", BY_CONSOLES),
    file(".rdbgrc.rb", BY_CONSOLES),
    file(".byebugrc", BY_CONSOLES),
    file("jupyter_config.py", BY_NOTEBOOKS),
    file("jupyter_notebook_config.py", BY_NOTEBOOKS),
    file("jupyter_server_config.py", BY_NOTEBOOKS),
    file("jupyter_lab_config.py", BY_NOTEBOOKS),
    file(".yarnrc", BY_BUILDS),
    file(".yarnrc.yml", BY_BUILDS),
    file(".npmrc", BY_BUILDS),
    file(".pnpmfile.cjs", BY_BUILDS),
    file(".pnpmfile.mjs", BY_BUILDS),
    file(".bazelrc", BY_BUILDS),
    file(".bazeliskrc", BY_BUILDS),
    file("tools/bazel", BY_BUILDS),
    file(".buckconfig", BY_BUILDS),
    file(".mvn/extensions.xml", BY_BUILDS),
    file(".mvn/jvm.config", BY_BUILDS),
    file(".mvn/maven.config", BY_BUILDS),
    file(".sbtopts", BY_BUILDS),
    file(".jvmopts", BY_BUILDS),
    file(".devcontainer", BY_CONTAINERS),
    file(".devcontainer.json", BY_CONTAINERS),
    file(".envrc", BY_SHELLS),
    file(".envrc.local", BY_SHELLS),
    file(".envrc.private", BY_SHELLS),
    file(".autoenv", BY_SHELLS),
    file(".autoenv.zsh", BY_SHELLS),
    file(".autoenv_leave.zsh", BY_SHELLS),
    file(".tool-versions", BY_SHELLS),
    file(".rtx.toml", BY_SHELLS),
    file(".mise.toml", BY_SHELLS),
    file("mise.toml", BY_SHELLS),
    file("mise.local.toml", BY_SHELLS),
    file(".mise.local.toml", BY_SHELLS),
    file(".mise", BY_SHELLS),
    file("mise/config.toml", BY_SHELLS),
    file(".config/mise", BY_SHELLS),
    file(".config/mise.toml", BY_SHELLS),
    file("bunfig.toml", BY_BUN),
    file(".hg/hgrc", BY_MERCURIAL),
    file(".jj/repo/config.toml", BY_JUJUTSU),
    file(".sl/config", BY_MERCURIAL),
    file(".husky", BY_GIT),
    file(".huskyrc", BY_GIT),
    file(".githooks", BY_GIT),
    file(".git-hooks", BY_GIT),
    file(".pre-commit-config.yaml", BY_GIT),
    file("lefthook.yml", BY_GIT),
    file("lefthook.yaml", BY_GIT),
    file("lefthook.toml", BY_GIT),
    file("lefthook.json", BY_GIT),
    file("lefthook-local.yml", BY_GIT),
    file(".lefthook.yml", BY_GIT),
    file(".lefthook.yaml", BY_GIT),
    file(".lefthook.toml", BY_GIT),
    file(".lefthook.json", BY_GIT),
    file(".lefthook-local.yml", BY_GIT),
    file(".lefthook", BY_GIT),
    file(".config/lefthook.yml", BY_GIT),
    file(".overcommit.yml", BY_GIT),
];

/// A listed file that was found in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup {
    /// The part of the path by which a rule must name it: `.git`, `.vscode`, `.envrc`.
    pub name: String,
    /// What runs it, and when.
    pub runs: &'static str,
}

/// Returns the listed file if a path below a project's root is one, in any folder. Case is ignored, as on some file systems.
///
/// ```
/// use outrigger_protocol::startup::startup_file;
///
/// let found = startup_file("packages/app/.vscode/tasks.json".as_ref()).unwrap();
/// assert_eq!(found.name, ".vscode");
/// assert!(startup_file("src/main.rs".as_ref()).is_none());
/// ```
#[must_use]
pub fn startup_file(below: &Path) -> Option<Startup> {
    let parts: Vec<String> = below
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    (0..parts.len()).find_map(|at| {
        let rest = parts.get(at..)?;
        let name = rest.first()?;
        let found = |runs| Startup {
            name: name.clone(),
            runs,
        };
        if name.eq_ignore_ascii_case(GIT) {
            return Some(found(BY_GIT));
        }
        // It has its own tasks and settings.
        if rest.len() == 1 && name.to_ascii_lowercase().ends_with(".code-workspace") {
            return Some(found(BY_EDITORS));
        }
        let is = |entry: &&StartupFile| {
            let mut rest = rest.iter();
            entry
                .path
                .split('/')
                .all(|want| rest.next().is_some_and(|it| it.eq_ignore_ascii_case(want)))
        };
        STARTUP.iter().find(is).map(|entry| found(entry.runs))
    })
}

/// Creates an entry for a file that git reads although its path does not show it: in a repository without a work tree, or a folder
/// of hooks.
#[must_use]
pub fn read_by_git(name: String) -> Startup {
    Startup { name, runs: BY_GIT }
}

/// Creates an entry for a file that a shell loads because of an `.envrc`.
#[must_use]
pub fn read_by_shells(name: String) -> Startup {
    Startup {
        name,
        runs: BY_SHELLS,
    }
}

/// Returns whether an entry is one of our settings or OpenCode's, which needs approval with `outrigger config allow` after a plugin
/// created it.
#[must_use]
pub fn waits_for_approval(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    SETTINGS.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_later_is_found_in_any_folder() {
        for (path, name) in [
            (".git/hooks/pre-commit", Some(".git")),
            ("sub/.git", Some(".git")),
            ("sub/.GIT/config", Some(".GIT")),
            (".vscode/tasks.json", Some(".vscode")),
            ("packages/a/.vscode/tasks.json", Some(".vscode")),
            (".vscode/extensions.json", None),
            (".opencode/plugin/x.js", Some(".opencode")),
            (".opencode/plans/x.md", None),
            (".claude/settings.local.json", Some(".claude")),
            (".claude/notes.md", None),
            ("a/.envrc", Some(".envrc")),
            ("x.code-workspace", Some("x.code-workspace")),
            (".pre-commit-config.yaml", Some(".pre-commit-config.yaml")),
            (".config/lefthook.yml", Some(".config")),
            ("a/.cargo/config.toml", Some(".cargo")),
            (".cargo/registry/x", None),
            ("packages/a/.yarnrc.yml", Some(".yarnrc.yml")),
            (".pnpmfile.cjs", Some(".pnpmfile.cjs")),
            (".bazelrc", Some(".bazelrc")),
            ("tools/bazel", Some("tools")),
            ("tools/build.py", None),
            (".mvn/jvm.config", Some(".mvn")),
            (".mvn/wrapper/x", None),
            (".ghci", Some(".ghci")),
            (".pdbrc", Some(".pdbrc")),
            (
                "notebooks/jupyter_server_config.py",
                Some("jupyter_server_config.py"),
            ),
            (".ycm_extra_conf.py", Some(".ycm_extra_conf.py")),
            (".clangd", Some(".clangd")),
            (".autoenv.zsh", Some(".autoenv.zsh")),
            (".gitignore", None),
            (".github/workflows/ci.yml", None),
            ("package.json", None),
            ("src/git/hooks/x", None),
        ] {
            let found = startup_file(Path::new(path)).map(|it| it.name);
            assert_eq!(found.as_deref(), name, "{path}");
        }
        assert!(STARTUP.iter().all(|it| !it.path.starts_with('/')));
        assert!(SETTINGS.iter().all(|it| {
            let below = STARTUP.iter().any(|entry| entry.path.starts_with(it));
            below && waits_for_approval(it)
        }));
    }
}
