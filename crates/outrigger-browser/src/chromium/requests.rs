//! Requests of pages: each is checked before it is made, whether by the model, a link, a redirect or a script.

use std::sync::Arc;

use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::Chromium;
use crate::network::Network;

/// Error of a refused request, as seen by pages and the tab's records.
const BLOCKED: &str = "BlockedByClient";

/// Header that marks a response as one of our proxy, not of the site.
const REFUSED: &str = "x-outrigger-refused";

impl Chromium {
    /// Intercepted stages: all requests before they are made, and responses over plain HTTP, which may come from our proxy.
    pub(super) fn interception(&self) -> Value {
        let every = json!({ "urlPattern": "*" });
        match self.network {
            None => json!({ "patterns": [every] }),
            Some(_) => json!({
                "patterns": [every, { "urlPattern": "http://*", "requestStage": "Response" }], "handleAuthRequests": true,
            }),
        }
    }

    /// Answers authentication requests of our proxy; those of sites are left to the browser.
    pub(super) fn log_in(&self, session: &str, params: &Value) {
        let login = self.network.as_ref().map(Network::login);
        let answer = match login.filter(|_| params["authChallenge"]["source"] == "Proxy") {
            Some((name, password)) => {
                json!({ "response": "ProvideCredentials", "username": name, "password": password })
            }
            None => json!({ "response": "Default" }),
        };
        self.connection.post(
            session,
            "Fetch.continueWithAuth",
            &json!({ "requestId": params["requestId"], "authChallengeResponse": answer }),
        );
    }

    /// Handles an intercepted request. It is continued, or refused with the reason in the tab's records.
    pub(super) fn judge_request(self: &Arc<Self>, session: &str, params: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, url) = (text(&params["requestId"]), text(&params["request"]["url"]));
        if params.get("responseStatusCode").is_some() || params.get("responseErrorReason").is_some()
        {
            return self.pass_answer(session, &id, &url, params);
        }
        let (this, session) = (Arc::clone(self), session.to_owned());
        if let Some(verdict) = self.sites.judge_known(&url) {
            return this.answer_request(&session, &id, &url, verdict.map_err(|it| it.to_string()));
        }
        tokio::spawn(async move {
            let verdict = this.sites.judge(&url).await.map_err(|it| it.to_string());
            this.answer_request(&session, &id, &url, verdict);
        });
    }

    /// Passes a response to the page; one of our proxy becomes a failure, as it would be without the proxy.
    fn pass_answer(&self, session: &str, id: &str, url: &str, params: &Value) {
        let refusal = self.network.as_ref().and_then(|it| it.refusal(url));
        let Some(reason) = failure_of(params, refusal) else {
            return self.go_on(session, id);
        };
        if reason == BLOCKED {
            let why = params["responseStatusText"].as_str().unwrap_or_default();
            self.note_refusal(session, url, why);
        }
        self.fail(session, id, reason);
    }

    fn answer_request(&self, session: &str, id: &str, url: &str, verdict: Result<(), String>) {
        let Err(why) = verdict else {
            return self.go_on(session, id);
        };
        self.note_refusal(session, url, &why);
        self.fail(session, id, BLOCKED);
    }

    fn go_on(&self, session: &str, id: &str) {
        self.connection.post(
            session,
            "Fetch.continueRequest",
            &json!({ "requestId": id }),
        );
    }

    fn fail(&self, session: &str, id: &str, reason: &str) {
        self.connection.post(
            session,
            "Fetch.failRequest",
            &json!({ "requestId": id, "errorReason": reason }),
        );
    }

    /// Writes a refusal to the tab's console.
    fn note_refusal(&self, session: &str, url: &str, why: &str) {
        if let Some(tab) = lock(&self.state).tab_of(session) {
            let name = tab.info.tab.clone();
            tab.says(
                "error",
                &format!("A request to {url} was refused: {why}"),
                "outrigger",
            );
            lock(&self.refused).insert(name, why.to_owned());
        }
    }
}

/// Returns the failure for a response of our proxy; `None` for a site's. `refusal` is the proxy's last reason for its host.
fn failure_of(params: &Value, refusal: Option<&str>) -> Option<&'static str> {
    let headers = params["responseHeaders"].as_array()?;
    let named = headers.iter().find(|it| {
        it["name"]
            .as_str()
            .is_some_and(|name| name.eq_ignore_ascii_case(REFUSED))
    });
    let code = match named {
        Some(header) => header["value"].as_str().unwrap_or_default(),
        // Chromium removes the content and headers of a response that a page may not read (opaque response blocking).
        None if headers.is_empty() => refusal?,
        None => return None,
    };
    let said = params["responseStatusText"].as_str().unwrap_or_default();
    Some(match code {
        "network.unknown_host" => "NameNotResolved",
        "network.failed" if said.contains("refused") => "ConnectionRefused",
        "network.failed" | "network.too_many" => "ConnectionFailed",
        _ => BLOCKED,
    })
}
