//! Routes that change configuration files.
//!
//! A change is merged into a file of the user with its comments kept, and the agents that read it are disposed of: the next
//! request starts them with the new one, as in OpenCode. Clients never get keys, so the placeholders that they were given for
//! keys are replaced before anything is written (invariant 10).

use std::io;
use std::path::Path;

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use outrigger_agent::Rewritten;
use outrigger_files::{FileError, Readers};
use serde_json::{Value, json};

use crate::access::marks::FromPlugin;
use crate::error::ApiError;
use crate::hosting::hub::Hub;

/// Handles `PATCH /config`: the configuration of a folder. Writes to the folder's file, or to a new `opencode.json`. (OpenCode
/// writes a `config.json`, which it does not read there.)
pub(crate) async fn change(
    State(hub): State<Hub>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let directory = hub.folder_of(&request);
    if !directory.is_dir() {
        return Err(ApiError::bad_request(format!(
            "{} is not a folder",
            directory.display()
        )));
    }
    let changes = changes(request).await?;
    let file = outrigger_config::project_file(&directory);
    let boot = hub.boot(directory.clone());
    let asked = changes.clone();
    let written = tokio::task::spawn_blocking(move || {
        let written = write(&file, &asked, Owner::Project)?;
        if let Some(change) = &written {
            outrigger_agent::accept_rewritten_settings(&boot, &file, change);
        }
        Ok::<_, ApiError>(())
    });
    let written = written.await;
    written.map_err(|error| ApiError::internal(error.to_string()))??;
    hub.dispose(&directory).await;
    Ok(Json(changes))
}

/// Handles `GET /global/config`: the user's own files, without keys.
pub(crate) async fn global(State(hub): State<Hub>) -> Result<Json<Value>, ApiError> {
    let boot = hub.boot(hub.resolve(None));
    Ok(Json(boot.load_global_redacted()?))
}

/// Handles `PATCH /global/config`.
pub(crate) async fn change_global(
    State(hub): State<Hub>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let changes = changes(request).await?;
    let file = outrigger_config::global_file(&hub.folders().config.join("opencode"));
    if write(&file, &changes, Owner::User)?.is_some() {
        hub.dispose_all().await;
    }
    global(State(hub)).await
}

/// Returns the body of a change after validation. Plugins change settings in their `config` hook instead: their sandbox
/// excludes these files.
async fn changes(request: Request) -> Result<Value, ApiError> {
    if request.extensions().get::<FromPlugin>().is_some() {
        return Err(ApiError::unsupported(
            "changing configuration files over a plugin's `client`",
        ));
    }
    let Json(changes) = Json::<Value>::from_request(request, &())
        .await
        .map_err(|error| ApiError::bad_payload(error.body_text()))?;
    outrigger_config::check_changes(&changes)
        .map_err(|error| ApiError::bad_payload(error.to_string()))?;
    Ok(changes)
}

/// The owner of the changed file, and so whether a link at its path was created by the user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Project,
}

/// Merges changes into a file; returns the result if the file changed.
fn write(file: &Path, changes: &Value, owner: Owner) -> Result<Option<Rewritten>, ApiError> {
    let failed = |error: io::Error| {
        let text = format!("cannot change {}: {error}", file.display());
        match FileError::of(&error) {
            Some(FileError::Link) => ApiError::bad_request(text),
            _ => ApiError::internal(text),
        }
    };
    // The link's target is not read either.
    if owner == Owner::Project {
        outrigger_files::refuse_link(file).map_err(failed)?;
    }
    let before = match outrigger_files::read_to_string(file, outrigger_files::SETTINGS) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let text = before.as_deref().unwrap_or_default();
    let edited = outrigger_config::edited(text, &file.display().to_string(), changes)
        .map_err(|error| ApiError::bad_payload(error.to_string()))?;
    if edited == text {
        return Ok(None);
    }
    let written = match owner {
        Owner::User => outrigger_files::replace(file, edited.as_bytes(), Readers::AsBefore),
        Owner::Project => outrigger_files::replace_unlinked(file, edited.as_bytes()),
    };
    written.map_err(failed)?;
    Ok(Some(Rewritten {
        before,
        after: edited,
    }))
}

/// Handles `POST /global/upgrade`. This program is upgraded the way it was installed; OpenCode responds in this form if it does
/// not know how it was installed.
pub(crate) async fn upgrade() -> Response {
    let error = "outrigger does not upgrade itself; install a newer version the way this one was";
    let body = json!({ "success": false, "error": error });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
