//! The variables that a line may set.

/// The effect of a variable on the commands that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A variable of the shell; programs do not read it.
    Own,
    /// Programs may read it: needs approval like a command.
    Passed,
    /// Changes which programs run, or makes programs run others.
    Runs,
}

/// Returns the name in `NAME=value` or `NAME+=value`, if `text` is one.
pub(crate) fn assigned(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    is_name(name).then_some(name)
}

/// Returns whether a text is an assignment in zsh alone: of a positional parameter (`1=x`), or of a name with letters of any
/// language.
pub(crate) fn assigns_in_zsh(text: &str) -> bool {
    let name = text.split_once('=').map_or("", |(name, _)| name);
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    !name.is_empty() && !is_name(name) && name.chars().all(is_part)
}

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A `*` at the start or end matches any text. Compared in lower case.
const RUNS: &[&str] = &[
    // Shells.
    "path",
    "fpath",
    "cdpath",
    "home",
    "pwd",
    "oldpwd",
    "shell",
    "ifs",
    "env",
    "shellopts",
    "bash*",
    "ps0",
    "ps1",
    "ps2",
    "ps3",
    "ps4",
    "prompt*",
    "posixly_correct",
    "hist*",
    "globignore",
    "execignore",
    "fignore",
    "inputrc",
    "comp_*",
    "mail*",
    "funcnest",
    "optind",
    "nullcmd",
    "readnullcmd",
    "zdotdir",
    "zsh*",
    "module_path",
    "manpath",
    "argv",
    "argv0",
    "aliases",
    "galiases",
    "saliases",
    "functions",
    "commands",
    "options",
    "watch",
    "psvar",
    "auto_resume",
    "reply",
    "mapfile",
    "precmd*",
    "preexec*",
    "chpwd*",
    "tmout",
    "timefmt",
    "timeformat",
    "lang",
    "language",
    "lc_*",
    "locpath",
    "nlspath",
    "_",
    // Integer variables of the shells: values assigned to them are evaluated.
    "random",
    "srandom",
    "seconds",
    "lineno",
    "histcmd",
    "epoch*",
    "uid",
    "euid",
    "gid",
    "egid",
    "ppid",
    "username",
    "columns",
    "lines",
    "shlvl",
    "errno",
    "dirstack*",
    "listmax",
    "keytimeout",
    "baud",
    "savehist",
    "logcheck",
    "ttyidle",
    "argc",
    "status",
    "opterr",
    "ttyidle",
    "groups",
    "pipestatus",
    "copro*",
    // Loaders and runtimes.
    "ld_*",
    "dyld_*",
    "gconv_path",
    "glibc_*",
    "malloc_*",
    "openssl_*",
    "python*",
    "perl*",
    "ruby*",
    "gem_*",
    "bundle_*",
    "node_*",
    "npm_*",
    "yarn_*",
    "pnpm_*",
    "bun_*",
    "deno_*",
    "java_*",
    "_java_options",
    "jdk_*",
    "jvm_*",
    "classpath",
    "maven_*",
    "gradle_*",
    "go*",
    "cgo_*",
    "lua_*",
    "php*",
    "r_*",
    "erl_*",
    "elixir_*",
    "mix_*",
    "dotnet_*",
    "tcl*",
    "pip_*",
    "uv_*",
    "poetry_*",
    "conda_*",
    "virtual_env",
    // Programs that others start.
    "*pager",
    "pager*",
    "*editor",
    "visual",
    "browser",
    "*askpass",
    "less*",
    "man*",
    "git_*",
    "gh_*",
    "ssh*",
    "sudo_*",
    "hg*",
    "svn_*",
    "cvs_*",
    "rsync_*",
    "fceedit",
    "*viminit",
    "exinit",
    "*_shell",
    "term*",
    "*_opts",
    "*_options",
    "*_command",
    "*_cmd",
    "*_wrapper",
    "*_launcher",
    "*_hook*",
    "*_preload",
    // Compilers and build tools.
    "cc",
    "cxx",
    "cpp",
    "ld",
    "ar",
    "as",
    "nm",
    "ranlib",
    "*flags",
    "cargo*",
    "rust*",
    "make*",
    "cmake*",
    "ninja*",
    "ccache*",
    "pkg_config*",
    "library_path",
    "cpath",
    "c_include_path",
    "autoconf*",
    "aclocal*",
    "config_site",
    // Where programs find their settings and peers.
    "xdg_*",
    "*_config",
    "*_conf",
    "*config_path",
    "*_config_*",
    "*_proxy",
    "docker_*",
    "kube*",
    "helm_*",
    "aws_*",
    "terraform*",
    "tf_*",
    "dbus_*",
    "tmux*",
    "tmpdir",
    "display",
    "opencode*",
    "outrigger*",
    "claude*",
    "codex*",
];

pub(crate) fn effect(name: &str) -> Effect {
    let small = name.to_ascii_lowercase();
    let fits = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), None) => small.ends_with(end),
        (None, Some(start)) => small.starts_with(start),
        (Some(_), Some(_)) => small.contains(pattern.trim_matches('*')),
        (None, None) => small == *pattern,
    };
    if RUNS.iter().any(fits) {
        Effect::Runs
    } else if name.bytes().any(|b| b.is_ascii_uppercase()) {
        Effect::Passed
    } else {
        Effect::Own
    }
}
