//! Colours, limited to what the terminal supports.

use ratatui::style::{Color, Modifier, Style};

/// The number of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None: `NO_COLOR`, or a terminal without any.
    None,
    /// The sixteen that the user's terminal defines.
    Sixteen,
    /// The palette of 256.
    Palette,
    /// 24 bits.
    True,
}

impl Depth {
    /// Detects it from the environment.
    #[must_use]
    pub fn of(env: impl Fn(&str) -> Option<String>) -> Self {
        let term = env("TERM").unwrap_or_default();
        let has = env("COLORTERM").unwrap_or_default();
        match () {
            () if env("NO_COLOR").is_some_and(|it| !it.is_empty()) || term == "dumb" => Self::None,
            () if has == "truecolor" || has == "24bit" => Self::True,
            () if term.contains("256") => Self::Palette,
            () => Self::Sixteen,
        }
    }
}

impl Depth {
    /// Returns whether a terminal with this depth supports a colour.
    #[must_use]
    pub fn has(self, color: Color) -> bool {
        match color {
            Color::Rgb(..) => self == Self::True,
            Color::Indexed(16..) => matches!(self, Self::Palette | Self::True),
            _ => self != Self::None,
        }
    }
}

/// The role of a text, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Plain text.
    Text,
    /// Less important text.
    Dim,
    /// Interactive elements and titles.
    Accent,
    /// Text of the user.
    User,
    /// Something failed.
    Bad,
    /// Something succeeded.
    Good,
    /// Something that waits for the user.
    Warn,
    /// Code between backticks.
    Code,
    /// A keyword of a language.
    Keyword,
    /// A string or a number.
    Literal,
    /// A comment.
    Comment,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// The selected line of a list.
    Chosen,
}

/// Styles by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    name: &'static str,
    depth: Depth,
}

/// A colour in the three depths.
struct Shades(Color, u8, (u8, u8, u8));

impl Theme {
    /// The names of the themes.
    pub const NAMES: [&str; 3] = ["system", "dark", "light"];

    /// Creates a theme by its name; for an unknown name `system`, whose colours are those of the user's terminal.
    #[must_use]
    pub fn new(name: &str, depth: Depth) -> Self {
        let known = Self::NAMES.iter().find(|known| **known == name);
        Self {
            name: known.unwrap_or(&"system"),
            depth,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how many colours it may use.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Returns the style of a text with this role.
    #[must_use]
    pub fn style(&self, role: Role) -> Style {
        let style = match self.color(role) {
            Some(color) => Style::new().fg(color),
            None => Style::new(),
        };
        match (role, self.depth) {
            (Role::Chosen, _) => style.add_modifier(Modifier::REVERSED),
            (Role::User | Role::Accent | Role::Keyword, Depth::None) => {
                style.add_modifier(Modifier::BOLD)
            }
            (Role::Dim | Role::Comment, Depth::None) => style.add_modifier(Modifier::DIM),
            (Role::Bad | Role::Warn, Depth::None) => style.add_modifier(Modifier::BOLD),
            (Role::Removed, Depth::None) => style.add_modifier(Modifier::DIM),
            _ => style,
        }
    }

    fn color(&self, role: Role) -> Option<Color> {
        let light = self.name == "light";
        let shades = match role {
            Role::Text | Role::Chosen => return None,
            Role::Dim => Shades(Color::DarkGray, 245, (128, 134, 145)),
            Role::Accent => Shades(Color::Cyan, 74, (86, 156, 214)),
            Role::User => Shades(Color::Green, 72, (95, 175, 135)),
            Role::Bad => Shades(Color::LightRed, 203, (240, 98, 98)),
            Role::Good => Shades(Color::Green, 71, (106, 176, 76)),
            Role::Warn => Shades(Color::Yellow, 179, (222, 170, 80)),
            Role::Code => Shades(Color::Cyan, 73, (95, 180, 180)),
            Role::Keyword => Shades(Color::Magenta, 140, (180, 142, 222)),
            Role::Literal => Shades(Color::Green, 108, (150, 190, 130)),
            Role::Comment => Shades(Color::DarkGray, 243, (118, 124, 135)),
            Role::Added => Shades(Color::Green, 71, (106, 176, 76)),
            Role::Removed => Shades(Color::Red, 167, (215, 90, 90)),
        };
        let Shades(sixteen, palette, (r, g, b)) = shades;
        // The same hues, darker, on a light background.
        let darker = |value: u8| if light { value / 2 + value / 8 } else { value };
        match self.depth {
            Depth::None => None,
            Depth::Sixteen => Some(sixteen),
            _ if self.name == "system" => Some(sixteen),
            Depth::Palette if light => Some(Color::Indexed(in_cube([r, g, b].map(darker)))),
            Depth::Palette => Some(Color::Indexed(palette)),
            Depth::True => Some(Color::Rgb(darker(r), darker(g), darker(b))),
        }
    }
}

/// Returns the nearest colour of the palette's colour cube.
fn in_cube(rgb: [u8; 3]) -> u8 {
    let step = |value: u8| match value {
        0..=47 => 0,
        48..=114 => 1,
        value => (value - 35) / 40,
    };
    let [r, g, b] = rgb.map(step);
    16 + 36 * r + 6 * g + b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_how_many_colours_there_are() {
        for (vars, depth) in [
            (
                vec![("NO_COLOR", "1"), ("COLORTERM", "truecolor")],
                Depth::None,
            ),
            (vec![("TERM", "dumb")], Depth::None),
            (
                vec![("TERM", "xterm"), ("COLORTERM", "truecolor")],
                Depth::True,
            ),
            (
                vec![("TERM", "xterm-256color"), ("NO_COLOR", "")],
                Depth::Palette,
            ),
            (vec![("TERM", "linux")], Depth::Sixteen),
        ] {
            let env = |name: &str| {
                vars.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Depth::of(env), depth, "{vars:?}");
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let theme = Theme::new("dark", Depth::None);
        for role in [Role::Dim, Role::Bad, Role::Added, Role::Chosen] {
            assert_eq!(theme.style(role).fg, None);
        }
    }
}
