//! The programs that may be started: those of a project only if its folder is trusted, with their content at that time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Returns why the program of an entry, by the entry's name, must not be started, for display; `None` if it may. Reads the
/// disk.
pub type RefusalFn = Arc<dyn Fn(&str, &Path) -> Option<String> + Send + Sync>;

/// The programs that may be started.
#[derive(Clone)]
pub struct Programs {
    /// Programs and libraries in the project (`node_modules`) may be used.
    pub of_project: bool,
    /// Called before each start.
    pub refusal: RefusalFn,
}

/// Allows all programs.
impl Default for Programs {
    fn default() -> Self {
        Self {
            of_project: true,
            refusal: Arc::new(|_, _| None),
        }
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs")
            .field("of_project", &self.of_project)
            .finish_non_exhaustive()
    }
}

impl Programs {
    /// Calls [`Self::refusal`] outside the async threads.
    pub async fn refusal(&self, name: &str, program: &Path) -> Option<String> {
        let (refusal, name) = (Arc::clone(&self.refusal), name.to_owned());
        let program = program.to_owned();
        let looked = tokio::task::spawn_blocking(move || refusal(&name, &program)).await;
        looked.unwrap_or_else(|_| Some("it cannot be inspected".to_owned()))
    }
}
