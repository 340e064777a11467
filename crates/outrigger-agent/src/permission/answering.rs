//! Who answers permission questions.

/// Who answers a question that no rule answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answering {
    /// Nobody is there: refused at once, never waited for.
    #[default]
    Refuse,
    /// `--auto`: allowed, unless a rule denies it.
    Allow,
    /// A client answers through [`Agent::answer`](crate::Agent::answer).
    Ask,
}
