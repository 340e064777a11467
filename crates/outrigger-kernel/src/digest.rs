//! FNV-1a, 64 bits: stable fingerprints that need no secrecy (D7). The log's hash chain uses SHA-256 instead.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::turn::Effect;
pub use outrigger_protocol::canonical::fnv1a;
use outrigger_protocol::turn::EffectId;

/// Returns the fingerprint of the effects of one step. A replay of the stored inputs must yield the same one.
#[must_use]
pub fn effects(effects: &[Effect]) -> String {
    // Effects are plain data with string keys, so serialising them cannot fail; an empty text would show as a
    // mismatch.
    let text = serde_json::to_vec(effects).unwrap_or_default();
    format!("{:016x}", fnv1a(&text))
}

/// Returns the effects on the world: a model request or a tool call. Only these need a durable intent.
#[must_use]
pub fn intents(effects: &[Effect]) -> Vec<EffectId> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel { effect, .. } | Effect::RunTool { effect, .. } => Some(*effect),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_vectors() {
        for (text, want) in [
            ("", 0xcbf2_9ce4_8422_2325_u64),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(text.as_bytes()), want, "{text}");
        }
    }
}
