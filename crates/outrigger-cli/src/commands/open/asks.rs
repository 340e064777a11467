//! Questions and messages of an agent's start, in the interface.

use std::sync::Arc;

use outrigger_agent::Boot;
use outrigger_plugins::Stage;
use outrigger_terminal::Frame;
use outrigger_tui::Host;

use crate::consent::Sheet;

/// Lets the start of an agent ask the user in the interface.
pub(super) fn of(boot: &mut Boot, host: &Host) {
    let asking = host.clone();
    boot.consent = Some(Arc::new(move |what| {
        let (host, frame) = (asking.clone(), Frame::new().with("needs", what));
        Box::pin(async move {
            let what = "fetch it from npm (about 40 MB, once)";
            host.ask(what, frame.clone(), frame).await
        })
    }));
    let asking = host.clone();
    boot.trust = Some(Arc::new(move |question| {
        Box::pin(ask(asking.clone(), Sheet::of_plugin(question)))
    }));
    let asking = host.clone();
    boot.trust_folder = Some(Arc::new(move |asked| {
        Box::pin(ask(asking.clone(), Sheet::of_folder(&asked)))
    }));
    let host = host.clone();
    boot.progress = Arc::new(move |progress| {
        let (plugin, stage) = (progress.plugin, progress.stage);
        match stage {
            Stage::Failed | Stage::Off => {
                let cause = progress.cause.map(|it| it.message).unwrap_or_default();
                host.notice(format!("plugin {plugin} {stage}: {cause}"));
            }
            _ => host.progress(format!("plugin {plugin}: {stage}")),
        }
    });
}

async fn ask(host: Host, sheet: Sheet) -> bool {
    let summary = sheet
        .bounded
        .with("because", sheet.head.trim_end_matches([':', '\n']));
    host.ask(sheet.what, summary, sheet.whole).await
}
