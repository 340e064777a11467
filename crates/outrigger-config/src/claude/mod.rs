//! Formats of Claude Code (requirement B13): `.mcp.json` with `${VAR}`, and commands in `.claude/commands`, neither of which
//! OpenCode reads. Its skills are found by [`crate::claude::skills`], as in OpenCode.

pub mod hooks;
pub mod skills;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_protocol::permission::Rule;
use serde_json::{Map, Value, json};

use crate::load::layers;
use crate::load::links::{LEADS_OUT, Links, USERS_COUNTS};
use crate::opencode::markdown;
use crate::opencode::typed::CommandEntry;
use crate::{ConfigProblem, LoadOptions, paths};

/// A server of an `.mcp.json`. The author of the project chose its command, so it needs the user's approval.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaudeServer {
    /// Name.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// The entry as written: the value that the user approves.
    pub written: Value,
    /// The entry in the form of `mcp` in `opencode.json`, with its variables replaced; or what is wrong with it.
    pub entry: Result<Value, String>,
}

/// Replaced variables are not shown (invariant 10).
impl std::fmt::Debug for ClaudeServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClaudeServer")
            .field("name", &self.name)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// Returns the servers of the project's `.mcp.json` files, from the root of the repository down to the working directory; if
/// names repeat, the nearest wins.
pub(crate) fn servers(
    options: &LoadOptions,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<ClaudeServer> {
    let mut all: Vec<ClaudeServer> = Vec::new();
    for dir in layers::project_dirs(options) {
        let file = dir.join(".mcp.json");
        match servers_of(&file, &options.env) {
            Ok(found) => {
                for server in found {
                    all.retain(|known| known.name != server.name);
                    all.push(server);
                }
            }
            Err(message) => problems.push(problem(&file, message)),
        }
    }
    all
}

/// The servers of one file, whose form is `{mcpServers: {NAME: {…}}}`, or just `{NAME: {…}}`. None where there is no file.
///
/// # Errors
/// What is wrong with the file.
pub fn servers_of(
    file: &Path,
    env: &BTreeMap<String, String>,
) -> Result<Vec<ClaudeServer>, String> {
    let Some(text) = paths::read(file).map_err(|error| error.to_string())? else {
        return Ok(Vec::new());
    };
    let whole: Value =
        serde_json::from_str(&text).map_err(|error| format!("not valid JSON: {error}"))?;
    Ok(servers_in(whole, file, env))
}

/// Returns the servers of an object in that form, from `file`.
#[must_use]
pub fn servers_in(
    mut whole: Value,
    file: &Path,
    env: &BTreeMap<String, String>,
) -> Vec<ClaudeServer> {
    let inner = whole.get_mut("mcpServers").map(Value::take);
    let Value::Object(list) = inner.unwrap_or(whole) else {
        return Vec::new();
    };
    list.into_iter()
        .filter(|(_, written)| written.is_object())
        .map(|(name, written)| ClaudeServer {
            name,
            file: file.into(),
            entry: entry(&written, env),
            written,
        })
        .collect()
}

/// Returns OpenCode's form of an entry.
fn entry(written: &Value, env: &BTreeMap<String, String>) -> Result<Value, String> {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    let fill = |text: &str| expand(text, env);
    let map = |key: &str| -> Result<Map<String, Value>, String> {
        written
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?)))
            .map(|(name, value)| Ok((name, fill(value)?.into())))
            .collect()
    };
    if let Some(url) = text("url") {
        return Ok(json!({"type": "remote", "url": fill(url)?, "headers": map("headers")?}));
    }
    // Some files have the whole command as one list, as in OpenCode.
    let mut command: Vec<String> = match written.get("command") {
        Some(Value::String(program)) => vec![fill(program)?],
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .map(fill)
            .collect::<Result<_, _>>()?,
        _ => return Err("it has neither `command` nor `url`".to_owned()),
    };
    let arguments = written.get("args").and_then(Value::as_array);
    for argument in arguments.into_iter().flatten().filter_map(Value::as_str) {
        command.push(fill(argument)?);
    }
    let mut environment = map("environment")?;
    environment.extend(map("env")?);
    Ok(json!({"type": "local", "command": command, "environment": environment}))
}

/// Fills in `${VAR}` and `${VAR:-default}`.
///
/// # Errors
/// A variable that is not set and has no default.
fn expand(text: &str, env: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((place, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match place.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (place, None),
        };
        let set = env.get(name).filter(|value| !value.is_empty());
        match set.map(String::as_str).or(default) {
            Some(value) => out.push_str(value),
            None => return Err(format!("the variable {name} is not set")),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// A command of `.claude/commands`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaudeCommand {
    /// In OpenCode's form.
    pub entry: CommandEntry,
    /// From the user's folder, not the project's.
    pub is_users: bool,
}

/// Which commands of a project take effect.
pub(crate) struct OfProject<'a> {
    /// The folder is trusted: its commands shadow the user's of the same names.
    pub(crate) is_trusted: bool,
    /// Whether a file with this template may run something.
    pub(crate) lets: &'a dyn Fn(&Path, &str) -> bool,
    /// Nothing of the folder takes effect, and one line reports that.
    pub(crate) is_quiet: bool,
    /// Whether a model belongs to a provider that the user has chosen.
    pub(crate) may_choose: &'a dyn Fn(&Value) -> bool,
}

impl OfProject<'_> {
    /// Removes from a command of an untrusted project a model of a provider that the user did not choose, and reports it.
    fn narrow(&self, command: &mut CommandEntry) -> Option<String> {
        let is_others = |model: &mut String| {
            !self.is_trusted && !(self.may_choose)(&Value::from(model.as_str()))
        };
        let model = command.model.take_if(is_others)?;
        Some(format!(
            "its model {model} is skipped: you have not chosen that provider, and the folder is not trusted"
        ))
    }
}

/// Returns the commands of `.claude/commands`: the user's, then those of the project from its root down to the working
/// directory; if names repeat, the last wins, in an untrusted folder the user's. A command is named after its file; folders
/// only group.
pub(crate) fn commands(
    options: &LoadOptions,
    of_project: &OfProject<'_>,
    rules: &[Rule],
    problems: &mut Vec<ConfigProblem>,
) -> Vec<ClaudeCommand> {
    let mut all: Vec<ClaudeCommand> = Vec::new();
    let links = Links::of(options).under(rules);
    let dirs = std::iter::once(options.home.clone()).chain(layers::project_dirs(options));
    for dir in dirs {
        for file in command_files(&dir) {
            if links.lead_out(&file) {
                problems.push(problem(
                    &file,
                    format!("{LEADS_OUT}; the command is skipped"),
                ));
                continue;
            }
            match command(&file) {
                Ok(Some(command))
                    if command.template.contains("!`")
                        && dir != options.home
                        && !(of_project.lets)(&file, &command.template) =>
                {
                    if !of_project.is_quiet {
                        let why = "it runs something, and the folder is not trusted (`outrigger trust`); the command is skipped";
                        problems.push(problem(&file, why.to_owned()));
                    }
                }
                Ok(Some(mut entry)) => {
                    let is_users = dir == options.home;
                    let is_same = |it: &ClaudeCommand| it.entry.name == entry.name;
                    if !is_users
                        && !of_project.is_trusted
                        && all.iter().any(|it| it.is_users && is_same(it))
                    {
                        problems.push(problem(&file, USERS_COUNTS.to_owned()));
                        continue;
                    }
                    all.retain(|it| !is_same(it));
                    if !is_users && let Some(why) = of_project.narrow(&mut entry) {
                        problems.push(problem(&file, why));
                    }
                    all.push(ClaudeCommand { entry, is_users });
                }
                Ok(None) => {}
                Err(message) => {
                    problems.push(problem(&file, format!("{message}; the command is skipped")));
                }
            }
        }
    }
    all
}

/// Returns commands of a project that run something: their files and contents.
pub(crate) fn running_commands(options: &LoadOptions) -> Vec<(PathBuf, String)> {
    let links = Links::of(options);
    let dirs = layers::project_dirs(options).into_iter();
    dirs.filter(|dir| *dir != options.home)
        .flat_map(|dir| command_files(&dir))
        .filter(|file| !links.lead_out(file))
        .filter_map(|file| {
            let template = command(&file).ok()??.template;
            template.contains("!`").then_some((file, template))
        })
        .collect()
}

fn command_files(dir: &Path) -> Vec<PathBuf> {
    let markdown = |path: &Path| paths::has_extension(path, &["md"]);
    paths::files_below(&dir.join(".claude/commands"), true, &markdown)
}

fn command(file: &Path) -> Result<Option<CommandEntry>, String> {
    let (Some(name), Some(text)) = (
        file.file_stem().map(|stem| stem.to_string_lossy()),
        paths::read(file).map_err(|error| error.to_string())?,
    ) else {
        return Ok(None);
    };
    let markdown = markdown::parse(&text)?;
    let text = |key: &str| markdown.data.get(key).and_then(Value::as_str);
    // `allowed-tools` is ignored: a file of the project cannot loosen the user's rules.
    let description = match (text("description"), text("argument-hint")) {
        (Some(description), Some(hint)) => Some(format!("{description} ({hint})")),
        (one, other) => one.or(other).map(str::to_owned),
    };
    Ok(Some(CommandEntry {
        name: name.into_owned(),
        template: markdown.body.trim().to_owned(),
        description,
        // Claude Code's own names of models mean nothing here.
        model: text("model")
            .filter(|model| model.contains('/'))
            .map(str::to_owned),
        ..CommandEntry::default()
    }))
}

pub(super) fn problem(file: &Path, message: String) -> ConfigProblem {
    ConfigProblem {
        file: file.display().to_string(),
        pointer: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(dir: &Path) -> LoadOptions {
        LoadOptions {
            directory: dir.join("p/sub"),
            worktree: dir.join("p"),
            home: dir.join("home"),
            env: BTreeMap::from([("TOKEN".to_owned(), "t1".to_owned())]),
            ..LoadOptions::default()
        }
    }

    fn write(dir: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn variables_are_filled_in() {
        let env = BTreeMap::from([
            ("A".to_owned(), "x".to_owned()),
            ("EMPTY".to_owned(), String::new()),
        ]);
        for (text, want) in [
            ("plain", Ok("plain")),
            ("${A}/${A}", Ok("x/x")),
            ("${B:-d}-${EMPTY:-e}", Ok("d-e")),
            ("${B:-}", Ok("")),
            ("$A ${open", Ok("$A ${open")),
            ("${B}", Err("the variable B is not set")),
        ] {
            assert_eq!(
                expand(text, &env),
                want.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
    }

    #[test]
    fn servers_take_opencodes_form_and_the_nearest_counts() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            &[
                (
                    "p/.mcp.json",
                    r#"{"mcpServers": {
                "a": {"command": "far"},
                "b": {"command": "npx", "args": ["-y", "${TOKEN}"], "env": {"K": "${TOKEN}"}},
                "c": {"type": "http", "url": "https://${HOST:-h}/mcp", "headers": {"X": "y"}},
                "d": {"command": "x", "args": ["${MISSING}"]},
                "e": {"type": "stdio"}, "f": 1}}"#,
                ),
                ("p/sub/.mcp.json", r#"{"a": {"command": "near"}}"#),
            ],
        );
        let mut problems = Vec::new();
        let found = servers(&options(dir.path()), &mut problems);
        let shown: Vec<String> = found
            .iter()
            .map(|server| match &server.entry {
                Ok(entry) => format!("{} {entry}", server.name),
                Err(wrong) => format!("{}: {wrong}", server.name),
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        b {"type":"local","command":["npx","-y","t1"],"environment":{"K":"t1"}}
        c {"type":"remote","url":"https://h/mcp","headers":{"X":"y"}}
        d: the variable MISSING is not set
        e: it has neither `command` nor `url`
        a {"type":"local","command":["near"],"environment":{}}
        "#);
        assert!(problems.is_empty());
        assert!(!format!("{found:?}").contains("t1"));
        write(dir.path(), &[("p/sub/.mcp.json", "{")]);
        assert_eq!(servers(&options(dir.path()), &mut problems).len(), 5);
        assert!(problems[0].message.starts_with("not valid JSON"));
    }

    #[test]
    fn commands_are_read_from_home_and_project() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            &[
                ("home/.claude/commands/a.md", "user's a"),
                (
                    "home/.claude/commands/b.md",
                    "---\ndescription: d\nargument-hint: [file]\nmodel: sonnet\nallowed-tools: Bash(git:*)\n---\n\nDo $ARGUMENTS\n",
                ),
                (
                    "p/.claude/commands/front/a.md",
                    "---\nmodel: x/y\nargument-hint: file\n---\nproject's a",
                ),
                ("p/.claude/commands/bad.md", "---\na: [1\n---\n"),
                ("p/.claude/commands/no.txt", "no"),
            ],
        );
        let found = |is_trusted| {
            let of_project = OfProject {
                is_trusted,
                lets: &|_, _| true,
                is_quiet: false,
                may_choose: &|_| is_trusted,
            };
            let mut problems = Vec::new();
            let found = commands(&options(dir.path()), &of_project, &[], &mut problems).into_iter();
            let shown: Vec<String> = found
                .map(|ClaudeCommand { entry: c, is_users }| {
                    format!(
                        "{} | {:?} | {:?} | {} | {is_users}",
                        c.name, c.description, c.model, c.template
                    )
                })
                .collect();
            (shown.join("\n"), problems)
        };
        let (shown, problems) = found(true);
        insta::assert_snapshot!(shown, @r#"
        b | Some("d") | None | Do $ARGUMENTS | true
        a | Some("file") | Some("x/y") | project's a | false
        "#);
        assert_eq!(problems.len(), 1);
        let (shown, problems) = found(false);
        insta::assert_snapshot!(shown, @r#"
        a | None | None | user's a | true
        b | Some("d") | None | Do $ARGUMENTS | true
        "#);
        assert!(
            problems[1]
                .to_string()
                .contains("you have one of that name")
        );
    }
}
