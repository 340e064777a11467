//! A selection list, filtered by what is typed.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::editor::Editor;

/// The kind of a list, which determines the effect of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Sessions of the project.
    Sessions,
    /// Models.
    Models,
    /// Agents.
    Agents,
    /// All commands.
    Commands,
    /// Themes.
    Themes,
    /// The user's prompts in this session.
    Timeline,
    /// Actions on one of them.
    Prompt,
    /// Whether to go on with an undo that was refused.
    ForceUndo,
    /// Lines of the conversation.
    Search,
    /// Texts of all conversations.
    Found,
    /// Sessions of subagents.
    Children,
    /// Earlier prompts.
    History,
    /// Plugins and their cost.
    Plugins,
    /// The keys.
    Help,
    /// Another title for a session, which is typed.
    Rename,
    /// Providers of models, to log in to.
    Providers,
    /// Login methods of one of them.
    LoginMethods,
    /// The key of a provider, which is typed.
    Key,
    /// MCP servers.
    Mcps,
    /// What is in use now.
    Status,
}

impl ListKind {
    /// Returns whether a text is typed instead of choosing a line.
    #[must_use]
    pub fn is_typed(self) -> bool {
        matches!(self, Self::Rename | Self::Key)
    }
}

/// A line of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The value of a choice.
    pub value: String,
    /// The displayed and searched text.
    pub label: String,
    /// Shown next to it.
    pub detail: String,
}

impl Item {
    /// Creates a line.
    pub fn new(
        value: impl Into<String>,
        label: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            value: value.into(),
            label: label.into(),
            detail: detail.into(),
        }
    }
}

/// An open list.
#[derive(Debug)]
pub struct Picker {
    /// Its kind.
    pub kind: ListKind,
    /// Its title.
    pub title: String,
    items: Vec<Item>,
    /// What is typed.
    pub filter: Editor,
    /// Indices of the matches, best first.
    shown: Vec<usize>,
    /// The selected line among them.
    pub at: usize,
    /// It is still being loaded.
    pub is_loading: bool,
    /// What the list is about: the session that gets a title, the provider that gets a key, the line that a second key deletes.
    pub subject: Option<String>,
}

impl Picker {
    /// Creates a list of these lines.
    pub fn new(kind: ListKind, title: impl Into<String>, items: Vec<Item>) -> Self {
        Self {
            kind,
            title: title.into(),
            shown: (0..items.len()).collect(),
            items,
            filter: Editor::default(),
            at: 0,
            is_loading: false,
            subject: None,
        }
    }

    /// Asks for a text about a subject, to begin with this one.
    pub fn typed(kind: ListKind, title: String, subject: &str, text: &str) -> Self {
        let mut picker = Self::new(kind, title, Vec::new());
        picker.subject = Some(subject.to_owned());
        picker.filter.set(text);
        picker
    }

    /// Appends lines. What is selected stays so.
    pub fn extend(&mut self, items: Vec<Item>) {
        self.items.extend(items);
        self.is_loading = false;
        self.amend(|_| {});
    }

    /// Removes a line. The one that takes its place is selected.
    pub fn remove(&mut self, value: &str) {
        let at = self.at;
        self.items.retain(|it| it.value != value);
        self.narrow();
        self.at = at.min(self.shown.len().saturating_sub(1));
    }

    /// Creates a list that is still being loaded.
    pub fn loading(kind: ListKind, title: impl Into<String>) -> Self {
        Self {
            is_loading: true,
            ..Self::new(kind, title, Vec::new())
        }
    }

    /// Sets its lines.
    pub fn fill(&mut self, items: Vec<Item>) {
        self.items = items;
        self.is_loading = false;
        self.narrow();
    }

    /// Changes its lines. What is selected stays so.
    pub fn amend(&mut self, change: impl FnMut(&mut Item)) {
        let chosen = self.chosen().map(|it| it.value.clone());
        self.items.iter_mut().for_each(change);
        self.narrow();
        if let Some(chosen) = chosen {
            self.mark(&chosen);
        }
    }

    /// Returns its lines.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the matches, best first.
    pub fn shown(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.shown.iter().map(|at| &self.items[*at])
    }

    /// Returns the selected line.
    #[must_use]
    pub fn chosen(&self) -> Option<&Item> {
        self.items.get(*self.shown.get(self.at)?)
    }

    /// Moves the selection.
    pub fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    /// Selects this line.
    pub fn mark(&mut self, value: &str) {
        let found = self.shown().position(|it| it.value == value);
        self.at = found.unwrap_or(0);
    }

    /// Filters again.
    pub fn narrow(&mut self) {
        let labels = self
            .items
            .iter()
            .map(|it| format!("{} {}", it.label, it.detail));
        // A search of text is literal: the user knows the words.
        let kind = match self.kind {
            ListKind::Search | ListKind::Found | ListKind::History => AtomKind::Substring,
            _ => AtomKind::Fuzzy,
        };
        self.shown = matching(self.filter.text(), labels, kind);
        self.at = 0;
    }
}

/// Returns the indices of the matching texts, best first.
pub fn fuzzy(wanted: &str, texts: impl Iterator<Item = String>) -> Vec<usize> {
    matching(wanted, texts, AtomKind::Fuzzy)
}

fn matching(wanted: &str, texts: impl Iterator<Item = String>, kind: AtomKind) -> Vec<usize> {
    if wanted.trim().is_empty() {
        return texts.enumerate().map(|(at, _)| at).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::new(wanted, CaseMatching::Smart, Normalization::Smart, kind);
    let mut buffer = Vec::new();
    let mut found: Vec<(u32, usize)> = texts
        .enumerate()
        .filter_map(|(at, text)| {
            let score = pattern.score(Utf32Str::new(&text, &mut buffer), &mut matcher)?;
            Some((score, at))
        })
        .collect();
    found.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
    found.into_iter().map(|(_, at)| at).collect()
}

/// Completions of the word at the cursor.
#[derive(Debug)]
pub struct Completion {
    /// The start of the word, in bytes of the prompt.
    pub from: usize,
    /// The possible completions.
    pub items: Vec<Item>,
    /// The selected one.
    pub at: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_fit_comes_first() {
        let texts = ["src/state/keys.rs", "docs/keys.md", "src/main.rs"];
        let of = |wanted| fuzzy(wanted, texts.iter().map(|it| (*it).to_owned()));
        assert_eq!(of(""), [0, 1, 2]);
        assert_eq!(of("main"), [2]);
        assert_eq!(of("dkeys").first(), Some(&1));
        let mut picker = Picker::new(
            ListKind::Models,
            "m",
            texts.map(|it| Item::new(it, it, "")).into(),
        );
        picker.filter.insert("keys");
        picker.narrow();
        picker.step(9);
        assert_eq!(picker.shown().len(), 2);
        picker.step(-9);
        assert!(picker.chosen().is_some());
    }
}
