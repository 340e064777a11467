//! Blame for an unresponsive process: the code that it reported to have entered and not yet left.
//!
//! Code that was entered and has since yielded the thread (its promise waits) is still open, but a later spin or exit
//! may be caused by any code, such as a timer of another plugin. So the process reports each turn of its event loop,
//! and only code entered since then is suspected.

use outrigger_protocol::rpc::Enter;

/// Entries in the order in which they were made. One for each open call, since a call runs one handler at a time, and
/// at most one that belongs to no call (an event hook).
#[derive(Debug, Default)]
pub(crate) struct Entered {
    open: Vec<OpenEntry>,
}

#[derive(Debug)]
struct OpenEntry {
    enter: Enter,
    yielded: bool,
}

impl OpenEntry {
    // A module is evaluated some turns after its import started, so a turn proves nothing there.
    fn is_import(&self) -> bool {
        self.enter.what == "import"
    }
}

impl Entered {
    /// Records that the process is about to enter a plugin's code. Imports run concurrently under one call, so they
    /// accumulate.
    pub(crate) fn enter(&mut self, enter: Enter) {
        let parallel = enter.what == "import";
        if !parallel {
            self.open.retain(|open| {
                open.enter.call != enter.call
                    || (open.is_import() && open.enter.plugin != enter.plugin)
            });
        }
        self.open.push(OpenEntry {
            enter,
            yielded: false,
        });
    }

    /// Records that the code entered for no call has returned.
    pub(crate) fn leave(&mut self) {
        self.open.retain(|open| open.enter.call.is_some());
    }

    /// The event loop has turned.
    pub(crate) fn turned(&mut self) {
        for open in &mut self.open {
            open.yielded = !open.is_import();
        }
    }

    /// Records that the call, or its running handler, has answered.
    pub(crate) fn answered(&mut self, call: u64) {
        self.open.retain(|open| open.enter.call != Some(call));
    }

    /// Returns the code that was entered last and not left.
    pub(crate) fn last(&self) -> Option<Enter> {
        self.open.last().map(|open| open.enter.clone())
    }

    /// Returns all entered code, oldest first.
    pub(crate) fn all(&self) -> Vec<Enter> {
        self.open.iter().map(|open| open.enter.clone()).collect()
    }

    /// Returns the code that may hold the thread now, oldest first.
    pub(crate) fn suspects(&self) -> Vec<Enter> {
        let open = self.open.iter().filter(|open| !open.yielded);
        open.map(|open| open.enter.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(plugin: &str, what: &str, call: Option<u64>) -> Enter {
        Enter {
            plugin: plugin.into(),
            what: what.into(),
            call,
        }
    }

    fn open(entered: &Entered) -> String {
        names(&entered.all())
    }

    fn names(entries: &[Enter]) -> String {
        let names: Vec<String> = entries
            .iter()
            .map(|open| format!("{}/{}", open.plugin, open.what))
            .collect();
        names.join(" ")
    }

    #[test]
    fn a_call_blames_the_handler_it_entered_last() {
        let mut entered = Entered::default();
        entered.enter(enter("a", "chat.message", Some(1)));
        entered.enter(enter("b", "tool:x", Some(2)));
        entered.enter(enter("c", "event", None));
        assert_eq!(open(&entered), "a/chat.message b/tool:x c/event");
        entered.leave();
        entered.answered(1);
        entered.enter(enter("b", "chat.message", Some(1)));
        assert_eq!(open(&entered), "b/tool:x b/chat.message");
        assert_eq!(entered.last().unwrap().what, "chat.message");
        entered.answered(1);
        entered.answered(2);
        assert_eq!(open(&entered), "");
    }

    #[test]
    fn imports_add_up_until_their_plugin_starts() {
        let mut entered = Entered::default();
        entered.enter(enter("a", "import", Some(1)));
        entered.enter(enter("b", "import", Some(1)));
        assert_eq!(open(&entered), "a/import b/import");
        entered.enter(enter("a", "server", Some(1)));
        assert_eq!(open(&entered), "b/import a/server");
        entered.enter(enter("b", "server", Some(1)));
        assert_eq!(open(&entered), "b/server");
    }

    #[test]
    fn what_has_let_go_of_the_thread_is_open_and_not_suspected() {
        let mut entered = Entered::default();
        entered.enter(enter("a", "import", Some(1)));
        entered.enter(enter("b", "chat.message", Some(2)));
        entered.turned();
        assert_eq!(open(&entered), "a/import b/chat.message");
        assert_eq!(names(&entered.suspects()), "a/import");
        entered.enter(enter("c", "chat.params", Some(3)));
        assert_eq!(names(&entered.suspects()), "a/import c/chat.params");
        // It continues with its next item.
        entered.enter(enter("b", "chat.message", Some(2)));
        assert_eq!(
            names(&entered.suspects()),
            "a/import c/chat.params b/chat.message"
        );
    }
}
