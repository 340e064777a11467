//! What of a user's home folder matters to the sandbox of commands: the one list of secrets, of what runs the next time somebody
//! logs in or starts an agent, and of caches (issue 18, item 5). docs/sandbox.md shows it.
//!
//! An entry is relative to the home folder. Where it begins with `.config/`, `.local/share/` or `.cache/` it means the XDG folder of
//! that kind as well; `*` at the end of a name stands for any rest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_workspace::Folders;

/// Secrets: they look empty to commands unless `tools.secrets` names them.
pub const SECRETS: &[&str] = &[
    // Keys and passwords.
    ".ssh",
    ".gnupg",
    ".putty",
    ".age",
    ".config/age",
    ".config/sops",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".password-store",
    ".local/share/password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/keepassxc",
    ".config/Bitwarden",
    ".config/1Password",
    ".config/op",
    ".pki",
    ".vault-token",
    ".krb5",
    // Cloud services.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".boto",
    ".s3cfg",
    ".kube",
    ".oci",
    ".bluemix",
    ".aliyun",
    ".tccli",
    ".fly",
    ".config/doctl",
    ".config/hcloud",
    ".config/scw",
    ".config/linode-cli",
    ".config/rclone",
    ".config/netlify",
    ".netlify",
    ".wrangler",
    ".config/.wrangler",
    ".local/share/com.vercel.cli",
    ".config/stripe",
    ".config/ngrok",
    ".ngrok2",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".pulumi/credentials.json",
    ".databrickscfg",
    ".snowflake",
    ".snowsql",
    ".vercel/auth.json",
    ".railway",
    ".cloudflared",
    ".supabase",
    ".sentryclirc",
    ".tsh",
    ".config/teleport",
    ".doppler",
    ".infisical",
    ".config/planetscale",
    ".planetscale",
    ".config/turso",
    ".turso",
    ".scw",
    ".config/neonctl",
    ".minikube/client.key",
    // Containers.
    ".docker/config.json",
    ".config/containers/auth.json",
    ".config/helm/registry",
    // Hosts of repositories.
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/tea",
    ".config/github-copilot",
    // Package registries.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pypoetry/auth.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".bundle/config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".config/NuGet",
    ".sbt/.credentials",
    ".ivy2/.credentials",
    ".hex/hex.config",
    ".pip/pip.conf",
    ".config/pip",
    ".nuget/NuGet.Config",
    ".bunfig.toml",
    ".subversion/auth",
    // Mail, desktops, devices.
    ".msmtprc",
    ".mbsyncrc",
    ".fetchmailrc",
    ".config/evolution",
    ".config/filezilla",
    ".config/remmina",
    ".config/tigervnc/passwd",
    ".vnc/passwd",
    ".smbcredentials",
    ".Xauthority",
    ".android/adbkey",
    ".erlang.cookie",
    ".lpass",
    // Databases.
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    // Models and agents.
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".kaggle",
    ".openai",
    ".anthropic",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".config/goose/secrets.yaml",
    ".aider.conf.yml",
    // Browsers and messengers.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome*",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge*",
    ".config/vivaldi",
    ".config/opera",
    ".config/mozilla",
    ".cache/google-chrome*",
    ".cache/chromium",
    ".cache/mozilla",
    ".cache/BraveSoftware",
    ".cache/microsoft-edge*",
    ".cache/vivaldi",
    ".cache/thunderbird",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/Element",
    // Wallets.
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".config/solana",
    // What was typed.
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".local/share/fish/fish_history",
    ".local/state/bash",
    ".local/state/zsh",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".irb_history",
    ".local/share/atuin",
    ".viminfo",
];

/// Secrets that a variable has in another place: its name, and what of that place they are.
const SECRETS_BY_VARIABLE: &[(&str, &str)] = &[
    ("GNUPGHOME", ""),
    ("AWS_SHARED_CREDENTIALS_FILE", ""),
    ("AWS_CONFIG_FILE", ""),
    ("AZURE_CONFIG_DIR", ""),
    ("CLOUDSDK_CONFIG", ""),
    ("GOOGLE_APPLICATION_CREDENTIALS", ""),
    ("KUBECONFIG", ""),
    ("DOCKER_CONFIG", "config.json"),
    ("REGISTRY_AUTH_FILE", ""),
    ("NETRC", ""),
    ("NPM_CONFIG_USERCONFIG", ""),
    ("CARGO_HOME", "credentials"),
    ("CARGO_HOME", "credentials.toml"),
    ("GH_CONFIG_DIR", ""),
    ("PGPASSFILE", ""),
    ("PASSWORD_STORE_DIR", ""),
    ("HF_HOME", "token"),
    ("CLAUDE_CONFIG_DIR", ".credentials.json"),
    ("CODEX_HOME", "auth.json"),
];

/// What runs, or says what runs, when somebody logs in, opens a terminal or an editor, commits, or starts an agent. Commands never
/// change it, also where the home folder is the project.
pub const STARTUP: &[&str] = &[
    // Shells.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".oh-my-zsh",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".config/fish",
    ".config/nushell",
    ".config/zsh",
    ".config/bash",
    ".config/starship.toml",
    ".config/mise",
    ".config/xonsh",
    ".xonshrc",
    ".config/powershell",
    ".config/kitty",
    ".config/alacritty",
    ".config/wezterm",
    ".wezterm.lua",
    ".config/zellij",
    ".config/direnv",
    ".config/environment.d",
    ".pam_environment",
    // Sessions and services.
    ".config/autostart",
    ".config/systemd",
    ".local/share/systemd",
    ".local/share/applications",
    ".local/share/dbus-1",
    ".config/plasma-workspace",
    ".config/upstart",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".config/i3",
    ".config/sway",
    ".config/hypr",
    ".config/tmux",
    ".tmux.conf",
    ".screenrc",
    // Programs.
    ".local/bin",
    "bin",
    ".bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/uv/tools",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".rustup",
    ".bun/bin",
    ".deno/bin",
    "go/bin",
    ".nvm",
    ".fnm",
    ".volta",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".sdkman",
    ".local/share/mise",
    ".local/share/fnm",
    ".local/share/pnpm/global",
    ".npm/_npx",
    ".npm-global",
    ".config/pip",
    ".pip",
    ".gdbinit",
    ".config/gdb",
    ".psqlrc",
    ".sqliterc",
    ".curlrc",
    ".wgetrc",
    ".mailcap",
    ".forward",
    ".rhosts",
    ".hgrc",
    ".config/hg",
    ".config/jj",
    ".config/lazygit",
    ".julia/config",
    ".gradle/init.gradle",
    ".gradle/init.d",
    ".subversion/config",
    ".asdfrc",
    ".krew",
    ".dotnet/tools",
    ".yarn/bin",
    ".ghcup",
    ".nix-profile",
    ".lldbinit",
    ".pythonrc",
    ".pythonrc.py",
    ".Rprofile",
    ".irbrc",
    ".pryrc",
    ".ipython",
    ".config/ccache",
    ".makerc",
    // git and editors.
    ".gitconfig",
    ".config/git",
    ".git-templates",
    ".vim",
    ".vimrc",
    ".config/nvim",
    ".local/share/nvim",
    ".emacs",
    ".emacs.d",
    ".config/emacs",
    ".nanorc",
    ".config/helix",
    ".config/zed",
    ".config/Code",
    ".config/Cursor",
    ".vscode",
    ".cursor",
    ".vscode-server",
    ".cursor-server",
    ".config/JetBrains",
    ".local/share/JetBrains",
    // Agents.
    ".config/opencode",
    ".config/outrigger",
    ".opencode",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".config/goose",
    ".config/amp",
    ".config/crush",
    ".aider.conf.yml",
    ".agents",
    ".mcp.json",
    // Keys again, where `tools.secrets` shows them.
    ".ssh",
    ".gnupg",
    // Caches whose files are run the next time.
    ".cache/opencode",
    ".cache/outrigger",
    ".cache/pre-commit",
    ".cache/node/corepack",
    ".cache/gitstatus",
    ".cache/p10k-*",
    ".cache/oh-my-zsh",
    ".cache/zsh",
    ".cache/antidote",
    ".cache/antigen",
    ".cache/fish",
    ".cache/nvim",
    ".cache/vim",
    ".cache/starship",
    ".cache/direnv",
    ".cache/wal",
    ".cache/JetBrains",
    ".cache/claude*",
    ".cache/codex*",
    ".cache/ms-playwright",
    ".cache/puppeteer",
    ".cache/Cypress",
    ".cache/electron",
];

/// What commands may change outside of the project, where it is there: what builds fetch and keep, not the settings, credentials and
/// programs beside it.
pub const CACHES: &[&str] = &[
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm/_cacache",
    ".npm/_logs",
    ".npm/_prebuilds",
    ".local/share/pnpm/store",
    ".pnpm-store",
    ".yarn/berry/cache",
    ".yarn/berry/metadata",
    ".bun/install/cache",
    "go/pkg",
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/notifications",
    ".m2/repository",
    ".ivy2/cache",
    ".sbt/boot",
    ".nuget/packages",
    ".composer/cache",
    ".cabal/packages",
    ".hex/packages",
    ".ccache",
    ".conan2/p",
    ".julia/compiled",
    ".terraform.d/plugin-cache",
];

/// Caches that a variable has in another place.
const CACHES_BY_VARIABLE: &[(&str, &str)] = &[
    ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"),
    ("CARGO_HOME", ".package-cache"),
    ("CARGO_HOME", ".package-cache-mutate"),
    ("CARGO_TARGET_DIR", ""),
    ("GOCACHE", ""),
    ("GOMODCACHE", ""),
    ("PIP_CACHE_DIR", ""),
    ("UV_CACHE_DIR", ""),
    ("npm_config_cache", "_cacache"),
    ("CCACHE_DIR", ""),
    ("SCCACHE_DIR", ""),
];

/// The files and folders of a user that the lists mean. Made once for an agent.
#[derive(Clone, Debug, Default)]
pub struct HomeFiles {
    /// Hidden from commands.
    pub secrets: Vec<PathBuf>,
    /// Never changed by them.
    pub startup: Vec<PathBuf>,
    /// Changed by them.
    pub caches: Vec<PathBuf>,
}

impl HomeFiles {
    /// What is there now, less the secrets that the user shows to commands. Reads the disk.
    pub fn of(folders: &Folders, shown: &[String]) -> Self {
        let shown: Vec<&Path> = shown.iter().map(Path::new).collect();
        let mut secrets = all(folders, SECRETS, SECRETS_BY_VARIABLE);
        secrets.retain(|it| it.exists() && !shown.iter().any(|shown| it.starts_with(shown)));
        let mut caches = all(folders, CACHES, CACHES_BY_VARIABLE);
        caches.retain(|it| it.exists() && is_a_cache(it, &folders.home));
        Self {
            secrets,
            startup: startup(folders),
            caches,
        }
    }
}

/// What runs at the next login and the like, whether it is there or not.
pub fn startup(folders: &Folders) -> Vec<PathBuf> {
    all(folders, STARTUP, &[])
}

/// Tells of grants that do nothing.
pub fn check(folders: &Folders, shown: &[String]) {
    for name in unknown(folders, shown) {
        tracing::warn!(
            "[config] tools.secrets: {name} is no secret that is hidden as a whole, so this shows nothing; docs/sandbox.md has the list"
        );
    }
}

/// Secrets that a user shows and of which the list knows none.
fn unknown<'a>(folders: &Folders, shown: &'a [String]) -> Vec<&'a str> {
    let secrets = all(folders, SECRETS, SECRETS_BY_VARIABLE);
    let known = |it: &&String| secrets.iter().any(|secret| secret.starts_with(it));
    let unknown = shown.iter().filter(|it| !known(it));
    unknown.map(String::as_str).collect()
}

/// A variable that names the home folder, or one above it, as a cache would open all of it.
fn is_a_cache(path: &Path, home: &Path) -> bool {
    path.parent().is_some() && !home.starts_with(path)
}

fn all(folders: &Folders, entries: &[&str], by_variable: &[(&str, &str)]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in entries {
        for path in places(folders, entry) {
            match path.to_string_lossy().strip_suffix('*') {
                Some(start) => found.extend(beginning(Path::new(start))),
                None => drop(found.insert(path)),
            }
        }
    }
    for (variable, below) in by_variable {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let named = named.filter(|it| it.is_absolute() && it.starts_with(&folders.home));
        found.extend(named.map(|it| match below.is_empty() {
            true => it,
            false => it.join(below),
        }));
    }
    found.into_iter().collect()
}

/// Where an entry is: in the home folder, and in the XDG folder that it belongs to.
fn places(folders: &Folders, entry: &str) -> impl Iterator<Item = PathBuf> {
    let xdg = [
        (".config/", Some(folders.config.as_path())),
        (".local/share/", folders.data.parent()),
        (".cache/", folders.cache.parent()),
    ];
    let xdg = xdg.into_iter().find_map(|(kind, base)| {
        let below = entry.strip_prefix(kind)?;
        Some(base?.join(below))
    });
    let whole = (entry == ".cache")
        .then(|| folders.cache.parent())
        .flatten();
    [folders.home.join(entry)]
        .into_iter()
        .chain(xdg)
        .chain(whole.map(Path::to_path_buf))
}

/// What there is in a folder whose name begins as that of `start`.
fn beginning(start: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (start.parent(), start.file_name()) else {
        return Vec::new();
    };
    let name = name.to_string_lossy().into_owned();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|it| it.file_name().to_string_lossy().starts_with(&name));
    named.map(|it| it.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(root: &Path) -> Folders {
        Folders {
            home: root.join("home"),
            config: root.join("xdg"),
            data: root.join("home/.local/share/outrigger"),
            cache: root.join("home/.cache/outrigger"),
        }
    }

    #[test]
    fn secrets_are_those_that_are_there_and_are_not_shown() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in [
            "home/.ssh",
            "home/.aws",
            "xdg/gh",
            "home/.config/google-chrome-beta",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let folders = folders(root.path());
        let shown = [at("home/.ssh").display().to_string()];
        let names = |shown: &[String]| HomeFiles::of(&folders, shown).secrets;
        let all = [
            "home/.aws",
            "home/.config/google-chrome-beta",
            "home/.ssh",
            "xdg/gh",
        ];
        assert_eq!(names(&[]), all.map(at));
        assert_eq!(names(&shown), [all[0], all[1], all[3]].map(at));
        assert_eq!(unknown(&folders, &shown), [""; 0]);
        let wrong = [at("home/.sshh").display().to_string()];
        assert_eq!(unknown(&folders, &wrong), [wrong[0].as_str()]);
    }

    #[test]
    fn a_cache_holds_no_home_and_no_entry_is_there_twice() {
        assert!(!is_a_cache(Path::new("/home/me"), Path::new("/home/me")));
        assert!(!is_a_cache(Path::new("/home"), Path::new("/home/me")));
        assert!(is_a_cache(
            Path::new("/home/me/.cache"),
            Path::new("/home/me")
        ));
        for list in [SECRETS, STARTUP, CACHES] {
            let unique: BTreeSet<_> = list.iter().collect();
            assert_eq!(unique.len(), list.len());
            assert!(
                list.iter()
                    .all(|it| !it.starts_with('/') && !it.contains(".."))
            );
        }
    }
}
