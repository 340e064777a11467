//! Reading messages with their parts: all of a session, a page, or one.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part};
use rusqlite::{OptionalExtension as _, params};

use crate::error::StoreError;
use crate::read::{Reader, limit};

/// A value with the bytes of its stored text.
type Measured<T> = (T, usize);

impl Reader<'_> {
    pub(crate) fn messages(
        &self,
        session: &SessionId,
    ) -> Result<Vec<MessageWithParts>, StoreError> {
        let found = self.sized_messages(session)?;
        Ok(found.into_iter().map(|(message, _)| message).collect())
    }

    /// Returns the messages of a session, each with the bytes of its stored text.
    pub(crate) fn sized_messages(
        &self,
        session: &SessionId,
    ) -> Result<Vec<(MessageWithParts, u32)>, StoreError> {
        let infos = self.decoded(
            "message",
            "SELECT id, body FROM messages WHERE session = ? ORDER BY id",
            [session.as_str()],
        )?;
        let parts = self.decoded(
            "part",
            "SELECT id, body FROM parts WHERE session = ? ORDER BY message, id",
            [session.as_str()],
        )?;
        Ok(Self::joined(infos, parts))
    }

    /// Returns the first message of a session.
    pub(crate) fn first_message(
        &self,
        session: &SessionId,
    ) -> Result<Option<MessageWithParts>, StoreError> {
        let id: Option<String> = self.sql(|conn| {
            conn.prepare_cached("SELECT id FROM messages WHERE session = ? ORDER BY id LIMIT 1")?
                .query_row([session.as_str()], |row| row.get(0))
                .optional()
        })?;
        match id {
            Some(id) => self.message(session, &MessageId(id)),
            None => Ok(None),
        }
    }

    /// Returns the newest messages of a session up to a limit, in ascending order; only those older than `before`, if given.
    pub(crate) fn newest_messages(
        &self,
        session: &SessionId,
        before: Option<&MessageId>,
        most: usize,
    ) -> Result<Vec<MessageWithParts>, StoreError> {
        let mut infos: Vec<Measured<MessageInfo>> = match before {
            Some(before) => self.decoded(
                "message",
                "SELECT id, body FROM messages WHERE session = ? AND id < ? ORDER BY id DESC LIMIT ?",
                params![session.as_str(), before.as_str(), limit(Some(most))],
            )?,
            None => self.decoded(
                "message",
                "SELECT id, body FROM messages WHERE session = ? ORDER BY id DESC LIMIT ?",
                params![session.as_str(), limit(Some(most))],
            )?,
        };
        infos.reverse();
        let (Some(first), Some(last)) = (infos.first(), infos.last()) else {
            return Ok(Vec::new());
        };
        let parts = self.decoded(
            "part",
            "SELECT id, body FROM parts WHERE session = ? AND message >= ? AND message <= ? ORDER BY message, id",
            params![session.as_str(), first.0.id().as_str(), last.0.id().as_str()],
        )?;
        let found = Self::joined(infos, parts);
        Ok(found.into_iter().map(|(message, _)| message).collect())
    }

    /// Joins messages with their parts: both lists are sorted by message, so one pass suffices. Parts of a missing message
    /// are skipped.
    fn joined(
        infos: Vec<Measured<MessageInfo>>,
        parts: Vec<Measured<Part>>,
    ) -> Vec<(MessageWithParts, u32)> {
        let mut parts = parts.into_iter().peekable();
        let with_parts = |(info, mut size): Measured<MessageInfo>| {
            let mut own = Vec::new();
            while let Some((part, bytes)) = parts.next_if(|(part, _)| part.message_id <= *info.id())
            {
                if part.message_id == *info.id() {
                    size += bytes;
                    own.push(part);
                }
            }
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            // A message mostly has one part, is kept for long, and there are many.
            own.shrink_to_fit();
            (MessageWithParts { info, parts: own }, size)
        };
        infos.into_iter().map(with_parts).collect()
    }

    pub(crate) fn message(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Result<Option<MessageWithParts>, StoreError> {
        let found = self.sized_message(session, message)?;
        Ok(found.map(|(message, _)| message))
    }

    /// Returns one message with the bytes of its stored text.
    pub(crate) fn sized_message(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Result<Option<(MessageWithParts, u32)>, StoreError> {
        let key = [session.as_str(), message.as_str()];
        let infos = self.decoded(
            "message",
            "SELECT id, body FROM messages WHERE session = ? AND id = ?",
            key,
        )?;
        if infos.is_empty() {
            return Ok(None);
        }
        let parts = self.decoded(
            "part",
            "SELECT id, body FROM parts WHERE session = ? AND message = ? ORDER BY id",
            key,
        )?;
        Ok(Self::joined(infos, parts).into_iter().next())
    }
}
