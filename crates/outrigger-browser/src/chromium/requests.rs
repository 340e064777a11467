//! What pages ask for: each request is judged before it is made, by whatever way: the model, a link, a redirect, a script.

use std::sync::Arc;

use outrigger_files::sync::lock;
use serde_json::{Value, json};

use super::Chromium;

impl Chromium {
    /// A request waits. It goes on, or is refused with the reason in the tab's records.
    pub(super) fn judge_request(self: &Arc<Self>, session: &str, params: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, url) = (text(&params["requestId"]), text(&params["request"]["url"]));
        let (this, session) = (Arc::clone(self), session.to_owned());
        if let Some(verdict) = self.sites.judge_known(&url) {
            return this.answer_request(&session, &id, &url, verdict.map_err(|it| it.to_string()));
        }
        tokio::spawn(async move {
            let verdict = this.sites.judge(&url).await.map_err(|it| it.to_string());
            this.answer_request(&session, &id, &url, verdict);
        });
    }

    fn answer_request(&self, session: &str, id: &str, url: &str, verdict: Result<(), String>) {
        let Err(why) = verdict else {
            return self.connection.post(
                session,
                "Fetch.continueRequest",
                &json!({ "requestId": id }),
            );
        };
        if let Some(tab) = lock(&self.state).tab_of(session) {
            let name = tab.info.tab.clone();
            tab.says(
                "error",
                &format!("A request to {url} was refused: {why}"),
                "outrigger",
            );
            lock(&self.refused).insert(name, why);
        }
        self.connection.post(
            session,
            "Fetch.failRequest",
            &json!({ "requestId": id, "errorReason": "BlockedByClient" }),
        );
    }
}
