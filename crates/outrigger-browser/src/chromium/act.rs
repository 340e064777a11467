//! The actions, one by one.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outrigger_browser_core::action::{Kind, Point};
use outrigger_browser_core::field;
use outrigger_browser_core::lease::Grant;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::element::Element;
use super::input::Writer;
use super::{Chromium, keys};
use crate::error::BrowserError;
use crate::provider::{ActionTarget, Done, Step};

const FILL: &str = include_str!("../scripts/fill.js");
const FOCUS: &str = include_str!("../scripts/focus.js");
const VALUE: &str = include_str!("../scripts/value.js");
const SELECT: &str = include_str!("../scripts/select.js");
const SCROLL: &str = include_str!("../scripts/scroll.js");
/// Maximum duration of `wait`.
const MAX_PAUSE: Duration = Duration::from_secs(10);

impl Chromium {
    pub(super) async fn step(&self, grant: &Grant, step: &Step) -> Result<Done, BrowserError> {
        let tab = &grant.tab;
        self.check_lease(grant)?;
        self.unless_impossible(step)?;
        let session = {
            let state = lock(&self.state);
            let it = self.known(&state, tab)?;
            match &it.dialog {
                Some(dialog) if step.kind != Kind::Dialog && step.kind != Kind::TabClose => {
                    return Err(BrowserError::Dialog(dialog.clone()));
                }
                _ => {}
            }
            let is_revived = matches!(step.kind, Kind::Navigate | Kind::Reload | Kind::TabClose);
            if it.crashed && !is_revived {
                return Err(BrowserError::Crashed { tab: tab.clone() });
            }
            it.session.clone()
        };
        let document = match &step.place {
            Some(ActionTarget::Element(key)) => Some(key.document.clone()),
            _ => None,
        };
        let writer = Writer {
            browser: self,
            grant,
            session,
            document,
        };
        if let Some(it) = lock(&self.state).tabs.get_mut(tab) {
            it.crashed = false;
        }
        let (before, mark) = (self.tab_names(), self.mark_of(tab));
        let mut done = self.carry_out(&writer, step).await?;
        if step.kind != Kind::TabClose {
            self.settle(tab, mark, step.wait).await;
        }
        self.popups_are_known().await;
        done.opened = self.opened_by(tab, &before);
        for opened in &done.opened {
            self.loaded(opened, None, step.wait).await;
        }
        Ok(done)
    }

    async fn carry_out(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        match step.kind {
            Kind::Click | Kind::Download => self.click(writer, step, 1).await,
            Kind::DoubleClick => self.click(writer, step, 2).await,
            Kind::Hover => {
                let at = self.place(writer, step.place.as_ref(), "hover").await?;
                writer.hover(at).await.map(|()| Done::default())
            }
            Kind::Drag => {
                let from = self.place(writer, step.place.as_ref(), "drag").await?;
                let to = self.place(writer, step.to.as_ref(), "hover").await?;
                writer.drag(from, to).await.map(|()| Done::default())
            }
            Kind::Type => self.type_text(writer, step).await,
            Kind::Fill => self.fill(writer, step).await,
            Kind::Select => self.select(writer, step).await,
            Kind::Check | Kind::Uncheck => self.check_box(writer, step).await,
            Kind::Press => self.press(writer, step).await,
            Kind::Scroll => self.scroll(writer, step).await,
            Kind::Upload => self.upload(writer, step).await,
            Kind::Dialog => self.answer_dialog(writer, step).await,
            Kind::Navigate => {
                self.navigate(writer, step.url.as_deref().unwrap_or_default(), step.wait)
                    .await
            }
            Kind::Back | Kind::Forward => self.go(writer, step).await,
            Kind::Reload => {
                writer
                    .call(&writer.session, "Page.reload", json!({}))
                    .await?;
                self.loaded(&writer.grant.tab, None, step.wait).await;
                Ok(Done::default())
            }
            Kind::Wait | Kind::TabNew => {
                tokio::time::sleep(step.wait.min(MAX_PAUSE)).await;
                Ok(Done::default())
            }
            Kind::TabClose => self.close_tab(writer).await,
            Kind::TabSwitch => {
                if step.focus {
                    writer
                        .call(&writer.session, "Page.bringToFront", json!({}))
                        .await?;
                }
                Ok(Done::default())
            }
        }
    }

    async fn place(
        &self,
        writer: &Writer<'_>,
        place: Option<&ActionTarget>,
        action: &str,
    ) -> Result<Point, BrowserError> {
        match place {
            Some(ActionTarget::Point(point)) => Ok(*point),
            Some(ActionTarget::Element(key)) => {
                let element = self.element(&writer.grant.tab, key).await?;
                self.locate(&writer.grant.tab, &element, action).await
            }
            None => Err(BrowserError::Input("`ref` is missing".to_owned())),
        }
    }

    async fn aimed(&self, writer: &Writer<'_>, step: &Step) -> Result<Element, BrowserError> {
        match &step.place {
            Some(ActionTarget::Element(key)) => self.element(&writer.grant.tab, key).await,
            _ => Err(BrowserError::Input("`ref` is missing".to_owned())),
        }
    }

    async fn click(
        &self,
        writer: &Writer<'_>,
        step: &Step,
        times: u32,
    ) -> Result<Done, BrowserError> {
        let bits = keys::modifiers(step.modifiers.iter().map(String::as_str)).ok_or_else(|| {
            BrowserError::Input("`modifiers` are Control, Shift, Alt and Meta".to_owned())
        })?;
        let at = self.place(writer, step.place.as_ref(), "click").await?;
        writer.click(at, &step.button, times, bits).await?;
        Ok(Done::default())
    }

    async fn type_text(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        if step.is_secret {
            return self.fill(writer, step).await;
        }
        let text = step.text.as_deref().unwrap_or_default();
        let at = self.place(writer, step.place.as_ref(), "type").await?;
        writer.click(at, "left", 1, 0).await?;
        self.unless_kept(writer, step).await?;
        writer.type_keys(text).await?;
        if step.submit {
            writer.press("Enter").await?;
            return Ok(Done::default());
        }
        let value = match &step.place {
            Some(ActionTarget::Element(_)) => self.value(&self.aimed(writer, step).await?).await,
            _ => None,
        };
        Ok(Done {
            value,
            ..Done::default()
        })
    }

    async fn fill(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let text = step.text.as_deref().unwrap_or_default();
        let element = self.aimed(writer, step).await?;
        self.check_lease(writer.grant)?;
        let how = match (step.is_secret, step.kind) {
            (false, _) => "by keys",
            (true, Kind::Type) => "add",
            (true, _) => "replace",
        };
        if step.is_secret {
            self.has_secret.store(true, Ordering::Relaxed);
        }
        let arguments = [text.into(), how.into()];
        let ready = self.ask_on(&element, "fill", FILL, &arguments).await?;
        if ready["typed"] == true {
            match text {
                "" if ready["empty"] == true => {}
                "" => writer.press("Delete").await?,
                text => writer.put(text).await?,
            }
        }
        if step.submit {
            writer.press("Enter").await?;
            return Ok(Done::default());
        }
        let value = self.value(&element).await;
        let notes = match value {
            Some(_) => Vec::new(),
            None => vec!["The field is gone; its final value is unknown.".to_owned()],
        };
        Ok(Done {
            value,
            notes,
            ..Done::default()
        })
    }

    /// Returns the content of a field; `None` if its page is gone.
    pub(super) async fn value(&self, element: &Element) -> Option<String> {
        self.run_on(element, VALUE, &[])
            .await
            .ok()?
            .as_str()
            .map(str::to_owned)
    }

    async fn select(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let element = self.aimed(writer, step).await?;
        self.check_lease(writer.grant)?;
        let chosen = self
            .ask_on(&element, "select", SELECT, &[json!(step.values)])
            .await?;
        Ok(Done {
            value: self.value(&element).await,
            chosen: chosen["chosen"].as_str().map(str::to_owned),
            ..Done::default()
        })
    }

    async fn check_box(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let element = self.aimed(writer, step).await?;
        let wanted = step.kind == Kind::Check;
        if self.is_checked(&element).await? == wanted {
            return Ok(Done {
                value: Some(wanted.to_string()),
                notes: vec!["It was already in that state.".to_owned()],
                ..Done::default()
            });
        }
        let at = self.locate(&writer.grant.tab, &element, "click").await?;
        writer.click(at, "left", 1, 0).await?;
        let value = self
            .is_checked(&element)
            .await
            .ok()
            .map(|it| it.to_string());
        Ok(Done {
            value,
            ..Done::default()
        })
    }

    async fn press(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        if step.place.is_some() {
            let at = self.place(writer, step.place.as_ref(), "type").await?;
            writer.click(at, "left", 1, 0).await?;
        }
        let key = step.text.as_deref().unwrap_or_default();
        if !field::takes_key(key) {
            self.unless_kept(writer, step).await?;
        }
        writer.press(key).await?;
        Ok(Done::default())
    }

    /// Keys would change the content of a protected field, so that it is no longer masked: they are not sent while one has the focus.
    async fn unless_kept(&self, writer: &Writer<'_>, step: &Step) -> Result<(), BrowserError> {
        let element = match &step.place {
            Some(ActionTarget::Element(_)) => self.aimed(writer, step).await,
            _ => self.page_element(&writer.grant.tab).await,
        };
        // The page may have changed after a click.
        let Ok(element) = element else { return Ok(()) };
        let said = self.run_on(&element, FOCUS, &[]).await?;
        let text = |key: &str| said[key].as_str().unwrap_or_default();
        let kind = field::kind_of(field::Attributes {
            kind: text("type"),
            autocomplete: text("autocomplete"),
            name: text("name"),
            id: text("id"),
        });
        if let Some(kind) = kind.filter(|it| !step.granted.contains(it)) {
            return Err(BrowserError::Field { field: kind.name() });
        }
        if said["frame"] == true && self.has_secret.load(Ordering::Relaxed) {
            return Err(BrowserError::Input(
                "a frame of another site has the focus, and a secret was typed: name the element by `ref`"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    async fn scroll(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let element = match &step.place {
            Some(ActionTarget::Element(_)) => self.aimed(writer, step).await?,
            _ => self.page_element(&writer.grant.tab).await?,
        };
        let (x, y) = match (step.by, &step.place) {
            (Some(by), _) => (json!(by.x), json!(by.y)),
            (None, Some(ActionTarget::Element(_))) => (Value::Null, Value::Null),
            (None, _) => (json!(0), json!(600)),
        };
        self.check_lease(writer.grant)?;
        let moved = self.run_on(&element, SCROLL, &[x, y]).await?["moved"] == true;
        let notes = if moved {
            Vec::new()
        } else {
            vec!["Nothing moved: it is already at the end.".to_owned()]
        };
        Ok(Done {
            notes,
            ..Done::default()
        })
    }

    async fn upload(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let element = self.aimed(writer, step).await?;
        let file = step.file.clone().unwrap_or_default();
        if self.is_lent {
            return self.put_file(writer, &element, &file).await;
        }
        let object = self.object_of(&element);
        writer
            .call(
                &element.session,
                "DOM.setFileInputFiles",
                json!({ "files": [file.display().to_string()], "objectId": object }),
            )
            .await?;
        Ok(Done {
            value: self.value(&element).await,
            ..Done::default()
        })
    }

    async fn answer_dialog(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let tab = &writer.grant.tab;
        if self.dialog_of(tab).is_none() {
            return Err(BrowserError::NotDone {
                action: "dialog".to_owned(),
                why: "no dialog is open".to_owned(),
            });
        }
        let mut params = json!({ "accept": step.accept });
        if let Some(text) = &step.text {
            params["promptText"] = text.as_str().into();
        }
        writer
            .call(&writer.session, "Page.handleJavaScriptDialog", params)
            .await?;
        self.until(Duration::from_secs(2), |state| {
            state
                .tabs
                .get(tab)
                .is_none_or(|it| it.dialog.is_none())
                .then_some(())
        })
        .await;
        Ok(Done::default())
    }

    pub(super) async fn navigate(
        &self,
        writer: &Writer<'_>,
        url: &str,
        wait: Duration,
    ) -> Result<Done, BrowserError> {
        let tab = &writer.grant.tab;
        self.check_lease(writer.grant)?;
        let sent = self.connection.call_within(
            &writer.session,
            "Page.navigate",
            json!({ "url": url }),
            wait.max(Duration::from_secs(1)),
        );
        let answer = tokio::select! {
            answer = sent => answer?,
            () = self.dialog_opens(tab) => return Ok(Done::default()),
        };
        match answer["errorText"].as_str().unwrap_or_default() {
            "" => {}
            "net::ERR_ABORTED" => {
                return Ok(Done {
                    notes: vec![
                        "The address has no page to show (a download, or an empty answer)."
                            .to_owned(),
                    ],
                    ..Done::default()
                });
            }
            why => {
                return Err(BrowserError::NotDone {
                    action: format!("navigation to {url}"),
                    why: self.failure(tab, url, why),
                });
            }
        }
        self.loaded(tab, answer["loaderId"].as_str(), wait).await;
        Ok(Done::default())
    }

    /// Returns why a page did not load, with our own reason if we refused it.
    fn failure(&self, tab: &str, url: &str, why: &str) -> String {
        if why.contains("TUNNEL_CONNECTION_FAILED") {
            let refused = self.network.as_ref().and_then(|it| it.refusal(url));
            return match refused {
                Some(code) => format!("its host is refused ({code})"),
                None => format!("the site does not answer ({why})"),
            };
        }
        let refused = lock(&self.refused).get(tab).cloned();
        refused
            .filter(|_| why.contains("BLOCKED"))
            .unwrap_or_else(|| why.to_owned())
    }

    async fn go(&self, writer: &Writer<'_>, step: &Step) -> Result<Done, BrowserError> {
        let history = self
            .connection
            .call(&writer.session, "Page.getNavigationHistory", json!({}))
            .await?;
        let at = history["currentIndex"].as_i64().unwrap_or_default();
        let to = if step.kind == Kind::Back {
            at - 1
        } else {
            at + 1
        };
        let entry = usize::try_from(to)
            .ok()
            .and_then(|to| history["entries"].get(to));
        let nothing = || BrowserError::NotDone {
            action: step.kind.name().to_owned(),
            why: "there is no page before or after this one".to_owned(),
        };
        let entry = entry
            .filter(|it| it["url"] != "about:blank" || to > 0)
            .ok_or_else(nothing)?;
        let (id, url) = (
            entry["id"].clone(),
            entry["url"].as_str().unwrap_or_default().to_owned(),
        );
        writer
            .call(
                &writer.session,
                "Page.navigateToHistoryEntry",
                json!({ "entryId": id }),
            )
            .await?;
        let tab = &writer.grant.tab;
        self.until(step.wait, |state| {
            let it = state.tabs.get(tab)?;
            (it.info.url == url && !it.loading.contains(&it.main)).then_some(())
        })
        .await;
        Ok(Done::default())
    }

    /// Closes a tab; the last tab of the browser is replaced by an empty one, so that the browser keeps running.
    async fn close_tab(&self, writer: &Writer<'_>) -> Result<Done, BrowserError> {
        self.check_lease(writer.grant)?;
        let tab = &writer.grant.tab;
        self.close_safely(tab).await?;
        Ok(Done::default())
    }
}
