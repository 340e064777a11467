//! Selects how much of a history stays unchanged when it is compacted.

use outrigger_config::Compaction;
use outrigger_models::max_output_tokens;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts};
use outrigger_protocol::model::ModelInfo;

use crate::history::active::is_compaction;
use crate::history::request;

/// Tokens reserved if the model has a limit for its input (OpenCode's number).
const RESERVED: u64 = 20_000;
/// Default minimum and maximum tokens of recent messages that stay (OpenCode's numbers).
const RECENT: (u64, u64) = (2_000, 15_000);

/// Estimates the tokens of a text as OpenCode does: a quarter of its characters.
#[must_use]
pub fn estimate(text: &str) -> u64 {
    let characters = text.chars().count() as u64;
    (characters + 2) / 4
}

/// Returns the estimated tokens of these messages in a request.
fn weight(messages: &[MessageWithParts]) -> u64 {
    let said: Vec<_> = messages.iter().flat_map(request::of_message).collect();
    let text = serde_json::to_string(&said).unwrap_or_default();
    estimate(&text)
}

/// Returns the number of tokens of a request with its answer at which the history is full; `None` if the model's limits
/// are unknown or leave no room. The rule is OpenCode's.
#[must_use]
pub fn usable(config: &Compaction, model: &ModelInfo) -> Option<u64> {
    if model.limit.context == 0 {
        return None;
    }
    let answer = max_output_tokens(model);
    let usable = match model.limit.input {
        Some(input) => input.saturating_sub(config.reserved.unwrap_or(RESERVED.min(answer))),
        None => model.limit.context.saturating_sub(answer),
    };
    Some(usable).filter(|tokens| *tokens > 0)
}

/// Returns the first message that stays, if any; it is never the first of all. Whole turns stay as long as they fit, from
/// the last one backwards; of the first that does not fit, as many messages as do. The rule is OpenCode's.
#[must_use]
pub fn tail(
    config: &Compaction,
    model: &ModelInfo,
    messages: &[MessageWithParts],
) -> Option<(usize, MessageId)> {
    let most = config
        .tail_turns
        .map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let quarter = usable(config, model).unwrap_or(0) / 4;
    let budget = config
        .preserve_recent_tokens
        .unwrap_or(quarter.clamp(RECENT.0, RECENT.1));
    let mut end = messages.len();
    let mut used = 0;
    let mut start = None;
    let turns: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, m)| matches!(m.info, MessageInfo::User(_)) && !is_compaction(m))
        .map(|(at, _)| at)
        .collect();
    for turn in turns.into_iter().rev().take(most.unwrap_or(usize::MAX)) {
        let size = weight(messages.get(turn..end)?);
        if used + size > budget {
            let left = budget - used;
            let fits = |at: &usize| messages.get(*at..end).is_some_and(|m| weight(m) <= left);
            if left > 0 {
                start = (turn + 1..end).find(fits).or(start);
            }
            break;
        }
        used += size;
        start = Some(turn);
        end = turn;
    }
    let start = start.filter(|at| *at > 0)?;
    Some((start, messages.get(start)?.info.id().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use outrigger_protocol::model::Limit;

    fn model(context: u64, input: Option<u64>, output: u64) -> ModelInfo {
        ModelInfo {
            limit: Limit {
                context,
                input,
                output,
            },
            ..ModelInfo::default()
        }
    }

    #[test]
    fn usable_by_table() {
        let with = |reserved| Compaction {
            reserved,
            ..Compaction::default()
        };
        for (config, model, want) in [
            (with(None), model(0, None, 100), None),
            (with(None), model(1000, None, 100), Some(900)),
            (with(Some(500)), model(1000, None, 100), Some(900)),
            (with(None), model(200_000, None, 64_000), Some(168_000)),
            (
                with(None),
                model(200_000, Some(100_000), 64_000),
                Some(80_000),
            ),
            (
                with(Some(500)),
                model(200_000, Some(100_000), 64_000),
                Some(99_500),
            ),
            (with(None), model(100, None, 100), None),
        ] {
            assert_eq!(
                usable(&config, &model),
                want,
                "{config:?} {:?}",
                model.limit
            );
        }
    }

    #[test]
    fn estimates_round_to_the_nearest() {
        for (text, want) in [("", 0), ("a", 0), ("ab", 1), ("abcd", 1), ("abcdef", 2)] {
            assert_eq!(estimate(text), want, "{text}");
        }
    }

    #[test]
    fn tails_by_table() {
        let long = "x".repeat(5000);
        let messages = vec![
            user("u1", "first"),
            answered("a1", "u1", &long),
            user("u2", "second"),
            answered("a2", "u2", &long),
            answered("a3", "u2", "short"),
            user("u3", "third"),
        ];
        let with = |tail_turns, preserve_recent_tokens| Compaction {
            tail_turns,
            preserve_recent_tokens,
            ..Compaction::default()
        };
        for (config, want) in [
            (with(Some(0), None), None),
            (with(Some(1), None), Some("u3")),
            (with(Some(2), None), Some("u2")),
            // 2000 tokens: the last two turns fit, and nothing of the first one.
            (with(None, None), Some("u2")),
            // Room for everything: then nothing would be left to summarise.
            (with(None, Some(100_000)), None),
            // The turn before the last one fits in part.
            (with(None, Some(100)), Some("a3")),
            (with(None, Some(20)), Some("u3")),
            (with(None, Some(0)), None),
        ] {
            let got = tail(&config, &model(10_000, None, 1000), &messages);
            assert_eq!(got.map(|(_, id)| id.0).as_deref(), want, "{config:?}");
        }
    }
}
