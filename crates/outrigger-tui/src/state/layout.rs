//! Rows of blocks, cached while they are near the screen, and the scroll position.
//!
//! The position is a block and a row in it, never a number of rows from the start: blocks above are laid out when they come into
//! view, so a long conversation costs nothing, and changes elsewhere do not move what is being read.

use std::collections::VecDeque;

use super::conversation::{Block, Conversation, Kind};
use crate::render::card::{self, Look};
use crate::render::markdown::Stream;
use crate::render::text::{Row, inline, lines, row, wrap};
use crate::render::theme::{Role, Theme};

/// Minimum number of blocks whose rows are cached.
const KEPT: usize = 200;
/// Rows of folded reasoning.
const FOLDED_REASONING: usize = 1;

/// The rows of a block.
#[derive(Debug, Default)]
pub struct Cache {
    rows: Option<Vec<Row>>,
    stream: Stream,
    look: Option<Shape>,
}

impl Cache {
    /// Invalidates the rows.
    pub fn outdate(&mut self) {
        *self = Self::default();
    }

    /// Returns whether its rows are cached.
    #[must_use]
    pub fn is_laid_out(&self) -> bool {
        self.rows.is_some()
    }

    /// Records that the text has grown at its end.
    pub fn grow(&mut self) {
        self.rows = None;
    }
}

/// The settings that determine the layout of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns.
    pub width: usize,
    /// Colours.
    pub theme: Theme,
    /// Cards are expanded.
    pub details: bool,
    /// Reasoning is shown.
    pub thinking: bool,
}

/// The scroll position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    /// The row at the top: a block and a row in it. `None` follows the end.
    top: Option<(String, usize)>,
}

impl Scroll {
    /// Returns whether it follows the end.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.top.is_none()
    }

    /// Follows the end.
    pub fn to_end(&mut self) {
        self.top = None;
    }

    /// Scrolls to a block.
    pub fn to(&mut self, block: &str) {
        self.top = Some((block.to_owned(), 0));
    }

    /// Scrolls down by this many rows, or up if negative, on a screen of this height. Returns whether it is at the start.
    pub fn by(
        &mut self,
        rows: isize,
        conversation: &mut Conversation,
        shape: Shape,
        height: usize,
    ) -> bool {
        let blocks = conversation.blocks_mut();
        let Some((mut at, row)) = self.place(blocks, shape, height) else {
            return true;
        };
        let mut row = row.cast_signed() + rows;
        while row < 0 && at > 0 {
            at -= 1;
            row += laid_out(blocks, at, shape).cast_signed();
        }
        let is_start = at == 0 && row <= 0;
        row = row.max(0);
        while let Some(rows) =
            (at + 1 < blocks.len()).then(|| laid_out(blocks, at, shape).cast_signed())
            && row >= rows
        {
            row -= rows;
            at += 1;
        }
        let mut left = laid_out(blocks, at, shape).cast_signed() - row;
        for below in at + 1..blocks.len() {
            if left > height.cast_signed() {
                break;
            }
            left += laid_out(blocks, below, shape).cast_signed();
        }
        self.top = if left <= height.cast_signed() {
            None
        } else {
            blocks
                .get(at)
                .map(|it| (it.id.clone(), row.cast_unsigned()))
        };
        is_start
    }

    /// Scrolls to the first row of a block that contains this text, or to its first row.
    pub fn to_text(
        &mut self,
        block: &str,
        text: &str,
        conversation: &mut Conversation,
        shape: Shape,
    ) {
        let blocks = conversation.blocks_mut();
        let Some(at) = blocks.iter().rposition(|it| it.id == block) else {
            return;
        };
        laid_out(blocks, at, shape);
        let wanted = text.trim().to_lowercase();
        let rows = blocks
            .get(at)
            .and_then(|it| it.cache.rows.as_deref())
            .unwrap_or_default();
        let first_with = |wanted: &str| {
            (rows.iter()).position(|it| it.to_string().to_lowercase().contains(wanted))
        };
        // Words of a search need not follow each other.
        let found = first_with(&wanted).or_else(|| wanted.split_whitespace().find_map(first_with));
        self.top = Some((block.to_owned(), found.unwrap_or(0)));
    }

    /// Returns the block in a row of a screen of this height.
    #[must_use]
    pub fn block_at(
        &self,
        row: usize,
        conversation: &mut Conversation,
        shape: Shape,
        height: usize,
    ) -> Option<String> {
        let blocks = conversation.blocks_mut();
        let (first, skipped) = self.place(blocks, shape, height)?;
        let (mut ends, mut shown) = (Vec::new(), 0);
        for at in first..blocks.len() {
            shown += laid_out(blocks, at, shape) - if at == first { skipped } else { 0 };
            ends.push((shown, at));
            if shown >= height {
                break;
            }
        }
        // Short content is at the bottom.
        let row = row.checked_sub(height.saturating_sub(shown))?;
        let (_, at) = ends.into_iter().find(|(end, _)| row < *end)?;
        blocks.get(at).map(|it| it.id.clone())
    }

    /// Returns the rows on a screen of this height.
    pub fn visible(
        &self,
        conversation: &mut Conversation,
        shape: Shape,
        height: usize,
    ) -> Vec<Row> {
        let blocks = conversation.blocks_mut();
        let mut shown = VecDeque::new();
        let Some((first, skipped)) = self.place(blocks, shape, height) else {
            return Vec::new();
        };
        let mut last = first;
        for at in first..blocks.len() {
            laid_out(blocks, at, shape);
            let skipped = if at == first { skipped } else { 0 };
            let rows = blocks
                .get(at)
                .and_then(|it| it.cache.rows.as_deref())
                .unwrap_or_default();
            shown.extend(
                rows.iter()
                    .skip(skipped)
                    .take(height - shown.len())
                    .cloned(),
            );
            last = at;
            if shown.len() >= height {
                break;
            }
        }
        forget(blocks, first, last);
        shown.into()
    }

    /// Returns block and row at the top.
    fn place(&self, blocks: &mut [Block], shape: Shape, height: usize) -> Option<(usize, usize)> {
        let anchored = self.top.as_ref().and_then(|(id, row)| {
            let at = blocks.iter().rposition(|it| it.id == *id)?;
            Some((at, *row))
        });
        if let Some((at, row)) = anchored {
            // After a change of width, the same part of the block is at the top.
            let before = blocks
                .get(at)
                .and_then(|it| Some((it.cache.look?, it.cache.rows.as_ref()?.len())));
            let rows = laid_out(blocks, at, shape);
            let row = match before {
                Some((look, before)) if look.width != shape.width && before > 0 => {
                    row * rows / before
                }
                _ => row,
            };
            let row = row.min(rows.saturating_sub(1));
            // Where less than a screen is below it, the end is shown: no row is left blank.
            if fills(blocks, at, row, shape, height) {
                return Some((at, row));
            }
        }
        let mut left = height;
        for at in (0..blocks.len()).rev() {
            let rows = laid_out(blocks, at, shape);
            if rows >= left {
                return Some((at, rows - left));
            }
            left -= rows;
        }
        (!blocks.is_empty()).then_some((0, 0))
    }
}

/// Returns whether the rows from here on fill a screen of this height.
fn fills(blocks: &mut [Block], at: usize, row: usize, shape: Shape, height: usize) -> bool {
    let mut wanted = height + row;
    for at in at..blocks.len() {
        wanted = wanted.saturating_sub(laid_out(blocks, at, shape));
        if wanted == 0 {
            return true;
        }
    }
    false
}

/// Lays a block out, unless it is; returns its number of rows.
fn laid_out(blocks: &mut [Block], at: usize, shape: Shape) -> usize {
    let previous = at.checked_sub(1).and_then(|at| blocks.get(at));
    let gap = previous.is_some_and(|it| is_apart(&it.kind, blocks.get(at).map(|it| &it.kind)));
    let Some(block) = blocks.get_mut(at) else {
        return 0;
    };
    if block.cache.look != Some(shape) {
        block.cache.rows = None;
        block.cache.look = Some(shape);
    }
    if block.cache.rows.is_none() {
        let own = Shape {
            details: shape.details != block.is_toggled,
            thinking: shape.thinking != block.is_toggled,
            ..shape
        };
        let mut rows = rows(&block.kind, &mut block.cache.stream, own);
        #[cfg(test)]
        tests::LAID_OUT.with(|it| it.set(it.get() + rows.len()));
        if gap && !rows.is_empty() {
            rows.insert(0, Row::default());
        }
        block.cache.rows = Some(rows);
    }
    block.cache.rows.as_ref().map_or(0, Vec::len)
}

/// Returns whether a blank row separates two blocks. Calls follow each other without one.
fn is_apart(before: &Kind, after: Option<&Kind>) -> bool {
    !matches!(
        (before, after),
        (Kind::Tool(..), Some(Kind::Tool(..))) | (_, Some(Kind::File(_)))
    )
}

/// Drops the cached rows of blocks far from the screen.
fn forget(blocks: &mut [Block], first: usize, last: usize) {
    let kept = blocks.iter().filter(|it| it.cache.rows.is_some()).count();
    if kept <= 2 * KEPT + last - first {
        return;
    }
    for (at, block) in blocks.iter_mut().enumerate() {
        if at + KEPT / 2 < first || at > last + KEPT / 2 {
            block.cache.outdate();
        }
    }
}

fn rows(kind: &Kind, stream: &mut Stream, shape: Shape) -> Vec<Row> {
    let Shape { width, theme, .. } = shape;
    let style = |role| theme.style(role);
    match kind {
        Kind::User(text) => {
            let bar = vec![("┃ ".to_owned(), style(Role::User))];
            let lines = lines(text.trim_end());
            lines
                .split('\n')
                .map(|line| vec![(line.to_owned(), style(Role::Text))])
                .flat_map(|it| wrap(&it, width, &bar, &bar))
                .collect()
        }
        Kind::File(name) => {
            let bar = vec![("┃ ".to_owned(), style(Role::User))];
            wrap(
                &[(format!("file {}", inline(name)), style(Role::Dim))],
                width,
                &bar,
                &bar,
            )
        }
        Kind::Text(text) if text.trim().is_empty() => Vec::new(),
        Kind::Text(text) => stream.rows(&lines(text), width, &theme),
        Kind::Reasoning(text, _) if text.trim().is_empty() => Vec::new(),
        Kind::Reasoning(text, done) => reasoning(text, *done, shape),
        Kind::Tool(part, root) => match &part.kind {
            outrigger_protocol::message::PartKind::Tool(call) => {
                let look = Look {
                    width,
                    theme: &theme,
                    is_open: shape.details,
                    root,
                };
                card::rows(part, call, look)
            }
            _ => Vec::new(),
        },
        Kind::Failed(text) => failed(text, width, theme),
        Kind::Note(text) => wrap(
            &[(format!("~ {}", inline(text)), style(Role::Dim))],
            width,
            &[],
            &[],
        ),
        Kind::Footer(footer) => wrap(
            &[(format!("▣ {}", inline(&footer.text())), style(Role::Dim))],
            width,
            &[],
            &[],
        ),
    }
}

fn failed(text: &str, width: usize, theme: Theme) -> Vec<Row> {
    let style = theme.style(Role::Bad);
    let bar = vec![("✗ ".to_owned(), style)];
    let next = vec![("  ".to_owned(), style)];
    let lines = lines(text.trim_end());
    lines
        .split('\n')
        .map(|line| vec![(line.to_owned(), style)])
        .enumerate()
        .flat_map(|(n, it)| {
            let first = if n == 0 { &bar } else { &next };
            wrap(&it, width, first, &next)
        })
        .collect()
}

/// Renders reasoning, folded to its last row while it streams and afterwards.
fn reasoning(text: &str, done: bool, shape: Shape) -> Vec<Row> {
    let style = shape
        .theme
        .style(Role::Dim)
        .add_modifier(ratatui::style::Modifier::ITALIC);
    if !shape.thinking {
        let words = text.split_whitespace().count();
        let state = if done { "thought" } else { "thinking" };
        let fold = format!("∴ {state}, {words} words");
        return vec![row(vec![(fold, style)])]
            .into_iter()
            .take(FOLDED_REASONING)
            .collect();
    }
    let bar = vec![("∴ ".to_owned(), style)];
    let lines = lines(text.trim());
    lines
        .split('\n')
        .map(|line| vec![(line.to_owned(), style)])
        .flat_map(|it| wrap(&it, shape.width, &bar, &bar))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    std::thread_local! {
        /// The number of rows laid out in this thread.
        pub(crate) static LAID_OUT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }
}
