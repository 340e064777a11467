//! Conversations for clients (E1, E5): everything is read from the store, where it is written before it is published.
//!
//! [`Reader`] builds pages, lists and entries from stored data. A [`Feed`] reads new data once for all clients; the events of agents only
//! wake it, and provide the pieces of texts in progress, which are not stored. [`Follow`] is the stream of one client: the log after the
//! event that it saw last, then new events. So nothing is lost or duplicated, whatever ends in between.

mod external;
mod feed;
mod follow;
mod list;
mod reader;
mod search;
mod shorten;
#[cfg(test)]
mod tests;
mod trace;

pub use external::ExternalAnswer;
pub use feed::Feed;
pub use follow::{Follow, FollowOptions};
pub use list::ListQuery;
pub use outrigger_kernel::merge::Form;
pub use reader::{Live, Nothing, Reader};
pub use search::SearchQuery;
