//! `outrigger mcp serve`: sessions and tools for other agents.

mod agents;
mod backend;
mod results;
mod sessions;

use std::sync::Arc;

use outrigger_agent::{Agent, Answering, Folders};
use outrigger_server::Guard;

use self::agents::PermittedAgents;
use self::backend::AgentBackend;
use crate::args::{Global, McpServe};
use crate::commands::serve::{login, say_login};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;
use crate::terminal::{out, pass_out, standard_input};

const LOOPBACK: &str = "127.0.0.1";

/// Runs the command.
pub(crate) async fn serve(
    global: &Global,
    args: McpServe,
    signals: Signals,
) -> Result<u8, Failure> {
    let mut boot = crate::boot::boot(global, &Line::new())?;
    // What no rule allows is refused: the user is at the other agent.
    boot.answering = Answering::Refuse;
    let agent = Agent::boot(boot).await?;
    let _plugins = outrigger_server::serve_plugins(&agent);
    let turn = signals.turn();
    let served = offer(&agent, args, &signals).await;
    drop(turn);
    agent.shutdown().await;
    served.map(|()| 0)
}

async fn offer(agent: &Agent, args: McpServe, signals: &Signals) -> Result<(), Failure> {
    let permitted = PermittedAgents::new(agent, args.agent)?;
    let backend = Arc::new(AgentBackend::new(agent.clone(), permitted));
    let Some(port) = args.port else {
        let served = outrigger_mcp_server::stdio::serve(backend, standard_input(), pass_out);
        return tokio::select! {
            served = served => served.map_err(|error| failed(&error)),
            _ = signals.cancelled() => Ok(()),
        };
    };
    over_http(backend, port, args.no_auth, signals).await
}

async fn over_http(
    backend: Arc<AgentBackend>,
    port: u16,
    no_auth: bool,
    signals: &Signals,
) -> Result<(), Failure> {
    let listening = outrigger_server::listen(LOOPBACK, Some(port))
        .await
        .map_err(|error| failed(&error))?;
    let env = crate::boot::environment();
    let (login, made) = if no_auth {
        (None, false)
    } else {
        login(&env, &Folders::from_env(&env)).map(|(login, made)| (Some(login), made))?
    };
    let guard = Guard {
        login: login.clone(),
        hostname: LOOPBACK.to_owned(),
        hosts: Vec::new(),
        cors: Vec::new(),
        has_pages: false,
        page: None,
    };
    let url = format!("http://{}/mcp", listening.address);
    out(&format!("outrigger MCP server listening on {url}\n"));
    if let Some(login) = login.filter(|_| made) {
        say_login(&url, &login);
    }
    let router = guard.around(outrigger_mcp_server::http::router(backend));
    let stop = async {
        signals.cancelled().await;
    };
    let served = listening.serve_router(router, stop).await;
    served.map_err(|error| failed(&error))
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new("mcp.serve", error.to_string(), None)
}
