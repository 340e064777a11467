//! Who answers permission questions.

/// Who answers a question that no rule answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answering {
    /// Refuse at once: there is no user to wait for.
    #[default]
    Refuse,
    /// `--auto`: allow, unless a rule denies it.
    Allow,
    /// Wait for a client to answer through [`Agent::answer`](crate::Agent::answer).
    Ask,
}
