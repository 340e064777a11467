//! The cases of `tests/cases/pages.json`, through the tools. The extension's provider runs the same file
//! (`extension/tests/browser/conformance.mjs`), so that both do the same.

use std::collections::BTreeMap;

use outrigger_browser_core::field::FieldKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lending::LENT;
use crate::support::site;
use crate::tools::{Room, reference};

/// Pages, and what is done to them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    pages: BTreeMap<String, String>,
    /// Pages of another site, `{other}` in texts.
    #[serde(default)]
    other: BTreeMap<String, String>,
    /// More of the first one.
    #[serde(default)]
    more: BTreeMap<String, String>,
    /// Kinds of the user's fields that the settings grant.
    #[serde(default)]
    fields: Vec<FieldKind>,
    steps: Vec<Step>,
}

/// One step: a file that is written or looked at, a look at the page, or an action.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// A file of the workspace that is there from now on, with its content.
    write: Option<String>,
    #[serde(default)]
    content: String,
    /// A file that has to be there, with what it holds.
    file: Option<String>,
    #[serde(default)]
    holds: String,
    /// What the page has to show, now or soon.
    shows: Option<Vec<String>>,
    tab: Option<String>,
    /// A part of the line of the element that an action is done to, and where a drag ends.
    on: Option<String>,
    to: Option<String>,
    /// The action.
    #[serde(default)]
    with: Value,
    /// What its answer says.
    #[serde(default)]
    says: Vec<String>,
    /// It is refused, and this is said.
    refused: Option<Vec<String>>,
    /// What is not said.
    #[serde(default)]
    not: Vec<String>,
}

impl Step {
    async fn play(&self, room: &Room) -> Result<(), String> {
        if let Some(path) = &self.write {
            std::fs::write(room.project().join(path), &self.content).unwrap();
            return Ok(());
        }
        if let Some(path) = &self.file {
            let held = std::fs::read_to_string(room.project().join(path)).unwrap_or_default();
            return fits(&held, std::slice::from_ref(&self.holds), &[]);
        }
        match &self.shows {
            Some(shown) => self.look(room, shown).await,
            None => self.act(room).await,
        }
    }

    /// What comes late, as a frame of another site does, is waited for.
    async fn look(&self, room: &Room, shown: &[String]) -> Result<(), String> {
        let mut said = String::new();
        for _ in 0..100 {
            let mut input = json!({ "full": true });
            if let Some(tab) = &self.tab {
                input["tab"] = json!(tab);
            }
            said = room.call("snapshot", input).await.output;
            if shown.iter().all(|it| said.contains(it)) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        fits(&said, shown, &self.not)
    }

    async fn act(&self, room: &Room) -> Result<(), String> {
        let mut input = self.with.clone();
        if let Some(part) = &self.on {
            let shown = room.call("snapshot", json!({ "full": true })).await;
            input["ref"] = json!(reference(&shown, part));
            if let Some(part) = &self.to {
                input["to"] = json!(reference(&shown, part));
            }
        }
        let answer = room.call_as("s", "action", input).await;
        match (answer, &self.refused) {
            (Ok(output), None) => fits(&output.output, &self.says, &self.not),
            (Err((_, said)), Some(wanted)) => fits(&said, wanted, &self.not),
            (other, _) => Err(format!("{other:?}")),
        }
    }
}

fn fits(said: &str, wanted: &[String], not: &[String]) -> Result<(), String> {
    let missing = wanted.iter().find(|it| !said.contains(*it));
    let unwanted = not.iter().find(|it| said.contains(*it));
    match (missing, unwanted) {
        (None, None) => Ok(()),
        (missing, unwanted) => Err(format!(
            "missing {missing:?}, unwanted {unwanted:?} in {said}"
        )),
    }
}

/// Serves pages; where one leads to the site itself, it is known by then.
async fn served(pages: &BTreeMap<String, String>, other: &str) -> String {
    let fill = |html: &String| html.replace("{other}", other);
    let leaked = pages.iter().map(|(path, html)| {
        // A site of a test lives as long as the process does.
        let path: &'static str = String::leak(path.clone());
        (path, fill(html))
    });
    site(leaked.collect()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_that_both_providers_share() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../cases/pages.json")).unwrap();
    for case in cases {
        // The other site's page that leads back has to know this one's address, which is served first.
        let inner = served(&case.more, "").await;
        let back = |html: &String| html.replace("{site}", &inner);
        let other: BTreeMap<String, String> = case
            .other
            .iter()
            .map(|(path, html)| (path.clone(), back(html)))
            .collect();
        let other = served(&other, "").await.replace("127.0.0.1", "localhost");
        let pages = case
            .pages
            .iter()
            .chain(&case.more)
            .map(|(path, html)| (path.clone(), back(html)));
        let at = served(&pages.collect(), &other).await;
        // Its downloads are the user's.
        let is_lent = std::env::var_os(LENT).is_some();
        if is_lent && case.steps.iter().any(|it| it.with["action"] == "download") {
            continue;
        }
        let Some(room) = Room::somewhere(&at, case.fields.clone()).await else {
            return;
        };
        for allowed in [&other, &inner] {
            room.allow(allowed).await;
        }
        room.call("open", json!({ "url": at })).await;
        for (place, step) in case.steps.iter().enumerate() {
            if let Err(why) = step.play(&room).await {
                panic!("{}, step {}: {why}", case.name, place + 1);
            }
        }
        room.browser.close().await;
    }
}
