//! A home and a project in a temporary folder.

use std::path::{Path, PathBuf};

use outrigger_config::{ConfigError, LoadOptions, Loaded, load};

/// The folder, and options that point into it.
pub(crate) struct World {
    dir: tempfile::TempDir,
    pub(crate) options: LoadOptions,
}

impl World {
    /// `home`, `work` (the worktree) and `work/sub` (the working directory), with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(at("work/sub")).unwrap();
        std::fs::create_dir_all(at("home")).unwrap();
        for (path, text) in files {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        }
        let mut options =
            LoadOptions::new(at("work/sub"), at("work"), at("home"), Default::default());
        options.managed = Some(at("managed"));
        options.username = Some("tester".into());
        Self { dir, options }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.options
            .env
            .insert(name.into(), value.replace("ROOT", &self.root()));
        self
    }

    pub(crate) fn load(&self) -> Result<Loaded, ConfigError> {
        load(&self.options)
    }

    pub(crate) fn root(&self) -> String {
        self.dir.path().display().to_string()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Text with the temporary folder's name taken out.
    pub(crate) fn text(&self, text: impl ToString) -> String {
        text.to_string().replace(&self.root(), "")
    }

    /// Every file and folder, to see that nothing was made.
    pub(crate) fn listing(&self) -> Vec<PathBuf> {
        fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                out.push(entry.path());
                if entry.path().is_dir() {
                    walk(&entry.path(), out);
                }
            }
        }
        let mut out = Vec::new();
        walk(self.dir.path(), &mut out);
        out.sort();
        out
    }
}
