use std::collections::BTreeMap;

use outrigger_config::LoadOptions;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_workspace::Folders;

use super::notes::SWITCHES;
use super::*;

/// A project with one settings file, and the agent's side of it.
struct Start {
    directory: PathBuf,
    folders: Folders,
    env: BTreeMap<String, String>,
}

impl ConfigSource for Start {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn folders(&self) -> &Folders {
        &self.folders
    }

    fn options(&self, location: &ProjectLocation) -> LoadOptions {
        let (directory, worktree) = (location.directory.clone(), location.worktree.clone());
        let home = self.folders.home.clone();
        let mut options = LoadOptions::new(directory, worktree, home, self.env.clone());
        options.xdg_config.clone_from(&self.folders.config);
        options.hooks = outrigger_plugins::refusing_hooks();
        options.project = crate::folder_trust::extent(&self.env, &self.folders, location, &options);
        options
    }
}

async fn project() -> (tempfile::TempDir, Start, Arc<WorkspaceTrust>) {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap().join("project");
    // It ends here, whatever is in the folders above.
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::write(project.join("opencode.json"), "{}").unwrap();
    let home = dir.path().display().to_string();
    let env = BTreeMap::from([("HOME".to_owned(), home)]);
    let boot = Start {
        directory: project,
        folders: Folders::from_env(&env),
        env,
    };
    let settled = begun(&boot).await.unwrap();
    (dir, boot, settled)
}

async fn begun(boot: &Start) -> Result<Arc<WorkspaceTrust>, TrustError> {
    let location = ProjectLocation::find(&boot.directory);
    let config = boot.load_config(&location).unwrap();
    let settled = WorkspaceTrust::begin(boot, &config, &location).await?;
    Ok(settled.unwrap())
}

/// The first start of a sandboxed process notes the settings, which reads the configuration; no later one does.
#[tokio::test]
async fn they_are_read_once_however_much_runs() {
    let (_dir, boot, settled) = project().await;
    settled.before_process().unwrap();
    let notes = settled.notes.all().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    // Whatever looks at the notes makes their folder, and whatever reads the configuration fails.
    fs::remove_dir_all(&settled.notes.folder).unwrap();
    fs::write(boot.directory.join("opencode.json"), "{").unwrap();
    for _ in 0..3 {
        settled.before_process().unwrap();
    }
    assert!(!settled.notes.folder.exists());
}

/// Nothing runs of which no note can be made.
#[tokio::test]
async fn without_a_note_nothing_runs() {
    let (_dir, _boot, settled) = project().await;
    fs::remove_dir_all(&settled.notes.folder).unwrap();
    fs::write(&settled.notes.folder, "").unwrap();
    let error = settled.will_run().await.unwrap_err();
    assert_eq!(error.code(), "spawn.note");
    assert!(error.to_string().contains("settings"), "{error}");
    // It can be again.
    fs::remove_file(&settled.notes.folder).unwrap();
    settled.will_run().await.unwrap();
    assert_eq!(settled.notes.all().unwrap().len(), 1);
}

/// What counts is what was written by the user's word, on top of what counted; not what is there by the time it is looked at.
#[tokio::test]
async fn what_was_written_counts_and_not_what_is_there() {
    const OURS: &str = r#"{ "username": "ours" }"#;
    const THEIRS: &str = r#"{ "username": "theirs" }"#;
    let (known, new) = ("opencode.json", "opencode.jsonc");
    for (file, before, there, want) in [
        (known, Some("{}"), OURS, ""),
        (known, Some("{}"), THEIRS, "opencode.json (changed)"),
        (known, Some(THEIRS), OURS, "opencode.json (changed)"),
        (new, None, OURS, ""),
        (new, None, THEIRS, "opencode.jsonc (changed)"),
        (new, Some(THEIRS), OURS, "opencode.jsonc (new)"),
    ] {
        let (_dir, boot, settled) = project().await;
        settled.before_process().unwrap();
        let file = boot.directory.join(file);
        fs::write(&file, there).unwrap();
        let known = before.and_then(|text: &str| digest(&file, text.as_bytes()));
        let ours = digest(&file, OURS.as_bytes());
        settled.count(&file, known.as_deref(), ours.as_deref());
        let changed: Vec<String> = settled.notes.changed().unwrap().into_iter().collect();
        assert_eq!(changed.join(", "), want, "{file:?} {before:?} {there}");
        settled.end().await;
        let refused = begun(&boot).await.err().map(|error| error.code());
        let wanted = (!want.is_empty()).then_some("config.changed");
        assert_eq!(refused, wanted, "{file:?} {before:?} {there}");
    }
}

/// What is trusted unseen counts as it was before something ran, whatever reads it. A person is asked about the same by its content.
#[tokio::test]
async fn what_else_takes_trust_counts_unseen_as_it_was() {
    const HOOKS: &str =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;
    const SERVER: &str = r#"{"mcpServers": {"e": {"command": "x"}}}"#;
    const SKILL: &str = "---\nname: s\ndescription: d\n---\n!`x`";
    let settings = "{}";
    for (left, text, at, want) in [
        (
            ".claude/settings.json",
            HOOKS,
            "",
            ".claude/settings.json (new)",
        ),
        (
            ".claude/settings.local.json",
            HOOKS,
            "sub",
            ".claude/settings.local.json (new)",
        ),
        (
            ".claude/settings.local.json",
            r#"{"permissions": {}}"#,
            "",
            "",
        ),
        (".mcp.json", SERVER, "", ".mcp.json (new)"),
        (
            ".claude/commands/c.md",
            "!`x`",
            "",
            ".claude/commands/c.md (new)",
        ),
        (".claude/commands/c.md", "text", "", ""),
        (
            ".agents/skills/s/SKILL.md",
            SKILL,
            "",
            ".agents/skills/s/SKILL.md (new)",
        ),
        ("sub/.mcp.json", SERVER, "sub", "sub/.mcp.json (new)"),
        ("sub/.mcp.json", SERVER, "", ""),
        (
            "sub/.claude/settings.json",
            HOOKS,
            "sub",
            "sub/.claude/settings.json (new)",
        ),
        (
            "sub/opencode.json",
            r#"{ "username": "x" }"#,
            "sub",
            "sub/opencode.json (new)",
        ),
        (
            "sub/known/.mcp.json",
            SERVER,
            "sub/known",
            "sub/known/.mcp.json (changed)",
        ),
        (
            "a/b/c/d/e/f/g/h/i/j/opencode.json",
            r#"{ "username": "x" }"#,
            "a/b/c/d/e/f/g/h/i/j",
            "a/b/c/d/e/f/g/h/i/j/opencode.json (new)",
        ),
        (
            "node_modules/x/.mcp.json",
            SERVER,
            "node_modules/x",
            "node_modules/x/.mcp.json (new)",
        ),
        // As in another folder: of another working tree.
        ("sub/opencode.json", settings, "sub", ""),
    ] {
        for (is_unseen, by_tool) in [(true, false), (true, true), (false, false)] {
            let (_dir, mut boot, _) = project().await;
            if is_unseen {
                let trust = outrigger_config::TRUST_PROJECT.to_owned();
                boot.env.insert(trust, "1".to_owned());
            }
            let root = boot.directory.clone();
            fs::create_dir_all(root.join("sub/known")).unwrap();
            fs::write(root.join("sub/known/.mcp.json"), "{}").unwrap();
            let settled = begun(&boot).await.unwrap();
            settled.before_process().unwrap();
            let file = root.join(left);
            let before = fs::read(&file).ok();
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            if by_tool {
                let before = before.and_then(|it| digest(&file, &it));
                let after = digest(&file, text.as_bytes());
                settled.count(&file, before.as_deref(), after.as_deref());
            }
            settled.end().await;
            boot.directory = root.join(at);
            let files = match begun(&boot).await {
                Err(TrustError::SettingsChanged { files }) => files.join(", "),
                other => {
                    other.unwrap();
                    String::new()
                }
            };
            let is_refused = is_unseen && !by_tool;
            let want = if is_refused { want } else { "" };
            assert_eq!(files, want, "{left} {is_unseen} {by_tool}");
            // It counts once it was let.
            allow_settings(&boot).unwrap();
            begun(&boot).await.unwrap();
        }
    }
}

/// Who does not read the project's settings notes and keeps what there is of them, and starts whatever they say.
#[tokio::test]
async fn what_is_not_read_is_noted_all_the_same() {
    let (_dir, boot, _) = project().await;
    let without = project_without(&boot);
    for changes in ["the first", "another"] {
        let settled = begun(&without).await.unwrap();
        settled.before_process().unwrap();
        let text = format!("{{ \"username\": \"{changes}\" }}");
        fs::write(boot.directory.join("opencode.json"), text).unwrap();
        settled.end().await;
        begun(&without).await.unwrap();
        let refused = begun(&boot).await.unwrap_err();
        assert_eq!(refused.code(), "config.changed", "{changes}");
        allow_settings(&boot).unwrap();
        begun(&boot).await.unwrap();
    }
    // A broken file neither keeps it from starting nor counts.
    begun(&without).await.unwrap().before_process().unwrap();
    fs::write(boot.directory.join("opencode.json"), "{").unwrap();
    begun(&without).await.unwrap();
    fs::write(boot.directory.join("opencode.json"), "{ }").unwrap();
    assert!(begun(&boot).await.is_err());
}

fn project_without(boot: &Start) -> Start {
    let mut env = boot.env.clone();
    env.insert(SWITCHES[0].to_owned(), "1".to_owned());
    Start {
        directory: boot.directory.clone(),
        folders: boot.folders.clone(),
        env,
    }
}

/// A process that is killed while it writes a note leaves none, and one that is rewritten stays its agent's and
/// whole.
#[tokio::test]
async fn a_note_is_whole_or_not_there() {
    let (_dir, boot, settled) = project().await;
    let folder = settled.notes.folder.clone();
    let part = folder.join("1-0.part");
    fs::write(&part, "{\"direct").unwrap();
    let next = begun(&boot).await.unwrap();
    assert!(!part.exists());
    next.before_process().unwrap();
    let [path] = &next.notes.all().unwrap()[..] else {
        panic!("one note");
    };
    let long = read(path).unwrap();
    let mut short = long.clone();
    short.state.settings.clear();
    write(path, &short).unwrap();
    assert!(read(path).unwrap().state.settings.is_empty());
    write(path, &long).unwrap();
    assert_eq!(read(path).unwrap().state, long.state);
    assert!(
        File::open(path).unwrap().try_lock().is_err(),
        "it is locked still"
    );
}

/// Another agent that holds the notes and does not go on keeps nobody waiting for ever.
#[tokio::test]
async fn notes_that_another_holds_are_not_waited_for_for_ever() {
    let (_dir, _boot, settled) = project().await;
    let _held = settled.notes.hold().unwrap();
    let error = settled.will_run().await.unwrap_err();
    assert_eq!(error.code(), "spawn.note");
    assert!(error.to_string().contains("another Outrigger"), "{error}");
}
