//! Files that tools of other crates read or write (a browser's uploads and downloads), under the path guard and the rules of `read`
//! and `edit`, like those of the bundled tools.

use std::path::Path;

use serde_json::json;

use crate::error::ToolError;
use crate::files::{Kind, Located, locate, read_bytes, write_bytes};
use crate::host::{PermissionAsk, ToolContext};

/// A file that a call names.
#[derive(Clone, Debug)]
pub struct HandedFile(Located);

impl HandedFile {
    /// Resolves a path against the session's folder.
    ///
    /// # Errors
    /// As for every path of a tool: the machine's policy, or a link that points elsewhere than before.
    pub fn of(ctx: &ToolContext, path: &str) -> Result<Self, ToolError> {
        locate(ctx, path).map(Self)
    }

    /// Returns the path as named, absolute.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.0.shown
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &std::ffi::OsStr {
        self.0.shown.file_name().unwrap_or_default()
    }

    /// Returns the questions before it is read.
    #[must_use]
    pub fn ask_read(&self, ctx: &ToolContext) -> Vec<PermissionAsk> {
        self.ask("read", ctx)
    }

    /// Returns the questions before it is written.
    #[must_use]
    pub fn ask_write(&self, ctx: &ToolContext) -> Vec<PermissionAsk> {
        self.ask("edit", ctx)
    }

    fn ask(&self, permission: &str, ctx: &ToolContext) -> Vec<PermissionAsk> {
        let asked = PermissionAsk {
            permission: permission.to_owned(),
            patterns: self.0.patterns(ctx),
            always: vec!["*".to_owned()],
            metadata: json!({ "filepath": self.0.shown }),
            ..PermissionAsk::default()
        };
        self.0
            .ask_outside(Kind::File)
            .into_iter()
            .chain([asked])
            .collect()
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// It does not exist, is not a regular file, or is larger than `most` bytes.
    pub fn read(&self, most: u64) -> Result<Vec<u8>, ToolError> {
        read_bytes(&self.0, most)
    }

    /// Replaces or creates it.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, bytes: &[u8]) -> Result<(), ToolError> {
        write_bytes(&self.0, bytes)
    }
}
