//! `if` of a command hook: a permission rule in Claude Code's form, matched against a call. It only saves the start of a
//! command, so an uncertain match counts as a match.

use std::path::{Path, PathBuf};

use ignore::gitignore::GitignoreBuilder;
use outrigger_kernel::permission::{matches, may_match};
use outrigger_sandbox::paths::{follow, resolve};
use serde_json::Value;
use url::Url;

/// Further tools that a rule named `Edit` or `Read` matches.
const EDITS: [&str; 3] = ["Edit", "Write", "MultiEdit"];
const READS: [&str; 5] = ["Read", "Grep", "Glob", "LS", "LSP"];

/// Called with a command line and a predicate.
type MayRun<'a> = &'a dyn Fn(&str, &dyn Fn(&str) -> bool) -> bool;

/// A rule: `TOOL` or `TOOL(PATTERN)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    tool: String,
    /// Pattern for the tool's arguments; absent for all.
    pattern: Option<String>,
}

/// The call that a rule is matched against.
pub(crate) struct Call<'a> {
    /// Outrigger's name of the tool.
    pub(crate) tool: &'a str,
    /// Its names; the first is the one that commands are given.
    pub(crate) names: &'a [String],
    /// Arguments in Claude Code's keys.
    pub(crate) input: &'a Value,
    /// Base folders of path patterns: the working directory, that of the settings file, and the user's.
    pub(crate) cwd: &'a Path,
    pub(crate) project: &'a Path,
    pub(crate) home: Option<&'a Path>,
    /// Checks whether a command line runs, or may run, a matching command.
    pub(crate) may_run: MayRun<'a>,
}

impl Condition {
    pub(crate) fn new(rule: &str) -> Self {
        let rule = rule.trim();
        let split = rule.strip_suffix(')').and_then(|rest| rest.split_once('('));
        let (tool, pattern) = split.map_or((rule, None), |(tool, pattern)| (tool, Some(pattern)));
        let pattern = pattern.map(str::trim).filter(|it| !matches!(*it, "" | "*"));
        Self {
            tool: tool.trim().to_owned(),
            pattern: pattern.map(str::to_owned),
        }
    }

    /// Returns whether the rule matches the call.
    pub(crate) fn means(&self, call: &Call<'_>) -> bool {
        self.is_tool(call.names) && self.pattern.as_deref().is_none_or(|it| about(it, call))
    }

    fn is_tool(&self, names: &[String]) -> bool {
        let of = |family: &[&str]| names.iter().any(|name| family.contains(&name.as_str()));
        match self.tool.as_str() {
            "Edit" => of(&EDITS),
            "Read" => of(&READS),
            tool => names.iter().any(|name| {
                let server = name.strip_prefix(tool);
                matches(tool, name)
                    || (tool.starts_with("mcp__") && server.is_some_and(|it| it.starts_with("__")))
            }),
        }
    }
}

/// Returns whether a pattern matches the call's arguments, in the way of its tool.
fn about(pattern: &str, call: &Call<'_>) -> bool {
    let text = |key: &str| call.input.get(key).and_then(Value::as_str);
    let tool = call.names.first().map(String::as_str).unwrap_or_default();
    match tool {
        // A script may run any command, in ways that cannot be read from it.
        "Bash" if call.tool == "python" => true,
        "Bash" => {
            let pattern = match pattern.strip_suffix(":*") {
                Some(head) => format!("{head} *"),
                None => pattern.to_owned(),
            };
            let means = |command: &str| may_match(&pattern, command);
            text("command").is_none_or(|line| (call.may_run)(line, &means))
        }
        "WebFetch" => match (pattern.strip_prefix("domain:"), text("url").and_then(host)) {
            (Some(domain), Some(host)) => matches(&domain.to_ascii_lowercase(), &host),
            _ => true,
        },
        "Task" => text("subagent_type").is_none_or(|name| matches(pattern, name)),
        "Skill" => text("name").is_none_or(|name| matches(pattern, name)),
        tool if EDITS.contains(&tool) || READS.contains(&tool) => {
            let path = text("file_path").or_else(|| text("path"));
            // By its text and with its links resolved: the rule applies if either matches. Outrigger's tools resolve `..`
            // lexically, others may follow links first.
            path.is_none_or(|path| {
                let text = resolve(call.cwd, Path::new(path));
                let mut leads = [&text, &call.cwd.join(path)]
                    .map(|it| follow(it))
                    .into_iter();
                is_path(pattern, &text, call)
                    || leads.any(|it| match it {
                        Ok(real) => is_path(pattern, &real, call),
                        Err(_) => true,
                    })
            })
        }
        _ => true,
    }
}

/// Matches a path pattern, which is one line of a `.gitignore` in its base folder.
fn is_path(pattern: &str, path: &Path, call: &Call<'_>) -> bool {
    let (root, line): (PathBuf, String) = if let Some(rest) = pattern.strip_prefix("//") {
        ("/".into(), format!("/{rest}"))
    } else if let Some(rest) = pattern.strip_prefix("~/") {
        let Some(home) = call.home else { return true };
        (home.to_owned(), format!("/{rest}"))
    } else if pattern.starts_with('/') {
        (call.project.to_owned(), pattern.to_owned())
    } else if let Some(rest) = pattern.strip_prefix("./") {
        (call.cwd.to_owned(), format!("/{rest}"))
    } else {
        (call.cwd.to_owned(), pattern.to_owned())
    };
    // One that cannot be used may mean anything, so the command is called.
    if outrigger_files::check_pattern(&line).is_err() {
        return true;
    }
    let mut lines = GitignoreBuilder::new(&root);
    let Some(matcher) = lines
        .add_line(None, &line)
        .ok()
        .and_then(|lines| lines.build().ok())
    else {
        return true;
    };
    // The matcher accepts only paths below its root, which may be named by a link.
    let real = root.canonicalize().ok();
    let mut roots = std::iter::once(&root).chain(&real);
    let Some(below) = roots.find_map(|root| path.strip_prefix(root).ok()) else {
        return false;
    };
    matcher.num_ignores() == 0
        || matcher
            .matched_path_or_any_parents(below, false)
            .is_ignore()
}

/// Returns the host of a URL, as parsed for the request; `None` if it is invalid.
fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(url.host_str()?.trim_end_matches('.').to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ClaudeCall, ToolInfo, known};
    use serde_json::json;

    #[test]
    fn rules_mean_calls() {
        let names = |tool: &str| crate::names::names(tool, &["git".to_owned()]);
        // Enough of a shell for the table; the real one is the tools' own.
        let may_run = |line: &str, means: &dyn Fn(&str) -> bool| {
            line == "unreadable" || line.split(" && ").any(means)
        };
        let bash = |command: &str| ("bash", json!({ "command": command }));
        let edit = |path: &str| ("edit", json!({ "file_path": path }));
        for (rule, (tool, input), want) in [
            ("Bash", bash("ls"), true),
            ("Bash(*)", bash("ls"), true),
            ("Bash()", bash("ls"), true),
            ("Bash(git *)", bash("git push"), true),
            ("Bash(git *)", bash("git"), true),
            ("Bash(git *)", bash("gitk"), false),
            ("Bash(git:*)", bash("git push"), true),
            ("Bash(git:*)", bash("gitk"), false),
            ("Bash(git*)", bash("gitk"), true),
            ("Bash(git push)", bash("git push -f"), false),
            ("Bash(git *)", bash("ls && git push"), true),
            ("Bash(git *)", bash("ls && cat x"), false),
            ("Bash(git *)", bash("unreadable"), true),
            ("Bash(git push *)", bash("git \0"), true),
            ("Edit(git *)", bash("git push"), false),
            ("Edit(*.ts)", edit("/p/src/a.ts"), true),
            ("Edit(*.ts)", edit("/p/src/a.rs"), false),
            (
                "Edit(*.ts)",
                ("write", json!({"file_path": "/p/a.ts"})),
                true,
            ),
            ("Write(*.ts)", edit("/p/a.ts"), false),
            ("Edit(src/**/*.ts)", edit("/p/src/a.ts"), true),
            ("Edit(src/*.ts)", edit("/p/src/b/a.ts"), false),
            ("Edit(src/**)", edit("/p/src/b/a.ts"), true),
            ("Edit(./src/**)", edit("/p/src/b/a.ts"), true),
            ("Edit(/src/**)", edit("/p/src/a.ts"), false),
            ("Edit(/sub/**)", edit("/top/sub/a.ts"), true),
            ("Edit(//etc/**)", edit("/etc/passwd"), true),
            ("Edit(~/notes/**)", edit("/home/u/notes/a"), true),
            ("Edit(*.ts)", edit("/elsewhere/a.ts"), false),
            // Its paths are in its text.
            (
                "Edit(*.ts)",
                ("apply_patch", json!({"patchText": "x"})),
                true,
            ),
            (
                "Read(*.env)",
                ("read", json!({"file_path": "/p/.env"})),
                true,
            ),
            ("Read(*.env)", ("read", json!({"file_path": "/p/a"})), false),
            (
                "Read(src/**)",
                ("grep", json!({"pattern": "x", "path": "src/a"})),
                true,
            ),
            ("Read(src/**)", ("grep", json!({"pattern": "x"})), true),
            (
                "WebFetch(domain:a.com)",
                ("webfetch", json!({"url": "https://u:p@A.com:8/x"})),
                true,
            ),
            (
                "WebFetch(domain:a.com)",
                ("webfetch", json!({"url": "https://b.com/a.com"})),
                false,
            ),
            // As parsed for the request.
            (
                "WebFetch(domain:a.com)",
                ("webfetch", json!({"url": "http:///a.com/x"})),
                true,
            ),
            (
                "WebFetch(domain:a.com)",
                ("webfetch", json!({"url": "http://a.com\\@b.com/"})),
                true,
            ),
            (
                "WebFetch(domain:a.com)",
                ("webfetch", json!({"url": "https://a%2ecom./"})),
                true,
            ),
            (
                "WebFetch(domain:A.com)",
                ("webfetch", json!({"url": "https://a.com/"})),
                true,
            ),
            (
                "WebFetch(domain:a.com)",
                ("webfetch", json!({"url": "no address"})),
                true,
            ),
            ("Edit(src/**)", edit("docs/../src/a.ts"), true),
            ("Edit(src/**)", edit("src/../docs/a.ts"), false),
            (
                "Agent(explore)",
                ("task", json!({"subagent_type": "explore"})),
                true,
            ),
            (
                "Task(explore)",
                ("task", json!({"subagent_type": "general"})),
                false,
            ),
            (
                "Skill(deploy *)",
                ("skill", json!({"name": "deploy"})),
                true,
            ),
            ("mcp__git", ("git_log", json!({})), true),
            ("mcp__git__*", ("git_log", json!({})), true),
            ("mcp__git__log", ("git_log", json!({})), true),
            ("mcp__gi", ("git_log", json!({})), false),
            ("mine(x)", ("mine", json!({})), true),
            ("", bash("ls"), false),
        ] {
            let call = Call {
                tool,
                names: &names(tool),
                input: &input,
                cwd: "/p".as_ref(),
                project: "/top".as_ref(),
                home: Some("/home/u".as_ref()),
                may_run: &may_run,
            };
            assert_eq!(Condition::new(rule).means(&call), want, "{rule} {input}");
        }
    }

    /// A rule about commands matches every script, which can start anything, and one about files each access to one.
    #[test]
    fn rules_mean_what_other_tools_do() {
        let around = ToolInfo {
            servers: &[],
            cwd: Path::new("/p"),
            patched: &|_| Some(vec![("a.ts".to_owned(), true)]),
        };
        let python = ("python", json!({"script": "print(1)"}));
        let table = |args: Value| ("table", args);
        let read = || table(json!({"path": "a.csv"}));
        let written = || table(json!({"rows": [], "to": "a.csv"}));
        for (rule, (tool, args), want) in [
            ("Bash(git push *)", python.clone(), true),
            ("Bash", python.clone(), true),
            ("Edit(*.ts)", python, false),
            ("Read(*.csv)", read(), true),
            ("Read(*.tsv)", read(), false),
            ("Edit(*.csv)", read(), false),
            ("Edit(*.csv)", written(), true),
            ("Read(*.csv)", written(), false),
            (
                "Edit(*.ts)",
                ("apply_patch", json!({"patchText": "x"})),
                true,
            ),
            (
                "Edit(*.rs)",
                ("apply_patch", json!({"patchText": "x"})),
                false,
            ),
        ] {
            let all = known(tool, &args, &around);
            let [ClaudeCall { names, input, .. }] = all.as_slice() else {
                panic!("{all:?}");
            };
            let call = Call {
                tool,
                names,
                input,
                cwd: "/p".as_ref(),
                project: "/p".as_ref(),
                home: None,
                may_run: &|line, means| means(line),
            };
            assert_eq!(Condition::new(rule).means(&call), want, "{rule} {input}");
        }
    }

    #[test]
    fn a_rule_means_what_links_lead_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["src", "docs", "other/deep"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (target, link) in [
            ("../src", "docs/way"),
            ("../src/new.ts", "docs/dangling.ts"),
            ("../other/deep", "docs/aside"),
            ("circle", "docs/circle"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        std::os::unix::fs::symlink("../src", root.join("other/up")).unwrap();
        let rule = Condition::new("Edit(src/**)");
        for (path, meant) in [
            ("docs/way/new.ts", true),
            ("docs/way/new/folder/new.ts", true),
            ("docs/dangling.ts", true),
            // As Outrigger's tools resolve it, and as the kernel does.
            ("docs/aside/../way/new.ts", true),
            ("docs/aside/../up/new.ts", true),
            // An uncertain match counts as a match.
            ("docs/circle", true),
            ("src/new.ts", true),
            ("docs/new.ts", false),
        ] {
            let call = Call {
                tool: "write",
                names: &["Write".to_owned()],
                input: &json!({ "file_path": path }),
                cwd: &root,
                project: &root,
                home: None,
                may_run: &|_, _| true,
            };
            assert_eq!(rule.means(&call), meant, "{path}");
        }
    }
}
