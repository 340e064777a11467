//! `outrigger acp`: the agent of an editor, over standard input and output.

mod agents;

use std::sync::Arc;

use self::agents::Agents;
use crate::args::Global;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::{pass_out, standard_input};

/// Runs the command.
pub(crate) async fn acp(global: &Global, signals: Signals) -> Result<u8, Failure> {
    let agents = Agents::new(global)?;
    let turn = signals.turn();
    let served = tokio::select! {
        served = outrigger_acp::serve(Arc::new(agents.clone()), standard_input(), pass_out) => served,
        _ = signals.cancelled() => Ok(()),
    };
    drop(turn);
    agents.shutdown().await;
    served
        .map(|()| 0)
        .map_err(|error| Failure::new("acp.input", error.to_string(), None))
}
