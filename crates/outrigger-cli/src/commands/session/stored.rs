//! Stored sessions, for commands that start no agent.

use outrigger_agent::{Boot, ProjectLocation};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_store::{SessionFilter, Store};

use crate::failure::Failure;
use outrigger_client::session::with_prefix;

/// Opens the store, if there is one.
pub(crate) fn open(boot: &Boot) -> Result<Store, Failure> {
    let path = boot.folders.store();
    if !path.exists() {
        return Err(Failure::new(
            "store.none",
            format!("there is no store at {} yet", path.display()),
            Some("the first `outrigger run` makes it".into()),
        ));
    }
    Ok(Store::open(&path)?.0)
}

/// Returns the sessions of a folder, latest first.
pub(super) fn of_place(
    store: &Store,
    location: &ProjectLocation,
    limit: Option<usize>,
) -> Result<Vec<Session>, Failure> {
    let directory = Some(location.directory.to_string_lossy().into_owned());
    Ok(store.sessions(&SessionFilter {
        directory,
        roots_only: true,
        limit,
        ..SessionFilter::default()
    })?)
}

/// Returns the session with this ID or a unique ID that starts with it; default: the latest one of
/// the folder.
pub(crate) fn find(
    store: &Store,
    location: &ProjectLocation,
    id: Option<String>,
) -> Result<Session, Failure> {
    let Some(id) = id else {
        let latest = of_place(store, location, Some(1))?.into_iter().next();
        return latest.ok_or_else(|| {
            let folder = location.directory.display();
            let message = format!("there is no session in {folder} yet");
            Failure::new("agent.no_session", message, None)
        });
    };
    match store.session(&SessionId(id.clone()))? {
        Some(session) => Ok(session),
        None => Ok(with_prefix(
            store.sessions(&SessionFilter::default())?,
            &id,
        )?),
    }
}
