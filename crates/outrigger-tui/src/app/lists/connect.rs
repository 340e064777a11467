//! Logging in to a provider: with a key in the interface, in other ways with a command in a shell.

use serde_json::{Value, json};

use crate::app::App;
use crate::app::history::get;
use crate::render::text::inline;
use crate::render::theme::Role;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind, Picker};

/// The choice of a key.
const KEY: &str = "key";

impl App {
    /// Asks how one can log in to a provider.
    pub(super) fn login_methods(provider: &str) -> Vec<Effect> {
        let then = Then::LoginMethods(provider.to_owned());
        vec![get("/provider/auth".to_owned(), then)]
    }

    /// Offers the ways to log in to a provider, if there is more than a key.
    pub(crate) fn offer_login(&mut self, provider: &str, all: &Value) {
        let others: Vec<Item> = all[provider]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["type"] != "api")
            .map(|it| {
                let label = it["label"].as_str().unwrap_or_default();
                Item::new(label, inline(label), "in a shell")
            })
            .collect();
        if others.is_empty() {
            return self.ask_key(provider);
        }
        let mut items = vec![Item::new(KEY, "API key", "typed here")];
        items.extend(others);
        let title = format!("Log in to {}", inline(provider));
        let mut picker = Picker::new(ListKind::LoginMethods, title, items);
        picker.subject = Some(provider.to_owned());
        self.picker = Some(picker);
    }

    /// Continues with a chosen way.
    pub(super) fn login_by(&mut self, method: &str, provider: Option<&str>) {
        let Some(provider) = provider else { return };
        if method == KEY {
            return self.ask_key(provider);
        }
        let (provider, method) = (inline(provider), quoted(&inline(method)));
        self.conversation.note(format!(
            "run this in another terminal, and choose the model with /models afterwards: outrigger auth login {provider} -m {method}"
        ));
        self.scroll.to_end();
    }

    fn ask_key(&mut self, provider: &str) {
        let title = format!("API key of {}", inline(provider));
        self.picker = Some(Picker::typed(ListKind::Key, title, provider, ""));
    }

    pub(super) fn store_key(provider: &str, key: &str) -> Vec<Effect> {
        vec![Effect::Call {
            method: "PUT",
            path: format!("/auth/{}", outrigger_client::encoded(provider)),
            body: Some(json!({ "type": "api", "key": key })),
            then: Then::LoggedIn(provider.to_owned()),
        }]
    }

    /// Lists the models, of which there are more now.
    pub(crate) fn logged_in(&mut self, provider: &str) -> Vec<Effect> {
        let text = format!("the key of {} is stored", inline(provider));
        self.say(&text, Role::Good);
        self.open_list(ListKind::Models)
    }
}

/// Returns providers, those first whose models can be used already.
pub(crate) fn providers(all: &Value) -> Vec<Item> {
    let is_connected = |id: &str| {
        let connected = all["connected"].as_array();
        connected.is_some_and(|it| it.iter().any(|it| it == id))
    };
    let mut items: Vec<(bool, Item)> = all["all"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| {
            let id = it["id"].as_str().unwrap_or_default();
            let name = inline(it["name"].as_str().unwrap_or(id));
            let detail = if is_connected(id) { "connected" } else { "" };
            (is_connected(id), Item::new(id, name, detail))
        })
        .collect();
    items.sort_by_key(|(is_connected, _)| !is_connected);
    items.into_iter().map(|(_, item)| item).collect()
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
