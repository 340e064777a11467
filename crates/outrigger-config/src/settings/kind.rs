//! What a setting may be, and reading a value of that kind.

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number in this range.
    Whole(i64, i64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// The path of a program. With a slash in it, a relative one starts at the declaring file's folder.
    Program,
    /// A list of names of environment variables.
    Variables,
    /// A list of TCP ports.
    Ports,
    /// A list of names.
    Names,
    /// A text that is not empty.
    Text,
    /// A list of whole numbers.
    Numbers,
    /// A list of folders. A relative one starts at the declaring file's folder.
    Folders,
}

/// A value of the right kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// For `Kind::Bool`.
    Bool(bool),
    /// For `Kind::Whole`.
    Whole(i64),
    /// For `Kind::Word`, `Kind::Program` and `Kind::Text`.
    Text(String),
    /// For `Kind::Variables`, `Kind::Names` and `Kind::Folders`, and for `Kind::Ports` and `Kind::Numbers` in decimal.
    List(Vec<String>),
}

impl Kind {
    /// In words.
    pub fn expected(self) -> String {
        match self {
            Self::Bool => "true or false".into(),
            Self::Whole(0, _) => "a whole number".into(),
            Self::Whole(least, most) if least < 0 => {
                format!("a whole number from {least} to {most}")
            }
            Self::Whole(least, _) => format!("a whole number from {least}"),
            Self::Word(words) => words
                .iter()
                .map(|word| format!("\"{word}\""))
                .collect::<Vec<_>>()
                .join(" or "),
            Self::Program => "the path of a program as text".into(),
            Self::Variables => "a list of names of variables as text".into(),
            Self::Ports => "a list of port numbers from 1 to 65535".into(),
            Self::Names => "a list of names".into(),
            Self::Folders => "a list of folders".into(),
            Self::Text => "a text".into(),
            Self::Numbers => "a list of whole numbers".into(),
        }
    }

    /// A value of this kind, as TOML has it.
    #[cfg(test)]
    pub(crate) fn sample(self) -> String {
        match self {
            Self::Bool => "true".into(),
            Self::Whole(least, _) => least.max(1).to_string(),
            Self::Word(words) => format!("\"{}\"", words[0]),
            Self::Program | Self::Text => "\"x\"".into(),
            Self::Variables | Self::Names | Self::Folders => "[\"X\"]".into(),
            Self::Ports | Self::Numbers => "[80]".into(),
        }
    }

    /// The value if it is of this kind.
    pub(crate) fn accept(self, leaf: Leaf) -> Option<Leaf> {
        let fits = match (self, &leaf) {
            (Self::Bool, Leaf::Bool(_)) => true,
            (Self::Whole(least, most), Leaf::Whole(number)) => (least..=most).contains(number),
            (Self::Word(words), Leaf::Text(text)) => words.contains(&text.as_str()),
            (Self::Program | Self::Text, Leaf::Text(text)) => !text.is_empty(),
            (Self::Variables, Leaf::List(names)) => names.iter().all(|name| is_variable(name)),
            (Self::Ports, Leaf::List(ports)) => ports
                .iter()
                .all(|port| port.parse::<u16>().is_ok_and(|port| port > 0)),
            (Self::Numbers, Leaf::List(list)) => {
                list.iter().all(|number| number.parse::<i64>().is_ok())
            }
            (Self::Folders, Leaf::List(names)) => names.iter().all(|name| !name.is_empty()),
            (Self::Names, Leaf::List(names)) => names
                .iter()
                .all(|name| !name.is_empty() && name.parse::<i64>().is_err()),
            _ => false,
        };
        fits.then_some(leaf)
    }

    /// The value of a text, as the environment has it.
    pub(crate) fn parse(self, text: &str) -> Option<Leaf> {
        let leaf = match self {
            Self::Bool => match text {
                "1" | "true" | "on" | "yes" => Leaf::Bool(true),
                "0" | "false" | "off" | "no" => Leaf::Bool(false),
                _ => return None,
            },
            Self::Whole(..) => Leaf::Whole(text.parse().ok()?),
            Self::Word(_) | Self::Program | Self::Text => Leaf::Text(text.into()),
            Self::Variables | Self::Ports | Self::Names | Self::Folders | Self::Numbers => {
                let items = text.split(',').map(str::trim);
                Leaf::List(
                    items
                        .filter(|item| !item.is_empty())
                        .map(str::to_owned)
                        .collect(),
                )
            }
        };
        self.accept(leaf)
    }
}

impl Leaf {
    pub(super) fn bool(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    pub(super) fn whole(&self) -> i64 {
        if let Self::Whole(number) = self {
            *number
        } else {
            0
        }
    }

    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.whole()).unwrap_or_default()
    }

    pub(super) fn text(&self) -> &str {
        if let Self::Text(text) = self {
            text
        } else {
            ""
        }
    }

    pub(super) fn list(&self) -> &[String] {
        if let Self::List(items) = self {
            items
        } else {
            &[]
        }
    }
}

/// No pattern and no value: what is granted is named in full.
fn is_variable(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}
