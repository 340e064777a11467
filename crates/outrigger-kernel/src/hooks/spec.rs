//! The table of hook points: the names of each, when it is reached, and what handlers may do there.

/// When a point is reached, relative to its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before it happens.
    Before,
    /// After it has happened.
    After,
    /// After it has failed.
    Error,
    /// Notification only: nothing waits for the answer.
    Observe,
}

/// Time limit of a handler (C5). The milliseconds are defaults; settings may change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Pure policy: 500 ms.
    Fast,
    /// Hooks of JS plugins: 5 s.
    Normal,
    /// Loading: 10 s.
    Load,
    /// Authentication: 30 s.
    Slow,
}

impl Deadline {
    /// Returns the default in milliseconds.
    #[must_use]
    pub const fn default_ms(self) -> u64 {
        match self {
            Self::Fast => 500,
            Self::Normal => 5_000,
            Self::Load => 10_000,
            Self::Slow => 30_000,
        }
    }
}

/// Meaning of a throw at a point (C5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Reported; the chain continues with the output from before the handler.
    Open,
    /// Refusal: the text becomes the tool's error, as in OpenCode. A timeout is still `Open`.
    ThrowBlocks,
}

/// JSON type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of JSON's types")]
pub enum Kind {
    Any,
    String,
    Number,
    Bool,
    Array,
    Object,
}

impl Kind {
    /// Returns its name in JavaScript (`typeof`, or `array`); `any` for all.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::String => "string",
            Self::Number => "number",
            Self::Bool => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// A field of `output` that a handler may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Key; `*` for any.
    pub key: &'static str,
    /// Required type afterwards.
    pub kind: Kind,
    /// It must still exist afterwards.
    pub required: bool,
}

impl Field {
    /// Returns a field that must still exist afterwards.
    #[must_use]
    pub const fn required(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            required: true,
        }
    }

    /// Returns a field that may be absent.
    #[must_use]
    pub const fn optional(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            kind,
            required: false,
        }
    }
}

/// A hook point: its row in the table of `docs/hooks.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointSpec {
    /// Outrigger's name, `domain.phase_name`.
    pub name: &'static str,
    /// Key under which plugins register a handler: OpenCode's name if there is one, else Outrigger's. A plugin may also
    /// use the point's own name.
    pub hook: &'static str,
    /// When it is reached.
    pub phase: Phase,
    /// Fields that may be changed. Empty: observe only.
    pub patch: &'static [Field],
    /// A handler may refuse.
    pub block: bool,
    /// How long a handler may take.
    pub deadline: Deadline,
    /// Meaning of a throw.
    pub failure: Failure,
    /// Keys of `input`, for the docs.
    pub input: &'static str,
    /// Description for the docs.
    pub about: &'static str,
}

impl PointSpec {
    /// Returns it as it is; in the browser extension, which is to load little, without what is for the docs.
    pub(super) const fn without_docs_in_browser(self) -> Self {
        if cfg!(target_arch = "wasm32") {
            Self {
                input: "",
                about: "",
                ..self
            }
        } else {
            self
        }
    }
}
