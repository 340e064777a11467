//! Sockets of plugins' tmux servers (requirement B7: `interactive_bash`).
//!
//! tmux creates them below `/tmp`, which no sandbox can write; and the user's server is not for plugins. So sandboxed processes
//! get a folder for the project in the data folder. All of them share it, since plugins tell the model to view their terminals
//! with the `bash` tool, which must find the server there. A plugin with a secret keeps its servers to itself, since otherwise
//! others could start programs in them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use outrigger_sandbox::folders;

/// The variable that names the folder.
pub const TMUX_TMPDIR: &str = "TMUX_TMPDIR";

/// Returns the folder for plugins of the project in `directory`. Short, since the path of a socket has at most 107 bytes.
#[must_use]
pub fn tmux_dir(data: &Path, directory: &Path) -> PathBuf {
    let digest = super::short_digest(directory.as_os_str().as_encoded_bytes());
    let name = digest.get(..8).unwrap_or_default();
    data.join("tmux").join(name)
}

/// Creates the folder, for this user alone as tmux requires, and returns the variable that points to it.
pub fn prepare(folder: &Path) -> io::Result<(OsString, OsString)> {
    // A link there would give the sandbox access to another folder.
    let name = folder.file_name().unwrap_or_default();
    folders::make(folder.parent().unwrap_or(folder), Path::new(name))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    // The socket of a killed server remains, and a command would connect to it instead of the user's own.
    let uid = fs::metadata(folder)?.uid();
    let sockets = folder.join(format!("tmux-{uid}"));
    let socket = sockets.join("default");
    let kind = |path: &Path| fs::symlink_metadata(path).map(|meta| meta.file_type());
    let is_ours =
        kind(&sockets).is_ok_and(|it| it.is_dir()) && kind(&socket).is_ok_and(|it| it.is_socket());
    if is_ours
        && std::os::unix::net::UnixStream::connect(&socket)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        let _ = fs::remove_file(&socket);
    }
    Ok((TMUX_TMPDIR.into(), folder.as_os_str().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_projects_and_a_dead_servers_socket_goes() {
        let data = tempfile::tempdir().unwrap();
        let folder = tmux_dir(data.path(), Path::new("/a"));
        assert_ne!(folder, tmux_dir(data.path(), Path::new("/b")));
        let (name, value) = prepare(&folder).unwrap();
        assert_eq!(
            (name.to_str(), value.as_os_str()),
            (Some(TMUX_TMPDIR), folder.as_os_str())
        );
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let uid = fs::metadata(&folder).unwrap().uid();
        let sockets = folder.join(format!("tmux-{uid}"));
        fs::create_dir(&sockets).unwrap();
        let socket = sockets.join("default");
        let server = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        prepare(&folder).unwrap();
        assert!(socket.exists());
        drop(server);
        prepare(&folder).unwrap();
        assert!(!socket.exists());
    }
}
