//! Conversations of all projects, what waits for a person first.

use std::collections::BTreeSet;
use std::path::Path;

use outrigger_api::ConversationPage;
use outrigger_protocol::Millis;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_store::{SessionFilter, StoreError};

use crate::reader::Reader;

/// Maximum number of sessions used in the same millisecond: a page that starts among them reads this many
/// more.
const MAX_EQUAL: usize = 256;

/// The requested conversations.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Maximum number.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// A text in the title.
    pub search: Option<String>,
    /// The working directory.
    pub directory: Option<String>,
    /// The project.
    pub project: Option<String>,
    /// Includes those of subagents.
    pub children: bool,
}

impl Reader {
    /// Returns a page of conversations. `None` if the cursor is invalid.
    ///
    /// # Errors
    /// Those of the store.
    pub fn list(
        &self,
        query: &ListQuery,
        allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<Option<ConversationPage>, StoreError> {
        let (statuses, waiting) = (self.live().statuses(), self.live().waiting());
        let mut first = BTreeSet::new();
        for one in &waiting {
            first.insert(self.facts(one.conversation())?.task.clone());
        }
        let mut sessions = Vec::new();
        let before = match &query.cursor {
            Some(text) => match cursor(text) {
                Some(cursor) => Some(cursor),
                None => return Ok(None),
            },
            None => {
                // The first page has all that wait.
                for id in &first {
                    sessions.extend(self.store().session(id)?);
                }
                None
            }
        };
        sessions.retain(|session| fits(session, query));
        let filter = SessionFilter {
            directory: query.directory.clone(),
            project: query.project.clone(),
            roots_only: !query.children,
            search: query.search.clone(),
            before: before.map(|(time, _)| time.saturating_add(1)),
            not_archived: true,
            limit: Some(query.limit.saturating_add(MAX_EQUAL)),
            ..SessionFilter::default()
        };
        let found = self.store().sessions(&filter)?;
        let is_after = |session: &&Session| {
            before.is_none_or(|(time, id)| session.time.updated < time || session.id.as_str() > id)
        };
        let mut rest = found.iter().filter(is_after);
        let page: Vec<&Session> = rest.by_ref().take(query.limit).collect();
        let next = match (rest.next(), page.last()) {
            (Some(_), Some(last)) => Some(format!("{}:{}", last.time.updated, last.id)),
            _ => None,
        };
        let page = page.into_iter().filter(|it| !first.contains(&it.id));
        let all = sessions
            .iter()
            .chain(page)
            .filter(|it| allowed(Path::new(&it.directory)));
        let conversations = all.map(|it| self.conversation(it, &statuses, &waiting));
        Ok(Some(ConversationPage {
            conversations: conversations.collect::<Result<_, _>>()?,
            next,
        }))
    }

    /// Returns one conversation.
    ///
    /// # Errors
    /// Those of the store.
    pub fn find(
        &self,
        id: &SessionId,
    ) -> Result<Option<(Session, outrigger_api::Conversation)>, StoreError> {
        let Some(session) = self.store().session(id)? else {
            return Ok(None);
        };
        let (statuses, waiting) = (self.live().statuses(), self.live().waiting());
        let conversation = self.conversation(&session, &statuses, &waiting)?;
        Ok(Some((session, conversation)))
    }
}

fn fits(session: &Session, query: &ListQuery) -> bool {
    let folder = query.directory.as_ref();
    let project = query.project.as_ref();
    let text = query.search.as_ref().map(|text| text.to_ascii_lowercase());
    folder.is_none_or(|folder| *folder == session.directory)
        && project.is_none_or(|project| *project == session.project_id)
        && text.is_none_or(|text| session.title.to_ascii_lowercase().contains(&text))
}

fn cursor(text: &str) -> Option<(Millis, &str)> {
    let (time, id) = text.split_once(':')?;
    Some((time.parse().ok()?, id))
}
