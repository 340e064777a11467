//! Reverting a session: its messages from a given one on, and their changes to files.
//!
//! Files are restored only if they are as the session left them. Other people's work, before, between or after the
//! session's changes, is never overwritten unless the caller forces it: the error names the files and nothing is changed.

mod reach;

use std::collections::{BTreeMap, HashMap};

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PartId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_protocol::session::{Session, SessionRevert, SessionSummary};
use outrigger_session_state::revisions::revert_points::{find, from, is_answer, removals};
use outrigger_workspace::snapshot::{FileDiff, Snapshots, is_tree};
use serde_json::Value;

use crate::error::AgentError;
use crate::state::Agent;

/// Change of a session to one file in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Touch {
    file: String,
    before: String,
    after: Option<String>,
}

/// A tree and a file in it.
type FileInTree = (String, String);

impl Agent {
    /// Takes back a message of the user and all that follows, or, with a part, the answer from that part on. The messages
    /// stay until the next prompt removes them, so it can be undone by [`Self::unrevert`]. A session in which there is no
    /// such message or part is left as it is (OpenCode's rule). A plugin takes back what it may remove ([`Self::may_remove`]).
    ///
    /// # Errors
    /// [`AgentError::Conflict`] where files are not what the session left, and [`AgentError::PluginCaused`] for files that run
    /// later, unless `force`; [`AgentError::RunsLater`] and [`AgentError::NotGranted`] for a plugin; [`AgentError::NoSession`], [`AgentError::Working`], [`AgentError::Busy`], [`AgentError::Snapshot`] and those of the store. Then nothing has
    /// changed.
    pub async fn revert(
        &self,
        id: &SessionId,
        message: &MessageId,
        part: Option<&PartId>,
        force: bool,
        by: &Actor,
    ) -> Result<Session, AgentError> {
        reach::may_force(by, force)?;
        let session = self.session(id)?;
        let _owner = self.at_rest(id)?;
        let messages = self.state.store.messages(id)?;
        let Some(mut revert) = find(&messages, message, part) else {
            return Ok(session);
        };
        self.may_remove(by, from(&messages, &revert))?;
        let snapshots = &self.state.project.snapshots;
        if snapshots.is_on() {
            let current = snapshots.track().await?;
            let (back, now) = match session
                .revert
                .as_ref()
                .and_then(|earlier| Some((earlier, earlier.snapshot.clone()?)))
            {
                Some((earlier, before)) => {
                    // Assume that the previous revert is undone; on disk this happens below, after all checks.
                    let back = self
                        .back(&messages, earlier, &before, &current, force)
                        .await?;
                    (back, before)
                }
                None => (BTreeMap::new(), current.clone()),
            };
            let touched = touches(snapshots, &messages, &revert)?;
            let wanted = first_trees(&touched);
            if !force {
                self.check_between(&touched).await?;
                self.check(&wanted, &last_trees(&touched), &now).await?;
            }
            self.may_put_back(by, back.keys().chain(wanted.keys()).collect())
                .await?;
            if !force {
                self.check_causes(&messages, &revert, wanted.keys())?;
            }
            restore(snapshots, &back).await?;
            restore(snapshots, &wanted).await?;
            let after = snapshots.track().await?;
            let diffs = snapshots.diff(&now, &after).await?;
            revert.diff = Some(diffs.iter().map(|diff| diff.patch.as_str()).collect());
            revert.snapshot = Some(now);
        }
        let diffs = self.diff_of(&messages, &revert).await?;
        self.set_revert(id, revert, &diffs).await
    }

    /// Brings back what [`Self::revert`] took back: messages, and the files that it had put back.
    ///
    /// # Errors
    /// As [`Self::revert`].
    pub async fn unrevert(
        &self,
        id: &SessionId,
        force: bool,
        by: &Actor,
    ) -> Result<Session, AgentError> {
        reach::may_force(by, force)?;
        let session = self.session(id)?;
        let _owner = self.at_rest(id)?;
        let Some(revert) = session.revert.clone() else {
            return Ok(session);
        };
        let snapshots = &self.state.project.snapshots;
        if let (true, Some(before)) = (snapshots.is_on(), &revert.snapshot) {
            let messages = self.state.store.messages(id)?;
            let now = snapshots.track().await?;
            let back = self.back(&messages, &revert, before, &now, force).await?;
            self.may_put_back(by, back.keys().collect()).await?;
            restore(snapshots, &back).await?;
        }
        self.update_session(id, |session| session.revert = None)
            .await
    }

    /// Checks that files that make something run later are not restored unseen if a plugin is a cause of the messages.
    fn check_causes<'f>(
        &self,
        messages: &[MessageWithParts],
        revert: &SessionRevert,
        files: impl Iterator<Item = &'f String>,
    ) -> Result<(), AgentError> {
        let mut plugins = from(messages, revert).iter().flat_map(|message| {
            let causes = match &message.info {
                MessageInfo::User(user) => &user.provenance,
                MessageInfo::Assistant(answer) => &answer.provenance,
            };
            causes.plugins_that(Deed::Prompted)
        });
        let Some(plugin) = plugins.next() else {
            return Ok(());
        };
        let actor = Actor::plugin(&plugin);
        let found = self.runs_later(&actor, files.map(String::as_str));
        match found.into_iter().next() {
            Some(found) => Err(AgentError::PluginCaused {
                plugin: plugin.0,
                file: found.pattern,
                runs: found.runs,
            }),
            None => Ok(()),
        }
    }

    /// Removes for good what was taken back; a new prompt goes on from there. One of a plugin does not do so with messages of the
    /// user's, who can still bring them back.
    ///
    /// # Errors
    /// [`AgentError::NotGranted`] and those of the store.
    pub(crate) async fn clean_up_revert(
        &self,
        session: &Session,
        causes: &Provenance,
    ) -> Result<(), AgentError> {
        let Some(revert) = &session.revert else {
            return Ok(());
        };
        let messages = self.state.store.messages(&session.id)?;
        for plugin in causes.plugins_that(Deed::Prompted) {
            self.may_remove(&Actor::plugin(&plugin), from(&messages, revert))?;
        }
        let events = removals(&session.id, &messages, revert);
        self.state.commit(Vec::new(), events).await?;
        self.update_session(&session.id, |session| session.revert = None)
            .await?;
        Ok(())
    }

    /// Returns the files that a revert restored, with the tree that has their state before it.
    async fn back(
        &self,
        messages: &[MessageWithParts],
        revert: &SessionRevert,
        before: &str,
        now: &str,
        force: bool,
    ) -> Result<BTreeMap<String, String>, AgentError> {
        let put_back = first_trees(&touches(&self.state.project.snapshots, messages, revert)?);
        let wanted: BTreeMap<String, String> = put_back
            .keys()
            .map(|file| (file.clone(), before.to_owned()))
            .collect();
        if !force {
            self.check(&wanted, &put_back, now).await?;
        }
        Ok(wanted)
    }

    /// Checks that every file is in the expected state or already in the wanted one.
    async fn check(
        &self,
        wanted: &BTreeMap<String, String>,
        expected: &BTreeMap<String, String>,
        now: &str,
    ) -> Result<(), AgentError> {
        let mut asked: Vec<FileInTree> = Vec::new();
        for (file, tree) in wanted.iter().chain(expected) {
            asked.push((tree.clone(), file.clone()));
            asked.push((now.to_owned(), file.clone()));
        }
        let objects = self.state.project.snapshots.objects(&asked).await?;
        let object = |tree: &str, file: &str| objects.get(&(tree.to_owned(), file.to_owned()));
        let foreign = wanted.iter().filter(|(file, tree)| {
            let is = object(now, file);
            let left = expected.get(*file).map(|tree| object(tree, file));
            is != object(tree, file) && left.is_none_or(|left| left != is)
        });
        conflict(foreign.map(|(file, _)| file.clone()).collect())
    }

    /// Checks that each step left a file as the next step that touched it found it.
    async fn check_between(&self, touched: &[Touch]) -> Result<(), AgentError> {
        let mut asked: Vec<FileInTree> = Vec::new();
        for touch in touched {
            asked.push((touch.before.clone(), touch.file.clone()));
            asked.extend(touch.after.clone().map(|tree| (tree, touch.file.clone())));
        }
        let objects = self.state.project.snapshots.objects(&asked).await?;
        let mut left: HashMap<&str, Option<&String>> = HashMap::new();
        let mut foreign = Vec::new();
        for touch in touched {
            let found = objects.get(&(touch.before.clone(), touch.file.clone()));
            if left
                .get(touch.file.as_str())
                .is_some_and(|left| *left != found)
            {
                foreign.push(touch.file.clone());
            }
            if let Some(after) = &touch.after {
                let after = objects.get(&(after.clone(), touch.file.clone()));
                left.insert(&touch.file, after);
            }
        }
        foreign.dedup();
        conflict(foreign)
    }

    /// Returns the file changes of the reverted messages.
    async fn diff_of(
        &self,
        messages: &[MessageWithParts],
        revert: &SessionRevert,
    ) -> Result<Vec<FileDiff>, AgentError> {
        let answers = from(messages, revert).iter().filter(|it| is_answer(it));
        let parts = answers.flat_map(|message| &message.parts);
        let (mut first, mut last) = (None, None);
        for part in parts {
            match &part.kind {
                PartKind::StepStart(fields) if first.is_none() => {
                    let snapshot = fields.get("snapshot").and_then(Value::as_str);
                    first = snapshot.filter(|it| is_tree(it));
                }
                PartKind::StepFinish(finish) => {
                    let snapshot = finish.snapshot.as_deref();
                    last = snapshot.filter(|it| is_tree(it)).or(last);
                }
                _ => {}
            }
        }
        match (first, last) {
            (Some(first), Some(last)) if self.state.project.snapshots.is_on() => {
                Ok(self.state.project.snapshots.diff(first, last).await?)
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn set_revert(
        &self,
        id: &SessionId,
        revert: SessionRevert,
        diffs: &[FileDiff],
    ) -> Result<Session, AgentError> {
        let diff = Event::SessionDiff {
            session_id: id.clone(),
            diff: diffs.iter().map(FileDiff::to_wire).collect(),
        };
        self.state.commit(Vec::new(), vec![diff]).await?;
        let summary = SessionSummary {
            additions: diffs.iter().map(|diff| diff.additions).sum(),
            deletions: diffs.iter().map(|diff| diff.deletions).sum(),
            files: diffs.len() as u64,
        };
        self.update_session(id, |session| {
            session.revert = Some(revert);
            session.summary = Some(summary);
        })
        .await
    }
}

/// Returns the file changes of the messages and parts from the point on, in order.
fn touches(
    snapshots: &Snapshots,
    messages: &[MessageWithParts],
    revert: &SessionRevert,
) -> Result<Vec<Touch>, AgentError> {
    let mut touched = Vec::new();
    let mut is_behind = false;
    for message in messages {
        is_behind |= *message.info.id() == revert.message_id && revert.part_id.is_none();
        let after = message
            .parts
            .iter()
            .rev()
            .find_map(|part| match &part.kind {
                PartKind::StepFinish(finish) => finish.snapshot.clone().filter(|it| is_tree(it)),
                _ => None,
            });
        for part in &message.parts {
            is_behind |= Some(&part.id) == revert.part_id.as_ref();
            let PartKind::Patch(fields) = &part.kind else {
                continue;
            };
            let before = fields.get("hash").and_then(Value::as_str);
            // An imported conversation has no trees.
            let Some(before) = before.filter(|it| is_answer(message) && is_tree(it)) else {
                continue;
            };
            let files = fields.get("files").and_then(Value::as_array);
            for file in files.into_iter().flatten().filter_map(Value::as_str) {
                if is_behind {
                    touched.push(Touch {
                        file: snapshots.relative(file)?,
                        before: before.to_owned(),
                        after: after.clone(),
                    });
                }
            }
        }
    }
    Ok(touched)
}

/// Returns for each file the tree before its first change.
fn first_trees(touched: &[Touch]) -> BTreeMap<String, String> {
    let mut trees = BTreeMap::new();
    for touch in touched {
        trees
            .entry(touch.file.clone())
            .or_insert_with(|| touch.before.clone());
    }
    trees
}

/// Returns for each file the tree after its last change.
fn last_trees(touched: &[Touch]) -> BTreeMap<String, String> {
    touched
        .iter()
        .filter_map(|touch| Some((touch.file.clone(), touch.after.clone()?)))
        .collect()
}

async fn restore(
    snapshots: &Snapshots,
    wanted: &BTreeMap<String, String>,
) -> Result<(), AgentError> {
    let mut by_tree: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, tree) in wanted {
        by_tree.entry(tree).or_default().push(file.clone());
    }
    for (tree, files) in by_tree {
        snapshots.restore(tree, &files).await?;
    }
    Ok(())
}

fn conflict(mut files: Vec<String>) -> Result<(), AgentError> {
    files.sort();
    files.dedup();
    if files.is_empty() {
        return Ok(());
    }
    Err(AgentError::Conflict { files })
}
