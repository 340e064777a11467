//! The two status rows: activity, and model/agent.

use outrigger_protocol::session::SessionStatus;
use ratatui::style::Style;

use crate::app::App;
use crate::render::text::{Piece, Row, columns, cut, cut_words, inline, row};
use crate::render::theme::Role;
use crate::state::vi::Mode;

/// Renders the current activity.
pub(super) fn state(app: &App) -> Row {
    let style = |role| app.theme.style(role);
    let width = usize::from(app.size.0);
    let (text, role) = match (&app.notice, &app.conversation.status) {
        _ if app.leader => (
            "leader key: the next key is a command".to_owned(),
            Role::Warn,
        ),
        _ if app.is_lost => (
            "lost the connection to the server; the conversation is saved, and it is tried again"
                .to_owned(),
            Role::Bad,
        ),
        _ if app.asking.shown().is_some() => (
            with_notice(app, "▸ waits for your answer".to_owned()),
            Role::Warn,
        ),
        (
            _,
            Some(SessionStatus::Retry {
                attempt, message, ..
            }),
        ) if app.is_busy() => {
            let text = format!("▸ retry {attempt}, esc stops: {}", inline(message));
            (with_notice(app, text), Role::Warn)
        }
        _ if app.is_busy() => (with_notice(app, working(app)), Role::Accent),
        (Some((text, role)), _) => (inline(text), *role),
        _ if !app.progress.is_empty() => (inline(&app.progress), Role::Dim),
        _ if !app.scroll.follows() => (
            "earlier messages; end goes to the last".to_owned(),
            Role::Dim,
        ),
        _ => (String::new(), Role::Dim),
    };
    let rule = "─".repeat(width);
    if text.is_empty() {
        return row(vec![(rule, style(Role::Dim))]);
    }
    let text = format!(" {} ", cut_words(&text, width.saturating_sub(4)));
    let mut pieces: Vec<Piece> = vec![("─".to_owned(), style(Role::Dim)), (text, style(role))];
    let left = width.saturating_sub(columns(&pieces));
    pieces.push(("─".repeat(left), style(Role::Dim)));
    row(pieces)
}

/// What is worked on and what waits for the user comes before a notice.
fn with_notice(app: &App, text: String) -> String {
    match &app.notice {
        Some((notice, _)) => format!("{text} · {}", inline(notice)),
        None => text,
    }
}

fn working(app: &App) -> String {
    let mut text = match app.busy_for().unwrap_or_default() / 1000 {
        _ if let Some((slow, ms)) = app.waits_for_hook() => {
            let (plugin, hook) = (cut(&inline(&slow.plugin), 30), inline(&slow.hook));
            format!("▸ plugin {plugin}: {hook}, {} s; esc interrupts", ms / 1000)
        }
        0 => "▸ working; esc interrupts".to_owned(),
        seconds @ 1..60 => format!("▸ working {seconds} s; esc interrupts"),
        seconds => format!(
            "▸ working {} min {} s; esc interrupts",
            seconds / 60,
            seconds % 60
        ),
    };
    if let Some(first) = app.queued.front() {
        let first = inline(first.lines().next().unwrap_or_default());
        text.push_str(&format!(" · {} queued: {first}", app.queued.len()));
    }
    text
}

/// Renders agent and model, context usage, cost, and the folder.
pub(super) fn line(app: &App) -> Row {
    let style = |role| app.theme.style(role);
    let width = usize::from(app.size.0);
    let agent = app.agent.as_deref().unwrap_or("build");
    let mut left: Vec<Piece> = vec![(format!(" {}", inline(agent)), style(Role::Accent))];
    if let Some(vi) = &app.vi {
        let mode = match vi.mode {
            Mode::Insert => " -- INSERT --",
            Mode::Normal => " -- NORMAL --",
        };
        left.insert(0, (mode.to_owned(), style(Role::Text)));
    }
    if let Some(session) = app.session.as_ref().filter(|it| it.parent_id.is_some()) {
        let keys = app.keymap.key("session_parent");
        let title = cut(&inline(&session.title), 30);
        let text = format!(" · subagent: {title} ({keys} goes back)");
        left.push((text, style(Role::Warn)));
    }
    if let Some(model) = model(app) {
        left.push((format!(" · {}", inline(model)), style(Role::Dim)));
    }
    let mut right = Vec::new();
    if let Some((used, model)) = &app.context {
        right.push(match app.limits.get(model) {
            Some(limit) => format!("{}% context", used * 100 / limit.max(&1)),
            None => format!("{} tokens", thousands(*used)),
        });
    }
    if let Some(cost) = app
        .session
        .as_ref()
        .map(|it| it.cost)
        .filter(|it| *it > 0.0)
    {
        right.push(format!("${cost:.2}"));
    }
    right.push(inline(&app.folder));
    // On a narrow screen the folder is dropped first, then the rest.
    while !right.is_empty() && columns(&left) + right.join(" · ").len() + 3 > width {
        right.pop();
    }
    let right = right.join(" · ");
    let gap = width.saturating_sub(columns(&left) + columns(&[(right.clone(), Style::new())]) + 1);
    if gap == 0 {
        let text: String = left.iter().map(|(text, _)| text.as_str()).collect();
        return row(vec![(cut(&text, width), style(Role::Accent))]);
    }
    left.push((" ".repeat(gap), Style::new()));
    left.push((right, style(Role::Dim)));
    row(left)
}

/// Returns the model as people know it.
pub(crate) fn model(app: &App) -> Option<&str> {
    let chosen = app.model.as_ref();
    let own = app.session.as_ref().and_then(|it| it.model.as_ref());
    let (provider, model) = chosen
        .map(|it| (it.provider_id.as_str(), it.model_id.as_str()))
        .or(own.map(|it| (it.provider_id.as_str(), it.id.as_str())))
        .or_else(|| {
            let usual = app.usual_model.as_ref()?;
            Some((usual.provider_id.as_str(), usual.model_id.as_str()))
        })?;
    Some(app.conversation.names().of(provider, model))
}

fn thousands(tokens: u64) -> String {
    match tokens {
        0..=999 => tokens.to_string(),
        _ => format!("{}.{}k", tokens / 1000, tokens % 1000 / 100),
    }
}
