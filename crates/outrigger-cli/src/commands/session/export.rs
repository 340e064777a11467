//! `outrigger export`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use outrigger_agent::{Boot, ProjectLocation};
use outrigger_export::{
    Document, ExportError, Page, Redaction, Stored, html, markdown, opencode, select,
};
use outrigger_files::Readers;
use outrigger_store::Store;

use super::stored::{find, open};
use crate::args::{ExportArgs, FileForm, Global};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{err, name, pass_out};

/// Runs the command. Starts no plugin.
pub(crate) fn export(global: &Global, args: ExportArgs) -> Result<u8, Failure> {
    if args.children && args.format == FileForm::Opencode {
        return Err(Failure::usage(
            "OpenCode's form has one session in a file",
            Some("export each of them by itself, or use `--format json`".into()),
        ));
    }
    write_session(global, &args)?;
    if args.output != Path::new("-") {
        err(&format!("wrote {}\n", name(&args.output.to_string_lossy())));
    }
    Ok(0)
}

/// Writes a session, without a word to the terminal unless the file is standard output.
pub(crate) fn write_session(global: &Global, args: &ExportArgs) -> Result<(), Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let location = ProjectLocation::find(&boot.directory);
    let store = open(&boot)?;
    let session = find(&store, &location, args.session.clone())?;
    let mut sessions = select(&store, session, args.children)?;
    if args.redact {
        redact(&boot, &location, &store, &mut sessions)?;
    }
    let text = text(&store, sessions, args.format)?;
    if args.output == Path::new("-") {
        pass_out(text.as_bytes());
        return Ok(());
    }
    write(&args.output, &text, args.force)
}

fn text(store: &Store, mut sessions: Vec<Stored>, form: FileForm) -> Result<String, Failure> {
    if form == FileForm::Opencode {
        return Ok(opencode(sessions.swap_remove(0)).map_err(ExportError::from)?);
    }
    let document = Document::of(store, &sessions).map_err(ExportError::from)?;
    Ok(match form {
        FileForm::Markdown => markdown(&document),
        FileForm::Html => html(&document, &Page::built()?)?,
        FileForm::Json | FileForm::Opencode => {
            serde_json::to_string_pretty(&document).map_err(ExportError::from)? + "\n"
        }
    })
}

/// Removes what is kept out of the audit: keys of the configuration, of the environment, and stored ones.
fn redact(
    boot: &Boot,
    location: &ProjectLocation,
    store: &Store,
    sessions: &mut [Stored],
) -> Result<(), Failure> {
    let config = boot.load(location)?;
    outrigger_audit::prepare(store, &config, &boot.env);
    let models = boot.models()?;
    let credentials = models.credentials();
    credentials.watch(outrigger_audit::credential_watcher(store));
    // Reports every stored key to the watcher, so that the redactor knows it.
    credentials.report_all();
    let redaction = Redaction::new(store.redactor().clone());
    redaction.apply(sessions).map_err(ExportError::from)?;
    Ok(())
}

/// Writes the file. A conversation is readable only by its user, and no existing file is overwritten by
/// accident.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new("export.write", message, None)
    };
    if force {
        outrigger_files::refuse_link(path).map_err(failed)?;
        return outrigger_files::replace(path, text.as_bytes(), Readers::Owner).map_err(failed);
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(
            "export.exists",
            format!("{} exists already", path.display()),
            Some("name another file, or overwrite it with --force".into()),
        ),
        _ => failed(error),
    })?;
    file.write_all(text.as_bytes()).map_err(failed)
}
