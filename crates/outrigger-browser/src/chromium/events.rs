//! Events of the browser: targets, frames, loading, dialogs, console, requests, downloads, clicks of the user.

use std::sync::Arc;

use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::state::{Frame, State, Tab};
use super::{Chromium, PERSON, WORLD};
use crate::cdp::{AWAY, Event};
use crate::provider::Dialog;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Chromium {
    /// Handles an event. It must not block, because later events wait for it.
    pub(super) fn take(self: &Arc<Self>, event: &Event) {
        let Event {
            session,
            method,
            params,
        } = event;
        match method.as_str() {
            "Target.attachedToTarget" => self.attached(session, params),
            AWAY => lock(&self.state).are_away(),
            "Fetch.requestPaused" => self.judge_request(session, params),
            "Fetch.authRequired" => self.log_in(session, params),
            "Browser.downloadWillBegin" | "Browser.downloadProgress" => {
                self.download(method, params)
            }
            "Target.targetCreated" | "Target.targetInfoChanged" => {
                self.info_changed(&params["targetInfo"])
            }
            "Runtime.bindingCalled" if text(params, "name") == PERSON => {
                self.touched(session, text(params, "payload"))
            }
            "Input.dragIntercepted" => {
                lock(&self.drags).insert(session.clone(), params["data"].clone());
            }
            _ => {
                let mut state = lock(&self.state);
                of_targets(&mut state, method, params);
                if let Some(tab) = state.tab_of(session) {
                    of_page(tab, session, method, params);
                    of_records(tab, method, params);
                }
            }
        }
        self.changed
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    fn attached(self: &Arc<Self>, parent: &str, params: &Value) {
        let (session, info) = (text(params, "sessionId").to_owned(), &params["targetInfo"]);
        let kind = text(info, "type");
        let is_ours = text(info, "browserContextId") == self.context;
        let tab = match kind {
            "page" if is_ours => Some(self.new_tab(&session, info)),
            "iframe" => lock(&self.state).sessions.get(parent).cloned(),
            _ => None,
        };
        let Some(tab) = tab else {
            return self.not_ours(&session, parent);
        };
        {
            let mut state = lock(&self.state);
            state.sessions.insert(session.clone(), tab.clone());
            // The frame moves to a separate process.
            if let (true, Some(it)) = (kind == "iframe", state.tabs.get_mut(&tab)) {
                let frame = it
                    .frames
                    .entry(text(info, "targetId").to_owned())
                    .or_default();
                frame.session.clone_from(&session);
                frame.world = None;
            }
        }
        let this = Arc::clone(self);
        tokio::spawn(async move { this.set_up(&session, &tab).await });
    }

    /// Workers, and tabs of others: they are resumed and detached.
    fn not_ours(&self, session: &str, parent: &str) {
        // Requests of a worker are checked like those of its page.
        let is_of_page = lock(&self.state).sessions.contains_key(parent);
        if is_of_page {
            self.connection
                .post(session, "Fetch.enable", &self.interception());
        }
        let (connection, session) = (self.connection.clone(), session.to_owned());
        tokio::spawn(async move {
            // Chromium drops commands that have not reached the target when we detach, and the target would wait forever.
            let resumed = connection
                .call(&session, "Runtime.runIfWaitingForDebugger", json!({}))
                .await;
            if let Err(error) = resumed {
                tracing::debug!("[browser] a target of others did not go on: {error}");
            }
            if !is_of_page {
                let detach = json!({ "sessionId": session });
                connection.post("", "Target.detachFromTarget", &detach);
            }
        });
    }

    fn new_tab(&self, session: &str, info: &Value) -> String {
        let mut state = lock(&self.state);
        let target = text(info, "targetId").to_owned();
        // A tab that was lent to us before the connection was lost.
        if let Some(name) = state.tab_with(&target) {
            if let Some(tab) = state.tabs.get_mut(&name) {
                tab.is_back(session);
            }
            return name;
        }
        let opener = state.tab_with(text(info, "openerId"));
        let of_opener = opener
            .as_ref()
            .and_then(|it| state.tabs.get(it))
            .map(|it| it.info.session.clone());
        let session_of_ours = state.opening.remove(&target).or(of_opener);
        state.last_tab += 1;
        let name = format!("t{}", state.last_tab);
        let mut tab = Tab::new(session, target);
        tab.info.tab.clone_from(&name);
        tab.info.session = session_of_ours.unwrap_or_default();
        tab.info.opener = opener;
        tab.info.url = text(info, "url").to_owned();
        let frame = Frame {
            session: session.to_owned(),
            ..Frame::default()
        };
        tab.frames.insert(tab.main.clone(), frame);
        state.tabs.insert(name.clone(), tab);
        name
    }

    fn info_changed(&self, info: &Value) {
        let mut state = lock(&self.state);
        let Some(name) = state.tab_with(text(info, "targetId")) else {
            return;
        };
        if let Some(tab) = state.tabs.get_mut(&name) {
            tab.info.url = text(info, "url").to_owned();
            tab.info.title = text(info, "title").to_owned();
        }
    }

    /// A click or key in a tab: ours, or the user's, who then takes over the tab.
    fn touched(&self, session: &str, kind: &str) {
        let mut state = lock(&self.state);
        let Some(tab) = state.tab_of(session) else {
            return;
        };
        if tab.is_own(kind) {
            return;
        }
        let name = tab.info.tab.clone();
        tracing::info!("[browser] a person took the tab {name}");
        state.leases.taken_by_person(&name);
    }

    fn download(&self, method: &str, params: &Value) {
        let mut state = lock(&self.state);
        let id = text(params, "guid");
        if method == "Browser.downloadProgress" {
            if text(params, "state") == "completed" {
                state.tabs.values_mut().any(|tab| tab.has_downloaded(id));
            }
            return;
        }
        let (frame, name) = (text(params, "frameId"), text(params, "suggestedFilename"));
        let path = self.folder.join("downloads").join(id);
        let tab = state
            .tabs
            .values_mut()
            .find(|tab| tab.frames.contains_key(frame));
        if let Some(tab) = tab {
            tab.downloads(id, name, path);
        }
    }
}

/// Tabs that were closed or crashed.
fn of_targets(state: &mut State, method: &str, params: &Value) {
    match method {
        "Target.targetDestroyed" | "Target.targetCrashed" => {
            let Some(name) = state.tab_with(text(params, "targetId")) else {
                return;
            };
            match (method, state.tabs.get_mut(&name)) {
                // `Inspector.targetCrashed` is ignored: it repeats this when the tab may already be recovering, and is also sent for
                // frames in separate processes.
                ("Target.targetCrashed", Some(tab)) => tab.crashed = true,
                _ => state.forget_tab(&name),
            }
        }
        "Target.detachedFromTarget" => {
            let session = text(params, "sessionId");
            let tab = state
                .sessions
                .remove(session)
                .and_then(|name| state.tabs.get_mut(&name));
            if let Some(tab) = tab.filter(|tab| tab.session != session) {
                let of_it: Vec<String> = tab
                    .frames
                    .iter()
                    .filter(|(_, it)| it.session == session)
                    .map(|(id, _)| id.clone())
                    .collect();
                for frame in of_it {
                    tab.forget_frame(&frame);
                }
            }
        }
        _ => {}
    }
}

/// Frames, their documents and worlds, dialogs.
fn of_page(tab: &mut Tab, session: &str, method: &str, params: &Value) {
    match method {
        "Page.frameAttached" => {
            let frame = tab
                .frames
                .entry(text(params, "frameId").to_owned())
                .or_default();
            frame.parent = Some(text(params, "parentFrameId").to_owned());
            if frame.session.is_empty() {
                session.clone_into(&mut frame.session);
            }
        }
        "Page.frameNavigated" => navigated(tab, session, &params["frame"]),
        "Page.frameDetached" => {
            // It moves to another process, which reports it.
            let frame = text(params, "frameId");
            let is_here = tab
                .frames
                .get(frame)
                .is_some_and(|it| it.session == session);
            if text(params, "reason") != "swap" && is_here {
                tab.forget_frame(frame);
            }
        }
        "Page.navigatedWithinDocument" if text(params, "frameId") == tab.main => {
            tab.info.url = text(params, "url").to_owned();
        }
        "Page.frameStartedLoading" => {
            tab.loading.insert(text(params, "frameId").to_owned());
        }
        "Page.frameStoppedLoading" => {
            tab.loading.remove(text(params, "frameId"));
        }
        "Page.javascriptDialogOpening" => {
            let of = |key| text(params, key).to_owned();
            tab.dialog = Some(Dialog {
                kind: of("type"),
                message: of("message"),
                url: of("url"),
            });
        }
        "Page.javascriptDialogClosed" => tab.dialog = None,
        "Inspector.targetReloadedAfterCrash" => tab.crashed = false,
        _ => of_worlds(tab, session, method, params),
    }
}

/// Our isolated worlds in frames.
fn of_worlds(tab: &mut Tab, session: &str, method: &str, params: &Value) {
    match method {
        "Runtime.executionContextCreated" => {
            let context = &params["context"];
            let frame = tab.frames.get_mut(text(&context["auxData"], "frameId"));
            if let (WORLD, Some(frame)) = (text(context, "name"), frame) {
                frame.world = context["id"].as_i64();
            }
        }
        "Runtime.executionContextDestroyed" => {
            let id = params["executionContextId"].as_i64();
            let mut of_session = tab.frames.values_mut().filter(|it| it.session == session);
            if let Some(frame) = of_session.find(|it| it.world == id) {
                frame.world = None;
            }
        }
        "Runtime.executionContextsCleared" => {
            for frame in tab.frames.values_mut().filter(|it| it.session == session) {
                frame.world = None;
            }
        }
        _ => {}
    }
}

/// A frame shows another document.
pub(super) fn navigated(tab: &mut Tab, session: &str, it: &Value) {
    let id = text(it, "id").to_owned();
    let is_main = it.get("parentId").is_none() && session == tab.session;
    if is_main {
        tab.info.url = format!("{}{}", text(it, "url"), text(it, "urlFragment"));
        tab.crashed = false;
        tab.main.clone_from(&id);
    }
    let inside: Vec<String> = tab
        .frames
        .iter()
        .filter(|(_, frame)| frame.parent.as_deref() == Some(id.as_str()))
        .map(|(child, _)| child.clone())
        .collect();
    let frame = tab.frames.entry(id).or_default();
    let is_new = frame.document != text(it, "loaderId");
    text(it, "loaderId").clone_into(&mut frame.document);
    session.clone_into(&mut frame.session);
    if let Some(parent) = it.get("parentId").and_then(Value::as_str) {
        frame.parent = Some(parent.to_owned());
    }
    if is_new {
        for child in inside {
            tab.forget_frame(&child);
        }
    }
}

/// Console and requests.
fn of_records(tab: &mut Tab, method: &str, params: &Value) {
    match method {
        "Runtime.consoleAPICalled" => {
            let shown: Vec<String> = params["args"]
                .as_array()
                .into_iter()
                .flatten()
                .map(argument)
                .collect();
            let level = match text(params, "type") {
                "error" | "assert" => "error",
                "warning" => "warning",
                "info" => "info",
                "debug" => "debug",
                _ => "log",
            };
            let source = text(&params["stackTrace"]["callFrames"][0], "url").to_owned();
            tab.says(level, &shown.join(" "), &source);
        }
        "Runtime.exceptionThrown" => {
            let details = &params["exceptionDetails"];
            let thrown = text(&details["exception"], "description");
            let said = if thrown.is_empty() {
                text(details, "text")
            } else {
                thrown
            };
            tab.says("error", said, text(details, "url"));
        }
        "Log.entryAdded" => {
            let entry = &params["entry"];
            tab.says(
                text(entry, "level"),
                text(entry, "text"),
                text(entry, "url"),
            );
        }
        _ => of_requests(tab, method, params),
    }
}

/// Requests and their answers.
fn of_requests(tab: &mut Tab, method: &str, params: &Value) {
    match method {
        "Network.requestWillBeSent" => {
            let id = text(params, "requestId");
            let redirected = params["redirectResponse"]["status"].as_u64();
            if let (Some(status), Some(before)) = (redirected, tab.request(id)) {
                before.request.status = u16::try_from(status).ok();
            }
            let request = &params["request"];
            let url = text(request, "url");
            if !url.starts_with("data:") {
                tab.asks(id, text(request, "method"), url, text(params, "type"));
            }
        }
        "Network.responseReceived" => {
            let status = params["response"]["status"].as_u64();
            if let Some(request) = tab.request(text(params, "requestId")) {
                request.request.status = status.and_then(|it| u16::try_from(it).ok());
            }
        }
        "Network.loadingFailed" => {
            let why = match text(params, "blockedReason") {
                "" => text(params, "errorText"),
                why => why,
            };
            if let Some(request) = tab.request(text(params, "requestId")) {
                request.failure = Some(why.to_owned());
            }
        }
        _ => {}
    }
}

/// Formats a value that a page writes to its console.
fn argument(value: &Value) -> String {
    match &value["value"] {
        Value::Null => match text(value, "description") {
            "" => text(value, "unserializableValue").to_owned(),
            description => description.to_owned(),
        },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
