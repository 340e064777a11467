//! Conversations as clients see them (E1, E5): everything is read from the store, where it was written before anybody was sent it.
//!
//! [`Reader`] makes pages, lists and entries of what is stored. A [`Feed`] reads what is new, once for all clients; the events of agents only wake it,
//! and bring the pieces of a text that is being written, which are not stored. [`Follow`] is what one client is sent: what the log has
//! after the event that it saw last, then what comes. So nothing is lost or doubled, whatever ends in between.

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
pub use follow::{Follow, Wanted};
pub use list::ListQuery;
pub use outrigger_kernel::merge::Form;
pub use reader::{Live, Nothing, Reader};
pub use search::SearchQuery;
