//! The usage of another vendor's turn, from its lines.

use outrigger_protocol::message::{CacheTokens, Tokens};
use serde_json::Value;

/// Maximum plausible cost of one turn in US dollars; larger values are ignored.
const MAX_COST: f64 = 100_000.0;
/// Maximum plausible number of tokens.
const MAX_TOKENS: u64 = 1 << 40;

/// Tokens and cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    /// Tokens.
    pub tokens: Tokens,
    /// US dollars; 0 if the agent does not report it.
    pub cost: f64,
}

impl Used {
    /// Reads the `result` of Claude Code, whose input excludes the cache.
    pub(crate) fn of_claude(result: &Value) -> Self {
        let of = |key: &str| count(result, &format!("/usage/{key}"));
        let thought = of("output_tokens_details/thinking_tokens");
        Self {
            tokens: Tokens {
                total: None,
                input: of("input_tokens"),
                output: of("output_tokens").saturating_sub(thought),
                reasoning: thought,
                cache: CacheTokens {
                    read: of("cache_read_input_tokens"),
                    write: of("cache_creation_input_tokens"),
                },
            },
            cost: price(result.get("total_cost_usd")),
        }
    }

    /// Reads a `thread/tokenUsage/updated` of Codex: its last request to the model.
    pub(crate) fn of_codex(params: &Value) -> Self {
        let of = |key: &str| count(params, &format!("/tokenUsage/last/{key}"));
        let (read, write) = (of("cachedInputTokens"), of("cacheWriteInputTokens"));
        let thought = of("reasoningOutputTokens");
        Self {
            tokens: Tokens {
                total: None,
                input: of("inputTokens").saturating_sub(read + write),
                output: of("outputTokens").saturating_sub(thought),
                reasoning: thought,
                cache: CacheTokens { read, write },
            },
            cost: 0.0,
        }
    }

    /// Reads the `result` of Gemini CLI.
    pub(crate) fn of_gemini(result: &Value) -> Self {
        let of = |key: &str| count(result, &format!("/stats/{key}"));
        let read = of("cached");
        Self {
            tokens: Tokens {
                total: None,
                input: of("input_tokens").saturating_sub(read),
                output: of("output_tokens"),
                reasoning: 0,
                cache: CacheTokens { read, write: 0 },
            },
            cost: 0.0,
        }
    }

    /// Reads the response to a prompt of the Agent Client Protocol.
    pub(crate) fn tokens_of_acp(&mut self, answer: &Value) {
        let of = |key: &str| count(answer, &format!("/result/usage/{key}"));
        self.tokens = Tokens {
            total: None,
            input: of("inputTokens"),
            output: of("outputTokens"),
            reasoning: of("thoughtTokens"),
            cache: CacheTokens {
                read: of("cachedReadTokens"),
                write: of("cachedWriteTokens"),
            },
        };
    }

    /// Reads its `usage_update`, which contains the cost of the whole session: that of this turn if the session is
    /// new.
    pub(crate) fn cost_of_acp(&mut self, update: &Value, is_resumed: bool) {
        let cost = update.get("cost");
        let is_dollars = cost
            .and_then(|it| it.get("currency"))
            .and_then(Value::as_str);
        if is_dollars == Some("USD") && !is_resumed {
            self.cost = price(cost.and_then(|it| it.get("amount")));
        }
    }

    /// Adds it to a session's usage.
    pub fn add_to(&self, tokens: &mut Tokens, cost: &mut f64) {
        let mut all = Self {
            tokens: std::mem::take(tokens),
            cost: *cost,
        };
        all.add(self);
        (*tokens, *cost) = (all.tokens, all.cost);
    }

    /// Adds further usage.
    pub(crate) fn add(&mut self, more: &Self) {
        let (tokens, other) = (&mut self.tokens, &more.tokens);
        tokens.input += other.input;
        tokens.output += other.output;
        tokens.reasoning += other.reasoning;
        tokens.cache.read += other.cache.read;
        tokens.cache.write += other.cache.write;
        self.cost += more.cost;
    }
}

fn count(value: &Value, pointer: &str) -> u64 {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .filter(|it| *it <= MAX_TOKENS)
        .unwrap_or_default()
}

fn price(value: Option<&Value>) -> f64 {
    value
        .and_then(Value::as_f64)
        .filter(|it| (0.0..=MAX_COST).contains(it))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_price_or_a_number_that_cannot_be_is_not_believed() {
        let of = |cost: Value, tokens: Value| {
            let usage = json!({ "input_tokens": tokens });
            let used = Used::of_claude(&json!({ "total_cost_usd": cost, "usage": usage }));
            (used.cost, used.tokens.input)
        };
        assert_eq!(of(json!(0.5), json!(7)), (0.5, 7));
        assert_eq!(of(json!(-1.0), json!(-7)), (0.0, 0));
        assert_eq!(of(json!(1e300), json!(u64::MAX)), (0.0, 0));
        assert_eq!(of(json!("1"), json!(null)), (0.0, 0));
    }
}
