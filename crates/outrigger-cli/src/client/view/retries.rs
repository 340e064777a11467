//! Retried requests.

use outrigger_protocol::Millis;

use crate::terminal::{Paint, entry};

/// The reason of the last retry.
#[derive(Default)]
pub(super) struct Retries(Option<String>);

impl Retries {
    /// Returns the line about a retry: the reason, unless it was shown already, and the time.
    pub(super) fn line(
        &mut self,
        paint: Paint,
        attempt: u32,
        message: &str,
        next: Millis,
    ) -> String {
        let is_same = self.0.as_deref() == Some(message);
        self.0 = Some(message.to_owned());
        let why = if is_same { "the same" } else { message };
        let now = outrigger_stdx::clock::now_ms();
        let wait = match next.saturating_sub(now).div_ceil(1000) {
            0 => String::new(),
            seconds if attempt == 1 => format!("; again in {seconds} s (ctrl+c stops)"),
            seconds => format!("; again in {seconds} s"),
        };
        paint.dim(&entry(&format!("~ try {attempt}: {why}{wait}")))
    }
}
