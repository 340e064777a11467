//! `outrigger import`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_agent::{Boot, ProjectLocation};
use outrigger_import::{
    Destination, Outcome, Problem, Program, Source, StoredSession, accept, outlook, write,
};
use outrigger_protocol::id::SessionId;
use outrigger_stdx::clock::now_ms;
use outrigger_store::Store;

use super::date;
use crate::args::{Global, ImportArgs};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{err, name, out};

/// Runs the command. Executes nothing of what it reads.
pub(crate) async fn import(global: &Global, args: ImportArgs) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let location = ProjectLocation::find(&boot.directory);
    let (program, path, ids) = wanted(&boot, &args)?;
    let is_named = program == Program::Outrigger || path.is_file() || !ids.is_empty();
    let mut problems = Vec::new();
    let source = Source::open(program, &path, &mut problems)?;
    let here = (!is_named && !args.all).then(|| location.directory.to_string_lossy().into_owned());
    let chosen = chosen(&source, &ids, here.as_deref())?;
    if args.list {
        list(&chosen, here.is_none());
        said(&problems);
        return Ok(0);
    }
    let store = Store::open(&boot.folders.store())?.0;
    let to = destination(&store, &location)?;
    let counts = all(&source, &chosen, &to, &store, args.dry_run, &mut problems).await?;
    said(&problems);
    counts.report(&source, here.as_deref(), args.dry_run);
    Ok(u8::from(counts.failed > 0))
}

/// Returns the program, the folder of its sessions, and the selection.
fn wanted(boot: &Boot, args: &ImportArgs) -> Result<(Program, PathBuf, Vec<String>), Failure> {
    let programs = [Program::OpenCode, Program::Claude, Program::Codex];
    let program = programs.into_iter().find(|it| it.name() == args.from);
    let Some(program) = program else {
        let path = PathBuf::from(&args.from);
        return if path.is_file() {
            Ok((Program::Outrigger, path, args.which.clone()))
        } else {
            Err(Failure::usage(
                format!("unknown source `{}`", args.from),
                Some("expected opencode, claude, codex or an exported file".into()),
            ))
        };
    };
    let mut which = args.which.clone();
    let path = match which.first() {
        Some(first) if Path::new(first).exists() => PathBuf::from(which.remove(0)),
        _ => program.place(&boot.folders.home, |key| boot.env.get(key).cloned()),
    };
    Ok((program, path, which))
}

/// Returns the selected sessions, parents first.
fn chosen<'s>(
    source: &'s Source,
    ids: &[String],
    here: Option<&str>,
) -> Result<Vec<&'s StoredSession>, Failure> {
    let all = source.found();
    for id in ids {
        if !all.iter().any(|one| one.id.starts_with(id.as_str())) {
            return Err(Failure::new(
                "import.no_session",
                format!("{} has no session {id}", source.program().title()),
                Some("`--list --all` shows what is there".into()),
            ));
        }
    }
    let is_meant = |one: &&StoredSession| {
        let is_named = ids.is_empty() || ids.iter().any(|id| one.id.starts_with(id.as_str()));
        is_named && here.is_none_or(|folder| one.directory == folder)
    };
    let mut chosen: Vec<&StoredSession> = all.iter().filter(is_meant).collect();
    // Subagents are imported with the sessions that started them.
    let mut at = 0;
    while let Some(parent) = chosen.get(at).map(|one| one.id.clone()) {
        let is_new = |one: &&StoredSession| {
            one.parent.as_ref() == Some(&parent) && !chosen.iter().any(|it| it.id == one.id)
        };
        let children: Vec<&StoredSession> = all.iter().filter(is_new).collect();
        chosen.extend(children);
        at += 1;
    }
    chosen.sort_by_key(|one| depth(one, all));
    Ok(chosen)
}

/// Returns the number of ancestors of a session.
fn depth(one: &StoredSession, all: &[StoredSession]) -> usize {
    let mut parent = one.parent.as_ref();
    let mut depth = 0;
    while let Some(above) = parent.filter(|_| depth < 32) {
        depth += 1;
        parent = all
            .iter()
            .find(|it| it.id == *above)
            .and_then(|it| it.parent.as_ref());
    }
    depth
}

fn list(chosen: &[&StoredSession], with_folder: bool) {
    for one in chosen {
        let folder = if with_folder {
            format!("  {}", name(&one.directory))
        } else {
            String::new()
        };
        let (id, title) = (name(&one.id), name(&one.title));
        out(&format!("{id}  {}  {title}{folder}\n", date(one.updated)));
    }
}

fn destination(store: &Store, location: &ProjectLocation) -> Result<Destination, Failure> {
    let key = format!("project:{}", location.worktree.display());
    let project = if location.git {
        store.meta_get(&key)?
    } else {
        None
    };
    Ok(Destination {
        directory: location.directory.to_string_lossy().into_owned(),
        path: location.relative(),
        project_id: project.unwrap_or_else(|| "global".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: now_ms(),
    })
}

#[derive(Default)]
struct Counts {
    imported: usize,
    grown: usize,
    there: usize,
    failed: usize,
}

impl Counts {
    /// Counts a session, and prints its result.
    fn add(&mut self, outcome: &Outcome, title: &str) {
        let some = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 new {what}")),
            _ => Some(format!("{count} new {what}s")),
        };
        let (count, id, became) = match outcome {
            Outcome::Imported(id) => (&mut self.imported, id, String::new()),
            Outcome::Grown {
                id,
                messages,
                parts,
            } => {
                let new: Vec<String> = [some(*messages, "message"), some(*parts, "part")]
                    .into_iter()
                    .flatten()
                    .collect();
                (&mut self.grown, id, format!(": {}", new.join(", ")))
            }
            Outcome::There(id) => (&mut self.there, id, ": already there".to_owned()),
            Outcome::Differs(id) => {
                let words = ": already there, and another conversation where it came from now; nothing was changed";
                (&mut self.there, id, words.to_owned())
            }
            Outcome::Elsewhere { id, directory } => {
                let words =
                    format!(": a session of {directory}; nothing was changed. Import it there");
                (&mut self.there, id, words)
            }
        };
        *count += 1;
        out(&format!("{id}  {title}{became}\n"));
    }

    fn report(&self, source: &Source, here: Option<&str>, is_dry: bool) {
        let Self {
            imported,
            grown,
            there,
            failed,
        } = self;
        let verb = if is_dry {
            "would be imported"
        } else {
            "imported"
        };
        let failed = match failed {
            0 => String::new(),
            count => format!(", {count} could not be read"),
        };
        let grown_since = match grown {
            0 => String::new(),
            count => format!(", {count} went on since"),
        };
        out(&format!(
            "{imported} {verb}{grown_since}, {there} already there{failed}\n"
        ));
        if let (Some(folder), 0) = (here, imported + grown + there) {
            let others = source.found().len();
            err(&format!(
                "none of the {others} sessions is of {}; `--all` includes those of other folders\n",
                name(folder)
            ));
        }
    }
}

async fn all(
    source: &Source,
    chosen: &[&StoredSession],
    to: &Destination,
    store: &Store,
    is_dry: bool,
    problems: &mut Vec<Problem>,
) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let mut known = children(source, chosen, to);
    for one in chosen {
        let transcript = match source.read(one, problems) {
            Ok(transcript) => transcript,
            Err(error) => {
                counts.failed += 1;
                let id = name(&one.id);
                err(&format!("warning: {id}: {}\n", name(&error.to_string())));
                continue;
            }
        };
        let accepted = accept(transcript, to, &known);
        let (id, title) = (accepted.session.id.clone(), name(&accepted.session.title));
        known.insert(one.id.clone(), id.clone());
        let outcome = if is_dry {
            outlook(store, &accepted)?
        } else {
            write(store, accepted, now_ms()).await?
        };
        counts.add(&outcome, &title);
    }
    Ok(counts)
}

/// Returns identifiers of subagents' sessions: the parent names one before it is read.
fn children(
    source: &Source,
    chosen: &[&StoredSession],
    to: &Destination,
) -> BTreeMap<String, SessionId> {
    let children = chosen.iter().filter(|one| one.parent.is_some());
    let read = children.filter_map(|one| {
        // Its problems are reported when it is imported.
        let transcript = source.read(one, &mut Vec::new()).ok()?;
        let accepted = accept(transcript, to, &BTreeMap::new());
        Some((one.id.clone(), accepted.session.id))
    });
    read.collect()
}

/// Prints what was skipped, with its location.
fn said(problems: &[Problem]) {
    for problem in problems {
        err(&format!(
            "warning: {}; skipped\n",
            name(&problem.to_string())
        ));
    }
}
