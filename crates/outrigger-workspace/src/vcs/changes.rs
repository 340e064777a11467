//! Changes since a commit: files, counts, patches.

use std::collections::BTreeMap;

use super::parse::{change, count, split};
use super::{Against, Change, FileChange, MAX_OUTPUT, Vcs, VcsError, patch_names};

/// Untracked files are compared one by one: beyond this number only the names are listed.
const MAX_UNTRACKED: usize = 200;

impl Vcs {
    async fn has_head(&self) -> bool {
        self.word(&["rev-parse", "--verify", "--quiet", "HEAD"])
            .await
            .is_some()
    }

    /// Returns changed files below the folder since the last commit, including untracked ones, without patches.
    ///
    /// # Errors
    /// If git fails.
    pub async fn status(&self) -> Result<Vec<FileChange>, VcsError> {
        if !self.location().git {
            return Ok(Vec::new());
        }
        let base = if self.has_head().await {
            Some("HEAD".to_owned())
        } else {
            None
        };
        self.changes(base.as_deref()).await
    }

    /// Returns changed files with their patches; `context` is the number of lines around a change.
    ///
    /// # Errors
    /// If git fails.
    pub async fn diff(&self, against: Against, context: u32) -> Result<Vec<FileChange>, VcsError> {
        if !self.location().git {
            return Ok(Vec::new());
        }
        let base = match against {
            Against::Head if self.has_head().await => Some("HEAD".to_owned()),
            Against::Head => None,
            Against::Branch => {
                let Some((name, reference)) = self.default_branch().await else {
                    return Ok(Vec::new());
                };
                if self.branch().await.is_some_and(|branch| branch == name) {
                    return Ok(Vec::new());
                }
                match self.word(&["merge-base", &reference, "HEAD"]).await {
                    Some(base) => Some(base),
                    None => return Ok(Vec::new()),
                }
            }
        };
        let mut changes = self.changes(base.as_deref()).await?;
        let mut patches = match &base {
            Some(base) => split(&self.patch(base, context).await?),
            None => BTreeMap::new(),
        };
        let mut room = MAX_OUTPUT;
        let mut asked = 0;
        for change in &mut changes {
            let patch = match patches.remove(&change.file) {
                Some(patch) => Some(patch),
                None if asked < MAX_UNTRACKED && room > 0 => {
                    asked += 1;
                    self.untracked(&change.file, context).await
                }
                None => None,
            };
            change.patch = patch.filter(|patch| patch.len() <= room);
            room -= change.patch.as_ref().map_or(0, String::len);
        }
        Ok(changes)
    }

    /// Returns the whole change since the last commit as one patch.
    ///
    /// # Errors
    /// If git fails, or the patch is too large to be shown whole: half a patch is worse than none.
    pub async fn raw(&self) -> Result<String, VcsError> {
        if !self.location().git {
            return Ok(String::new());
        }
        let mut pieces = Vec::new();
        if self.has_head().await {
            let all = split(&self.patch("HEAD", 3).await?);
            let visible = self.visible();
            let shown = all.into_values().filter(|patch| {
                let named = patch_names::files(patch);
                named.iter().all(|file| visible(file))
            });
            pieces.push(shown.collect());
        }
        for (file, code) in self.codes().await? {
            if code == "??" {
                let patch = self.untracked(&file, 3).await;
                pieces.push(patch.ok_or_else(|| VcsError::Failed {
                    what: "diff".into(),
                    message: format!("{file} is too large for a patch"),
                })?);
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        Ok(pieces.join("\n"))
    }

    /// Returns names and two-letter codes of visible files that differ from the last commit.
    async fn codes(&self) -> Result<Vec<(String, String)>, VcsError> {
        let text = self
            .text(&[
                "status",
                "--porcelain=v1",
                "--untracked-files=all",
                "--no-renames",
                "-z",
                "--",
                ".",
            ])
            .await?;
        let visible = self.visible();
        Ok(text
            .split('\0')
            .filter_map(|line| Some((line.get(3..)?.to_owned(), line.get(..2)?.to_owned())))
            .filter(|(file, _)| !file.is_empty() && visible(file))
            .collect())
    }

    /// Returns visible changed files since `base` (all files if there is no commit), by name.
    async fn changes(&self, base: Option<&str>) -> Result<Vec<FileChange>, VcsError> {
        let mut found: BTreeMap<String, Change> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        if let Some(base) = base {
            let mut args = vec![
                "diff",
                "--no-ext-diff",
                "--no-renames",
                "--name-status",
                "-z",
            ];
            args.extend([base, "--", "."]);
            let text = self.text(&args).await?;
            let mut words = text.split('\0');
            let visible = self.visible();
            while let (Some(code), Some(file)) = (words.next(), words.next()) {
                if visible(file) {
                    found.insert(file.to_owned(), change(code));
                }
            }
            if let Some(flag) = args.get_mut(3) {
                *flag = "--numstat";
            }
            let text = self.text(&args).await?;
            counts.extend(text.split('\0').filter_map(count));
        }
        for (file, code) in self.codes().await? {
            if base.is_none() || code == "??" {
                found.entry(file).or_insert_with(|| change(&code));
            }
        }
        let mut changes = Vec::with_capacity(found.len());
        let mut asked = 0;
        for (file, status) in found {
            let (additions, deletions) = match counts.get(&file) {
                Some(known) => *known,
                None if status == Change::Added && asked < MAX_UNTRACKED => {
                    asked += 1;
                    self.count_untracked(&file).await.unwrap_or_default()
                }
                None => (0, 0),
            };
            changes.push(FileChange {
                file,
                patch: None,
                additions,
                deletions,
                status,
            });
        }
        Ok(changes)
    }

    async fn patch(&self, base: &str, context: u32) -> Result<String, VcsError> {
        let unified = format!("--unified={context}");
        let args = [
            "diff",
            "--patch",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            &unified,
            base,
            "--",
            ".",
        ];
        self.text(&args).await
    }

    /// Returns the patch that creates an untracked file; `None` if it is too large.
    async fn untracked(&self, file: &str, context: u32) -> Option<String> {
        let unified = format!("--unified={context}");
        let args = [
            "diff",
            "--no-index",
            "--patch",
            "--no-ext-diff",
            "--no-textconv",
            &unified,
            "--",
            "/dev/null",
            file,
        ];
        // The exit code signals a difference, which there is.
        let output = self
            .run_in(&self.location().worktree, &args, None)
            .await
            .ok()?;
        (!output.truncated).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn count_untracked(&self, file: &str) -> Option<(u64, u64)> {
        let args = ["diff", "--no-index", "--numstat", "--", "/dev/null", file];
        let output = self
            .run_in(&self.location().worktree, &args, None)
            .await
            .ok()?;
        count(&String::from_utf8_lossy(&output.stdout)).map(|(_, counts)| counts)
    }
}
